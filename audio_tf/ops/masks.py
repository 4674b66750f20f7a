"""Masks: which positions are real, and which may be attended to.

Masks are boolean and True where a position counts. `from_lengths` and
`to_lengths` are the two directions between a mask and the lengths of clips.
"""

import keras
from keras import ops

from audio_tf.ops.checks import count_axes


def from_lengths(lengths, max_length):
    """Marks the first `lengths[b]` positions of each row.

    Args:
        lengths: integer tensor or list `(batch,)`; lengths beyond the width
            count as all of it, negative ones as 0.
        max_length: integer or scalar tensor, the width of the mask.

    Returns:
        Boolean tensor `(batch, max_length)`.

    Raises:
        ValueError: if there is not one integer for each clip.
    """
    positions = ops.arange(max_length, dtype="int32")
    lengths = of_clips(lengths, max_length)
    return ops.expand_dims(positions, 0) < ops.expand_dims(lengths, 1)


def to_lengths(mask):
    """Counts the real positions of each row, which must come first.

    Args:
        mask: boolean tensor `(batch, time)`; of numbers, all but 0 are True.

    Returns:
        Int32 tensor `(batch,)`.
    """
    # A mask of 0 and 255 would be summed to more frames than there are.
    return ops.sum(ops.cast(ops.cast(mask, "bool"), "int32"), axis=1)


def real_lengths(x, lengths=None):
    """Completes the lengths of clips and brings them into range.

    Args:
        x: tensor `(batch, time, ...)`.
        lengths: integer tensor or list `(batch,)`, the real positions of each
            clip along axis 1, or `None` where all are real.

    Returns:
        Int32 tensor `(batch,)`, each in `[0, time]`.

    Raises:
        ValueError: if there is not one integer for each clip.
    """
    batch, length = ops.shape(x)[0], ops.shape(x)[1]
    if lengths is None:
        return ops.zeros((batch,), dtype="int32") + length
    return of_clips(lengths, length)


def of_clips(lengths, max_length):
    """Does what `within` does, of one length for each clip, `(batch,)`."""
    lengths = within(lengths, max_length)
    if count_axes(lengths) not in (1, None):
        raise ValueError(
            "`lengths` must be one for each clip, (batch,). "
            f"Received: lengths of shape {tuple(lengths.shape)}"
        )
    return lengths


def within(lengths, max_length):
    """Brings lengths into `[0, max_length]`, whatever integers they are.

    A cast to int32 alone would wrap larger ones around, and so would sums.

    Args:
        lengths: integer tensor of any shape, or a list of integers.
        max_length: integer or scalar tensor.

    Returns:
        Int32 tensor.

    Raises:
        ValueError: if lengths are no integers, as shares of the longest clip
            are not, all of which a cast would make 0.
    """
    if not hasattr(lengths, "dtype"):
        lengths = ops.convert_to_tensor(lengths)
    dtype = check_integers(lengths)
    if dtype in ("int64", "uint32", "uint64"):
        lengths = ops.clip(lengths, 0, 2**31 - 1)
    lengths = ops.maximum(ops.cast(lengths, "int32"), 0)
    return ops.minimum(lengths, ops.cast(max_length, "int32"))


def check_integers(lengths):
    """Raises a `ValueError` unless lengths are integers; returns their dtype.

    Args:
        lengths: tensor or array.
    """
    dtype = keras.backend.standardize_dtype(lengths.dtype)
    if "int" not in dtype:
        raise ValueError(
            "`lengths` must be integers, the real samples or frames of each "
            f"clip. Received: dtype={dtype}"
        )
    return dtype


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


def check_shape(mask, x):
    """Raises a `ValueError` for a mask of other clips or of another time.

    It would be repeated over clips that it does not speak of, or be counted
    to lengths that are not theirs.

    Args:
        mask: tensor or array, `(batch, time)` as far as shapes are known.
        x: tensor or array `(batch, time, ...)`.
    """
    known = zip(mask.shape, x.shape[:2], strict=False)
    if len(mask.shape) != 2 or any(
        None not in pair and pair[0] != pair[1] for pair in known
    ):
        raise ValueError(
            "A mask must have the shape (batch, time) of its inputs. Received: "
            f"a mask of shape {tuple(mask.shape)} for inputs of shape "
            f"{tuple(x.shape)}"
        )


def zero_padding(x, mask):
    """Puts zeros in place of padding, whatever it holds, NaN too.

    Args:
        x: floating tensor `(batch, time, ...)`.
        mask: boolean `(batch, time)`, True where a position is real.

    Returns:
        Tensor like `x`; no gradient passes to padding.

    Raises:
        ValueError: as `check_shape`.
    """
    check_shape(mask, x)
    for _ in range(len(x.shape) - 2):
        mask = ops.expand_dims(mask, -1)
    return ops.where(mask, x, ops.zeros((), x.dtype))


def zero_beyond(x, lengths):
    """Puts zeros behind the end of each clip, as `zero_padding` does.

    Args:
        x: floating tensor `(batch, time, ...)`.
        lengths: integer `(batch,)`, the real positions of each clip.

    Returns:
        Tensor like `x`.
    """
    return zero_padding(x, from_lengths(lengths, ops.shape(x)[1]))


def factors(x, mask=None):
    """Turns a mask into numbers that multiply frames.

    Args:
        x: floating tensor `(batch, time, dim)`, whose dtype the factors have.
        mask: boolean `(batch, time)`, as `to_lengths` takes it, or `None`
            where all frames are real.

    Returns:
        Tensor `(batch, time, 1)`, 1 where a frame is real and else 0.
    """
    if mask is None:
        return ops.ones_like(x[:, :, :1])
    return ops.expand_dims(ops.cast(ops.cast(mask, "bool"), x.dtype), -1)


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
