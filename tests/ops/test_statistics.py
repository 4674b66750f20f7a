"""Statistics of real positions against numpy."""

import numpy as np
import pytest
from keras import ops

from audio_tf.ops import statistics

LENGTHS = np.array([7, 3, 0], "int32")
REAL = np.arange(7) < LENGTHS[:, None]


@pytest.mark.parametrize("unbiased", [False, True])
def test_moments_are_of_what_is_real(unbiased, rng):
    x = np.where(REAL[:, :, None], rng.standard_normal((3, 7, 5)), 0.0)
    x_tensor = ops.convert_to_tensor(x)
    mean, variance = statistics.moments(x_tensor, 1, REAL[:, :, None], unbiased)
    for clip, length in enumerate(LENGTHS[:2]):
        real = x[clip, :length]
        np.testing.assert_allclose(mean[clip, 0], real.mean(0), atol=1e-6)
        np.testing.assert_allclose(
            variance[clip, 0], real.var(0, ddof=int(unbiased)), atol=1e-6
        )
    for value in (mean, variance):
        np.testing.assert_array_equal(value[2], np.zeros((1, 5)))
    # Two frames are the fewest that differ from each other.
    two = ops.convert_to_tensor(x[:1, :2])
    _, variance = statistics.moments(two, 1, None, unbiased)
    np.testing.assert_allclose(
        variance[0, 0], x[0, :2].var(0, ddof=int(unbiased)), atol=1e-6
    )
    mean, variance = statistics.moments(x_tensor, -1, unbiased=unbiased)
    np.testing.assert_allclose(mean[..., 0], x.mean(-1), atol=1e-6)
    np.testing.assert_allclose(
        variance[..., 0], x.var(-1, ddof=int(unbiased)), atol=1e-6
    )


def test_one_frame_has_no_variance():
    _, variance = statistics.moments(ops.ones((1, 1, 2)), 1, None, True)
    np.testing.assert_array_equal(variance, [[[0.0, 0.0]]])


def test_power_is_of_real_samples(rng):
    x = rng.standard_normal((3, 7)).astype("float32")
    found = np.asarray(statistics.power(x, LENGTHS))[:, 0]
    expected = [np.square(x[0]).mean(), np.square(x[1, :3]).mean(), 0.0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
