"""Marks of the clips that a model has heard, kept in presets and exports.

`heard.npy` is of the clips that a training has learned from, by their labels
or by what teachers say of them. `pretrained.npy` is of the clips of a
pre-training, which fills in what is masked and is told no label. The folder of
a training has the list of its files beside.
"""

import base64
import json
import pathlib
import typing

import numpy as np

from audio_tf import files, released
from audio_tf.export.classifiers import exported_metadata

FILES = {"learned": "heard.npy", "pretrained": "pretrained.npy"}
FILE = FILES["learned"]
# The key of the marks in what an export keeps of how its model came to be.
KEY = "heard"
# What the model has heard that a run began with, in the folder of the run.
BEFORE = "heard_before.json"


class Heard(typing.NamedTuple):
    """The marks and the list by which a model says what it has heard.

    Attributes:
        learned: uint64 array, the marks of the clips that it was trained on,
            or `None` where it does not say.
        pretrained: uint64 array, those of clips that it was pre-trained on
            without labels, or `None` where it does not say.
        listed: dict by name of a list of the size and the labels of each file
            that it was trained on, empty where there is no list.
    """

    learned: np.ndarray | None = None
    pretrained: np.ndarray | None = None
    listed: typing.Mapping = {}

    def unlabelled(self):
        """Returns the marks of clips of pre-training alone, `None` of none."""
        if self.pretrained is None or self.learned is None:
            return self.pretrained
        return np.setdiff1d(self.pretrained, self.learned)

    def to_json(self):
        """Returns a dict of texts for JSON, of the marks without the list."""
        marks = {kind: getattr(self, kind) for kind in FILES}
        return {
            kind: base64.b64encode(each.astype("<u8").tobytes()).decode()
            for kind, each in marks.items()
            if each is not None
        }


def from_json(content, listed=()):
    """Returns the `Heard` of what `Heard.to_json` has returned.

    Args:
        content: dict of texts.
        listed: dict or pairs, the list that belongs to it.
    """
    marks = {
        kind: np.frombuffer(base64.b64decode(text), "<u8").astype("uint64")
        for kind, text in content.items()
    }
    return Heard(**marks, listed=dict(listed))


def write(folder, several):
    """Writes the marks of what a model has heard into its preset.

    Args:
        folder: path of the preset.
        several: list of `Heard`: of the clips that it was trained on, and of
            the models that it has begun with or has learned from.
    """
    for kind, name in FILES.items():
        marks = [
            found
            for found in (getattr(each, kind) for each in several)
            if found is not None
        ]
        if marks:
            np.save(
                pathlib.Path(folder, name), np.unique(np.concatenate(marks))
            )


def read(model):
    """Reads what a model has heard.

    Args:
        model: name of a released preset, path of a folder, address of a
            preset, or path of what was exported.

    Returns:
        `Heard`, of nothing where the model does not say.

    Raises:
        ValueError: if a file is damaged; it names it.
    """
    folder = pathlib.Path(released.folder_of(model))
    marks = {
        kind: load(folder / name)
        for kind, name in FILES.items()
        if (folder / name).is_file()
    }
    if marks:
        return Heard(**marks, listed=listed(model))
    origin = exported_metadata(folder).get("provenance") or {}
    return from_json(origin.get(KEY, {}), listed(model))


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


def noted(origin, model):
    """Returns how a model came to be, with its marks, for an export of it.

    Args:
        origin: dict, the `provenance.json` of the model, or `None`.
        model: as `read` takes it.
    """
    marks = read(model).to_json()
    return {**(origin or {}), KEY: marks} if marks else origin


def began_with(settings, out):
    """Reads what the model has heard that a training begins with.

    A run that goes on has it from its folder: the preset may be gone, be
    another one by now, or have been named from another working folder.

    Args:
        settings: `Settings` of a training, which have a `model`.
        out: `pathlib.Path`, the folder of the run; it may not be there yet.

    Returns:
        `Heard`.
    """
    kept = out / BEFORE
    # Without settings it is of a start that was killed before there was a run.
    if kept.is_file() and (out / "config.json").is_file():
        return from_json(**json.loads(kept.read_text(encoding="utf-8")))
    return read(settings.model)


def keep(out, before):
    """Keeps what the model has heard that a run begins with in its folder.

    Args:
        out: `pathlib.Path`, the folder of the run; it is made.
        before: `Heard` that `began_with` has returned.
    """
    out.mkdir(parents=True, exist_ok=True)
    content = {"content": before.to_json(), "listed": before.listed}
    files.write_json(out / BEFORE, content)


def find(marks, clips):
    """Finds the clips that a model has heard, whatever they are called.

    Args:
        marks: uint64 array.
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
        training split, empty where there is no list, or it is that of a
        pre-training.
    """
    folder = pathlib.Path(preset)
    has_list = (folder.parent / "corpus.json").is_file()
    # A head is what labels teach, and the name of a release is no folder.
    if not (has_list and (folder / "task.json").is_file()):
        return {}
    return trained_files(folder.parent)


def trained_files(run):
    """Reads which files a run was trained on, without those left out.

    Args:
        run: `pathlib.Path`, the folder of the run.

    Returns:
        Dict by name of a list of the size and the labels.

    Raises:
        FileNotFoundError: if it is the folder of no run.
    """
    path = run / "corpus.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    left_out = record.get("left_out") or {}
    return {
        name: entry
        for name, entry in record["splits"]["train"].items()
        if name not in left_out
    }
