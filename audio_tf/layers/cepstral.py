"""Cepstral coefficients of padded clips."""

import keras
import numpy as np
from keras import ops

from audio_tf.layers import spectral
from audio_tf.ops.checks import check_sizes


@keras.saving.register_keras_serializable("audio_tf")
class MFCC(spectral.LogMel):
    """A layer that computes mel-frequency cepstral coefficients.

    `(batch, samples)` -> `(batch, frames, coefficients)`: the orthonormal
    discrete cosine transform (type 2) of `ln(mel + floor)`, as
    `torchaudio.transforms.MFCC` has it with `log_mels=True`. Other arguments
    are those of `LogMel`.

    Args:
        num_coefficients: int, how many, from the one that is the level on; at
            most the bands.
        num_mel_bins: int, number of mel bands.
        **kwargs: arguments of `LogMel`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> mfcc = layers.MFCC(num_coefficients=13)
        >>> mfcc(np.zeros((1, 16_000), "float32")).shape[2]
        13
    """

    def __init__(self, num_coefficients=20, num_mel_bins=40, **kwargs):
        super().__init__(num_mel_bins=num_mel_bins, **kwargs)
        check_sizes(num_coefficients=num_coefficients)
        if num_coefficients > num_mel_bins:
            raise ValueError(
                "`num_coefficients` must be at most `num_mel_bins`. "
                f"Received: num_coefficients={num_coefficients}, "
                f"num_mel_bins={num_mel_bins}"
            )
        self.num_coefficients = num_coefficients

    def build(self, input_shape):
        band = np.arange(self.num_mel_bins) + 0.5
        order = np.arange(self.num_coefficients)
        cosines = np.cos(np.pi / self.num_mel_bins * np.outer(band, order))
        cosines *= np.sqrt(np.where(order == 0, 1.0, 2.0) / self.num_mel_bins)
        self.cosines = cosines.astype("float32")
        super().build(input_shape)

    @property
    def dim(self):
        return self.num_coefficients

    def features(self, power):
        return ops.matmul(super().features(power), self.cosines)

    def get_config(self):
        return {
            **super().get_config(),
            "num_coefficients": self.num_coefficients,
        }
