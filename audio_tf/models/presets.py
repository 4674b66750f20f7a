"""Presets and sizes by name: found, registered, listed, checked."""

import json
import os
import pathlib
import warnings

import keras

from audio_tf import compat, configs, released
from audio_tf.audio.resampling import RESAMPLER
from audio_tf.ops import checks


def find(preset):
    """Finds the loader of a size or of a preset.

    Args:
        preset: the name of a size or of a released preset, a folder, or an
            address of a hub.

    Raises:
        ValueError: if there is no such size, preset, folder or address, it
            names the nearest; if it is the folder of a run, beside its
            preset; or if a file of a released preset is damaged.
    """
    preset = os.fspath(preset)
    sizes, presets = list(compat.SIZE_LOADERS), list(released.RELEASED)
    known = [*presets, *sizes]
    if preset not in known:
        check_no_run(preset)
    if preset in known or "://" in preset or os.path.isdir(preset):
        return compat.get_preset_loader(preset)
    raise ValueError(
        "A preset must be the name of a size or of a released preset, a "
        f"folder or the address of a hub{meant(preset, known)}. "
        f"Received: preset={preset!r}; sizes are {sizes}, released are "
        f"{presets}"
    )


def meant(name, known):
    """Returns the end of an error for the name of a model that is none.

    Args:
        name: str, what was taken for a name or a path.
        known: list of str, the known names.
    """
    if os.path.isfile(name):
        return "; a file is no preset"
    # No name is near a path, however many letters they share.
    if os.path.basename(name) != name:
        return "; no such file or folder"
    return checks.closest(name, known)


def check_no_run(folder):
    """Raises a `ValueError` if a folder is that of a run.

    The preset is a folder within it, and KerasHub would take the settings of
    the run for a preset of an unknown kind.

    Args:
        folder: path, or any other name of a preset.
    """
    inner = os.path.join(folder, "preset")
    if os.path.isfile(os.path.join(folder, "metadata.json")):
        return
    if os.path.isfile(os.path.join(inner, "metadata.json")):
        raise ValueError(
            "A preset must be its own folder, which of this run is "
            f"{inner!r}. Received: preset={folder!r}"
        )
    if os.path.isfile(os.path.join(folder, "last.keras")):
        raise ValueError(
            "A preset must be its own folder, which a run writes at its end, "
            "and this run has none: --resume goes on with it. "
            f"Received: preset={folder!r}"
        )


def register_sizes(family, sizes):
    """Does the work of `AudioBackbone.register_sizes`.

    Raises:
        ValueError: if a released preset has the name of a size.
    """
    for name in sizes:
        if name in released.RELEASED:
            raise ValueError(
                "A size must not have the name of a released preset. "
                f"Received: {name!r}"
            )
    compat.register_sizes(family, sizes)


def register_released(root):
    """Makes the presets of a folder known by name, to KerasHub too.

    ```python
    audio_tf.models.register_released("released")  # by `audio-tf release`
    audio_tf.models.AudioClassifier.from_preset("the_name_of_one")
    ```

    Args:
        root: folder with `index.json`, as `audio-tf release` writes it.

    Returns:
        Dict of `Released` by name.

    Raises:
        ValueError: if the index cannot be read, a class in it is unknown, or
            a size or a preset elsewhere has the name of one.
    """
    found = released.read_index(root)
    for name, preset in found.items():
        known = released.RELEASED.get(name)
        if compat.is_builtin(name) and known is None:
            raise ValueError(
                "A released preset must not have the name of a size or of a "
                f"preset of KerasHub. Received: {name!r} in {root}"
            )
        if known is not None and known.folder != preset.folder:
            raise ValueError(
                "A preset of that name is released already, in "
                f"{known.folder}. Received: {name!r} in {root}"
            )
        names = dict.fromkeys((preset.model, preset.backbone))
        families = [keras.saving.get_registered_object(n) for n in names]
        if None in families:
            raise ValueError(
                f"The classes of the released preset {name!r} are not all "
                f"known; import their module first. Received: {list(names)}"
            )
        compat.register_released(preset, families)
        released.RELEASED[name] = preset
    return found


def list_released():
    """Lists all released presets: a dict of `Released` by name.

    Examples:
        >>> from audio_tf import models
        >>> "audio_transformer_esc10" in models.list_released()
        True
    """
    return dict(released.RELEASED)


def list_sizes():
    """Lists all sizes: a dict by name of the class of the backbone.

    Examples:
        >>> from audio_tf import models
        >>> models.list_sizes()["audio_transformer_small"].__name__
        'AudioTransformerBackbone'
    """
    return {
        name: loader.check_backbone_class()
        for name, loader in compat.SIZE_LOADERS.items()
    }


def is_size(loader):
    """Returns whether a loader has an architecture alone, without files."""
    return loader.preset in compat.SIZE_LOADERS


def has_file(loader, name):
    """Returns whether there is a file of a preset; a size has none."""
    return not is_size(loader) and compat.has_file(loader.preset, name)


def require_file(loader, *names):
    """Raises a `ValueError` if a preset has none of the files."""
    if not any(compat.has_file(loader.preset, name) for name in names):
        raise ValueError(
            f"The preset is incomplete: it has no {names[0]}, without which "
            "its scores would be random; `load_weights=False` asks for "
            f"the architecture alone. Received: preset={loader.preset!r}, "
            f"with none of {list(names)}"
        )


def family_of(loader, base):
    """Returns the class of a preset's backbone.

    Args:
        loader: the loader that `find` returned.
        base: the class that it must be, or be derived from.

    Raises:
        ValueError: if it is another, or one that is not known.
    """
    if has_file(loader, compat.CONFIG_FILE):
        saved = compat.read_json(loader.preset, compat.CONFIG_FILE)
        # What others have published has no such name.
        if "registered_name" in saved:
            known_class(saved)
    family = loader.check_backbone_class()
    if not issubclass(family, base):
        raise ValueError(
            f"The preset {loader.preset!r} is of {family.__name__}, not of "
            f"{base.__name__}. Received: preset={loader.preset!r}"
        )
    return family


def class_of(serialized):
    """Returns the class of a serialized object."""
    return keras.saving.get_registered_object(serialized["registered_name"])


def known_class(serialized):
    """Returns the class of an object in a preset, which must be known.

    Args:
        serialized: dict, as Keras serializes an object.

    Raises:
        ValueError: if it is not; it names the class.
    """
    found = class_of(serialized)
    if found is None:
        raise ValueError(
            f"The preset is of a class that is not known{configs.HINT}. "
            f"Received: {serialized['registered_name']}"
        )
    return found


def check_found_again(model):
    """Checks that Keras will find the classes of a model once it is saved.

    What the model was compiled with is in no preset, and is not looked at.

    Args:
        model: the Keras model.

    Raises:
        ValueError: if it will not, as of a class that is not registered; it
            names the class.
    """

    def check(part):
        if not isinstance(part, dict) or not part.get("registered_name"):
            return
        # Keras has its own functions under that name; of all other modules it
        # imports none, whether they can be imported or not.
        if class_of(part) is None and part["module"] != "builtins":
            raise ValueError(
                "A class of one's own is saved with the model, and needs "
                "@keras.saving.register_keras_serializable(). "
                f"Received: {part['class_name']} without it"
            )

    keras.tree.traverse(check, compat.serialized_for_preset(model))


def record_resampler(folder):
    """Adds the name of the present resampler to the metadata of a preset."""
    path = pathlib.Path(folder, compat.METADATA_FILE)
    metadata = {**json.loads(path.read_text()), "resampler": RESAMPLER}
    path.write_text(json.dumps(metadata, indent=4))


def check_resampler(loader):
    """Warns if a preset was made with another resampler than ours.

    Clips at other rates than the model's would then sound different to it. A
    preset that names no resampler, as one that KerasHub wrote, is taken as it
    is.

    Args:
        loader: the loader that `find` returned.
    """
    if not compat.has_file(loader.preset, compat.METADATA_FILE):
        return
    metadata = compat.read_json(loader.preset, compat.METADATA_FILE)
    compare_resampler(
        f"The preset {loader.preset!r}", metadata.get("resampler", RESAMPLER)
    )


def compare_resampler(owner, resampler):
    """Warns if something was made with another resampler than ours.

    Args:
        owner: str, what it is, the subject of the warning.
        resampler: str, the name of its resampler.
    """
    if resampler != RESAMPLER:
        warnings.warn(
            f"{owner} was made with another resampler than this version has: "
            "scores of clips at other rates than the model's may differ. "
            f"Received: {resampler!r}; this version has {RESAMPLER!r}",
            stacklevel=5,
        )
