"""Mel scales and the triangles over a spectrum."""

import math

import numpy as np

from audio_tf.layers.frontend import hz_from_mel, mel_from_hz

# Slaney's scale is linear up to here, with as many mel as Hz / (200 / 3).
SLANEY_BREAK_HZ = 1000.0
SLANEY_LINEAR_HZ = 200.0 / 3.0
SLANEY_LOG_STEP = math.log(6.4) / 27.0


def slaney_mel_from_hz(frequency_hz):
    """Mel scale of Slaney's Auditory Toolbox: linear, then logarithmic."""
    frequency_hz = np.asarray(frequency_hz, "float64")
    ratio = np.maximum(frequency_hz, SLANEY_BREAK_HZ) / SLANEY_BREAK_HZ
    linear = np.minimum(frequency_hz, SLANEY_BREAK_HZ) / SLANEY_LINEAR_HZ
    return linear + np.log(ratio) / SLANEY_LOG_STEP


def hz_from_slaney_mel(mel):
    """Inverse of `slaney_mel_from_hz`."""
    mel = np.asarray(mel, "float64")
    break_mel = SLANEY_BREAK_HZ / SLANEY_LINEAR_HZ
    linear = np.minimum(mel, break_mel) * SLANEY_LINEAR_HZ
    return linear * np.exp(SLANEY_LOG_STEP * np.maximum(mel - break_mel, 0.0))


SCALES = {
    "htk": (mel_from_hz, hz_from_mel),
    "slaney": (slaney_mel_from_hz, hz_from_slaney_mel),
}
NORMS = (None, "slaney")


def filters(bands, fft_size, sample_rate_hz, scale, norm, low_hz, high_hz):
    """Triangles over the bins of a spectrum, evenly spaced in mel.

    Args:
        bands: int, number of triangles.
        fft_size: int, length of the transform.
        sample_rate_hz: int.
        scale: key of `SCALES`.
        norm: `None` for peaks of 1 or `"slaney"` for areas of 1, in Hz.
        low_hz: float, lower end of the first triangle.
        high_hz: float, upper end of the last.

    Returns:
        float64 `(fft_size // 2 + 1, bands)`. Triangles between two bins are
        columns of zeros.
    """
    to_mel, from_mel = SCALES[scale]
    edges_hz = from_mel(np.linspace(to_mel(low_hz), to_mel(high_hz), bands + 2))
    bins_hz = np.arange(fft_size // 2 + 1) * (sample_rate_hz / fft_size)
    distance = bins_hz[:, None] - edges_hz
    width = np.diff(edges_hz)
    rising = distance[:, :-2] / width[:-1]
    falling = -distance[:, 2:] / width[1:]
    filters = np.maximum(0.0, np.minimum(rising, falling))
    if norm == "slaney":
        filters = filters * (2.0 / (edges_hz[2:] - edges_hz[:-2]))
    return filters
