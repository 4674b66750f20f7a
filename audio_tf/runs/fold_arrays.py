"""Embeddings of clips by layers, and those that a file of arrays has."""

import dataclasses
import pathlib
import zipfile

import numpy as np

from audio_tf import intervals, released
from audio_tf.corpora import Corpus


@dataclasses.dataclass(frozen=True)
class Embedded:
    """Chunks of clips as embeddings of layers, and what the clips are.

    Attributes:
        x: float32 `(chunks, layers, dim)`.
        clips: int64 `(chunks,)`, the index of each chunk's clip.
        targets: float32 `(clips, classes)`, one 1 in each row.
        groups: str array `(clips,)`, or `None`.
        splits: str array `(clips,)`, or `None`.
        vocabulary: list of str, the classes.
        layers: list of int, the numbers of the layers in the encoder.
        corpus: `Corpus` of the clips, `None` where arrays are all there is.
        marks: uint64 `(clips,)`, those of `Clips`, `None` without any audio.
    """

    x: np.ndarray
    clips: np.ndarray
    targets: np.ndarray
    groups: np.ndarray | None
    splits: np.ndarray | None
    vocabulary: list
    layers: list
    corpus: Corpus | None = None
    marks: np.ndarray | None = None

    def units(self, rows):
        """Returns what is drawn anew for the interval of a figure of clips.

        Args:
            rows: boolean array `(clips,)`.

        Returns:
            Pair as `intervals.units` returns it, of the clips that are
            selected.
        """
        chosen = np.flatnonzero(rows)
        if self.corpus is None:
            return "clip", np.arange(len(chosen))
        return intervals.units(self.corpus.select(chosen))

    def part(self, rows):
        """Selects the chunks of clips.

        Args:
            rows: boolean array `(clips,)`.

        Returns:
            Triple of embeddings `(chunks, layers, dim)`, targets of chunks
            `(chunks, classes)` and the place of each chunk's clip among the
            clips that are selected.
        """
        chunks = rows[self.clips]
        places = np.cumsum(rows) - 1
        clips = self.clips[chunks]
        return self.x[chunks], self.targets[clips], places[clips]


def stored_arrays(path):
    """Reads the arrays of a `.npz` file, none of Python objects.

    Args:
        path: the file.

    Returns:
        Dict of arrays by name.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is none, or an array cannot be read.
    """
    # Numpy takes any other file for pickled objects, or for one array.
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(
                f"{path}: must be a .npz, as `numpy.savez` writes it. "
                "Received: a file that is none, or not whole"
            )
    arrays = {}
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            try:
                arrays[name] = stored[name]
            except (ValueError, zipfile.BadZipFile) as error:
                raise ValueError(
                    f"{path}: `{name}` must be a whole array of numbers or of "
                    "str; `.astype(str)` makes names of objects. "
                    f"Received: {error}"
                ) from error
    return arrays


def read_arrays(path):
    """Reads embeddings that were computed elsewhere.

    Args:
        path: a `.npz` file, as `audio-tf emotion --help` says.

    Returns:
        `Embedded`, each clip one chunk.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is none, or an array is missing, unknown, not
            readable or does not fit.
    """
    arrays = stored_arrays(path)
    known = {"embeddings", "labels", "groups", "splits"}
    wanted = {"embeddings", "labels"}
    if not wanted <= arrays.keys() <= known:
        raise ValueError(
            f"{path}: must hold `embeddings`, `labels` and, optionally, "
            f"`groups` or `splits`. Received: {sorted(arrays)}"
        )
    x = arrays["embeddings"]
    fits = x.ndim == 3 and x.dtype.kind == "f"
    if fits:
        with np.errstate(over="ignore"):
            # As it is, if it is: they may fill half the memory.
            x = x.astype("float32", copy=False)
    if not fits or not np.isfinite(x).all():
        given = arrays["embeddings"]
        raise ValueError(
            f"{path}: `embeddings` must be floats (clips, layers, dim), finite "
            f"in float32. Received: {given.dtype}, shape={given.shape}"
        )
    for name in arrays.keys() - {"embeddings"}:
        if arrays[name].shape != x.shape[:1]:
            raise ValueError(
                f"{path}: `{name}` must have one value for each of {len(x)} "
                f"clips. Received: shape={arrays[name].shape}"
            )
        arrays[name] = as_names(path, name, arrays[name])
    splits = arrays.get("splits")
    if splits is not None:
        strange = sorted(set(splits.tolist()) - {"train", "val", "test"})
        if strange:
            raise ValueError(
                f"{path}: `splits` must be train, val or test. "
                f"Received: {strange}"
            )
    names, labels = np.unique(arrays["labels"], return_inverse=True)
    groups = arrays.get("groups")
    return Embedded(
        x,
        np.arange(len(x)),
        np.eye(len(names), dtype="float32")[labels],
        None if groups is None else groups.astype(str),
        splits,
        [str(name) for name in names],
        list(range(1, x.shape[1] + 1)),
    )


def as_names(path, name, array):
    """Returns an array of a file as names or, as they are, numbers.

    Args:
        path: the file, for messages.
        name: str, the array, for messages.
        array: array of numbers, of str, or of bytes, which are taken for
            UTF-8, as HDF5 has names.

    Raises:
        ValueError: if it is of anything else, or one is missing.
    """
    if array.dtype.kind == "S":
        try:
            return np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}: `{name}` must be in UTF-8. Received: {error}"
            ) from error
    is_number = array.dtype.kind in "biuf"
    # As pandas has a label that is missing.
    if array.dtype.kind == "U" or (is_number and np.isfinite(array).all()):
        return array
    wrong = np.unique(array[~np.isfinite(array)]) if is_number else array.dtype
    raise ValueError(
        f"{path}: `{name}` must be names or finite numbers. Received: {wrong}"
    )


def arrays_record(path, embedded):
    """Notes a file of embeddings as the only one of a corpus.

    Args:
        path: the `.npz` file.
        embedded: `Embedded`, as `read_arrays` returns it.

    Returns:
        A `corpus_record`, which has a checksum of the file for its label.
    """
    path = pathlib.Path(path)
    noted = [path.stat().st_size, released.checksum(path)]
    return {
        "vocabulary": embedded.vocabulary,
        "splits": {"all": {path.name: noted}},
        "left_out": {},
    }
