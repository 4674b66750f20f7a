"""The random Synthesizer: attention weights that are a parameter."""

import itertools

import keras
import numpy as np
from keras import ops

from audio_tf import compat
from audio_tf.attention import functional
from audio_tf.attention import patterns as crafted
from audio_tf.attention.one_map import delay, end_of, mix_real, shared_product
from audio_tf.attention.self_attention import SelfAttention
from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import check_choice, check_flags, check_sizes
from audio_tf.ops.weights import declare_parts

# Beside a table in a file: it has weights. Blocks and models do not say in
# their configurations that they were folded, and are built for logits.
FOLDED = "folded"
# Its logarithm is finite in float32.
LEAST_WEIGHT = 1e-37


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
            after `fold`, and is not trained.
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
        self.add_table(
            self.initial_weights if self.folded else self.initial_table
        )

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

    def initial_weights(self, shape, dtype=None):
        """Computes the weights of a table that is folded from the start."""
        table = self.initial_table(shape, dtype)
        return self.weights_of(statistics.to_float32(table))

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
