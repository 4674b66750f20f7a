"""Batch normalisation by the statistics of real frames only."""

import keras
from keras import ops

from audio_tf.ops import statistics

# PyTorch's defaults. Keras' own momentum of 0.99 takes hundreds of updates to
# forget how the statistics began, which is long for a small corpus.
MOMENTUM = 0.9
EPSILON = 1e-5


class MaskedBatchNormalization(keras.layers.BatchNormalization):
    """Batch normalisation of `(B, T, F, C)` over the real frames of a batch.

    Weights and results are those of `keras.layers.BatchNormalization` with a
    mask. That one passes eight times over its inputs to tell real frames from
    padding; this one looks at the mask where bands are summed already.

    Args:
        trainable: bool. If False, what was learned normalises, in training too.
        dtype: dtype policy.
        name: str, or `None`.

    Call arguments:
        inputs: floating tensor `(batch, time, bands, channels)`, without NaN
            or infinity in padding.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether the batch's statistics normalise.
        moments: `statistics.frame_moments(inputs, mask)` of a caller that has
            them, or `None`.
    """

    def __init__(self, trainable=True, dtype=None, name=None):
        super().__init__(
            momentum=MOMENTUM,
            epsilon=EPSILON,
            trainable=trainable,
            dtype=dtype,
            name=name,
            # Half precision would lose the digits of `moments`.
            autocast=False,
        )

    def call(self, inputs, mask=None, training=None, moments=None):
        x = statistics.to_float32(inputs)
        mean, variance = self.moving_mean, self.moving_variance
        if training and self.trainable:
            if moments is None:
                moments = statistics.frame_moments(x, mask)
            for moving, new in zip((mean, variance), moments, strict=True):
                moving.assign(moving + (1 - self.momentum) * (new - moving))
            mean, variance = moments
        scale = self.gamma * ops.rsqrt(variance + self.epsilon)
        x = x * scale + (self.beta - mean * scale)
        return ops.cast(x, self.compute_dtype)

    def get_config(self):
        config = super().get_config()
        return {name: config[name] for name in ("trainable", "dtype", "name")}
