"""Attention by dot products of queries and keys, each with each."""

import keras
from keras import ops

from audio_tf import compat
from audio_tf.attention import functional
from audio_tf.attention.self_attention import SelfAttention
from audio_tf.ops import statistics
from audio_tf.ops.checks import check_flags, check_sizes

# Reformer's: finite, so that a frame alone still sees itself.
SELF_SCORE = -1e5
KEY_NORM_EPSILON = 1e-6


class DotProductAttention(SelfAttention):
    """The base of attentions whose scores are products of query and key alone.

    On a GPU, JAX has a kernel that attends without forming the map
    ("FlashAttention", arXiv 2205.14135), in less time and in memory
    `O(time)`. It takes float16 and bfloat16, so a mixed precision policy.

    Args:
        num_heads: int, the number of heads.
        key_dim: int, the size of each head.
        flash_attention: bool or `None`. `None` takes that kernel where the
            backend, the device and the dtype have it, dropout is not at work
            and `keras.config.disable_flash_attention()` was not called;
            True fails where it cannot be had.
        **kwargs: further arguments of `SelfAttention`.

    Call arguments and errors are those of `SelfAttention`; a `ValueError`
    too if `flash_attention=True` is asked for with dropout.
    """

    takes_flash_attention = True

    def __init__(self, num_heads, key_dim, flash_attention=None, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        if flash_attention is not None:
            check_flags(flash_attention=flash_attention)
        if flash_attention and self.dropout:
            raise ValueError(
                "`dropout` must be 0 with `flash_attention=True`, which forms "
                f"no weights to drop. Received: dropout={self.dropout}"
            )
        self.flash_attention = flash_attention

    @property
    def scores_are_products(self):
        """Whether no subclass scores otherwise, which no kernel would heed."""
        return self.has_of(SelfAttention, "scores", "score_mask", "mix")

    def uses_flash(self, query, key, value, training):
        # Values of other sizes are the identity, by which the map is read.
        if not self.scores_are_products or value.shape[-1] != self.key_dim:
            return False
        if self.flash_attention is not None:
            return self.flash_attention
        if self.dropout and training:
            return False
        return compat.has_flash_attention(query, key, value)

    def get_config(self):
        return {
            **super().get_config(),
            "flash_attention": self.flash_attention,
        }


@keras.saving.register_keras_serializable("audio_tf")
class FullAttention(DotProductAttention):
    """Full attention: every frame attends to every frame.

    `softmax(Q K^T / sqrt(D)) V` with `D` the size of a head; equation 1 of
    "Input-independent Attention Weights Are Expressive Enough"
    (arXiv 2006.05174), where it is "Baseline (QK)". Takes time and memory
    `O(time^2)`.

    Arguments, call arguments and errors are those of `DotProductAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.FullAttention(num_heads=2, key_dim=8, causal=True)
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    complexity = "O(L^2 D)"


@keras.saving.register_keras_serializable("audio_tf")
class SharedQKAttention(DotProductAttention):
    """Full attention whose keys are its queries.

    `softmax(Q Q^T / sqrt(D)) V`: "Baseline (Q)" of "Input-independent
    Attention Weights Are Expressive Enough" (arXiv 2006.05174), in the form
    of its authors' code: no normalised keys, and a frame may attend to
    itself. Both of Reformer's refinements (arXiv 2001.04451) are arguments.

    Args:
        num_heads: int, the number of heads.
        key_dim: int, the size of each head.
        normalize_keys: bool. If True, keys are divided by their root mean
            square, as in Reformer.
        mask_self: bool. If True, a frame attends to itself only where there
            is nothing else, as in Reformer.
        **kwargs: further arguments of `DotProductAttention`.

    Call arguments and errors are those of `DotProductAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.SharedQKAttention(
        ...     num_heads=2, key_dim=8, mask_self=True
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    complexity = "O(L^2 D)"
    shared_qk = True

    def __init__(
        self,
        num_heads,
        key_dim,
        normalize_keys=False,
        mask_self=False,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_flags(normalize_keys=normalize_keys, mask_self=mask_self)
        if mask_self and self.flash_attention:
            raise ValueError(
                "`mask_self` must be False with `flash_attention=True`, which "
                f"scores every pair alike. Received: mask_self={mask_self}"
            )
        self.normalize_keys = normalize_keys
        self.mask_self = mask_self

    @property
    def rows_are_independent(self):
        """Whether no row of scores depends on the place of its query."""
        return self.has_of(SharedQKAttention, "scores") and not self.mask_self

    @property
    def scores_are_products(self):
        """Whether a frame's own score is one as all others."""
        kept = self.has_of(SharedQKAttention, "scores", "score_mask", "mix")
        return kept and not self.mask_self

    def project(self, inputs):
        query, key = super().project(inputs)
        if self.normalize_keys:
            power = statistics.to_float32(key)
            power = ops.mean(ops.square(power), axis=-1, keepdims=True)
            scale = ops.rsqrt(power + KEY_NORM_EPSILON)
            key = key * ops.cast(scale, key.dtype)
        return query, key

    def scores(self, query, key):
        scores = super().scores(query, key)
        if not self.mask_self:
            return scores
        scores = statistics.to_float32(scores)
        itself = ops.eye(ops.shape(scores)[-1], dtype="bool")
        return ops.where(itself, ops.cast(SELF_SCORE, scores.dtype), scores)

    def get_config(self):
        return {
            **super().get_config(),
            "normalize_keys": self.normalize_keys,
            "mask_self": self.mask_self,
        }


@keras.saving.register_keras_serializable("audio_tf")
class GroupedQueryAttention(DotProductAttention):
    """Full attention in which groups of query heads share keys and values.

    Query head `h` of `H` meets key and value head `h // (H / G)` of `G`:
    section 2.2 of "GQA" (arXiv 2305.13245), used by "Gaussian Adaptive
    Attention Is All You Need" (arXiv 2401.11143). `G = 1` is multi-query
    attention, `G = H` full attention. Saves projections and, in memory, keys
    and values; time stays `O(time^2)`.

    Args:
        num_heads: int, the number `H` of query heads.
        key_dim: int, the size of each head.
        num_key_value_heads: int, the number `G`; divides `num_heads`.
        **kwargs: further arguments of `DotProductAttention`.

    Call arguments and errors are those of `DotProductAttention`; a `ValueError`
    too if `num_key_value_heads` does not divide `num_heads`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.GroupedQueryAttention(
        ...     num_heads=4, key_dim=8, num_key_value_heads=2
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    complexity = "O(L^2 D)"

    def __init__(self, num_heads, key_dim, num_key_value_heads=1, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        check_sizes(num_key_value_heads=num_key_value_heads)
        if num_heads % num_key_value_heads:
            raise ValueError(
                "`num_key_value_heads` must divide `num_heads`. Received: "
                f"num_key_value_heads={num_key_value_heads}, "
                f"num_heads={num_heads}"
            )
        self.num_key_value_heads = num_key_value_heads

    @property
    def value_heads(self):
        return self.num_key_value_heads

    @property
    def value_dim(self):
        return self.num_key_value_heads * self.key_dim

    def build_projections(self, input_shape):
        units = self.num_heads * self.key_dim
        self.query_dense = self.dense(units, "query", input_shape)
        self.key_dense = self.dense(self.value_dim, "key", input_shape)

    def project(self, inputs):
        return (
            functional.split_heads(self.query_dense(inputs), self.num_heads),
            functional.split_heads(
                self.key_dense(inputs), self.num_key_value_heads
            ),
        )

    def attend_rows(self, query, key, value, mask, training):
        # A group's queries as rows of one product: nothing is repeated.
        rows = ops.shape(query)[2]
        group = self.num_heads // self.num_key_value_heads
        query = ops.reshape(
            query, (-1, self.num_key_value_heads, group * rows, self.key_dim)
        )
        if mask is not None and mask.shape[-2] != 1:
            mask = ops.concatenate([mask] * group, axis=-2)
        mixed = super().attend_rows(query, key, value, mask, training)
        return ops.reshape(
            mixed, (-1, self.num_heads, rows, ops.shape(mixed)[-1])
        )

    def mechanism_cost(self, length, dim):
        units = self.num_heads * self.key_dim
        projections = length * dim * (units + self.value_dim)
        return projections + 2 * length**2 * units, self.num_heads * length**2

    def get_config(self):
        return {
            **super().get_config(),
            "num_key_value_heads": self.num_key_value_heads,
        }
