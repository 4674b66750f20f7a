"""The base of attentions that score frames, and mix values by it."""

import functools

import keras
from keras import ops

from audio_tf.attention import functional
from audio_tf.attention.base import Attention, HasProjections
from audio_tf.attention.costs import Cost
from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import check_flags, check_sizes
from audio_tf.ops.layer import Dropout

# Of longer inputs, only so many rows of the map are formed at a time.
LONG_INPUT = 8192
ROWS_AT_A_TIME = 256


class SelfAttention(HasProjections, Attention):
    """Multi-head self-attention with the scoring left to the subclass.

    The base owns value and output projections and the map. A mechanism is
    the difference alone. It overrides

    - `build_projections(input_shape)`: creates the layers and weights that
      its scores need, by default `query` and `key`;
    - `project(inputs)`: `(B, T, F)` to what is scored, by default the pair
      `(query, key)`, each `(B, H, T, D)`;
    - one of `scores(query, key)` `-> (B, H, T, T)`,
      `score_mask(length)` `->` boolean, broadcastable to the scores, or,
      where no `T x T` map should be formed, the whole
      `attend(query, key, value, mask, training)` `-> (B, H, T, V)`;
    - and `mechanism_cost(length, dim)`.

    `attend` must be linear in `value` and must not assume its feature size:
    the attention map is read by attending to the identity. Where the length
    is known and beyond 8192 frames, the rows of a `T x T` map are formed 256
    at a time, but for training with dropout, and a stream has its last rows
    formed alone. Rows of a class with `scores` of its own may depend on their
    places, and are formed all together, unless it has
    `rows_are_independent = True`.

    Args:
        num_heads: int, the number of heads `H`.
        key_dim: int, the size `D` of each head's query, key and value.
        use_bias: bool, whether the projections have biases.
        kernel_initializer: initializer of the projections.
        **kwargs: further arguments of `Attention`.

    Call arguments and errors are those of `Attention`. A frame that may
    attend to nothing gives the output projection's bias.

    Examples:
        >>> import numpy as np
        >>> from keras import ops
        >>> from audio_tf import attention
        >>> class Laplacian(attention.SelfAttention):
        ...     def scores(self, query, key):
        ...         apart = query[:, :, :, None] - key[:, :, None]
        ...         return -ops.norm(apart, axis=-1)
        >>> layer = Laplacian(num_heads=2, key_dim=8)
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    # One projection serves as query and as key.
    shared_qk = False

    def __init__(
        self,
        num_heads,
        key_dim,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(num_heads, **kwargs)
        check_sizes(key_dim=key_dim)
        check_flags(use_bias=use_bias)
        self.key_dim = key_dim
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    @property
    def value_heads(self):
        """Into how many heads the values are cut; fewer share a map."""
        return self.num_heads

    @property
    def value_dim(self):
        """The number of units of the value projection."""
        return self.num_heads * self.key_dim

    @property
    def rows_are_independent(self):
        """Whether the scores of a query take that query and the keys alone."""
        return self.has_of(SelfAttention, "scores")

    @property
    def forms_rows(self):
        """Whether any rows of the map can be had from `scores` alone."""
        return self.rows_are_independent and self.has_of(
            SelfAttention, "attend"
        )

    def has_of(self, base, *names):
        """Returns whether methods are those of a base, by their names."""
        own = type(self)
        return all(getattr(own, name) is getattr(base, name) for name in names)

    def build(self, input_shape):
        self.check_shape(input_shape)
        heads_shape = (*input_shape[:-1], self.num_heads * self.key_dim)
        self.value_dense = self.dense(self.value_dim, "value", input_shape)
        self.output_dense = self.dense(input_shape[-1], "output", heads_shape)
        self.weight_dropout = Dropout(
            self.dropout, dtype=self.dtype_policy, name="weight_dropout"
        )
        self.build_projections(input_shape)

    def build_projections(self, input_shape):
        """Creates what the scores need, by default `query` and `key`."""
        units = self.num_heads * self.key_dim
        self.query_dense = self.dense(units, "query", input_shape)
        if not self.shared_qk:
            self.key_dense = self.dense(units, "key", input_shape)

    def project(self, inputs):
        """Projects the inputs to what is scored, by default query and key."""
        query = functional.split_heads(self.query_dense(inputs), self.num_heads)
        if self.shared_qk:
            return query, query
        return query, functional.split_heads(
            self.key_dense(inputs), self.num_heads
        )

    def scores(self, query, key):
        """Scores each query with each key, `(B, H, T, T)`."""
        return functional.dot_product_scores(query, key)

    def score_mask(self, length):
        """Returns which pairs may be scored, boolean, or `None` for all."""
        return masks.causal(length) if self.causal else None

    def attend(self, query, key, value, mask, training):
        """Weights the values; `mask` is the padding mask `(B, T)` or `None`."""
        if self.uses_flash(query, key, value, training):
            return functional.flash_attention(
                query, key, value, mask, self.causal
            )
        rows = query.shape[2]
        key_mask = None if mask is None else masks.keys(mask)
        mask = masks.combine(key_mask, self.score_mask(ops.shape(value)[2]))
        if self.rows_are_independent and rows is not None:
            if rows > LONG_INPUT and not (self.dropout and training):
                return self.attend_by_rows(query, key, value, mask)
        return self.attend_rows(query, key, value, mask, training)

    def uses_flash(self, query, key, value, training):
        """Returns whether a kernel of the device does all of `attend`."""
        del query, key, value, training
        return False

    def attend_rows(self, query, key, value, mask, training):
        """Weights the values for some or all queries.

        Args:
            query: tensor `(B, H, R, D)`, the queries of some rows of the map.
            key: what they are scored with, as `project` gives it.
            value: tensor `(B, G, T, V)` of `value_heads` heads.
            mask: boolean, broadcastable to the scores, or `None`.
            training: bool or `None`.

        Returns:
            Tensor `(B, H, R, V)`.
        """
        return self.mix(self.scores(query, key), value, mask, training)

    def attend_by_rows(self, query, key, value, mask):
        """Computes what `attend` does without ever holding the whole map."""

        def attend_rows(rows):
            query, mask = rows if by_row else (rows, shared_mask)
            return self.attend_rows(query, key, value, mask, False)

        def cut(x):
            return ops.moveaxis(blocks.cut(x, ROWS_AT_A_TIME), 2, 0)

        shared_mask, rows = mask, cut(query)
        by_row = mask is not None and mask.shape[-2] != 1
        if by_row:
            while len(mask.shape) < 4:
                mask = ops.expand_dims(mask, 0)
            rows = (rows, cut(mask))
        mixed = ops.moveaxis(ops.map(attend_rows, rows), 0, 2)
        return blocks.join(mixed, query.shape[2])

    def mix(self, scores, value, mask, training):
        """Calls `functional.mix` with this layer's dropout."""
        dropout = None
        if self.dropout and training:
            dropout = functools.partial(self.weight_dropout, training=True)
        return functional.mix(scores, value, mask, dropout)

    def transform(self, inputs, mask, training, with_map):
        query, key = self.project(inputs)
        value = functional.split_heads(
            self.value_dense(inputs), self.value_heads
        )
        mixed = self.attend(query, key, value, mask, training)
        outputs = self.output_dense(functional.merge_heads(mixed))
        if not with_map:
            return outputs, None
        batch, length = ops.shape(inputs)[0], ops.shape(inputs)[1]
        identity = ops.eye(length, dtype=value.dtype)
        identity = ops.broadcast_to(
            identity, (batch, self.value_heads, length, length)
        )
        weights = self.attend(query, key, identity, mask, training=False)
        return outputs, ops.broadcast_to(
            weights, (batch, self.num_heads, length, length)
        )

    def last_outputs(self, inputs, count):
        if not self.forms_rows:
            return super().last_outputs(inputs, count)
        past = ops.shape(inputs)[1] - count
        query, key = self.project(inputs)
        value = functional.split_heads(
            self.value_dense(inputs), self.value_heads
        )
        query = blocks.narrow(query, 2, past, count)
        visible = self.score_mask(ops.shape(inputs)[1])
        visible = blocks.narrow(visible, len(visible.shape) - 2, past, count)
        mixed = self.attend_rows(query, key, value, visible, False)
        return self.output_dense(functional.merge_heads(mixed))

    def cost(self, length, dim, training=False):
        products, weights = self.mechanism_cost(length, dim)
        products += (
            length * dim * (self.value_dim + self.num_heads * self.key_dim)
        )
        # The gradient of a product takes two of its size.
        return Cost(products * (3 if training else 1), 4 * weights)

    def mechanism_cost(self, length, dim):
        """Counts multiply-adds, without value and output, and weights."""
        units = self.num_heads * self.key_dim
        projections = (1 if self.shared_qk else 2) * length * dim * units
        return projections + 2 * length**2 * units, self.num_heads * length**2

    def get_config(self):
        return {
            **super().get_config(),
            "key_dim": self.key_dim,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
