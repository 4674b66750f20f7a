"""Time cut into blocks, so that only what is attended to is multiplied.

Lengths may be unknown until run time. What is missing from a whole block is
filled with zeros (False).
"""

from keras import ops


def narrow(x, axis, start, count):
    """`x[start : start + count]` along one axis.

    On TensorFlow the gradient of indexing is ten times slower than this one.
    """
    x = ops.convert_to_tensor(x)
    starts, sizes = [0] * len(x.shape), list(ops.shape(x))
    starts[axis], sizes[axis] = start, count
    return ops.slice(x, starts, sizes)


def count(length, size):
    """Blocks of `size` that hold `length`, an integer or a scalar tensor.

    Not `-(-length // size)`: ONNX rounds integer quotients towards zero.
    """
    return (length + size - 1) // size


def cut(x, size):
    """Cuts `(B, H, T, V)` into blocks `(B, H, N, size, V)`."""
    return windows(x, size, 0, 0)


def windows(x, size, left, right):
    """Blocks with their surroundings.

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
    return ops.take(ops.reshape(x, (-1, dim)), indices + rows * length, axis=0)
