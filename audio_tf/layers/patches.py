"""Log-mel patches: what convolutional models see of a waveform."""

import math

import keras
from keras import ops

from audio_tf.layers.augmented_frontend import AugmentedFrontend
from audio_tf.layers.mel_frontend import LOG_FLOOR, LOG_SCALE, power_of_two
from audio_tf.layers.spectral import LogMel
from audio_tf.ops import masks
from audio_tf.ops.checks import check_positive, check_sizes


@keras.saving.register_keras_serializable("audio_tf")
class MelPatches(AugmentedFrontend):
    """A layer that computes log-mel patches, silence being zero.

    `(batch, samples)` -> `(batch, frames, num_mel_bins)` with
    `frames = 1 + samples // hop_size`. Its defaults are the patches of the
    baselines of "FSD50K: an Open Dataset of Human-Labeled Sound Events"
    (arXiv 2010.00475): of a second, 101 frames of 96 bands. The values are
    those of `LogMel`, shifted and scaled so that silence is 0 and what is
    louder is above: zeros that a convolution adds around a patch are silence.

    It learns nothing. Computed in float32 and cast to the policy.

    Args:
        num_mel_bins: int, the number of mel bands.
        window_s: float, the length of a window in seconds.
        hop_s: float, the time from one frame to the next in seconds.
        sample_rate_hz: int, the rate of the waveform.
        augmentation: list of `SpectrogramAugmentation` of features, which are
            applied in training.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`, full scale 1.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real.
        training: bool, whether augmentation applies.

    Returns:
        Pair of a tensor `(batch, frames, num_mel_bins)`, zeros behind the end
        of a clip, and of how many frames are real, int32 `(batch,)`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> patches = layers.MelPatches(num_mel_bins=40)
        >>> features, lengths = patches(np.zeros((1, 22_050), "float32"))
        >>> tuple(features.shape), int(lengths[0])
        ((1, 101, 40), 101)
    """

    domains = ("features",)

    def __init__(
        self,
        num_mel_bins=96,
        window_s=0.03,
        hop_s=0.01,
        sample_rate_hz=22_050,
        augmentation=(),
        **kwargs,
    ):
        super().__init__(sample_rate_hz, augmentation, **kwargs)
        check_sizes(num_mel_bins=num_mel_bins)
        check_positive(window_s=window_s, hop_s=hop_s)
        self.num_mel_bins = num_mel_bins
        self.window_s = window_s
        self.hop_s = hop_s
        self.log_mel = LogMel(
            num_mel_bins,
            sample_rate_hz=sample_rate_hz,
            window_s=window_s,
            hop_s=hop_s,
            fft_length=power_of_two(max(round(window_s * sample_rate_hz), 2)),
            floor=LOG_FLOOR,
            dtype="float32",
            name="log_mel",
        )

    @property
    def frame_size(self):
        """The samples from one frame to the next."""
        return self.log_mel.hop_size

    def build(self, input_shape):
        self.log_mel.build(input_shape)

    def call(self, waveform, lengths=None, training=None):
        lengths = masks.real_lengths(waveform, lengths)
        x = self.log_mel(waveform, lengths)
        lengths = self.log_mel.frame_lengths(lengths)
        mask = masks.from_lengths(lengths, ops.shape(x)[1])
        x = LOG_SCALE * (x - math.log(LOG_FLOOR))
        x = self.augmented(x, mask, "features", training)
        x = masks.zero_padding(x, mask)
        return ops.cast(x, self.compute_dtype), lengths

    def compute_output_spec(self, waveform, lengths=None, training=None):
        batch, samples = waveform.shape
        frames = None if samples is None else 1 + samples // self.frame_size
        shape = (batch, frames, self.num_mel_bins)
        return (
            keras.KerasTensor(shape, dtype=self.compute_dtype),
            keras.KerasTensor((batch,), dtype="int32"),
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_mel_bins": self.num_mel_bins,
            "window_s": self.window_s,
            "hop_s": self.hop_s,
        }
