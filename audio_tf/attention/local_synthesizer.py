"""Local dense Synthesizer attention, by banded blocks."""

import keras
from keras import ops

from audio_tf.attention import functional
from audio_tf.attention.self_attention import SelfAttention
from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import check_choice, check_sizes
from audio_tf.ops.weights import another

# Frames whose windows overlap in one product.
BLOCK = 32


@keras.saving.register_keras_serializable("audio_tf")
class LocalDenseSynthesizerAttention(SelfAttention):
    """Each frame tells the weights of the `c` frames around it by itself.

    `B = softmax(relu(X W1) W2)` over `c` positions in each head, and
    `Y_t = sum_j B[t, j] V[t + j - floor(c / 2)]` for `j = 0 ... c - 1`:
    equations 1 to 3 of "multi-head LDSA", a note of 2021 by the authors of
    local dense Synthesizer attention (LDSA, arXiv 2010.12155). A causal layer
    looks at the last `c` frames, `V[t + j - (c - 1)]`.

    The note has no biases: `use_bias=False`. Its authors' code has one in
    `W2` alone, counts padded frames in, and knows odd `c` only.

    Args:
        num_heads: int, the number of heads.
        key_dim: int, the size of each head, hidden and value.
        context_size: int, `c` in frames, odd or even; 15 is the default of
            the authors' code, which like the note ties it to no length.
        edges: `"zero"`, as in equation 3: the weights of positions outside the
            clip, or padded, are lost; or `"renorm"`: the softmax is over
            those inside, as in a second class of the authors' code.
        **kwargs: further arguments of `SelfAttention`.

    Call arguments are those of `SelfAttention`; so are the errors, and a
    `ValueError` for an unknown `edges`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.LocalDenseSynthesizerAttention(
        ...     num_heads=2, key_dim=8, context_size=5
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    complexity = "O(L c D)"

    def __init__(
        self, num_heads, key_dim, context_size=15, edges="zero", **kwargs
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_sizes(context_size=context_size)
        check_choice("edges", edges, ("zero", "renorm"))
        self.context_size = context_size
        self.edges = edges

    @property
    def left(self):
        """The number of earlier frames in the window."""
        return self.context_size - 1 if self.causal else self.context_size // 2

    @property
    def right(self):
        """The number of later frames in the window."""
        return self.context_size - 1 - self.left

    def build_projections(self, input_shape):
        self.hidden_dense = self.dense(
            self.num_heads * self.key_dim, "hidden", input_shape, "relu"
        )
        self.context_kernel = self.add_weight(
            shape=(self.num_heads, self.key_dim, self.context_size),
            initializer=another(self.kernel_initializer),
            name="context_kernel",
        )
        if self.use_bias:
            self.context_bias = self.add_weight(
                shape=(self.num_heads, self.context_size),
                initializer="zeros",
                name="context_bias",
            )

    def project(self, inputs):
        hidden = self.hidden_dense(inputs)
        return functional.split_heads(hidden, self.num_heads), None

    def scores(self, query, key):
        """Scores the positions around each frame, `(B, H, T, c)`."""
        scores = functional.product_per_head(query, self.context_kernel)
        if self.use_bias:
            scores = scores + ops.expand_dims(self.context_bias, 1)
        return scores

    def attend(self, query, key, value, mask, training):
        real = ops.ones_like(query[:, 0, :, 0], dtype="bool")
        real = masks.queries(real if mask is None else mask)
        inside = None
        if self.edges == "renorm":
            inside = self.neighbours(real)
        weights = functional.softmax_weights(self.scores(query, key), inside)
        weights = self.weight_dropout(weights, training=training)
        if mask is not None:
            value = ops.where(real, value, ops.zeros((), value.dtype))
        mixed = ops.matmul(
            band(blocks.cut(weights, BLOCK)),
            blocks.windows(value, BLOCK, self.left, self.right),
        )
        return blocks.join(mixed, ops.shape(value)[2])

    def neighbours(self, real):
        """Returns which positions around a frame are real, `(B, 1, T, c)`."""
        length = ops.shape(real)[2]
        real = ops.pad(
            real[:, :, :, 0], [[0, 0], [0, 0], [self.left, self.right]]
        )
        return ops.stack(
            [
                real[:, :, position : position + length]
                for position in range(self.context_size)
            ],
            axis=3,
        )

    def mechanism_cost(self, length, dim):
        units = self.num_heads * self.key_dim
        padded = -(-length // BLOCK) * BLOCK
        products = length * units * (dim + self.context_size)
        products += padded * (BLOCK + self.context_size - 1) * units
        return products, self.num_heads * length * self.context_size

    def get_config(self):
        return {
            **super().get_config(),
            "context_size": self.context_size,
            "edges": self.edges,
        }


def band(weights):
    """Places each row one further right: `(..., R, c)` to `(..., R, W)`.

    Row `i` of `c` weights comes to columns `i ... i + c - 1` of
    `W = R + c - 1`, the places of its values in a block's window.
    """
    _, heads, count, rows, context = ops.shape(weights)
    width = rows + context - 1
    # Rows one too long, read as rows of the right length, slip by one each.
    weights = ops.pad(weights, [[0, 0]] * 4 + [[0, width + 1 - context]])
    weights = ops.reshape(weights, (-1, heads, count, rows * (width + 1)))
    weights = blocks.narrow(weights, 3, 0, rows * width)
    return ops.reshape(weights, (-1, heads, count, rows, width))
