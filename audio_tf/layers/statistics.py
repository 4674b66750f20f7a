"""Pooling of frames into more than their mean: deviations, learned weights."""

import keras
from keras import ops

from audio_tf.attention import functional
from audio_tf.ops import masks, statistics
from audio_tf.ops.checks import check_flags, check_sizes
from audio_tf.ops.layer import FRAMES, Layer

# A root has no gradient at 0, where the deviation of a single frame is.
LEAST_VARIANCE = 1e-10


def moments(inputs, weights):
    """Computes the weighted mean and standard deviation over time.

    Args:
        inputs: tensor `(batch, time, dim)`, finite.
        weights: tensor that broadcasts to it and sums to 1 over time, or to
            0 for a clip without a real frame, whose moments are zeros.

    Returns:
        Pair of `(batch, dim)`.
    """
    mean = ops.sum(weights * inputs, axis=1, keepdims=True)
    variance = ops.sum(weights * ops.square(inputs - mean), axis=1)
    deviation = ops.sqrt(ops.maximum(variance, LEAST_VARIANCE))
    deviation = ops.where(variance > LEAST_VARIANCE, deviation, 0.0)
    return ops.squeeze(mean, 1), deviation


class FramePooling(Layer):
    """The base of poolings of `(batch, time, dim)` to `(batch, features)`.

    A subclass gives `weights_of(inputs, mask)`, the weight of each frame. The
    layer computes weighted moments in float32 or better. Padding plays no
    part, even if it holds NaN; a clip without a real frame gives zeros.

    Args:
        include_deviation: bool, whether the standard deviations of the
            features follow their means, which makes `2 dim` of `dim`.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
    """

    first_input = FRAMES

    def __init__(self, include_deviation=True, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        check_flags(include_deviation=include_deviation)
        self.include_deviation = include_deviation

    def compute_mask(self, inputs, mask=None):
        return None

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones_like(inputs[:, :, 0], dtype="bool")
        mask = ops.cast(mask, "bool")
        inputs = masks.zero_padding(inputs, mask)
        weights = self.weights_of(inputs, ops.expand_dims(mask, -1))
        x = statistics.to_float32(inputs)
        mean, deviation = moments(x, ops.cast(weights, x.dtype))
        if self.include_deviation:
            mean = ops.concatenate([mean, deviation], axis=-1)
        return ops.cast(mean, self.compute_dtype)

    def weights_of(self, inputs, mask):
        """Computes the weights of the frames.

        Args:
            inputs: tensor `(batch, time, dim)`, zeros at padded frames.
            mask: boolean `(batch, time, 1)`, True where a frame is real.

        Returns:
            Tensor `(batch, time, 1 or dim)` that sums to 1 over the real
            frames and is 0 elsewhere.
        """
        raise NotImplementedError  # abstract

    def compute_output_spec(self, inputs, mask=None):
        batch, _, dim = inputs.shape
        dim = 2 * dim if self.include_deviation else dim
        return keras.KerasTensor((batch, dim), dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "include_deviation": self.include_deviation,
        }


@keras.saving.register_keras_serializable("audio_tf")
class StatisticsPooling(FramePooling):
    """A pooling to mean and standard deviation of the real frames.

    It is the pooling of x-vectors (Snyder et al., "Deep neural network
    embeddings for text-independent speaker verification", 2017).

    Args:
        **kwargs: arguments of `FramePooling`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frames = np.array([[[1.0], [3.0], [99.0]]], "float32")
        >>> pool = layers.StatisticsPooling()  # means, then deviations
        >>> pooled = pool(frames, mask=np.array([[True, True, False]]))
        >>> [round(float(each), 2) for each in pooled[0]]
        [2.0, 1.0]
    """

    def weights_of(self, inputs, mask):
        real = ops.cast(mask, "float32")
        return real / ops.maximum(ops.sum(real, axis=1, keepdims=True), 1.0)


@keras.saving.register_keras_serializable("audio_tf")
class AttentionPooling(FramePooling):
    """A pooling to mean and deviation of frames by weights that it learns.

    "Attentive Statistics Pooling for Deep Speaker Embedding" (arXiv
    1803.10963), equations 3 to 6, with heads:

        e[t] = V tanh(W x[t] + b),  w = softmax of e over the real frames

    Head `h` weights the `h`-th share of the features. The bias behind `V` is
    left out: softmax does not see it.

    Args:
        num_heads: int, the sets of weights; divides the features.
        attention_dim: int, the rows of `W`.
        **kwargs: arguments of `FramePooling`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> pool = layers.AttentionPooling(num_heads=2, attention_dim=8)
        >>> tuple(pool(np.zeros((1, 12, 16), "float32")).shape)
        (1, 32)
    """

    def __init__(self, num_heads=4, attention_dim=64, **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_heads=num_heads, attention_dim=attention_dim)
        self.num_heads = num_heads
        self.attention_dim = attention_dim
        self.hidden_dense = keras.layers.Dense(
            attention_dim, "tanh", dtype=self.dtype_policy, name="hidden"
        )
        self.score_dense = keras.layers.Dense(
            num_heads, use_bias=False, dtype=self.dtype_policy, name="scores"
        )

    def build(self, input_shape):
        if input_shape[-1] % self.num_heads:
            raise ValueError(
                "`num_heads` must divide the features. Received: "
                f"num_heads={self.num_heads}, features={input_shape[-1]}"
            )
        self.hidden_dense.build(input_shape)
        self.score_dense.build((*input_shape[:-1], self.attention_dim))

    def weights_of(self, inputs, mask):
        scores = self.score_dense(self.hidden_dense(inputs))
        scores = ops.transpose(scores, (0, 2, 1))  # (B, H, T)
        scores = statistics.to_float32(scores)
        weights = functional.softmax_weights(
            scores, ops.transpose(mask, (0, 2, 1))
        )
        weights = ops.transpose(weights, (0, 2, 1))
        # Without a real frame they come out uniform.
        weights = ops.where(mask, weights, 0.0)
        share = inputs.shape[-1] // self.num_heads
        return ops.repeat(weights, share, axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "attention_dim": self.attention_dim,
        }
