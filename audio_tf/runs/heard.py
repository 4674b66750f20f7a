"""Marks of the clips that a model was trained on, kept in its preset."""

import json
import pathlib

import numpy as np

from audio_tf import files, released

FILE = "heard.npy"
# Those of the model that a run began with, in the folder of the run.
BEFORE = "heard_before.npy"


def write(folder, heard, presets=(), before=None):
    """Writes the marks of what a training has heard, with labels or without.

    Args:
        folder: path of the preset.
        heard: list of `Clips` of samples.
        presets: list of presets, as `read` takes them, that training has
            learned from, whose marks are kept: its teachers.
        before: array of further marks, such as `began_with` has returned, or
            `None`.
    """
    marks = [clips.marks for clips in heard]
    for each in (before, *map(read, presets)):
        if each is not None:
            marks.append(each)
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
    return load(path) if path.is_file() else None


def load(path):
    """Reads a file of marks.

    Args:
        path: `pathlib.Path` of the file.

    Returns:
        Uint64 array.

    Raises:
        ValueError: if the file is damaged; it names it.
    """
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


def began_with(settings, out):
    """Reads the marks of the model that a training begins with.

    A run that goes on has them from its folder: the preset may be gone, be
    another one by now, or have been named from another working folder.

    Args:
        settings: `TrainSettings`.
        out: `pathlib.Path`, the folder of the run; it may not be there yet.

    Returns:
        As `read`.
    """
    kept = out / BEFORE
    if kept.is_file() and (out / "config.json").is_file():
        return load(kept)
    return read(settings.model)


def keep(out, before):
    """Keeps the marks of the model that a run begins with in its folder.

    Args:
        out: `pathlib.Path`, the folder of the run; it is made.
        before: array that `began_with` has returned, or `None`.
    """
    out.mkdir(parents=True, exist_ok=True)
    if before is None:
        # Of a start that was killed before there was a run.
        (out / BEFORE).unlink(missing_ok=True)
        return
    with files.whole_file(out / BEFORE) as new:
        np.save(new, before)


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


def listed(preset):
    """Reads the list of what a model was trained on, beside its preset.

    Args:
        preset: name of a released preset, path of a folder, or address of a
            preset; the folder of a training has its list.

    Returns:
        Dict by name of a list of the size and the labels of each file of the
        training split, empty where there is no list.
    """
    folder = pathlib.Path(preset)
    path = folder.parent / "corpus.json"
    # A name of a released preset is no folder, whatever is around.
    if not (folder.is_dir() and path.is_file()):
        return {}
    return json.loads(path.read_text())["splits"]["train"]
