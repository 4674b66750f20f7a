"""The signature `explain`: says in the graph why a clip has its label.

The gradients are written as operations when an export is traced, so that a
server needs nothing but the kernels of TensorFlow's own gradients.
"""

import tensorflow as tf

from audio_tf.export.signatures import LENGTHS, WAVEFORM, real_lengths
from audio_tf.gradients import of_tensorflow
from audio_tf.models import explaining
from audio_tf.models.sound_patches import BANDS, PATCH_S, band_edges
from audio_tf.terminal import first_line

LABEL = tf.TensorSpec((None,), tf.int32, name="label")

# Levels of the path that are computed at once, and samples of them all: a
# gradient keeps what every layer made of them.
MAX_ROWS = 16
MAX_SAMPLES = 2**19


class ClipExplainer:
    """Integrates gradients of a label's score: a signature's function.

    It gives what `AudioClassifier.explain` does of each clip of a batch, by
    `explaining.integrated_gradients` and with patches of the default size: of
    the chunks that `serving_audio_bytes` scores, one after the other.

    Args:
        clips: `audio_bytes.ClipScorer` of the model.
    """

    def __init__(self, clips):
        self.clips = clips
        self.rate_hz = clips.sample_rate_hz
        self.frequency_hz = band_edges(self.rate_hz, BANDS)
        self.levels, self.widths = map(tf.constant, explaining.path())

    def __call__(self, waveform, lengths, label):
        """Weighs the patches of each clip without regard to the others.

        Args:
            waveform: float32 `(batch, samples)`.
            lengths: int32 `(batch,)` or `(1,)`, as
                `signatures.real_lengths` takes them.
            label: int32 `(batch,)` or `(1,)`, the number of the label that is
                explained; a negative one stands for the clip's best.

        Returns:
            Dict of `weights`, float32 `(batch, times, bands)`, 0 behind a
            clip's end; `time_s`, float32 `(batch, times + 1)`, the edges of
            its patches, behind its end the end again; `frequency_hz`, float32
            `(batch, bands + 1)`; `label`, int32 `(batch,)`; `score` and
            `silence_score`, float32 `(batch,)`, of the label; and `valid`,
            boolean `(batch,)`. It is False where the clip is empty, there is
            no such label, or weights are not finite: `label` is -1 there, and
            the rest but for edges 0.
        """
        lengths = real_lengths(waveform, lengths)
        waves = tf.RaggedTensor.from_tensor(waveform, tf.cast(lengths, "int64"))
        scores, silence, (clip, start) = self.score(waves)
        label = tf.broadcast_to(label, tf.shape(lengths))
        valid = (label < self.clips.num_classes) & (lengths > 0)
        best = tf.argmax(scores, 1, tf.int32)
        label = tf.where(valid & (label >= 0), label, best)
        edges = self.time_edges(lengths)
        weights = self.weigh(waves, clip, start, label, edges)
        score = tf.gather(scores, label, batch_dims=1)
        valid &= tf.math.is_finite(score)
        valid &= tf.reduce_all(tf.math.is_finite(weights), (1, 2))
        frequency_hz = tf.constant(self.frequency_hz, tf.float32)
        return {
            "weights": tf.where(valid[:, None, None], weights, 0.0),
            "time_s": tf.cast(edges / self.rate_hz, tf.float32),
            "frequency_hz": tf.tile(frequency_hz[None], [tf.size(label), 1]),
            "label": tf.where(valid, label, -1),
            "score": tf.where(valid, score, 0.0),
            "silence_score": tf.where(
                valid, tf.gather(silence, label, batch_dims=1), 0.0
            ),
            "valid": valid,
        }

    def score(self, waves):
        """Scores clips, and cuts them into the chunks that are explained.

        Args:
            waves: ragged float32 `(batch, samples)`.

        Returns:
            Tuple of the clips' scores and those of silence of their lengths,
            float32 `(batch, classes)`, and of a pair of int64 `(chunks,)`,
            the clip and the first sample in it of each chunk.
        """
        size = self.clips.chunk_size
        if size is None:
            scores = self.clips.score_whole(waves)
            quiet = waves.with_values(tf.zeros_like(waves.values))
            clip = tf.where(waves.row_lengths() > 0)[:, 0]
            start = tf.zeros_like(clip)
            return scores, self.clips.score_whole(quiet), (clip, start)
        scores, (clip, start, kept) = self.clips.score_chunks(waves)
        silence = self.clips.score(tf.zeros((1, size)), tf.constant([size]))
        kept = tf.where(kept > 0)[:, 0]
        chunks = tf.gather(clip, kept), tf.gather(start, kept)
        return scores, tf.broadcast_to(silence, tf.shape(scores)), chunks

    def time_edges(self, lengths):
        """Cuts clips into patches, each as `sound_patches.time_edges` does.

        Args:
            lengths: int32 `(batch,)`.

        Returns:
            Float64 `(batch, times + 1)`, in samples, the length of a clip
            behind its end.
        """
        length = tf.cast(lengths, tf.float64)[:, None]
        count = tf.round(length / (PATCH_S * self.rate_hz))
        count = tf.maximum(tf.minimum(length, tf.maximum(count, 1.0)), 1.0)
        # Also of an empty batch.
        times = tf.reduce_max(tf.concat([count[:, 0], [1.0]], 0))
        number = tf.minimum(tf.range(times + 1.0, dtype=tf.float64), count)
        return tf.where(
            number < count, tf.round(number * (length / count)), length
        )

    def weigh(self, waves, clip, start, label, edges):
        """Averages the weights of the chunks of each clip.

        Args:
            waves: ragged float32 `(batch, samples)`.
            clip, start: int64 `(chunks,)`, as `score` gives them.
            label: int32 `(batch,)`.
            edges: float64 `(batch, times + 1)`.

        Returns:
            Float32 `(batch, times, bands)`.
        """
        batch, times = tf.shape(edges)[0], tf.shape(edges)[1] - 1

        def add_chunk(number, total):
            row, first = clip[number], start[number]
            audio = waves[row]
            length = size = tf.size(audio, tf.int64)
            if self.clips.chunk_size is not None:
                size = self.clips.chunk_size
            # A shorter clip is repeated.
            place = (first + tf.range(size, dtype=tf.int64)) % length
            patch = tf.searchsorted(
                edges[row], tf.cast(place, tf.float64), side="right"
            )
            found = self.weigh_chunk(
                tf.gather(audio, place), patch - 1, label[row], times
            )
            total = tf.tensor_scatter_nd_add(total, [[row]], found[None])
            return number + 1, total

        _, total = tf.while_loop(
            lambda number, _: number < tf.size(clip),
            add_chunk,
            [0, tf.zeros((batch, times, BANDS), tf.float64)],
            shape_invariants=[
                tf.TensorShape(()),
                tf.TensorShape((None, None, BANDS)),
            ],
            parallel_iterations=1,
        )
        chunks = tf.math.unsorted_segment_sum(tf.ones_like(clip), clip, batch)
        chunks = tf.cast(tf.maximum(chunks, 1), tf.float64)
        return tf.cast(total / chunks[:, None, None], tf.float32)

    def weigh_chunk(self, audio, patch, label, times):
        """Weighs the patches of what the model hears at once.

        Args:
            audio: float32 `(samples,)`.
            patch: int32 `(samples,)`, the patch of time of each sample.
            label: int32 scalar.
            times: int32 scalar, how many patches of time there are.

        Returns:
            Float64 `(times, bands)`.
        """
        gradient = self.integrate(audio, label)
        # In double precision, as NumPy's, for clips of any length.
        spectrum = tf.signal.rfft(tf.cast(audio, tf.float64))
        size = tf.size(audio)
        spacing_hz = 1.0 / (tf.cast(size, tf.float64) * (1.0 / self.rate_hz))
        hz = tf.cast(tf.range(size // 2 + 1), tf.float64) * spacing_hz
        band = tf.searchsorted(tf.constant(self.frequency_hz), hz, side="right")
        band = tf.minimum(band - 1, BANDS - 1)

        def weigh_band(number):
            part = tf.where(band == number, spectrum, 0.0)
            sound = tf.signal.irfft(part, [size])
            return tf.math.unsorted_segment_sum(gradient * sound, patch, times)

        weights = tf.map_fn(
            weigh_band,
            tf.range(BANDS),
            fn_output_signature=tf.float64,
            parallel_iterations=1,
        )
        return tf.transpose(weights)

    def integrate(self, audio, label):
        """Integrates a score's gradient from silence to a chunk.

        Args:
            audio: float32 `(samples,)`.
            label: int32 scalar.

        Returns:
            Float64 `(samples,)`.
        """
        samples = tf.size(audio)
        size = tf.clip_by_value(MAX_SAMPLES // samples, 1, MAX_ROWS)
        audio = tf.cast(audio, tf.float64)

        def score(rows):
            full = tf.fill(tf.shape(rows)[:1], samples)
            return tf.gather(self.clips.score(rows, full), label, axis=1)

        def add_rows(first, total):
            part = slice(first, first + size)
            rows = tf.cast(self.levels[part, None] * audio, tf.float32)
            found = tf.cast(of_tensorflow(score, rows), tf.float64)
            total += tf.linalg.matvec(found, self.widths[part], True)
            return first + size, total

        _, gradient = tf.while_loop(
            lambda first, _: first < tf.size(self.levels),
            add_rows,
            [0, tf.zeros_like(audio)],
            parallel_iterations=1,
        )
        return gradient


def endpoint(clips):
    """Returns function and input specs of the signature `explain`.

    Args:
        clips: `audio_bytes.ClipScorer` of the model.

    Raises:
        ValueError: as it is traced, if the model has no gradients.
    """
    weigh = ClipExplainer(clips)

    def explain(
        waveform,
        lengths=tf.constant([-1], tf.int32),
        label=tf.constant([-1], tf.int32),
    ):
        try:
            return weigh(waveform, lengths, label)
        except LookupError as error:
            raise ValueError(
                "`explain` needs gradients, and an operation of the model has "
                f"none. Received: {first_line(error)}"
            ) from error

    return explain, [WAVEFORM, LENGTHS, LABEL]
