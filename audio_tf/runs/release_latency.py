"""The time that a released model takes for a clip, in every format."""

import os
import platform
import statistics
import tempfile
import time
import typing

import numpy as np

from audio_tf.audio import scoring
from audio_tf.export import formats, verify

CALLS = 50  # That latency is the median of.


class Latency(typing.NamedTuple):
    """The time that a model takes for one clip alone.

    Attributes:
        clip_s: float, seconds of the clip.
        machine: str, where that was measured.
        medians_ms: list of pairs of the name of a runtime and the median of
            `CALLS` calls.
    """

    clip_s: float
    machine: str
    medians_ms: list


def measure_latency(model):
    """Measures the time of one clip alone, in TensorFlow and as a file.

    Each format of a file is measured that is installed and that the model
    can be converted to, with one thread.

    Args:
        model: an `AudioClassifier`.

    Returns:
        `Latency`.
    """
    samples = scoring.timed_samples(model)
    waveform = 0.1 * np.random.default_rng(0).standard_normal((1, samples))
    inputs = {
        "waveform": waveform.astype("float32"),
        "lengths": np.array([samples], "int32"),
    }
    engines = {"TensorFlow, all cores": verify.TensorFlowClassifier(model)}
    with tempfile.TemporaryDirectory() as folder:
        for name in installed(model):
            format = formats.FORMATS[name]
            path = format.write(model, format.place(folder))
            engines[f"{name}, one thread"] = format.open(path, 1)
        return Latency(
            samples / model.sample_rate_hz,
            f"{os.cpu_count()} cores, {platform.machine()}",
            [
                (name, median_ms(engine, inputs))
                for name, engine in engines.items()
            ],
        )


def installed(model):
    """Lists the formats of one file that a model can be written in here."""
    found = []
    for name, format in formats.FORMATS.items():
        if not format.suffix or format.refusal(model) is not None:
            continue
        try:
            format.check_installed()
        except ImportError:
            continue
        found.append(name)
    return found


def median_ms(engine, inputs):
    """Returns the median milliseconds of a call, after some to warm up."""
    times = []
    for _ in range(CALLS + 5):
        start = time.perf_counter()
        engine(inputs)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[5:])
