"""The transformer block and its parts."""

import keras
from keras import ops

from audio_tf.attention import check_arguments, create, name_of
from audio_tf.layers import activations
from audio_tf.layers.feed_forward import FeedForward
from audio_tf.layers.stages import Stage
from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import (
    check_flags,
    check_positive,
    check_rates,
    check_sizes,
    sizes_of,
)
from audio_tf.ops.layer import Dropout, Layer

# Keras' default of 1e-3 drowns quiet clips.
LAYER_NORM_EPSILON = 1e-5


@keras.saving.register_keras_serializable("audio_tf")
class TransformerBlock(Stage, Layer):
    """A transformer block: attention and feed-forward.

    Each of the two is `x = LayerNorm(x + F(x))`: section 3.1 of "Audio
    Transformers" (arXiv 2105.00335). With `norm_first` it is
    `x = x + F(LayerNorm(x))`, which trains at higher rates ("On Layer
    Normalization in the Transformer Architecture", arXiv 2002.04745) and
    wants a normalisation behind the last block.

    Args:
        num_heads: int, the number of attention heads.
        key_dim: int, the size of each head, where the attention has one.
        intermediate_dims: tuple of ints, units of the feed-forward's hidden
            layers.
        attention: name in `audio_tf.attention.ATTENTIONS`, or a subclass of
            `audio_tf.attention.Attention` or its registered name;
            `attention_name` is its name in either case.
        attention_kwargs: dict of further arguments of that class.
        causal: bool. If True, no frame sees a later one; `None` means True
            where the attention can be causal. The attribute `causal` says
            whether the block is.
        activation: the activation of the feed-forward.
        dropout: float, the dropout rate of attention weights and of both
            branches.
        kernel_initializer: initializer of the feed-forward and, where its
            arguments do not say otherwise, of the attention's projections;
            `None` for the defaults of both.
        layer_norm_epsilon: float, added to the variance in LayerNorms.
        made_for_frames: int, frames of the longest input that the block is made
            for, which sizes the tables and strides of its attention; `None`
            for the defaults of its class.
        norm_first: bool, whether LayerNorm comes before attention and
            feed-forward and not behind the sums.
        activation_dropout: float, the dropout rate within the feed-forward,
            behind each activation.
        layer_drop: float, the share of training steps in which the block
            hands on its input as it is ("LayerDrop", arXiv 1909.11556).
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether dropout applies.
        return_attention_scores: bool. If True, also return the attention map,
            `(batch, num_heads, time, time)`, or `(batch, time, dim)` of an
            attention that weights features.

    Returns:
        Tensor `(batch, time, dim)`, or a pair with the attention map.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> block = layers.TransformerBlock(
        ...     num_heads=2, key_dim=8, intermediate_dims=(32, 16)
        ... )
        >>> tuple(block(np.zeros((1, 10, 16), "float32")).shape)
        (1, 10, 16)
    """

    def __init__(
        self,
        num_heads=8,
        key_dim=64,
        intermediate_dims=(128, 128),
        attention="full",
        attention_kwargs=None,
        causal=False,
        activation="relu",
        dropout=0.0,
        kernel_initializer=None,
        layer_norm_epsilon=LAYER_NORM_EPSILON,
        made_for_frames=None,
        norm_first=False,
        activation_dropout=0.0,
        layer_drop=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        check_flags(norm_first=norm_first)
        check_rates(layer_drop=layer_drop)
        self.norm_first = norm_first
        self.activation_dropout = activation_dropout
        self.layer_drop = layer_drop
        self.seed_generator = None
        if layer_drop:
            self.seed_generator = keras.random.SeedGenerator()
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.intermediate_dims = sizes_of(
            "intermediate_dims", intermediate_dims
        )
        self.attention_name = name_of(attention)
        if not isinstance(attention_kwargs or {}, dict):
            raise TypeError(
                "`attention_kwargs` must be a dict of arguments. "
                f"Received: attention_kwargs={attention_kwargs!r}"
            )
        check_positive(layer_norm_epsilon=layer_norm_epsilon)
        if made_for_frames is not None:
            check_sizes(made_for_frames=made_for_frames)
        self.attention_kwargs = dict(attention_kwargs or {})
        self.causal_argument = causal
        self.made_for_frames = made_for_frames
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
            "max_length": made_for_frames,
            "kernel_initializer": self.kernel_initializer,
        }
        self.attention = create(
            attention,
            **{**common, **self.attention_kwargs},
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_dropout = Dropout(
            dropout, dtype=self.dtype_policy, name="attention_dropout"
        )
        self.attention_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="attention_norm",
        )
        self.feed_forward = FeedForward(
            self.intermediate_dims,
            activation=self.activation,
            dropout=dropout,
            kernel_initializer=self.kernel_initializer,
            activation_dropout=activation_dropout,
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
    def max_frames(self):
        """The frames of the longest input, `None` for any."""
        return self.attention.max_length

    def build(self, input_shape):
        dim = input_shape[-1]
        if self.attention.output_dim(dim) != dim:
            raise ValueError(
                f"The residual around attention={self.attention_name!r} needs "
                f"as many features as its input has. Received: {dim} features, "
                f"and {self.attention.output_dim(dim)} from the attention"
            )
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
        inputs = self.as_floats(inputs)
        if mask is not None:
            mask = ops.cast(mask, "bool")
            inputs = masks.zero_padding(inputs, mask)
        attended = self.attention(
            self.before_attention(inputs),
            mask=mask,
            training=training,
            return_attention_scores=return_attention_scores,
        )
        if return_attention_scores:
            attended, weights = attended
        x = self.after_attention(inputs, attended, training)
        if self.layer_drop and training and self.trainable:
            die = keras.random.uniform((), seed=self.seed_generator)
            x = ops.where(die < self.layer_drop, inputs, x)
        return (x, weights) if return_attention_scores else x

    def before_attention(self, inputs):
        """Returns what the attention is given, of each frame for itself."""
        return self.attention_norm(inputs) if self.norm_first else inputs

    def after_attention(self, inputs, attended, training=False):
        """Applies the rest of the block, which takes each frame for itself."""
        attended = self.attention_dropout(attended, training=training)
        if self.norm_first:
            x = inputs + attended
            return x + self.feed_forward(
                self.feed_forward_norm(x), training=training
            )
        x = self.attention_norm(inputs + attended)
        return self.feed_forward_norm(
            x + self.feed_forward(x, training=training)
        )

    def call_last(self, inputs, count):
        """Computes the outputs of the last frames alone, for streams.

        Args:
            inputs: floating tensor `(batch, time, dim)`, all frames so far.
            count: integer or scalar tensor, how many are new.

        Returns:
            Tensor `(batch, count, dim)`, the end of what `call` returns.
        """
        past = ops.shape(inputs)[1] - count
        recent = blocks.narrow(inputs, 1, past, count)
        return self.after_attention(
            recent,
            self.attention.call_last(self.before_attention(inputs), count),
        )

    def stream_piece(self, seen, count, last):
        del last
        return ops.cond(
            count > 0,
            lambda: self.call_last(seen, count),
            lambda: seen[:, :0],
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
            "intermediate_dims": list(self.intermediate_dims),
            "attention": self.attention_name,
            "attention_kwargs": self.attention_kwargs,
            "causal": self.causal_argument,
            "made_for_frames": self.made_for_frames,
            "activation": activations.serialize(self.activation),
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "norm_first": self.norm_first,
            "activation_dropout": self.activation_dropout,
            "layer_drop": self.layer_drop,
        }


@keras.saving.register_keras_serializable("audio_tf")
class FrameNorm(Stage, Layer):
    """A layer that normalises each frame: what follows pre-norm blocks.

    Args:
        epsilon: float, added to the variance.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
            It is passed on; padding counts as zeros.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frames = layers.FrameNorm()(np.array([[[1.0, 3.0]]], "float32"))
        >>> [round(float(each), 2) for each in frames[0, 0]]
        [-1.0, 1.0]
    """

    causal = True

    def __init__(self, epsilon=LAYER_NORM_EPSILON, **kwargs):
        super().__init__(**kwargs)
        check_positive(epsilon=epsilon)
        self.supports_masking = True
        self.epsilon = epsilon
        self.norm = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=self.dtype_policy, name="norm"
        )

    def build(self, input_shape):
        self.norm.build(input_shape)

    def call(self, inputs, mask=None):
        inputs = self.as_floats(inputs)
        if mask is not None:
            # Weights would have NaN for gradients of frames that hold it.
            inputs = masks.zero_padding(inputs, mask)
        return self.norm(inputs)

    def stream_memory(self, frames):
        return 0

    def stream_piece(self, seen, count, last):
        return self.norm(seen)

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
