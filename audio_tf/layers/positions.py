"""Sinusoidal positions, for inputs of any length."""

import functools

import keras
import numpy as np
from keras import ops

from audio_tf.ops import blocks
from audio_tf.ops.layer import FRAMES, Layer

# Positions are numbers of three digits to this base.
BASE = 32


@functools.lru_cache(maxsize=8)
def rotations(dim):
    """Computes sines and cosines that sum up to those of any position.

    They are computed in float64: a float32 angle of 20,000 is off by 1e-3.

    Args:
        dim: int, features of a frame, two for each rate.

    Returns:
        Float32 array `(3, BASE, 2, rates)`, the sine and cosine of each digit
        at each place, units first; and the angles `(rates,)` of the position
        `BASE**3`, within half a turn, float32.
    """
    rates = 10_000.0 ** (-2.0 * np.arange((dim + 1) // 2) / dim)
    places = np.array([1, BASE, BASE**2])[:, np.newaxis, np.newaxis]
    angles = places * np.arange(BASE)[:, np.newaxis] * rates
    lap = np.remainder(BASE**3 * rates + np.pi, 2 * np.pi) - np.pi
    digits = np.stack([np.sin(angles), np.cos(angles)], axis=2)
    return digits.astype("float32"), lap.astype("float32")


def sum_of_angles(one, other):
    """Computes sine and cosine of the sum of two angles.

    Args:
        one: tensor `(..., 2, rates)`, sine and cosine of the first angle.
        other: tensor `(..., 2, rates)`, sine and cosine of the second angle,
            of a shape that broadcasts.
    """
    sine, cosine = one[..., 0, :], one[..., 1, :]
    other_sine, other_cosine = other[..., 0, :], other[..., 1, :]
    return ops.stack(
        [
            sine * other_cosine + cosine * other_sine,
            cosine * other_cosine - sine * other_sine,
        ],
        axis=-2,
    )


def sinusoids(length, dim):
    """Computes the values that `SinusoidalPositions` adds.

    Args:
        length: integer or scalar tensor, frames.
        dim: int, features of a frame.

    Returns:
        float32 `(length, dim)`.
    """
    digits, lap = map(ops.convert_to_tensor, rotations(dim))
    block = ops.arange(blocks.count(length, BASE), dtype="int32")
    laps = ops.expand_dims(ops.cast(block // BASE**2, "float32"), 1) * lap
    starts = ops.stack([ops.sin(laps), ops.cos(laps)], axis=1)
    for place, digit in ((1, block % BASE), (2, block // BASE % BASE)):
        turned = ops.take(digits[place], digit, axis=0)
        starts = sum_of_angles(starts, turned)  # (N, 2, rates)
    waves = sum_of_angles(ops.expand_dims(starts, 1), digits[0])
    waves = ops.swapaxes(waves, 2, 3)  # (N, BASE, rates, 2)
    waves = ops.reshape(waves, (-1, 2 * lap.shape[0]))
    return blocks.narrow(waves, 0, 0, length)[:, :dim]


@keras.saving.register_keras_serializable("audio_tf")
class SinusoidalPositions(Layer):
    """A layer that adds sinusoids of the position to each frame.

    `PE(pos, 2i) = sin(pos / 10000^(2i / dim))` and the cosine of the same
    angle at `2i + 1`: section 3.1.2 of "Audio Transformers"
    (arXiv 2105.00335). It takes and gives `(batch, time, dim)` of any length.
    Up to frame 32,768 each value is exact to the rounding of float32; beyond,
    the error grows by 2e-7 with every further 32,768 frames.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> positions = layers.SinusoidalPositions()
        >>> frames = positions(np.zeros((1, 12, 4), "float32"))
        >>> frames[0, 0].numpy().tolist()
        [0.0, 1.0, 0.0, 1.0]
    """

    first_input = FRAMES

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        inputs = self.as_floats(inputs)
        waves = sinusoids(ops.shape(inputs)[1], inputs.shape[-1])
        return inputs + ops.cast(waves, inputs.dtype)

    def compute_output_spec(self, inputs):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
