"""The rows that batches are made of, and memory that is used again."""

import itertools
import weakref

import numpy as np
import tensorflow as tf

# TensorFlow takes arrays that begin at such addresses as they are, and copies
# others.
ALIGNMENT = 64
# Free pieces that are kept: more than batches are under way at once.
MOST_FREE = 16
# Batches whose rows a generator hands over at once: to hand over those of one
# takes tf.data longer than to read ten chunks.
BATCHES_AT_ONCE = 64


class Buffers:
    """Memory for arrays of one kind, such as the batches of a pass.

    Fresh memory costs several times what it takes to read a batch into it:
    the system has to find and clear each page at its first use. A piece is
    free when the array, all its views and all tensors made of it are gone, so
    that a batch that somebody keeps is never written to.
    """

    def __init__(self):
        self.free = {}

    def empty(self, shape, dtype=np.float32):
        """Returns an array whose values are whatever was there before.

        Args:
            shape: tuple of ints.
            dtype: dtype of the array.
        """
        dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        try:
            # Other threads take and give back as well.
            piece = self.free.setdefault(size, []).pop()
        except IndexError:
            piece = np.empty(size + ALIGNMENT, np.uint8)
        start = -piece.ctypes.data % ALIGNMENT
        # Not as a view of the piece: all views, and views of these, refer to
        # `flat` alone, whose end is the end of them all.
        flat = np.frombuffer(memoryview(piece[start : start + size]), dtype)
        weakref.finalize(flat, self.give_back, size, piece).atexit = False
        return flat.reshape(shape)

    def give_back(self, size, piece):
        """Takes a piece whose array is gone.

        Args:
            size: int, bytes of the array.
            piece: uint8 array, the memory.
        """
        pieces = self.free[size]
        if len(pieces) < MOST_FREE:
            pieces.append(piece)


def rows_dataset(generate):
    """Returns the rows of batches as a dataset, which `rows_of` takes apart.

    Args:
        generate: function of nothing to an iterator of pairs of int arrays
            `(batch,)`: the rows of a batch, at least 0, and a number for each.

    Returns:
        `tf.data.Dataset` of int64 `(2, columns)`, one a batch. Pipelines on it
        are not tuned while they run.
    """

    def tables():
        batches = generate()
        while some := list(itertools.islice(batches, BATCHES_AT_ONCE)):
            columns = max(len(rows) for rows, _ in some)
            table = np.full((len(some), 2, columns), -1, np.int64)
            for batch, pair in zip(table, some, strict=True):
                batch[:, : len(pair[0])] = pair
            yield table

    spec = tf.TensorSpec((None, 2, None), tf.int64)
    dataset = tf.data.Dataset.from_generator(tables, output_signature=spec)
    options = tf.data.Options()
    # The end of an iterator waits for the thread that tunes, which may sleep
    # for a minute, and batches come no faster by it.
    options.autotune.enabled = False
    return dataset.unbatch().with_options(options)


def rows_of(batch):
    """Returns the rows of a batch and the number of each.

    Args:
        batch: int64 array `(2, columns)`, filled up with rows below 0.

    Returns:
        Int64 array `(2, batch)`.
    """
    return batch[:, batch[0] >= 0]


def with_rests_joined(batches, batch_size):
    """Puts the rows of batches that are not full into as few as can be.

    Args:
        batches: list of int arrays `(batch,)`, not empty, in the order of the
            lengths of their clips.
        batch_size: int.

    Returns:
        List of int arrays alike. Those that were full come first.
    """
    full = [rows for rows in batches if len(rows) == batch_size]
    rests = [rows for rows in batches if len(rows) < batch_size]
    if not rests:
        return full
    rows = np.concatenate(rests)
    return full + np.split(rows, range(batch_size, len(rows), batch_size))
