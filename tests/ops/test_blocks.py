"""Pieces of time against numpy."""

import numpy as np
import pytest
from keras import ops

from audio_tf.ops import blocks


def test_blocks_are_counted_upwards():
    for length in range(9):
        assert blocks.count(length, 4) == int(np.ceil(length / 4))
    np.testing.assert_array_equal(
        blocks.count(ops.convert_to_tensor([0, 1, 4, 5]), 4), [0, 1, 1, 2]
    )


def test_windows_are_filled_or_at_the_end_begun():
    for size, stride in ((1, 1), (4, 4), (5, 2)):
        for length in range(14):
            starts = range(0, length, stride)
            filled = sum(start + size <= length for start in starts)
            for last, expected in ((False, filled), (True, len(starts))):
                found = blocks.whole_windows(length, size, stride, last)
                assert found == expected, (size, stride, length, last)


@pytest.mark.parametrize("length", [1, 5, 6, 13])
def test_blocks_and_their_surroundings(length, rng):
    x = rng.standard_normal((2, 3, length, 5)).astype("float32")
    number = -(-length // 3)
    padded = np.pad(x, [[0, 0], [0, 0], [4, 3 * number - length + 2], [0, 0]])
    found = blocks.windows(ops.convert_to_tensor(x), 3, 4, 2)
    expected = [padded[:, :, 3 * n : 3 * n + 9] for n in range(number)]
    np.testing.assert_array_equal(found, np.stack(expected, axis=2))
    cut = blocks.cut(ops.convert_to_tensor(x), 3)
    assert cut.shape == (2, 3, number, 3, 5)
    np.testing.assert_array_equal(blocks.join(cut, length), x)


@pytest.mark.parametrize("shape", [(2, 7), (2, 7, 3)])
def test_a_delay_brings_zeros(shape, rng):
    x = rng.standard_normal(shape).astype("float32")
    for frames in (0, 2, 9):
        expected = np.zeros_like(x)
        expected[:, frames:] = x[:, : max(7 - frames, 0)]
        np.testing.assert_array_equal(blocks.delay(x, frames), expected)


def test_frames_are_taken_for_each_clip(rng):
    x = rng.standard_normal((2, 7, 3)).astype("float32")
    indices = np.array([[6, 0, 0, 3], [1, 2, 5, 5]], "int32")
    np.testing.assert_array_equal(
        blocks.take_frames(ops.convert_to_tensor(x), indices),
        np.take_along_axis(x, indices[:, :, None], 1),
    )


def test_limits_broadcast():
    found = blocks.clamp(
        np.arange(5), np.array([[1], [3]]), np.array([[2], [9]])
    )
    np.testing.assert_array_equal(found, [[1, 1, 2, 2, 2], [3, 3, 3, 3, 4]])
