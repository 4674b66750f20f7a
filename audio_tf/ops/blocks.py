"""Pieces of time: slices, positions, blocks and windows.

Lengths may be unknown until run time. A last block that is not full is filled
up with zeros (False).
"""

from keras import ops


def narrow(x, axis, start, count):
    """Takes `x[start : start + count]` along one axis.

    On TensorFlow the gradient of indexing is ten times slower than this one.
    """
    x = ops.convert_to_tensor(x)
    starts, sizes = [0] * len(x.shape), list(ops.shape(x))
    starts[axis], sizes[axis] = start, count
    return ops.slice(x, starts, sizes)


def count(length, size):
    """Counts the blocks of `size` that hold `length`: rounds the quotient up.

    Not `-(-length // size)`: ONNX rounds integer quotients towards zero.

    Args:
        length: integer, or integer tensor of any shape.
        size: int, positions of a block.
    """
    return (length + size - 1) // size


def count_windows(length, size, stride):
    """Counts the windows that are filled; at least one, filled up or not.

    Args:
        length: integer, or integer tensor of any shape.
        size: int, positions of a window.
        stride: int, positions from one window to the next.
    """
    return 1 + at_least(length - size, 0) // stride


def at_least(number, least):
    """Returns the larger of two; an integer where both are."""
    if isinstance(number, int):
        return max(number, least)
    return ops.maximum(number, least)


def whole_windows(length, size, stride, last):
    """Counts the windows that are filled or, at the end of a clip, begun.

    Args:
        length: integer scalar tensor, positions so far.
        size: int, positions of a window.
        stride: int, positions from one window to the next.
        last: boolean scalar tensor, whether nothing follows.

    Returns:
        Integer scalar tensor.
    """
    filled = ops.maximum((length - size) // stride + 1, 0)
    return ops.where(last, count(length, stride), filled)


def fill_up(x):
    """Fills `(batch, 0, ...)` up to one position in time, of zeros (False).

    Returns:
        `(batch, 1, ...)`.
    """
    padding = [[0, 0]] * len(x.shape)
    padding[1] = [0, 1]
    return ops.pad(x, padding)


def cut(x, size):
    """Cuts `(B, H, T, V)` into blocks `(B, H, N, size, V)`."""
    return windows(x, size, 0, 0)


def windows(x, size, left, right):
    """Cuts time into blocks and takes each with its surroundings.

    Args:
        x: tensor `(B, H, T, V)`.
        size: int, positions of a block.
        left: int, positions before the block to take along.
        right: int, positions after the block to take along.

    Returns:
        `(B, H, N, left + size + right, V)`.
    """
    length = ops.shape(x)[2]
    number, further = count(length, size), count(left + right, size)
    padded = (number + further) * size
    x = ops.pad(x, [[0, 0], [0, 0], [left, padded - left - length], [0, 0]])
    x = ops.reshape(
        x, (-1, x.shape[1], number + further, size, ops.shape(x)[3])
    )
    if further == 0:
        return x
    rest = left + right - (further - 1) * size
    pieces = [narrow(x, 2, index, number) for index in range(further)]
    pieces.append(narrow(narrow(x, 2, further, number), 3, 0, rest))
    return ops.concatenate(pieces, axis=3)


def join(x, length):
    """Undoes `cut`: `(B, H, N, size, V)` to `(B, H, length, V)`."""
    shape = ops.shape(x)
    x = ops.reshape(x, (-1, x.shape[1], shape[2] * shape[3], shape[4]))
    return narrow(x, 2, 0, length)


def delay(x, frames):
    """Moves `(batch, time, ...)` later by an int of frames, zeros in front."""
    padding = [[0, 0]] * len(x.shape)
    padding[1] = [frames, 0]
    return ops.pad(x, padding)[:, : ops.shape(x)[1]]


def clamp(x, low, high):
    """Does what `ops.clip` does with limits that broadcast to `x`.

    TensorFlow's `ops.clip` takes scalars alone.
    """
    return ops.minimum(ops.maximum(x, low), high)


def take_frames(x, indices):
    """Takes frames, other ones for each clip.

    Args:
        x: tensor `(batch, time, dim)`.
        indices: int32 tensor `(batch, count)`, each in `[0, time)`.

    Returns:
        `x[b, indices[b]]`, `(batch, count, dim)`.
    """
    indices = ops.expand_dims(indices, 1)
    return ops.squeeze(gather(ops.expand_dims(x, 1), indices), 1)


def gather(x, indices):
    """Takes positions in time, other ones for each clip and head.

    Args:
        x: tensor `(B, H, T, V)`.
        indices: int32 tensor `(B, H, C)`, each in `[0, T)`.

    Returns:
        `(B, H, C, V)`.
    """
    batch, heads, length, dim = ops.shape(x)
    rows = ops.arange(batch * heads, dtype="int32")
    rows = ops.reshape(rows, (batch, heads, 1))
    taken = ops.take(ops.reshape(x, (-1, dim)), indices + rows * length, axis=0)
    # Of an empty batch JAX takes nothing, in another shape.
    return ops.reshape(taken, (batch, heads, ops.shape(indices)[2], dim))
