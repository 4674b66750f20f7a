"""The dense Synthesizer: each frame tells its attention weights by itself."""

import keras
from keras import ops

from audio_tf.attention import functional
from audio_tf.attention.self_attention import SelfAttention
from audio_tf.ops import blocks
from audio_tf.ops.checks import check_flags, check_sizes
from audio_tf.ops.weights import another


@keras.saving.register_keras_serializable("audio_tf")
class DenseSynthesizerAttention(SelfAttention):
    """Each frame tells its attention weights by itself.

    `A = softmax(W2 relu(W1 X + b1) + b2)`, `W1: F -> N`, `W2: N -> time`:
    equation 16 of "Input-independent Attention Weights Are Expressive Enough"
    (arXiv 2006.05174), after "Synthesizer" (arXiv 2005.00743). Values and
    output projection stay. The papers write no softmax; the Synthesizer's
    code has it, and so has this.

    Args:
        num_heads: int, the number of heads.
        key_dim: int, the size of each head's value.
        max_length: int, the longest input in frames.
        intermediate_dim: int, the size `N`.
        per_head: bool. If False, one map serves all heads, "SYN. (Dense)"; if
            True each head has `W1` and `W2` of its own, "SYN. (Dense+M)".
        **kwargs: further arguments of `SelfAttention`.

    Call arguments and errors are those of `SelfAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.DenseSynthesizerAttention(
        ...     num_heads=2, key_dim=8, max_length=12
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    complexity = "O(L^2 D)"

    def __init__(
        self,
        num_heads,
        key_dim,
        max_length=1000,
        intermediate_dim=16,
        per_head=False,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_sizes(max_length=max_length, intermediate_dim=intermediate_dim)
        check_flags(per_head=per_head)
        self.max_length = max_length
        self.intermediate_dim = intermediate_dim
        self.per_head = per_head

    @classmethod
    def sizes_for(cls, length):
        return {"max_length": length}

    @property
    def paper_sizes(self):
        return {"intermediate_dim": self.intermediate_dim}

    @property
    def value_heads(self):
        return self.num_heads if self.per_head else 1

    @property
    def rows_are_independent(self):
        """Whether no subclass scores otherwise."""
        return self.has_of(DenseSynthesizerAttention, "scores")

    def build_projections(self, input_shape):
        maps = self.value_heads
        self.hidden_dense = self.dense(
            maps * self.intermediate_dim, "hidden", input_shape, "relu"
        )
        self.length_kernel = self.add_weight(
            shape=(maps, self.intermediate_dim, self.max_length),
            initializer=another(self.kernel_initializer),
            name="length_kernel",
        )
        if self.use_bias:
            self.length_bias = self.add_weight(
                shape=(maps, self.max_length),
                initializer="zeros",
                name="length_bias",
            )

    def project(self, inputs):
        """Projects to hidden units `(B, M, T, N)` and a kernel `(M, N, T)`."""
        hidden = functional.split_heads(
            self.hidden_dense(inputs), self.value_heads
        )
        length = ops.shape(inputs)[1]
        kernel = blocks.narrow(self.length_kernel, 2, 0, length)
        if self.use_bias:
            # As one more row of the product: the map is not passed twice.
            bias = blocks.narrow(self.length_bias, 1, 0, length)
            bias = ops.expand_dims(bias, 1)
            kernel = ops.concatenate([kernel, bias], axis=1)
            hidden = ops.pad(
                hidden, [[0, 0], [0, 0], [0, 0], [0, 1]], constant_values=1.0
            )
        return hidden, kernel

    def scores(self, query, key):
        return functional.product_per_head(query, key)  # (B, M, T, T)

    def mechanism_cost(self, length, dim):
        maps = self.value_heads
        inner = self.intermediate_dim + self.use_bias
        units = self.num_heads * self.key_dim
        products = length * dim * maps * self.intermediate_dim
        products += length**2 * (maps * inner + units)
        return products, maps * length**2

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "intermediate_dim": self.intermediate_dim,
            "per_head": self.per_head,
        }
