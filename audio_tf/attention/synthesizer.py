"""Synthesizers: attention weights that no query and key are compared for."""

import itertools

import keras
import numpy as np
from keras import ops

from audio_tf import compat
from audio_tf.attention import functional
from audio_tf.attention import patterns as crafted
from audio_tf.attention.base import Attention
from audio_tf.attention.self_attention import SelfAttention
from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import check_choice, check_flags, check_sizes
from audio_tf.ops.weights import another, declare_parts

# Beside a table in a file: it has weights. Blocks and models do not say in
# their configurations that they were folded, and are built for logits.
FOLDED = "folded"
# Its logarithm is finite in float32.
LEAST_WEIGHT = 1e-37


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


@keras.saving.register_keras_serializable("audio_tf")
class RandomSynthesizerAttention(SelfAttention):
    """Attention weights that are a parameter, the same for every input.

    `softmax(A) V` with a trainable table `A` of `H x L x L`: section 3.4.2 of
    "Input-independent Attention Weights Are Expressive Enough"
    (arXiv 2006.05174), after "Synthesizer" (arXiv 2005.00743). The papers
    write no softmax; the Synthesizer's code has it, and so has this.

    `patterns` is "our method" of those papers: all but the last heads begin
    as hand-crafted patterns, and are trained like the others. Patterns that
    count from the end of a clip, such as `(n - j)^3`, are kept in the last
    rows and columns of the table, so that they hold for a clip shorter than
    `max_length` too, alone or padded. A causal head cannot know the end and
    counts from the start. A row in which a pattern has no support begins
    even: the papers do not say what becomes of it.

    One softmax serves all clips, and the weights of a clip's padding are
    taken out of its rows afterwards. So a row of which all real frames have
    logits more than 87 below those of padded ones comes out zero, float32
    holding no smaller weights. Initial logits lie within 44 of each other up to
    10,000 frames.

    Once trained, `fold` leaves nothing to compute but the weighting.

    Args:
        num_heads: int, the number of heads; patterns are cut to them.
        key_dim: int, the size of each head's value.
        max_length: int, the longest input in frames, `L`.
        patterns: `None`, `"crafted"` (2021: five diagonals, increasing,
            decreasing, the rest random) or `"raganato"` (2020: the seven of
            arXiv 2002.10260, the rest random).
        pattern_logits: `"log"`: logits `log(p + 1e-7)`, whose softmax is the
            pattern; or `"scaled"`: the pattern itself, scaled to at most 10.
            The papers do not tell which they mean.
        table_initializer: initializer of the random heads. `None` takes
            Glorot's uniform one, as Mesh TensorFlow does, or beside
            `patterns` normal noise of 0.02.
        folded: bool, whether the table holds weights in place of logits, as
            after `fold`.
        **kwargs: further arguments of `SelfAttention`. Dropout acts on the
            table: alike for all clips of a batch.

    Call arguments are those of `SelfAttention`; so are the errors, and a
    `ValueError` for an unknown `patterns` or `pattern_logits`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.RandomSynthesizerAttention(
        ...     num_heads=8, key_dim=8, max_length=12, patterns="crafted"
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    complexity = "O(L^2 D)"
    foldable = True

    def __init__(
        self,
        num_heads,
        key_dim,
        max_length=1000,
        patterns=None,
        pattern_logits="log",
        table_initializer=None,
        folded=False,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        check_sizes(max_length=max_length)
        check_flags(folded=folded)
        check_choice("patterns", patterns, (None, *crafted.PATTERNS))
        check_choice("pattern_logits", pattern_logits, ("log", "scaled"))
        self.max_length = max_length
        self.patterns = patterns
        self.pattern_logits = pattern_logits
        self.table_initializer = keras.initializers.get(table_initializer)
        self.folded = folded
        self.anchors = crafted.anchors(
            None if self.causal else patterns, num_heads
        )

    @classmethod
    def sizes_for(cls, length):
        return {"max_length": length}

    def build_projections(self, input_shape):
        self.add_table(self.initial_table)

    def add_table(self, initializer):
        """Creates the table of scores, `(H, max_length, max_length)`."""
        self.table = self.add_weight(
            shape=(self.num_heads, self.max_length, self.max_length),
            initializer=initializer,
            trainable=not self.folded,
            autocast=False,
            name="folded_table" if self.folded else "table",
        )
        declare_parts(self.table, axis=0)

    def initial_table(self, shape, dtype=None):
        """Draws the table, or makes it of the patterns."""
        if self.table_initializer is not None:
            initializer = self.table_initializer
        elif self.patterns is None:
            initializer = keras.initializers.GlorotUniform()
        else:
            initializer = keras.initializers.RandomNormal(stddev=0.02)
        table = initializer(shape, dtype=dtype)
        if self.patterns is None:
            return table
        table = np.array(ops.convert_to_numpy(table))
        heads = crafted.logits(
            self.patterns, self.pattern_logits, self.max_length
        )
        for head, logits in zip(range(self.num_heads), heads, strict=False):
            table[head] = logits
        return ops.convert_to_tensor(table)

    def fold(self):
        """Turns the table of logits into one of weights, for good.

        The layer gives the same outputs, but has no softmax to compute and
        nothing in the table to train. Functions that were compiled before
        keep the old table.
        """
        if self.folded:
            return
        weights = self.weights_of(statistics.to_float32(self.table.value))
        self.folded = True
        compat.replace_weight(
            self,
            self.table,
            lambda: self.add_table(lambda shape, dtype: weights),
        )

    def weights_of(self, logits):
        """Computes the weights that a whole table of logits stands for."""
        return functional.softmax_weights(
            logits, self.score_mask(self.max_length)
        )

    def save_own_variables(self, store):
        super().save_own_variables(store)
        if self.folded:
            store[FOLDED] = np.ones((), "int32")

    def load_own_variables(self, store):
        own = {name: store[name] for name in store.keys()}
        has_weights = own.pop(FOLDED, None) is not None
        super().load_own_variables(own)
        if has_weights == self.folded:
            return
        table = statistics.to_float32(self.table.value)
        if has_weights:
            # The softmax of their logarithms is what they are.
            table = ops.log(ops.maximum(table, LEAST_WEIGHT))
        else:
            table = self.weights_of(table)
        self.table.assign(table)

    def project(self, inputs):
        return None, None

    def attend(self, query, key, value, mask, training):
        def attend_all():
            return shared_product(ops.cast(self.table, value.dtype), value)

        def attend_real():
            return self.attend_real(value, mask, training)

        # Folded rows sum to one over the whole table.
        whole = False
        if self.folded and not (self.dropout and training):
            whole = ops.shape(value)[2] == self.max_length
            if mask is not None and whole is not False:
                whole = ops.logical_and(whole, ops.all(mask))
        if isinstance(whole, bool):
            return attend_all() if whole else attend_real()
        return ops.cond(whole, attend_all, attend_real)

    def attend_real(self, value, mask, training):
        """Computes what `attend` does for clips of any real length."""
        length = ops.shape(value)[2]
        weights = self.table_weights(length)
        dropped = weights
        if self.dropout and training:
            dropped = self.weight_dropout(weights, training=True)
        if mask is None and not self.folded:
            return shared_product(ops.cast(dropped, value.dtype), value)
        real = None if mask is None else masks.queries(mask)
        if mask is None or "end" not in self.anchors:
            return mix_real(weights, dropped, value, real)
        # The end of each clip comes to the end of the table.
        at_end = ops.convert_to_tensor(
            [int(anchor == "end") for anchor in self.anchors], dtype="int32"
        )
        shift = ops.expand_dims(length - end_of(mask), 1) * at_end  # (B, H)
        real = ops.broadcast_to(real, ops.shape(value[..., :1]))
        mixed = mix_real(
            weights, dropped, delay(value, shift), delay(real, shift)
        )
        return delay(mixed, -shift)

    def table_weights(self, length):
        """Returns weights `(H, T, T)`, folded ones not normalised to T."""
        table = ops.convert_to_tensor(self.table)
        # Known to be whole, it is not copied, nor is its gradient.
        if not (isinstance(length, int) and length == self.max_length):
            slices = []
            for anchor, group in itertools.groupby(
                range(self.num_heads), key=self.anchors.__getitem__
            ):
                first, *rest = group
                begin = self.max_length - length if anchor == "end" else 0
                heads = blocks.narrow(table, 0, first, len(rest) + 1)
                for axis in (1, 2):
                    heads = blocks.narrow(heads, axis, begin, length)
                slices.append(heads)
            table = slices[0]
            if len(slices) > 1:
                table = ops.concatenate(slices, axis=0)
        if self.folded:
            return table
        return functional.softmax_weights(
            statistics.to_float32(table), self.score_mask(length)
        )

    def mechanism_cost(self, length, dim):
        units = self.num_heads * self.key_dim
        weights = 0 if self.folded else self.num_heads * length**2
        return length**2 * units, weights

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "patterns": self.patterns,
            "pattern_logits": self.pattern_logits,
            "table_initializer": keras.initializers.serialize(
                self.table_initializer
            ),
            "folded": self.folded,
        }


def shared_product(weights, value):
    """Multiplies one map for all clips, `(H, T, T)`, by `(B, H, T, V)`.

    The clips lie side by side in one product per head.
    """
    batch, heads, length, dim = ops.shape(value)
    value = ops.transpose(value, (1, 2, 0, 3))  # (H, T, B, V)
    value = ops.reshape(value, (heads, length, batch * dim))
    mixed = ops.matmul(weights, value)
    mixed = ops.reshape(mixed, (heads, length, batch, dim))
    return ops.transpose(mixed, (2, 0, 1, 3))  # (B, H, T, V)


def mix_real(weights, dropped, value, real):
    """Weights the real values, each row scaled to their share of it.

    Args:
        weights: floating tensor `(H, T, T)`.
        dropped: the same after dropout.
        value: floating tensor `(B, H, T, V)`.
        real: boolean `(B, 1 or H, T, 1)`, or `None` if all are.

    Returns:
        `(B, H, T, V)` in the dtype of `value`.
    """
    dtype = value.dtype
    value = ops.cast(value, weights.dtype)
    ones = ops.ones_like(value[..., :1])
    if real is not None:
        value, ones = ops.where(real, value, 0.0), ops.where(real, ones, 0.0)
    if dropped is weights:
        # The rows' sums as one more column.
        both = shared_product(weights, ops.concatenate([value, ones], axis=-1))
        dim = ops.shape(value)[3]
        mixed = blocks.narrow(both, 3, 0, dim)
        total = blocks.narrow(both, 3, dim, 1)
    else:
        mixed = shared_product(ops.cast(dropped, weights.dtype), value)
        total = shared_product(weights, ones)
    seen = total > 0.0
    mixed = ops.where(seen, mixed / ops.where(seen, total, 1.0), 0.0)
    return ops.cast(mixed, dtype)


def end_of(mask):
    """Frames up to and with the last real one, `(B, T)` to `(B,)`."""
    length = ops.shape(mask)[1]
    ends = ops.where(mask, ops.arange(1, length + 1, dtype="int32"), 0)
    # With its axis kept, it is one of an empty batch on Torch, too.
    return ops.squeeze(ops.max(ends, axis=1, keepdims=True, initial=0), 1)


def delay(x, frames):
    """Moves `(B, H, T, V)` by `frames`, `(B, H)`, and fills with zeros."""
    length = ops.shape(x)[2]
    source = ops.arange(length, dtype="int32") - ops.expand_dims(frames, 2)
    inside = ops.expand_dims((source >= 0) & (source < length), 3)
    moved = blocks.gather(x, ops.clip(source, 0, length - 1))
    return ops.where(inside, moved, ops.zeros((), x.dtype))


def fold(model):
    """Folds every attention of a trained model that can be, see its `fold`.

    Args:
        model: a built `keras.Model` or layer; changed in place.

    Returns:
        The number of layers folded.

    Examples:
        >>> from audio_tf import attention, models
        >>> backbone = models.AudioTransformerBackbone(
        ...     num_layers=2, attention="random_synthesizer"
        ... )
        >>> attention.fold(backbone)
        2
    """
    folded = 0
    parts = [model, *compat.layers_within(model)]
    for layer in parts:
        if isinstance(layer, Attention) and layer.foldable > layer.folded:
            layer.fold()
            folded += 1
    for part in parts:
        if folded and isinstance(part, keras.Model):
            # They were compiled with the old tables.
            part.train_function = None
            part.test_function = None
            part.predict_function = None
    return folded
