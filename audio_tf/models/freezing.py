"""Models at rest: what `trainable` freezes, and what undoes it.

Layers have names here that tell where they are, such as `block_0/attention`.
"""

import keras

from audio_tf import compat
from audio_tf.ops import checks


def freeze_layers(model, trainable):
    """Freezes a functional model, or parts of it, as `trainable` says.

    Keras' own argument is not passed on: True would thaw, on JAX, the parts
    that were frozen before, and False comes before there are layers to be
    frozen.

    Args:
        model: a functional `keras.Model`; changed in place.
        trainable: bool, or a list of the names of the layers that are trained
            while all others rest.

    Raises:
        ValueError: if it is neither, or there is no layer of such a name.
    """
    if isinstance(trainable, (list, tuple)):
        train_alone(model, trainable)
        return
    checks.check_flags(trainable=trainable)
    if not trainable:
        model.trainable = False
        for layer in model.layers:
            layer.trainable = False


def parts_of(layer, within):
    """Yields the layers right within a layer by their names.

    Args:
        layer: a layer or a model.
        within: str, the name of the layer, empty for the whole.

    Yields:
        Pairs of a name and a layer.
    """
    for each in compat.layers_within(layer, recursive=False):
        # It may rest or not, and nothing comes of it.
        if not isinstance(each, keras.layers.InputLayer):
            yield f"{within}/{each.name}" if within else each.name, each


def named_layers(layer, within=""):
    """Yields pairs of a name and a layer, as `parts_of`, at any depth."""
    for name, each in parts_of(layer, within):
        yield name, each
        yield from named_layers(each, name)


def train_alone(model, names):
    """Has the layers of some names trained, and all others rest."""
    known = list(named_layers(model))
    unknown = [
        each for each in names if each not in {name for name, _ in known}
    ]
    if unknown:
        raise ValueError(
            "`trainable` must be True, False or a list of the names of layers"
            f"{checks.closest(unknown[0], [name for name, _ in known])}. "
            f"Received: {unknown}, which {model.name} has not"
        )
    for name, each in known:
        is_part = any(is_within(name, other) for other in names)
        has_part = any(is_within(other, name) for other in names)
        if not is_part and not has_part:
            each.trainable = False


def is_within(name, other):
    """Tells whether a layer is another one, or somewhere in it, by names."""
    return f"{name}/".startswith(f"{other}/")


def resting(layer, within=""):
    """Lists the names of the uppermost layers that rest."""
    names = []
    for name, each in parts_of(layer, within):
        names += resting(each, name) if each.trainable else [name]
    return names


def trained(model, by_class=()):
    """Says what of a model is trained, as `freeze_layers` takes it.

    Args:
        model: a functional `keras.Model`.
        by_class: names of layers that rest whenever the model is made.

    Returns:
        True, False or a list of names.
    """

    def visit(layer, within):
        names, whole = [], True
        for name, each in parts_of(layer, within):
            if name in by_class:
                # What is listed is left as it is made.
                names.append(name)
                continue
            inner, all_of_it = visit(each, name)
            all_of_it = all_of_it and each.trainable
            names += [name] if all_of_it else inner
            whole = whole and all_of_it
        return names, whole

    names, whole = visit(model, "")
    if whole and model.trainable:
        return True
    return False if set(names) <= set(by_class) else names


def thaw(backbone):
    """Has a backbone trained that was saved at rest, or of a part at rest.

    Layers that rest by their class, in a backbone that is trained, still do.

    Args:
        backbone: `AudioBackbone`; changed in place.
    """
    if trained(backbone, backbone.resting_by_class) is not True:
        # TensorFlow passes over what is set to what it is.
        backbone.trainable = False
        backbone.trainable = True
    for name in backbone.parts:
        thaw(getattr(backbone, name))
