"""Finished trainings: what they have left, and whether two were made alike."""

import dataclasses
import pathlib
import typing

from audio_tf.export.classifiers import read_provenance
from audio_tf.runs import heard
from audio_tf.runs.flags import saved_run
from audio_tf.runs.train_settings import ASIDE, TrainSettings


class FinishedRun(typing.NamedTuple):
    """A training that has ended.

    Attributes:
        folder: `pathlib.Path`.
        settings: `TrainSettings`.
        origin: dict, the `provenance.json` of its preset.
    """

    folder: pathlib.Path
    settings: TrainSettings
    origin: dict


def read_origin(folder):
    """Reads the `provenance.json` that a finished run has left.

    Args:
        folder: `pathlib.Path` of the run.

    Raises:
        ValueError: if it has not ended.
    """
    origin = read_provenance(folder / "preset")
    if origin is None:
        raise ValueError(
            f"A finished run is needed. Received: {folder}, without "
            "preset/provenance.json"
        )
    return origin


def finished_run(folder, **changes):
    """Reads the folder of a finished training.

    Args:
        folder: path.
        **changes: settings that may differ, such as where the corpus is.

    Returns:
        `FinishedRun`.

    Raises:
        ValueError: if it has not ended.
    """
    folder = pathlib.Path(folder)
    origin = read_origin(folder)
    settings = TrainSettings.from_json(saved_run(folder), **changes)
    return FinishedRun(folder, settings, origin)


def check_alike(run, measured):
    """Checks that a run is that of another one on more clips.

    Args:
        run: `FinishedRun`.
        measured: `FinishedRun`, whose figures stand for those of `run`.

    Raises:
        ValueError: if their settings differ in more than the splits and
            places, or their labels, or if a clip that the other learned from
            is not the run's.
    """
    splits = {
        field.name
        for field in dataclasses.fields(TrainSettings)
        if field.metadata["option"]
    }
    for field in dataclasses.fields(TrainSettings):
        ours, theirs = (
            getattr(each.settings, field.name) for each in (run, measured)
        )
        if field.name == "teachers":
            check_teachers(ours, theirs)
        elif ours != theirs and field.name not in splits | ASIDE:
            raise ValueError(
                f"{measured.folder} must be trained as {run.folder}, but for "
                f"the splits. Received: {field.name}={theirs!r}, "
                f"not {ours!r}"
            )
    if run.origin["labels"] != measured.origin["labels"]:
        raise ValueError(
            f"{measured.folder} must have the labels {run.origin['labels']}. "
            f"Received: {measured.origin['labels']}"
        )
    ours, theirs = (
        heard.trained_files(each.folder) for each in (run, measured)
    )
    others = [name for name in theirs if theirs[name] != ours.get(name)]
    if others:
        raise ValueError(
            f"{run.folder} must have learned from all clips of "
            f"{measured.folder}. Received: {len(others)} others, the first "
            f"{others[0]}"
        )


def check_teachers(ours, theirs):
    """Checks that the teachers of two runs are alike, as `check_alike` does.

    Args:
        ours: list of paths of the presets that taught the run.
        theirs: list of those that taught the one whose figures are told.

    Raises:
        ValueError: if they are not as many, one is not in the folder of its
            training, or two were not trained alike.
    """
    if len(ours) != len(theirs):
        raise ValueError(
            f"Both runs must have as many teachers. Received: {ours} and "
            f"{theirs}"
        )
    for pair in zip(ours, theirs, strict=True):
        if pair[0] != pair[1]:
            check_alike(*(finished_run(pathlib.Path(p).parent) for p in pair))
