"""Files with labels in batches, and the bad ones among them."""

import random
import warnings

import keras
import numpy as np

from audio_tf.models.named_files import check_counts, file_names
from audio_tf.ops.checks import check_sizes

BATCH_SIZE = 32  # Keras' own default.


def size_of(batch_size):
    """Returns the files of a batch, Keras' own number for `None`.

    Raises:
        ValueError: if it is no positive integer.
    """
    if batch_size is None:
        return BATCH_SIZE
    check_sizes(batch_size=batch_size)
    return batch_size


class ClipBatch:
    """Some files with what is known of them.

    Args:
        names: list of str, the paths.
        targets: array `(clips, ...)`, or `None`.
        weights: array `(clips,)`, or `None`.
    """

    def __init__(self, names, targets=None, weights=None):
        check_counts(names, y=targets, sample_weight=weights)
        self.names = names
        self.targets = None if targets is None else np.asarray(targets)
        self.weights = None if weights is None else np.asarray(weights)

    def __len__(self):
        return len(self.names)

    def require_labels(self):
        """Raises a `ValueError` without labels."""
        if self.targets is None:
            raise ValueError(
                f"Files need labels here. Received: {len(self)} files alone"
            )

    def select(self, rows):
        """Returns some of the files.

        Args:
            rows: slice, or boolean array `(clips,)`.
        """
        names = np.array(self.names, object)[rows].tolist()
        beside = (self.targets, self.weights)
        return ClipBatch(names, *(b if b is None else b[rows] for b in beside))


class ListedFiles(ClipBatch):
    """Files that were given as a list, with labels beside it."""

    def batches(self, batch_size):
        """Yields `ClipBatch` of so many files, in their order."""
        batch_size = size_of(batch_size)
        for first in range(0, len(self), batch_size):
            yield self.select(slice(first, first + batch_size))

    def count(self, batch_size):
        """Returns the number of batches."""
        return -(-len(self) // size_of(batch_size))

    def dataset(self):
        """Returns a `tf.data.Dataset` of single files."""
        from audio_tf.audio import graph_rows

        weights = self.weights
        if weights is not None:
            weights = weights.astype("float32")
        return graph_rows.clip_dataset(self.names, self.targets, weights)

    def batched(self, batch_size):
        """Returns a `tf.data.Dataset` of batches of files."""
        return self.dataset().batch(size_of(batch_size))

    def split(self, share):
        """Cuts the last files off, as Keras' `validation_split` does.

        Args:
            share: float, the share that is cut off.

        Returns:
            Pair of `ListedFiles`.

        Raises:
            ValueError: if one of them would be empty.
        """
        count = int(len(self) * (1.0 - share))
        if not 0 < count < len(self):
            raise ValueError(
                "`validation_split` must leave files for training and for "
                f"validation. Received: validation_split={share}, "
                f"{len(self)} files"
            )
        parts = [self.select(slice(count)), self.select(slice(count, None))]
        return [ListedFiles(p.names, p.targets, p.weights) for p in parts]

    def rows_of(self, batch_size):
        """Returns how many rows a batch of training has."""
        return size_of(batch_size)

    def seed_of(self, shuffle):
        """Returns the seed by which to shuffle, or `None`."""
        return random.randrange(2**31) if shuffle else None

    def are_all(self, bad):
        """Returns whether every file is among bad ones, a `BadFiles`."""
        return set(self.names) == set(bad)


class StreamedFiles:
    """Files that come in the batches of a `tf.data.Dataset`.

    Args:
        stream: `tf.data.Dataset` of batches of paths, or of tuples of paths,
            labels and weights.
        preprocessor: `AudioClassifierPreprocessor`.

    Raises:
        ValueError: if files do not come in batches.
    """

    targets = None  # They come with each batch alone.

    def __init__(self, stream, preprocessor):
        names, _, _ = keras.utils.unpack_x_y_sample_weight(stream.element_spec)
        if len(names.shape) != 1:
            raise ValueError(
                "A dataset of files must have batches of them, as "
                f"`dataset.batch({BATCH_SIZE})` has. "
                f"Received: names of shape {tuple(names.shape)}"
            )
        self.stream = stream
        self.preprocessor = preprocessor

    def batches(self, batch_size):
        """Yields `ClipBatch`, those of the dataset."""
        self.refuse_size(batch_size)
        empty = True
        for element in self.stream:
            empty = False
            found = keras.utils.unpack_x_y_sample_weight(element)
            names, y, weights = found
            yield ClipBatch(
                file_names(names), self.preprocessor.targets(y), weights
            )
        if empty:
            raise ValueError(
                "A dataset of files must not be empty. Received: no files"
            )

    def count(self, batch_size):
        """Returns the number of batches, `None` if it is not known."""
        count = int(self.stream.cardinality())
        # Of none, `batches` tells.
        return count if count > 0 else None

    def dataset(self):
        """Returns a `tf.data.Dataset` of single files."""
        return self.stream.unbatch()

    def batched(self, batch_size):
        """Returns the `tf.data.Dataset` of batches of files."""
        return self.stream

    def split(self, share):
        """Raises a `ValueError`: only Keras' arrays can be cut."""
        raise ValueError(
            "`validation_split` is of lists of files, not of a dataset. "
            f"Received: validation_split={share}"
        )

    def rows_of(self, batch_size):
        """Returns how many rows a batch of training has: the first's files."""
        return len(next(self.batches(batch_size)))

    def refuse_size(self, batch_size):
        """Raises a `ValueError` if batches of another size are asked for."""
        if batch_size is not None:
            raise ValueError(
                "A dataset of files has its own batches. "
                f"Received: batch_size={batch_size!r} beside it"
            )

    def seed_of(self, shuffle):
        """Returns `None`: a dataset has the order that its owner gave it."""
        return None

    def require_labels(self):
        """Raises a `ValueError` without labels."""
        spec = self.stream.element_spec
        if keras.utils.unpack_x_y_sample_weight(spec)[1] is None:
            raise ValueError(
                f"Files need labels here. Received: a dataset of {spec}"
            )

    def are_all(self, bad):
        """Returns whether every file is among bad ones, a `BadFiles`."""
        names = set()
        if bad:
            for batch in self.batches(None):
                names.update(batch.names)
        return bool(bad) and names == set(bad)


class BadFiles(dict):
    """The bad files of a pass: the reason by the name of each."""

    def report(self, name, reason):
        """Notes a file, of which there may have been word before."""
        self[name] = reason

    def warn(self, consequence):
        """Reports the files by a warning, if there are any.

        Args:
            consequence: str, what becomes of them.
        """
        if self:
            name, reason = next(iter(self.items()))
            warnings.warn(
                f"{len(self)} bad files, {consequence}; the first is "
                f"{name}: {reason}",
                stacklevel=4,
            )

    def refuse(self):
        """Raises a `ValueError`, since there is no file but bad ones."""
        name, reason = next(iter(self.items()))
        raise ValueError(
            "None of the files can be used. "
            f"Received: {len(self)}, the first is {name}: {reason}"
        )
