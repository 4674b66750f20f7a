"""Densely connected convolutions that look at real frames only.

Tensors and masks are those of `audio_tf.layers.convolution`.
"""

import keras
from keras import ops

from audio_tf.layers.batch_normalization import MaskedBatchNormalization
from audio_tf.layers.convolution import (
    Convolution,
    convolve,
    make_convolution,
    strided,
    strided_length,
    zero_padding,
)
from audio_tf.layers.pooling import TemporalAveragePooling
from audio_tf.layers.stages import Stage
from audio_tf.ops import statistics
from audio_tf.ops.checks import check_sizes
from audio_tf.ops.layer import BANDS, Layer


@keras.saving.register_keras_serializable("audio_tf")
class NormalizedReLU(Stage, Layer):
    """Batch normalisation by real frames, and ReLU.

    `(B, T, F, C)` stays that.

    Args:
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, bands, channels)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether the batch's statistics normalise.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> x = np.array([-1.0, 0.0], "float32").reshape(1, 1, 2, 1)
        >>> layers.NormalizedReLU()(x).numpy().ravel().tolist()
        [0.0, 0.0]
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.norm = MaskedBatchNormalization(
            dtype=self.dtype_policy, name="norm"
        )

    def build(self, input_shape):
        self.norm.build(input_shape)

    def compute_mask(self, inputs, mask=None):
        return mask

    def call(self, inputs, mask=None, training=None):
        # Weights would have NaN for gradients of frames that hold it.
        inputs = zero_padding(inputs, mask)
        return ops.relu(self.norm(inputs, mask=mask, training=training))

    def compute_output_shape(self, input_shape, *args, **kwargs):
        return tuple(input_shape)


@keras.saving.register_keras_serializable("audio_tf")
class DenselyConnectedBlock(Stage, Layer):
    """Convolutions each of which sees what all before it have made.

    `(B, T, F, C)` -> `(B, T, F, C + depth * growth)`: the dense block of
    "Densely Connected Convolutional Networks" (arXiv 1608.06993), whose units
    are normalisation, ReLU, a convolution of 1 x 1 to `4 * growth` channels,
    normalisation, ReLU and one of 3 x 3 to `growth`.

    Args:
        depth: int, the number of units.
        growth: int, channels that each unit adds.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, bands, channels)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether the batch's statistics normalise.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> block = layers.DenselyConnectedBlock(depth=3, growth=4)
        >>> tuple(block(np.zeros((1, 12, 5, 8), "float32")).shape)
        (1, 12, 5, 20)
    """

    first_input = BANDS

    def __init__(self, depth=2, growth=32, **kwargs):
        super().__init__(**kwargs)
        check_sizes(depth=depth, growth=growth)
        self.supports_masking = True
        self.depth = depth
        self.growth = growth
        dtype = self.dtype_policy
        self.norms = [
            NormalizedReLU(dtype=dtype, name=f"norm_{index}")
            for index in range(depth)
        ]
        self.narrow = [
            Convolution(4 * growth, 1, dtype=dtype, name=f"narrow_{index}")
            for index in range(depth)
        ]
        self.wide = [
            make_convolution(growth, 3, 1, False, dtype, f"wide_{index}")
            for index in range(depth)
        ]

    def build(self, input_shape):
        *shape, channels = input_shape
        inner = (*shape[:2], shape[2] + 2, 4 * self.growth)
        for norm, narrow, wide in zip(
            self.norms, self.narrow, self.wide, strict=True
        ):
            norm.build((*shape, channels))
            narrow.build((*shape, channels))
            wide.build(inner)
            channels += self.growth

    def compute_mask(self, inputs, mask=None):
        return mask

    def call(self, inputs, mask=None, training=None):
        x = new = zero_padding(inputs, mask)
        seen = []
        for norm, narrow, wide in zip(
            self.norms, self.narrow, self.wide, strict=True
        ):
            moments = None
            if training:
                # Those of a channel are the same for each unit that sees it.
                seen.append(statistics.frame_moments(new, mask))
                moments = [ops.concatenate(each) for each in zip(*seen)]
            normal = norm.norm(x, mask=mask, training=training, moments=moments)
            # Not `narrow` itself: its one frame takes nothing from padding,
            # which need not be zero.
            new = narrow.convolution(ops.relu(normal))
            new = narrow.norm(new, mask=mask, training=training)
            new = narrow.activation(new)
            new = convolve(wide, new, mask)
            x = ops.concatenate([x, new], axis=-1)
        return x

    def compute_output_shape(self, input_shape, *args, **kwargs):
        *shape, channels = input_shape
        return (*shape, channels + self.depth * self.growth)

    def get_config(self):
        return {
            **super().get_config(),
            "depth": self.depth,
            "growth": self.growth,
        }


@keras.saving.register_keras_serializable("audio_tf")
class DenseTransition(Stage, Layer):
    """A layer that halves frames and bands between densely connected blocks.

    `(B, T, F, C)` -> `(B, ceil(T / 2), F // 2, filters)`: normalisation, ReLU,
    a convolution of 1 x 1, and means over windows of 2 x 2. Only real frames
    count in a mean.

    Args:
        filters: int, channels that come out.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, bands, channels)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`;
            `compute_mask` gives that of the output.
        training: bool, whether the batch's statistics normalise.

    Raises:
        ValueError: if there are no two bands.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> transition = layers.DenseTransition(filters=8)
        >>> tuple(transition(np.zeros((1, 12, 40, 16), "float32")).shape)
        (1, 6, 20, 8)
    """

    first_input = BANDS

    frame_stride = 2

    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        check_sizes(filters=filters)
        self.supports_masking = True
        self.filters = filters
        dtype = self.dtype_policy
        self.norm = NormalizedReLU(dtype=dtype, name="norm")
        self.convolution = make_convolution(
            filters, 1, 1, False, dtype, "convolution"
        )
        self.pooling = TemporalAveragePooling(2, dtype=dtype, name="pooling")

    def build(self, input_shape):
        if input_shape[2] < 2:
            raise ValueError(
                f"Too few bands come to {self.name} for windows of 2 bands. "
                f"Received: {input_shape[2]} bands"
            )
        self.norm.build(input_shape)
        self.convolution.build(input_shape)

    def compute_mask(self, inputs, mask=None):
        return strided(mask, self.frame_stride)

    def call(self, inputs, mask=None, training=None):
        x = self.norm(inputs, mask=mask, training=training)
        x = convolve(self.convolution, x, mask)
        batch, time = ops.shape(x)[0], ops.shape(x)[1]
        bands, channels = x.shape[2] // 2, x.shape[3]
        x = ops.reshape(x[:, :, : 2 * bands], (batch, time, bands, 2, channels))
        x = ops.reshape(ops.mean(x, axis=3), (batch, time, bands * channels))
        x = self.pooling(x, mask=mask)
        time = ops.shape(x)[1]
        return ops.reshape(x, (batch, time, bands, channels))

    def compute_output_shape(self, input_shape, *args, **kwargs):
        batch, time, bands, _ = input_shape
        return batch, strided_length(time, 2), bands // 2, self.filters

    def get_config(self):
        return {**super().get_config(), "filters": self.filters}
