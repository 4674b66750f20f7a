"""Input pipeline: decode + resample + chunk, in times real time.

    python benchmarks/data.py                 # the synthetic corpus
    python benchmarks/data.py --audio DIR     # all audio files below DIR

Measures in one run, each the median of --repeats passes in rotating order:

- decoding through tf.data with soundfile and, where tensorflow-io is
  installed (`make VENV=.venv-tfio EXTRAS=tfio benchmark`), with tfio,
  each decoded, resampled to 16 kHz and cut into chunks of 1 s;
- chunks per second out of the cache, shuffled, in batches of 32;
- chunks per second of a training step of audio_transformer_small.

The last two give the share of a core that feeding the model takes.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from audio_tf import data  # noqa: E402
from audio_tf.audio.audio_files import AUDIO_SUFFIXES  # noqa: E402
from audio_tf.corpora import Corpus, write_synthetic_corpus  # noqa: E402
from audio_tf.data.chunks import chunk_starts  # noqa: E402
from audio_tf.models import AudioClassifier  # noqa: E402

SAMPLE_RATE_HZ = 16_000


def find_files(folder, limit):
    found = sorted(
        file
        for file in pathlib.Path(folder).rglob("*")
        if file.suffix.lower() in AUDIO_SUFFIXES
    )
    order = np.random.default_rng(0).permutation(len(found))[:limit]
    return [found[index] for index in order]


def decode_pass(files, decoder):
    """Decodes, resamples, cuts; returns seconds of audio and seconds taken."""
    samples = chunks = 0
    start = time.perf_counter()
    for _, audio, _ in data.decode_dataset(
        files, SAMPLE_RATE_HZ, decoder
    ).as_numpy_iterator():
        starts = chunk_starts(len(audio), SAMPLE_RATE_HZ, SAMPLE_RATE_HZ)
        for begin in starts:
            np.resize(audio[begin : begin + SAMPLE_RATE_HZ], SAMPLE_RATE_HZ)
        samples += len(audio)
        chunks += len(starts)
    taken_s = time.perf_counter() - start
    return samples / SAMPLE_RATE_HZ / taken_s


def cached_pass(chunks):
    """Returns the chunks per second that come out of the cache."""
    start = time.perf_counter()
    for _ in chunks.dataset(32, shuffle=True, jitter=True):
        pass
    return len(chunks) / (time.perf_counter() - start)


def training_pass(model, steps=20):
    """Returns the chunks per second of training on one batch in memory."""
    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal((32, SAMPLE_RATE_HZ)), tf.float32)
    y = tf.zeros((32, model.num_classes))
    dataset = tf.data.Dataset.from_tensors((x, y)).repeat(steps)
    start = time.perf_counter()
    model.fit(dataset, shuffle=False, verbose=0)
    return 32 * steps / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--audio", help="folder of audio files")
    parser.add_argument("--limit", type=int, default=300, help="files at most")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.audio
        if folder is None:
            folder = pathlib.Path(scratch, "synthetic")
            write_synthetic_corpus(folder, progress=False)
        files = find_files(folder, arguments.limit)
        corpus = Corpus(files, [["a"] for _ in files], ["a"])
        clips = data.prepare(
            corpus, SAMPLE_RATE_HZ, pathlib.Path(scratch, "cache")
        )
        chunks = data.Chunks(clips)
        model = AudioClassifier.from_preset(
            "audio_transformer_small", num_classes=200
        )
        passes = {
            "decode_soundfile_x_realtime": lambda: decode_pass(
                files, "soundfile"
            ),
            "cache_chunks_per_s": lambda: cached_pass(chunks),
            "training_chunks_per_s": lambda: training_pass(model),
        }
        if importlib.util.find_spec("tensorflow_io"):
            passes["decode_tfio_x_realtime"] = lambda: decode_pass(
                files, "tfio"
            )
        for run in passes.values():  # Traces graphs, warms the file cache.
            run()
        values = {name: [] for name in passes}
        for repeat in range(arguments.repeats):
            names = list(passes)
            for name in (
                names[repeat % len(names) :] + names[: repeat % len(names)]
            ):
                values[name].append(passes[name]())
    report = {
        "files": len(files),
        "clips_left_out": len(clips.failures),
        "audio_s": round(float(clips.lengths.sum()) / SAMPLE_RATE_HZ),
        **{
            name: {
                "median": round(statistics.median(runs), 1),
                "min": round(min(runs), 1),
                "max": round(max(runs), 1),
            }
            for name, runs in values.items()
        },
        "cores": os.cpu_count(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }
    medians = {name: statistics.median(runs) for name, runs in values.items()}
    report["cache_to_training"] = round(
        medians["cache_chunks_per_s"] / medians["training_chunks_per_s"], 1
    )
    # Chunks are 1 s, so real time and chunks per second compare.
    report["decode_to_training"] = round(
        medians["decode_soundfile_x_realtime"]
        / medians["training_chunks_per_s"],
        2,
    )
    if "decode_tfio_x_realtime" in medians:
        report["soundfile_to_tfio"] = round(
            medians["decode_soundfile_x_realtime"]
            / medians["decode_tfio_x_realtime"],
            2,
        )
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
