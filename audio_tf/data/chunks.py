"""Cached clips to chunks, and chunks to batches, through tf.data."""

import itertools
import math

import numpy as np
import tensorflow as tf

from audio_tf import compiling
from audio_tf.audio.chunking import chunk_starts, in_samples, kept_chunks
from audio_tf.data.batching import (
    Buffers,
    rows_dataset,
    rows_of,
    with_rests_joined,
)
from audio_tf.data.limits import limit_to_model
from audio_tf.data.shares import WHOLE
from audio_tf.ops.checks import check_sizes, check_whole_numbers


class Chunks:
    """The chunks of all clips: pieces of equal length, labelled as the clip is.

    Section 2 of "Audio Transformers" (arXiv 2105.00335): clips are cut into
    chunks of 1 s, which inherit the labels of the clip; shorter clips are
    repeated to the full length. Without `chunk_s` each clip is one chunk, and
    is padded by zeros in a batch. Samples are read from the cache when a
    batch needs them; bad files are none of the clips, `prepare` has left them
    out.

    Args:
        clips: `Clips`.
        chunk_s: float, seconds of a chunk, or `None` for whole clips.
        hop_s: float, seconds from chunk to chunk, at most and by default
            `chunk_s`.
        silence_db: float, at most 0, or `None`. If given, chunks are left out
            whose peak is below so many dB of full scale; the loudest of a clip
            stays. Corpora that fill clips up with digital silence, ESC-50
            among them, would else teach that silence is each of the classes.

    Raises:
        ValueError: if a duration or a level is no number that fits, or is
            given for clips that are taken whole.

    Attributes:
        size: int, samples of a chunk, or `None` for whole clips.
        hop: int, samples from chunk to chunk, or `None` for whole clips.
        clip_index: int64 `(chunks,)`, the index of each chunk's clip.
        starts: int64 `(chunks,)`, the sample of its clip that each begins at.
        targets: float32 `(clips, classes)`, multi-hot labels.
        silent: int, how many chunks were left out.

    Examples:
        >>> import soundfile
        >>> from audio_tf import corpora, data
        >>> soundfile.write("a.wav", [0.5] * 20_000, 8_000)
        >>> corpus = corpora.Corpus(["a.wav"], [["dog"]], ["dog", "rain"])
        >>> clips = data.prepare(corpus, 8_000, "cache", progress=False)
        >>> chunks = data.Chunks(clips, chunk_s=1.0)
        >>> for waveform, targets in chunks.dataset(batch_size=4):
        ...     print(waveform.shape, targets.shape)
        (3, 8000) (3, 2)
    """

    def __init__(self, clips, chunk_s=1.0, hop_s=None, silence_db=None):
        self.clips = clips
        self.targets = self.clip_targets()
        self.size = self.hop = None
        self.silent = 0
        if silence_db is not None and not (
            math.isfinite(silence_db) and silence_db <= 0.0
        ):
            raise ValueError(
                "`silence_db` must be a peak in dB of full scale, finite and "
                f"at most 0. Received: silence_db={silence_db}"
            )
        if chunk_s is None:
            if hop_s is not None or silence_db is not None:
                raise ValueError(
                    "`hop_s` and `silence_db` are of chunks, not of whole "
                    f"clips. Received: chunk_s=None, hop_s={hop_s}, "
                    f"silence_db={silence_db}"
                )
            self.clip_index = np.arange(len(clips))
            self.starts = np.zeros(len(clips), np.int64)
            return
        if clips.dim is not None:
            raise ValueError(
                "Clips of features are taken whole. "
                f"Received: chunk_s={chunk_s}"
            )
        durations = [chunk_s, chunk_s if hop_s is None else hop_s]
        size, hop = 0, 0
        if all(map(math.isfinite, durations)):
            size, hop = in_samples(*durations, clips.sample_rate_hz)
        if not 1 <= hop <= size:
            raise ValueError(
                "Chunks must hold at least one sample and leave no gaps. "
                f"Received: chunk_s={chunk_s}, hop_s={hop_s}"
            )
        self.size, self.hop = size, hop
        starts = [chunk_starts(n, size, hop) for n in clips.lengths]
        counts = [len(each) for each in starts]
        self.clip_index = np.repeat(np.arange(len(clips)), counts)
        self.starts = np.concatenate(starts)
        if silence_db is not None:
            self.leave_out_silence(silence_db)

    @classmethod
    def for_model(cls, clips, model):
        """Cuts clips as a model has them cut.

        Clips longer than a model takes whole are left out, and are in the
        failures of `clips` of what is returned.

        Args:
            clips: `Clips` at the rate of the model.
            model: `audio_tf.audio.scoring.ClipClassifier`, as
                `AudioClassifier` and what `export.formats.load` returns are.

        Raises:
            ValueError: if the clips are of another rate than the model, or it
                can take none of them.
        """
        clips = limit_to_model(clips, model)
        return cls(clips, model.chunk_s, model.chunk_hop_s, model.silence_db)

    def leave_out_silence(self, silence_db):
        """Drops chunks whose peak is below a level, but one of each clip.

        Args:
            silence_db: float, the level in dB of full scale.
        """
        peaks = [np.abs(self.read(row)).max() for row in range(len(self))]
        kept = kept_chunks(np.array(peaks), self.clip_index, silence_db)
        self.silent = int(np.count_nonzero(~kept))
        self.clip_index = self.clip_index[kept]
        self.starts = self.starts[kept]

    def __len__(self):
        return len(self.starts)

    def clip_targets(self):
        """Returns the targets of all clips, float32 `(clips, classes)`."""
        return self.clips.corpus.targets()

    def batch_targets(self, clips, width):
        """Returns the targets of a batch.

        Args:
            clips: int array `(batch,)`, the index of each row's clip.
            width: int, samples (of features: frames) that the batch is padded
                to.
        """
        return self.targets[clips]

    def target_spec(self):
        """Returns the shape and dtype of the targets of a batch."""
        return tf.TensorSpec((None, self.targets.shape[1]), tf.float32)

    def input_spec(self):
        """Returns the name of the input, and the shape and dtype of a batch."""
        return "waveform", tf.TensorSpec((None, self.size), tf.float32)

    def read(self, row, offset=0):
        """Reads the samples of one chunk, float32 `(size,)`.

        Args:
            row: int, the index of the chunk.
            offset: int, by how many samples it begins later, as far as the
                clip goes; a repeated clip is turned by as many.
        """
        if self.size is None:
            clip = self.clip_index[row]
            values = self.clips.lengths[clip] * (self.clips.dim or 1)
            return self.clips.read(clip, 0, values)
        return self.read_pieces(np.array([row]), np.array([offset]))[0]

    def read_pieces(self, rows, offsets, empty=np.empty):
        """Reads chunks of one size, float32 `(batch, size)`.

        Args:
            rows: int array `(batch,)`, indices of chunks.
            offsets: int array `(batch,)`, see `read`.
            empty: function of a shape and a dtype to the array that is filled.
        """
        clips = self.clip_index[rows]
        lengths = self.clips.lengths[clips]
        latest = np.maximum(lengths - self.size, 0)
        starts = np.clip(self.starts[rows] + offsets, 0, latest)
        # Plain ints: those of numpy would take longer than the files.
        places = zip(clips.tolist(), starts.tolist(), lengths.tolist())
        pieces = empty((len(rows), self.size), np.float32)
        for row, (clip, start, length) in enumerate(places):
            if length > self.size:
                self.clips.read_into(clip, start, pieces[row])
            else:
                audio = self.clips.read(clip, 0, length)
                repeated = np.resize(audio, self.size)
                pieces[row] = np.roll(repeated, -offsets[row])
        return pieces

    def num_batches(self, batch_size, full_batches=False):
        """Returns the number of batches of one pass."""
        order = np.arange(len(self))
        return len(self.batch_rows(order, batch_size, full_batches))

    def batch_rows(self, order, batch_size, full_batches=False):
        """Cuts an order of chunks into batches.

        Whole clips of like length are put together. On JAX, which compiles
        for each shape, what fills no batch of its length is put together over
        all lengths: one more shape at most than there are lengths.

        Args:
            order: int array, indices of chunks.
            batch_size: int.
            full_batches: bool, whether to leave out batches that are not
                full.

        Returns:
            List of int arrays `(batch,)`.

        Raises:
            ValueError: if `batch_size` is no positive int.
        """
        check_sizes(batch_size=batch_size)
        buckets = np.zeros(len(order), np.int64)
        if self.size is None:
            bounds = self.length_bounds()
            buckets = np.searchsorted(bounds, self.clips.lengths[order])
        batches = []
        for bucket in np.unique(buckets):
            rows = order[buckets == bucket]
            cuts = range(batch_size, len(rows), batch_size)
            batches += np.split(rows, cuts)
        if compiling.jit_compile():
            batches = with_rests_joined(batches, batch_size)
        if full_batches:
            batches = [rows for rows in batches if len(rows) == batch_size]
        return batches

    def length_bounds(self, count=5):
        """Returns the lengths that whole clips are padded to, ascending.

        They are quantiles of the lengths: few shapes, little waste.
        """
        quantiles = np.linspace(0, 1, count + 1)[1:]
        return np.unique(
            np.quantile(self.clips.lengths, quantiles, method="higher")
        )

    def read_batch(self, rows, offsets, empty=np.empty, share=WHOLE):
        """Reads a batch of chunks.

        Args:
            rows: int array `(batch,)`, indices of chunks, of all hosts.
            offsets: int array `(batch,)`, see `read`.
            empty: as `read_pieces` takes it; whole clips have new memory.
            share: `Share`, which of these rows are read.

        Returns:
            Triple of waveforms, float32 `(batch, samples)` (of features:
            `(batch, frames, dim)`), padded by zeros; their lengths, int32
            `(batch,)`; and the targets.
        """
        longest = self.clips.lengths[self.clip_index[rows]].max()
        rows, offsets = share.part(rows), share.part(offsets)
        if self.size is None:
            waveform, lengths = self.read_whole(rows, longest)
        else:
            waveform = self.read_pieces(rows, offsets, empty)
            lengths = np.full(len(rows), self.size, np.int32)
        clips = self.clip_index[rows]
        return waveform, lengths, self.batch_targets(clips, waveform.shape[1])

    def read_whole(self, rows, longest):
        """Reads whole clips; see `read_batch` for waveforms and lengths.

        Args:
            rows: int array `(batch,)`, indices of chunks.
            longest: int, the length of the longest clip of all hosts, whose
                batches must have one width.
        """
        pieces = [self.read(row) for row in rows]
        lengths = np.array([len(piece) for piece in pieces], np.int32)
        bounds = self.length_bounds()
        width = bounds[np.searchsorted(bounds, longest)]
        shape = (len(rows), width, *pieces[0].shape[1:])
        waveform = np.zeros(shape, np.float32)
        for row, piece in enumerate(pieces):
            waveform[row, : len(piece)] = piece
        return waveform, lengths

    def epoch_batches(
        self, epoch, batch_size, shuffle, seed, jitter, full_batches=False
    ):
        """Yields indices of chunks and offsets for each batch of a pass.

        Args:
            epoch: int, the number of the pass.
            batch_size: int.
            shuffle: bool.
            seed: int.
            jitter: bool.
            full_batches: bool; see `dataset` for all of these.
        """
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(self)) if shuffle else np.arange(len(self))
        reach = self.size // 2 if jitter else 0
        offsets = rng.integers(-reach, reach + 1, len(self))
        batches = self.batch_rows(order, batch_size, full_batches)
        if shuffle:
            batches = [batches[i] for i in rng.permutation(len(batches))]
        for rows in batches:
            yield rows, offsets[rows]

    def dataset(
        self,
        batch_size,
        shuffle=False,
        seed=0,
        jitter=False,
        first_epoch=None,
        first_batch=0,
        full_batches=False,
        share=WHOLE,
    ):
        """Returns batches for `fit`, `evaluate` and `predict`.

        Args:
            batch_size: int.
            shuffle: bool. If True, each pass has an order of its own over
                the whole corpus, drawn from `seed` and the pass.
            seed: int.
            jitter: bool. If True, each chunk of a longer clip begins up to
                half of its length earlier or later, anew in each pass; a
                repeated clip is turned by as much.
            first_epoch: int or `None`. If given, the dataset never ends and
                begins with that pass: training that is resumed with
                `steps_per_epoch=num_batches(batch_size)` sees what unbroken
                training would have seen.
            first_batch: int, how many batches of the first pass are left
                out, for training that stopped within a pass.
            full_batches: bool. If True, batches with fewer than `batch_size`
                chunks are left out of the pass.
            share: `Share`, which rows of each batch are read here. Batches
                that devices cannot share evenly are filled up by their last
                row.

        Returns:
            `tf.data.Dataset` of `(waveform, targets)`, float32
            `(batch, size)` and `(batch, classes)`. For whole clips
            `waveform` is a dict with `lengths`, int32 `(batch,)`, and clips
            of like length are batched together without `shuffle` too:
            `scoring_order` tells which row is which clip.

        Raises:
            ValueError: if `batch_size`, `seed` or what to begin with is no
                count, the first pass has fewer batches than are left out, no
                batch is full, but all must be, or whole clips are to jitter.
        """
        check_sizes(batch_size=batch_size)
        check_whole_numbers(
            seed=seed,
            first_epoch=0 if first_epoch is None else first_epoch,
            first_batch=first_batch,
        )
        if jitter and self.size is None:
            raise ValueError(
                "`jitter` is of chunks, and these are whole clips. Received: "
                f"jitter={jitter}"
            )
        batches = self.num_batches(batch_size, full_batches)
        if first_batch > batches:
            raise ValueError(
                f"`first_batch` must be at most {batches}, the batches of a "
                f"pass. Received: first_batch={first_batch}"
            )
        if full_batches and not batches:
            raise ValueError(
                f"None of {self.num_batches(batch_size)} batches is full. "
                f"Received: batch_size={batch_size}, {len(self)} chunks"
            )
        passes, buffers = itertools.count(), Buffers()
        name, input_spec = self.input_spec()
        target_spec = self.target_spec()

        def generate():
            epochs = [next(passes)]
            if first_epoch is not None:
                epochs = itertools.count(first_epoch)
            left_out = first_batch
            for epoch in epochs:
                found = self.epoch_batches(
                    epoch, batch_size, shuffle, seed, jitter, full_batches
                )
                yield from itertools.islice(found, left_out, None)
                left_out = 0

        def read(batch):
            waveform, lengths, targets = tf.numpy_function(
                lambda batch: self.read_batch(
                    *rows_of(batch), buffers.empty, share
                ),
                [batch],
                (tf.float32, tf.int32, target_spec.dtype),
                stateful=False,
            )
            waveform = tf.ensure_shape(waveform, input_spec.shape)
            targets = tf.ensure_shape(targets, target_spec.shape)
            if self.size is None:
                lengths = tf.ensure_shape(lengths, (None,))
                waveform = {name: waveform, "lengths": lengths}
            return waveform, targets

        dataset = rows_dataset(generate)
        count = tf.data.INFINITE_CARDINALITY
        if first_epoch is None:
            count = batches - first_batch
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
        return dataset.map(read, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def scoring_order(self, batch_size, share=WHOLE):
        """Returns the chunk of each row of the dataset without `shuffle`.

        Args:
            batch_size: int, as `dataset` was given it.
            share: `Share`, as `dataset` was given it.

        Returns:
            Int array `(rows,)` of the rows of all hosts: indices of chunks,
            and -1 for rows that fill a batch up.
        """
        batches = self.batch_rows(np.arange(len(self)), batch_size)
        return np.concatenate(
            [share.filled(rows, constant_values=-1) for rows in batches]
        )
