"""Attention to few keys, chosen by locality-sensitive hashing (LSH).

Equation 3 ranks keys by one random projection, upwards for queries on one
side of it and downwards for those on the other. So a head has only two lists
of candidates, whatever the query: both are gathered once, and each query
takes the one on its side. That is `O(time * candidates)`, where the paper's
hashing is `O(time^2)`.
"""

import keras
from keras import ops

from audio_tf.attention import functional
from audio_tf.attention.self_attention import SelfAttention
from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import (
    check_flags,
    check_seeds,
    check_sizes,
    is_number,
)


class HashedAttention(SelfAttention):
    """Each query attends to the `C` keys at its end of a random projection.

    `top C` of `a^T R(k)` if `a^T S(q) >= 0`, else of `-a^T R(k)`: equations 2
    and 3 of "Input-independent Attention Weights Are Expressive Enough"
    (arXiv 2006.05174), then `softmax(q k^T / sqrt(D))` over those. A subclass
    gives the transforms: `scale(limit)` for `T` and `tails(...)` for what `S`
    and `R` append. There is no gradient through the choice.

    The paper leaves open, and here is:

    - `X`, whose largest norm is `M`: the real frames of one clip in one head,
      keys for `R` and queries for `S`;
    - `a`: drawn once for each head and kept; `resample=True` draws a new one
      at every training step;
    - `C`: 16 for inputs of any length, fewer than a sparse pattern's for the
      500 frames of its figure 5; its Table 1 has it as a constant, so
      `sizes_for` does not change it;
    - whether keys of the other sign may be among the `C`: they may, as in
      equation 3; `require_match=True` leaves them out, as its text has it;
    - the rest: has no weight; see `literal_mask`.

    Args:
        num_heads: int, the number of heads.
        key_dim: int, the size `D` of each head.
        num_candidates: int, the number `C` of keys that a query attends to.
        shared_qk: bool. If True, as in the paper, keys are queries.
        require_match: bool, whether a key must have the hash of the query.
        resample: bool, whether training draws hash vectors anew; a frozen
            layer does not.
        literal_mask: bool. If True, what is not chosen keeps the score 0 and
            so the weight `exp(0)`. Takes no dropout.
        seed: int or `None`, seed of the hash vectors. Of one that is given
            to a model each block makes its own, so that blocks differ, as
            without any.
        **kwargs: further arguments of `SelfAttention`. It cannot be causal:
            later keys would push earlier ones out of the lists.

    Call arguments and errors are those of `SelfAttention`.
    """

    supports_causal = False
    complexity = "O(L C D)"
    num_tails = 1

    def __init__(
        self,
        num_heads,
        key_dim,
        num_candidates=16,
        shared_qk=True,
        require_match=False,
        resample=False,
        literal_mask=False,
        seed=None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_sizes(num_candidates=num_candidates)
        check_flags(
            shared_qk=shared_qk,
            require_match=require_match,
            resample=resample,
            literal_mask=literal_mask,
        )
        functional.check_literal_mask(literal_mask, self.dropout)
        check_seeds(seed=seed)
        self.num_candidates = num_candidates
        self.shared_qk = shared_qk
        self.require_match = require_match
        self.resample = resample
        self.literal_mask = literal_mask
        self.seed = seed
        if resample:
            self.seed_generator = keras.random.SeedGenerator(seed)

    @property
    def paper_sizes(self):
        return {"num_candidates": self.num_candidates}

    def scale(self, limit):
        """Returns the factor of `T`, given the largest norm `(B, H, 1)`."""
        return ops.ones_like(limit)

    def tails(self, squared_norm, squared_limit):
        """Returns the features that `S` and `R` append, two lists of
        `num_tails`.

        Args:
            squared_norm: `(B, H, T)`, of the transformed vectors.
            squared_limit: `(B, H, 1)`, the largest of them.

        Returns:
            Tensors `(B, H, T)`, or `None` for zeros.
        """
        raise NotImplementedError  # abstract

    def build_projections(self, input_shape):
        super().build_projections(input_shape)
        self.hash_vectors = self.add_weight(
            shape=(self.num_heads, self.key_dim + self.num_tails),
            initializer=keras.initializers.RandomNormal(
                stddev=1.0, seed=self.seed
            ),
            trainable=False,
            autocast=False,
            dtype="float32",
            name="hash_vectors",
        )

    def projections(self, x, real, vectors):
        """Computes `a^T S(x)` and `a^T R(x)` of `(B, H, T, D)`, each `(B, H,
        T)`.
        """
        x = ops.cast(ops.stop_gradient(x), "float32")
        squared_norm = ops.sum(ops.square(x), axis=-1)
        squared_limit = ops.max(
            ops.where(real, squared_norm, 0.0),
            axis=-1,
            keepdims=True,
            initial=0.0,  # For an empty batch.
        )
        scale = self.scale(ops.sqrt(squared_limit))
        direction = ops.expand_dims(vectors[:, : self.key_dim], 1)  # (H, 1, D)
        common = ops.sum(x * direction, axis=-1) * scale
        scale = ops.square(scale)
        for_query = for_key = common
        query_tails, key_tails = self.tails(
            squared_norm * scale, squared_limit * scale
        )
        for index in range(self.num_tails):
            tail = ops.expand_dims(vectors[:, self.key_dim + index], 1)
            if query_tails[index] is not None:
                for_query = for_query + tail * query_tails[index]
            if key_tails[index] is not None:
                for_key = for_key + tail * key_tails[index]
        return for_query, for_key

    def attend(self, query, key, value, mask, training):
        vectors = self.hash_vectors
        if self.resample and training and self.trainable:
            vectors = keras.random.normal(
                vectors.shape, seed=self.seed_generator
            )
        real = ops.ones_like(query[:, :1, :, 0], dtype="bool")
        if mask is not None:
            real = ops.expand_dims(mask, 1)  # (B, 1, T)
        for_query, for_key = self.projections(key, real, vectors)
        if not self.shared_qk:
            for_query, _ = self.projections(query, real, vectors)
        indices, chosen = self.candidates(for_key, real)
        upper = ops.expand_dims(for_query >= 0.0, 3)  # (B, H, T, 1)
        in_upper = ops.arange(2 * self.num_candidates) < self.num_candidates
        chosen = masks.combine(
            ops.expand_dims(chosen, 2), ops.equal(upper, in_upper)
        )
        scores = functional.dot_product_scores(
            query, blocks.gather(key, indices)
        )  # (B, H, T, 2 C)
        kept = blocks.gather(value, indices)
        if not self.literal_mask:
            return self.mix(scores, kept, chosen, training)
        return functional.mix_with_rest(
            scores, kept, chosen, *functional.rest_of(value, mask, False)
        )

    def candidates(self, for_key, real):
        """Chooses the keys of largest, then those of smallest projection.

        Returns:
            Positions `(B, H, 2 C)`, and whether each stands for a key: a
            short clip has fewer than `C`.
        """
        ranks = ops.stack([for_key, -for_key], axis=2)  # (B, H, 2, T)
        ranks = ops.where(ops.expand_dims(real, 2), ranks, -float("inf"))
        ranks = ops.pad(
            ranks,
            [[0, 0], [0, 0], [0, 0], [0, self.num_candidates]],
            constant_values=-float("inf"),
        )
        ranks, indices = ops.top_k(ranks, self.num_candidates)
        chosen = ranks > -float("inf")
        if self.require_match:
            # Zero has the hash of the upper list alone.
            upper, lower = ops.split(ranks, 2, axis=2)
            chosen = ops.concatenate([upper >= 0.0, lower > 0.0], axis=2)
        last = ops.cast(ops.shape(for_key)[2] - 1, "int32")
        indices = ops.minimum(ops.cast(indices, "int32"), last)
        shape = (-1, self.num_heads, 2 * self.num_candidates)
        return ops.reshape(indices, shape), ops.reshape(chosen, shape)

    def mechanism_cost(self, length, dim):
        units = self.num_heads * self.key_dim
        products = (1 if self.shared_qk else 2) * length * dim * units
        weights = self.num_heads * length * 2 * self.num_candidates
        return products + 2 * weights * self.key_dim, weights

    def get_config(self):
        return {
            **super().get_config(),
            "num_candidates": self.num_candidates,
            "shared_qk": self.shared_qk,
            "require_match": self.require_match,
            "resample": self.resample,
            "literal_mask": self.literal_mask,
            "seed": self.seed,
        }


def complement(squared_norm, squared_limit):
    """Computes `sqrt(M^2 - ||x||^2)`; padding may lie beyond the limit."""
    return ops.sqrt(ops.maximum(squared_limit - squared_norm, 0.0))


@keras.saving.register_keras_serializable("audio_tf")
class SignALSHAttention(HashedAttention):
    """Sign-ALSH: `R` appends `1/2 - ||x||^(2^i)` for `i = 1 ... m`.

    `T(x) = U x / M`, `S(x) = [x; 0; ...; 0]`: equations 4 to 6 of
    "Input-independent Attention Weights Are Expressive Enough"
    (arXiv 2006.05174).

    Args:
        num_heads: int, the number of heads.
        key_dim: int, the size of each head.
        norm_bound: float, `U`, the largest norm after `T`, in (0, 1).
        num_powers: int, `m`.
        **kwargs: further arguments of `HashedAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.SignALSHAttention(
        ...     num_heads=2, key_dim=8, norm_bound=0.75, num_powers=3
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    def __init__(
        self, num_heads, key_dim, norm_bound=0.75, num_powers=2, **kwargs
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_sizes(num_powers=num_powers)
        if not (is_number(norm_bound) and 0.0 < norm_bound < 1.0):
            raise ValueError(
                "`norm_bound` must be a number between 0 and 1. "
                f"Received: norm_bound={norm_bound!r}"
            )
        self.norm_bound = norm_bound
        self.num_powers = num_powers

    @property
    def num_tails(self):
        """The number of features that are appended to queries and keys."""
        return self.num_powers

    def scale(self, limit):
        return self.norm_bound * inverse(limit)

    def tails(self, squared_norm, squared_limit):
        powers, power = [], squared_norm
        for _ in range(self.num_powers):
            powers.append(0.5 - power)
            power = ops.square(power)
        return [None] * self.num_powers, powers

    def get_config(self):
        return {
            **super().get_config(),
            "norm_bound": self.norm_bound,
            "num_powers": self.num_powers,
        }


@keras.saving.register_keras_serializable("audio_tf")
class XBOXAttention(HashedAttention):
    """XBOX: `S(x) = [x; 0]`, `R(x) = [x; sqrt(M^2 - ||x||^2)]`.

    Equations 7 and 8 of "Input-independent Attention Weights Are Expressive
    Enough" (arXiv 2006.05174). Arguments are those of `HashedAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.XBOXAttention(
        ...     num_heads=2, key_dim=8, num_candidates=4
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    def tails(self, squared_norm, squared_limit):
        return [None], [complement(squared_norm, squared_limit)]


@keras.saving.register_keras_serializable("audio_tf")
class XBOXQNFAttention(XBOXAttention):
    """XBOX with the query normalised first (QNF): `S(x) = [M x / ||x||; 0]`.

    Equations 13 and 14 of "Input-independent Attention Weights Are Expressive
    Enough" (arXiv 2006.05174). A positive factor leaves a sign as it is, so
    that for the same hash vectors this is `XBOXAttention`, and nothing is
    computed for it. Arguments are those of `HashedAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.XBOXQNFAttention(
        ...     num_heads=2, key_dim=8, num_candidates=4
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """


@keras.saving.register_keras_serializable("audio_tf")
class SimpleLSHAttention(HashedAttention):
    """Simple LSH: `S(x) = R(x) = [x; sqrt(1 - ||x||^2)]`, `T(x) = x / M`.

    Equations 9 and 10 of "Input-independent Attention Weights Are Expressive
    Enough" (arXiv 2006.05174). Arguments are those of `HashedAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.SimpleLSHAttention(
        ...     num_heads=2, key_dim=8, num_candidates=4
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    def scale(self, limit):
        return inverse(limit)

    def tails(self, squared_norm, squared_limit):
        tail = complement(squared_norm, 1.0)
        return [tail], [tail]


@keras.saving.register_keras_serializable("audio_tf")
class SimpleALSHAttention(HashedAttention):
    """Simple ALSH: each side has its own place for `sqrt(1 - ||x||^2)`.

    `S(x) = [x; 0; sqrt(1 - ||x||^2)]`, `R(x) = [x; sqrt(1 - ||x||^2); 0]`,
    `T(x) = x / M`: equations 9, 11 and 12 of "Input-independent Attention
    Weights Are Expressive Enough" (arXiv 2006.05174). Arguments are those of
    `HashedAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.SimpleALSHAttention(
        ...     num_heads=2, key_dim=8, num_candidates=4
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    num_tails = 2

    def scale(self, limit):
        return inverse(limit)

    def tails(self, squared_norm, squared_limit):
        tail = complement(squared_norm, 1.0)
        return [None, tail], [tail, None]


def inverse(limit):
    """Computes `1 / limit`, finite for a clip of zeros."""
    return 1.0 / ops.maximum(limit, 1e-12)
