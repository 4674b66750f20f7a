"""The resampler in the graph, against scipy's; `test_decode.py` has that."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies

from audio_tf.data import resampling

TARGET_HZ = 16_000
RATES_HZ = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]
RATES_HZ += [96_000, 192_000, 1_000, 1_009, 16_001, 15_999, 31_999]


@pytest.fixture(scope="module")
def resamplers():
    """One traced function for each rate that a model may have."""
    signature = [tf.TensorSpec((None,)), tf.TensorSpec((), tf.int32)]
    return {
        target_hz: tf.function(
            lambda audio, rate_hz, target_hz=target_hz: (
                resampling.resample_in_graph(audio, rate_hz, target_hz)
            ),
            input_signature=signature,
        )
        for target_hz in (8_000, 16_000, 44_100, 1_009)
    }


def assert_resamples(function, audio, rate_hz, target_hz):
    resampled = function(audio, rate_hz)
    expected = resampling.resample(audio, rate_hz, target_hz)
    assert resampled.dtype == "float32"
    assert resampled.shape == expected.shape
    np.testing.assert_allclose(resampled, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("target_hz", [8_000, 16_000, 44_100, 1_009])
@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_resampling_in_the_graph(rate_hz, target_hz, resamplers, rng):
    for count in (0, 1, 2, 7, 61, 1_009, 5_003):
        audio = rng.uniform(-0.9, 0.9, count).astype("float32")
        assert_resamples(resamplers[target_hz], audio, rate_hz, target_hz)


@hypothesis.settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    rate_hz=strategies.integers(1_000, 60_000),
    count=strategies.integers(0, 5_000),
    target_hz=strategies.sampled_from([8_000, 16_000, 44_100, 1_009]),
)
def test_resampling_of_any_rate(rate_hz, count, target_hz, resamplers):
    rng = np.random.default_rng(count)
    audio = rng.uniform(-0.9, 0.9, count).astype("float32")
    assert_resamples(resamplers[target_hz], audio, rate_hz, target_hz)


@pytest.mark.parametrize("max_taps", [1, 3_001, 20_011])
def test_taps_in_several_blocks(max_taps, monkeypatch, rng):
    monkeypatch.setattr(resampling, "MAX_TAPS", max_taps)
    audio = rng.uniform(-0.9, 0.9, 503).astype("float32")
    for rate_hz in (44_100, 15_013, 8_000):
        assert_resamples(
            lambda audio, rate_hz: resampling.resample_in_graph(
                tf.constant(audio), tf.constant(rate_hz), TARGET_HZ
            ),
            audio,
            rate_hz,
            TARGET_HZ,
        )


@pytest.mark.parametrize("rate_hz", [999_983, 1_000_000])
def test_impulses_at_extreme_rates(rate_hz, resamplers):
    """An impulse gives the taps; scipy's own filter would take gigabytes."""
    count = 150_001  # A phase times the rate exceeds 32 bits.
    audio = np.zeros(count, "float32")
    audio[[0, 149_003]] = 1, -2
    resampled = resamplers[TARGET_HZ](audio, rate_hz).numpy()
    assert len(resampled) == -(-count * TARGET_HZ // rate_hz)
    time_s = np.arange(len(resampled)) / TARGET_HZ
    expected = 0
    for place, height in ((0, 1), (149_003, -2)):
        crossings = (time_s - place / rate_hz) * TARGET_HZ
        window = np.sqrt(np.maximum(1 - (crossings / 10) ** 2, 0))
        taps = np.sinc(crossings) * np.i0(5 * window) / np.i0(5)
        taps[np.abs(crossings) > 10] = 0
        expected += height * taps * TARGET_HZ / rate_hz
    # The gain of the whole filter is 1, that of its formula is not quite.
    np.testing.assert_allclose(resampled, expected / 0.99932532, atol=1e-7)


@pytest.mark.parametrize("up, down", [(1, 2), (160, 441), (2, 1), (441, 160)])
def test_the_taps_are_those_of_scipy(up, down):
    reach = 10 * max(up, down)
    offsets = tf.range(-reach - 2, reach + 3)
    taps = resampling.prototype(
        offsets, tf.constant(up, tf.int64), tf.constant(max(up, down), tf.int64)
    )
    expected = np.pad(up * resampling.resampling_filter(up, down), 2)
    np.testing.assert_allclose(taps, expected, rtol=0, atol=1e-6)
