"""A small residual network over learned mel bands, a teacher."""

import keras
from keras import ops

from audio_tf.layers import BandPooling, Convolution, FrameMask, ResidualBlock
from audio_tf.layers.augmented_frontend import check_augmentation
from audio_tf.layers.mel_frontend import MelBands
from audio_tf.layers.stages import run_through
from audio_tf.models import inputs as model_inputs
from audio_tf.models.augmented import AugmentedBackbone
from audio_tf.ops import checks


@keras.saving.register_keras_serializable("audio_tf")
class MelResNetBackbone(AugmentedBackbone):
    """A residual network that hears what mel transformers hear.

    Mel bands with a learned logarithm, as `AudioTransformerBackbone` of
    `filterbank="log_mel"` has them, a convolution of 5 x 5 that takes every
    second window and band, and `ResidualBlock`s, each but the first of which
    halves time and bands. A frame is the mean over bands. With little data it
    learns what a transformer does not, and can be its teacher:
    `audio-tf train --teachers`.

    Args:
        filters: ints, channels of the blocks, one each.
        num_mel_bins: int, the number of mel bands.
        window_s: float, the length of the windows in seconds.
        hop_s: float, the time from one window to the next in seconds.
        sample_rate_hz: int, the rate of the waveform.
        subtract_mean: bool, whether to subtract from each band its mean over
            the clip.
        augmentation: list of `Augmentation` of `audio_tf.layers` for
            waveforms, spectra and features, which are applied in training.
        dtype: dtype policy of all layers.
        **kwargs: `name` and `trainable`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import models
        >>> backbone = models.MelResNetBackbone(filters=(4, 8), num_mel_bins=40)
        >>> outputs = backbone(np.zeros((1, 16_000), "float32"))
        >>> tuple(outputs["sequence_output"].shape)
        (1, 25, 8)
    """

    def __init__(
        self,
        filters=(16, 32, 64, 128),
        num_mel_bins=64,
        window_s=0.025,
        hop_s=0.01,
        sample_rate_hz=16_000,
        subtract_mean=True,
        augmentation=(),
        dtype=None,
        **kwargs,
    ):
        filters = checks.sizes_of("filters", filters, empty=False)
        checks.check_sizes(sample_rate_hz=sample_rate_hz)
        # === Layers ===
        check_augmentation(
            augmentation,
            ["waveform", "spectrum", "features"],
            sample_rate_hz,
        )
        augmentation = list(augmentation)
        bands = MelBands(
            num_mel_bins,
            window_s,
            hop_s,
            sample_rate_hz=sample_rate_hz,
            subtract_mean=subtract_mean,
            augmentation=[
                layer for layer in augmentation if layer.domain != "waveform"
            ],
            dtype=dtype,
            name="bands",
        )
        frame_mask = FrameMask(bands.frame_size, name="frame_mask")
        stages = [
            Convolution(filters[0], 5, 2, dtype=dtype, name="stem"),
            *(
                ResidualBlock(
                    count, 2 if index else 1, dtype=dtype, name=f"block_{index}"
                )
                for index, count in enumerate(filters)
            ),
            BandPooling(dtype=dtype, name="band_pooling"),
        ]

        # === Functional Model ===
        inputs = model_inputs.symbolic("waveform")
        heard = self.augment(augmentation, inputs)
        mask = frame_mask(**heard)
        x = ops.expand_dims(bands(**heard), -1)  # (B, T, F, 1)
        x, mask = run_through(stages, x, mask)
        super().__init__(
            inputs=inputs,
            outputs={"sequence_output": x, "frame_mask": mask},
            dtype=dtype,
            **kwargs,
        )

        # === Config ===
        self.bands = bands
        self.stages = stages
        self.filters = filters
        self.num_mel_bins = num_mel_bins
        self.window_s = window_s
        self.hop_s = hop_s
        self.sample_rate_hz = sample_rate_hz
        self.subtract_mean = subtract_mean
        self.augmentation = augmentation
        self.augmented = heard

    @property
    def frontend(self):
        """The layer of mel bands."""
        return self.bands

    @property
    def frame_size(self):
        return self.bands.frame_size

    def get_config(self):
        return {
            **super().get_config(),
            "filters": list(self.filters),
            "num_mel_bins": self.num_mel_bins,
            "window_s": self.window_s,
            "hop_s": self.hop_s,
            "sample_rate_hz": self.sample_rate_hz,
            "subtract_mean": self.subtract_mean,
        }


MelResNetBackbone.register_sizes({"mel_resnet": {}})
