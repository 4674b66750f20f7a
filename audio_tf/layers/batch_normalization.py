"""Batch normalisation by the statistics of real frames only."""

import keras
from keras import ops

from audio_tf.ops import masks, statistics


class MaskedBatchNormalization(keras.layers.BatchNormalization):
    """Batch normalisation of `(B, T, F, C)` over the real frames of a batch.

    Weights and results are those of `keras.layers.BatchNormalization` with a
    mask. That one passes eight times over its inputs to tell real frames from
    padding; this one looks at the mask where bands are summed already.

    Args:
        **kwargs: arguments of `keras.layers.BatchNormalization`, without
            `renorm` and `synchronized`.

    Call arguments:
        inputs: floating tensor `(batch, time, bands, channels)`, without NaN
            or infinity in padding.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether the batch's statistics normalise.
        moments: `frame_moments(inputs, mask)` of a caller that has them, or
            `None`.
    """

    def __init__(self, **kwargs):
        # Half precision would lose the moments' digits on their way here.
        super().__init__(autocast=False, **kwargs)

    def call(self, inputs, mask=None, training=None, moments=None):
        x = statistics.to_float32(inputs)
        mean, variance = self.moving_mean, self.moving_variance
        if training and self.trainable:
            if moments is None:
                moments = frame_moments(x, mask)
            for moving, new in zip((mean, variance), moments, strict=True):
                moving.assign(moving + (1 - self.momentum) * (new - moving))
            mean, variance = moments
        scale = self.gamma * ops.rsqrt(variance + self.epsilon)
        x = x * scale + (self.beta - mean * scale)
        return ops.cast(x, self.compute_dtype)


def frame_moments(x, mask=None):
    """Computes mean and variance of each channel over the real frames.

    Args:
        x: floating tensor `(batch, time, bands, channels)`, without NaN or
            infinity in padding.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.

    Returns:
        Pair of tensors `(channels,)`, float32 or better; zero where no frame
        is real.
    """
    x = statistics.to_float32(x)
    if mask is None:
        return ops.moments(x, axes=[0, 1, 2])
    frames = ops.maximum(ops.sum(ops.cast(mask, x.dtype)), 1)
    count = frames * ops.cast(ops.shape(x)[2], x.dtype)

    def mean(values):
        sums = masks.zero_padding(ops.sum(values, axis=2), mask)
        return ops.sum(sums, axis=(0, 1)) / count

    center = mean(x)
    return center, mean(ops.square(x - center))
