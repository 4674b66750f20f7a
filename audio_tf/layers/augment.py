"""Augmentation of waveforms and spectrograms, active in training only.

Functions do the arithmetic and take what was drawn; layers draw. A model, a
training loop or `dataset.batch(n).map(...)` may call the layers: seeds are
saved state of the layer. With TensorFlow, a map that runs in parallel draws
the same values in another order each time; without `num_parallel_calls` it
repeats.
"""

import math

import keras
from keras import ops

from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import check_sizes, closest
from audio_tf.ops.layer import Layer

INTERPOLATIONS = ("linear", "sinc")
# Zeros of the sinc on each side of a sample, at the lower of the two rates.
SINC_ZEROS = 8
# Speeds are whole numbers of this part.
SPEED_GRID = 4096


def ratio_from_db(level_db):
    """Factor of an amplitude, `10^(dB / 20)`."""
    return ops.exp(level_db * (math.log(10.0) / 20.0))


def take_samples(waveform, positions):
    """Takes `waveform[b, positions[b]]`, positions int32 `(batch, count)`.

    Positions before the first sample take that; those behind the last,
    silence.
    """
    # One sample more, so that there is one to take from a batch without any.
    waveform = ops.pad(waveform, [[0, 0], [0, 1]])
    positions = ops.clip(positions, 0, ops.shape(waveform)[1] - 1)
    return ops.squeeze(
        blocks.take_frames(ops.expand_dims(waveform, -1), positions), -1
    )


def shift(waveform, lengths, offset, wrap=False):
    """Moves each clip later in time, within its real length.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: int32 `(batch,)`.
        offset: int32 `(batch, 1)`, samples later; earlier if negative.
        wrap: bool, whether what leaves at one end comes in at the other.
            Silence comes in otherwise.

    Returns:
        `(batch, samples)`, zeros behind the end of a clip.
    """
    size = ops.expand_dims(lengths, 1)
    samples = ops.arange(ops.shape(waveform)[1], dtype="int32")
    positions = ops.expand_dims(samples, 0) - offset
    if wrap:
        positions = ops.mod(positions, ops.maximum(size, 1))
    inside = (positions >= 0) & (positions < size)
    taken = ops.where(inside, take_samples(waveform, positions), 0.0)
    return masks.zero_beyond(taken, lengths)


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
        lengths: int32 `(batch,)`.
        base: int32 `(batch, count)`, whole samples of the positions.
        fraction: float32 `(batch, count)` in [0, 1), the rest of them.
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
        taken = ops.where(real, take_samples(waveform, index), 0.0)
        total = total + weight * taken
    return total


def positions(index, step):
    """Where a clip played at `step / SPEED_GRID` is after `index` samples.

    In integers, for the product in float32 is off by 1/64 of a sample after
    ten seconds, which is heard as noise.

    Args:
        index: int32 `(batch, count)`.
        step: int32 `(batch, 1)`.

    Returns:
        Pair of `(batch, count)`: the whole samples, int32, and the rest in
        [0, 1), float32.
    """
    rest = (index % SPEED_GRID) * step
    whole = (index // SPEED_GRID) * step + rest // SPEED_GRID
    return whole, ops.cast(rest % SPEED_GRID, "float32") / SPEED_GRID


def length_at_speed(lengths, step):
    """`ceil(lengths * SPEED_GRID / step)`, int32 `(batch,)`, exactly."""
    step = ops.squeeze(step, 1)
    rest = (lengths % step) * SPEED_GRID
    return (lengths // step) * SPEED_GRID + (rest + step - 1) // step


def change_speed(waveform, lengths, step, start, reach, interpolation):
    """Plays each clip faster, and higher, by resampling it.

    With `speed = step / SPEED_GRID`, sample `n` of the result is the clip at
    `(n + skipped) * speed`; a clip of `m` samples becomes `ceil(m / speed)`.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: int32 `(batch,)`.
        step: int32 `(batch, 1)`; `2 * SPEED_GRID` is twice as fast, an octave
            higher.
        start: float32 `(batch, 1)` in [0, 1), where a clip that became longer
            than the batch is cut: 0 keeps its beginning.
        reach: as `interpolate` takes it.
        interpolation: as `interpolate` takes it.

    Returns:
        Pair of `(batch, samples)` and the new lengths, int32 `(batch,)`.
    """
    samples = ops.shape(waveform)[1]
    new = length_at_speed(lengths, step)
    choices = ops.expand_dims(ops.maximum(new - samples, 0) + 1, 1)
    skipped = ops.floor(start * ops.cast(choices, "float32"))
    index = ops.expand_dims(ops.arange(samples, dtype="int32"), 0)
    base, fraction = positions(index + ops.cast(skipped, "int32"), step)
    cutoff = ops.minimum(1.0, SPEED_GRID / ops.cast(step, "float32"))
    waveform = interpolate(
        waveform, lengths, base, fraction, cutoff, reach, interpolation
    )
    new = ops.minimum(new, samples)
    return masks.zero_beyond(waveform, new), new


def add_noise(waveform, lengths, noise, snr_db):
    """Adds noise at a ratio of signal to noise, both over the real samples.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: int32 `(batch,)`.
        noise: tensor `(batch, samples)`, of any level. Silence adds nothing.
        snr_db: float32 `(batch, 1)`, power of the clip over the noise's.

    Returns:
        `(batch, samples)`, zeros behind the end of a clip.
    """
    # A root has no gradient at 0.
    floor = 1e-30
    clip = ops.sqrt(ops.maximum(statistics.power(waveform, lengths), floor))
    other = ops.sqrt(ops.maximum(statistics.power(noise, lengths), floor))
    factor = clip / other * ratio_from_db(-snr_db)
    factor = ops.where(other > 2.0 * math.sqrt(floor), factor, 0.0)
    return masks.zero_beyond(waveform + factor * noise, lengths)


def hide(inputs, start, width, axis, fill):
    """Replaces a run along one axis of `(batch, time, bands)`.

    Args:
        inputs: tensor `(batch, time, bands)`.
        start: int32 `(batch, 1)`.
        width: int32 `(batch, 1)`; 0 hides nothing.
        axis: int, 1 for frames and 2 for bands.
        fill: tensor that broadcasts to `inputs`, what is put there.
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
        factor: float32 `(batch, 1)`.
        break_share: float in (0, 1).
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


def check_share(**shares):
    """Raises a `ValueError` that names the first outside of [0, 1]."""
    for name, share in shares.items():
        if not 0.0 <= share <= 1.0:
            raise ValueError(
                f"`{name}` must be in [0, 1]. Received: {name}={share}"
            )


def check_range(name, limits, least=-math.inf):
    """The range as a pair of floats.

    Raises:
        ValueError: unless it is a pair of finite numbers in order, none
            below `least`.
    """
    limits = tuple(float(limit) for limit in limits)
    if (
        len(limits) != 2
        or not all(map(math.isfinite, limits))
        or not least <= limits[0] <= limits[1]
    ):
        raise ValueError(
            f"`{name}` must be two finite numbers in order"
            + (f", at least {least}" if math.isfinite(least) else "")
            + f". Received: {name}={limits}"
        )
    return limits


class RandomLayer(Layer):
    """The base of layers that draw something for each clip, in training only.

    Without `training=True` a layer gives back what it was given. Real
    samples of a result depend on real samples alone: what stands behind the
    end of a clip does not matter.

    Args:
        seed: int or `None`, the seed of what is drawn. How far the draws have
            come is a state of the layer, saved with a model.
        **kwargs: arguments of `keras.layers.Layer`.
    """

    def __init__(self, seed=None, **kwargs):
        # Half precision is for products, not for sound: quiet parts of a
        # waveform would drown in rounding.
        super().__init__(autocast=False, **kwargs)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def uniform(self, inputs, low=0.0, high=1.0):
        """Draws a number for each clip, float32 `(batch, 1)` in [low, high)."""
        shape = (ops.shape(inputs)[0], 1)
        unit = keras.random.uniform(
            shape, dtype="float32", seed=self.seed_generator
        )
        return low + (high - low) * unit

    def integers(self, inputs, low, high):
        """Draws an integer for each clip, evenly from `low` to `high`.

        Args:
            inputs: tensor whose first axis is the batch.
            low: int or int32 `(batch, 1)`.
            high: int or int32 `(batch, 1)`, included, not below `low`.

        Returns:
            int32 `(batch, 1)`.
        """
        count = ops.cast(high - low + 1, "float32")
        drawn = ops.cast(ops.floor(self.uniform(inputs) * count), "int32")
        # Rounding may bring the product up to `count`.
        return low + ops.minimum(drawn, ops.cast(high - low, "int32"))

    def save_own_variables(self, store):
        # Keras saves weights, and leaves the seeds of layers where they were.
        store["seed_generator_state"] = self.seed_generator.state

    def load_own_variables(self, store):
        self.seed_generator.state.assign(store["seed_generator_state"])

    def get_config(self):
        return {**super().get_config(), "seed": self.seed}


class Augmentation(RandomLayer):
    """The base of augmentations that leave some clips as they are.

    Args:
        rate: float, share of clips that are augmented, each with this
            probability.
        **kwargs: arguments of `RandomLayer`.

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(self, rate=1.0, **kwargs):
        super().__init__(**kwargs)
        check_share(rate=rate)
        self.rate = rate

    def chosen(self, inputs):
        """Draws which clips are augmented, boolean `(batch, 1)`."""
        return self.uniform(inputs) < self.rate

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


class WaveformAugmentation(Augmentation):
    """The base of augmentations of single clips.

    A subclass gives `augment(waveform, lengths)`, which is called in
    training, in float32, and returns a pair of the same kind; clips that
    were not chosen are put back afterwards. Layers follow each other as
    `waveform, lengths = layer(waveform, lengths, training=True)`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real.
        training: bool; without it nothing is changed.

    Returns:
        Pair of the waveform, `(batch, samples)` of the dtype it came in, and
        the lengths, int32 `(batch,)`.
    """

    def call(self, waveform, lengths=None, training=None):
        return self.apply(waveform, lengths, training)

    def apply(self, waveform, lengths, training, *further):
        """Calls `augment` in training; `further` are its own tensors."""
        waveform = ops.convert_to_tensor(waveform)
        lengths = masks.real_lengths(waveform, lengths)
        if not training:
            return waveform, lengths
        x = masks.zero_beyond(ops.cast(waveform, "float32"), lengths)
        new, new_lengths = self.augment(x, lengths, *further)
        if self.rate < 1.0:
            chosen = self.chosen(x)
            new = ops.where(chosen, new, x)
            new_lengths = ops.where(
                ops.squeeze(chosen, 1), new_lengths, lengths
            )
        return ops.cast(new, waveform.dtype), new_lengths

    def augment(self, waveform, lengths):
        """Changes all clips; returns the pair of waveform and lengths."""
        raise NotImplementedError  # abstract

    def compute_output_spec(self, waveform, lengths=None, training=None):
        return (
            keras.KerasTensor(waveform.shape, dtype=waveform.dtype),
            keras.KerasTensor(waveform.shape[:1], dtype="int32"),
        )


@keras.saving.register_keras_serializable("audio_tf")
class RandomGain(WaveformAugmentation):
    """Makes each clip louder or quieter by a random number of dB.

    Args:
        gain_db: pair of floats, the range of the gain, evenly drawn.
        **kwargs: arguments of `Augmentation`.
    """

    def __init__(self, gain_db=(-6.0, 6.0), **kwargs):
        super().__init__(**kwargs)
        self.gain_db = check_range("gain_db", gain_db)

    def augment(self, waveform, lengths):
        gain = ratio_from_db(self.uniform(waveform, *self.gain_db))
        return waveform * gain, lengths

    def get_config(self):
        return {**super().get_config(), "gain_db": self.gain_db}


@keras.saving.register_keras_serializable("audio_tf")
class PolarityInversion(WaveformAugmentation):
    """Turns the sign of a clip, which no ear can tell.

    Args:
        rate: float, share of clips that are turned.
        **kwargs: arguments of `Augmentation`.
    """

    def __init__(self, rate=0.5, **kwargs):
        super().__init__(rate=rate, **kwargs)

    def augment(self, waveform, lengths):
        return -waveform, lengths


@keras.saving.register_keras_serializable("audio_tf")
class TimeShift(WaveformAugmentation):
    """Moves a clip earlier or later within its real length.

    Args:
        max_shift_s: float, seconds; shifts are drawn evenly from all whole
            numbers of samples up to this, in both directions, and at most by
            the clip's length.
        sample_rate_hz: int, rate of the waveform.
        wrap: bool, whether what leaves at one end comes in at the other;
            silence comes in otherwise.
        **kwargs: arguments of `Augmentation`.
    """

    def __init__(
        self, max_shift_s=0.1, sample_rate_hz=16_000, wrap=False, **kwargs
    ):
        super().__init__(**kwargs)
        check_range("max_shift_s", (max_shift_s, max_shift_s), 0.0)
        check_sizes(sample_rate_hz=sample_rate_hz)
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
class AdditiveNoise(WaveformAugmentation):
    """Adds noise at a random ratio of signal to noise.

    The noise is white and Gaussian, or a random piece of a random row of a
    bank, which goes on from its beginning where it ends. A silent clip stays
    silent.

    Args:
        snr_db: pair of floats, the range of the ratio in dB, evenly drawn.
        **kwargs: arguments of `Augmentation`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`.
        lengths: integer `(batch,)` or `None`.
        bank: floating tensor `(recordings, bank_samples)`, all of it real, or
            `None` for white noise.
        training: bool; without it nothing is changed.
    """

    def __init__(self, snr_db=(0.0, 30.0), **kwargs):
        super().__init__(**kwargs)
        self.snr_db = check_range("snr_db", snr_db)

    def call(self, waveform, lengths=None, bank=None, training=None):
        return self.apply(waveform, lengths, training, bank)

    def augment(self, waveform, lengths, bank):
        if bank is None:
            noise = keras.random.normal(
                ops.shape(waveform), dtype="float32", seed=self.seed_generator
            )
        else:
            noise = self.pieces(waveform, ops.cast(bank, "float32"))
        snr_db = self.uniform(waveform, *self.snr_db)
        return add_noise(waveform, lengths, noise, snr_db), lengths

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
        return {**super().get_config(), "snr_db": self.snr_db}


@keras.saving.register_keras_serializable("audio_tf")
class SpeedPerturbation(WaveformAugmentation):
    """Plays each clip faster or slower by resampling: pitch and formants move.

    "Audio augmentation for speech recognition" (Ko et al., Interspeech 2015)
    has speeds 0.9, 1 and 1.1. The batch keeps its width: a clip that became
    longer than that is cut at a random place.

    Args:
        speed: pair of floats, at least 0.1, the range of the speed, evenly
            drawn in steps of 1/4096; 2 is twice as fast, an octave higher.
        interpolation: `"linear"`, two products a sample, which dulls and
            aliases high frequencies a little, or `"sinc"`, band-limited, of
            16 products a sample and more where `speed` goes above 1.
        **kwargs: arguments of `Augmentation`.
    """

    def __init__(self, speed=(0.9, 1.1), interpolation="linear", **kwargs):
        super().__init__(**kwargs)
        self.speed = check_range("speed", speed, 0.1)
        if interpolation not in INTERPOLATIONS:
            raise ValueError(
                f"`interpolation` must be one of {list(INTERPOLATIONS)}"
                f"{closest(interpolation, INTERPOLATIONS)}. "
                f"Received: interpolation={interpolation!r}"
            )
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


@keras.saving.register_keras_serializable("audio_tf")
class RandomCrop(RandomLayer):
    """Cuts a random piece of fixed length out of each clip.

    In training `(batch, samples)` becomes `(batch, size)`, with silence
    behind clips that are shorter; otherwise nothing is cut.

    Args:
        crop_s: float, seconds of a piece.
        sample_rate_hz: int, rate of the waveform.
        **kwargs: arguments of `RandomLayer`.

    Call arguments:
        waveform, lengths, training: as of `WaveformAugmentation`.

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(self, crop_s=1.0, sample_rate_hz=16_000, **kwargs):
        super().__init__(**kwargs)
        check_sizes(sample_rate_hz=sample_rate_hz)
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
        taken = take_samples(waveform, samples + start)
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


class SpectrogramAugmentation(Augmentation):
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
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None, training=None):
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
        """Changes all clips, `(batch, time, features)`, zeros if not real."""
        raise NotImplementedError  # abstract

    def compute_output_spec(self, inputs, mask=None, training=None):
        return keras.KerasTensor(inputs.shape, dtype=inputs.dtype)


class Masking(SpectrogramAugmentation):
    """The base of what hides runs of frames or of bands.

    "SpecAugment" (arXiv 1904.08779), section 2: the width `w` is drawn from
    all integers from 0 to the largest, the start from 0 to `length - w`.

    Args:
        num_masks: int, runs hidden in a clip; they may overlap.
        fill: float, what is put in their place, or `"mean"` for the mean of
            the clip's real frames over all bands. The paper's zero is the
            mean of its normalised features.
        **kwargs: arguments of `Augmentation`.
    """

    def __init__(self, num_masks=2, fill="mean", **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_masks=num_masks)
        if isinstance(fill, str) and fill != "mean":
            raise ValueError(
                f"`fill` must be a number or 'mean'. Received: fill={fill!r}"
            )
        self.num_masks = num_masks
        self.fill = fill

    def value(self, inputs, lengths):
        """What is put in the place of hidden runs, `(batch, 1, 1)`."""
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
    """Hides runs of frames, as `Masking` says, among the real ones.

    Args:
        max_frames: int, the largest width.
        max_share: float, the largest width as a share of the clip's frames,
            the paper's `p`.
        **kwargs: arguments of `Masking`.
    """

    def __init__(self, max_frames=20, max_share=1.0, **kwargs):
        super().__init__(**kwargs)
        check_sizes(max_frames=max_frames)
        check_share(max_share=max_share)
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
    """Hides runs of bands, as `Masking` says, in all frames of a clip.

    Args:
        max_bands: int, the largest width, at most all bands.
        **kwargs: arguments of `Masking`.
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
    """Stretches the frequencies of a power spectrum, as if by another mouth.

    Vocal tract length perturbation (Jaitly and Hinton, "VTLP improves speech
    recognition", 2013). With the factor `a` of a clip, the Nyquist frequency
    `N` and `b = break_share * N * min(a, 1)`, the result at frequency `f` is
    the spectrum at

        G(f) = a f                                  for f <= b / a
        G(f) = N - (N - b) / (N - b / a) * (N - f)  above,

    between two bins by linear interpolation. Bins must be evenly spaced from
    0 Hz to `N`, as those of `Spectrogram`: this goes before the mel bands.

    Args:
        factor: pair of floats, the range of `a`, evenly drawn.
        break_share: float, where the paper's 4.8 kHz of 8 lie, between 0
            and 1.
        **kwargs: arguments of `Augmentation`.
    """

    def __init__(self, factor=(0.9, 1.1), break_share=0.6, **kwargs):
        super().__init__(**kwargs)
        self.factor = check_range("factor", factor, 0.1)
        if not 0.0 < break_share < min(1.0, self.factor[0]):
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
