"""Lengths and masks, in both directions, against numpy."""

import keras
import numpy as np
import pytest
from keras import ops

from audio_tf import layers
from audio_tf.ops import masks

NAN = float("nan")
# JAX has no larger integers unless it is told to.
HUGE = 2**31 - 1 if keras.backend.backend() == "jax" else 2**40 + 1
INTEGERS = ["int8", "int32", "int64"]
if keras.backend.backend() != "torch":  # Keras has none there.
    INTEGERS.append("uint64")


def test_mask_from_lengths():
    for dtype in INTEGERS:
        np.testing.assert_array_equal(
            masks.from_lengths(np.array([0, 2, 5], dtype), 3),
            [[False] * 3, [True, True, False], [True] * 3],
            err_msg=dtype,
        )
    np.testing.assert_array_equal(
        masks.from_lengths(np.array([-1, HUGE]), 2),
        [[False] * 2, [True] * 2],
    )


def test_mask_and_lengths_are_inverse():
    lengths = np.arange(6, dtype="int32")
    found = masks.to_lengths(masks.from_lengths(lengths, 5))
    np.testing.assert_array_equal(found, lengths)
    assert keras.backend.standardize_dtype(found.dtype) == "int32"


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 2)])
def test_real_lengths_are_complete_and_in_range(shape):
    x = np.zeros(shape)
    np.testing.assert_array_equal(masks.real_lengths(x), [5, 5, 5])
    np.testing.assert_array_equal(
        masks.real_lengths(x, np.array([-3, 2, HUGE])), [0, 2, 5]
    )


def test_lengths_may_be_a_list():
    """As those of a model may be."""
    np.testing.assert_array_equal(
        masks.from_lengths([0, 2, 5], 3),
        [[False] * 3, [True, True, False], [True] * 3],
    )
    x = np.ones((2, 25), "float32")
    np.testing.assert_array_equal(
        layers.FrameMask(10)(x, lengths=[11, 30]),
        [[True, True, False], [True] * 3],
    )
    gain = layers.RandomGain((0.0, 0.0))
    waveform, lengths = gain(x, lengths=[11, 30], training=True)
    np.testing.assert_array_equal(lengths, [11, 25])
    np.testing.assert_array_equal(ops.sum(waveform, axis=1), [11.0, 25.0])


@pytest.mark.parametrize(
    "layer",
    [
        layers.FrameMask(10),
        layers.RandomGain(),
        layers.Spectrogram(1_000, fft_length=64),
        layers.WaveformFrontend(8, 4, window_s=0.01, sample_rate_hz=1_000),
    ],
    ids=lambda layer: type(layer).__name__,
)
@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        # Shares of the longest clip, which others' layers take.
        (np.array([0.5, 1.0], "float32"), "integers.*dtype=float32"),
        ([0.5, 1.0], "integers.*dtype=float32"),
        (np.array([True, True]), "integers.*dtype=bool"),
        (np.array([[11], [25]]), "one for each clip.*shape .2, 1."),
        (25, "one for each clip.*shape .."),
    ],
)
def test_lengths_that_are_none_of_clips_are_refused(layer, lengths, message):
    """Such clips had been heard as silence, or as a mask of three axes."""
    x = np.ones((2, 25), "float32")
    with pytest.raises(ValueError, match=f"`lengths` must be.*{message}"):
        layer(x, lengths=lengths)


@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 3), (2, 5, 3, 2)])
def test_padding_becomes_zero_whatever_it_holds(shape, rng):
    x = rng.standard_normal(shape).astype("float16")
    expected = x.copy()
    x[1, 2:], expected[1, 2:] = NAN, 0.0
    found = masks.zero_beyond(ops.convert_to_tensor(x), np.array([5, 2]))
    np.testing.assert_array_equal(found, expected)
    mask = masks.from_lengths(np.array([5, 2]), 5)
    np.testing.assert_array_equal(masks.zero_padding(x, mask), expected)


@pytest.mark.parametrize("shape", [(1, 4), (2, 5), (1, 1), (5,), (1, 5, 1)])
def test_a_mask_of_other_frames_is_refused(shape):
    """Broadcast, it would speak of clips and frames that it does not know."""
    x = np.zeros((1, 5, 3), "float32")
    with pytest.raises(ValueError, match="shape .batch, time.*Received"):
        masks.zero_padding(x, np.ones(shape, bool))


def test_factors_are_the_mask_as_numbers():
    x = np.zeros((1, 3, 7), "float16")
    mask = np.array([[True, True, False]])
    found = masks.factors(ops.convert_to_tensor(x), mask)
    np.testing.assert_array_equal(found, [[[1.0], [1.0], [0.0]]])
    assert keras.backend.standardize_dtype(found.dtype) == "float16"
    np.testing.assert_array_equal(masks.factors(x), np.ones((1, 3, 1)))


@pytest.mark.parametrize("kind", ["uint8", "int32", "float32"])
def test_a_mask_of_numbers_says_what_a_boolean_one_says(kind, rng):
    """As masks of 0 and 255 are; they had more frames than there were."""
    real = np.arange(5) < np.array([[5], [2], [0]])
    numbers = ops.convert_to_tensor(255 * real.astype("int32"), dtype=kind)
    np.testing.assert_array_equal(masks.to_lengths(numbers), [5, 2, 0])
    x = rng.standard_normal((3, 5, 2)).astype("float32")
    expected = real[..., None].astype("float32")
    np.testing.assert_array_equal(masks.factors(x, numbers), expected)
    np.testing.assert_allclose(
        layers.MaskedMean()(x, mask=numbers),
        np.sum(x * expected, axis=1) / np.array([[5], [2], [1]]),
        atol=1e-6,
    )


def test_masks_combine():
    real = np.array([[True, True, False]])
    np.testing.assert_array_equal(
        masks.combine(None, real, masks.causal(3)),
        [[True, False, False], [True, True, False], [True, True, False]],
    )
    assert masks.combine(None, None) is None
