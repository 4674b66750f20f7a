"""Full attention whose scores have a bias by the distance of two frames."""

import functools
import math

import keras
import numpy as np
from keras import ops

from audio_tf.attention.self_attention import SelfAttention
from audio_tf.ops.checks import check_sizes
from audio_tf.ops.layer import Layer

# Each of a gate's two numbers is the sum of so many units.
UNITS_OF_A_GATE = 4


@functools.lru_cache(maxsize=8)
def buckets_of_distances(num_buckets, max_distance):
    """Sorts the distances of two frames into buckets.

    Half of the buckets hold one distance each, the others ranges that grow
    with the distance: the relative positions of T5 (arXiv 1910.10683).

    Args:
        num_buckets: int, the buckets of one direction.
        max_distance: int, the distance from which on all are alike.

    Returns:
        Int32 array `(max_distance + 1,)`, the bucket of each distance.
    """
    exact = num_buckets // 2
    distances = np.arange(max_distance + 1)
    far = np.maximum(distances, exact) / exact
    # In float32, as in the code of the authors.
    share = np.log(far.astype("float32")) / np.float32(
        math.log(max_distance / exact)
    )
    ranged = exact + (share * (num_buckets - exact)).astype("int32")
    buckets = np.where(distances < exact, distances, ranged)
    return np.minimum(buckets, num_buckets - 1).astype("int32")


def check_buckets(num_buckets, max_distance):
    """Raises a `ValueError` if distances cannot be sorted into the buckets."""
    check_sizes(num_buckets=num_buckets, max_distance=max_distance)
    if num_buckets % 4 or max_distance <= num_buckets // 4:
        raise ValueError(
            "`num_buckets` must be a multiple of 4, and `max_distance` more "
            f"than a quarter of it. Received: num_buckets={num_buckets}, "
            f"max_distance={max_distance}"
        )


@keras.saving.register_keras_serializable("audio_tf")
class RelativePositions(Layer):
    """A table of one number for each head and range of distances.

    Args:
        num_heads: int, the number of heads.
        num_buckets: int, the ranges of distances, for later frames half.
        max_distance: int, frames; all that are as far or farther are alike.
        **kwargs: arguments of `keras.layers.Layer`.

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(self, num_heads, num_buckets=320, max_distance=800, **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_heads=num_heads)
        check_buckets(num_buckets, max_distance)
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance

    def build(self, input_shape=None):
        self.table = self.add_weight(
            shape=(self.num_buckets, self.num_heads),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
            name="table",
        )

    def between(self, length):
        """Looks up the number of each pair of frames.

        Args:
            length: integer or scalar tensor, the number of frames.

        Returns:
            Tensor `(num_heads, length, length)`, query by key.
        """
        half = self.num_buckets // 2
        lags = ops.arange(2 * length - 1, dtype="int32") - (length - 1)
        known = buckets_of_distances(half, self.max_distance)
        buckets = ops.take(
            known, ops.minimum(ops.abs(lags), self.max_distance), axis=0
        )
        buckets = buckets + ops.where(lags > 0, half, 0)
        # Along another axis than the first, so that its gradient is dense.
        table = ops.transpose(ops.convert_to_tensor(self.table))
        bias = ops.take(table, buckets, axis=1)
        # Cut one shorter than it is, a row that repeats itself moves by one
        # from query to query: no gather of `length^2` numbers.
        bias = ops.expand_dims(ops.pad(bias, [[0, 0], [0, 1]]), 1)
        bias = ops.broadcast_to(bias, (self.num_heads, length, 2 * length))
        bias = ops.reshape(bias, (self.num_heads, 2 * length * length))
        bias = bias[:, : length * (2 * length - 1)]
        bias = ops.reshape(bias, (self.num_heads, length, 2 * length - 1))
        return bias[:, :, length - 1 :]

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
        }


@keras.saving.register_keras_serializable("audio_tf")
class GatedRelativeAttention(SelfAttention):
    """Full attention with a gated relative position bias, that of WavLM.

    `softmax(Q K^T / sqrt(D) + r d)`, where `d` is one learned number for
    each head and range of distances, query to key, and `r` a gate for each
    query and head: section 3.1 of "WavLM" (arXiv 2110.13900), in the form of
    its authors' code. From the part `x` of the input that is of the head,
    `a` and `b` are the sigmoids of two learned sums, and
    `r = a (b s - 1) + 2` with a learned `s` for each head, 1 at first.

    In a model of several blocks, `share` gives all of them the table of the
    first, as in WavLM. Takes time and memory `O(time^2)`, and never less:
    the map of inputs of any length is held whole.

    Args:
        num_heads: int, the number of heads, which divides the features of the
            input.
        key_dim: int, the size of each head.
        num_buckets: int, ranges of distances that are told apart, half of
            them for later frames; a multiple of 4.
        max_distance: int, frames; all that are as far or farther are alike.
        **kwargs: further arguments of `SelfAttention`.

    Call arguments and errors are those of `SelfAttention`; a `ValueError`
    too if `num_heads` does not divide the features of an input.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.GatedRelativeAttention(
        ...     num_heads=2, key_dim=8, num_buckets=32, max_distance=64
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    complexity = "O(L^2 D)"

    def __init__(
        self, num_heads, key_dim, num_buckets=320, max_distance=800, **kwargs
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_buckets(num_buckets, max_distance)
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.positions = None

    def share(self, first):
        self.positions = first.positions

    def check_shape(self, shape):
        super().check_shape(shape)
        if shape[-1] is not None and shape[-1] % self.num_heads:
            raise ValueError(
                "`num_heads` must divide the features of the input. "
                f"Received: num_heads={self.num_heads}, shape={tuple(shape)}"
            )

    def build_projections(self, input_shape):
        super().build_projections(input_shape)
        part = input_shape[-1] // self.num_heads
        self.gate_dense = self.dense(
            2 * UNITS_OF_A_GATE, "gate", (None, None, part)
        )
        self.gate_scale = self.add_weight(
            shape=(self.num_heads, 1, 1), initializer="ones", name="gate_scale"
        )
        if self.positions is None:
            self.positions = RelativePositions(
                self.num_heads,
                self.num_buckets,
                self.max_distance,
                dtype=self.dtype_policy,
                name="positions",
            )
            self.positions.build()

    def project(self, inputs):
        query, key = super().project(inputs)
        # The gate of a query goes along as its last feature.
        return ops.concatenate([query, self.gates(inputs)], axis=-1), key

    def gates(self, inputs):
        """Computes the gate of each query: `(B, T, F)` to `(B, H, T, 1)`."""
        _, length, dim = ops.shape(inputs)
        parts = ops.reshape(
            inputs, (-1, length * self.num_heads, dim // self.num_heads)
        )
        sums = ops.reshape(
            self.gate_dense(parts),
            (-1, length, self.num_heads, 2, UNITS_OF_A_GATE),
        )
        both = ops.sigmoid(ops.sum(sums, axis=-1))  # (B, T, H, 2)
        one, other = ops.split(ops.transpose(both, (0, 2, 1, 3)), 2, axis=-1)
        scale = ops.convert_to_tensor(self.gate_scale)
        return one * (other * scale - 1.0) + 2.0

    def scores(self, query, key):
        query, gates = ops.split(query, [self.key_dim], axis=-1)
        bias = self.positions.between(ops.shape(key)[2])
        return super().scores(query, key) + gates * ops.cast(bias, gates.dtype)

    def mechanism_cost(self, length, dim):
        products, weights = super().mechanism_cost(length, dim)
        return products + length * dim * 2 * UNITS_OF_A_GATE, weights

    def get_config(self):
        return {
            **super().get_config(),
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
        }
