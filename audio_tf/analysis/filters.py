"""The frequencies of the filters that a front end has learned.

After section 4.1 of "Audio Transformers" (arXiv 2105.00335): the filters of
the first learned layer are sorted by the peaks of their Fourier transforms.
"""

from typing import NamedTuple

import keras
import numpy as np

from audio_tf.layers.frontend import mel_centers

# Frequencies of a Fourier transform, at least, since the peak of a short filter
# lies between its own.
LEAST_FREQUENCIES = 2048
# A filter's band ends where its response has fallen by 3 dB.
BAND_EDGE = 0.5**0.5


class Responses(NamedTuple):
    """The magnitude responses of filters.

    Attributes:
        frequencies_hz: float array `(frequencies,)`, ascending.
        magnitudes: float array `(filters, frequencies)`: of filters of
            samples their Fourier transforms; of filters of bands the root of
            the mean square over time of their weights.
        centres_hz: float array `(filters,)`, where each is greatest.
        bandwidths_hz: float array `(filters,)`, how far around its greatest
            value a response is within 3 dB of it.
        order: int array `(filters,)`, the filters by ascending centre.
    """

    frequencies_hz: np.ndarray
    magnitudes: np.ndarray
    centres_hz: np.ndarray
    bandwidths_hz: np.ndarray
    order: np.ndarray


def responses(filters, sample_rate_hz):
    """Computes the magnitude responses of filters.

    Args:
        filters: `layers.filters.Filters`.
        sample_rate_hz: int, the rate of the waveform.

    Returns:
        `Responses`.
    """
    weights = np.asarray(filters.weights, "float64")
    if filters.bands_hz is None:
        length = 2 * LEAST_FREQUENCIES
        while length < 4 * weights.shape[1]:
            length *= 2
        magnitudes = np.abs(np.fft.rfft(weights[:, :, 0], length, axis=1))
        frequencies = np.fft.rfftfreq(length, 1.0 / sample_rate_hz)
    else:
        magnitudes = np.sqrt(np.mean(np.square(weights), axis=1))
        frequencies = np.asarray(filters.bands_hz, "float64")
    peaks = np.argmax(magnitudes, axis=1)
    centres = frequencies[peaks]
    return Responses(
        frequencies,
        magnitudes,
        centres,
        bandwidths(magnitudes, peaks, frequencies),
        np.argsort(centres, kind="stable"),
    )


def bandwidths(magnitudes, peaks, frequencies_hz):
    """Measures how wide responses are around their peaks, down to -3 dB.

    Args:
        magnitudes: float array `(filters, frequencies)`.
        peaks: int array `(filters,)`, the index of each one's greatest value.
        frequencies_hz: float array `(frequencies,)`.

    Returns:
        Float array `(filters,)`, in Hz.
    """
    edges = (frequencies_hz[1:] + frequencies_hz[:-1]) / 2
    edges = np.concatenate([frequencies_hz[:1], edges, frequencies_hz[-1:]])
    found = []
    for response, peak in zip(magnitudes, peaks, strict=True):
        below = response < BAND_EDGE * response[peak]
        left, right = np.flatnonzero(below[:peak]), np.flatnonzero(below[peak:])
        low = left[-1] + 1 if len(left) else 0
        high = peak + right[0] if len(right) else len(response)
        found.append(edges[high] - edges[low])
    return np.array(found)


def mel_spaced(count, sample_rate_hz):
    """Returns the ascending centres in Hz of `count` filters spaced in mel."""
    return mel_centers(count, sample_rate_hz)


def examples(filters, order, count):
    """Chooses filters that stand for all: the strongest of each range.

    Args:
        filters: `layers.filters.Filters`.
        order: int array `(filters,)`, the filters by ascending centre.
        count: int, how many are wanted, at most.

    Returns:
        List of ints, indices of filters, by ascending centre.
    """
    strength = np.linalg.norm(filters.weights, axis=(1, 2))
    ranges = np.array_split(order, min(count, len(order)))
    return [int(each[np.argmax(strength[each])]) for each in ranges]


def at_first(frontend, seed):
    """Returns what a front end knew before it was trained.

    Args:
        frontend: `layers.filters.Frontend`.
        seed: int, the seed of weights that begin at random.

    Returns:
        Pair of `Learned`, and of a bool: whether its filters are those that
        the front end began with, since they do not begin at random; else they
        are drawn anew, and none of them is what one of the trained ones was.
    """
    drawn = []
    for each in (seed, seed + 1):
        keras.utils.set_random_seed(each)
        layer = type(frontend).from_config(frontend.get_config())
        layer.build((None, None))
        drawn.append(layer.learned())
    first, second = (each.filters for each in drawn)
    known = first is None or np.array_equal(first.weights, second.weights)
    return drawn[0], known
