"""Means, variances and levels of real positions, in float32 or better."""

import keras
from keras import ops

from audio_tf.ops import masks


def to_float32(x):
    """Casts half precision up; float32 and float64 stay as they are."""
    dtype = keras.backend.standardize_dtype(x.dtype)
    return ops.cast(x, keras.backend.result_type(dtype, "float32"))


def moments(x, axis, real=None, unbiased=False):
    """Computes mean and variance over `axis` of what is real.

    Args:
        x: floating tensor, zero wherever it is not real.
        axis: int.
        real: boolean tensor broadcastable to `x`, or `None` where all is real.
        unbiased: bool. If True, divide by one less than the count, but at
            least by one.

    Returns:
        Mean and variance, of size 1 along `axis`; zero where nothing is real.
    """
    if real is None:
        count = ops.cast(ops.shape(x)[axis], x.dtype)
    else:
        count = ops.sum(ops.cast(real, x.dtype), axis=axis, keepdims=True)
    mean = ops.sum(x, axis=axis, keepdims=True) / ops.maximum(count, 1.0)
    # Not mean(x^2) - mean^2, which cancels and may be negative.
    deviation = x - mean
    if real is not None:
        deviation = ops.where(real, deviation, 0.0)
    squares = ops.sum(ops.square(deviation), axis=axis, keepdims=True)
    return mean, squares / ops.maximum(count - float(unbiased), 1.0)


def frame_moments(x, mask=None):
    """Computes mean and variance of each channel over the real frames.

    Frames are selected once bands are summed, by few passes over `x`.

    Args:
        x: floating tensor `(batch, time, bands, channels)`, without NaN or
            infinity in padding.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.

    Returns:
        Pair of tensors `(channels,)`, float32 or better; zero where no frame
        is real.
    """
    x = to_float32(x)
    if mask is None:
        return ops.moments(x, axes=[0, 1, 2])
    frames = ops.maximum(ops.sum(ops.cast(mask, x.dtype)), 1)
    count = frames * ops.cast(ops.shape(x)[2], x.dtype)

    def mean(values):
        sums = masks.zero_padding(ops.sum(values, axis=2), mask)
        return ops.sum(sums, axis=(0, 1)) / count

    center = mean(x)
    return center, mean(ops.square(x - center))


def standardize(x, lengths, unbiased=False, epsilon=1e-16, min_deviation=1e-4):
    """Brings each feature to mean 0 and deviation 1 over the real frames.

    Args:
        x: float32 `(batch, time, dim)`.
        lengths: int32 `(batch,)`, real frames of each clip.
        unbiased: bool, whether the variance is divided by one less than the
            frames.
        epsilon: float, added to the deviation.
        min_deviation: float, what smaller deviations count as.

    Returns:
        `(batch, time, dim)`, zeros behind the end of a clip.
    """
    mask = masks.from_lengths(lengths, ops.shape(x)[1])
    # What hardly varies keeps its digits for that.
    x = masks.zero_padding(x - x[:, :1], mask)
    mean, variance = moments(x, 1, ops.expand_dims(mask, -1), unbiased)
    # A root has no gradient at 0, and float32 no square much smaller.
    least = max(min_deviation**2, 1e-30)
    deviation = ops.sqrt(ops.maximum(variance, least)) + epsilon
    return masks.zero_padding(x - mean, mask) / deviation


def power(waveform, lengths):
    """Computes the mean square of each clip's real samples.

    Args:
        waveform: floating tensor `(batch, samples)`.
        lengths: int32 `(batch,)`, real samples of each clip.

    Returns:
        Tensor `(batch, 1)`; 0 for an empty clip.
    """
    total = ops.sum(
        ops.square(masks.zero_beyond(waveform, lengths)), axis=1, keepdims=True
    )
    count = ops.expand_dims(ops.maximum(lengths, 1), 1)
    return total / ops.cast(count, total.dtype)
