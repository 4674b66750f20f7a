"""The base of front ends that augment what they compute, in training."""

import keras

from audio_tf.layers.augment import Augmentation
from audio_tf.layers.filters import Frontend
from audio_tf.ops.checks import check_sizes


def check_augmentation(layers, domains, sample_rate_hz):
    """Checks that augmentations are meant for what they will be given.

    Args:
        layers: list of `Augmentation`.
        domains: list of str, what is there to be augmented.
        sample_rate_hz: int, the rate of the waveform.

    Raises:
        TypeError: if it is no list, or something in it is no `Augmentation`,
            as a layer that mixes targets too is none.
        ValueError: if a layer is for something else, or for another rate; it
            names the layer.
    """
    several = isinstance(layers, (list, tuple))
    for layer in layers if several else [layers]:
        if not several or not isinstance(layer, Augmentation):
            raise TypeError(
                "`augmentation` must be a list of augmentations of "
                f"`audio_tf.layers`. Received: {layer!r}"
            )
        if layer.domain not in domains:
            raise ValueError(
                "`augmentation` must be of what the front end computes, and "
                f"{type(layer).__name__} augments the {layer.domain}. "
                "Received: augmentation of "
                f"{[type(each).__name__ for each in layers]}, a front end "
                f"with {list(domains)}"
            )
        layer.check_rate(sample_rate_hz)


class AugmentedFrontend(Frontend):
    """The base of front ends with the argument `augmentation`.

    A subclass names by `domains` what of it may be augmented, and applies by
    `augmented` what is meant for each.

    Args:
        sample_rate_hz: int, the rate of the waveform.
        augmentation: list of `Augmentation`.
        **kwargs: arguments of `keras.layers.Layer`.

    Raises:
        TypeError, ValueError: as `check_augmentation`, and if the rate is no
            positive integer.
    """

    domains = ()

    def __init__(self, sample_rate_hz=16_000, augmentation=(), **kwargs):
        # A waveform in half precision would lose its quiet parts.
        super().__init__(autocast=False, **kwargs)
        check_sizes(sample_rate_hz=sample_rate_hz)
        check_augmentation(augmentation, self.domains, sample_rate_hz)
        self.sample_rate_hz = sample_rate_hz
        self.augmentation = list(augmentation)

    def augmented(self, x, mask, domain, training):
        """Applies the augmentations that are meant for a domain.

        Args:
            x: float32 tensor `(batch, time, features)`.
            mask: boolean `(batch, time)`, True where a window is real.
            domain: str, what `x` is.
            training: bool.

        Returns:
            Tensor like `x`.
        """
        for layer in self.augmentation:
            if layer.domain == domain:
                x = layer(x, mask=mask, training=training)
        return x

    def get_config(self):
        return {
            **super().get_config(),
            "sample_rate_hz": self.sample_rate_hz,
            "augmentation": [
                keras.saving.serialize_keras_object(layer)
                for layer in self.augmentation
            ],
        }

    @classmethod
    def from_config(cls, config):
        layers = map(
            keras.saving.deserialize_keras_object, config["augmentation"]
        )
        return super().from_config({**config, "augmentation": list(layers)})
