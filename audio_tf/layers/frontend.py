"""From samples to frames without convolution."""

import keras
import numpy as np
from keras import ops

from audio_tf.layers import activations
from audio_tf.layers.filters import Filters, Frontend, Learned
from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import check_choice, check_positive, check_sizes
from audio_tf.ops.layer import WAVEFORM, Layer, check_floating


def mel_from_hz(frequency_hz):
    """Turns Hz into mel of HTK's scale, `2595 log10(1 + f / 700)`."""
    return 2595.0 * np.log10(1.0 + np.asarray(frequency_hz) / 700.0)


def hz_from_mel(mel):
    """Undoes `mel_from_hz`."""
    return 700.0 * (10.0 ** (np.asarray(mel) / 2595.0) - 1.0)


def mel_centers(count, sample_rate_hz):
    """Returns `count` frequencies in Hz, evenly spaced in mel, without ends."""
    top = mel_from_hz(sample_rate_hz / 2)
    return hz_from_mel(np.linspace(0.0, top, count + 2)[1:-1])


@keras.saving.register_keras_serializable("audio_tf")
class QuadratureFilters(keras.initializers.Initializer):
    """An initializer by windowed cosines and sines, evenly spaced in mel.

    The columns of a kernel `(window_size, 4 * n)` are `+cos`, `-cos`, `+sin`
    and `-sin` of `n` frequencies. Behind a ReLU, the four of one frequency
    sum to `|cos| + |sin|`, a magnitude that hardly depends on phase.

    Args:
        sample_rate_hz: int, the rate of the samples.
        gain: float. A sinusoid of amplitude 1 at a filter's centre gives
            about `gain`.
    """

    def __init__(self, sample_rate_hz=16_000, gain=1.0):
        self.sample_rate_hz = sample_rate_hz
        self.gain = gain

    def __call__(self, shape, dtype=None):
        window_size, filters = shape
        if filters % 4:
            raise ValueError(
                f"Quadrature filters come in fours. Received: filters={filters}"
            )
        time_s = np.arange(window_size) - (window_size - 1) / 2
        time_s = time_s / self.sample_rate_hz
        window = np.hanning(window_size + 2)[1:-1]
        window = window * (2.0 * self.gain / window.sum())
        phase = (
            2
            * np.pi
            * np.outer(time_s, mel_centers(filters // 4, self.sample_rate_hz))
        )
        cos, sin = np.cos(phase), np.sin(phase)
        rows = np.concatenate([cos, -cos, sin, -sin], axis=1)
        return ops.convert_to_tensor(window[:, None] * rows, dtype=dtype)

    def get_config(self):
        return {"sample_rate_hz": self.sample_rate_hz, "gain": self.gain}


@keras.saving.register_keras_serializable("audio_tf")
class TriangularBands(keras.initializers.Initializer):
    """An initializer by triangular means over `QuadratureFilters`.

    A kernel `(4 * n, bands)`: each column averages the filters below one
    triangle, all four rows of a frequency alike.
    """

    def __call__(self, shape, dtype=None):
        filters, bands = shape
        # Filters are evenly spaced in mel, so the bands are in their index.
        positions = (np.arange(filters // 4) + 1.0) / (filters // 4 + 1.0)
        centers = (np.arange(bands) + 1.0) / (bands + 1.0)
        distance = np.abs(positions[:, None] - centers) * (bands + 1.0)
        # Fewer filters than bands: widen, so that no column is empty.
        width = max(1.0, (bands + 1.0) / (filters // 4 + 1.0))
        weights = np.maximum(0.0, 1.0 - distance / width)
        weights = np.tile(weights / weights.sum(axis=0), (4, 1))
        return ops.convert_to_tensor(weights, dtype=dtype)


@keras.saving.register_keras_serializable("audio_tf")
class FrameMask(Layer):
    """A layer that marks the frames that hold at least one real sample.

    It is the place where the lengths of clips become the mask of a backbone.

    Args:
        frame_size: int, samples from one frame to the next.
        window_size: int, samples that a frame is made of, where frames
            overlap and only those of whole windows are real, as behind
            convolutions without padding; a clip shorter than a window is one
            frame. `None` where frames do not overlap and the last one may be
            begun.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        waveform: tensor `(batch, samples)`; only its shape is used.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real. A length beyond the tensor counts as all of
            it, a negative one as 0.

    Returns:
        Boolean tensor `(batch, ceil(samples / frame_size))`, or, with a
        `window_size`,
        `(batch, 1 + max(samples - window_size, 0) // frame_size)`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frame_mask = layers.FrameMask(frame_size=400)
        >>> waveform = np.zeros((1, 1_600), "float32")
        >>> frame_mask(waveform, lengths=np.array([401])).numpy().tolist()
        [[True, True, False, False]]
    """

    first_input = WAVEFORM

    def __init__(self, frame_size, window_size=None, **kwargs):
        super().__init__(**kwargs)
        check_sizes(frame_size=frame_size)
        if window_size is not None:
            check_sizes(window_size=window_size)
        self.frame_size = frame_size
        self.window_size = window_size

    def call(self, waveform, lengths=None):
        batch, samples = ops.shape(waveform)[0], ops.shape(waveform)[1]
        frames = self.frames_of(samples)
        if lengths is None:
            return ops.ones((batch, frames), dtype="bool")
        lengths = masks.within(lengths, samples)
        real = self.frames_of(lengths)
        return masks.from_lengths(ops.where(lengths > 0, real, 0), frames)

    def frames_of(self, samples):
        """Counts the frames of clips of at least one sample.

        Args:
            samples: integer, or integer tensor of any shape.
        """
        if self.window_size is None:
            return blocks.count(samples, self.frame_size)
        return blocks.count_windows(samples, self.window_size, self.frame_size)

    def compute_output_spec(self, waveform, lengths=None):
        batch, samples = waveform.shape
        frames = None if samples is None else self.frames_of(samples)
        return keras.KerasTensor((batch, frames), dtype="bool")

    def get_config(self):
        return {
            **super().get_config(),
            "frame_size": self.frame_size,
            "window_size": self.window_size,
        }


@keras.saving.register_keras_serializable("audio_tf")
class WaveformFrontend(Frontend):
    """A layer that cuts a waveform into windows and embeds each by two Denses.

    `(batch, samples)` -> `(batch, frames, hidden_dim)` with
    `frames = ceil(samples / window_size)`. Windows are rectangular and do not
    overlap; the last one is filled up with zeros. Section 3.2 of "Audio
    Transformers" (arXiv 2105.00335) has the layers and their sizes. It states
    neither the activation of the first layer, ReLU here and none after the
    second, nor how its weights begin. `gain` is ours.

    Args:
        filters: int, the units of the first dense layer, 2048 or 1024 in the
            paper.
        hidden_dim: int, the units of the second, the width of a frame.
        window_s: float, the length of a window in seconds.
        sample_rate_hz: int, the rate of the waveform.
        activation: the activation of the first layer.
        filterbank: `"random"` for Glorot uniform times `gain`, or `"mel"`
            to begin as a mel-spaced quadrature filterbank: windowed cosines
            and sines of both signs, then triangular means. Both are dense
            and trainable either way.
        gain: float, the scale at which the filters begin; not of the paper,
            whose dense layers begin as Keras' do, at 1, if they are left at
            their defaults. Sound in a room is some 30 dB below full scale,
            and positions are of size 1: at 1 positions would drown the sound.
            With `"mel"`, a full-scale sinusoid has an embedding of at most
            about this size.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`, full scale 1.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real. Samples behind the end of a clip are taken
            as silence.

    Raises:
        ValueError: if an argument is out of range, or samples are integers.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frontend = layers.WaveformFrontend(filters=64, hidden_dim=32)
        >>> tuple(frontend(np.zeros((1, 16_000), "float32")).shape)
        (1, 40, 32)
    """

    causal = True
    embeds_pieces = True

    def __init__(
        self,
        filters=2048,
        hidden_dim=64,
        window_s=0.025,
        sample_rate_hz=16_000,
        activation="relu",
        filterbank="random",
        gain=32.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_choice("filterbank", filterbank, ("random", "mel"))
        check_sizes(
            filters=filters,
            hidden_dim=hidden_dim,
            sample_rate_hz=sample_rate_hz,
        )
        check_positive(window_s=window_s, gain=gain)
        self.filters = filters
        self.hidden_dim = hidden_dim
        self.window_s = window_s
        self.sample_rate_hz = sample_rate_hz
        self.activation = activations.get(activation)
        self.filterbank = filterbank
        self.gain = gain
        self.window_size = round(window_s * sample_rate_hz)
        if self.window_size < 1:
            raise ValueError(
                "A window must hold at least one sample. Received: "
                f"window_s={window_s}, sample_rate_hz={sample_rate_hz}"
            )
        mel = filterbank == "mel"
        self.filter_dense = keras.layers.Dense(
            filters,
            activation=self.activation,
            kernel_initializer=QuadratureFilters(sample_rate_hz, gain)
            if mel
            else keras.initializers.VarianceScaling(
                gain**2, mode="fan_avg", distribution="uniform"
            ),
            dtype=self.dtype_policy,
            name="filters",
        )
        self.embedding_dense = keras.layers.Dense(
            hidden_dim,
            kernel_initializer=TriangularBands() if mel else "glorot_uniform",
            dtype=self.dtype_policy,
            name="embedding",
        )

    @property
    def frame_size(self):
        """The samples from one frame to the next."""
        return self.window_size

    def build(self, input_shape):
        self.filter_dense.build((None, None, self.window_size))
        self.embedding_dense.build((None, None, self.filters))

    def call(self, waveform, lengths=None):
        check_floating("waveform", waveform)
        batch, samples = ops.shape(waveform)[0], ops.shape(waveform)[1]
        if lengths is not None:
            waveform = masks.zero_beyond(waveform, lengths)
        frames = blocks.count(samples, self.window_size)
        padding = frames * self.window_size - samples
        waveform = ops.pad(waveform, [[0, 0], [0, padding]])
        patches = ops.reshape(waveform, (batch, frames, self.window_size))
        return self.embedding_dense(self.filter_dense(patches))

    def learned(self):
        kernel = ops.convert_to_numpy(self.filter_dense.kernel)
        return Learned(Filters(kernel.T[:, :, None], 1), None, {})

    def compute_output_spec(self, waveform, lengths=None):
        batch, samples = waveform.shape
        frames = None if samples is None else -(-samples // self.window_size)
        return keras.KerasTensor(
            (batch, frames, self.hidden_dim), dtype=self.compute_dtype
        )

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "hidden_dim": self.hidden_dim,
            "window_s": self.window_s,
            "sample_rate_hz": self.sample_rate_hz,
            "activation": activations.serialize(self.activation),
            "filterbank": self.filterbank,
            "gain": self.gain,
        }
