"""What every backbone takes and gives."""

import keras
import keras_hub


def audio_inputs():
    """The symbolic inputs of a backbone: `waveform` and optional `lengths`."""
    return {
        "waveform": keras.Input((None,), dtype="float32", name="waveform"),
        "lengths": keras.Input(
            (), dtype="int32", name="lengths", optional=True
        ),
    }


def as_audio_inputs(inputs):
    """Completes a waveform, or a dict without lengths, to the full dict.

    Raises:
        ValueError: if a dict has no `waveform`, or keys beyond the two.
    """
    if not isinstance(inputs, dict):
        return {"waveform": inputs, "lengths": None}
    unknown = set(inputs) - {"waveform", "lengths"}
    if "waveform" not in inputs or unknown:
        raise ValueError(
            "Inputs must be a waveform, or a dict of `waveform` and, "
            f"optionally, `lengths`. Received: keys={sorted(inputs)}"
        )
    return {"waveform": inputs["waveform"], "lengths": inputs.get("lengths")}


class TakesWaveforms:
    """Lets a functional model take a waveform where it has two inputs."""

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(as_audio_inputs(inputs), *args, **kwargs)

    def call(self, inputs, training=None, mask=None, **kwargs):
        # JAX' stateless calls do not come through `__call__`.
        return super().call(
            as_audio_inputs(inputs), training=training, mask=mask, **kwargs
        )


class AudioBackbone(TakesWaveforms, keras_hub.models.Backbone):
    """Base of the models that turn a waveform into frames.

    Call arguments:
        inputs: floating waveform `(batch, samples)`, full scale 1, or a dict
            `{"waveform": (batch, samples), "lengths": (batch,)}`, where
            `lengths` counts the real samples of each padded clip.

    Returns:
        Dict of `"sequence_output"`, `(batch, frames, dim)`, and
        `"frame_mask"`, boolean `(batch, frames)`, True where a frame holds a
        real sample. Frames that are real do not depend on the padding.

    Subclasses have the attributes `sample_rate_hz` and `sizes`, a dict of
    architectures by name.
    """

    sizes = {}

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Builds a backbone from the name of a size or from a preset.

        Args:
            preset: a key of `sizes`, which gives the architecture with random
                weights, or what KerasHub takes: a folder or a
                `hf://`, `kaggle://` or `gs://` address.
            load_weights: bool, whether to load the weights of a preset.
            **kwargs: arguments of the class that override the preset's.

        Raises:
            ValueError: if there is no such size or preset.
        """
        family = find_size(cls, preset)
        if family is not None:
            return family(**{**family.sizes[preset], **kwargs})
        return super().from_preset(preset, load_weights, **kwargs)


def freeze_layers(model, kwargs):
    """Freezes a model's layers if its arguments say `trainable=False`.

    Keras has set it before there were layers to be frozen, and a model around
    this one would train them.
    """
    if not kwargs.get("trainable", True):
        for layer in model.layers:
            layer.trainable = False


def find_size(cls, preset):
    """The class among `cls` and its subclasses with a size of that name."""
    for family in (cls, *cls.__subclasses__()):
        if preset in family.sizes:
            return family
    return None
