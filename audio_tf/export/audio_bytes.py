"""Scoring of WAV files from their bytes, in the graph."""

import tensorflow as tf

from audio_tf.audio import graph_wav
from audio_tf.audio.graph_resampling import resample_in_graph

# So many windows are scored at a time: an hour of sound fits into memory.
WINDOWS_AT_A_TIME = 64


class ClipScorer:
    """Decodes, resamples, cuts and scores; the signature for `audio_bytes`.

    Clips longer than `chunk_s` are scored by windows as
    `audio_tf.data.Chunks` cuts them, the last one ending with the clip, and
    their scores averaged; shorter ones are repeated up to `chunk_s`, as
    training did.

    Args:
        score: function of `waveform` and `lengths` to scores.
        num_classes: int.
        sample_rate_hz: int, the rate that `score` takes.
        chunk_s: float, seconds of a window, or `None` for whole clips.
        silence_db: float or `None`, peak in dB of full scale below which a
            window is left out, but for the loudest of a clip.
        max_clip_s: float, seconds of the longest clip that is scored.
    """

    def __init__(
        self,
        score,
        num_classes,
        sample_rate_hz,
        chunk_s=None,
        silence_db=None,
        max_clip_s=600.0,
    ):
        self.score = score
        self.num_classes = num_classes
        self.sample_rate_hz = sample_rate_hz
        self.chunk_size = chunk_s and round(chunk_s * sample_rate_hz)
        self.threshold = 0.0
        if silence_db is not None:
            self.threshold = 10.0 ** (silence_db / 20.0)
        self.max_clip_s = max_clip_s

    def __call__(self, audio_bytes):
        """Scores each file for itself.

        Args:
            audio_bytes: string `(batch,)`, contents of WAV files.

        Returns:
            Dict of `scores`, float32 `(batch, classes)`, zeros where `valid`,
            boolean `(batch,)`, is False, and `error`, int32 `(batch,)`, the
            place of the reason in `audio_tf.audio.graph_wav.ERRORS`.
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
            scores = self.score_windows(clips)
        finite = tf.reduce_all(tf.math.is_finite(scores), 1)
        decoded = errors == graph_wav.WavError.NONE
        errors = tf.where(
            decoded & ~finite, graph_wav.WavError.OVERFLOW, errors
        )
        valid = decoded & finite
        return {
            "scores": tf.where(valid[:, None], scores, 0.0),
            "valid": valid,
            "error": errors,
        }

    def decode(self, contents):
        """Samples at the model's rate and the error of one file."""
        audio, rate_hz, error = graph_wav.decode_wav(contents)
        duration_s = tf.size(audio) / tf.maximum(rate_hz, 1)
        too_long = duration_s > self.max_clip_s
        error = tf.where(too_long, graph_wav.WavError.TOO_LONG, error)
        audio = tf.cond(
            error == graph_wav.WavError.NONE,
            lambda: resample_in_graph(audio, rate_hz, self.sample_rate_hz),
            lambda: tf.zeros((0,)),
        )
        return audio, error

    def score_whole(self, clips):
        """Scores ragged clips `(batch, samples)` each as a whole."""
        lengths = tf.cast(clips.row_lengths(), tf.int32)
        # One sample at least, so that a batch of bad clips has a frame.
        waveform = clips.to_tensor()
        missing = tf.maximum(1 - tf.shape(waveform)[1], 0)
        waveform = tf.pad(waveform, [[0, 0], [0, missing]])
        return self.score(waveform, lengths)

    def score_windows(self, clips):
        """Means over the windows of ragged clips `(batch, samples)`."""
        lengths = clips.row_lengths()
        batch, size = clips.nrows(), self.chunk_size
        counts = (lengths + size - 1) // size
        clip = tf.repeat(tf.range(batch), counts)
        number = tf.range(tf.size(clip, tf.int64)) - tf.gather(
            tf.cumsum(counts, exclusive=True), clip
        )
        length = tf.gather(lengths, clip)
        # The last window ends with the clip.
        start = tf.minimum(number * size, tf.maximum(length - size, 0))
        scores, peaks = self.score_blocks(
            clips.values, tf.gather(clips.row_starts(), clip), start, length
        )
        loudest = tf.math.unsorted_segment_max(peaks, clip, batch)
        quietest = tf.minimum(self.threshold, tf.gather(loudest, clip))
        kept = tf.cast(peaks >= quietest, tf.float32)[:, None]
        total = tf.math.unsorted_segment_sum(scores * kept, clip, batch)
        number_kept = tf.math.unsorted_segment_sum(kept, clip, batch)
        return tf.math.divide_no_nan(total, number_kept)

    def score_blocks(self, samples, clip_start, start, length):
        """Scores and peaks of all windows, a block of them at a time.

        Args:
            samples: float32 `(total,)`, all clips behind each other.
            clip_start: int64 `(windows,)`, where a window's clip begins.
            start: int64 `(windows,)`, where the window begins in it.
            length: int64 `(windows,)`, samples of the clip.

        Returns:
            Float32 scores `(windows, classes)` and peaks `(windows,)`.
        """
        count = tf.size(start)
        offsets = tf.range(self.chunk_size, dtype=tf.int64)

        def score_block(block, scores, peaks):
            rows = tf.range(
                block * WINDOWS_AT_A_TIME,
                tf.minimum((block + 1) * WINDOWS_AT_A_TIME, count),
            )
            # A shorter clip is repeated.
            places = (tf.gather(start, rows)[:, None] + offsets) % tf.gather(
                length, rows
            )[:, None]
            windows = tf.gather(
                samples, tf.gather(clip_start, rows)[:, None] + places
            )
            full = tf.fill(tf.shape(rows), self.chunk_size)
            found = self.score(windows, full)
            return (
                block + 1,
                scores.write(block, found),
                peaks.write(block, tf.reduce_max(tf.abs(windows), 1)),
            )

        blocks = -(-count // WINDOWS_AT_A_TIME)
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
