"""Averages over time at several scales, one per group of features."""

import keras
from keras import ops

from audio_tf.layers.stages import Stage
from audio_tf.ops import blocks, masks
from audio_tf.ops.layer import Layer


def halving_groups(dim, max_window):
    """Divides features into groups, each of which has a window of its own.

    Half of the features are left alone; of those that remain, half get a
    window of 2, a quarter 4, and so on. The largest window takes the rest.

    Returns:
        List of `(features, window)`; the features sum to `dim`.
    """
    groups, remaining, window = [(dim - dim // 2, 1)], dim // 2, 2
    while remaining:
        last = window * 2 > max_window
        count = remaining if last else remaining - remaining // 2
        groups.append((count, window))
        remaining -= count
        window *= 2
    return groups


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
        window: int, a power of two, frames of an average.

    Returns:
        Tensor like `x`.
    """
    total, count, reach = x, real, 1
    while reach < window:
        # Not in place: on Torch that would change `real` for the next group.
        total = total + blocks.delay(total, reach)
        count = count + blocks.delay(count, reach)
        reach *= 2
    return total / ops.maximum(count, 1.0)


@keras.saving.register_keras_serializable("audio_tf")
class MultiScaleAverage(Stage, Layer):
    """A layer of wavelet-like averages: half of the features stay as they are.

    Section 3.4 of "Audio Transformers" (arXiv 2105.00335). Half of the
    features pass untouched; the others are averaged over windows of 2, 4, 8,
    ... frames, fewer features for the larger windows, and the length stays.
    The paper writes one mean to all frames of a window: blocks, which lets a
    frame see the later ones of its block. `causal=True` averages the last
    frames instead. The share of each window is not stated there: it halves
    from scale to scale here. Only real frames count.

    Args:
        max_window: int, a power of two, the largest window in frames.
        causal: bool, whether an average is over the last frames in place of
            the frames of a block.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.

    Returns:
        Tensor `(batch, time, dim)`. Real frames do not depend on padding,
        even if it holds NaN.
    """

    def __init__(self, max_window=32, causal=False, **kwargs):
        super().__init__(**kwargs)
        if max_window < 2 or max_window & (max_window - 1):
            raise ValueError(
                "`max_window` must be a power of two, at least 2. "
                f"Received: max_window={max_window}"
            )
        self.supports_masking = True
        self.max_window = max_window
        self.causal = causal

    def call(self, inputs, mask=None):
        real = masks.factors(inputs, mask)
        if mask is not None:
            inputs = masks.zero_padding(inputs, mask)
        average = trailing_average if self.causal else block_average
        start, groups = 0, []
        for count, window in halving_groups(inputs.shape[-1], self.max_window):
            group = inputs[:, :, start : start + count]
            groups.append(
                group if window == 1 else average(group, real, window)
            )
            start += count
        return ops.concatenate(groups, axis=-1)

    def stream_memory(self, frames):
        return ops.minimum(frames, self.max_window - 1)

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
        }
