"""Audio files to batches for training and scoring, through tf.data."""

import dataclasses
import itertools
import os

import numpy as np
import tensorflow as tf
from tqdm.auto import tqdm

from audio_tf.data import decode
from audio_tf.data.cache import AudioCache, entry_length, read_entry
from audio_tf.metrics import clip_scores

DECODERS = ("soundfile", "tfio")


def decode_dataset(files, sample_rate_hz, decoder="soundfile"):
    """Decodes and resamples files in parallel, in their order.

    Args:
        files: paths.
        sample_rate_hz: int, the rate wanted.
        decoder: `"soundfile"`, or `"tfio"` for tensorflow-io's ops in the
            graph (extra `tfio`).

    Returns:
        `tf.data.Dataset` of `(row, audio, error)`: the index in `files`,
        float32 `(samples,)`, and why a file has none, empty if it has. A bad
        file never stops the others: soundfile's is an element like any
        other, that of tensorflow-io is left out.
    """
    if decoder not in DECODERS:
        raise ValueError(
            f"`decoder` must be one of {DECODERS}. "
            f"Received: decoder={decoder!r}"
        )

    def by_soundfile(path):
        path = os.fsdecode(path)
        try:
            return decode.load_audio(path, sample_rate_hz), b""
        except decode.AudioError as error:
            return np.zeros(0, "float32"), error.reason.encode()

    def load(row, path):
        if decoder == "tfio":
            from audio_tf.data import tfio_decode

            audio, error = tfio_decode.load(path, sample_rate_hz)
        else:
            audio, error = tf.numpy_function(
                by_soundfile, [path], (tf.float32, tf.string), stateful=False
            )
        audio = tf.ensure_shape(audio, (None,))
        return row, audio, tf.ensure_shape(error, ())

    paths = [os.fsencode(file) for file in files]
    dataset = tf.data.Dataset.from_tensor_slices(
        (np.arange(len(paths)), tf.constant(paths, tf.string))
    )
    dataset = dataset.map(load, tf.data.AUTOTUNE)
    if decoder == "tfio":
        dataset = dataset.ignore_errors()
    return dataset.prefetch(tf.data.AUTOTUNE)


@dataclasses.dataclass(frozen=True)
class Clips:
    """The usable clips of a corpus, decoded in the cache.

    Attributes:
        corpus: `Corpus` of the usable files.
        entries: their cache entries.
        lengths: their samples, int64 `(clips,)`.
        sample_rate_hz: int, the rate of the samples.
        failures: dict of the reason by path of each file left out.
    """

    corpus: object
    entries: list
    lengths: np.ndarray
    sample_rate_hz: int
    failures: dict

    def __len__(self):
        return len(self.entries)


def prepare(
    corpus,
    sample_rate_hz,
    cache_dir,
    decoder="soundfile",
    strict=False,
    progress=True,
    name="",
):
    """Brings every file of a corpus into the cache and names the bad ones.

    Files that are there unchanged are not decoded again. An interrupted run
    goes on where it stopped.

    Args:
        corpus: `Corpus`.
        sample_rate_hz: int, the rate wanted.
        cache_dir: folder of the `AudioCache`.
        decoder: as `decode_dataset` takes it.
        strict: bool. If True, the first bad file is an error.
        progress: bool, whether to show a progress bar.
        name: str, what to call the corpus in the progress bar.

    Returns:
        `Clips`.

    Raises:
        AudioError: if `strict`, at the first bad file.
        ValueError: if no file is usable.
    """
    cache = AudioCache(cache_dir, sample_rate_hz, decoder)
    entries, wanted, failures = {}, {}, {}

    def fail(row, reason):
        if strict:
            raise decode.AudioError(corpus.files[row], reason)
        failures[str(corpus.files[row])] = reason

    for row, file in enumerate(corpus.files):
        try:
            entry = cache.entry(file)
        except FileNotFoundError:
            fail(row, "no such file")
            continue
        except (OSError, ValueError) as error:
            fail(row, f"not a file name ({error})")
            continue
        if entry.is_file():
            entries[row] = entry
        else:
            wanted[row] = entry
    todo = list(wanted)
    decoded = decode_dataset(
        [corpus.files[row] for row in todo], sample_rate_hz, decoder
    )
    for index, audio, error in tqdm(
        decoded.as_numpy_iterator(),
        desc=f"decoding {name}".strip(),
        total=len(todo),
        unit="file",
        disable=None if progress and todo else True,
    ):
        row = todo[index]
        if error:
            fail(row, error.decode())
        else:
            entries[row] = cache.put(corpus.files[row], audio, wanted[row])
    for row in todo:
        if row not in entries and str(corpus.files[row]) not in failures:
            fail(row, f"not decoded by {decoder}")
    if not entries:
        raise ValueError(
            f"None of {len(corpus)} files is usable. {describe(failures)}"
        )
    rows = sorted(entries)
    entries = [entries[row] for row in rows]
    lengths = np.array([entry_length(entry) for entry in entries], np.int64)
    return Clips(
        corpus.select(rows), entries, lengths, sample_rate_hz, failures
    )


def describe(failures):
    """One text that counts the files left out and names each."""
    lines = [f"{len(failures)} files left out"]
    lines += [f"  {path}: {reason}" for path, reason in failures.items()]
    return "\n".join(lines)


def chunk_starts(length, size, hop):
    """Where the chunks of a clip begin.

    Chunks follow each other by `hop`; one more ends with the clip if a rest
    is left, so that every sample is in a chunk and none holds silence that
    the clip has not. A clip of at most `size` is one chunk.

    Returns:
        Int64 array, at least one start.
    """
    if length <= size:
        return np.zeros(1, np.int64)
    starts = np.arange(0, length - size + 1, hop, dtype=np.int64)
    if starts[-1] + size < length:
        starts = np.append(starts, length - size)
    return starts


class Chunks:
    """Pieces of equal length of all clips, each with its clip's labels.

    Section 2 of "Audio Transformers" (arXiv 2105.00335): clips are cut into
    chunks of 1 s, labels are inherited, and shorter clips are repeated to
    the full length. Without `chunk_s`, clips are taken whole and padded.

    Args:
        clips: `Clips`.
        chunk_s: float, seconds, or `None` for whole clips.
        hop_s: float, seconds from chunk to chunk, at most and by default
            `chunk_s`.
        silence_db: float or `None`. If given, chunks whose peak is below so
            many dB of full scale are left out, but for the loudest of a clip:
            corpora that fill clips up with digital silence, ESC-50 among
            them, would teach that silence is each of the classes.

    Attributes:
        clip_index: int64 `(chunks,)`, the clip of each chunk.
        targets: float32 `(clips, classes)`.
        silent: int, how many chunks were left out.
    """

    def __init__(self, clips, chunk_s=1.0, hop_s=None, silence_db=None):
        self.clips = clips
        self.targets = clips.corpus.targets()
        self.size = None
        self.silent = 0
        if chunk_s is None:
            self.clip_index = np.arange(len(clips))
            self.starts = np.zeros(len(clips), np.int64)
            return
        self.size = round(chunk_s * clips.sample_rate_hz)
        hop = self.size
        if hop_s is not None:
            hop = round(hop_s * clips.sample_rate_hz)
        if self.size < 1 or not 1 <= hop <= self.size:
            raise ValueError(
                "Chunks must hold at least one sample and leave no gaps. "
                f"Received: chunk_s={chunk_s}, hop_s={hop_s}"
            )
        starts = [chunk_starts(n, self.size, hop) for n in clips.lengths]
        counts = [len(each) for each in starts]
        self.clip_index = np.repeat(np.arange(len(clips)), counts)
        self.starts = np.concatenate(starts)
        if silence_db is not None:
            self.leave_out_silence(10.0 ** (silence_db / 20.0))

    def leave_out_silence(self, threshold):
        """Drops chunks whose peak is below the threshold, one a clip stays."""
        peaks = [np.abs(self.read(row)).max() for row in range(len(self))]
        loudest = np.zeros(len(self.clips))
        np.maximum.at(loudest, self.clip_index, peaks)
        kept = peaks >= np.minimum(threshold, loudest[self.clip_index])
        self.silent = int(np.count_nonzero(~kept))
        self.clip_index = self.clip_index[kept]
        self.starts = self.starts[kept]

    def __len__(self):
        return len(self.starts)

    def read(self, row, offset=0):
        """Samples of one chunk, begun `offset` later; float32 `(size,)`."""
        clip = self.clip_index[row]
        entry, length = self.clips.entries[clip], self.clips.lengths[clip]
        if self.size is None:
            return read_entry(entry)
        if length <= self.size:
            return np.roll(np.resize(read_entry(entry), self.size), -offset)
        start = np.clip(self.starts[row] + offset, 0, length - self.size)
        return read_entry(entry, start, self.size)

    def num_batches(self, batch_size):
        """Batches of one pass."""
        if self.size is not None:
            return -(-len(self) // batch_size)
        return len(self.batch_rows(np.arange(len(self)), batch_size))

    def batch_rows(self, order, batch_size):
        """Cuts an order of chunks into batches; clips of like length meet."""
        if self.size is not None:
            return np.split(order, range(batch_size, len(order), batch_size))
        bounds = self.length_bounds()
        buckets = np.searchsorted(bounds, self.clips.lengths[order])
        batches = []
        for bucket in range(len(bounds)):
            rows = order[buckets == bucket]
            if len(rows):
                cuts = range(batch_size, len(rows), batch_size)
                batches += np.split(rows, cuts)
        return batches

    def length_bounds(self, count=5):
        """Lengths that whole clips are padded to: few shapes, little waste."""
        quantiles = np.linspace(0, 1, count + 1)[1:]
        return np.unique(
            np.quantile(self.clips.lengths, quantiles, method="higher")
        )

    def read_batch(self, rows, offsets):
        """Waveforms, lengths and targets of some chunks."""
        targets = self.targets[self.clip_index[rows]]
        pieces = [
            self.read(row, offset)
            for row, offset in zip(rows, offsets, strict=True)
        ]
        lengths = np.array([len(piece) for piece in pieces], np.int32)
        width = self.size
        if width is None:
            bounds = self.length_bounds()
            width = bounds[np.searchsorted(bounds, lengths.max())]
        waveform = np.zeros((len(rows), width), np.float32)
        for row, piece in enumerate(pieces):
            waveform[row, : len(piece)] = piece
        return waveform, lengths, targets

    def epoch_batches(self, epoch, batch_size, shuffle, seed, jitter):
        """Rows and offsets of each batch of one pass."""
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(self)) if shuffle else np.arange(len(self))
        reach = self.size // 2 if jitter and self.size else 0
        offsets = rng.integers(-reach, reach + 1, len(self))
        batches = self.batch_rows(order, batch_size)
        if shuffle:
            batches = [batches[i] for i in rng.permutation(len(batches))]
        for rows in batches:
            yield rows, offsets[rows]

    def dataset(
        self, batch_size, shuffle=False, seed=0, jitter=False, first_epoch=None
    ):
        """Batches for `fit`, `evaluate` and `predict`.

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

        Returns:
            `tf.data.Dataset` of `(waveform, targets)`, float32
            `(batch, size)` and `(batch, classes)`. For whole clips
            `waveform` is a dict with `lengths`, and without `shuffle` too
            clips of like length are batched together: the rows are those of
            `scoring_order`.
        """
        passes = itertools.count()

        def generate():
            epochs = [next(passes)]
            if first_epoch is not None:
                epochs = itertools.count(first_epoch)
            for epoch in epochs:
                yield from self.epoch_batches(
                    epoch, batch_size, shuffle, seed, jitter
                )

        def read(rows, offsets):
            waveform, lengths, targets = tf.numpy_function(
                self.read_batch,
                [rows, offsets],
                (tf.float32, tf.int32, tf.float32),
                stateful=False,
            )
            waveform = tf.ensure_shape(waveform, (None, self.size))
            targets = tf.ensure_shape(targets, (None, self.targets.shape[1]))
            if self.size is None:
                lengths = tf.ensure_shape(lengths, (None,))
                waveform = {"waveform": waveform, "lengths": lengths}
            return waveform, targets

        rows = tf.TensorSpec((None,), tf.int64)
        dataset = tf.data.Dataset.from_generator(
            generate, output_signature=(rows, rows)
        )
        count = tf.data.INFINITE_CARDINALITY
        if first_epoch is None:
            count = self.num_batches(batch_size)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
        return dataset.map(read, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def scoring_order(self, batch_size):
        """The chunk of each row of the dataset without `shuffle`."""
        batches = self.batch_rows(np.arange(len(self)), batch_size)
        return np.concatenate(batches)


def score_clips(model, chunks, batch_size=64, verbose="auto"):
    """Scores each clip by the mean over its chunks.

    Args:
        model: a Keras model that scores waveforms.
        chunks: `Chunks`.
        batch_size: int.
        verbose: as `keras.Model.predict` takes it.

    Returns:
        Float32 array `(clips, classes)`.
    """
    scores = model.predict(chunks.dataset(batch_size), verbose=verbose)
    order = chunks.scoring_order(batch_size)
    return clip_scores(scores, chunks.clip_index[order], len(chunks.clips))
