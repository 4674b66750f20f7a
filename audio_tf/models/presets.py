"""Models from presets: whole ones, with every argument where it belongs."""

import copy
import inspect
import json
import os
import pathlib
import warnings

import keras

from audio_tf import compat, released
from audio_tf.audio.resampling import RESAMPLER
from audio_tf.ops import checks

# What the audio converter of a classifier says after it: the rate is the
# backbone's, the rest is the classifier's.
CONVERTER_ARGUMENTS = ("sample_rate_hz", "chunk_s", "silence_db")


def find(preset):
    """Finds the loader of a size or of a preset.

    Args:
        preset: the name of a size or of a released preset, a folder, or an
            address of a hub.

    Raises:
        ValueError: if there is no such size, preset, folder or address, it
            names the nearest; or if a file of a released preset is damaged.
    """
    preset = os.fspath(preset)
    sizes, presets = list(compat.SIZE_LOADERS), list(released.RELEASED)
    known = [*presets, *sizes]
    if preset in known or "://" in preset or os.path.isdir(preset):
        return compat.get_preset_loader(preset)
    raise ValueError(
        "A preset must be the name of a size or of a released preset, a "
        f"folder or the address of a hub{checks.closest(preset, known)}. "
        f"Received: preset={preset!r}; sizes are {sizes}, released are "
        f"{presets}"
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


def family_of(loader, base):
    """Returns the class of a preset's backbone.

    Args:
        loader: the loader that `find` returned.
        base: the class that it must be, or be derived from.

    Raises:
        ValueError: if it is another.
    """
    family = loader.check_backbone_class()
    if not issubclass(family, base):
        raise ValueError(
            f"The preset {loader.preset!r} is of {family.__name__}, not of "
            f"{base.__name__}. Received: preset={loader.preset!r}"
        )
    return family


def require_file(loader, *names):
    """Raises a `ValueError` if a preset has none of the files."""
    if not any(compat.has_file(loader.preset, name) for name in names):
        raise ValueError(
            f"The preset is incomplete: it has no {names[0]}, without which "
            "its scores would be random; `load_weights=False` asks for "
            f"the architecture alone. Received: preset={loader.preset!r}, "
            f"with none of {list(names)}"
        )


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


def describe(preset):
    """Returns the class of a preset's backbone, and what it is built of.

    Args:
        preset: as `find` takes it.

    Returns:
        Pair of the class and the dict of its constructor arguments, complete
        with their defaults.
    """
    loader = find(preset)
    family = loader.check_backbone_class()
    return family, {**family.defaults(), **loader.config["config"]}


def accepted(family, config):
    """Lists the names of the arguments that a backbone of a config takes.

    Args:
        family: the class of the backbone.
        config: dict of its constructor arguments; a part of it that is a
            backbone itself is a serialised object.
    """
    names = list(family.arguments())
    for part in family.parts:
        inner = config[part]
        names += accepted(class_of(inner), inner["config"])
    return list(dict.fromkeys(names))


def class_of(serialized):
    """Returns the class of a serialized object."""
    return keras.saving.get_registered_object(serialized["registered_name"])


def override(family, config, arguments):
    """Replaces arguments in the config of a backbone.

    Arguments that the class itself does not take go to its parts.

    Args:
        family: the class of the backbone.
        config: dict of its constructor arguments.
        arguments: dict of the arguments that replace them, all `accepted`.

    Returns:
        The new config; the old one stays as it is.
    """
    takes = family.arguments()
    rest = {k: v for k, v in arguments.items() if k not in takes}
    config = {**config, **arguments}
    config = {k: v for k, v in config.items() if k in takes}
    for part in family.parts:
        inner = config[part]
        changed = override(class_of(inner), inner["config"], rest)
        config[part] = {**inner, "config": changed}
    return config


def build(family, config):
    """Builds a backbone from a config, which stays as it is."""
    return family.from_config(copy.deepcopy(config))


def load_backbone(base, preset, load_weights, arguments):
    """Does the work of `AudioBackbone.from_preset`.

    Args:
        base: the class whose `from_preset` was called.
        preset: as `find` takes it.
        load_weights: bool, whether to load the weights of a preset.
        arguments: dict of the arguments that override the preset's.
    """
    loader = find(preset)
    family = family_of(loader, base)
    config = loader.config["config"]
    checks.reject_unknown(family.__name__, arguments, accepted(family, config))
    if is_size(loader):
        return build(family, override(family, config, arguments))
    if load_weights:
        require_file(loader, *compat.weight_files(loader))
        check_resampler(loader)
    given = {"dtype": saved_dtype(config), **arguments}
    backbone = build(family, override(family, config, given))
    if load_weights:
        if arguments and not compat.is_converted(loader):
            check_fit(loader, family, backbone)
        compat.load_backbone_weights(loader, backbone)
    return backbone


def saved_dtype(config):
    """Returns the dtype policy at which to load a backbone by default.

    Args:
        config: dict of the backbone's constructor arguments.

    Returns:
        The map of policies of a quantised model, which says what its weights
        are, or else `None`: at what precision floats are computed is a matter
        of the machine, and of the global policy.
    """
    dtype = config.get("dtype")
    if isinstance(dtype, dict) and dtype["class_name"] != "DTypePolicy":
        return dtype
    return None


def check_fit(loader, family, backbone):
    """Raises a `ValueError` if a preset's weights do not fit a backbone.

    Keras itself overlooks weights that a smaller model has no use for.

    Args:
        loader: the loader that `find` returned.
        family: the class of the backbone.
        backbone: the backbone that is to have the weights.
    """
    saved = build(family, loader.config["config"])
    expected, found = shapes(saved), shapes(backbone)
    if expected == found:
        return
    changed = sorted(
        name
        for name in {**expected, **found}
        if expected.get(name) != found.get(name)
    )
    name = changed[0]
    raise ValueError(
        f"The weights of the preset {loader.preset!r} do not fit the "
        "arguments; `load_weights=False` builds what is asked with random "
        f"weights. Received: {len(changed)} weights that differ, first "
        f"{name}: {expected.get(name)} in the preset, "
        f"{found.get(name)} in the model (None: there is none)"
    )


def shapes(model):
    """Returns the shape of each weight by its path within the model."""
    return {
        weight.path.removeprefix(f"{model.name}/"): tuple(weight.shape)
        for weight in model.weights
    }


def load_classifier(
    cls, base, preset, load_weights, arguments, backbone_arguments=None
):
    """Does the work of `AudioClassifier.from_preset`.

    Args:
        cls: `AudioClassifier`, or a class derived from it.
        base: class that the preset's backbone must be, or be derived from.
        preset: as `find` takes it.
        load_weights: bool, whether to load the weights of a preset.
        arguments: dict of arguments that override the preset's.
        backbone_arguments: dict of arguments for the backbone alone, or
            `None`.
    """
    loader = find(preset)
    family = family_of(loader, base)
    config = loader.config["config"]
    of_backbone = accepted(family, config)
    task = {}
    new_head = not arguments.keys().isdisjoint({"num_classes", "labels"})
    saved = saved_task(loader)
    if saved is not None:
        cls, task = task_of(loader, cls, saved, new_head)
    of_task = [name for name in cls.arguments() if name != "backbone"]
    checks.reject_unknown(cls.__name__, arguments, {*of_task, *of_backbone})
    own = {k: v for k, v in arguments.items() if k in of_task}
    rest = {k: v for k, v in arguments.items() if k not in of_task}
    if backbone_arguments:
        checks.reject_unknown(family.__name__, backbone_arguments, of_backbone)
        rest = {**rest, **backbone_arguments}
    if is_size(loader):
        default = inspect.signature(cls).parameters["chunk_s"].default
        backbone = build_for(
            family, {**config, **rest}, own.get("chunk_s", default)
        )
        return cls(backbone=backbone, **own)
    if not task and not new_head:
        require_file(loader, compat.TASK_CONFIG_FILE)
    if new_head:
        own = {"num_classes": None, "labels": None, **own}
        saved = task.get("head_dtype")
        if saved and saved["class_name"] == "DTypePolicyMap":
            # The map of a quantised head, whose integers cannot be trained.
            own.setdefault("head_dtype", None)
    elif load_weights:
        require_file(loader, compat.TASK_WEIGHTS_FILE)
    backbone = load_backbone(base, preset, load_weights, rest)
    # Presets from before there were preprocessors have `None`, which nobody
    # chose.
    saved = task.pop("preprocessor", None)
    if saved is None:
        own.setdefault("preprocessor", "auto")
    elif "preprocessor" not in own:
        own["preprocessor"] = keras.saving.deserialize_keras_object(
            adapted(saved, {**rest, **own}, new_head)
        )
    model = cls.from_config({**task, **own, "backbone": backbone})
    if load_weights and not new_head:
        compat.load_task_weights(loader, model)
    return model


def saved_task(loader):
    """Reads the serialized task of a preset.

    Args:
        loader: KerasHub's loader, as `find` returns it.

    Returns:
        Dict, or `None` where a preset has a backbone alone.
    """
    if not has_file(loader, compat.TASK_CONFIG_FILE):
        return None
    return compat.read_json(loader.preset, compat.TASK_CONFIG_FILE)


def head_of(saved):
    """Returns the arguments of a serialized task, without its backbone."""
    config = saved["config"]
    return {name: config[name] for name in config if name != "backbone"}


def has_head_of(preset, **arguments):
    """Returns whether a preset's classifier has these arguments already.

    Args:
        preset: as `find` takes it.
        **arguments: arguments of `AudioClassifier`, as a config has them.
    """
    saved = saved_task(find(preset))
    head = {} if saved is None else head_of(saved)
    return all(
        name in head and head[name] == value
        for name, value in arguments.items()
    )


def task_of(loader, cls, saved, new_head):
    """Returns the class and the arguments of a preset's task.

    Args:
        loader: the loader that `find` returned.
        cls: the class whose `from_preset` was called; the preset's may be
            derived from it.
        saved: dict, the serialized task.
        new_head: bool, whether the head is made anew.

    Returns:
        Pair of the class and a dict of its arguments but the backbone. Where
        another class than the preset's is asked for a new head, the preset
        has none of its arguments.

    Raises:
        ValueError: if the preset's class is not one of `cls`, whose head it
            cannot have.
    """
    family = class_of(saved) or cls
    if issubclass(family, cls):
        return family, head_of(saved)
    if not new_head:
        raise ValueError(
            f"The preset {loader.preset!r} is of {family.__name__}; "
            f"`num_classes` or `labels` give it the head of {cls.__name__}. "
            f"Received: preset={loader.preset!r}"
        )
    return cls, {}


def adapted(preprocessor, arguments, new_head):
    """Returns the config of a preprocessor with what arguments change in it.

    Args:
        preprocessor: the serialised object of a preset.
        arguments: dict of the arguments that override the preset's.
        new_head: bool, whether the classifier gets other labels.
    """
    preprocessor = copy.deepcopy(preprocessor)
    config = preprocessor["config"]
    if new_head:
        config["labels"] = arguments["labels"]
    converter = config["audio_converter"]["config"]
    # The metadata of the preset have it, too, and are compared with ours.
    converter["resampler"] = None
    for name in CONVERTER_ARGUMENTS:
        if name in arguments:
            converter[name] = arguments[name]
    return preprocessor


def load_converter(cls, preset, arguments):
    """Does the work of `WaveformConverter.from_preset`.

    Args:
        cls: `WaveformConverter`, or a class derived from it.
        preset: as `find` takes it.
        arguments: dict of the arguments that override the preset's.
    """
    checks.reject_unknown(cls.__name__, arguments, cls.arguments())
    loader = find(preset)
    name = compat.AUDIO_CONVERTER_CONFIG_FILE
    if has_file(loader, name):
        return load_object(cls, loader, name, arguments)
    task = task_config(loader)
    family = loader.check_backbone_class()
    backbone = build(family, loader.config["config"])
    facts = {
        "sample_rate_hz": backbone.sample_rate_hz,
        "chunk_s": task["chunk_s"],
        "silence_db": task.get("silence_db"),
    }
    return cls(**{**facts, **arguments})


def load_preprocessor(cls, converter_cls, preset, arguments):
    """Does the work of `AudioClassifierPreprocessor.from_preset`.

    Args:
        cls: `AudioClassifierPreprocessor`, or a class derived from it.
        converter_cls: `WaveformConverter`.
        preset: as `find` takes it.
        arguments: dict of the arguments that override the preset's.
    """
    checks.reject_unknown(cls.__name__, arguments, cls.arguments())
    loader = find(preset)
    name = compat.PREPROCESSOR_CONFIG_FILE
    if has_file(loader, name):
        return load_object(cls, loader, name, arguments)
    labels = task_config(loader).get("labels")
    if "audio_converter" not in arguments:
        converter = load_converter(converter_cls, preset, {})
        arguments = {**arguments, "audio_converter": converter}
    return cls(**{"labels": labels, **arguments})


def load_object(cls, loader, name, arguments):
    """Loads an object of a class from a file of a preset.

    Args:
        cls: the class that it must be, or be derived from.
        loader: the loader that `find` returned.
        name: str, the file.
        arguments: dict of the arguments that override the file's.

    Raises:
        ValueError: if it is of another class.
    """
    serialized = compat.read_json(loader.preset, name)
    found = class_of(serialized)
    if found is None or not issubclass(found, cls):
        raise ValueError(
            f"{name} of the preset {loader.preset!r} must hold a "
            f"{cls.__name__}. Received: {serialized['registered_name']}"
        )
    serialized["config"] = {**serialized["config"], **arguments}
    return keras.saving.deserialize_keras_object(serialized)


def task_config(loader):
    """Returns the arguments of the classifier of a preset.

    Raises:
        ValueError: if it has none.
    """
    saved = saved_task(loader)
    if saved is None:
        raise ValueError(
            "Only the preset of a classifier says how files become what it "
            f"takes. Received: preset={loader.preset!r}, without a classifier"
        )
    return head_of(saved)


def build_for(family, config, chunk_s):
    """Builds a backbone that is made for chunks of so many seconds.

    Args:
        family: the class of the backbone.
        config: dict of its constructor arguments; a `made_for_frames` among
            them stays.
        chunk_s: float, the length of a chunk in seconds, or `None` for the
            class's own default. A model that is made for any length is as it
            is.
    """
    backbone = build(family, config)
    if chunk_s is None or family.takes != "waveform":
        return backbone
    if backbone.made_for_frames is None:
        return backbone
    samples = max(round(chunk_s * backbone.sample_rate_hz), 1)
    frames = -(-samples // backbone.frame_size)
    if "made_for_frames" in config or frames == backbone.made_for_frames:
        return backbone
    return build(family, {**config, "made_for_frames": frames})
