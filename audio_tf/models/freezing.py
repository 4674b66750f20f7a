"""Models at rest: what `trainable=False` freezes, and what undoes it."""


def freeze_layers(model, trainable):
    """Freezes a functional model if its argument `trainable` is False.

    Keras' own argument is not passed on: True would thaw, on JAX, the parts
    that were frozen before, and False comes before there are layers to be
    frozen.

    Args:
        model: a functional `keras.Model`; changed in place.
        trainable: bool.
    """
    if not trainable:
        model.trainable = False
        for layer in model.layers:
            layer.trainable = False


def thaw(backbone):
    """Has a backbone trained that was saved at rest, or of a part at rest.

    Layers that rest by their class, in a backbone that is trained, still do.

    Args:
        backbone: `AudioBackbone`; changed in place.
    """
    if not backbone.trainable:
        backbone.trainable = True
    for name in backbone.parts:
        thaw(getattr(backbone, name))
