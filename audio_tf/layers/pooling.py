"""Pooling over time that looks at real frames only."""

import functools

import keras
from keras import ops

from audio_tf.layers.stages import Stage
from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import check_sizes
from audio_tf.ops.layer import FRAMES, Layer

# Below every feature of a model, and finite.
LOWEST = -1e30
LOWEST_HALF = -6e4


def window_sums(x, size, stride):
    """Sums `size` neighbouring frames, with zeros behind the end.

    Args:
        x: tensor `(batch, time, dim)`.
        size: int, frames of a sum.
        stride: int, frames from one sum to the next.

    Returns:
        Tensor `(batch, ceil(time / stride), dim)`.
    """
    x = ops.pad(x, [[0, 0], [0, size - 1], [0, 0]])
    return size * ops.average_pool(x, size, stride, "valid", "channels_last")


class TemporalPooling(Stage, Layer):
    """The base of poolings over time: `(B, T, F)` to `(B, ceil(T / s), F)`.

    Section 3.3 of "Audio Transformers" (arXiv 2105.00335) halves the time
    "with stride 1", which no stride of 1 can: the stride defaults to
    `pool_size`, and `strides=1` gives the other reading, a smoothing that
    keeps the length. Only real frames count, in the last window too, so that
    a padded clip pools as it does alone; a window without a real frame gives
    zeros. A subclass gives `pool`.

    Args:
        pool_size: int, the frames of a window.
        strides: int, frames from one window to the next; `pool_size` if
            `None`.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)` or `None`. `compute_mask` gives the mask
            of the output: a window is real if one of its frames is.

    Raises:
        ValueError: if they are no positive integers, or windows would leave
            frames out.
    """

    first_input = FRAMES

    # A window that overlaps the next one waits until it is filled.
    streams = True

    def __init__(self, pool_size=2, strides=None, **kwargs):
        super().__init__(**kwargs)
        strides = pool_size if strides is None else strides
        check_sizes(pool_size=pool_size, strides=strides)
        if strides > pool_size:
            raise ValueError(
                "`strides` must be between 1 and `pool_size`, else frames "
                f"are lost. Received: pool_size={pool_size}, strides={strides}"
            )
        self.supports_masking = True
        self.pool_size = pool_size
        self.strides = strides

    @property
    def frame_stride(self):
        """The frames that go in for each that comes out."""
        return self.strides

    @property
    def causal(self):
        """Whether windows end where the next begins.

        A frame that comes out stands for `strides` frames; a window that
        overlaps the next one looks at frames behind them.
        """
        return self.pool_size == self.strides

    def compute_mask(self, inputs, mask=None):
        if mask is None:
            return None
        frames = ops.expand_dims(ops.cast(mask, "float32"), -1)
        counts = window_sums(frames, self.pool_size, self.strides)
        return ops.squeeze(counts, -1) > 0.0

    def call(self, inputs, mask=None):
        inputs = self.as_floats(inputs)
        # Half precision has not all integers above 256.
        real = masks.factors(statistics.to_float32(inputs[:, :, :1]), mask)
        if mask is not None:
            inputs = masks.zero_padding(inputs, mask)
        counts = window_sums(real, self.pool_size, self.strides)
        return self.pool(inputs, real, counts)

    def pool(self, inputs, real, counts):
        """Pools the real frames of each window.

        Args:
            inputs: floating tensor `(batch, time, dim)`, zero at padding.
            real: 1 or 0 in `(batch, time, 1)`, float32 or better.
            counts: real frames of each window, of the dtype of `real`,
                `(batch, ceil(time / strides), 1)`.

        Returns:
            Tensor `(batch, ceil(time / strides), dim)`.
        """
        raise NotImplementedError  # abstract

    def stream_memory(self, frames):
        return frames - self.stream_outputs(frames) * self.strides

    def stream_outputs(self, frames):
        return blocks.whole_windows(frames, self.pool_size, self.strides, False)

    def stream_piece(self, seen, count, last):
        del count
        ready = blocks.whole_windows(
            ops.shape(seen)[1], self.pool_size, self.strides, last
        )
        return self(seen)[:, :ready]

    def compute_output_spec(self, inputs, mask=None):
        batch, length, dim = inputs.shape
        length = None if length is None else -(-length // self.strides)
        return keras.KerasTensor((batch, length, dim), dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "pool_size": self.pool_size,
            "strides": self.strides,
        }


@keras.saving.register_keras_serializable("audio_tf")
class TemporalAveragePooling(TemporalPooling):
    """A layer that averages the real frames of windows, in float32 or better.

    It is the pooling that "Audio Transformers" (arXiv 2105.00335) prefers;
    arguments and shapes are those of `TemporalPooling`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frames = np.array([[[1.0], [3.0], [5.0]]], "float32")
        >>> pooled = layers.TemporalAveragePooling(pool_size=2)(frames)
        >>> pooled.numpy().ravel().tolist()
        [2.0, 5.0]
    """

    def pool(self, inputs, real, counts):
        # A sum of many frames may be out of range where their mean is not.
        x = statistics.to_float32(inputs)
        total = window_sums(x, self.pool_size, self.strides)
        return ops.cast(total / ops.maximum(counts, 1.0), inputs.dtype)


@keras.saving.register_keras_serializable("audio_tf")
class TemporalMaxPooling(TemporalPooling):
    """A layer that takes the largest value of each feature in a window.

    "Audio Transformers" (arXiv 2105.00335) found it worse than the average;
    arguments and shapes are those of `TemporalPooling`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frames = np.array([[[1.0], [3.0], [5.0]]], "float32")
        >>> pooled = layers.TemporalMaxPooling(pool_size=2)(frames)
        >>> pooled.numpy().ravel().tolist()
        [3.0, 5.0]
    """

    def pool(self, inputs, real, counts):
        half = self.compute_dtype == "float16"
        lowest = LOWEST_HALF if half else LOWEST
        inputs = ops.where(real > 0.0, inputs, lowest)
        behind = [[0, 0], [0, self.pool_size - 1], [0, 0]]
        padded = ops.pad(inputs, behind, constant_values=lowest)
        number = blocks.count(ops.shape(inputs)[1], self.strides)
        # TensorFlow's own pooling aborts where a stream has no frame yet.
        highest = functools.reduce(
            ops.maximum,
            (
                padded[:, place :: self.strides][:, :number]
                for place in range(self.pool_size)
            ),
        )
        return ops.where(counts > 0.0, highest, 0.0)


# Poolings over time by the name that a model's argument has.
TEMPORAL_POOLINGS = {
    "average": TemporalAveragePooling,
    "max": TemporalMaxPooling,
}


@keras.saving.register_keras_serializable("audio_tf")
class MaskedMean(Layer):
    """A layer of the mean over real frames: `(B, T, F)` to `(B, F)`.

    It computes in float32 or better. A clip without a real frame gives zeros.
    Padding plays no part, even if it holds NaN.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frames = np.array([[[1.0], [3.0], [99.0]]], "float32")
        >>> mask = np.array([[True, True, False]])
        >>> mean = layers.MaskedMean()(frames, mask=mask)
        >>> float(mean[0, 0])
        2.0
    """

    first_input = FRAMES

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_mask(self, inputs, mask=None):
        return None

    def call(self, inputs, mask=None):
        x = statistics.to_float32(inputs)
        real = masks.factors(x, mask)
        if mask is not None:
            x = masks.zero_padding(x, mask)
        mean = ops.sum(x, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)
        return ops.cast(mean, self.compute_dtype)

    def compute_output_spec(self, inputs, mask=None):
        batch, _, dim = inputs.shape
        return keras.KerasTensor((batch, dim), dtype=self.compute_dtype)


class HalvesPooling(Layer):
    """The base of poolings that treat the two halves of a frame differently.

    A subclass gives `pool(first, second, mask)`. The layer computes in
    float32 or better. Padding plays no part, even if it holds NaN; a clip
    without a real frame gives zeros.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`, `dim` even.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.

    Returns:
        Tensor `(batch, dim)`.

    Raises:
        ValueError: if the features of a frame have no halves.
    """

    first_input = FRAMES

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape):
        if input_shape[-1] % 2:
            raise ValueError(
                f"{type(self).__name__} needs an even number of features. "
                f"Received: {input_shape[-1]} features"
            )

    def compute_mask(self, inputs, mask=None):
        return None

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones_like(inputs[:, :, 0], dtype="bool")
        mask = ops.cast(mask, "bool")
        x = statistics.to_float32(masks.zero_padding(inputs, mask))
        half = x.shape[-1] // 2
        x = self.pool(x[:, :, :half], x[:, :, half:], mask)
        return ops.cast(ops.concatenate(x, axis=-1), self.compute_dtype)

    def pool(self, first, second, mask):
        """Pools both halves.

        Args:
            first: float32 tensor `(batch, time, dim / 2)`, zero at padding.
            second: tensor like `first`.
            mask: boolean `(batch, time)`.

        Returns:
            Pair of tensors `(batch, dim / 2)`.
        """
        raise NotImplementedError  # abstract

    def compute_output_spec(self, inputs, mask=None):
        batch, _, dim = inputs.shape
        return keras.KerasTensor((batch, dim), dtype=self.compute_dtype)


@keras.saving.register_keras_serializable("audio_tf")
class MaxMeanPooling(HalvesPooling):
    """The maximum of the first half of the features and the mean of the rest.

    Of frames whose halves are maximum and mean over bands, as those of
    `VGGLikeBackbone`, it is global max pooling beside global average pooling.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frames = np.array([[[1.0, 1.0], [3.0, 3.0]]], "float32")
        >>> layers.MaxMeanPooling()(frames).numpy().tolist()
        [[3.0, 2.0]]
    """

    def pool(self, first, second, mask):
        real = ops.expand_dims(mask, -1)
        # Finite, or a clip without a real frame would have NaN for gradients.
        highest = ops.max(ops.where(real, first, -1e30), axis=1, initial=-1e30)
        some = ops.any(mask, axis=1, keepdims=True)
        count = ops.sum(masks.factors(second, mask), axis=1)
        mean = ops.sum(second, axis=1) / ops.maximum(count, 1.0)
        return ops.where(some, highest, 0.0), mean


@keras.saving.register_keras_serializable("audio_tf")
class LastStatesPooling(HalvesPooling):
    """The first half of the last real frame, the second half of the first one.

    Of frames whose halves are the states of a recurrent layer in both
    directions, as those of `CRNNBackbone`, they are the last states of both.
    Padding may stand before real frames, too.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> states = np.array([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], "float32")
        >>> layers.LastStatesPooling()(states).numpy().tolist()
        [[5.0, 2.0]]
    """

    def pool(self, first, second, mask):
        real = ops.cast(mask, "int32")
        # Of each real frame its place among those of its clip, from 1 on.
        place = ops.cumsum(real, axis=1)
        count = ops.sum(real, axis=1, keepdims=True)
        return (
            frame_at(first, mask & ops.equal(place, count)),
            frame_at(second, mask & ops.equal(place, 1)),
        )


def frame_at(x, place):
    """Takes the one frame of each clip where `place` is True, or zeros.

    Args:
        x: floating tensor `(batch, time, dim)`.
        place: boolean `(batch, time)`, True at most once in each clip.

    Returns:
        Tensor `(batch, dim)`.
    """
    return ops.sum(ops.where(ops.expand_dims(place, -1), x, 0.0), axis=1)
