"""Convolutions over time and bands that look at real frames only.

Tensors are `(batch, time, bands, channels)`, and masks `(batch, time)` mark
the real frames. Padding is zero before each convolution, as is what lies
outside of a clip, so that a padded clip gives what it gives alone. For this,
strides begin at the first frame of a clip whatever its length: `ceil(time /
stride)` frames come out. In training, normalisation is by the statistics of
all real frames of the batch.
"""

import keras
from keras import ops

from audio_tf.layers import activations
from audio_tf.layers.batch_normalization import MaskedBatchNormalization
from audio_tf.layers.stages import Stage
from audio_tf.ops import masks, statistics
from audio_tf.ops.checks import check_flags, check_sizes, pair_of
from audio_tf.ops.layer import BANDS, Layer


def zero_padding(x, mask):
    """Puts zeros in place of padding where there is a mask."""
    return x if mask is None else masks.zero_padding(x, mask)


def strided(mask, stride):
    """Returns the mask of every `stride`-th frame, `None` for no mask."""
    return mask if mask is None or stride == 1 else mask[:, ::stride]


def strided_length(length, stride):
    """Counts every `stride`-th frame of an int or `None`."""
    return None if length is None else -(-length // stride)


def max_pool(x, size, strides):
    """Takes maxima over windows of time and bands.

    Time is continued at its end by zeros, so that no frame is lost; bands
    that fill no window are. Windows that overlap stand around every stride's
    first frame and band, with zeros outside.

    Args:
        x: tensor `(batch, time, bands, channels)`, not negative, zero at
            padding.
        size: pair of ints, frames and bands of a window.
        strides: pair of ints, from one window to the next.

    Returns:
        Tensor `(batch, ceil(time / strides[0]), fewer bands, channels)`.
    """
    before = [(s - t + 1) // 2 for s, t in zip(size, strides, strict=True)]
    time = [before[0], size[0] - 1 - before[0]]
    padding = [[0, 0], time, [before[1], before[1]], [0, 0]]
    return ops.max_pool(
        ops.pad(x, padding), size, strides, "valid", "channels_last"
    )


def make_convolution(filters, kernel_size, strides, use_bias, dtype, name):
    """Makes the product of a convolution, for `convolve`."""
    return keras.layers.Conv2D(
        filters,
        kernel_size,
        strides,
        padding="valid",
        data_format="channels_last",
        use_bias=use_bias,
        dtype=dtype,
        name=name,
    )


def convolve(convolution, x, mask):
    """Convolves with zeros around the real frames.

    Args:
        convolution: `keras.layers.Conv2D` of `make_convolution`.
        x: tensor `(batch, time, bands, channels)`.
        mask: boolean `(batch, time)` or `None`.

    Returns:
        Tensor `(batch, ceil(time / strides), fewer bands, filters)`.
    """
    around = [convolution.kernel_size[0] // 2] * 2
    x = ops.pad(zero_padding(x, mask), [[0, 0], around, around, [0, 0]])
    return convolution(x)


@keras.saving.register_keras_serializable("audio_tf")
class Convolution(Stage, Layer):
    """A convolution, batch normalisation and an activation.

    `(B, T, F, C)` -> `(B, ceil(T / s), ceil(F / s), filters)`.

    Args:
        filters: int, channels that come out.
        kernel_size: int, odd, frames and bands of the kernel.
        strides: int, frames and bands from one output to the next.
        use_bias: bool, whether the convolution has a bias.
        activation: the activation behind the normalisation.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, bands, channels)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether the batch's statistics normalise.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> convolution = layers.Convolution(filters=8, strides=2)
        >>> tuple(convolution(np.zeros((1, 12, 40, 1), "float32")).shape)
        (1, 6, 20, 8)
    """

    first_input = BANDS

    def __init__(
        self,
        filters,
        kernel_size=3,
        strides=1,
        use_bias=False,
        activation="relu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        check_sizes(filters=filters, kernel_size=kernel_size, strides=strides)
        check_flags(use_bias=use_bias)
        if kernel_size % 2 == 0:
            raise ValueError(
                "`kernel_size` must be odd, so that a kernel has a middle. "
                f"Received: kernel_size={kernel_size}"
            )
        self.filters = filters
        self.kernel_size = kernel_size
        self.strides = strides
        self.use_bias = use_bias
        self.activation = activations.get(activation)
        self.convolution = make_convolution(
            filters,
            kernel_size,
            strides,
            use_bias,
            self.dtype_policy,
            "convolution",
        )
        self.norm = MaskedBatchNormalization(
            dtype=self.dtype_policy, name="norm"
        )

    @property
    def frame_stride(self):
        """The frames that go in for each that comes out."""
        return self.strides

    def build(self, input_shape):
        bands = input_shape[2] + self.kernel_size - 1
        self.convolution.build((None, None, bands, input_shape[3]))
        self.norm.build((None, None, None, self.filters))

    def compute_mask(self, inputs, mask=None):
        return strided(mask, self.strides)

    def call(self, inputs, mask=None, training=None):
        x = convolve(self.convolution, self.as_floats(inputs), mask)
        mask = self.compute_mask(x, mask)
        return self.activation(self.norm(x, mask=mask, training=training))

    def compute_output_shape(self, input_shape, *args, **kwargs):
        batch, time, bands, _ = input_shape
        time, bands = (strided_length(n, self.strides) for n in (time, bands))
        return batch, time, bands, self.filters

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "use_bias": self.use_bias,
            "activation": activations.serialize(self.activation),
        }


@keras.saving.register_keras_serializable("audio_tf")
class ConvolutionBlock(Stage, Layer):
    """Convolutions with ReLU, each like `Convolution`, and max pooling.

    `(B, T, F, C)` -> `(B, ceil(T / frame_stride), fewer bands, filters)`.

    Args:
        filters: int, channels of each convolution.
        depth: int, convolutions one after the other.
        kernel_size: int, odd, frames and bands of the kernels.
        strides: int, frames and bands from one output of the first
            convolution to the next.
        use_bias: bool, whether convolutions have a bias.
        pool_size: pair of ints, frames and bands of a window of the pooling.
        pool_strides: pair of ints, from one window to the next, at most
            `pool_size`, or `None` for windows that do not overlap.
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
        >>> block = layers.ConvolutionBlock(8, depth=2, pool_size=(2, 4))
        >>> tuple(block(np.zeros((1, 12, 40, 1), "float32")).shape)
        (1, 6, 10, 8)
    """

    first_input = BANDS

    def __init__(
        self,
        filters,
        depth=1,
        kernel_size=3,
        strides=1,
        use_bias=False,
        pool_size=(2, 2),
        pool_strides=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        check_sizes(depth=depth, strides=strides)
        check_flags(use_bias=use_bias)
        self.filters = filters
        self.depth = depth
        self.kernel_size = kernel_size
        self.strides = strides
        self.use_bias = use_bias
        self.pool_size = pair_of("pool_size", pool_size)
        self.pool_strides = self.pool_size
        if pool_strides is not None:
            self.pool_strides = pair_of("pool_strides", pool_strides)
        pairs = zip(self.pool_size, self.pool_strides, strict=True)
        if any(stride > size for size, stride in pairs):
            raise ValueError(
                "`pool_strides` must not be above `pool_size`, or no window "
                "has the frames and bands between two. Received: "
                f"pool_size={self.pool_size}, pool_strides={self.pool_strides}"
            )
        self.convolutions = [
            Convolution(
                filters,
                kernel_size,
                1 if index else strides,
                use_bias,
                dtype=self.dtype_policy,
                name=f"convolution_{index}",
            )
            for index in range(depth)
        ]

    @property
    def frame_stride(self):
        """The frames that go in for each that comes out."""
        return self.strides * self.pool_strides[0]

    def build(self, input_shape):
        bands = input_shape[2]
        if self.compute_output_shape(input_shape)[2] < 1:
            raise ValueError(
                f"Too few bands come to {self.name} for its strides of "
                f"{self.strides} and windows of {self.pool_size[1]} bands. "
                f"Received: {bands} bands"
            )
        for layer in self.convolutions:
            layer.build(input_shape)
            input_shape = layer.compute_output_shape(input_shape)

    def compute_mask(self, inputs, mask=None):
        return strided(mask, self.frame_stride)

    def call(self, inputs, mask=None, training=None):
        x = inputs
        for layer in self.convolutions:
            x = layer(x, mask=mask, training=training)
            mask = layer.compute_mask(x, mask)
        return max_pool(
            zero_padding(x, mask), self.pool_size, self.pool_strides
        )

    def compute_output_shape(self, input_shape, *args, **kwargs):
        batch, time, bands, _ = input_shape
        time = strided_length(time, self.frame_stride)
        bands = strided_length(bands, self.strides)
        size, stride = self.pool_size[1], self.pool_strides[1]
        bands = (bands + 2 * ((size - stride + 1) // 2) - size) // stride + 1
        return batch, time, bands, self.filters

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "depth": self.depth,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "use_bias": self.use_bias,
            "pool_size": list(self.pool_size),
            "pool_strides": list(self.pool_strides),
        }


@keras.saving.register_keras_serializable("audio_tf")
class BandPooling(Stage, Layer):
    """A layer of the mean over bands, `(B, T, F, C)` to `(B, T, C)`.

    It computes in float32 or better.

    Args:
        include_max: bool, whether the maximum over bands comes before the
            mean, which makes `2 C` features of a frame.
        **kwargs: arguments of `keras.layers.Layer`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> pool = layers.BandPooling(include_max=True)
        >>> tuple(pool(np.zeros((1, 12, 5, 16), "float32")).shape)
        (1, 12, 32)
    """

    first_input = BANDS

    def __init__(self, include_max=False, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        check_flags(include_max=include_max)
        self.include_max = include_max

    def compute_mask(self, inputs, mask=None):
        return mask

    def call(self, inputs, mask=None):
        x = statistics.to_float32(zero_padding(inputs, mask))
        found = [ops.mean(x, axis=2)]
        if self.include_max:
            found.insert(0, ops.max(x, axis=2))
        return ops.cast(ops.concatenate(found, axis=-1), self.compute_dtype)

    def compute_output_shape(self, input_shape, *args, **kwargs):
        batch, time, _, channels = input_shape
        return batch, time, channels * (2 if self.include_max else 1)

    def get_config(self):
        return {**super().get_config(), "include_max": self.include_max}
