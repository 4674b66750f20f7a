"""Frequencies of filters against ones that are known, and examples."""

import keras
import numpy as np
import pytest

from audio_tf.analysis import filters
from audio_tf.layers import MelFrontend, WaveformFrontend
from audio_tf.layers.filters import Filters

RATE_HZ = 8_000


def sinusoids(frequencies_hz, window, size=200):
    times = np.arange(size) / RATE_HZ
    rows = [
        window(size) * np.sin(2 * np.pi * f * times) for f in frequencies_hz
    ]
    return Filters(np.stack(rows)[:, :, None], 1)


def test_sinusoids_are_sorted_by_their_frequency():
    found = filters.responses(
        sinusoids([3_000, 250, 1_100], np.hanning), RATE_HZ
    )
    np.testing.assert_allclose(found.centres_hz, [3_000, 250, 1_100], atol=3)
    assert list(found.order) == [1, 2, 0]
    assert found.frequencies_hz[0] == 0 and found.frequencies_hz[-1] == 4_000
    # The definition, at one frequency.
    place = 700
    phase = -2j * np.pi * found.frequencies_hz[place] / RATE_HZ
    row = sinusoids([250], np.hanning).weights[0, :, 0]
    expected = abs(sum(x * np.exp(phase * n) for n, x in enumerate(row)))
    assert found.magnitudes[1, place] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("window", "bins"), [(np.ones, 0.886), (np.hanning, 1.441)]
)
def test_bandwidths_are_those_of_the_window(window, bins):
    """Known of windows: widths at -3 dB in units of rate / size."""
    found = filters.responses(sinusoids([700, 2_000], window), RATE_HZ)
    expected = bins * RATE_HZ / 200
    np.testing.assert_allclose(found.bandwidths_hz, expected, atol=4)


def test_long_filters_are_heard_to_their_end():
    """They may be longer than the transform of short ones."""
    found = sinusoids([700, 2_000], np.ones, 6_000)
    found.weights[:, :4_500] = 0.0
    centres_hz = filters.responses(found, RATE_HZ).centres_hz
    np.testing.assert_allclose(centres_hz, [700, 2_000], atol=3)


def test_bands_have_the_magnitude_of_all_windows():
    weights = np.zeros((2, 3, 4))
    weights[0, :, 2] = [0.0, 3.0, -4.0]
    weights[1, 1, 0] = -1.0
    middles = np.array([100.0, 300.0, 700.0, 1_500.0])
    found = filters.responses(Filters(weights, 80, middles), RATE_HZ)
    np.testing.assert_allclose(
        found.magnitudes,
        [[0, 0, 5 / 3**0.5, 0], [1 / 3**0.5, 0, 0, 0]],
    )
    assert list(found.centres_hz) == [700.0, 100.0]
    # From half-way to the band below to half-way to the one above.
    assert list(found.bandwidths_hz) == [600.0, 100.0]


def test_examples_are_the_strongest_of_each_range():
    tones = sinusoids([100, 200, 300, 2_000, 2_100, 2_200], np.hanning)
    gains = np.array([1, 5, 2, 1, 2, 9.0])[:, None, None]
    louder = tones._replace(weights=tones.weights * gains)
    order = filters.responses(louder, RATE_HZ).order
    assert filters.examples(louder, order, 2) == [1, 5]
    assert filters.examples(louder, order, 99) == list(range(6))


def test_what_was_before_training_is_known_where_it_is_not_random():
    dense = WaveformFrontend(8, 5, 0.01, RATE_HZ, filterbank="mel")
    dense.build((None, None))
    began = dense.learned().filters.weights
    dense.filter_dense.kernel.assign(0.0 * dense.filter_dense.kernel)
    found, known = filters.at_first(dense, 3)
    assert known
    np.testing.assert_array_equal(found.filters.weights, began)

    keras.utils.set_random_seed(3)
    random = MelFrontend(5, 7, stack_size=2, sample_rate_hz=RATE_HZ)
    random.build((None, None))
    found, known = filters.at_first(random, 3)
    assert not known
    again, _ = filters.at_first(random, 3)
    np.testing.assert_array_equal(found.filters.weights, again.filters.weights)
    np.testing.assert_allclose(found.curves["floor (dB)"], [-60.0] * 7)
