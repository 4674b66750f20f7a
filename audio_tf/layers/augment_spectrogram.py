"""Augmentation of spectrograms: hidden frames and bands, other voices."""

import keras
from keras import ops

from audio_tf.layers import augment
from audio_tf.ops import masks
from audio_tf.ops.checks import check_shares, check_sizes, is_number
from audio_tf.ops.layer import FRAMES, check_floating


def hide(inputs, start, width, axis, fill):
    """Replaces a run along one axis of `(batch, time, bands)`.

    Args:
        inputs: tensor `(batch, time, bands)`.
        start: int32 `(batch, 1)`, the first frame or band of the run.
        width: int32 `(batch, 1)`, its length; 0 hides nothing.
        axis: int, 1 for frames and 2 for bands.
        fill: tensor that broadcasts to `inputs`, the values to put there.

    Returns:
        Tensor like `inputs`.
    """
    positions = ops.arange(ops.shape(inputs)[axis], dtype="int32")
    positions = ops.expand_dims(positions, 0)
    hidden = (positions >= start) & (positions < start + width)
    hidden = ops.expand_dims(hidden, 3 - axis)
    return ops.where(hidden, fill, inputs)


def warp(inputs, factor, break_share):
    """Reads spectra at `G(f)`, as `VocalTractPerturbation` defines it.

    Args:
        inputs: tensor `(batch, time, bins)`.
        factor: float32 `(batch, 1)`, `a` of each clip.
        break_share: float in (0, 1), where the slope of `G` changes.

    Returns:
        Tensor like `inputs`.
    """
    bins = ops.cast(ops.arange(ops.shape(inputs)[2]), "float32")
    top = ops.maximum(bins[-1], 1.0)
    corner = break_share * ops.minimum(factor, 1.0) * top
    below = factor * bins
    slope = (top - corner) / (top - corner / factor)
    above = top - slope * (top - bins)
    sources = ops.where(bins <= corner / factor, below, above)
    # (batch, source bin, bin): linear interpolation as a product.
    distance = ops.expand_dims(sources, 1) - ops.reshape(bins, (1, -1, 1))
    return ops.matmul(inputs, ops.relu(1.0 - ops.abs(distance)))


class SpectrogramAugmentation(augment.Augmentation):
    """The base of augmentations of `(batch, time, features)`.

    A subclass gives `augment(inputs, lengths)`, which is called in training
    in float32.

    Call arguments:
        inputs: floating tensor `(batch, time, features)`.
        mask: boolean `(batch, time)`, True for the real frames, which come
            first, or `None` where all are real.
        training: bool; without it nothing is changed.

    Returns:
        Tensor of the inputs' shape and dtype; frames behind the real ones
        are as they were.

    Raises:
        ValueError: if inputs are integers, which have no mean to be hidden by.
    """

    domain = "features"
    first_input = FRAMES

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None, training=None):
        check_floating("inputs", inputs)
        inputs = ops.convert_to_tensor(inputs)
        if not training:
            return inputs
        if mask is None:
            mask = ops.ones_like(inputs[:, :, 0], dtype="bool")
        mask = ops.cast(mask, "bool")
        x = masks.zero_padding(ops.cast(inputs, "float32"), mask)
        x = self.augment(x, masks.to_lengths(mask))
        if self.rate < 1.0:
            mask = mask & self.chosen(inputs)
        changed = ops.expand_dims(mask, -1)
        return ops.where(changed, ops.cast(x, inputs.dtype), inputs)

    def augment(self, inputs, lengths):
        """Changes all clips.

        Args:
            inputs: float32 `(batch, time, features)`, zeros behind the clips.
            lengths: int32 `(batch,)`, real frames of each clip.

        Returns:
            Tensor like `inputs`.
        """
        raise NotImplementedError  # abstract

    def compute_output_spec(self, inputs, mask=None, training=None):
        return keras.KerasTensor(inputs.shape, dtype=inputs.dtype)


class Masking(SpectrogramAugmentation):
    """The base of layers that hide runs of frames or of bands.

    Widths and starts are drawn as in section 2 of "SpecAugment"
    (arXiv 1904.08779): the width `w` from all integers from 0 to the largest,
    the start from 0 to `length - w`.

    Args:
        num_masks: int, how many runs of a clip are hidden; they may overlap.
        fill: float, the value to put in their place, or `"mean"` for the mean
            of the clip's real frames over all bands. The paper's zero is the
            mean of its normalised features.
        **kwargs: arguments of `Augmentation`.
    """

    def __init__(self, num_masks=2, fill="mean", **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_masks=num_masks)
        if not is_number(fill) and fill != "mean":
            raise ValueError(
                f"`fill` must be a number or 'mean'. Received: fill={fill!r}"
            )
        self.num_masks = num_masks
        self.fill = fill

    def value(self, inputs, lengths):
        """Returns the value to put in the place of runs, `(batch, 1, 1)`."""
        if self.fill != "mean":
            return ops.zeros_like(inputs[:, :1, :1]) + self.fill
        bands = ops.shape(inputs)[2]
        count = ops.cast(ops.maximum(lengths * bands, 1), "float32")
        total = ops.sum(inputs, axis=(1, 2), keepdims=True)
        return total / ops.reshape(count, (-1, 1, 1))

    def hide_runs(self, inputs, lengths, axis, length, largest):
        """Hides `num_masks` runs within `length`, at most `largest` wide."""
        fill = self.value(inputs, lengths)
        for _ in range(self.num_masks):
            width = self.integers(inputs, 0, largest)
            start = self.integers(inputs, 0, length - width)
            inputs = hide(inputs, start, width, axis, fill)
        return inputs

    def get_config(self):
        return {
            **super().get_config(),
            "num_masks": self.num_masks,
            "fill": self.fill,
        }


@keras.saving.register_keras_serializable("audio_tf")
class TimeMasking(Masking):
    """A layer that hides runs of real frames, as `Masking` draws them.

    Args:
        max_frames: int, the largest width in frames.
        max_share: float, the largest width as a share of the clip's frames,
            the paper's `p`.
        **kwargs: arguments of `Masking`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> masking = layers.TimeMasking(max_frames=5, max_share=0.2)
        >>> tuple(masking(np.ones((1, 12, 40), "float32"), training=True).shape)
        (1, 12, 40)
    """

    def __init__(self, max_frames=20, max_share=1.0, **kwargs):
        super().__init__(**kwargs)
        check_sizes(max_frames=max_frames)
        check_shares(max_share=max_share)
        self.max_frames = max_frames
        self.max_share = max_share

    def augment(self, inputs, lengths):
        length = ops.expand_dims(lengths, 1)
        share = ops.cast(length, "float32") * self.max_share
        largest = ops.minimum(
            ops.cast(ops.floor(share), "int32"), self.max_frames
        )
        return self.hide_runs(inputs, lengths, 1, length, largest)

    def get_config(self):
        return {
            **super().get_config(),
            "max_frames": self.max_frames,
            "max_share": self.max_share,
        }


@keras.saving.register_keras_serializable("audio_tf")
class BandMasking(Masking):
    """A layer that hides runs of bands in all frames, as `Masking` draws them.

    Args:
        max_bands: int, the largest width in bands.
        **kwargs: arguments of `Masking`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> masking = layers.BandMasking(max_bands=8)
        >>> tuple(masking(np.ones((1, 12, 40), "float32"), training=True).shape)
        (1, 12, 40)
    """

    def __init__(self, max_bands=12, **kwargs):
        super().__init__(**kwargs)
        check_sizes(max_bands=max_bands)
        self.max_bands = max_bands

    def augment(self, inputs, lengths):
        bands = inputs.shape[2]
        largest = min(self.max_bands, bands)
        return self.hide_runs(inputs, lengths, 2, bands, largest)

    def get_config(self):
        return {**super().get_config(), "max_bands": self.max_bands}


@keras.saving.register_keras_serializable("audio_tf")
class VocalTractPerturbation(SpectrogramAugmentation):
    """A layer that stretches the frequencies of a power spectrum.

    A voice sounds as if it came from a longer or shorter vocal tract: vocal
    tract length perturbation (Jaitly and Hinton, "VTLP improves speech
    recognition", 2013). With the factor `a` of a clip, the Nyquist frequency
    `N` and `b = break_share * N * min(a, 1)`, the result at frequency `f` is
    the spectrum at

        G(f) = a f                                  for f <= b / a
        G(f) = N - (N - b) / (N - b / a) * (N - f)  above,

    between two bins by linear interpolation. Bins must be evenly spaced from
    0 Hz to `N`, as those of `Spectrogram`: this goes before the mel bands.

    Args:
        factor: pair of floats, the range from which `a` is drawn evenly.
        break_share: float between 0 and 1, the share of the Nyquist frequency
            at which the slope changes; the paper has 4.8 kHz of 8.
        **kwargs: arguments of `Augmentation`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> perturbation = layers.VocalTractPerturbation(factor=(0.8, 1.2))
        >>> spectra = np.ones((1, 12, 257), "float32")
        >>> tuple(perturbation(spectra, training=True).shape)
        (1, 12, 257)
    """

    domain = "spectrum"

    def __init__(self, factor=(0.9, 1.1), break_share=0.6, **kwargs):
        super().__init__(**kwargs)
        self.factor = augment.check_range("factor", factor, 0.1)
        most = min(1.0, self.factor[0])
        if not (is_number(break_share) and 0.0 < break_share < most):
            raise ValueError(
                "`break_share` must be above 0, and below 1 and the least "
                f"factor. Received: break_share={break_share}, "
                f"factor={self.factor}"
            )
        self.break_share = break_share

    def augment(self, inputs, lengths):
        factor = self.uniform(inputs, *self.factor)
        return warp(inputs, factor, self.break_share)

    def get_config(self):
        return {
            **super().get_config(),
            "factor": self.factor,
            "break_share": self.break_share,
        }
