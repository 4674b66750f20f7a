"""Marks of the clips that a model was trained on, kept in its preset."""

import pathlib

import numpy as np

from audio_tf import released

FILE = "heard.npy"


def write(folder, heard, start=None):
    """Writes the marks of what a training has heard, with labels or without.

    Args:
        folder: path of the preset.
        heard: list of `Clips` of samples.
        start: the preset that training began with, as `read` takes it, whose
            marks are kept, or `None`.
    """
    marks = [clips.marks for clips in heard]
    if start is not None:
        marks += [each for each in [read(start)] if each is not None]
    np.save(pathlib.Path(folder, FILE), np.unique(np.concatenate(marks)))


def read(preset):
    """Reads the marks of the clips that a model was trained on.

    Args:
        preset: name of a released preset, path of a folder, or address of a
            preset.

    Returns:
        Uint64 array, or `None` where the model does not say.

    Raises:
        ValueError: if the file is damaged; it names it.
    """
    path = pathlib.Path(released.folder_of(preset), FILE)
    if not path.is_file():
        return None
    try:
        marks = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if marks.dtype != np.uint64 or marks.ndim != 1:
        raise ValueError(
            f"{path} must hold marks of clips, uint64 (clips,). "
            f"Received: {marks.dtype} {marks.shape}"
        )
    return marks


def find(marks, clips):
    """Finds the clips that a model was trained on, whatever they are called.

    Args:
        marks: array that `read` has returned.
        clips: `Clips` of samples, of the rate of the model.

    Returns:
        List of paths. Digital silence is the same clip as no other.
    """
    rows = np.flatnonzero(np.isin(clips.marks, marks))
    return [clips.corpus.files[row] for row in rows if clips.read(row).any()]
