"""Attentions whose weights no longer change, turned into what is quicker."""

import keras

from audio_tf import compat
from audio_tf.attention.base import Attention


def fold(model):
    """Folds every attention of a trained model that can be, see its `fold`.

    Args:
        model: a built `keras.Model` or layer; changed in place.

    Returns:
        The number of layers folded.

    Examples:
        >>> from audio_tf import attention, models
        >>> backbone = models.AudioTransformerBackbone(
        ...     num_layers=2, attention="random_synthesizer"
        ... )
        >>> attention.fold(backbone)
        2
    """
    folded = 0
    parts = [model, *compat.layers_within(model)]
    for layer in parts:
        if isinstance(layer, Attention) and layer.foldable > layer.folded:
            layer.fold()
            folded += 1
    if folded:
        # As models of ours around this one were.
        compat.TracedAnew.note_other_weights()
    for part in parts:
        if folded and isinstance(part, keras.Model):
            # They were compiled with the old tables.
            part.train_function = None
            part.test_function = None
            part.predict_function = None
    return folded
