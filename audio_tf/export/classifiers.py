"""A classifier from whatever a user names: a preset, or what was exported."""

import json
import os
import pathlib

from audio_tf import released


def load_classifier(name):
    """Loads a classifier from a preset, or from what `audio-tf export` wrote.

    ```python
    classifier = audio_tf.export.load_classifier("audio_transformer_esc10")
    classifier.classify("dog.wav", top=3)
    ```

    Args:
        name: str or path, name of a released preset, folder or address of a
            preset, folder of a SavedModel, or file of another format.

    Returns:
        `AudioClassifier`, or `export.runtimes.StoredClassifier`, which scores
        alike.

    Raises:
        FileNotFoundError: if the newest version of a SavedModel is not whole.
        ValueError: if there is neither, or the model is untrained.
    """
    from audio_tf.export import formats, loading
    from audio_tf.models import (
        AudioClassifier,
        list_released,
        list_sizes,
        presets,
    )

    name = os.fspath(name)
    suffixes = [each.suffix for each in formats.FORMATS.values() if each.suffix]
    if name.endswith(tuple(suffixes)) or loading.saved_model_folder(name):
        return formats.load(name)
    if not os.path.exists(os.path.join(name, "config.json")):
        if loading.versions(pathlib.Path(name)):
            # The newest of which was not copied as a whole.
            return formats.load(name)
        exported = files_of(name, suffixes)
        if exported:
            raise ValueError(
                "`model` must be the file itself of what was exported in other "
                f"formats. Received: model={name}, a folder of {exported}"
            )
    if name in list_sizes():
        raise ValueError(
            f"{name!r} is an architecture without trained weights. Train it, "
            "and pass the preset folder that training writes."
        )
    known = list_released()
    if "://" not in name and not os.path.exists(name) and name not in known:
        raise ValueError(
            "`model` is no preset, no folder of one and no exported model"
            f"{presets.meant(name, [*known, *list_sizes()])}. "
            f"Received: model={name}"
        )
    return AudioClassifier.from_preset(name)


def files_of(folder, suffixes):
    """Lists the names of the files in a folder that end with some suffixes.

    Args:
        folder: path, which need not be that of a folder.
        suffixes: list of str.
    """
    if not os.path.isdir(folder):
        return []
    return sorted(
        name for name in os.listdir(folder) if name.endswith(tuple(suffixes))
    )


def load_trained(name):
    """Loads an `AudioClassifier` from a preset, to write it in other formats.

    Args:
        name: str, folder or address of a preset.

    Raises:
        ValueError: if `name` is an architecture, an export, or nothing.
    """
    from audio_tf.models import AudioClassifier

    classifier = load_classifier(name)
    if not isinstance(classifier, AudioClassifier):
        raise ValueError(
            "`model` must be a preset: an exported model is of no use here. "
            f"Received: model={name}"
        )
    return classifier


def read_provenance(model):
    """Reads what training left beside a model of how it came to be.

    Args:
        model: name of a released preset, path of a folder, address of a
            preset, or path of what was exported, which has what its preset
            had.

    Returns:
        Dict, or `None` if there is nothing.

    Raises:
        ValueError: if the file is no JSON.
    """
    path = pathlib.Path(released.folder_of(model), "provenance.json")
    if not path.is_file():
        return exported_metadata(model).get("provenance")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def built_on(origin, seen=()):
    """Lists what a training built on: a preset, teachers, and all of theirs.

    Args:
        origin: dict that `read_provenance` has returned, or of the `settings`
            of a training alone.
        seen: presets that have led to it, which are not looked at again: a
            release may have begun with an earlier one of its own name.

    Returns:
        List of dicts with a `preset` and the `dataset` and `command` of its
        training, and its `licences` where its corpus has told them. It is
        what the training itself has found, where that has noted it; else
        presets that are gone are not in it.

    Raises:
        ValueError: if the file of a preset is no JSON.
    """
    if "built_on" in origin:
        return origin["built_on"]
    found, settings = [], origin["settings"]
    for preset in (settings.get("model"), *settings.get("teachers", ())):
        known = preset is None or preset in seen
        earlier = None if known else read_provenance(preset)
        if earlier is not None:
            dataset = earlier["settings"]["dataset"]
            facts = {"dataset": dataset, "command": earlier["command"]}
            if earlier.get("licences") is not None:
                facts["licences"] = earlier["licences"]
            found.append({"preset": preset, **facts})
            found += built_on(earlier, (*seen, preset))
    return found


def exported_metadata(path):
    """Reads what is written beside an exported model.

    Args:
        path: path of a SavedModel's folder or of a file of another format;
            anything else will do.

    Returns:
        Dict, empty if there is nothing.

    Raises:
        ValueError: if it is no JSON.
    """
    if not os.path.exists(path):
        return {}
    from audio_tf.export import loading, runtimes

    folder = loading.saved_model_folder(path)
    if folder is not None:
        beside = folder / loading.METADATA
    elif os.path.isfile(path):
        beside = runtimes.metadata_file(pathlib.Path(path))
    else:
        return {}
    return runtimes.read_metadata(beside) if beside.is_file() else {}
