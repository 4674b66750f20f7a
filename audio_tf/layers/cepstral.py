"""Cepstral coefficients of padded clips."""

import keras
import numpy as np
from keras import ops

from audio_tf.layers import spectral


@keras.saving.register_keras_serializable("audio_tf")
class MFCC(spectral.LogMel):
    """Mel-frequency cepstral coefficients of `LogMel`.

    `(batch, samples)` -> `(batch, frames, coefficients)`: the orthonormal
    discrete cosine transform (type 2) of `ln(mel + floor)`, as
    `torchaudio.transforms.MFCC` has it with `log_mels=True`. Other arguments
    are those of `LogMel`.

    Args:
        coefficients: int, how many, from the one that is the level on; at
            most the bands.
        bands: int, number of mel bands.
        **kwargs: arguments of `LogMel`.

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(self, coefficients=20, bands=40, **kwargs):
        super().__init__(bands=bands, **kwargs)
        if not 1 <= coefficients <= bands:
            raise ValueError(
                "`coefficients` must be between 1 and the bands. Received: "
                f"coefficients={coefficients}, bands={bands}"
            )
        self.coefficients = coefficients

    def build(self, input_shape):
        band = np.arange(self.bands) + 0.5
        order = np.arange(self.coefficients)
        cosines = np.cos(np.pi / self.bands * np.outer(band, order))
        cosines *= np.sqrt(np.where(order == 0, 1.0, 2.0) / self.bands)
        self.cosines = cosines.astype("float32")
        super().build(input_shape)

    @property
    def dim(self):
        return self.coefficients

    def features(self, power):
        return ops.matmul(super().features(power), self.cosines)

    def get_config(self):
        return {**super().get_config(), "coefficients": self.coefficients}
