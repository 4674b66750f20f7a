"""Mel scales and the triangles over a spectrum."""

import math

import numpy as np

from audio_tf.layers.frontend import hz_from_mel, mel_from_hz

# Slaney's scale is linear up to here, with as many mel as Hz / (200 / 3).
SLANEY_BREAK_HZ = 1000.0
SLANEY_LINEAR_HZ = 200.0 / 3.0
SLANEY_LOG_STEP = math.log(6.4) / 27.0


def slaney_mel_from_hz(frequency_hz):
    """Turns Hz into mel of Slaney's scale: linear, then logarithmic."""
    frequency_hz = np.asarray(frequency_hz, "float64")
    ratio = np.maximum(frequency_hz, SLANEY_BREAK_HZ) / SLANEY_BREAK_HZ
    linear = np.minimum(frequency_hz, SLANEY_BREAK_HZ) / SLANEY_LINEAR_HZ
    return linear + np.log(ratio) / SLANEY_LOG_STEP


def hz_from_slaney_mel(mel):
    """Undoes `slaney_mel_from_hz`."""
    mel = np.asarray(mel, "float64")
    break_mel = SLANEY_BREAK_HZ / SLANEY_LINEAR_HZ
    linear = np.minimum(mel, break_mel) * SLANEY_LINEAR_HZ
    return linear * np.exp(SLANEY_LOG_STEP * np.maximum(mel - break_mel, 0.0))


SCALES = {
    "htk": (mel_from_hz, hz_from_mel),
    "slaney": (slaney_mel_from_hz, hz_from_slaney_mel),
}
NORMS = (None, "slaney")


def filters(
    num_mel_bins,
    fft_length,
    sample_rate_hz,
    scale,
    norm,
    min_frequency_hz,
    max_frequency_hz,
):
    """Makes triangles over the bins of a spectrum, evenly spaced in mel.

    Args:
        num_mel_bins: int, the number of triangles.
        fft_length: int, the length of the Fourier transform in samples.
        sample_rate_hz: int, the rate of the waveform.
        scale: str, the mel scale, a key of `SCALES`.
        norm: `None` for triangles with a peak of 1, or `"slaney"` for
            triangles with an area of 1, in Hz.
        min_frequency_hz: float, the lower end of the first triangle.
        max_frequency_hz: float, the upper end of the last triangle.

    Returns:
        Float64 array `(fft_length // 2 + 1, num_mel_bins)`. A triangle that
        lies between two bins is a column of zeros.
    """
    to_mel, from_mel = SCALES[scale]
    edges_hz = from_mel(
        np.linspace(
            to_mel(min_frequency_hz), to_mel(max_frequency_hz), num_mel_bins + 2
        )
    )
    bins_hz = np.arange(fft_length // 2 + 1) * (sample_rate_hz / fft_length)
    distance = bins_hz[:, None] - edges_hz
    width = np.diff(edges_hz)
    rising = distance[:, :-2] / width[:-1]
    falling = -distance[:, 2:] / width[1:]
    filters = np.maximum(0.0, np.minimum(rising, falling))
    if norm == "slaney":
        filters = filters * (2.0 / (edges_hz[2:] - edges_hz[:-2]))
    return filters
