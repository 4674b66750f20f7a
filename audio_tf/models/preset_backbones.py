"""Backbones from sizes and presets, each argument where it belongs."""

import copy
import re

import keras_hub

from audio_tf import compat
from audio_tf.attention import one_for_all
from audio_tf.models import freezing, presets
from audio_tf.ops import checks


def describe(preset):
    """Returns the class of a preset's backbone, and what it is built of.

    Args:
        preset: as `presets.find` takes it.

    Returns:
        Pair of the class and the dict of its constructor arguments, complete
        with their defaults.

    Raises:
        ValueError: if there is no such preset, or its class is not known.
    """
    loader = presets.find(preset)
    family = presets.family_of(loader, keras_hub.models.Backbone)
    return family, {**family.defaults(), **loader.config["config"]}


def rate_hz(preset, arguments):
    """Returns the rate of the waveform that a preset takes, before it is built.

    Args:
        preset: as `presets.find` takes it.
        arguments: dict of constructor arguments that override the preset's.

    Returns:
        Int, or `None` for a model of features.
    """
    family, config = describe(preset)
    return family.rate_hz_of({**config, **arguments})


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
        names += accepted(presets.known_class(inner), inner["config"])
    return list(dict.fromkeys(names))


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
        changed = override(presets.known_class(inner), inner["config"], rest)
        config[part] = {**inner, "config": changed}
    return config


def build(family, config):
    """Builds a backbone from a config, which stays as it is."""
    return family.from_config(copy.deepcopy(config))


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


def load_backbone(base, preset, load_weights, arguments):
    """Does the work of `AudioBackbone.from_preset`.

    Args:
        base: the class whose `from_preset` was called.
        preset: as `presets.find` takes it.
        load_weights: bool, whether to load the weights of a preset.
        arguments: dict of the arguments that override the preset's.
    """
    loader = presets.find(preset)
    family = presets.family_of(loader, base)
    config = loader.config["config"]
    checks.reject_unknown(family.__name__, arguments, accepted(family, config))
    if presets.is_size(loader):
        return build(family, override(family, config, arguments))
    if load_weights:
        presets.require_file(loader, *compat.weight_files(loader))
        presets.check_resampler(loader)
    given = {"dtype": saved_dtype(config), **arguments}
    backbone = build(family, override(family, config, given))
    if given.get("trainable") is True:
        freezing.thaw(backbone)
    if load_weights:
        if arguments and not compat.is_converted(loader):
            check_fit(loader, build(family, config), backbone)
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


def check_fit(loader, saved, model):
    """Raises a `ValueError` if a preset's weights do not fit a model.

    Keras itself overlooks weights that a smaller model has no use for, and
    weights of another rate, or of other heads, have the same shapes.

    Args:
        loader: the loader that `presets.find` returned.
        saved: backbone or classifier as the preset has it.
        model: that which is to have the weights.
    """
    if saved.sample_rate_hz != model.sample_rate_hz:
        raise ValueError(
            f"The weights of the preset {loader.preset!r} are of sound at "
            f"{saved.sample_rate_hz} Hz, which files of other rates are "
            "resampled to; `load_weights=False` builds a model of another "
            "rate with random weights. "
            f"Received: sample_rate_hz={model.sample_rate_hz}"
        )
    heads, given = heads_of(saved), heads_of(model)
    if heads != given:
        raise ValueError(
            f"The weights of the preset {loader.preset!r} are of "
            f"{heads} heads, which others would cut elsewhere; "
            "`load_weights=False` builds a model of other heads with random "
            f"weights. Received: num_heads={given}"
        )
    expected, found = shapes(saved), shapes(model)
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


def heads_of(model):
    """Returns the heads of a backbone's attention, whatever gave them.

    They may fit weights that are cut into others: 2 of 4 as 4 of 2.

    Args:
        model: backbone or classifier.

    Returns:
        Int, or a list of one for each block where they differ; `None` where
        there is no attention.
    """
    blocks = model.audio_backbone().blocks
    heads = [block.attention.num_heads for block in blocks]
    return one_for_all(heads) if heads else None


def shapes(model):
    """Returns the shape of each weight by its path within the model.

    Layers that Keras has named are numbered as the model has them, since
    Keras goes on counting from one model of a process to the next.
    """
    named = {each.name for each in compat.layers_within(model) if unnamed(each)}
    numbers, found = {}, {}
    for weight in model.weights:
        parts = weight.path.removeprefix(f"{model.name}/").split("/")
        for place, part in enumerate(parts):
            if part in named:
                stem = re.sub(r"_\d+$", "", part)
                alike = numbers.setdefault((*parts[:place], stem), {})
                number = alike.setdefault(part, len(alike))
                parts[place] = f"{stem}_{number}" if number else stem
        found["/".join(parts)] = tuple(weight.shape)
    return found


def unnamed(layer):
    """Returns whether a layer has the name that Keras gives to its class."""
    stem = re.sub(r"_\d+$", "", layer.name)
    return stem.replace("_", "") == type(layer).__name__.lower()
