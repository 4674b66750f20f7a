"""WAV files to scores, from their bytes and in the graph."""

import tensorflow as tf

from audio_tf.audio import graph_wav, wav
from audio_tf.audio.graph_resampling import resample_in_graph

# More chunks at once, of an hour of audio, would not fit into memory.
CHUNKS_AT_A_TIME = 64


class ClipScorer:
    """Decodes, resamples, cuts and scores clips: a signature's function.

    A clip longer than a chunk is scored chunk by chunk, as
    `audio_tf.data.Chunks` cuts it, the last chunk ending with the clip, and
    the scores of its chunks are averaged. A shorter clip is repeated up to
    a chunk, as in training.

    Args:
        score: function of float32 `waveform` `(batch, samples)` and int32
            `lengths` `(batch,)` that returns scores `(batch, classes)`.
        num_classes: int, the number of classes.
        sample_rate_hz: int, the rate of the waveform that `score` takes.
        cutting: `audio.chunking.Cutting`.
        max_clip_s: float, the seconds of the longest clip that is scored.
    """

    def __init__(
        self,
        score,
        num_classes,
        sample_rate_hz,
        cutting,
        max_clip_s=600.0,
    ):
        self.score = score
        self.num_classes = num_classes
        self.sample_rate_hz = sample_rate_hz
        self.chunk_size, self.chunk_hop = cutting.size, cutting.hop
        self.threshold = 0.0
        if cutting.silence_db is not None:
            self.threshold = 10.0 ** (cutting.silence_db / 20.0)
        self.max_clip_s = max_clip_s

    def __call__(self, audio_bytes):
        """Scores each file without regard to the others.

        Args:
            audio_bytes: string `(batch,)`, contents of WAV files.

        Returns:
            Dict of `scores`, float32 `(batch, classes)`; `valid`, boolean
            `(batch,)`, False where a clip was not scored and its scores are
            zeros; and `error`, int32 `(batch,)`, the `wav.WavError` that says
            why it was not.
        """
        clips, errors = tf.map_fn(
            self.decode,
            audio_bytes,
            fn_output_signature=(
                tf.RaggedTensorSpec(
                    [None], tf.float32, row_splits_dtype="int64"
                ),
                tf.TensorSpec((), tf.int32),
            ),
        )
        if self.chunk_size is None:
            scores = self.score_whole(clips)
        else:
            scores, _ = self.score_chunks(clips)
        finite = tf.reduce_all(tf.math.is_finite(scores), 1)
        decoded = errors == wav.WavError.NONE
        errors = tf.where(decoded & ~finite, wav.WavError.OVERFLOW, errors)
        valid = decoded & finite
        return {
            "scores": tf.where(valid[:, None], scores, 0.0),
            "valid": valid,
            "error": errors,
        }

    def decode(self, contents):
        """Returns the samples of a file, at the model's rate, and its error."""
        audio, rate_hz, error = graph_wav.decode_wav(contents)
        duration_s = tf.size(audio) / tf.maximum(rate_hz, 1)
        too_long = duration_s > self.max_clip_s
        error = tf.where(too_long, wav.WavError.TOO_LONG, error)
        audio = tf.cond(
            error == wav.WavError.NONE,
            lambda: resample_in_graph(audio, rate_hz, self.sample_rate_hz),
            lambda: tf.zeros((0,)),
        )
        return audio, error

    def score_whole(self, clips):
        """Scores each of the ragged clips `(batch, samples)` as a whole."""
        lengths = tf.cast(clips.row_lengths(), tf.int32)
        # One sample at least, so that a batch of bad clips has a frame.
        waveform = clips.to_tensor()
        missing = tf.maximum(1 - tf.shape(waveform)[1], 0)
        waveform = tf.pad(waveform, [[0, 0], [0, missing]])
        return self.score(waveform, lengths)

    def score_chunks(self, clips):
        """Averages the scores of the chunks of ragged `(batch, samples)`.

        Returns:
            Pair of float32 scores `(batch, classes)` and of three tensors
            `(chunks,)`: the clip and the first sample in it of each chunk,
            int64, and 1 or 0, float32, whether it counts or is too silent.
        """
        lengths = clips.row_lengths()
        batch, size, hop = clips.nrows(), self.chunk_size, self.chunk_hop
        # A clip without a sample, which was no audio, has no chunk.
        further = (tf.maximum(lengths - size, 0) + hop - 1) // hop
        counts = tf.where(lengths > 0, 1 + further, 0)
        clip = tf.repeat(tf.range(batch), counts)
        number = tf.range(tf.size(clip, tf.int64)) - tf.gather(
            tf.cumsum(counts, exclusive=True), clip
        )
        length = tf.gather(lengths, clip)
        # The last chunk ends with the clip.
        start = tf.minimum(number * hop, tf.maximum(length - size, 0))
        scores, peaks = self.score_blocks(
            clips.values, tf.gather(clips.row_starts(), clip), start, length
        )
        loudest = tf.math.unsorted_segment_max(peaks, clip, batch)
        quietest = tf.minimum(self.threshold, tf.gather(loudest, clip))
        kept = tf.cast(peaks >= quietest, tf.float32)
        total = tf.math.unsorted_segment_sum(
            scores * kept[:, None], clip, batch
        )
        number_kept = tf.math.unsorted_segment_sum(kept, clip, batch)
        scores = tf.math.divide_no_nan(total, number_kept[:, None])
        return scores, (clip, start, kept)

    def score_blocks(self, samples, clip_start, start, length):
        """Scores all chunks of all clips, `CHUNKS_AT_A_TIME` at once.

        Args:
            samples: float32 `(total,)`, the samples of all clips, one clip
                after the other.
            clip_start: int64 `(chunks,)`, where the clip of a chunk begins in
                `samples`.
            start: int64 `(chunks,)`, where a chunk begins in its clip.
            length: int64 `(chunks,)`, the number of samples of its clip.

        Returns:
            Pair of float32 scores `(chunks, classes)` and peaks `(chunks,)`.
        """
        count = tf.size(start)
        offsets = tf.range(self.chunk_size, dtype=tf.int64)

        def score_block(block, scores, peaks):
            rows = tf.range(
                block * CHUNKS_AT_A_TIME,
                tf.minimum((block + 1) * CHUNKS_AT_A_TIME, count),
            )
            # A shorter clip is repeated.
            places = (tf.gather(start, rows)[:, None] + offsets) % tf.gather(
                length, rows
            )[:, None]
            chunks = tf.gather(
                samples, tf.gather(clip_start, rows)[:, None] + places
            )
            full = tf.fill(tf.shape(rows), self.chunk_size)
            found = self.score(chunks, full)
            return (
                block + 1,
                scores.write(block, found),
                peaks.write(block, tf.reduce_max(tf.abs(chunks), 1)),
            )

        blocks = -(-count // CHUNKS_AT_A_TIME)
        arrays = [
            tf.TensorArray(
                tf.float32, blocks, infer_shape=False, element_shape=shape
            )
            for shape in ((None, self.num_classes), (None,))
        ]
        _, scores, peaks = tf.while_loop(
            lambda block, *_: block < blocks,
            score_block,
            [0, *arrays],
            parallel_iterations=1,
        )
        return scores.concat(), peaks.concat()
