"""The base of convolutional backbones on log-mel patches."""

from keras import ops

from audio_tf.layers import FrameMask, MelPatches
from audio_tf.layers.augmented_frontend import check_augmentation
from audio_tf.layers.stages import run_through
from audio_tf.models import inputs as model_inputs
from audio_tf.models.augmented import AugmentedBackbone


class ConvolutionalBackbone(AugmentedBackbone):
    """The base of the convolutional rivals, over log-mel patches.

    They are the baselines of "FSD50K: an Open Dataset of Human-Labeled Sound
    Events" (arXiv 2010.00475), to be compared with, and teachers for
    distillation. An `AudioClassifier` with `chunk_s=1.0, chunk_hop_s=0.5` is
    trained on that paper's patches, which overlap by half, and a clip's scores
    are the mean over them.

    A subclass keeps its own arguments as attributes, hands the rest to this
    constructor and gives `make_stages(dtype)`. The paper is silent on how
    log-mel values are normalised; `MelPatches` says what is done.

    Padding is zero before each convolution, and in training it is left out of
    the statistics that normalise: in inference a padded clip gives what it
    gives alone. Where a window of a pooling has frames of a clip and what is
    behind it, the paper's models drop these frames; here they stay, so that a
    clip of any length has a frame.

    Args:
        num_mel_bins: int, the number of mel bands.
        window_s: float, the length of the windows in seconds.
        hop_s: float, the time from one window to the next in seconds.
        sample_rate_hz: int, the rate of the waveform.
        augmentation: list of `Augmentation` of `audio_tf.layers` for
            waveforms or features, which are applied in training.
        dtype: dtype policy of all layers.
        **kwargs: `name` and `trainable`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range.
    """

    def __init__(
        self,
        num_mel_bins=96,
        window_s=0.03,
        hop_s=0.01,
        sample_rate_hz=22_050,
        augmentation=(),
        dtype=None,
        **kwargs,
    ):
        # === Layers ===
        check_augmentation(
            augmentation, ["waveform", "features"], sample_rate_hz
        )
        augmentation = list(augmentation)
        patches = MelPatches(
            num_mel_bins,
            window_s,
            hop_s,
            sample_rate_hz,
            [each for each in augmentation if each.domain == "features"],
            dtype=dtype,
            name="patches",
        )
        frame_mask = FrameMask(1, name="frame_mask")
        stages = self.make_stages(dtype)

        # === Functional Model ===
        inputs = model_inputs.symbolic("waveform")
        heard = self.augment(augmentation, inputs)
        x, frames = patches(heard["waveform"], heard["lengths"])
        mask = frame_mask(x[:, :, 0], frames)
        x = ops.expand_dims(x, -1)  # (B, T, F, 1)
        x, mask = run_through(stages, x, mask)
        super().__init__(
            inputs=inputs,
            outputs={"sequence_output": x, "frame_mask": mask},
            dtype=dtype,
            **kwargs,
        )

        # === Config ===
        self.patches = patches
        self.frame_mask = frame_mask
        self.stages = stages
        self.num_mel_bins = num_mel_bins
        self.window_s = window_s
        self.hop_s = hop_s
        self.sample_rate_hz = sample_rate_hz
        self.augmentation = augmentation
        self.augmented = heard

    def make_stages(self, dtype):
        """Makes the stages from `(batch, time, bands, 1)` to frames.

        Args:
            dtype: dtype policy of all layers.

        Returns:
            List of `Stage`.
        """
        raise NotImplementedError  # abstract

    @property
    def frontend(self):
        """The layer of log-mel patches."""
        return self.patches

    @property
    def frame_size(self):
        return self.patches.frame_size

    def get_config(self):
        return {
            **super().get_config(),
            "num_mel_bins": self.num_mel_bins,
            "window_s": self.window_s,
            "hop_s": self.hop_s,
            "sample_rate_hz": self.sample_rate_hz,
        }
