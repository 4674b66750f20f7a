"""Names of files and of labels, as they may be given, read and checked."""

import os

import keras
import numpy as np

from audio_tf import compat
from audio_tf.models.batch_sources import checked_batches, kind_of
from audio_tf.models.inputs import complete

# The most channels of a recording. Clips that have so few samples, and are
# more than that, are one clip of several channels.
MAX_CHANNELS = 8


def is_text(x):
    """Returns whether something is an array or a tensor of strings."""
    dtype = getattr(x, "dtype", None)
    if is_of_objects(x):
        return all(isinstance(each, (str, bytes)) for each in np.ravel(x))
    return dtype is not None and (
        "string" in str(dtype) or str(dtype).startswith(("<U", "|S", ">U"))
    )


def is_of_objects(x):
    """Returns whether something is an array, or a column, of objects.

    Of columns of tables, those of strings and of categories are, too.
    """
    return getattr(getattr(x, "dtype", None), "kind", None) == "O"


def is_one_name(x):
    """Returns whether something is the name of one file, not of several."""
    if isinstance(x, (str, bytes, os.PathLike)):
        return True
    return is_text(x) and not len(x.shape)


def file_names(x):
    """Returns the names of files as a list of str, `None` if there are none.

    Args:
        x: anything that a model could be given.

    Raises:
        TypeError: if names are among what is no name, or are no names but the
            content of files.
        ValueError: if there is more than one axis.
    """
    if is_one_name(x):
        x = [x.item() if isinstance(x, np.ndarray) else x]
    elif is_text(x):
        x = np.asarray(x)
        if x.ndim != 1:
            raise ValueError(
                "The names of files must be of shape (clips,). "
                f"Received: shape={x.shape}"
            )
        x = x.tolist()
    elif is_of_objects(x) and len(x.shape) == 1:
        x = np.asarray(x).tolist()
    elif not isinstance(x, (list, tuple)):
        return None
    # Strings of numpy are of Python's class, too; those of TensorFlow are not.
    x = [
        each.numpy()
        if is_text(each) and not isinstance(each, (str, bytes, np.ndarray))
        else each
        for each in x
    ]
    others = [
        each for each in x if not isinstance(each, (str, bytes, os.PathLike))
    ]
    if len(others) == len(x):
        return None
    if others:
        raise TypeError(
            "Names of files must not be mixed with anything else. "
            f"Received: {type(others[0]).__name__} among {len(x)} clips"
        )
    names = list(map(os.fsdecode, x))
    if any("\0" in name for name in names):
        raise TypeError(
            "Files are given by their names here; `classify` takes the bytes "
            "of a file, too. Received: bytes that are no name"
        )
    return names


def without_names(x):
    """Returns batches that Keras reads itself, in which there are no names.

    Args:
        x: anything that a model could be given.

    Returns:
        `x`, or the same batches, which are a `ValueError` as soon as there
        are names of files or of labels in one.
    """
    source = kind_of(x)
    return checked_batches(x, lambda batch: refuse_names(batch, source))


def refuse_names(batch, source):
    """Raises a `ValueError` if there are names in a batch.

    Args:
        batch: what a source of batches gives.
        source: str, the class of the source.
    """
    names = file_names(batch)
    if names is None:
        x, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
        names = file_names(x)
        if names is None and y is not None:
            names = label_rows(y)
    if names is not None:
        raise ValueError(
            "Names of files and of labels must be in lists or in a "
            f"`tf.data.Dataset`; in training, a batch of a {source} may be "
            "what `classifier.preprocessor(files, names)` returns. "
            f"Received: {names[:3]} in a batch"
        )


def label_rows(y):
    """Returns the labels of each clip, `None` if they are no names.

    Args:
        y: as `AudioClassifierPreprocessor` is called with.

    Returns:
        List of lists of str.

    Raises:
        TypeError: if names are among what is no name.
        ValueError: if it is one name alone.
    """
    if isinstance(y, (str, bytes)):
        raise ValueError(
            "Labels must be a list, one for each clip. "
            f"Received: the string {y!r}"
        )
    if hasattr(y, "to_list"):  # Ragged tensors have it, and columns of tables.
        y = y.to_list()
    elif is_text(y) or is_of_objects(y):
        y = np.asarray(y).tolist()
    if not isinstance(y, (list, tuple)):
        return None
    several = (list, tuple, set, frozenset)
    rows = [[*each] if isinstance(each, several) else [each] for each in y]
    names = [name for row in rows for name in row]
    texts = [isinstance(name, (str, bytes)) for name in names]
    # Clips of which none has a label are as those of which one has.
    if not any(texts) and (names or not rows):
        return None
    if not all(texts):
        raise TypeError(
            "Names of labels must not be mixed with numbers. "
            f"Received: {names[texts.index(False)]!r} among {names[:5]}"
        )
    return [
        [n.decode() if isinstance(n, bytes) else n for n in row if n]
        for row in rows
    ]


def check_counts(names, **beside):
    """Checks that there is one of everything for each file.

    Args:
        names: list of the names of files, or `None` if clips are no files.
        **beside: arrays or lists, or `None` for what there is not.

    Raises:
        ValueError: if there are more or fewer of one; it names it.
    """
    for name, each in beside.items():
        if names is None or each is None:
            continue
        shape = np.shape(each)
        if not shape or shape[0] != len(names):
            raise ValueError(
                f"There must be one of `{name}` for each file. Received: "
                f"{name} of shape {shape}, {len(names)} files"
            )


def take_rows(x, clips):
    """Returns the row of each clip of an array or tensor, or `None`.

    Args:
        x: array or tensor `(clips, ...)`, or `None`.
        clips: int64 `(rows,)`.
    """
    if x is None:
        return None
    if compat.in_tf_graph():
        from audio_tf.audio import graph_rows

        return graph_rows.take_rows(x, clips)
    return np.asarray(x)[clips]


def stacked(clips):
    """Returns a list of waveforms as one array, as a model is called with.

    Keras would take them for several inputs of one clip.

    Args:
        clips: list of arrays, tensors or lists `(samples,)`.

    Raises:
        ValueError: if they are not of one length.
    """
    shapes = {np.shape(clip) for clip in clips}
    if len(shapes) > 1:
        raise ValueError(
            "Waveforms of several lengths must be padded, as a dict of "
            "`waveform` (batch, samples) and `lengths` (batch,); `classify` "
            "takes a list of (samples, rate). Received: a list of "
            f"{len(clips)}, of shapes {sorted(shapes)[:3]}"
        )
    return np.stack([keras.ops.convert_to_numpy(clip) for clip in clips])


def check_waveform(x):
    """Checks a waveform before Keras cuts it into batches.

    Args:
        x: array or tensor `(batch, samples)`, or a dict as a model takes it.

    Raises:
        ValueError: if samples are no floating numbers, or there is not one
            axis for clips and one for samples, or it seems to be one clip of
            several channels.
    """
    shape = complete(x, "waveform")["waveform"].shape
    if shape[1] <= MAX_CHANNELS and shape[0] > shape[1] > 0:
        raise ValueError(
            "A waveform must be of shape (batch, samples), and this seems to "
            "be one clip of shape (samples, channels): "
            "`samples.mean(axis=1)[None]` averages its channels. "
            f"Received: shape={tuple(shape)}"
        )
