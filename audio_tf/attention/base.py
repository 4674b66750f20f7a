"""The one base of every attention over time."""

import keras
from keras import ops

from audio_tf.attention import functional, masks


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention with the scoring left to the subclass.

    The base owns heads, value and output projections, masks, dropout and the
    configuration. A mechanism is the difference alone. It overrides

    - `build_projections(input_shape)`: creates the layers and weights that
      its scores need;
    - `project(inputs)`: `(B, T, F)` to what is scored, by default the pair
      `(query, key)`, each `(B, H, T, D)`;
    - and one of `scores(query, key)` `-> (B, H, T, T)`,
      `score_mask(length)` `->` boolean, broadcastable to the scores, or,
      where no `T x T` map should be formed, the whole
      `attend(query, key, value, mask, training)` `-> (B, H, T, V)`.

    `attend` must be linear in `value` and must not assume its feature size:
    the attention map is read by attending to the identity.

    Args:
        num_heads: int, the number of heads `H`.
        key_dim: int, the size `D` of each head's query, key and value.
        dropout: float, the rate at which attention weights are dropped.
        causal: bool. If True, no position sees a later one.
        use_bias: bool, whether the projections have biases.
        kernel_initializer: initializer of the projections.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether dropout applies.
        return_attention_scores: bool. If True, also return the weights,
            without dropout, as `(batch, num_heads, time, time)`. This costs a
            second pass and is for analysis.

    Returns:
        Tensor `(batch, time, dim)`; with `return_attention_scores`, a pair. A
        frame that may attend to nothing gives the output projection's bias.

    Raises:
        ValueError: if an argument is out of range, or `causal=True` is asked
            of a mechanism that cannot be causal.
    """

    supports_causal = True

    def __init__(
        self,
        num_heads,
        key_dim,
        dropout=0.0,
        causal=False,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, size in (("num_heads", num_heads), ("key_dim", key_dim)):
            if not isinstance(size, int) or size < 1:
                raise ValueError(
                    f"`{name}` must be a positive integer. "
                    f"Received: {name}={size!r}"
                )
        if not 0.0 <= dropout < 1.0:
            raise ValueError(
                f"`dropout` must be in [0, 1). Received: dropout={dropout}"
            )
        if causal and not self.supports_causal:
            raise ValueError(
                f"{type(self).__name__} mixes all frames and cannot be "
                f"causal. Received: causal={causal}"
            )
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.causal = causal
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def dense(self, units, name):
        """A projection in this layer's dtype, bias and initializer."""
        return keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape):
        heads_shape = (*input_shape[:-1], self.num_heads * self.key_dim)
        self.value_dense = self.dense(heads_shape[-1], "value")
        self.value_dense.build(input_shape)
        self.output_dense = self.dense(input_shape[-1], "output")
        self.output_dense.build(heads_shape)
        self.weight_dropout = keras.layers.Dropout(
            self.dropout, dtype=self.dtype_policy, name="weight_dropout"
        )
        self.build_projections(input_shape)

    def build_projections(self, input_shape):
        self.query_dense = self.dense(self.num_heads * self.key_dim, "query")
        self.query_dense.build(input_shape)
        self.key_dense = self.dense(self.num_heads * self.key_dim, "key")
        self.key_dense.build(input_shape)

    def project(self, inputs):
        return (
            functional.split_heads(self.query_dense(inputs), self.num_heads),
            functional.split_heads(self.key_dense(inputs), self.num_heads),
        )

    def scores(self, query, key):
        raise NotImplementedError(
            f"{type(self).__name__} must define `scores` or `attend`."
        )

    def score_mask(self, length):
        return masks.causal(length) if self.causal else None

    def attend(self, query, key, value, mask, training):
        """Weights the values; `mask` is the padding mask `(B, T)` or `None`."""
        scores = self.scores(query, key)
        key_mask = None if mask is None else masks.keys(mask)
        mask = masks.combine(key_mask, self.score_mask(ops.shape(scores)[-1]))
        weights = functional.masked_softmax(scores, mask)
        weights = self.weight_dropout(weights, training=training)
        return ops.matmul(weights, value)  # (B, H, T, V)

    def call(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
    ):
        query, key = self.project(inputs)
        value = functional.split_heads(self.value_dense(inputs), self.num_heads)
        attended = self.attend(query, key, value, mask, training)
        outputs = self.output_dense(functional.merge_heads(attended))
        if not return_attention_scores:
            return outputs
        length = ops.shape(inputs)[1]
        identity = ops.eye(length, dtype=value.dtype)
        identity = ops.broadcast_to(
            identity, (ops.shape(inputs)[0], self.num_heads, length, length)
        )
        return outputs, self.attend(query, key, identity, mask, False)

    def compute_output_spec(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
    ):
        outputs = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return outputs
        batch, length, _ = inputs.shape
        return outputs, keras.KerasTensor(
            (batch, self.num_heads, length, length), dtype=self.compute_dtype
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "causal": self.causal,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
