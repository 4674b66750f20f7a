"""Sparse attention of the Sparse Transformer, by gathered blocks."""

import functools
from typing import Callable, NamedTuple

import keras
import numpy as np
from keras import ops

from audio_tf.attention import functional
from audio_tf.attention.self_attention import SelfAttention
from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import check_flags, check_sizes


class Pattern(NamedTuple):
    """A pattern as it lies in blocks; `V` is any feature size.

    Attributes:
        queries: function of `(B, H, T, V)` to `(B, H, N, R, V)`, whose blocks
            of `R` queries share their keys.
        keys: function of `(B, H, T, V)` to `(B, H, N or 1, S, V)`.
        allowed: boolean `(R, S)`, or `None` if all pairs are.
        restore: function of `(B, H, N, R, V)` to `(B, H, T, V)`.
    """

    queries: Callable
    keys: Callable
    allowed: object
    restore: Callable


def band(length, window, causal):
    """Returns the `Pattern` of the pairs with `|i - j| <= window`."""
    size = max(window, 1)
    right = 0 if causal else window
    distance = (
        np.arange(size)[:, np.newaxis]
        + window
        - np.arange(window + size + right)
    )
    return Pattern(
        functools.partial(blocks.cut, size=size),
        functools.partial(blocks.windows, size=size, left=window, right=right),
        (distance <= window) & (distance >= -right),
        functools.partial(blocks.join, length=length),
    )


def residues(length, stride, causal):
    """Returns the `Pattern` of the pairs with `(i - j) mod stride = 0`."""

    def arrange(x):
        return ops.swapaxes(blocks.cut(x, stride), 2, 3)

    return Pattern(
        arrange,
        arrange,
        masks.causal(blocks.count(length, stride)) if causal else None,
        lambda x: blocks.join(ops.swapaxes(x, 2, 3), length),
    )


def own_block(length, stride, causal):
    """Returns the `Pattern` of the pairs of one block of `stride` frames."""
    cut = functools.partial(blocks.cut, size=stride)
    return Pattern(
        cut,
        cut,
        np.tri(stride, dtype=bool) if causal else None,
        functools.partial(blocks.join, length=length),
    )


def last_columns(length, stride, count, causal):
    """Returns the `Pattern` of pairs with `j mod stride >= stride - count`."""

    def keys(x):
        x = blocks.narrow(blocks.cut(x, stride), 3, stride - count, count)
        shape = ops.shape(x)
        return ops.reshape(x, (-1, x.shape[1], 1, shape[2] * count, shape[4]))

    allowed = None
    if causal:
        padded = blocks.count(length, stride) * stride
        columns = ops.arange(padded, dtype="int32")
        columns = ops.reshape(columns, (-1, stride))[:, stride - count :]
        positions = ops.expand_dims(ops.arange(length, dtype="int32"), 1)
        allowed = ops.reshape(columns, (1, -1)) <= positions
    return Pattern(
        lambda x: ops.expand_dims(x, 2),
        keys,
        allowed,
        lambda x: ops.squeeze(x, 2),
    )


class SparseAttention(SelfAttention):
    """Half of the heads attend nearby, the other half to a sparse grid.

    Time is cut into blocks, and only blocks that a pattern touches are
    multiplied: `O(time^1.5)` for a `stride` near the square root of the
    length. A subclass gives `layouts(length)`, the pair of both halves.

    Args:
        num_heads: int, the number of heads, at least 2. The first
            `H - H // 2` attend nearby.
        key_dim: int, the size of each head.
        stride: int, the period `l` in frames. The papers take the square root
            of the length, and `sizes_for` that of the longest input. It is
            a number here, so that a clip has the same output alone and padded
            in a batch; the default suits about 1000 frames.
        shared_qk: bool. If True, as in the audio papers, keys are queries.
        literal_mask: bool. If False, what the pattern leaves out has no
            weight, as the papers' text has it. If True, its score is 0 and so
            its weight `exp(0)`: equation 15 of "Input-independent Attention
            Weights Are Expressive Enough" (arXiv 2006.05174) to the letter.
            Takes no dropout.
        **kwargs: further arguments of `SelfAttention`.

    Call arguments and errors are those of `SelfAttention`.
    """

    complexity = "O(L^1.5 D)"

    def __init__(
        self,
        num_heads,
        key_dim,
        stride=32,
        shared_qk=True,
        literal_mask=False,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_sizes(stride=stride)
        if num_heads < 2:
            raise ValueError(
                "`num_heads` must be at least 2, since heads are split "
                f"between two patterns. Received: num_heads={num_heads}"
            )
        check_flags(shared_qk=shared_qk, literal_mask=literal_mask)
        functional.check_literal_mask(literal_mask, self.dropout)
        self.stride = stride
        self.shared_qk = shared_qk
        self.literal_mask = literal_mask

    @classmethod
    def sizes_for(cls, length):
        return {"stride": max(round(length**0.5), 1)}

    def attend(self, query, key, value, mask, training):
        real = ops.ones_like(query[:, 0, :, 0], dtype="bool")
        real = masks.queries(real if mask is None else mask)
        second = self.num_heads // 2
        first = self.num_heads - second
        nearby, grid = self.layouts(ops.shape(query)[2])
        parts = []
        for pattern, start, count in (
            (nearby, 0, first),
            (grid, first, second),
        ):
            heads_query, heads_key, heads_value = (
                blocks.narrow(x, 1, start, count) for x in (query, key, value)
            )
            scores = functional.dot_product_scores(
                pattern.queries(heads_query), pattern.keys(heads_key)
            )
            kept = pattern.keys(heads_value)
            allowed = masks.combine(
                ops.swapaxes(pattern.keys(real), 3, 4), pattern.allowed
            )
            if self.literal_mask:
                rest, total = functional.rest_of(heads_value, mask, self.causal)
                arrange = pattern.queries if self.causal else _expand
                mixed = functional.mix_with_rest(
                    scores, kept, allowed, arrange(rest), arrange(total)
                )
            else:
                mixed = self.mix(scores, kept, allowed, training)
            parts.append(pattern.restore(mixed))
        return ops.concatenate(parts, axis=1)

    def mechanism_cost(self, length, dim):
        units = self.num_heads * self.key_dim
        products = (1 if self.shared_qk else 2) * length * dim * units
        second = self.num_heads // 2
        nearby, grid = self.pairs(length)
        weights = (self.num_heads - second) * nearby + second * grid
        return products + 2 * weights * self.key_dim, weights

    def get_config(self):
        return {
            **super().get_config(),
            "stride": self.stride,
            "shared_qk": self.shared_qk,
            "literal_mask": self.literal_mask,
        }


def _expand(x):
    return ops.expand_dims(x, 2)


@keras.saving.register_keras_serializable("audio_tf")
class StridedSparseAttention(SparseAttention):
    """Strided sparse attention: a local window, and every `stride`-th frame.

    Frame `i` attends to `|i - j| <= window` in the first heads and to
    `(i - j) mod stride = 0` in the others: section 3.3, figure 1b, of
    "Input-independent Attention Weights Are Expressive Enough"
    (arXiv 2006.05174), after section 4.3 of "Generating Long Sequences with
    Sparse Transformers" (arXiv 1904.10509).

    Args:
        num_heads: int, the number of heads, at least 2.
        key_dim: int, the size of each head.
        stride: int, the period in frames, see `SparseAttention`.
        window: int, how far the local heads look to either side, by default
            `stride` as in the paper's text. Its authors' code looks at
            `stride - 1` earlier frames.
        shared_qk: bool. If True, as in the audio papers, keys are queries.
        literal_mask: bool, see `SparseAttention`.
        **kwargs: further arguments of `SelfAttention`.

    Call arguments and errors are those of `SelfAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.StridedSparseAttention(
        ...     num_heads=2, key_dim=8, stride=4, window=2
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    def __init__(self, num_heads, key_dim, stride=32, window=None, **kwargs):
        super().__init__(num_heads, key_dim, stride, **kwargs)
        if window is None:
            window = stride
        if type(window) is not int or window < 0:
            raise ValueError(
                "`window` must be an integer of at least 0, or None. "
                f"Received: window={window!r}"
            )
        self.window = window

    def layouts(self, length):
        """Returns the band, and the residues of the stride, as `Pattern`s."""
        return (
            band(length, self.window, self.causal),
            residues(length, self.stride, self.causal),
        )

    def pairs(self, length):
        """Counts the pairs that are formed for both halves of the heads."""
        size = max(self.window, 1)
        sides = 1 if self.causal else 2
        in_class = -(-length // self.stride)
        return (
            -(-length // size) * size * (size + sides * self.window),
            self.stride * in_class**2,
        )

    def get_config(self):
        return {**super().get_config(), "window": self.window}


@keras.saving.register_keras_serializable("audio_tf")
class FixedSparseAttention(SparseAttention):
    """Fixed sparse attention: the own block, and each block's last frames.

    Frame `i` attends to `floor(i / stride) = floor(j / stride)` in the first
    heads and to `j mod stride >= stride - num_columns` in the others:
    section 3.3, figure 1c, of "Input-independent Attention Weights Are
    Expressive Enough" (arXiv 2006.05174), after section 4.3 of "Generating
    Long Sequences with Sparse Transformers" (arXiv 1904.10509).

    Args:
        num_heads: int, the number of heads, at least 2.
        key_dim: int, the size of each head.
        stride: int, frames of a block, see `SparseAttention`.
        num_columns: int, the last frames of each block that all attend to;
            the audio papers' costs have 1.
        shared_qk: bool. If True, as in the audio papers, keys are queries.
        literal_mask: bool, see `SparseAttention`.
        **kwargs: further arguments of `SelfAttention`.

    Call arguments and errors are those of `SelfAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.FixedSparseAttention(
        ...     num_heads=2, key_dim=8, stride=4
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    def __init__(self, num_heads, key_dim, stride=32, num_columns=1, **kwargs):
        super().__init__(num_heads, key_dim, stride, **kwargs)
        check_sizes(num_columns=num_columns)
        if num_columns > stride:
            raise ValueError(
                "`num_columns` must be at most `stride`. Received: "
                f"num_columns={num_columns}, stride={stride}"
            )
        self.num_columns = num_columns

    def layouts(self, length):
        return (
            own_block(length, self.stride, self.causal),
            last_columns(length, self.stride, self.num_columns, self.causal),
        )

    def pairs(self, length):
        count = -(-length // self.stride)
        return count * self.stride**2, length * count * self.num_columns

    def get_config(self):
        return {**super().get_config(), "num_columns": self.num_columns}
