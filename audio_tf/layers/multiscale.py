"""Averages over time at several scales, one per group of features."""

import itertools

import keras
from keras import ops

from audio_tf.layers.stages import Stage
from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import (
    check_flags,
    check_list,
    check_positive,
    check_sizes,
    is_size,
)
from audio_tf.ops.layer import FRAMES, Layer


def powers_of_two(largest):
    """Lists the windows 2, 4, 8, ... up to the largest.

    Raises:
        ValueError: if the largest is no power of two.
    """
    if not is_size(largest) or largest < 2 or largest & (largest - 1):
        raise ValueError(
            "`max_window` must be a power of two, at least 2. "
            f"Received: max_window={largest!r}"
        )
    return [2**power for power in range(1, largest.bit_length())]


def halving_groups(dim, windows):
    """Divides features into groups, each of which has a window of its own.

    Half of the features are left alone; of those that remain, half get the
    first window, a quarter the second, and so on. The last one takes the rest.

    Args:
        dim: int, the number of features.
        windows: list of ints, frames of the windows.

    Returns:
        List of `(features, window)`; the features sum to `dim`.
    """
    groups, remaining = [(dim - dim // 2, 1)], dim // 2
    for window in windows:
        last = window == windows[-1]
        count = remaining if last else remaining - remaining // 2
        groups.append((count, window))
        remaining -= count
    return groups


def share_groups(dim, windows, shares):
    """Divides features into groups as shares say; the first are left alone.

    Args:
        dim: int, the number of features.
        windows: list of ints, frames of the windows.
        shares: list of floats, the share of all features that each window has.

    Returns:
        List like that of `halving_groups`.
    """
    ends = [round(dim * sum(shares[: i + 1])) for i in range(len(shares))]
    counts = [end - start for start, end in itertools.pairwise([0, *ends])]
    return [(dim - ends[-1], 1), *zip(counts, windows, strict=True)]


def block_average(x, real, window):
    """Writes the mean of the real frames of each block to all of the block.

    Args:
        x: `(batch, time, dim)`, zeros where a frame is not real.
        real: 1 or 0 in `(batch, time, 1)`.
        window: int, frames of a block.
    """
    batch, length, dim = ops.shape(x)[0], ops.shape(x)[1], x.shape[-1]
    number = blocks.count(length, window)
    padding = [[0, 0], [0, number * window - length], [0, 0]]
    x = ops.reshape(ops.pad(x, padding), (batch, number, window, dim))
    real = ops.reshape(ops.pad(real, padding), (batch, number, window, 1))
    mean = ops.sum(x, axis=2, keepdims=True) / ops.maximum(
        ops.sum(real, axis=2, keepdims=True), 1.0
    )
    mean = ops.broadcast_to(mean, (batch, number, window, dim))
    return ops.reshape(mean, (batch, number * window, dim))[:, :length]


def trailing_average(x, real, window):
    """Averages the last `window` frames, as far as they exist and are real.

    Args:
        x: `(batch, time, dim)`, zeros where a frame is not real.
        real: 1 or 0 in `(batch, time, 1)`.
        window: int, frames of an average.

    Returns:
        Tensor like `x`.
    """
    total = trailing_sum(x, window)
    return total / ops.maximum(trailing_sum(real, window), 1.0)


def trailing_sum(x, window):
    """Adds up the last `window` frames in steps of powers of two.

    Args:
        x: tensor `(batch, time, dim)`.
        window: int, frames of a sum.

    Returns:
        Tensor like `x`.
    """
    total, taken, part, reach = None, 0, x, 1
    while True:
        if window & reach:
            if total is None:
                total = part
            else:
                total = total + blocks.delay(part, taken)
            taken += reach
        if taken == window:
            return total
        # Not in place: on Torch that would change `x` for the next group.
        part = part + blocks.delay(part, reach)
        reach *= 2


@keras.saving.register_keras_serializable("audio_tf")
class MultiScaleAverage(Stage, Layer):
    """A layer of wavelet-like averages: half of the features stay as they are.

    Section 3.4 of "Audio Transformers" (arXiv 2105.00335). Half of the
    features pass untouched; the others are averaged over windows of 2, 4, 8,
    ... frames, fewer features for the larger windows, and the length stays.
    The paper writes one mean to all frames of a window: blocks, which lets a
    frame see the later ones of its block. `causal=True` averages the last
    frames instead. The share of each window is not stated there: it halves
    from scale to scale here, unless `shares` are given. Only real frames
    count. Averages are computed in float32 or better.

    Args:
        max_window: int, a power of two, the largest of the windows 2, 4, 8,
            ... in frames; 32 if neither it nor `windows` is given.
        causal: bool, whether an average is over the last frames in place of
            the frames of a block.
        windows: list of ints from 2 on, the windows in frames, or `None` for
            those of `max_window`.
        shares: list of floats, for each window the share of all features that
            are averaged over it, or `None` for shares that halve, of half of
            the features. The first features are those that stay.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.

    Returns:
        Tensor `(batch, time, dim)`. Real frames do not depend on padding,
        even if it holds NaN.

    Raises:
        ValueError: if an argument is out of range, `max_window` and `windows`
            are both given, or there are too few features for the windows that
            were given.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> average = layers.MultiScaleAverage(max_window=8, causal=True)
        >>> tuple(average(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    first_input = FRAMES

    def __init__(
        self,
        max_window=None,
        causal=False,
        windows=None,
        shares=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        check_flags(causal=causal)
        for name, values in (("windows", windows), ("shares", shares)):
            if values is not None:
                check_list(name, values, "numbers")
        self.max_window = max_window
        self.causal = causal
        self.windows = None if windows is None else list(windows)
        self.shares = None if shares is None else list(shares)
        self.scales = self.checked_scales()

    def checked_scales(self):
        """Returns the list of the windows that apply, in frames."""
        if self.windows is None:
            scales = powers_of_two(
                32 if self.max_window is None else self.max_window
            )
        else:
            scales = self.windows
            if self.max_window is not None:
                raise ValueError(
                    "`max_window` and `windows` must not both be given. "
                    f"Received: max_window={self.max_window}, "
                    f"windows={scales}"
                )
            check_sizes(**{f"windows[{i}]": x for i, x in enumerate(scales)})
            if not scales or min(scales) < 2 or len(set(scales)) < len(scales):
                raise ValueError(
                    "`windows` must be different ones of 2 frames or more. "
                    f"Received: windows={scales}"
                )
        if self.shares is not None:
            check_positive(
                **{f"shares[{i}]": x for i, x in enumerate(self.shares)}
            )
            if len(self.shares) != len(scales) or sum(self.shares) > 1 + 1e-6:
                raise ValueError(
                    "`shares` must be one for each window, and at most 1 in "
                    f"all. Received: shares={self.shares}, windows {scales}"
                )
        return scales

    def build(self, input_shape):
        empty = [w for count, w in self.groups(input_shape[-1]) if not count]
        # The windows of `max_window` are as many as there is room for.
        given = self.windows is not None or self.shares is not None
        if given and set(empty) - {1}:
            raise ValueError(
                "There must be a feature for each window. Received: "
                f"{input_shape[-1]} features, windows={self.scales}, "
                f"shares={self.shares}: none for {empty}"
            )

    def groups(self, dim):
        """Divides features among the windows; 1 is the window of what stays.

        Args:
            dim: int, the number of features.

        Returns:
            List of `(features, window)`; the features sum to `dim`.
        """
        if self.shares is None:
            return halving_groups(dim, self.scales)
        return share_groups(dim, self.scales, self.shares)

    def call(self, inputs, mask=None):
        inputs = self.as_floats(inputs)
        real = masks.factors(statistics.to_float32(inputs[:, :, :1]), mask)
        if mask is not None:
            inputs = masks.zero_padding(inputs, mask)
        average = trailing_average if self.causal else block_average
        start, groups = 0, []
        for count, window in self.groups(inputs.shape[-1]):
            if not count:
                continue
            group = inputs[:, :, start : start + count]
            if window > 1:
                # A sum of many frames may be out of range where their mean is
                # not.
                mean = average(statistics.to_float32(group), real, window)
                group = ops.cast(mean, inputs.dtype)
            groups.append(group)
            start += count
        return ops.concatenate(groups, axis=-1)

    def stream_memory(self, frames):
        return ops.minimum(frames, max(self.scales) - 1)

    def stream_piece(self, seen, count, last):
        del last
        return self(seen)[:, ops.shape(seen)[1] - count :]

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "max_window": self.max_window,
            "causal": self.causal,
            "windows": self.windows,
            "shares": self.shares,
        }
