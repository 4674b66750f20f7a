"""A backbone from whatever a user names, to be looked into."""

import pathlib

import keras

from audio_tf.models import AudioBackbone, list_sizes
from audio_tf.models.presets import find


def load(checkpoint):
    """Loads a backbone of waveforms from any checkpoint.

    Args:
        checkpoint: the name of a size, the folder or address of a preset, or
            a `.keras` file.

    Returns:
        Pair of the `AudioBackbone`, and whether it has trained weights.

    Raises:
        ValueError: if there is no such checkpoint, or it takes features.
    """
    checkpoint = str(checkpoint)
    if checkpoint.endswith(".keras"):
        model = keras.saving.load_model(checkpoint, compile=False)
        # The file may be of any model; a task of ours has a backbone.
        model = getattr(model, "backbone", model)
        family = type(model)
    else:
        # Not built yet: it may be of another kind.
        family, model = find(checkpoint).check_backbone_class(), None
    if not issubclass(family, AudioBackbone):
        raise ValueError(
            "The checkpoint must be of an AudioBackbone or an "
            f"AudioClassifier. Received: {family.__name__} in {checkpoint}"
        )
    if family.takes != "waveform":
        raise ValueError(
            "The model takes features, and does not say how they are made of "
            "audio. Pass a SpeechEncoder, such as the preset folder that "
            "pre-training writes beside its checkpoints. "
            f"Received: {checkpoint}"
        )
    if model is None:
        model = AudioBackbone.from_preset(checkpoint)
    return model, checkpoint not in list_sizes()


def title_of(checkpoint, trained):
    """Names a checkpoint in the title of a figure."""
    path = pathlib.Path(checkpoint)
    # Every run calls its folder `preset`.
    parts = path.resolve().parts[-2:] if path.exists() else [path.name]
    return "/".join(parts) + ("" if trained else ", untrained")
