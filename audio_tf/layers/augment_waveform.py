"""Augmentation of waveforms: level, sign, place, noise, pieces."""

import math

import keras
from keras import ops

from audio_tf.layers import augment
from audio_tf.ops import masks, statistics
from audio_tf.ops.checks import (
    check_flags,
    check_not_negative,
    check_positive,
    check_sizes,
)
from audio_tf.ops.layer import WAVEFORM


def shift(waveform, lengths, offset, wrap=False):
    """Moves each clip later in time, within its real length.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: int32 `(batch,)`, real samples of each clip.
        offset: int32 `(batch, 1)`, by how many samples a clip is moved to
            later times; to earlier ones if negative.
        wrap: bool, whether the samples that leave at one end come in at the
            other. If False, silence comes in.

    Returns:
        `(batch, samples)`, zeros behind the end of a clip.
    """
    size = ops.expand_dims(lengths, 1)
    samples = ops.arange(ops.shape(waveform)[1], dtype="int32")
    positions = ops.expand_dims(samples, 0) - offset
    if wrap:
        positions = ops.mod(positions, ops.maximum(size, 1))
    inside = (positions >= 0) & (positions < size)
    taken = ops.where(inside, augment.take_samples(waveform, positions), 0.0)
    return masks.zero_beyond(taken, lengths)


def add_noise(waveform, lengths, noise, snr_db):
    """Adds noise at a ratio of signal to noise, both over the real samples.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: int32 `(batch,)`, real samples of each clip.
        noise: tensor `(batch, samples)`, of any level; silence adds nothing.
        snr_db: float32 `(batch, 1)`, the power of the clip over that of the
            noise in dB.

    Returns:
        `(batch, samples)`, zeros behind the end of a clip.
    """
    # A root has no gradient at 0.
    floor = 1e-30
    clip = ops.sqrt(ops.maximum(statistics.power(waveform, lengths), floor))
    other = ops.sqrt(ops.maximum(statistics.power(noise, lengths), floor))
    factor = clip / other * augment.ratio_from_db(-snr_db)
    factor = ops.where(other > 2.0 * math.sqrt(floor), factor, 0.0)
    return masks.zero_beyond(waveform + factor * noise, lengths)


@keras.saving.register_keras_serializable("audio_tf")
class RandomGain(augment.WaveformAugmentation):
    """A layer that makes each clip louder or quieter by some dB at random.

    Args:
        gain_db: pair of floats, the range in dB from which a gain is drawn
            evenly.
        **kwargs: arguments of `Augmentation`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> louder = layers.RandomGain((20.0, 20.0))  # 20 dB, always
        >>> waveform, _ = louder(np.ones((1, 4), "float32"), training=True)
        >>> [round(float(sample)) for sample in waveform[0]]
        [10, 10, 10, 10]
    """

    def __init__(self, gain_db=(-6.0, 6.0), **kwargs):
        super().__init__(**kwargs)
        self.gain_db = augment.check_range("gain_db", gain_db)

    def augment(self, waveform, lengths):
        gain = augment.ratio_from_db(self.uniform(waveform, *self.gain_db))
        return waveform * gain, lengths

    def get_config(self):
        return {**super().get_config(), "gain_db": self.gain_db}


@keras.saving.register_keras_serializable("audio_tf")
class PolarityInversion(augment.WaveformAugmentation):
    """A layer that turns the sign of a clip, which no ear can tell.

    Args:
        rate: float, the share of clips whose sign is turned.
        **kwargs: arguments of `Augmentation`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> inversion = layers.PolarityInversion(rate=1.0)  # of every clip
        >>> waveform, _ = inversion(np.ones((1, 4), "float32"), training=True)
        >>> waveform.numpy().tolist()
        [[-1.0, -1.0, -1.0, -1.0]]
    """

    def __init__(self, rate=0.5, **kwargs):
        super().__init__(rate=rate, **kwargs)

    def augment(self, waveform, lengths):
        return -waveform, lengths


@keras.saving.register_keras_serializable("audio_tf")
class TimeShift(augment.WaveformAugmentation):
    """A layer that moves a clip earlier or later within its real length.

    Args:
        max_shift_s: float, the largest shift in seconds. Shifts are drawn
            evenly from all whole numbers of samples up to it, in both
            directions, and at most by the clip's length.
        sample_rate_hz: int, the rate of the waveform.
        wrap: bool, whether the samples that leave at one end come in at the
            other. If False, silence comes in.
        **kwargs: arguments of `Augmentation`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> shift = layers.TimeShift(max_shift_s=0.1, wrap=True)
        >>> waveform, _ = shift(np.ones((1, 16_000), "float32"), training=True)
        >>> tuple(waveform.shape)
        (1, 16000)
    """

    def __init__(
        self, max_shift_s=0.1, sample_rate_hz=16_000, wrap=False, **kwargs
    ):
        super().__init__(**kwargs)
        check_not_negative(max_shift_s=max_shift_s)
        check_sizes(sample_rate_hz=sample_rate_hz)
        check_flags(wrap=wrap)
        self.max_shift_s = max_shift_s
        self.sample_rate_hz = sample_rate_hz
        self.wrap = wrap

    def augment(self, waveform, lengths):
        most = round(self.max_shift_s * self.sample_rate_hz)
        most = ops.expand_dims(ops.minimum(lengths, most), 1)
        offset = self.integers(waveform, -most, most)
        return shift(waveform, lengths, offset, self.wrap), lengths

    def get_config(self):
        return {
            **super().get_config(),
            "max_shift_s": self.max_shift_s,
            "sample_rate_hz": self.sample_rate_hz,
            "wrap": self.wrap,
        }


@keras.saving.register_keras_serializable("audio_tf")
class AdditiveNoise(augment.WaveformAugmentation):
    """A layer that adds noise at a random ratio of signal to noise.

    The noise is Gaussian, or it is read from a random row of a bank, from a
    random sample on; a row that ends goes on from its beginning. A silent
    clip stays silent.

    Args:
        snr_db: pair of floats, the range from which a ratio in dB is drawn
            evenly.
        color: pair of floats, the range from which the exponent `a` of
            Gaussian noise is drawn evenly, whose power falls as `1 / f^a`:
            0 is white noise, 1 pink, 2 brown. Rooms and microphones are
            between the first and the last.
        **kwargs: arguments of `Augmentation`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`.
        lengths: integer `(batch,)` or `None`.
        bank: floating tensor `(recordings, bank_samples)`, all of it real, or
            `None` for Gaussian noise.
        training: bool; without it nothing is changed.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> noisy = layers.AdditiveNoise(snr_db=(0.0, 20.0), color=(0.0, 2.0))
        >>> waveform, _ = noisy(np.ones((1, 400), "float32"), training=True)
        >>> tuple(waveform.shape)
        (1, 400)
    """

    def __init__(self, snr_db=(0.0, 30.0), color=(0.0, 0.0), **kwargs):
        super().__init__(**kwargs)
        self.snr_db = augment.check_range("snr_db", snr_db)
        self.color = augment.check_range("color", color)

    def call(self, waveform, lengths=None, bank=None, training=None):
        return self.apply(waveform, lengths, training, bank)

    def augment(self, waveform, lengths, bank):
        if bank is None:
            noise = self.gaussian(waveform)
        else:
            noise = self.pieces(waveform, ops.cast(bank, "float32"))
        snr_db = self.uniform(waveform, *self.snr_db)
        return add_noise(waveform, lengths, noise, snr_db), lengths

    def gaussian(self, waveform):
        """Draws noise of a color for each clip, `(batch, samples)`."""
        noise = keras.random.normal(
            ops.shape(waveform), dtype="float32", seed=self.seed_generator
        )
        if not any(self.color):
            return noise
        samples = ops.shape(waveform)[1]
        real, imaginary = ops.rfft(noise)
        # The mean is as strong as the lowest frequency.
        bins = ops.maximum(ops.arange(samples // 2 + 1), 1)
        octaves = ops.log(ops.cast(bins, "float32"))
        weight = ops.exp(-0.5 * self.uniform(waveform, *self.color) * octaves)
        return ops.irfft((weight * real, weight * imaginary), samples)

    def pieces(self, waveform, bank):
        """Draws a piece of a recording for each clip, `(batch, samples)`."""
        recordings, size = ops.shape(bank)[0], ops.shape(bank)[1]
        row = self.integers(waveform, 0, recordings - 1)
        start = self.integers(waveform, 0, size - 1)
        samples = ops.arange(ops.shape(waveform)[1], dtype="int32")
        positions = ops.mod(ops.expand_dims(samples, 0) + start, size)
        return ops.take(ops.reshape(bank, (-1,)), row * size + positions)

    def compute_output_spec(
        self, waveform, lengths=None, bank=None, training=None
    ):
        return super().compute_output_spec(waveform, lengths, training)

    def get_config(self):
        return {
            **super().get_config(),
            "snr_db": self.snr_db,
            "color": self.color,
        }


@keras.saving.register_keras_serializable("audio_tf")
class RandomCrop(augment.RandomLayer):
    """A layer that cuts a piece of fixed length out of each clip at random.

    In training `(batch, samples)` becomes `(batch, size)`, with silence
    behind clips that are shorter; otherwise nothing is cut.

    Args:
        crop_s: float, the length of a piece in seconds.
        sample_rate_hz: int, the rate of the waveform.
        **kwargs: arguments of `RandomLayer`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real.
        training: bool; without it nothing is cut.

    Returns:
        Pair of the pieces and their lengths, int32 `(batch,)`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> crop = layers.RandomCrop(crop_s=0.5, sample_rate_hz=16_000)
        >>> waveform = np.ones((1, 16_000), "float32")
        >>> pieces, lengths = crop(waveform, training=True)
        >>> tuple(pieces.shape), int(lengths[0])
        ((1, 8000), 8000)
    """

    first_input = WAVEFORM

    def __init__(self, crop_s=1.0, sample_rate_hz=16_000, **kwargs):
        super().__init__(**kwargs)
        check_sizes(sample_rate_hz=sample_rate_hz)
        check_positive(crop_s=crop_s)
        self.crop_s = crop_s
        self.sample_rate_hz = sample_rate_hz
        self.size = round(crop_s * sample_rate_hz)
        if self.size < 1:
            raise ValueError(
                "A piece must hold at least one sample. Received: "
                f"crop_s={crop_s}, sample_rate_hz={sample_rate_hz}"
            )

    def call(self, waveform, lengths=None, training=None):
        waveform = ops.convert_to_tensor(waveform)
        lengths = masks.real_lengths(waveform, lengths)
        if not training:
            return waveform, lengths
        room = ops.expand_dims(ops.maximum(lengths - self.size, 0), 1)
        start = self.integers(waveform, 0, room)
        samples = ops.expand_dims(ops.arange(self.size, dtype="int32"), 0)
        lengths = ops.minimum(lengths, self.size)
        taken = augment.take_samples(waveform, samples + start)
        return masks.zero_beyond(taken, lengths), lengths

    def compute_output_spec(self, waveform, lengths=None, training=None):
        batch, samples = waveform.shape
        samples = self.size if training else samples
        return (
            keras.KerasTensor((batch, samples), dtype=waveform.dtype),
            keras.KerasTensor((batch,), dtype="int32"),
        )

    def get_config(self):
        return {
            **super().get_config(),
            "crop_s": self.crop_s,
            "sample_rate_hz": self.sample_rate_hz,
        }
