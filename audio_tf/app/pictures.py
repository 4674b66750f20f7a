"""Arrays of a clip as what a page shows: envelopes, spectra, PNG addresses.

Every picture has a number of columns that does not grow with the clip.
"""

import base64
import io

import numpy as np
from PIL import Image

from audio_tf.layers import mel

COLUMNS = 800
BANDS = 64
FLOOR_DB = -80.0  # Below the loudest point of the picture.
WINDOW_S = 0.046
MEL_SCALE = "slaney"

# Evenly spaced colours of matplotlib's viridis, which the colour-blind can read
# and which stays in order when it is printed in grey.
VIRIDIS = np.array(
    [
        (68, 1, 84),
        (72, 40, 120),
        (62, 74, 137),
        (49, 104, 142),
        (38, 130, 142),
        (31, 158, 137),
        (53, 183, 121),
        (110, 206, 88),
        (181, 222, 43),
        (253, 231, 37),
    ],
    np.float64,
)


def columns_of(count):
    """Cuts positions into at most `COLUMNS` runs, one after the other.

    Args:
        count: int, the positions, at least one.

    Returns:
        Integer array `(columns,)`, where each run starts.
    """
    columns = min(count, COLUMNS)
    return np.arange(columns) * count // columns


def envelope(samples):
    """Computes the lowest and the highest sample of each column.

    Args:
        samples: float array `(samples,)`.

    Returns:
        Pair of float arrays `(columns,)`.
    """
    starts = columns_of(len(samples))
    return (
        np.minimum.reduceat(samples, starts),
        np.maximum.reduceat(samples, starts),
    )


def log_mel(samples, rate_hz):
    """Computes the mel spectrum of each column, in dB below the loudest.

    Args:
        samples: float array `(samples,)`.
        rate_hz: int, their rate.

    Returns:
        Float array `(BANDS, columns)` from `FLOOR_DB` to 0, the highest band
        first. Silence is `FLOOR_DB` throughout.
    """
    size = 2 ** round(np.log2(WINDOW_S * rate_hz))
    count = max(1, len(samples) * 2 // size)
    middles = (columns_of(count) + 0.5) * len(samples) / count
    padded = np.pad(np.asarray(samples, np.float64), size // 2 + 1)
    starts = middles.astype(int) + 1
    frames = padded[starts[:, None] + np.arange(size)] * np.hanning(size)
    power = np.abs(np.fft.rfft(frames)) ** 2
    # The lowest triangles may lie between two bins of the spectrum.
    bands = mel.filters(
        BANDS, size, rate_hz, MEL_SCALE, "slaney", 0.0, rate_hz / 2
    )
    picture = (power @ bands).T[::-1]
    loudest = picture.max()
    if loudest <= 0.0:
        return np.full(picture.shape, FLOOR_DB)
    floor = 10.0 ** (FLOOR_DB / 10.0)
    return 10.0 * np.log10(np.maximum(picture / loudest, floor))


def height_of(frequency_hz, rate_hz):
    """Returns where a frequency is in a log-mel picture: 0 bottom, 1 top."""
    to_mel, _ = mel.SCALES[MEL_SCALE]
    low, at, high = to_mel(np.array([0.0, frequency_hz, rate_hz / 2]))
    return float((at - low) / (high - low))


def colours(values):
    """Maps values from 0 to 1 to viridis.

    Args:
        values: float array of any shape.

    Returns:
        Uint8 array of that shape and three channels more.
    """
    places = np.linspace(0.0, 1.0, len(VIRIDIS))
    channels = [np.interp(values, places, each) for each in VIRIDIS.T]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def veil(values, colour):
    """Lays one colour as thick as values from 0 to 1 say.

    Args:
        values: float array `(rows, columns)`.
        colour: triple of int, red, green and blue.

    Returns:
        Uint8 array `(rows, columns, 4)`.
    """
    values = np.clip(values, 0.0, 1.0)[..., None]
    flat = np.broadcast_to(np.array(colour), (*values.shape[:2], 3))
    return np.concatenate([flat, (values * 255).round()], axis=-1).astype(
        np.uint8
    )


def png_address(pixels):
    """Returns an image as an address that holds it all.

    Args:
        pixels: uint8 array `(rows, columns, 3)`, or 4 with transparency.
    """
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return address("image/png", file.getvalue())


def address(kind, content):
    """Returns bytes as an address that holds them all.

    Args:
        kind: str, the media type.
        content: bytes.
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def over_time(spans_s, values, seconds):
    """Spreads values of frames over the columns of a picture.

    Of frames that share a column the highest values are shown.

    Args:
        spans_s: float array `(frames, 2)`, the seconds of each, in order.
        values: float array `(frames, ...)`.
        seconds: float, the length of the picture.

    Returns:
        Float array `(columns, ...)`; NaN where there is no frame.
    """
    starts = columns_of(len(values))
    ends = np.append(starts[1:], len(values)) - 1
    values = np.maximum.reduceat(np.asarray(values, np.float64), starts)
    first_s, last_s = spans_s[starts, 0], spans_s[ends, 1]
    columns = min(COLUMNS, 2 * len(values))
    middles = (np.arange(columns) + 0.5) * seconds / columns
    frame = np.searchsorted(first_s, middles, side="right") - 1
    inside = (frame >= 0) & (middles < last_s[frame])
    spread = values[frame]
    spread[~inside] = np.nan
    return spread
