"""From samples to frames by convolutions, as wav2vec 2.0, HuBERT and WavLM."""

import keras
import numpy as np
from keras import ops

from audio_tf.layers import activations
from audio_tf.layers.encoder import LAYER_NORM_EPSILON
from audio_tf.layers.filters import Filters, Frontend, Learned
from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import (
    check_choice,
    check_flags,
    check_positive,
    check_rates,
    check_sizes,
    sizes_of,
)
from audio_tf.ops.layer import Dropout, Layer, check_floating

NORMS = ("group", "layer")
# Added to the variance of a waveform, by the published feature extractors.
WAVEFORM_EPSILON = 1e-7


@keras.saving.register_keras_serializable("audio_tf")
class ChannelNorm(Layer):
    """A layer that brings each channel to mean 0 and variance 1 over time.

    It is a group normalisation with one channel in each group. Only real
    frames count, so that a padded clip is normalised as it is alone.

    Args:
        epsilon: float, added to the variance.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, channels)`.
        lengths: int32 `(batch,)`, real frames of each clip, or `None` where
            all are real.

    Returns:
        Tensor `(batch, time, channels)`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> norm = layers.ChannelNorm()
        >>> frames = np.array([[[1.0], [3.0], [99.0]]], "float32")
        >>> normalized = norm(frames, lengths=np.array([2]))
        >>> [round(float(each), 2) for each in normalized[0, :2, 0]]
        [-1.0, 1.0]
    """

    def __init__(self, epsilon=LAYER_NORM_EPSILON, **kwargs):
        super().__init__(**kwargs)
        check_positive(epsilon=epsilon)
        self.epsilon = epsilon

    def build(self, input_shape):
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(
            shape=shape, initializer="ones", name="gamma"
        )
        self.beta = self.add_weight(
            shape=shape, initializer="zeros", name="beta"
        )

    def call(self, inputs, lengths=None):
        inputs = self.as_floats(inputs)
        x, real = statistics.to_float32(inputs), None
        if lengths is not None:
            real = masks.from_lengths(lengths, ops.shape(x)[1])
            x = masks.zero_padding(x, real)
            real = ops.expand_dims(real, -1)
        mean, variance = statistics.moments(x, 1, real)
        gain = ops.cast(self.gamma, x.dtype) * ops.rsqrt(
            variance + self.epsilon
        )
        shift = ops.cast(self.beta, x.dtype) - mean * gain
        return ops.cast(x * gain + shift, inputs.dtype)

    def compute_output_spec(self, inputs, lengths=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}


@keras.saving.register_keras_serializable("audio_tf")
class ConvolutionalFrontend(Frontend):
    """A layer that turns samples into frames by strided convolutions.

    `(batch, samples)` -> `(batch, frames, hidden_dim)`: the feature encoder
    of wav2vec 2.0 (arXiv 2006.11477, section 2), whose convolutions have no
    padding, then a LayerNorm and a projection. A frame is made of
    `window_size` samples and stands `frame_size` behind the one before, 400
    and 320 by default, so that there are
    `frames = 1 + (samples - window_size) // frame_size`; a clip shorter than
    a window is filled up to one with zeros.

    Args:
        hidden_dim: int, features of a frame.
        channels: tuple of ints, the channels of each convolution.
        kernels: tuple of ints, its samples or frames.
        strides: tuple of ints, from one of its outputs to the next.
        use_bias: bool, whether convolutions have biases.
        norm: `"group"`, the first convolution's channels are normalised over
            time, those of the others not; or `"layer"`, all of them are
            normalised over channels.
        normalize_waveform: bool, whether each clip is first brought to mean
            0 and variance 1.
        activation: the activation behind each convolution.
        dropout: float, the dropout rate of the output.
        layer_norm_epsilon: float, added to the variance in the LayerNorm
            before the projection.
        kernel_initializer: the initializer of the projection, or `None` for
            Glorot uniform.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`, full scale 1.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real. Frames of whole windows do not depend on what
            is behind the end of a clip.
        training: bool, whether dropout applies.

    Raises:
        ValueError: if an argument is out of range, there are not as many
            channels as kernels and strides, or samples are integers and not
            normalised.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frontend = layers.ConvolutionalFrontend(16, channels=(8,) * 7)
        >>> tuple(frontend(np.zeros((1, 16_000), "float32")).shape)
        (1, 49, 16)
    """

    causal = False
    embeds_pieces = False

    def __init__(
        self,
        hidden_dim=768,
        channels=(512,) * 7,
        kernels=(10, 3, 3, 3, 3, 2, 2),
        strides=(5, 2, 2, 2, 2, 2, 2),
        use_bias=False,
        norm="group",
        normalize_waveform=False,
        activation="gelu",
        dropout=0.0,
        layer_norm_epsilon=LAYER_NORM_EPSILON,
        kernel_initializer=None,
        **kwargs,
    ):
        # Rounded to half precision before its mean is taken off, a waveform
        # would lose its quiet parts.
        super().__init__(autocast=False, **kwargs)
        check_sizes(hidden_dim=hidden_dim)
        check_flags(use_bias=use_bias, normalize_waveform=normalize_waveform)
        check_rates(dropout=dropout)
        check_positive(layer_norm_epsilon=layer_norm_epsilon)
        self.channels = sizes_of("channels", channels)
        self.kernels = sizes_of("kernels", kernels)
        self.strides = sizes_of("strides", strides)
        counts = {len(self.channels), len(self.kernels), len(self.strides)}
        if len(counts) > 1 or not self.channels:
            raise ValueError(
                "Each convolution needs one of `channels`, `kernels` and "
                f"`strides`. Received: channels={channels}, kernels={kernels}, "
                f"strides={strides}"
            )
        check_choice("norm", norm, NORMS)
        self.hidden_dim = hidden_dim
        self.use_bias = use_bias
        self.norm = norm
        self.normalize_waveform = normalize_waveform
        self.activation = activations.get(activation)
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.convolutions = [
            keras.layers.Conv1D(
                count,
                size,
                strides=stride,
                use_bias=use_bias,
                data_format="channels_last",
                kernel_initializer="he_normal",
                dtype=self.dtype_policy,
                name=f"convolution_{index}",
            )
            for index, (count, size, stride) in enumerate(
                zip(self.channels, self.kernels, self.strides, strict=True)
            )
        ]
        self.norms = [
            keras.layers.LayerNormalization(
                epsilon=LAYER_NORM_EPSILON,
                dtype=self.dtype_policy,
                name=f"norm_{index}",
            )
            for index in range(len(self.channels) if norm == "layer" else 0)
        ]
        self.channel_norm = None
        if norm == "group":
            self.channel_norm = ChannelNorm(
                dtype=self.dtype_policy, name="channel_norm"
            )
        self.projection_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="projection_norm",
        )
        self.projection = keras.layers.Dense(
            hidden_dim,
            kernel_initializer=self.kernel_initializer or "glorot_uniform",
            dtype=self.dtype_policy,
            name="projection",
        )
        self.output_dropout = Dropout(
            dropout, dtype=self.dtype_policy, name="output_dropout"
        )

    @property
    def frame_size(self):
        """The samples from one frame to the next."""
        size = 1
        for stride in self.strides:
            size *= stride
        return size

    @property
    def window_size(self):
        """The samples that a frame is made of."""
        size, step = 1, 1
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            size, step = size + (kernel - 1) * step, step * stride
        return size

    def longest_clip(self, frames):
        """Returns the samples of the longest clip of so many frames."""
        return frames * self.frame_size + self.window_size - 1

    def build(self, input_shape):
        shape = (None, None, 1)
        for index, convolution in enumerate(self.convolutions):
            convolution.build(shape)
            shape = (None, None, self.channels[index])
            if self.norms:
                self.norms[index].build(shape)
            elif index == 0:
                self.channel_norm.build(shape)
        self.projection_norm.build(shape)
        self.projection.build(shape)

    def call(self, waveform, lengths=None, training=None):
        if self.normalize_waveform:
            # Of whatever full scale.
            waveform = normalized(waveform, lengths)
        else:
            check_floating("waveform", waveform)
            if lengths is not None:
                waveform = masks.zero_beyond(waveform, lengths)
        waveform = ops.cast(waveform, self.compute_dtype)
        x = ops.expand_dims(filled_up(waveform, self.window_size), -1)
        for index, convolution in enumerate(self.convolutions):
            x = convolution(x)
            if self.norms:
                x = self.norms[index](x)
            elif index == 0:
                x = self.channel_norm(x, self.first_lengths(waveform, lengths))
            x = self.activation(x)
        x = self.projection(self.projection_norm(x))
        return self.output_dropout(x, training=training)

    def learned(self):
        kernel = ops.convert_to_numpy(self.convolutions[0].kernel)
        weights = np.transpose(kernel, (2, 0, 1))  # (filters, samples, 1)
        return Learned(Filters(weights, 1), None, {})

    def first_lengths(self, waveform, lengths):
        """Counts the real frames behind the first convolution."""
        if lengths is None:
            return None
        lengths = masks.within(lengths, ops.shape(waveform)[1])
        return blocks.count_windows(
            ops.maximum(lengths, self.window_size),
            self.kernels[0],
            self.strides[0],
        )

    def compute_output_spec(self, waveform, lengths=None, training=None):
        batch, frames = waveform.shape
        if frames is not None:
            frames = blocks.count_windows(
                frames, self.window_size, self.frame_size
            )
        return keras.KerasTensor(
            (batch, frames, self.hidden_dim), dtype=self.compute_dtype
        )

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "channels": list(self.channels),
            "kernels": list(self.kernels),
            "strides": list(self.strides),
            "use_bias": self.use_bias,
            "norm": self.norm,
            "normalize_waveform": self.normalize_waveform,
            "activation": activations.serialize(self.activation),
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }


def normalized(waveform, lengths=None):
    """Brings each clip to mean 0 and variance 1 over its real samples.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: integer `(batch,)`, real samples of each clip, or `None`.

    Returns:
        Tensor `(batch, samples)`, float32 or better, zeros behind the end of
        a clip.
    """
    x, real = statistics.to_float32(waveform), None
    if lengths is not None:
        real = masks.from_lengths(lengths, ops.shape(x)[1])
        x = masks.zero_padding(x, real)
    mean, variance = statistics.moments(x, 1, real)
    x = (x - mean) * ops.rsqrt(variance + WAVEFORM_EPSILON)
    return x if real is None else masks.zero_padding(x, real)


def filled_up(waveform, size):
    """Appends zeros to `(batch, samples)` up to `size` samples."""
    samples = ops.shape(waveform)[1]
    missing = blocks.at_least(size - samples, 0)
    return ops.pad(waveform, [[0, 0], [0, missing]])
