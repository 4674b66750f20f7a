"""The transformer block and its parts."""

import keras
from keras import ops

from audio_tf.attention import (
    blocks,
    check_arguments,
    create,
    masks,
    name_of,
)
from audio_tf.base import Layer
from audio_tf.layers import activations

# Keras' default of 1e-3 drowns quiet clips.
LAYER_NORM_EPSILON = 1e-5


@keras.saving.register_keras_serializable("audio_tf")
class SinusoidalPositions(Layer):
    """Adds sinusoids of the position to each frame, for any length.

    `PE(pos, 2i) = sin(pos / 10000^(2i / dim))` and the cosine of the same
    angle at `2i + 1`: section 3.1.2 of "Audio Transformers"
    (arXiv 2105.00335). `(batch, time, dim)` to the same shape.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        dim = inputs.shape[-1]
        positions = ops.arange(ops.shape(inputs)[1], dtype="float32")
        pairs = ops.arange((dim + 1) // 2, dtype="float32")
        rates = ops.power(10_000.0, -2.0 * pairs / dim)
        angles = ops.expand_dims(positions, 1) * rates  # (T, dim / 2)
        waves = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
        waves = ops.reshape(waves, (-1, 2 * ((dim + 1) // 2)))[:, :dim]
        return inputs + ops.cast(waves, inputs.dtype)

    def compute_output_spec(self, inputs):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)


@keras.saving.register_keras_serializable("audio_tf")
class FeedForward(Layer):
    """Dense layers applied to each frame alike, back to the input's size.

    Args:
        hidden_dims: units of the hidden layers; `(128, 128)` makes the
            "3-layer 128 neuron" network of "Audio Transformers".
        activation: activation of the hidden layers.
        dropout: float, dropout rate of the output.
        kernel_initializer: initializer of the dense layers, Glorot uniform
            if `None`.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        training: bool, whether dropout applies.

    Returns:
        Tensor `(batch, time, dim)`.
    """

    def __init__(
        self,
        hidden_dims=(128, 128),
        activation="relu",
        dropout=0.0,
        kernel_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.hidden_dims = tuple(hidden_dims)
        self.activation = activations.get(activation)
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.hidden = [
            self.dense(units, f"hidden_{index}")
            for index, units in enumerate(self.hidden_dims)
        ]
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="output_dropout"
        )

    def dense(self, units, name):
        initializer = self.kernel_initializer
        return keras.layers.Dense(
            units,
            kernel_initializer=initializer.clone()
            if initializer
            else "glorot_uniform",
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape):
        shape = tuple(input_shape)
        for dense in self.hidden:
            dense.build(shape)
            shape = (*shape[:-1], dense.units)
        self.output_dense = self.dense(input_shape[-1], "output")
        self.output_dense.build(shape)

    def call(self, inputs, training=None):
        activation, x = self.activation, inputs
        if training and activation is not keras.activations.relu:
            # GELU would keep four tensors of the hidden size for its gradient.
            activation = keras.remat(activation)
        for dense in self.hidden:
            x = activation(dense(x))
        return self.output_dropout(self.output_dense(x), training=training)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dims": list(self.hidden_dims),
            "activation": activations.serialize(self.activation),
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }


@keras.saving.register_keras_serializable("audio_tf")
class TransformerBlock(Layer):
    """Attention and feed-forward, each `x = LayerNorm(x + F(x))`.

    Post-norm, section 3.1 of "Audio Transformers" (arXiv 2105.00335).

    Args:
        num_heads: int, attention heads.
        key_dim: int, size of each head, where the attention has one.
        feed_forward_dims: units of the feed-forward's hidden layers.
        attention: name in `audio_tf.attention.ATTENTIONS`, or a subclass of
            `audio_tf.attention.Attention` or its registered name;
            `attention_name` is its name in either case.
        attention_kwargs: dict of further arguments of that class.
        causal: bool. If True, no frame sees a later one; `None` means True
            where the attention can be causal. The attribute `causal` is
            what came of it.
        activation: activation of the feed-forward.
        dropout: float, dropout rate of attention weights and of both
            branches.
        kernel_initializer: initializer of the feed-forward and, where its
            arguments do not say otherwise, of the attention's projections;
            `None` for their own.
        layer_norm_epsilon: float, what LayerNorms add to the variance.
        max_length: int, frames of the longest input that the block is made
            for, which sizes the tables and strides of its attention; `None`
            for the defaults of its class.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether dropout applies.
        return_attention_scores: bool. If True, also return the attention map
            `(batch, num_heads, time, time)`.

    Returns:
        Tensor `(batch, time, dim)`, or a pair with the attention map.
    """

    # Frames that go in for each that comes out.
    frame_step = 1

    def __init__(
        self,
        num_heads=8,
        key_dim=64,
        feed_forward_dims=(128, 128),
        attention="full",
        attention_kwargs=None,
        causal=False,
        activation="relu",
        dropout=0.0,
        kernel_initializer=None,
        layer_norm_epsilon=LAYER_NORM_EPSILON,
        max_length=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.feed_forward_dims = tuple(feed_forward_dims)
        self.attention_name = name_of(attention)
        self.attention_kwargs = dict(attention_kwargs or {})
        self.causal_argument = causal
        self.max_length = max_length
        self.activation = activations.get(activation)
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.layer_norm_epsilon = layer_norm_epsilon
        check_arguments(attention, self.attention_kwargs)
        common = {
            "num_heads": num_heads,
            "key_dim": key_dim,
            "causal": causal,
            "dropout": dropout,
            "max_length": max_length,
            "kernel_initializer": self.kernel_initializer,
        }
        self.attention = create(
            attention,
            **{**common, **self.attention_kwargs},
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_dropout = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="attention_dropout"
        )
        self.attention_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="attention_norm",
        )
        self.feed_forward = FeedForward(
            self.feed_forward_dims,
            activation=self.activation,
            dropout=dropout,
            kernel_initializer=self.kernel_initializer,
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.feed_forward_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="feed_forward_norm",
        )

    @property
    def causal(self):
        """Whether no frame sees a later one."""
        return self.attention.causal

    @property
    def longest_input(self):
        """Frames of the longest input, or `None` for any length."""
        return self.attention.max_length

    def build(self, input_shape):
        self.attention.build(input_shape)
        self.attention_norm.build(input_shape)
        self.feed_forward.build(input_shape)
        self.feed_forward_norm.build(input_shape)

    def call(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
    ):
        weights = None
        if mask is not None:
            mask = ops.cast(mask, "bool")
            inputs = masks.zero_padding(inputs, mask)
        attended = self.attention(
            inputs,
            mask=mask,
            training=training,
            return_attention_scores=return_attention_scores,
        )
        if return_attention_scores:
            attended, weights = attended
        x = self.after_attention(inputs, attended, training)
        return (x, weights) if return_attention_scores else x

    def after_attention(self, inputs, attended, training=False):
        """The rest of the block, which takes each frame for itself."""
        attended = self.attention_dropout(attended, training=training)
        x = self.attention_norm(inputs + attended)
        return self.feed_forward_norm(
            x + self.feed_forward(x, training=training)
        )

    def call_last(self, inputs, count):
        """Outputs of the last frames alone, for streams.

        Args:
            inputs: floating tensor `(batch, time, dim)`, all frames so far.
            count: integer or scalar tensor, how many are new.

        Returns:
            Tensor `(batch, count, dim)`, the end of what `call` returns.
        """
        past = ops.shape(inputs)[1] - count
        recent = blocks.narrow(inputs, 1, past, count)
        return self.after_attention(
            recent, self.attention.call_last(inputs, count)
        )

    def compute_output_spec(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
    ):
        return self.attention.compute_output_spec(
            inputs, return_attention_scores=return_attention_scores
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "feed_forward_dims": list(self.feed_forward_dims),
            "attention": self.attention_name,
            "attention_kwargs": self.attention_kwargs,
            "causal": self.causal_argument,
            "max_length": self.max_length,
            "activation": activations.serialize(self.activation),
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }
