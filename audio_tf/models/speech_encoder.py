"""Features and an encoder over them as one backbone of waveforms."""

import keras

from audio_tf.layers import FrameMask, SpeechFeatures
from audio_tf.layers.augmented_frontend import check_augmentation
from audio_tf.models import inputs as model_inputs
from audio_tf.models.audio_albert import WeightedSum
from audio_tf.models.augmented import AugmentedBackbone
from audio_tf.ops.checks import check_flags


@keras.saving.register_keras_serializable("audio_tf")
class SpeechEncoder(AugmentedBackbone):
    """A backbone that turns a waveform into speech features, and encodes them.

    Pre-training leaves one behind: with it, `AudioClassifier` fine-tunes and
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
        features: a `SpeechFeatures`, or a registered subclass of it, with
            the encoder's `feature_dim`.
        weighted_sum: bool. If True, frames are a learned mixture of all
            hidden states (`WeightedSum`), which `encoder` must return; if
            False, they are the last hidden state, as in the papers.
        augmentation: list of `Augmentation` of `audio_tf.layers` for
            waveforms or features, applied in training alone, one after the
            other.
        dtype: the encoder's dtype policy, or `None`, which means the same.
        **kwargs: `name` and `trainable`.

    It is called as every `AudioBackbone`, and returns `"hidden_states"` too if
    the encoder returns them. `from_preset` takes arguments of the encoder as
    well as its own.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if the encoder takes no features or others, hidden states
            are wanted that it does not return, or a dtype that is not its own.
    """

    parts = ("encoder",)

    def __init__(
        self,
        encoder,
        features,
        weighted_sum=False,
        augmentation=(),
        dtype=None,
        **kwargs,
    ):
        model_inputs.check_features(encoder, "SpeechEncoder")
        if not isinstance(features, SpeechFeatures):
            raise ValueError(
                "`features` must be a SpeechFeatures, or of a subclass. "
                f"Received: features={features!r}"
            )
        own = encoder.dtype_policy
        if dtype and keras.dtype_policies.get(dtype).name != own.name:
            raise ValueError(
                "The dtype is the encoder's, to be given to the encoder. "
                f"Received: dtype={dtype}, an encoder of {own.name}"
            )
        if features.dim != encoder.feature_dim:
            raise ValueError(
                "`features` must have the encoder's `feature_dim`. Received: "
                f"{features.dim} features, feature_dim={encoder.feature_dim}"
            )
        check_flags(weighted_sum=weighted_sum)
        if weighted_sum and not encoder.return_hidden_states:
            raise ValueError(
                "`weighted_sum` needs an encoder with "
                "`return_hidden_states=True`. Received: "
                f"return_hidden_states={encoder.return_hidden_states}"
            )
        check_augmentation(
            augmentation, ["waveform", "features"], features.sample_rate_hz
        )
        # === Layers ===
        augmentation = list(augmentation)
        maskings = [each for each in augmentation if each.domain == "features"]
        mixture = None
        if weighted_sum:
            mixture = WeightedSum(dtype=encoder.dtype_policy, name="mixture")

        # === Functional Model ===
        inputs = model_inputs.symbolic("waveform")
        heard = self.augment(augmentation, inputs)
        x, lengths = features(
            heard["waveform"], lengths=heard["lengths"], return_lengths=True
        )
        if maskings:
            mask = FrameMask(1, name="frame_mask")(x[:, :, 0], lengths)
            for layer in maskings:
                x = layer(x, mask=mask)
        outputs = dict(encoder({"features": x, "lengths": lengths}))
        if weighted_sum:
            outputs["sequence_output"] = mixture(outputs["hidden_states"])
        super().__init__(inputs=inputs, outputs=outputs, dtype=own, **kwargs)

        # === Config ===
        self.encoder = encoder
        self.features = features
        self.mixture = mixture
        self.weighted_sum = weighted_sum
        self.augmentation = augmentation
        self.augmented = heard

    @property
    def frontend(self):
        """The layer of the features."""
        return self.features

    @property
    def sample_rate_hz(self):
        """The rate of the waveform that the features take."""
        return self.features.sample_rate_hz

    @property
    def frame_size(self):
        return self.features.frame_size

    @property
    def blocks(self):
        return self.encoder.blocks

    @property
    def stages(self):
        return self.encoder.stages

    @property
    def made_for_frames(self):
        return self.encoder.made_for_frames

    @property
    def max_samples(self):
        frames = self.max_frames
        return None if frames is None else self.features.longest_clip(frames)

    @property
    def attention(self):
        return self.encoder.attention

    @property
    def attention_kwargs(self):
        return self.encoder.attention_kwargs

    @property
    def causal(self):
        return self.features.causal and self.encoder.causal

    @classmethod
    def arguments(cls):
        # By its name, the dtype is an argument of the encoder.
        return [name for name in super().arguments() if name != "dtype"]

    @classmethod
    def rate_hz_of(cls, config):
        return config["features"]["config"]["sample_rate_hz"]

    def embed(self, inputs):
        x, lengths = self.features(
            inputs["waveform"], lengths=inputs["lengths"], return_lengths=True
        )
        return self.encoder.embed({"features": x, "lengths": lengths})

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
