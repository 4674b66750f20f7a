"""Classifiers from presets, and what turns files into their rows."""

import copy

import keras

from audio_tf import compat
from audio_tf.audio.chunking import check_chunks
from audio_tf.models import preset_backbones, presets
from audio_tf.ops import checks

# What the audio converter of a classifier says after it: the rate is the
# backbone's, the rest is the classifier's.
CONVERTER_ARGUMENTS = (
    "sample_rate_hz",
    "chunk_s",
    "chunk_hop_s",
    "silence_db",
)
# Arguments of backbones that change nothing but their training.
OF_TRAINING = (
    "augmentation",
    "dropout",
    "activation_dropout",
    "frontend_dropout",
    "layer_drop",
    "mask_rate",
    "trainable",
)


def load_classifier(
    cls, base, preset, load_weights, arguments, backbone_arguments=None
):
    """Does the work of `AudioClassifier.from_preset`.

    Args:
        cls: `AudioClassifier`, or a class derived from it.
        base: class that the preset's backbone must be, or be derived from.
        preset: as `presets.find` takes it.
        load_weights: bool, whether to load the weights of a preset.
        arguments: dict of arguments that override the preset's.
        backbone_arguments: dict of arguments for the backbone alone, or
            `None`.
    """
    loader = presets.find(preset)
    family = presets.family_of(loader, base)
    config = loader.config["config"]
    of_backbone = preset_backbones.accepted(family, config)
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
    if not cls.trains_backbone:
        refuse_training(cls, rest)
    elif own.get("trainable"):
        # Or a backbone that was saved at rest would go on resting.
        rest = {"trainable": True, **rest}
    if presets.is_size(loader):
        default = checks.defaults_of(cls)["chunk_s"]
        backbone = preset_backbones.build_for(
            family, {**config, **rest}, own.get("chunk_s", default)
        )
        return cls(backbone=backbone, **own)
    if not task and not new_head:
        raise ValueError(
            "The preset has a backbone alone, which names no labels: it has "
            f"no {compat.TASK_CONFIG_FILE}. Train a classifier on it, by "
            "`audio-tf train --model` or with `labels` of `from_preset`. "
            f"Received: preset={loader.preset!r}"
        )
    if new_head:
        own = {"num_classes": None, "labels": None, **own}
        saved = task.get("head_dtype")
        if saved and saved["class_name"] == "DTypePolicyMap":
            # The map of a quantised head, whose integers cannot be trained.
            own.setdefault("head_dtype", None)
    elif load_weights:
        presets.require_file(loader, compat.TASK_WEIGHTS_FILE)
    backbone = preset_backbones.load_backbone(base, preset, load_weights, rest)
    both = {**task, **own}
    # Of a preprocessor Keras would tell that it could not be made.
    check_chunks(*map(both.get, ("chunk_s", "chunk_hop_s", "silence_db")))
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
        if own.keys() & {"pooling", "hidden_dim"}:
            as_saved = cls.from_config(
                {**task, "preprocessor": None, "backbone": backbone}
            )
            preset_backbones.check_fit(loader, as_saved, model)
        compat.load_task_weights(loader, model)
    return model


def refuse_training(cls, arguments):
    """Raises a `ValueError` for what a backbone that is frozen has no use for.

    Args:
        cls: the class of the task, which freezes its backbone.
        arguments: dict of arguments of the backbone.
    """
    for name in OF_TRAINING:
        if arguments.get(name):
            raise ValueError(
                f"`{name}` changes a backbone in training, and that of a "
                f"{cls.__name__} is frozen: it would change nothing. "
                f"Received: {name}={arguments[name]!r}"
            )


def saved_task(loader):
    """Reads the serialized task of a preset.

    Args:
        loader: KerasHub's loader, as `presets.find` returns it.

    Returns:
        Dict, or `None` where a preset has a backbone alone.
    """
    if not presets.has_file(loader, compat.TASK_CONFIG_FILE):
        return None
    return compat.read_json(loader.preset, compat.TASK_CONFIG_FILE)


def head_of(saved):
    """Returns the arguments of a serialized task, without its backbone."""
    config = saved["config"]
    return {name: config[name] for name in config if name != "backbone"}


def has_head_of(preset, **arguments):
    """Returns whether a preset's classifier has these arguments already.

    Args:
        preset: as `presets.find` takes it.
        **arguments: arguments of `AudioClassifier`, as a config has them.
    """
    saved = saved_task(presets.find(preset))
    head = {} if saved is None else head_of(saved)
    return all(
        name in head and head[name] == value
        for name, value in arguments.items()
    )


def class_for(preset, cls):
    """Returns the class of the task that a preset becomes with a new head.

    Args:
        preset: as `presets.find` takes it.
        cls: the class whose `from_preset` is asked for it.
    """
    loader = presets.find(preset)
    saved = saved_task(loader)
    return cls if saved is None else task_of(loader, cls, saved, True)[0]


def task_of(loader, cls, saved, new_head):
    """Returns the class and the arguments of a preset's task.

    Args:
        loader: the loader that `presets.find` returned.
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
    family = presets.class_of(saved) or cls
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


def load_converter(cls, preset, arguments):
    """Does the work of `WaveformConverter.from_preset`.

    Args:
        cls: `WaveformConverter`, or a class derived from it.
        preset: as `presets.find` takes it.
        arguments: dict of the arguments that override the preset's.
    """
    checks.reject_unknown(cls.__name__, arguments, cls.arguments())
    loader = presets.find(preset)
    name = compat.AUDIO_CONVERTER_CONFIG_FILE
    if presets.has_file(loader, name):
        return load_object(cls, loader, name, arguments)
    task = task_config(loader)
    family = loader.check_backbone_class()
    backbone = preset_backbones.build(family, loader.config["config"])
    facts = {
        "sample_rate_hz": backbone.sample_rate_hz,
        "chunk_s": task["chunk_s"],
        "chunk_hop_s": task.get("chunk_hop_s"),
        "silence_db": task.get("silence_db"),
    }
    return cls(**{**facts, **arguments})


def load_preprocessor(cls, converter_cls, preset, arguments):
    """Does the work of `AudioClassifierPreprocessor.from_preset`.

    Args:
        cls: `AudioClassifierPreprocessor`, or a class derived from it.
        converter_cls: `WaveformConverter`.
        preset: as `presets.find` takes it.
        arguments: dict of the arguments that override the preset's.
    """
    checks.reject_unknown(cls.__name__, arguments, cls.arguments())
    loader = presets.find(preset)
    name = compat.PREPROCESSOR_CONFIG_FILE
    if presets.has_file(loader, name):
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
        loader: the loader that `presets.find` returned.
        name: str, the file.
        arguments: dict of the arguments that override the file's.

    Raises:
        ValueError: if it is of another class.
    """
    serialized = compat.read_json(loader.preset, name)
    found = presets.class_of(serialized)
    if found is None or not issubclass(found, cls):
        raise ValueError(
            f"{name} of the preset {loader.preset!r} must hold a "
            f"{cls.__name__}. Received: {serialized['registered_name']}"
        )
    serialized["config"] = {**serialized["config"], **arguments}
    return keras.saving.deserialize_keras_object(serialized)
