"""Attention by a Gaussian: each feature weighted by how usual it is."""

import keras
from keras import ops

from audio_tf.attention.base import Attention
from audio_tf.attention.costs import Cost
from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import check_positive
from audio_tf.ops.layer import Dropout

# Of equation 8, in the experiments of "Gaussian Adaptive Attention".
EPSILON = 1e-5


class GaussianAttention(Attention):
    """Weights each feature by a Gaussian of its distance from the mean.

    The base of `GaussianAdaptiveAttention` and its relatives. It owns heads,
    statistics, masks, dropout and the configuration. A relative overrides

    - `build_gaussian(shape)`: creates its weights; those that have the given
      shape, `(H, D)`, hold one value for each feature of each head;
    - `gaussian(x, mean, deviation, real)`: the weights of `x`, all with heads
      on an axis of their own: `(B, T, H, D)` with `head_axis=-1`,
      `(B, H, T / H, D)` with `head_axis=1`. There `self.per_head(weight)`
      fits a weight `(H, D)` or `(H, 1)`, and `self.moment_axis` is `axis`.

    What the axes mean, for an input `(batch, time, dim)`:

    | `axis` | `head_axis` | mean and variance are of | features `D` of a head |
    |---|---|---|---|
    | 1 | -1 | a feature, over time | `dim / num_heads` |
    | 1 | 1 | a feature, over the head's positions | `dim` |
    | -1 | -1 | a frame, over the head's features | `dim / num_heads` |
    | -1 | 1 | a frame, over all features | `dim` |

    Time may as well be the layers of an encoder, as in the paper's
    experiments: eight heads of three layers with `head_axis=1`.

    Args:
        num_heads: int, the number of heads.
        axis: 1 or -1, whose entries share one mean and one variance.
        head_axis: -1 or 1, which is cut among the heads, each a contiguous
            part. With 1, the length must be known when the layer is built
            and is then fixed.
        epsilon: float, added to the variance, and the least width.
        **kwargs: further arguments of `Attention`: `causal=True` needs
            `axis=-1`; `dropout` drops entries of the Gaussian map, the others
            growing to make up for it, and is not in the paper.

    Call arguments are those of `Attention`; the map is the Gaussian one.

    Returns:
        Tensor `(batch, time, dim)`; with `return_attention_scores`, a pair.
        Both are zero at padded frames.

    Raises:
        TypeError: if there is an unknown argument.
        ValueError: if an argument is out of range, `causal=True` with
            statistics over time, the input is not of three axes, or
            `num_heads` does not divide its `head_axis`.

    Examples:
        >>> from keras import ops
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> class Flat(attention.GaussianAttention):
        ...     def build_gaussian(self, shape):
        ...         pass
        ...     def gaussian(self, x, mean, deviation, real):
        ...         return ops.ones_like(x)
        >>> layer = Flat(num_heads=2)
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    takes_key_dim = False
    # Of the default axis; an instance knows its own.
    supports_causal = False
    complexity = "O(L D)"
    map_kind = "features"
    unbiased = False
    # Gaussians that a call forms of each entry.
    maps = 1

    def __init__(
        self,
        num_heads,
        axis=1,
        head_axis=-1,
        epsilon=EPSILON,
        **kwargs,
    ):
        for name, value in (("axis", axis), ("head_axis", head_axis)):
            if type(value) is not int or value not in (1, -1):
                raise ValueError(
                    f"`{name}` must be 1 (positions) or -1 (features). "
                    f"Received: {name}={value!r}"
                )
        # Statistics over time see all of it.
        self.supports_causal = axis == -1
        super().__init__(num_heads, **kwargs)
        check_positive(epsilon=epsilon)
        self.axis = axis
        self.head_axis = head_axis
        self.epsilon = epsilon
        # Fixed when built, if heads cut positions.
        self.length = None

    def build(self, input_shape):
        self.check_shape(input_shape)
        dim = input_shape[-1]
        if self.head_axis == -1:
            dim //= self.num_heads
        else:
            self.length = input_shape[1]
        self.weight_dropout = Dropout(
            self.dropout, dtype=self.dtype_policy, name="weight_dropout"
        )
        self.build_gaussian((self.num_heads, dim))

    def weight(self, name, shape, initializer):
        """Adds a weight that stays in float32 under mixed precision."""
        # Rounding to half precision would move the statistics.
        return self.add_weight(
            name=name, shape=shape, initializer=initializer, autocast=False
        )

    def build_gaussian(self, shape):
        """Creates the weights of the Gaussian, each of a shape."""
        raise NotImplementedError  # abstract

    def gaussian(self, x, mean, deviation, real):
        """Computes the Gaussian's value for each feature of each frame."""
        raise NotImplementedError  # abstract

    @property
    def moment_axis(self):
        """The place of `axis` once heads have an axis of their own."""
        if self.axis == -1:
            return -1
        return 1 if self.head_axis == -1 else 2

    def per_head(self, weight):
        """Shapes `(H, D)` for inputs with heads on an axis of their own."""
        return ops.expand_dims(weight, 1) if self.head_axis == 1 else weight

    def width(self, weight):
        """Keeps widths from zero, and shapes them as `per_head` does."""
        return self.per_head(ops.maximum(weight, self.epsilon))

    def cut(self, x):
        """Gives heads an axis: `(B, T, H, D)` or `(B, H, T / H, D)`."""
        batch, length, dim = ops.shape(x)
        if self.head_axis == 1:
            # No -1 here: it would swallow a length other than the built one.
            part = self.length // self.num_heads
            return ops.reshape(x, (batch, self.num_heads, part, dim))
        return ops.reshape(
            x, (-1, length, self.num_heads, dim // self.num_heads)
        )

    def transform(self, inputs, mask, training, with_map):
        frames = None if mask is None else ops.expand_dims(mask, -1)
        x, real = statistics.to_float32(self.cut(inputs)), None
        if frames is not None and self.axis == 1:
            real = (
                self.cut(frames)
                if self.head_axis == 1
                else ops.expand_dims(frames, -1)
            )
        mean, variance = statistics.moments(
            x, self.moment_axis, real, self.unbiased
        )
        deviation = ops.sqrt(variance + self.epsilon)
        weights = self.gaussian(x, mean, deviation, real)
        weights = ops.cast(weights, inputs.dtype)
        weights = ops.reshape(weights, ops.shape(inputs))  # (B, T, F)
        if frames is not None:
            weights = masks.zero_padding(weights, mask)
        attended = inputs * self.weight_dropout(weights, training=training)
        return attended, weights

    def last_outputs(self, inputs, count):
        if self.head_axis == 1:
            return super().last_outputs(inputs, count)
        past = ops.shape(inputs)[1] - count
        return self(blocks.narrow(inputs, 1, past, count))

    def check_shape(self, shape):
        super().check_shape(shape)
        name = type(self).__name__
        size = shape[self.head_axis]
        if self.head_axis == 1:
            fixed = size if self.length is None else self.length
            # A graph may not know the length, but building must.
            if not self.built and size is None:
                raise ValueError(
                    f"{name} with head_axis=1 needs a known length. "
                    f"Received: shape={tuple(shape)}"
                )
            if size not in (None, fixed):
                raise ValueError(
                    f"{name} with head_axis=1 was built for {fixed} "
                    f"positions. Received: shape={tuple(shape)}"
                )
        if size is not None and size % self.num_heads:
            raise ValueError(
                f"`num_heads` must divide axis {self.head_axis} of the input "
                f"of {name}. Received: num_heads={self.num_heads}, "
                f"shape={tuple(shape)}"
            )

    def cost(self, length, dim, training=False):
        # A Gaussian has no matrix product.
        return Cost(0, 4 * self.maps * length * dim)

    def get_config(self):
        return {
            **super().get_config(),
            "axis": self.axis,
            "head_axis": self.head_axis,
            "epsilon": self.epsilon,
        }


@keras.saving.register_keras_serializable("audio_tf")
class SkewedGaussianAttention(GaussianAttention):
    """Skewed Gaussian attention (SGA): a reading, not a reproduction.

    The paper that defines it (Chen and Li, Pattern Recognition 139, 109467,
    2023) is not public. "Gaussian Adaptive Attention is All You Need"
    (arXiv 2401.11143), which compares with it, says only that it extends the
    Gaussian context transformer (its equation 5) by a mean that is learnt,
    `m (1 + tanh theta)`; the title adds that the Gaussian is asymmetric. So,
    with mean `m` and variance `v` over `axis`:

        psi = m * (1 + tanh(theta))
        y = (x - psi) / sqrt(v + epsilon)
        G = exp(-y^2 / (2 left)) where x < psi, exp(-y^2 / (2 right)) elsewhere
        output = x * G

    with vectors `theta`, `left` and `right` over the features of each head
    that are learnt. They start at 0, 2 and 2, where the layer is
    `GaussianAdaptiveAttention`. What the original pools over time first is
    here kept for each position, and no claim is made that figures published
    for SGA are this layer's.

    Arguments, call arguments and errors are those of `GaussianAttention`. A
    `left` or `right` below `epsilon` counts as `epsilon`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.SkewedGaussianAttention(num_heads=2, axis=-1)
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    # Of each Gaussian, where left and right start.
    widths = ((2.0, 2.0),)

    def build_gaussian(self, shape):
        self.skewed = [
            (
                self.weight(f"mean_shift_{index}", shape, "zeros"),
                self.weight(
                    f"left_width_{index}",
                    shape,
                    keras.initializers.Constant(left),
                ),
                self.weight(
                    f"right_width_{index}",
                    shape,
                    keras.initializers.Constant(right),
                ),
            )
            for index, (left, right) in enumerate(self.widths)
        ]

    def gaussian(self, x, mean, deviation, real):
        total = 0.0
        for weights in self.skewed:
            shift, left, right = [ops.cast(w, x.dtype) for w in weights]
            distance = x - mean * (1.0 + self.per_head(ops.tanh(shift)))
            width = ops.where(
                distance < 0.0, self.width(left), self.width(right)
            )
            total += ops.exp(-0.5 * ops.square(distance / deviation) / width)
        return total / len(self.skewed)


@keras.saving.register_keras_serializable("audio_tf")
class BiSkewedGaussianAttention(SkewedGaussianAttention):
    """Two skewed Gaussians (bi-SGA): a reading, not a reproduction.

    The mean of two maps of `SkewedGaussianAttention`, each with its own
    `theta`, `left` and `right`. No public text says how the original combines
    its two; see there for what is known. The two start as mirror images, with
    widths 3 and 1 and widths 1 and 3: alike, they would stay alike.

    Arguments, call arguments and errors are those of `GaussianAttention`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.BiSkewedGaussianAttention(num_heads=2)
        >>> tuple(layer(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    maps = 2

    widths = ((3.0, 1.0), (1.0, 3.0))
