"""Positions by a convolution, as wav2vec 2.0, HuBERT and WavLM have them."""

import keras
from keras import ops

from audio_tf.layers import activations
from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import check_sizes
from audio_tf.ops.layer import FRAMES, Layer

# Frames that one product takes together.
FRAMES_AT_A_TIME = 16


@keras.saving.register_keras_serializable("audio_tf")
class ConvolutionalPositions(Layer):
    """A layer that tells frames where they are by a wide convolution.

    It adds to its input the activation of a grouped convolution over
    `kernel_size` frames around each (arXiv 2006.11477, section 2), with zeros
    beyond both ends. The kernel is normalised by weight (arXiv 1602.07868):
    for each of its frames, a gain times the direction of all its weights.

    Args:
        kernel_size: int, frames of the convolution.
        groups: int, the groups of features that are convolved each for
            itself; divides the features.
        activation: the activation of what is added.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`; without a mask, zero
            where a frame is not real.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.

    Returns:
        Tensor `(batch, time, dim)`.

    Raises:
        ValueError: if an argument is out of range, or `groups` does not
            divide the features of an input.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> positions = layers.ConvolutionalPositions(kernel_size=5, groups=4)
        >>> tuple(positions(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    first_input = FRAMES

    def __init__(self, kernel_size=128, groups=16, activation="gelu", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        check_sizes(kernel_size=kernel_size, groups=groups)
        self.kernel_size = kernel_size
        self.groups = groups
        self.activation = activations.get(activation)

    def build(self, input_shape):
        dim = input_shape[-1]
        if dim % self.groups:
            raise ValueError(
                "`groups` must divide the features of the input. Received: "
                f"groups={self.groups}, shape={tuple(input_shape)}"
            )
        part = dim // self.groups
        deviation = 2.0 * (self.kernel_size * dim) ** -0.5
        self.direction = self.add_weight(
            shape=(self.kernel_size, part, dim),
            initializer=keras.initializers.RandomNormal(stddev=deviation),
            name="direction",
        )
        # The length that the directions have at first, as far as is known.
        self.gain = self.add_weight(
            shape=(self.kernel_size,),
            initializer=keras.initializers.Constant(
                deviation * (part * dim) ** 0.5
            ),
            name="gain",
        )
        self.bias = self.add_weight(
            shape=(dim,), initializer="zeros", name="bias"
        )

    def kernel(self):
        """Computes the kernel `(kernel_size, dim / groups, dim)`."""
        direction = ops.convert_to_tensor(self.direction)
        squares = ops.square(statistics.to_float32(direction))
        gain = self.gain * ops.cast(
            ops.rsqrt(ops.sum(squares, axis=(1, 2))), direction.dtype
        )
        return direction * ops.reshape(gain, (-1, 1, 1))

    def call(self, inputs, mask=None):
        inputs = self.as_floats(inputs)
        if mask is not None:
            inputs = masks.zero_padding(inputs, ops.cast(mask, "bool"))
        return inputs + self.activation(self.convolve(inputs) + self.bias)

    def convolve(self, inputs):
        """Convolves `(batch, time, dim)` by products of several frames.

        XLA has no fast form of a grouped convolution on a processor: of
        WavLM's, it takes 7 times as long as TensorFlow's own, and the
        gradient half a minute.
        """
        size, groups = self.kernel_size, self.groups
        step = min(FRAMES_AT_A_TIME, size)
        count = blocks.count(size, step)
        length, dim = ops.shape(inputs)[1], inputs.shape[-1]
        part, left = dim // groups, size // 2
        kernel = ops.pad(
            self.kernel(), [[0, count * step - size], [0, 0], [0, 0]]
        )
        kernel = ops.reshape(kernel, (count, step * part, groups, part))
        kernel = ops.transpose(kernel, (0, 2, 1, 3))  # (N, G, K, C)

        x = ops.pad(inputs, [[0, 0], [left, count * step - 1 - left], [0, 0]])
        padded = length + count * step - 1
        x = ops.reshape(x, (-1, padded, groups, part))
        x = ops.transpose(x, (2, 0, 1, 3))  # (G, B, padded, C)
        windows = padded - step + 1
        x = ops.concatenate(
            [blocks.narrow(x, 2, index, windows) for index in range(step)],
            axis=-1,
        )  # (G, B, windows, K)
        total = 0.0
        for index in range(count):
            piece = blocks.narrow(x, 2, index * step, length)
            piece = ops.reshape(piece, (groups, -1, step * part))
            total = total + ops.matmul(piece, kernel[index])
        total = ops.reshape(total, (groups, -1, length, part))
        total = ops.transpose(total, (1, 2, 0, 3))  # (B, T, G, C)
        return ops.reshape(total, (-1, length, dim))

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_size": self.kernel_size,
            "groups": self.groups,
            "activation": activations.serialize(self.activation),
        }
