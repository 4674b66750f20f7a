"""Sounds for whoever has none at hand, made by code."""

import functools
import io

import numpy as np
import soundfile

from audio_tf.corpora.sound_events import synthesize_clip

RATE_HZ = 16_000
PART_S = 2.0

# Names of samples and what they hold: parts one after the other, each with
# the events, keys of `sound_events.EVENTS`, that sound together.
SAMPLES = {
    "bell": [["bell"]],
    "crickets": [["crickets"]],
    "knocks, then a siren": [["knock"], ["siren"]],
    "four scenes": [
        ["bell"],
        ["water_drops", "rumble"],
        ["crickets"],
        ["beep", "white_noise_burst"],
    ],
}


def file_name(name):
    """Returns what the file of a sample is called.

    Args:
        name: str, a key of `SAMPLES`.
    """
    return name.replace(",", "").replace(" ", "_") + ".wav"


# File names, and the names of their samples.
FILES = {file_name(name): name for name in SAMPLES}


@functools.cache
def content(name):
    """Makes a sample: the same bytes each time.

    Args:
        name: str, a key of `SAMPLES`.

    Returns:
        Bytes of a WAV file, mono, 16-bit, at `RATE_HZ`.
    """
    rng = np.random.default_rng(0)
    parts = []
    for events in SAMPLES[name]:
        layers = [
            synthesize_clip(rng, RATE_HZ, PART_S, 1, first_event=event)[0]
            for event in events
        ]
        parts.append(np.mean(layers, axis=0))
    file = io.BytesIO()
    soundfile.write(
        file, np.concatenate(parts), RATE_HZ, "PCM_16", format="WAV"
    )
    return file.getvalue()
