"""Playing clips faster or slower, by resampling them in training."""

import math

import keras
from keras import ops

from audio_tf.layers import augment
from audio_tf.ops import masks
from audio_tf.ops.checks import check_choice

INTERPOLATIONS = ("linear", "sinc")
# Zeros of the sinc on each side of a sample, at the lower of the two rates.
SINC_ZEROS = 8
# Speeds are whole numbers of this part, a power of two: its shifts and masks
# take a quarter of the time of integer divisions.
SPEED_BITS = 12
SPEED_GRID = 1 << SPEED_BITS


def interpolate(
    waveform, lengths, base, fraction, cutoff, reach, interpolation
):
    """Reads each clip between its samples; silence is outside of it.

    `"linear"` weights the two neighbours. `"sinc"` is the band-limited
    interpolation of J. O. Smith ("Digital Audio Resampling", 1984): with the
    cutoff `c` as a share of the Nyquist frequency and `Z` = `SINC_ZEROS`,

        y(p) = sum_k x[k] c sinc(c (p - k)) cos^2(pi c (p - k) / (2 Z))

    over `|c (p - k)| < Z`.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: int32 `(batch,)`, real samples of each clip.
        base: int32 `(batch, count)`, whole samples of the positions.
        fraction: float32 `(batch, count)` in [0, 1), what the positions are
            beyond whole samples.
        cutoff: float32 `(batch, 1)`, for `"sinc"` alone.
        reach: int, `Z / c` at the least cutoff, rounded up.
        interpolation: `"linear"` or `"sinc"`.

    Returns:
        `(batch, count)`.
    """
    size = ops.expand_dims(lengths, 1)
    first, last = (0, 1) if interpolation == "linear" else (1 - reach, reach)
    total = 0.0
    # A loop over taps needs a tensor of the waveform's size, not of `taps`
    # times that.
    for tap in range(first, last + 1):
        distance = fraction - float(tap)
        if interpolation == "linear":
            weight = 1.0 - ops.abs(distance)
        else:
            x = math.pi * cutoff * distance
            small = ops.abs(x) < 1e-6
            x = ops.where(small, 1.0, x)
            weight = cutoff * ops.where(small, 1.0, ops.sin(x) / x)
            phase = ops.where(small, 0.0, x) / (2.0 * SINC_ZEROS)
            window = ops.square(ops.cos(phase))
            inside = ops.abs(phase) < math.pi / 2.0
            weight = ops.where(inside, weight * window, 0.0)
        index = base + tap
        real = (index >= 0) & (index < size)
        taken = ops.where(real, augment.take_samples(waveform, index), 0.0)
        total = total + weight * taken
    return total


def positions(index, speed_units):
    """Finds where a clip at a speed is after so many samples.

    The product is computed in integers: in float32 it is off by 1/64 of a
    sample after ten seconds, which is heard as noise.

    Args:
        index: int32 `(batch, count)`, samples that were played.
        speed_units: int32 `(batch, 1)`, the speed in units of
            `1 / SPEED_GRID`.

    Returns:
        Pair of `(batch, count)`: the whole samples, int32, and the rest in
        [0, 1), float32.
    """
    rest = ops.bitwise_and(index, SPEED_GRID - 1) * speed_units
    whole = ops.right_shift(index, SPEED_BITS) * speed_units
    whole = whole + ops.right_shift(rest, SPEED_BITS)
    fraction = ops.cast(ops.bitwise_and(rest, SPEED_GRID - 1), "float32")
    return whole, fraction / SPEED_GRID


def length_at_speed(lengths, speed_units):
    """Computes how long clips are at another speed, rounded up, exactly.

    Args:
        lengths: int32 `(batch,)`, samples of each clip.
        speed_units: int32 `(batch, 1)`, as `positions` takes it.

    Returns:
        Int32 tensor `(batch,)`, `ceil(lengths / speed)`.
    """
    speed_units = ops.squeeze(speed_units, 1)
    rest = (lengths % speed_units) * SPEED_GRID
    return (lengths // speed_units) * SPEED_GRID + (
        rest + speed_units - 1
    ) // speed_units


def change_speed(waveform, lengths, speed_units, start, reach, interpolation):
    """Plays each clip faster, and higher, by resampling it.

    With `speed = speed_units / SPEED_GRID`, sample `n` of the result is the
    clip at `(n + skipped) * speed`; a clip of `m` samples becomes
    `ceil(m / speed)`.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: int32 `(batch,)`, real samples of each clip.
        speed_units: int32 `(batch, 1)`, as `positions` takes it;
            `2 * SPEED_GRID` is twice as fast, an octave higher.
        start: float32 `(batch, 1)` in [0, 1), where a clip that became longer
            than the batch is cut: 0 keeps its beginning.
        reach: as `interpolate` takes it.
        interpolation: as `interpolate` takes it.

    Returns:
        Pair of `(batch, samples)` and the new lengths, int32 `(batch,)`.
    """
    samples = ops.shape(waveform)[1]
    new = length_at_speed(lengths, speed_units)
    choices = ops.expand_dims(ops.maximum(new - samples, 0) + 1, 1)
    skipped = ops.floor(start * ops.cast(choices, "float32"))
    index = ops.expand_dims(ops.arange(samples, dtype="int32"), 0)
    base, fraction = positions(index + ops.cast(skipped, "int32"), speed_units)
    cutoff = ops.minimum(1.0, SPEED_GRID / ops.cast(speed_units, "float32"))
    waveform = interpolate(
        waveform, lengths, base, fraction, cutoff, reach, interpolation
    )
    new = ops.minimum(new, samples)
    return masks.zero_beyond(waveform, new), new


@keras.saving.register_keras_serializable("audio_tf")
class SpeedPerturbation(augment.WaveformAugmentation):
    """A layer that plays each clip faster or slower, by resampling it.

    Pitch and formants move along.
    "Audio augmentation for speech recognition" (Ko et al., Interspeech 2015)
    has speeds 0.9, 1 and 1.1. The batch keeps its width: a clip that became
    longer than that is cut at a random place.

    Args:
        speed: pair of floats, at least 0.1, the range from which a speed is
            drawn evenly, in multiples of 1/4096; 2 is twice as fast, an
            octave higher.
        interpolation: `"linear"`, two products a sample, which dulls and
            aliases high frequencies a little, or `"sinc"`, band-limited, of
            16 products a sample and more where `speed` goes above 1.
        **kwargs: arguments of `Augmentation`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> faster = layers.SpeedPerturbation((2.0, 2.0))
        >>> waveform = np.ones((1, 100), "float32")
        >>> waveform, lengths = faster(waveform, np.array([100]), training=True)
        >>> int(lengths[0])
        50
    """

    def __init__(self, speed=(0.9, 1.1), interpolation="linear", **kwargs):
        super().__init__(**kwargs)
        self.speed = augment.check_range("speed", speed, 0.1)
        check_choice("interpolation", interpolation, INTERPOLATIONS)
        self.interpolation = interpolation

    def augment(self, waveform, lengths):
        low, high = (round(speed * SPEED_GRID) for speed in self.speed)
        return change_speed(
            waveform,
            lengths,
            self.integers(waveform, low, high),
            self.uniform(waveform),
            math.ceil(SINC_ZEROS * max(1.0, self.speed[1])),
            self.interpolation,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "speed": self.speed,
            "interpolation": self.interpolation,
        }
