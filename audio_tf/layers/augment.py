"""The base of augmentation, which is active in training only.

In the files of augmentation, functions do the arithmetic and take what was
drawn; layers draw. A model, a training loop or `dataset.batch(n).map(...)` may
call the layers: their seeds are state that a model saves. With TensorFlow, a
map that runs in parallel draws the same values in another order each time;
without `num_parallel_calls` it repeats.
"""

import math

import keras
from keras import ops

from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import check_shares
from audio_tf.ops.layer import WAVEFORM, Layer, check_floating

# The name of how far draws have come, in files of weights.
SEED_STATE = "seed_generator_state"


def ratio_from_db(level_db):
    """Turns decibels into the factor of an amplitude, `10^(dB / 20)`."""
    return ops.exp(level_db * (math.log(10.0) / 20.0))


def take_samples(waveform, positions):
    """Takes samples at positions of their own for each clip.

    Args:
        waveform: tensor `(batch, samples)`.
        positions: int32 `(batch, count)`. A position before the first sample
            takes the first sample; one behind the last takes silence.

    Returns:
        Tensor `(batch, count)`.
    """
    # One sample more, so that there is one to take from a batch without any.
    waveform = ops.pad(waveform, [[0, 0], [0, 1]])
    positions = ops.clip(positions, 0, ops.shape(waveform)[1] - 1)
    return ops.squeeze(
        blocks.take_frames(ops.expand_dims(waveform, -1), positions), -1
    )


def check_range(name, limits, least=-math.inf):
    """Checks a range from which something is drawn.

    Args:
        name: str, the argument that an error names.
        limits: pair of numbers, the lower and the upper end.
        least: float, what neither may be below.

    Returns:
        The range as a pair of floats.

    Raises:
        ValueError: unless it is a pair of finite numbers in order, none
            below `least`.
    """
    try:
        low, high = map(float, limits)
    except (TypeError, ValueError):
        # Neither is in order with anything.
        low = high = math.nan
    if not (
        math.isfinite(low) and math.isfinite(high) and least <= low <= high
    ):
        raise ValueError(
            f"`{name}` must be two finite numbers in order"
            + (f", at least {least}" if math.isfinite(least) else "")
            + f". Received: {name}={limits!r}"
        )
    return low, high


class RandomLayer(Layer):
    """The base of layers that draw something for each clip, in training only.

    Without `training=True` a layer returns its inputs as they are. The real
    samples of a result depend on real samples alone, whatever stands behind
    the end of a clip.

    Args:
        seed: int or `None`, the seed of the draws. How far the draws have
            come is a state of the layer, which is saved with a model.
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
        super().save_own_variables(store)
        # Keras saves weights, and leaves the seeds of layers where they were.
        store[SEED_STATE] = self.seed_generator.state

    def load_own_variables(self, store):
        own = {name: store[name] for name in store.keys()}
        state = own.pop(SEED_STATE, None)
        super().load_own_variables(own)
        # Weights from a model without this layer have no state of it.
        if state is not None:
            self.seed_generator.state.assign(state)

    def get_config(self):
        return {**super().get_config(), "seed": self.seed}


class Augmentation(RandomLayer):
    """The base of augmentations that leave some clips as they are.

    Attributes:
        domain: what the layer is meant to augment: `"waveform"`,
            `"spectrum"` (the power of every bin), `"features"` (of frames) or
            `"batch"` (waveforms together with their targets).
        sample_rate_hz: int, the rate of the waveforms that the layer is made
            for, or `None` where it is for any.

    Args:
        rate: float, share of clips that are augmented, each with this
            probability.
        **kwargs: arguments of `RandomLayer`.

    Raises:
        ValueError: if an argument is out of range.
    """

    domain = None
    sample_rate_hz = None

    def __init__(self, rate=1.0, **kwargs):
        super().__init__(**kwargs)
        check_shares(rate=rate)
        self.rate = rate

    def check_rate(self, sample_rate_hz):
        """Checks that the layer is made for waveforms of a rate.

        Args:
            sample_rate_hz: int, the rate of what the layer will be given.

        Raises:
            ValueError: if it is made for another.
        """
        if self.sample_rate_hz not in (None, sample_rate_hz):
            raise ValueError(
                f"{type(self).__name__} must be made for waveforms of "
                f"{sample_rate_hz} Hz here. "
                f"Received: sample_rate_hz={self.sample_rate_hz}"
            )

    def chosen(self, inputs):
        """Draws which clips are augmented, boolean `(batch, 1)`."""
        return self.uniform(inputs) < self.rate

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


class WaveformAugmentation(Augmentation):
    """The base of augmentations of single clips.

    A subclass gives `augment(waveform, lengths)`, which is called in
    training, in float32, and returns the changed waveform and its lengths;
    the base puts back the clips that were not chosen. Layers follow each
    other as
    `waveform, lengths = layer(waveform, lengths, training=True)`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real.
        training: bool; without it nothing is changed.

    Returns:
        Pair of the waveform, `(batch, samples)` of the dtype it came in, and
        the lengths, int32 `(batch,)`.

    Raises:
        ValueError: if samples are integers.
    """

    domain = "waveform"
    first_input = WAVEFORM

    def call(self, waveform, lengths=None, training=None):
        return self.apply(waveform, lengths, training)

    def apply(self, waveform, lengths, training, *further):
        """Does what `call` does, and hands `further` tensors to `augment`."""
        # Louder than their full scale, integers would wrap around.
        check_floating("waveform", waveform)
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
        """Changes all clips.

        Args:
            waveform: float32 `(batch, samples)`, zeros behind the clips.
            lengths: int32 `(batch,)`, real samples of each clip.

        Returns:
            Pair of the waveform, `(batch, samples)`, and its lengths, int32
            `(batch,)`.
        """
        raise NotImplementedError  # abstract

    def compute_output_spec(self, waveform, lengths=None, training=None):
        check_floating("waveform", waveform)
        return (
            keras.KerasTensor(waveform.shape, dtype=waveform.dtype),
            keras.KerasTensor(waveform.shape[:1], dtype="int32"),
        )
