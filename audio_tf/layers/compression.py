"""Compression of band energies that a model learns along with its weights."""

import math

import keras
import numpy as np
from keras import ops

from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import check_finite, check_positive
from audio_tf.ops.layer import FRAMES, Layer

# Frames of a block of `smooth`; the work for a frame is this and the number
# of blocks.
BLOCK_SIZE = 64


def decays(exponents, log_decay):
    """Computes `a^k` for `k >= 0`, and 0 for `k < 0`.

    Args:
        exponents: float32 tensor `(rows, columns)`, `k`.
        log_decay: float32 `(bands,)`, `ln a` of each band, negative.

    Returns:
        Float32 tensor `(bands, rows, columns)`.
    """
    log_decay = ops.reshape(log_decay, (-1, 1, 1))
    # A power of what becomes 0 may overflow, and 0 times that is no number.
    powers = ops.exp(log_decay * ops.maximum(exponents, 0.0))
    return ops.where(exponents >= 0.0, powers, 0.0)


def differences(count):
    """Computes `i - k` of row `i` and column `k`, float32 `(count, count)`."""
    index = ops.cast(ops.arange(count, dtype="int32"), "float32")
    return ops.expand_dims(index, 1) - ops.expand_dims(index, 0)


def smooth(inputs, logit_rate):
    """Smooths exponentially in time, exactly and without a loop over frames.

        M[t] = (1 - s) M[t - 1] + s E[t],  M[-1] = E[0]

    With `a = 1 - s`, time is cut into blocks of `n` frames. Inside of a
    block, `sum_{k <= i} s a^(i - k) E[k]` is a product with a triangle; what
    the blocks before leave at the end of block `j` obeys the same recurrence
    with `a^n` and is a product with another one.

    Args:
        inputs: float32 tensor `(batch, time, bands)`, `E`.
        logit_rate: float32 `(bands,)`, `ln(s / (1 - s))`, any number.

    Returns:
        Float32 tensor `(batch, time, bands)`, `M`; frame `t` depends on no
        later frame.
    """
    shape = ops.shape(inputs)
    time, bands, size = shape[1], inputs.shape[2], BLOCK_SIZE
    rate = ops.sigmoid(logit_rate)
    # Not ln(1 - s): from a logit of 17 on, s is 1 in float32.
    log_decay = -ops.softplus(logit_rate)
    # A batch without any frame has a block, too, or shapes could not be told.
    count = blocks.at_least(blocks.count(time, size), 1)
    x = ops.pad(inputs, [[0, 0], [0, count * size - time], [0, 0]])
    x = ops.reshape(x, (-1, count, size, bands))
    x = ops.transpose(x, (3, 2, 0, 1))
    x = ops.reshape(x, (bands, size, -1))  # (F, n, B N)
    triangle = decays(differences(size), log_decay)
    inner = ops.matmul(triangle * ops.reshape(rate, (-1, 1, 1)), x)

    # The value at the end of each block, had nothing come before it.
    ends = ops.reshape(inner[:, -1], (bands, -1, count))
    steps = differences(count) - 1.0
    before = decays(steps, size * log_decay)  # (F, N, N)
    carry = ops.matmul(ends, ops.transpose(before, (0, 2, 1)))
    index = ops.cast(ops.arange(count, dtype="int32"), "float32")
    fading = decays(ops.expand_dims(size * index, 0), log_decay)
    # Not `inputs[:, 0]`, which such a batch does not have.
    first = ops.sum(inputs[:, :1], axis=1)
    carry = carry + fading * ops.expand_dims(ops.transpose(first), -1)

    after = np.arange(1.0, size + 1.0, dtype="float32")[None]
    after = ops.transpose(decays(after, log_decay), (0, 2, 1))  # (F, n, 1)
    smoothed = inner + after * ops.reshape(carry, (bands, 1, -1))
    smoothed = ops.reshape(smoothed, (bands, size, -1, count))
    smoothed = ops.transpose(smoothed, (2, 3, 1, 0))
    smoothed = ops.reshape(smoothed, (-1, count * size, bands))
    return blocks.narrow(smoothed, 1, 0, time)


class Compression(Layer):
    """The base of compressions of `(batch, time, bands)` energies.

    A subclass gives `compress(energies)`. The layer computes in float32, with
    weights of float32, whatever the policy, and casts the result to it.
    Padded frames become 0, whatever they hold.

    Call arguments:
        inputs: floating tensor `(batch, time, bands)` of energies; negative
            ones count as 0.
        mask: boolean `(batch, time)`, True for the real frames, which come
            first, or `None` where all are real.

    Returns:
        Tensor `(batch, time, bands)`.
    """

    def __init__(self, **kwargs):
        # Cast to half precision, quiet bands would drown in rounding.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True

    def add_band_weight(self, name, bands, value):
        """Adds a float32 weight `(bands,)` that is `value` at first."""
        return self.add_weight(
            name=name,
            shape=(bands,),
            initializer=keras.initializers.Constant(value),
            dtype="float32",
            autocast=False,
        )

    def call(self, inputs, mask=None):
        energies = ops.maximum(ops.cast(inputs, "float32"), 0.0)
        if mask is not None:
            mask = ops.cast(mask, "bool")
            energies = masks.zero_padding(energies, mask)
        outputs = self.compress(energies)
        if mask is not None:
            outputs = masks.zero_padding(outputs, mask)
        return ops.cast(outputs, self.compute_dtype)

    def compress(self, energies):
        """Compresses energies.

        Args:
            energies: float32 tensor `(batch, time, bands)`, at least 0.

        Returns:
            Tensor like `energies`.
        """
        raise NotImplementedError  # abstract

    def by_band(self):
        """Returns what is learned for each band.

        Returns:
            Dict by name, with its unit, of float arrays `(bands,)`.
        """
        raise NotImplementedError  # abstract

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)


@keras.saving.register_keras_serializable("audio_tf")
class LogCompression(Compression):
    """A logarithm with a floor and a slope for each band, both learned.

        y = scale ln(x + floor)

    On energies of mel bands it begins as `LogMel` is. The floor is learned
    by its logarithm, so that it stays above 0.

    Args:
        floor: float above 0, the floor of every band at first.
        scale: float, the slope of every band at first.
        **kwargs: arguments of `keras.layers.Layer`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> energies = np.ones((1, 12, 40), "float32")
        >>> compressed = layers.LogCompression(scale=10.0)(energies)
        >>> tuple(compressed.shape), abs(round(float(compressed[0, 0, 0]), 2))
        ((1, 12, 40), 0.0)
    """

    def __init__(self, floor=1e-6, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        check_positive(floor=floor)
        check_finite(scale=scale)
        self.floor = floor
        self.scale = scale

    def build(self, input_shape):
        bands = input_shape[-1]
        self.log_floor = self.add_band_weight(
            "log_floor", bands, math.log(self.floor)
        )
        self.slope = self.add_band_weight("slope", bands, self.scale)

    def compress(self, energies):
        return self.slope * ops.log(energies + ops.exp(self.log_floor))

    def by_band(self):
        floor = ops.convert_to_numpy(self.log_floor) / math.log(10.0)
        return {
            "floor (dB)": 10.0 * floor,
            "slope": ops.convert_to_numpy(self.slope),
        }

    def get_config(self):
        return {
            **super().get_config(),
            "floor": self.floor,
            "scale": self.scale,
        }


@keras.saving.register_keras_serializable("audio_tf")
class PCEN(Compression):
    """A layer of per-channel energy normalisation, learned for each band.

    "Trainable Frontend For Robust and Far-Field Keyword Spotting" (arXiv
    1607.05666), equations 1 and 2:

        M[t] = (1 - s) M[t - 1] + s E[t],  M[-1] = E[0]
        y[t] = (E[t] / (floor + M[t])^gain + bias)^power - bias^power

    A steady sound is divided by its own level, an onset is not. The layer is
    causal: a frame depends on no later one. It learns `s` by its logit and
    gain, bias and power by their logarithms; in the paper `s` is fixed.

    Args:
        smoothing: float in (0, 1), `s` at first.
        gain: float above 0, the paper's alpha at first.
        bias: float above 0, the paper's delta at first.
        power: float above 0, the paper's r at first.
        floor: float above 0, the paper's epsilon.
        **kwargs: arguments of `keras.layers.Layer`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> pcen = layers.PCEN(smoothing=0.05, gain=0.9)
        >>> tuple(pcen(np.ones((1, 12, 40), "float32")).shape)
        (1, 12, 40)
    """

    first_input = FRAMES

    def __init__(
        self,
        smoothing=0.025,
        gain=0.98,
        bias=2.0,
        power=0.5,
        floor=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(
            smoothing=smoothing, gain=gain, bias=bias, power=power, floor=floor
        )
        if smoothing >= 1.0:
            raise ValueError(
                f"`smoothing` must be below 1. Received: smoothing={smoothing}"
            )
        self.smoothing = smoothing
        self.gain = gain
        self.bias = bias
        self.power = power
        self.floor = floor

    def build(self, input_shape):
        bands = input_shape[-1]
        self.logit_smoothing = self.add_band_weight(
            "logit_smoothing",
            bands,
            math.log(self.smoothing / (1.0 - self.smoothing)),
        )
        self.log_gain = self.add_band_weight(
            "log_gain", bands, math.log(self.gain)
        )
        self.log_bias = self.add_band_weight(
            "log_bias", bands, math.log(self.bias)
        )
        self.log_power = self.add_band_weight(
            "log_power", bands, math.log(self.power)
        )

    def compress(self, energies):
        level = smooth(energies, self.logit_smoothing)
        divisor = ops.exp(ops.exp(self.log_gain) * ops.log(self.floor + level))
        power = ops.exp(self.log_power)
        normalised = ops.log(energies / divisor + ops.exp(self.log_bias))
        return ops.exp(power * normalised) - ops.exp(power * self.log_bias)

    def by_band(self):
        return {
            "smoothing": ops.convert_to_numpy(
                ops.sigmoid(self.logit_smoothing)
            ),
            "gain": np.exp(ops.convert_to_numpy(self.log_gain)),
            "bias": np.exp(ops.convert_to_numpy(self.log_bias)),
            "power": np.exp(ops.convert_to_numpy(self.log_power)),
        }

    def get_config(self):
        return {
            **super().get_config(),
            "smoothing": self.smoothing,
            "gain": self.gain,
            "bias": self.bias,
            "power": self.power,
            "floor": self.floor,
        }
