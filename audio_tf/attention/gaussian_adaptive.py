"""Gaussian adaptive attention, alone and before grouped queries."""

import functools
import math

import keras
from keras import ops

from audio_tf.attention import functional
from audio_tf.attention.base import Attention, HasProjections
from audio_tf.attention.costs import Cost
from audio_tf.attention.gaussian import EPSILON, GaussianAttention
from audio_tf.ops import masks
from audio_tf.ops.checks import check_choice, check_flags, check_sizes

# Of equation 8, in the experiments and in the published package.
EPSILONS = {"paper": EPSILON, "package": 1e-8}
# exp(80) is finite in float32.
LOWEST_PEAK = -80.0
LAYER_NORM_EPSILON = 1e-5


@keras.saving.register_keras_serializable("audio_tf")
class LogNormal(keras.initializers.RandomNormal):
    """The exponential of normal noise: positive, and 1 in the median."""

    def __init__(self, mean=0.0, stddev=1.0, seed=None):
        super().__init__(mean=mean, stddev=stddev, seed=seed)

    def __call__(self, shape, dtype=None):
        return ops.exp(super().__call__(shape, dtype))


@keras.saving.register_keras_serializable("audio_tf")
class GaussianAdaptiveAttention(GaussianAttention):
    """Multi-head Gaussian adaptive attention (GAAM).

    With mean `m` and variance `v` over `axis`, and vectors over the features
    of each head that are learnt, offset `d` and scaled variance `xi`:

        psi = m + d                        (equation 7)
        y = (x - psi) / sqrt(v + epsilon)  (equation 8)
        G = exp(-y^2 / (2 xi))             (equation 9)
        output = x * G                     (equation 10)

    from "Gaussian Adaptive Attention is All You Need" (arXiv 2401.11143).
    What is far from usual is suppressed; there is no softmax, no sum.

    The paper and its authors' package disagree. `variant="paper"`, the
    default, is the equations and the experiments: the variance of equation 6
    divides by the count, `d` starts at 0 and `xi` at 2. The text cuts
    features among heads, `head_axis=-1`; there, with `axis=1`, heads are only
    a way to write it, since every feature has its own `d` and `xi`. The
    experiments cut encoder layers, `head_axis=1`: 2 * 8 * 1024 parameters.
    Their code, when run, takes `|mean(x^2) - mean(x)^2| + 1e-8` for the
    variance and adds `epsilon` besides. Here there is no second constant, and
    squares are of deviations, which do not cancel: outputs differ by 7e-7
    where the variance is near 1, and by 7e-4 of themselves where it is 1e-6.

    `variant="package"` is gaussian-adaptive-attention 0.1.5: scalars for
    each of `num_gaussians` Gaussians of each head, offset `d` and width `c`,

        G = product over Gaussians of exp(-y^2 / (2 c^2)) / sqrt(2 pi c^2)

    divided by its sum over `axis`, or by `epsilon` if that is more; the
    variance divides by one less than the count. `c` starts log-normal, as in
    the repository's later code. A product of Gaussians is one Gaussian, and
    is computed as one. The package cuts heads along `axis` and gives the last
    head what is left over: here heads must be equal. It counts padding in
    its statistics and passes it through: here padding is zero and does not
    count. Its `GaussianBlock` adds a residual, here the caller's.

    A Gaussian context transformer's `exp(-(x - m)^2 / (2 v))` (equation 5)
    is `width_initializer="ones", trainable=False`; its usual constant width
    `c = 2` is `keras.initializers.Constant(4.0)`.

    Args:
        num_heads: int, the number of heads.
        axis: 1 or -1, whose entries share one mean and one variance.
        head_axis: -1 or 1, which is cut among the heads.
        variant: `"paper"` or `"package"`.
        num_gaussians: int, Gaussians of a head: 1 in the paper's variant.
        width_initializer: initializer of `xi` or `c`. `None` is the
            variant's own. A `xi` or `c^2` below `epsilon` counts as that.
        epsilon: float, added to the variance. `None` is the variant's own:
            1e-5 in the experiments, 1e-8 in the package.
        **kwargs: further arguments of `GaussianAttention`.

    Call arguments and errors are those of `GaussianAttention`; a `ValueError`
    too if `variant` is unknown or has no such `num_gaussians`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.GaussianAdaptiveAttention(
        ...     num_heads=2, variant="package", num_gaussians=3
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    def __init__(
        self,
        num_heads,
        axis=1,
        head_axis=-1,
        variant="paper",
        num_gaussians=1,
        width_initializer=None,
        epsilon=None,
        **kwargs,
    ):
        check_choice("variant", variant, EPSILONS)
        if epsilon is None:
            epsilon = EPSILONS[variant]
        super().__init__(
            num_heads,
            axis=axis,
            head_axis=head_axis,
            epsilon=epsilon,
            **kwargs,
        )
        check_sizes(num_gaussians=num_gaussians)
        if variant == "paper" and num_gaussians != 1:
            raise ValueError(
                "`num_gaussians` must be 1 with variant='paper'. "
                f"Received: num_gaussians={num_gaussians}"
            )
        if width_initializer is None:
            width_initializer = {
                "paper": keras.initializers.Constant(2.0),
                "package": LogNormal(),
            }[variant]
        self.variant = variant
        self.num_gaussians = num_gaussians
        self.width_initializer = keras.initializers.get(width_initializer)
        self.unbiased = variant == "package"

    def build_gaussian(self, shape):
        initializer = self.width_initializer
        if self.variant == "package":
            shape = (self.num_heads, self.num_gaussians)
            self.gaussian_width = self.weight(
                "gaussian_width", shape, initializer
            )
        else:
            self.scaled_variance = self.weight(
                "scaled_variance", shape, initializer
            )
        self.mean_offset = self.weight("mean_offset", shape, "zeros")

    def gaussian(self, x, mean, deviation, real):
        if self.variant == "package":
            return self.product_of_gaussians(x - mean, deviation, real)
        offset = self.per_head(ops.cast(self.mean_offset, x.dtype))
        scaled_variance = self.width(ops.cast(self.scaled_variance, x.dtype))
        y = (x - mean - offset) / deviation
        return ops.exp(-0.5 * ops.square(y) / scaled_variance)

    def product_of_gaussians(self, x, deviation, real):
        """Computes the weights whose mean the authors' package takes."""
        offsets = ops.cast(self.mean_offset, x.dtype)
        widths = ops.cast(self.gaussian_width, x.dtype)
        precisions = 1.0 / ops.maximum(ops.square(widths), self.epsilon)
        precision = ops.sum(precisions, axis=-1, keepdims=True)  # (H, 1)
        offset = ops.sum(precisions * offsets, -1, keepdims=True) / precision
        spread = ops.sum(
            precisions * ops.square(offsets - offset), -1, keepdims=True
        )
        peak = 0.5 * ops.sum(
            ops.log(precisions / (2.0 * math.pi)), -1, keepdims=True
        )
        y = (x - self.per_head(offset)) / deviation
        logits = self.per_head(peak) - 0.5 * (
            self.per_head(precision) * ops.square(y)
            + self.per_head(spread) / ops.square(deviation)
        )
        if real is not None:
            logits = ops.where(real, logits, functional.EXCLUDED)
        top = ops.max(
            logits, axis=self.moment_axis, keepdims=True, initial=LOWEST_PEAK
        )
        # Scales both sides of the quotient alike, so it has no gradient.
        top = ops.stop_gradient(top)
        weights = ops.exp(logits - top)
        total = ops.sum(weights, axis=self.moment_axis, keepdims=True)
        return weights / ops.maximum(total, self.epsilon * ops.exp(-top))

    def get_config(self):
        return {
            **super().get_config(),
            "variant": self.variant,
            "num_gaussians": self.num_gaussians,
            "width_initializer": keras.initializers.serialize(
                self.width_initializer
            ),
        }


@keras.saving.register_keras_serializable("audio_tf")
class GroupedQueryGaussianAdaptiveAttention(
    HasProjections, GaussianAdaptiveAttention
):
    """Gaussian adaptive, then grouped query attention (GQGAAM).

    Section 3.2 of "Gaussian Adaptive Attention is All You Need"
    (arXiv 2401.11143), in the form of its authors' experiments, which gives
    the counts of its Table 1:

        x = Dense(hidden_dim)(GaussianAdaptiveAttention(inputs))
        s[h] = (sum over the queries q of group h) K[h]^T / sqrt(D)
        output = Dense(hidden_dim)(LayerNorm(softmax(s) V))

    Queries have `hidden_dim` features, keys and values those of
    `num_key_value_heads` heads of size `D = hidden_dim / num_query_heads`
    alone. The queries of a group are added up before the softmax, so a group
    has one map and the normalised result is as narrow as the values. That is
    the experiments' code; GQA itself (arXiv 2305.13245) has a map for each
    query head and is `GroupedQueryAttention`. There is no residual around any
    part.

    In two things the authors' code, when run, does not do what is done here.
    It divides scores by `sqrt(D)` twice, once more than equation 1 of the
    paper: on random weights outputs are then 0.7 apart, and
    `scale_twice=True` gives theirs. It adds 1e-8 to the variance besides
    `epsilon`, see `GaussianAdaptiveAttention`; no argument gives that.

    Args:
        num_heads: int, Gaussian heads, and query heads too unless
            `num_query_heads` says otherwise; 8 of both in the paper.
        hidden_dim: int, features of the projection and of the output, 512 in
            the experiments. `None` keeps the input's, for a residual.
        num_query_heads: int or `None`, query heads; divides `hidden_dim`.
        num_key_value_heads: int, divides `num_query_heads`.
        scale_twice: bool. If True, scores are divided by `D`, as in the
            authors' code; else by `sqrt(D)`, as in equation 1.
        use_bias: bool, whether the projections have biases.
        kernel_initializer: initializer of the projections.
        dropout: float, the rate at which entries of the Gaussian map and
            attention weights are dropped.
        **kwargs: further arguments of `GaussianAdaptiveAttention`.

    Call arguments: those of `GaussianAttention`. The attention scores are the
        Gaussian map `(batch, time, dim)`, from which the paper has its
        Importance Factor, not the softmax.

    Returns:
        Tensor `(batch, time, hidden_dim)`, zero at padded frames; with
        `return_attention_scores`, a pair.

    Raises:
        ValueError: as `GaussianAdaptiveAttention` does, and if
            `num_key_value_heads` does not divide the query heads, or those
            do not divide `hidden_dim`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.GroupedQueryGaussianAdaptiveAttention(
        ...     num_heads=2, hidden_dim=32,
        ...     num_query_heads=4, num_key_value_heads=2,
        ... )
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 32)
    """

    complexity = "O(L^2 D)"

    def __init__(
        self,
        num_heads,
        hidden_dim=None,
        num_query_heads=None,
        num_key_value_heads=2,
        scale_twice=False,
        use_bias=True,
        kernel_initializer="glorot_normal",
        **kwargs,
    ):
        super().__init__(num_heads, **kwargs)
        check_sizes(num_key_value_heads=num_key_value_heads)
        check_flags(scale_twice=scale_twice, use_bias=use_bias)
        if hidden_dim is not None:
            check_sizes(hidden_dim=hidden_dim)
        if num_query_heads is not None:
            check_sizes(num_query_heads=num_query_heads)
        self.hidden_dim = hidden_dim
        self.num_query_heads = num_query_heads
        self.num_key_value_heads = num_key_value_heads
        self.scale_twice = scale_twice
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        if self.query_heads % num_key_value_heads:
            raise ValueError(
                "`num_key_value_heads` must divide the query heads. Received: "
                f"num_key_value_heads={num_key_value_heads}, "
                f"query heads={self.query_heads}"
            )
        if hidden_dim is not None:
            self.key_value_dim(hidden_dim)

    @property
    def query_heads(self):
        """The number of heads of the queries."""
        return self.num_query_heads or self.num_heads

    def output_dim(self, dim):
        return self.hidden_dim or dim

    def key_value_dim(self, hidden_dim):
        """Counts the features of all keys of a frame."""
        if hidden_dim % self.query_heads:
            raise ValueError(
                "The query heads must divide `hidden_dim`. Received: "
                f"query heads={self.query_heads}, hidden_dim={hidden_dim}"
            )
        return hidden_dim // self.query_heads * self.num_key_value_heads

    def build(self, input_shape):
        super().build(input_shape)
        hidden_dim = self.output_dim(input_shape[-1])
        narrow = self.key_value_dim(hidden_dim)
        embedded = (*input_shape[:-1], hidden_dim)
        mixed = (*input_shape[:-1], narrow)
        self.input_dense = self.dense(hidden_dim, "input", input_shape)
        self.query_dense = self.dense(hidden_dim, "query", embedded)
        self.key_dense = self.dense(narrow, "key", embedded)
        self.value_dense = self.dense(narrow, "value", embedded)
        self.output_norm = keras.layers.LayerNormalization(
            epsilon=LAYER_NORM_EPSILON,
            dtype=self.dtype_policy,
            name="output_norm",
        )
        self.output_norm.build(mixed)
        self.output_dense = self.dense(hidden_dim, "output", mixed)

    def transform(self, inputs, mask, training, with_map):
        adapted, weights = super().transform(inputs, mask, training, with_map)
        outputs = self.attend_in_groups(
            self.input_dense(adapted), mask, training
        )
        outputs = self.output_dense(self.output_norm(outputs))
        if mask is not None:
            outputs = masks.zero_padding(outputs, mask)
        return outputs, weights

    def last_outputs(self, inputs, count):
        # Softmax needs all frames, though each Gaussian its own alone.
        return Attention.last_outputs(self, inputs, count)

    def attend_in_groups(self, x, mask, training):
        """Attends from `(B, T, E)` to `(B, T, G * D)` with `G` key and value
        heads.
        """
        heads = self.num_key_value_heads
        length, group = ops.shape(x)[1], self.query_heads // heads
        query = ops.reshape(
            self.query_dense(x),
            (-1, length, heads, group, x.shape[-1] // self.query_heads),
        )
        query = ops.transpose(ops.sum(query, axis=3), (0, 2, 1, 3))
        key = functional.split_heads(self.key_dense(x), heads)
        value = functional.split_heads(self.value_dense(x), heads)
        if self.scale_twice:
            query = query * (query.shape[-1] ** -0.5)
        scores = functional.dot_product_scores(query, key)  # (B, G, T, T)
        mask = masks.combine(
            None if mask is None else masks.keys(mask),
            masks.causal(length) if self.causal else None,
        )
        dropout = None
        if self.dropout and training:
            dropout = functools.partial(self.weight_dropout, training=True)
        mixed = functional.mix(scores, value, mask, dropout)
        return functional.merge_heads(mixed)

    def cost(self, length, dim, training=False):
        """Counts as the base does, with the bytes of both maps."""
        hidden_dim = self.output_dim(dim)
        narrow = self.key_value_dim(hidden_dim)
        products = length * hidden_dim * (dim + hidden_dim + 3 * narrow)
        products += 2 * length**2 * narrow
        weights = length * dim + self.num_key_value_heads * length**2
        # The gradient of a product takes two of its size.
        return Cost(products * (3 if training else 1), 4 * weights)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "num_query_heads": self.num_query_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "scale_twice": self.scale_twice,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
