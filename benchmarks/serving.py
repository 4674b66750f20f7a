"""Latency and throughput of an exported model, by signature and by runtime.

    pip install -e ".[formats]"
    python benchmarks/serving.py --out serving.md

Each engine is timed right after TensorFlow in the same round, in an order
that rotates; a ratio is the median over the rounds of the engine's median to
TensorFlow's. The weights are random: time does not depend on them.
"""

import argparse
import io
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import soundfile  # noqa: E402
import tensorflow as tf  # noqa: E402

from audio_tf import models  # noqa: E402
from audio_tf.audio import resample  # noqa: E402
from audio_tf.export import ExportedClassifier, export, formats  # noqa: E402
from audio_tf.export.formats import load  # noqa: E402

BATCH_SIZES = (1, 32)
# Name, rate in Hz, encoding, channels of files of one second.
SOUNDS = (
    ("16 kHz 16-bit mono", 16_000, "PCM_16", 1),
    ("44.1 kHz 24-bit stereo", 44_100, "PCM_24", 2),
)
BASE = "waveform, TensorFlow"

COLD_START = """
import sys, time
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

folder, warm = sys.argv[1], sys.argv[2] == "warm"
start = time.perf_counter()
signatures = tf.saved_model.load(folder).signatures
requests = {}
path = folder + "/assets.extra/tf_serving_warmup_requests"
for record in tf.data.TFRecordDataset(path):
    log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
    request = log.predict_log.request
    inputs = {
        key: tf.constant(tf.make_ndarray(value))
        for key, value in request.inputs.items()
    }
    name = request.model_spec.signature_name
    requests.setdefault(name, inputs)
    if warm:
        signatures[name](**inputs)
ready = time.perf_counter() - start
times = []
for name in ("serving_default", "serving_audio_bytes"):
    for _ in range(2):
        start = time.perf_counter()
        signatures[name](**requests[name])
        times.append(time.perf_counter() - start)
print(*(1e3 * t for t in [ready, *times]))
"""


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", default="audio_transformer_small")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--out", help="file that the tables are appended to")
    arguments = parser.parse_args(argv)

    keras.utils.set_random_seed(0)
    model = models.AudioClassifier.from_preset(arguments.model, num_classes=50)
    lines = [
        f"    python benchmarks/serving.py {' '.join(sys.argv[1:])}",
        "",
        f"{arguments.model}, 50 classes, clips of 1 s, seed 0; "
        f"{arguments.rounds} rounds of {arguments.calls} calls; "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, "
        f"TensorFlow {tf.__version__}",
        "",
    ]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        exported = export(model, folder / "model")
        served = ExportedClassifier(exported)
        files = {
            name: formats.convert(model, folder / "model", name)
            for name, format in formats.FORMATS.items()
            if format.suffix
        }
        lines += describe_size(model, exported)
        for batch_size in BATCH_SIZES:
            engines = make_engines(model, served, files, batch_size)
            times = time_in_rounds(engines, arguments.rounds, arguments.calls)
            lines += describe_times(times, batch_size)
        lines += describe_cold_start(exported)
    text = "\n".join([*lines, ""])
    print(text)
    if arguments.out:
        with open(arguments.out, "a") as file:
            file.write(text)


def make_engines(model, served, files, batch_size):
    """Returns a dict of functions without arguments that score one batch."""
    rng = np.random.default_rng(0)
    waveform = 0.1 * rng.standard_normal((batch_size, 16_000), np.float32)
    lengths = np.full(batch_size, 16_000, np.int32)
    inputs = {"waveform": waveform, "lengths": lengths}
    compiled = tf.function(lambda x: model(x, training=False), jit_compile=True)
    engines = {
        BASE: lambda: served(inputs).numpy(),
        "waveform, TensorFlow with XLA": lambda: compiled(waveform).numpy(),
    }
    for name, path in files.items():
        engines[f"waveform, {name}"] = lambda run=load(path): run(inputs)
    for name, rate_hz, subtype, channels in SOUNDS:
        clips = 0.1 * rng.standard_normal((batch_size, rate_hz, channels))
        contents = [wav_file(clip, rate_hz, subtype) for clip in clips]
        engines[f"bytes, {name}"] = lambda contents=contents: (
            served.score_bytes(contents)["scores"].numpy()
        )
        engines[f"decoded in Python, {name}"] = lambda contents=contents: (
            decode_and_score(served, contents)
        )
    return engines


def wav_file(clip, rate_hz, subtype):
    file = io.BytesIO()
    soundfile.write(file, clip, rate_hz, subtype, format="WAV")
    return file.getvalue()


def decode_and_score(served, contents):
    """Scores files as a client must that has only the waveform signature."""
    clips = []
    for file in contents:
        audio, rate_hz = soundfile.read(
            io.BytesIO(file), dtype="float32", always_2d=True
        )
        clips.append(
            resample(
                audio.mean(axis=1, dtype="float32"),
                rate_hz,
                served.sample_rate_hz,
            )
        )
    waveform = np.stack(clips)
    lengths = np.full(len(clips), waveform.shape[1], np.int32)
    return served({"waveform": waveform, "lengths": lengths}).numpy()


def time_in_rounds(engines, rounds, calls):
    """Measures the calls of each engine and of its base, in milliseconds.

    Returns:
        Dict of pairs of arrays by name: the engine's times and those of
        TensorFlow right before.
    """

    def time_ms(engine):
        times = []
        for _ in range(calls):
            start = time.perf_counter()
            engine()
            times.append(1e3 * (time.perf_counter() - start))
        return times

    for engine in engines.values():
        engine()
        engine()
    names = list(engines)
    found = {name: ([], []) for name in names}
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            found[name][1].append(time_ms(engines[BASE]))
            found[name][0].append(time_ms(engines[name]))
    return {
        name: (np.array(own), np.array(base))
        for name, (own, base) in found.items()
    }


def describe_times(times, batch_size):
    yield f"Batch {batch_size}:"
    yield ""
    yield "| engine | p50 ms | p99 ms | clips/s/core | to TensorFlow |"
    yield "|---|---|---|---|---|"
    for name, (own, base) in times.items():
        p50, p99 = np.percentile(own, [50, 99])
        ratios = np.median(own, axis=1) / np.median(base, axis=1)
        rate = 1e3 * batch_size / p50 / os.cpu_count()
        yield (
            f"| {name} | {p50:.2f} | {p99:.2f} | {rate:.0f} | "
            f"{np.median(ratios):.2f} [{ratios.min():.2f}-{ratios.max():.2f}] |"
        )
    yield ""
    for name, *_ in SOUNDS:
        own, base = times[f"bytes, {name}"]
        other, other_base = times[f"decoded in Python, {name}"]
        ratio = np.median(own, axis=1) / np.median(base, axis=1)
        other = np.median(other, axis=1) / np.median(other_base, axis=1)
        yield (
            f"Bytes to decoding in Python, {name}, batch {batch_size}: "
            f"{np.median(ratio) / np.median(other):.2f}"
        )
    yield ""


def describe_size(model, exported):
    total = sum(f.stat().st_size for f in exported.rglob("*") if f.is_file())
    warm_up = (
        (exported / "assets.extra" / "tf_serving_warmup_requests")
        .stat()
        .st_size
    )
    weights = sum(4 * int(np.prod(w.shape)) for w in model.weights)
    variables = sum(
        f.stat().st_size for f in (exported / "variables").iterdir()
    )
    yield (
        f"Weights {weights / 1e6:.2f} MB; export {total / 1e6:.2f} MB: "
        f"variables {variables / 1e6:.2f} ({variables / weights:.3f} of the "
        f"weights), warm-up {warm_up / 1e6:.2f}, the rest graph and labels "
        f"({(total - warm_up) / weights:.3f} without warm-up)."
    )
    yield ""


def describe_cold_start(exported, repeats=3):
    yield "Cold start, ms, medians of 3 processes (import of TensorFlow not"
    yield "counted):"
    yield ""
    yield (
        "| | load | first waveform | second | first bytes | second |\n"
        "|---|---|---|---|---|---|"
    )
    for mode in ("cold", "warm"):
        runs = []
        for _ in range(repeats):
            done = subprocess.run(
                [sys.executable, "-c", COLD_START, str(exported), mode],
                capture_output=True,
                text=True,
                check=True,
            )
            runs.append([float(t) for t in done.stdout.split()])
        row = [statistics.median(column) for column in zip(*runs, strict=True)]
        name = {"cold": "as loaded", "warm": "after the warm-up requests"}
        yield f"| {name[mode]} | " + " | ".join(f"{t:.0f}" for t in row) + " |"


if __name__ == "__main__":
    main()
