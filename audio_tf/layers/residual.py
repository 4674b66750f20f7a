"""Residual convolutions over time and bands that look at real frames only."""

import keras
from keras import ops

from audio_tf.layers.convolution import Convolution
from audio_tf.layers.stages import Stage
from audio_tf.ops.layer import BANDS, Layer


@keras.saving.register_keras_serializable("audio_tf")
class ResidualBlock(Stage, Layer):
    """Two convolutions, to whose output their input is added.

    `(B, T, F, C)` -> `(B, ceil(T / strides), ceil(F / strides), filters)`, the
    basic block of "Deep Residual Learning" (arXiv 1512.03385, figure 5): each
    convolution is of 3 x 3, normalised, and ReLU follows the first and the
    sum. Where the shapes differ, a convolution of 1 x 1 makes them equal.

    Args:
        filters: int, channels that come out.
        strides: int, frames and bands from one output to the next.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, bands, channels)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`;
            `compute_mask` gives that of the output.
        training: bool, whether the batch's statistics normalise.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> block = layers.ResidualBlock(filters=8, strides=2)
        >>> tuple(block(np.zeros((1, 12, 40, 4), "float32")).shape)
        (1, 6, 20, 8)
    """

    first_input = BANDS

    def __init__(self, filters, strides=1, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.filters = filters
        self.strides = strides
        dtype = self.dtype_policy
        self.first = Convolution(
            filters, strides=strides, dtype=dtype, name="first"
        )
        self.second = Convolution(
            filters, activation="linear", dtype=dtype, name="second"
        )
        self.shortcut = None

    @property
    def frame_stride(self):
        """The frames that go in for each that comes out."""
        return self.strides

    def build(self, input_shape):
        if self.strides > 1 or input_shape[-1] != self.filters:
            self.shortcut = Convolution(
                self.filters,
                1,
                self.strides,
                activation="linear",
                dtype=self.dtype_policy,
                name="shortcut",
            )
            self.shortcut.build(input_shape)
        self.first.build(input_shape)
        self.second.build(self.first.compute_output_shape(input_shape))

    def compute_mask(self, inputs, mask=None):
        return self.first.compute_mask(inputs, mask)

    def call(self, inputs, mask=None, training=None):
        inputs = self.as_floats(inputs)
        x = self.first(inputs, mask=mask, training=training)
        after = self.compute_mask(inputs, mask)
        x = self.second(x, mask=after, training=training)
        if self.shortcut is not None:
            inputs = self.shortcut(inputs, mask=mask, training=training)
        return ops.relu(x + inputs)

    def compute_output_shape(self, input_shape, *args, **kwargs):
        return self.first.compute_output_shape(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "strides": self.strides,
        }
