"""The contract of every attention, and the base of those over time."""

import functools

import keras
from keras import ops

from audio_tf.attention import functional
from audio_tf.attention.costs import Cost
from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import check_flags, check_rates, check_sizes
from audio_tf.ops.layer import Dropout, Layer

# Of longer inputs, only so many rows of the map are formed at a time.
LONG_INPUT = 8192
ROWS_AT_A_TIME = 256


class HasProjections:
    """Mixin of an attention with a `use_bias` and a `kernel_initializer`."""

    takes_kernel_initializer = True

    def dense(self, units, name, input_shape, activation=None):
        """Builds a projection with this layer's dtype, bias and initializer."""
        dense = keras.layers.Dense(
            units,
            activation=activation,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build(input_shape)
        return dense


class Attention(Layer):
    """The contract of every attention of the table.

    An attention mixes the frames of a clip, or weights their features. What
    it is capable of is said by class attributes, which an instance may
    narrow, and which `audio_tf.attention.create` asks for all others:

    - `supports_causal`: bool, whether it can be made to see no later frame;
    - `takes_key_dim`: bool, whether its heads have a size of their own;
    - `takes_kernel_initializer`: bool, whether it has projections;
    - `complexity`: str, time and memory in terms of length `L`, heads `H`,
      width `D`;
    - `map_kind`: `"frames"` if its map weights pairs of frames,
      `(batch, num_heads, time, time)`, or `"features"` if it weights each
      feature of each frame, `(batch, time, dim)`;
    - `max_length`: int, the longest input in frames, where a weight has a
      length, and else `None`;
    - `foldable`: bool, whether `fold` leaves less to compute once trained;
      then `folded` says whether that was done;
    - `patterns`: the name of the patterns its weights start from, or `None`.

    The base owns the number of heads, dropout, causality, the checks of
    inputs, and padding: a padded frame is zero before anything is computed
    from it, whatever it held. A subclass gives `transform`, `cost`, and what
    differs in `sizes_for`, `output_dim`, `check_shape` and `call_last`.

    Args:
        num_heads: int, the number of heads `H`.
        dropout: float, the rate at which attention weights are dropped.
        causal: bool. If True, no position sees a later one; `None` means
            True where the mechanism can be causal.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether dropout applies.
        return_attention_scores: bool. If True, also return the map, without
            dropout. This may cost a second pass and is for analysis.

    Returns:
        Tensor `(batch, time, dim)`; with `return_attention_scores`, a pair.
        An empty batch has empty outputs; so have inputs of no frames, where
        that is known before run time, as it is outside of a graph.

    Raises:
        TypeError: if there is an unknown argument.
        ValueError: if an argument is out of range, `causal=True` is asked of
            a mechanism that cannot be causal, or an input does not fit.

    Examples:
        >>> from audio_tf import attention
        >>> local = attention.find("local_dense_synthesizer")
        >>> issubclass(local, attention.Attention), local.supports_causal
        (True, True)
    """

    supports_causal = True
    takes_key_dim = True
    takes_kernel_initializer = False
    complexity = ""
    map_kind = "frames"
    max_length = None
    foldable = False
    folded = False
    patterns = None

    def __init__(self, num_heads, dropout=0.0, causal=False, **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_heads=num_heads)
        check_rates(dropout=dropout)
        if causal is None:
            causal = self.supports_causal
        check_flags(causal=causal)
        if causal and not self.supports_causal:
            raise ValueError(
                f"{type(self).__name__} mixes all frames and cannot be "
                f"causal. Received: causal={causal}"
            )
        self.supports_masking = True
        self.num_heads = num_heads
        self.dropout = dropout
        self.causal = causal

    @classmethod
    def sizes_for(cls, length):
        """Arguments that fit a longest input.

        Args:
            length: int, frames of the longest input.

        Returns:
            Dict of constructor arguments; empty where nothing has a length.
        """
        del length
        return {}

    def share(self, first):
        """Takes over what all blocks of a model have in common, if anything.

        A model whose blocks share calls it before it builds them.

        Args:
            first: the attention of the model's first block, which is built.
        """

    def transform(self, inputs, mask, training, with_map):
        """Computes the outputs from checked inputs whose padding is zero.

        Args:
            inputs: floating tensor `(batch, time, dim)`.
            mask: boolean `(batch, time)` or `None`.
            training: bool or `None`.
            with_map: bool, whether the map is asked for.

        Returns:
            The outputs and the map; the map may be `None` if not asked for.
        """
        raise NotImplementedError  # abstract

    def call(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
    ):
        self.check_shape(inputs.shape)
        if mask is not None:
            mask = ops.cast(mask, "bool")
            inputs = masks.zero_padding(inputs, mask)
        # Known to have no frames, they are computed of one that is left out
        # again; where the length is not known, none is guarded against.
        length = inputs.shape[1]
        if length == 0:
            inputs = blocks.fill_up(inputs)
            mask = None if mask is None else blocks.fill_up(mask)
        outputs, weights = self.transform(
            inputs, mask, training, return_attention_scores
        )
        if length == 0:
            outputs = outputs[:, :0]
            weights = None if weights is None else self.cut_map(weights, 0)
        return (outputs, weights) if return_attention_scores else outputs

    def cut_map(self, weights, length):
        """Cuts a map to the pairs, or features, of `length` frames."""
        if self.map_kind == "features":
            return weights[:, :length]
        return weights[:, :, :length, :length]

    def call_last(self, inputs, count):
        """Computes the outputs of the last frames alone, for streams.

        Args:
            inputs: floating tensor `(batch, time, dim)`, all frames so far.
            count: integer or scalar tensor, how many are new.

        Returns:
            Tensor `(batch, count, dim)`, the end of what `call` returns.

        Raises:
            ValueError: if the layer is not causal.
        """
        if not self.causal:
            raise ValueError(
                f"{type(self).__name__} looks ahead: its outputs are not "
                f"known before the clip ends. Received: causal={self.causal}"
            )
        return self.last_outputs(inputs, count)

    def last_outputs(self, inputs, count):
        """Does the work of `call_last`, here by a whole `call`."""
        past = ops.shape(inputs)[1] - count
        return blocks.narrow(self(inputs), 1, past, count)

    def compute_output_spec(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
    ):
        self.check_shape(inputs.shape)
        batch, length, dim = inputs.shape
        outputs = keras.KerasTensor(
            (batch, length, self.output_dim(dim)), dtype=self.compute_dtype
        )
        if not return_attention_scores:
            return outputs
        shapes = {
            "frames": (batch, self.num_heads, length, length),
            "features": (batch, length, dim),
        }
        return outputs, keras.KerasTensor(
            shapes[self.map_kind], dtype=self.compute_dtype
        )

    def output_dim(self, dim):
        """Returns the number of output features for `dim` input features."""
        return dim

    def check_shape(self, shape):
        """Raises a `ValueError` for an input shape that is not taken."""
        name = type(self).__name__
        if len(shape) != 3:
            raise ValueError(
                f"{name} needs inputs of shape (batch, time, dim). "
                f"Received: shape={tuple(shape)}"
            )
        length = shape[1]
        if self.max_length is None or not isinstance(length, int):
            return
        if length > self.max_length:
            raise ValueError(
                f"{name} was made for at most max_length={self.max_length} "
                f"frames. Received: an input of {length} frames"
            )

    def cost(self, length, dim, training=False):
        """Counts the work and the memory for one clip.

        Args:
            length: int, frames of the clip.
            dim: int, features of a frame.
            training: bool. If True, count the backward pass too.

        Returns:
            `Cost(multiply_adds, weight_bytes)`: the multiply-adds of all
            matrix products, projections included, padding of blocks too,
            and the bytes of the attention weights that the call forms in
            float32, which training keeps for the backward pass.
        """
        raise NotImplementedError  # abstract

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "causal": self.causal,
        }


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
    at a time, but for training with dropout.

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
    # The score of a query takes that query and the keys alone.
    rows_are_independent = True

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
    def forms_rows(self):
        """Whether any rows of the map can be had from `scores` alone."""
        own = type(self).attend is not SelfAttention.attend
        return self.rows_are_independent and not own

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
            if len(mask.shape) == 2:
                mask = ops.expand_dims(ops.expand_dims(mask, 0), 0)
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
