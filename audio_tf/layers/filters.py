"""The base of every front end, which says what it has learned."""

from typing import NamedTuple

import numpy as np

from audio_tf.ops.layer import WAVEFORM, Layer


class Filters(NamedTuple):
    """The filters that a front end has learned.

    Attributes:
        weights: float array `(filters, time, bands)`: of each filter the
            weights of what it sees, by time and by band; of samples there is
            one band.
        hop_size: int, samples from one weight in time to the next.
        bands_hz: float array `(bands,)`, the middles of the bands in Hz, or
            `None` where the weights are of samples.
    """

    weights: np.ndarray
    hop_size: int
    bands_hz: np.ndarray | None = None


class Learned(NamedTuple):
    """The filters and the curves that a front end has learned.

    Attributes:
        filters: `Filters`, or `None` where what comes first is not learned.
        bands_hz: float array `(bands,)`, the middles of the bands in Hz that
            `curves` are of, or `None`.
        curves: dict by name, with its unit, of float arrays `(bands,)`: what
            is learned for each band.
    """

    filters: Filters | None
    bands_hz: np.ndarray | None
    curves: dict


class Frontend(Layer):
    """The base of front ends: layers that turn a waveform into frames."""

    first_input = WAVEFORM

    def learned(self):
        """Returns what the built layer has learned.

        Returns:
            `Learned`, or `None` if it has nothing to learn.
        """
        return None
