"""Slopes, normalisation and stacks of the frames of padded clips."""

import keras
from keras import ops

from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import (
    check_flags,
    check_not_negative,
    check_sizes,
)
from audio_tf.ops.layer import FRAMES, Layer

EDGES = ("interp", "nearest")


def weighted_sums(x, reach, weight):
    """Computes `sum of weight(k) * x[t + k]` over `-reach <= k <= reach`.

    Args:
        x: `(batch, frames + 2 * reach, dim)`.
        weight: function of `k`.

    Returns:
        `(batch, frames, dim)`.
    """
    frames = ops.shape(x)[1] - 2 * reach
    return sum(
        weight(k) * blocks.narrow(x, 1, reach + k, frames)
        for k in range(-reach, reach + 1)
    )


def slopes(x, lengths, width=9, edges="interp"):
    """Computes the slope of a line fitted to `width` frames around each.

    Args:
        x: float32 `(batch, time, dim)`.
        lengths: int32 `(batch,)`, real frames of each clip.
        width: int, odd, frames of a fit.
        edges: as of `Deltas`.

    Returns:
        `(batch, time, dim)`; any values behind the end of a clip.
    """
    reach, frames = width // 2, ops.shape(x)[1]
    last = ops.expand_dims(ops.maximum(lengths - 1, 0), 1)
    # What does not vary has no slope of rounding either.
    x = x - x[:, :1]
    if edges == "nearest":
        positions = ops.arange(frames + 2 * reach, dtype="int32") - reach
        # One frame more, to be taken from a batch without any.
        x = ops.pad(x, [[0, 0], [0, 1], [0, 0]])
        x = blocks.take_frames(x, blocks.clamp(positions, 0, last))
        squares = sum(k * k for k in range(-reach, reach + 1))
        return weighted_sums(x, reach, float) / squares
    # Ones beside the features: sums over `k` alone come out as well.
    x = ops.concatenate([x, ops.ones_like(x[:, :, :1])], axis=-1)
    padding = [[0, 0], [reach, reach], [0, 0]]
    x = ops.pad(masks.zero_beyond(x, lengths), padding)
    first_moment = weighted_sums(x, reach, float)
    total = weighted_sums(x, reach, lambda k: 1.0)
    squares = weighted_sums(x[:, :, -1:], reach, lambda k: float(k * k))
    count = ops.maximum(total[:, :, -1:], 1.0)
    mean_k = first_moment[:, :, -1:] / count
    covariance = first_moment[:, :, :-1] - mean_k * total[:, :, :-1]
    # Two frames have 1/2; one has 0, over 0.
    variance = squares - mean_k * first_moment[:, :, -1:]
    fitted = covariance / ops.maximum(variance, 0.5)
    # The fits nearest to the ends count for all frames beyond them. A clip
    # shorter than a fit has one that sees all of it, in its middle.
    centers = blocks.clamp(
        ops.expand_dims(ops.arange(frames, dtype="int32"), 0),
        reach,
        ops.maximum(last // 2, last - reach),
    )
    return blocks.take_frames(fitted, centers)


def stacked_length(frames, size):
    """Stacks that so many frames fill; one, if they fill none.

    Args:
        frames: integer, or integer tensor of any shape.
    """
    return blocks.at_least(frames // size, 1)


def stacked_lengths(lengths, size):
    """Counts real stacks of clips of so many real frames, `int32 (batch,)`."""
    return ops.where(lengths > 0, stacked_length(lengths, size), 0)


def stack(x, lengths, size):
    """Joins frames: `(B, T, F)` to `(B, max(T // size, 1), size * F)`."""
    dim, count = x.shape[-1], stacked_length(ops.shape(x)[1], size)
    x = ops.pad(masks.zero_beyond(x, lengths), [[0, 0], [0, size], [0, 0]])
    x = blocks.narrow(x, 1, 0, count * size)
    x = ops.reshape(x, (-1, count, size * dim))
    return masks.zero_beyond(x, stacked_lengths(lengths, size))


class FrameLayer(Layer):
    """The base of layers on frames of padded clips.

    A subclass gives `transform(x, lengths)`, from float32
    `(batch, time, dim)` and the real frames of each clip, int32 `(batch,)`, to
    float32 with zeros behind the end of each clip.
    """

    first_input = FRAMES

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        lengths = None
        if mask is not None:
            masks.check_shape(mask, inputs)
            lengths = masks.to_lengths(mask)
        lengths = masks.real_lengths(inputs, lengths)
        x = self.transform(ops.cast(inputs, "float32"), lengths)
        return ops.cast(x, self.compute_dtype)

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)


@keras.saving.register_keras_serializable("audio_tf")
class Deltas(FrameLayer):
    """A layer that computes slopes over time, of lines fitted to frames.

    The slope at a frame is that of a line through `width` frames around it:

    `delta[t] = sum_k k x[t + k] / sum_k k^2`, `|k| <= width // 2`:
    as `librosa.feature.delta` and, with `edges="nearest"` and a width of 5,
    torchaudio's `compute_deltas` have it. Applied twice, it gives second
    deltas.

    Args:
        width: int, odd and at least 3, frames of a fit; 9 is librosa's.
        edges: `"interp"`, librosa's default: frames near the ends have the
            slope of the first or last `width` frames. A clip shorter than
            that, which librosa refuses, has one slope, of the line through
            all of it. `"nearest"`: the first and last frames are repeated.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True for the first, real, frames of
            each clip, or `None`.

    Returns:
        Tensor `(batch, time, dim)`, the slopes without the inputs.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> line = 2.0 * np.arange(9, dtype="float32").reshape(1, 9, 1)
        >>> slopes = layers.Deltas(width=5)(line)
        >>> [round(float(slope), 2) for slope in slopes[0, :3, 0]]
        [2.0, 2.0, 2.0]
    """

    def __init__(self, width=9, edges="interp", **kwargs):
        super().__init__(**kwargs)
        check_sizes(width=width)
        if width < 3 or width % 2 == 0 or edges not in EDGES:
            raise ValueError(
                "`width` must be odd and at least 3, and `edges` one of "
                f"{list(EDGES)}. Received: width={width}, edges={edges!r}"
            )
        self.width = width
        self.edges = edges

    def transform(self, x, lengths):
        return masks.zero_beyond(
            slopes(x, lengths, self.width, self.edges), lengths
        )

    def get_config(self):
        return {
            **super().get_config(),
            "width": self.width,
            "edges": self.edges,
        }


@keras.saving.register_keras_serializable("audio_tf")
class UtteranceNorm(FrameLayer):
    """A layer that normalises mean and variance of each clip (CMVN).

    `(x - mean) / (deviation + epsilon)` of each feature over the real frames
    of its clip. Features that do not vary become next to zero.

    Args:
        unbiased: bool. If True, the variance is divided by `frames - 1`, as
            torch does, else by `frames`, as numpy does.
        epsilon: float, added to the deviation.
        min_deviation: float, the value that smaller deviations are raised to,
            or 0 to keep them. The frames of silence differ by a rounding of
            the logarithm, 2e-6, which would come out as noise of size 1;
            features of sound deviate by 0.01 or more.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True for the first, real, frames of
            each clip, or `None`.

    Returns:
        Tensor `(batch, time, dim)`, zeros behind the end of a clip.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frames = np.array([[[1.0], [3.0]]], "float32")
        >>> normalized = layers.UtteranceNorm()(frames)
        >>> [round(float(each), 2) for each in normalized[0, :, 0]]
        [-1.0, 1.0]
    """

    def __init__(
        self, unbiased=False, epsilon=1e-16, min_deviation=1e-4, **kwargs
    ):
        super().__init__(**kwargs)
        check_flags(unbiased=unbiased)
        check_not_negative(epsilon=epsilon, min_deviation=min_deviation)
        self.unbiased = unbiased
        self.epsilon = epsilon
        self.min_deviation = min_deviation

    def transform(self, x, lengths):
        return statistics.standardize(
            x, lengths, self.unbiased, self.epsilon, self.min_deviation
        )

    def get_config(self):
        return {
            **super().get_config(),
            "unbiased": self.unbiased,
            "epsilon": self.epsilon,
            "min_deviation": self.min_deviation,
        }


@keras.saving.register_keras_serializable("audio_tf")
class FrameStacking(FrameLayer):
    """A layer that joins `size` frames into one of `size` times the features.

    `(batch, time, dim)` -> `(batch, max(time // size, 1), size * dim)`.
    Frames at the end of a clip that fill no stack are dropped, as in s3prl's
    branch AlbertNew; a clip of fewer than `size` frames is filled up with
    zeros instead, where the authors' code leaves nothing of it.

    Args:
        size: int, frames of a stack.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True for the first, real, frames of
            each clip, or `None`. `compute_mask` gives the mask of stacks.

    Raises:
        ValueError: if `size` is less than 1.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> stacking = layers.FrameStacking(size=3)
        >>> tuple(stacking(np.zeros((1, 12, 16), "float32")).shape)
        (1, 4, 48)
    """

    def __init__(self, size=3, **kwargs):
        super().__init__(**kwargs)
        check_sizes(size=size)
        self.size = size

    def transform(self, x, lengths):
        return stack(x, lengths, self.size)

    def compute_mask(self, inputs, mask=None):
        if mask is None:
            return None
        mask = ops.cast(mask, "bool")
        # By slices: a functional model has a mask before it knows a length.
        some = ops.any(mask, axis=1, keepdims=True)
        return ops.concatenate(
            [some, mask[:, 2 * self.size - 1 :: self.size]], axis=1
        )

    def compute_output_spec(self, inputs, mask=None):
        batch, length, dim = inputs.shape
        length = None if length is None else stacked_length(length, self.size)
        return keras.KerasTensor(
            (batch, length, self.size * dim), dtype=self.compute_dtype
        )

    def get_config(self):
        return {**super().get_config(), "size": self.size}
