"""Boolean attention masks; True means "may be attended to"."""

import keras
from keras import ops


def from_lengths(lengths, max_length):
    """Marks the first `lengths[b]` positions of each row.

    Args:
        lengths: integer tensor `(batch,)`.
        max_length: integer or scalar tensor, the width of the mask.

    Returns:
        Boolean tensor `(batch, max_length)`.
    """
    positions = ops.arange(max_length, dtype="int32")
    lengths = ops.cast(lengths, "int32")
    return ops.expand_dims(positions, 0) < ops.expand_dims(lengths, 1)


def within(lengths, max_length):
    """Brings lengths into `[0, max_length]`, whatever integers they are.

    A cast to int32 alone would wrap larger ones around, and so would sums.

    Args:
        lengths: integer tensor of any shape.
        max_length: integer or scalar tensor.

    Returns:
        Int32 tensor.
    """
    dtype = keras.backend.standardize_dtype(lengths.dtype)
    if dtype in ("int64", "uint32", "uint64"):
        lengths = ops.clip(lengths, 0, 2**31 - 1)
    lengths = ops.maximum(ops.cast(lengths, "int32"), 0)
    return ops.minimum(lengths, ops.cast(max_length, "int32"))


def causal(length):
    """Lets position `i` see the positions `j <= i`.

    Args:
        length: integer or scalar tensor.

    Returns:
        Boolean tensor `(length, length)`, query by key.
    """
    positions = ops.arange(length, dtype="int32")
    return ops.expand_dims(positions, 1) >= ops.expand_dims(positions, 0)


def keys(mask):
    """Shapes a padding mask `(batch, time)` to `(batch, 1, 1, time)`."""
    return ops.expand_dims(ops.expand_dims(mask, 1), 1)


def queries(mask):
    """Shapes a padding mask `(batch, time)` to `(batch, 1, time, 1)`."""
    return ops.expand_dims(ops.expand_dims(mask, 1), 3)


def zero_padding(x, mask):
    """Zeros in place of padded frames, whatever they hold, NaN too.

    Args:
        x: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real.

    Returns:
        Tensor like `x`; no gradient passes to padded frames.
    """
    return ops.where(ops.expand_dims(mask, -1), x, ops.zeros((), x.dtype))


def combine(*masks):
    """Intersects broadcastable masks; `None` stands for all True.

    Returns:
        A boolean tensor, or `None` if every mask is `None`.
    """
    combined = None
    for mask in masks:
        if mask is None:
            continue
        mask = ops.cast(mask, "bool")
        combined = mask if combined is None else combined & mask
    return combined
