"""Features and an encoder over them as one backbone of waveforms."""

import keras

from audio_tf.models.audio_albert import WeightedSum
from audio_tf.models.backbone import (
    AudioBackbone,
    as_audio_inputs,
    audio_inputs,
    freeze_layers,
)


@keras.saving.register_keras_serializable("audio_tf")
class SpeechEncoder(AudioBackbone):
    """A waveform to frames by way of speech features.

    What pre-training leaves behind: with it, `AudioClassifier` fine-tunes and
    exports an Audio ALBERT as it does an Audio Transformer.

    ```python
    encoder = SpeechEncoder(
        AudioAlbertBackbone.from_preset("audio_albert_6"),
        SpeechFeatures("paper"),
    )
    frames = encoder(waveform)["sequence_output"]
    ```

    Args:
        encoder: an `AudioAlbertBackbone`.
        features: a `SpeechFeatures` with the encoder's `feature_dim`.
        weighted_sum: bool. If True, frames are a learned mixture of all
            hidden states (`WeightedSum`), which `encoder` must return; if
            False, the last one, as in the papers.
        **kwargs: arguments of `keras_hub.models.Backbone`.

    Call arguments and what it returns are those of `AudioBackbone`, with
    `"hidden_states"` beside if the encoder returns them.

    Raises:
        ValueError: if features and encoder do not fit, or hidden states are
            wanted that the encoder does not return.
    """

    def __init__(self, encoder, features, weighted_sum=False, **kwargs):
        if features.dim != encoder.feature_dim:
            raise ValueError(
                "`features` must have the encoder's `feature_dim`. Received: "
                f"{features.dim} features, feature_dim={encoder.feature_dim}"
            )
        if weighted_sum and not encoder.return_hidden_states:
            raise ValueError(
                "`weighted_sum` needs an encoder with "
                "`return_hidden_states=True`. Received: "
                f"return_hidden_states={encoder.return_hidden_states}"
            )
        # === Layers ===
        mixture = None
        if weighted_sum:
            mixture = WeightedSum(dtype=encoder.dtype_policy, name="mixture")

        # === Functional Model ===
        inputs = audio_inputs()
        x, mask = features(
            inputs["waveform"], lengths=inputs["lengths"], return_mask=True
        )
        outputs = dict(encoder({"features": x, "frame_mask": mask}))
        if weighted_sum:
            outputs["sequence_output"] = mixture(outputs["hidden_states"])
        super().__init__(
            inputs=inputs,
            outputs=outputs,
            dtype=kwargs.pop("dtype", encoder.dtype_policy),
            **kwargs,
        )
        freeze_layers(self, kwargs)

        # === Config ===
        self.encoder = encoder
        self.features = features
        self.mixture = mixture
        self.weighted_sum = weighted_sum

    @property
    def sample_rate_hz(self):
        """Rate of the waveform that the features take."""
        return self.features.sample_rate_hz

    def hidden_states(self, inputs):
        """The encoder's hidden states, in inference, without asking for them.

        Args:
            inputs: as the model takes them.

        Returns:
            Pair of a tensor `(batch, num_layers + 1, steps, dim)`, the
            embedding and what each layer gives, and the mask, boolean
            `(batch, steps)`, True where a step is real.
        """
        inputs = as_audio_inputs(inputs)
        x, mask = self.features(
            inputs["waveform"], lengths=inputs["lengths"], return_mask=True
        )
        states = self.encoder.hidden_states({"features": x, "frame_mask": mask})
        return states, mask

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "features": keras.saving.serialize_keras_object(self.features),
            "weighted_sum": self.weighted_sum,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        parts = {
            name: keras.saving.deserialize_keras_object(
                config[name], custom_objects=custom_objects
            )
            for name in ("encoder", "features")
        }
        return super().from_config({**config, **parts})
