"""Recordings of noise that training lays under clips."""

import numpy as np

from audio_tf import layers
from audio_tf.runs import beside
from audio_tf.runs.beside import NOISE

# Recordings are held in memory, in rows of so many seconds.
ROW_S = 5.0
MOST_S = 3_600.0


def listed(settings, corpus):
    """Lists the recordings of noise.

    Args:
        settings: `TrainSettings`.
        corpus: `Corpus` of the training split.

    Returns:
        Dict of a `Corpus` without labels by the name `NOISE`; empty if no
        noise is asked for.

    Raises:
        FileNotFoundError: as `beside.listed`.
    """
    if not settings.noise:
        return {}
    return {NOISE: beside.listed(settings.noise, corpus.vocabulary)}


def read_bank(clips):
    """Reads recordings into rows of one length.

    A recording that is shorter than a row is repeated until the row is full;
    the last row of a longer one ends where the recording does, and may begin
    within the row before.

    Args:
        clips: `Clips` of samples.

    Returns:
        Float32 array `(rows, samples)`, none of them digital silence.

    Raises:
        ValueError: if all is silent, or more than an hour.
    """
    rate_hz = clips.sample_rate_hz
    seconds = clips.lengths.sum() / rate_hz
    if seconds > MOST_S:
        raise ValueError(
            f"--noise is held in memory, an hour at most. Received: "
            f"{seconds / 3_600:.1f} h in {len(clips)} files"
        )
    size = round(ROW_S * rate_hz)
    rows = []
    for clip in range(len(clips)):
        audio = clips.read(clip)
        if 0 < len(audio) < size:
            audio = np.resize(audio, size)
        starts = range(0, len(audio) - size + 1, size)
        rows += [audio[start : start + size] for start in starts]
        if len(audio) % size:
            rows.append(audio[-size:])
    rows = [row for row in rows if row.any()]
    if not rows:
        raise ValueError(
            "--noise must hold a recording that is not silent. Received: "
            f"{len(clips)} files that could be read"
        )
    return np.stack(rows).astype("float32")


def make_layer(settings):
    """Makes the layer that lays noise under clips, or `None` without noise.

    Args:
        settings: `TrainSettings`.
    """
    if not settings.noise:
        return None
    return layers.AdditiveNoise(
        tuple(settings.noise_snr_db), rate=settings.noise_share
    )
