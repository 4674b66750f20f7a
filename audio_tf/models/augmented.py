"""The base of backbones that augment clips within the model, in training."""

import keras

from audio_tf.models.backbone import AudioBackbone


class AugmentedBackbone(AudioBackbone):
    """The base of backbones with the argument `augmentation`.

    A subclass applies those of waveforms by `augment`, keeps the dict that it
    returns as the attribute `augmented`, and the argument as the attribute
    `augmentation`, a list of `Augmentation`.
    """

    @staticmethod
    def augment(augmentation, inputs):
        """Applies the augmentations that are meant for a waveform.

        Args:
            augmentation: list of `Augmentation`.
            inputs: dict of `waveform`, a floating tensor `(batch, samples)`,
                and `lengths`, integers `(batch,)` or `None`.

        Returns:
            Dict like `inputs`.
        """
        waveform, lengths = inputs["waveform"], inputs["lengths"]
        for layer in augmentation:
            if layer.domain == "waveform":
                waveform, lengths = layer(waveform, lengths)
        return {"waveform": waveform, "lengths": lengths}

    @property
    def heard(self):
        return self.augmented

    def get_config(self):
        return {
            **super().get_config(),
            "augmentation": [
                keras.saving.serialize_keras_object(layer)
                for layer in self.augmentation
            ],
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        # Arguments that override a preset's are no JSON, but layers.
        layers = config.get("augmentation", ())
        if isinstance(layers, (list, tuple)):
            layers = [
                keras.saving.deserialize_keras_object(
                    layer, custom_objects=custom_objects
                )
                if isinstance(layer, dict)
                else layer
                for layer in layers
            ]
        return super().from_config({**config, "augmentation": layers})
