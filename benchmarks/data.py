"""Input pipeline: audio files to shuffled batches, in times real time.

    python benchmarks/data.py                 # the synthetic corpus
    python benchmarks/data.py --audio DIR     # all audio files below DIR
    make VENV=.venv-tfio EXTRAS=tfio .venv-tfio/.installed
    .venv-tfio/bin/python benchmarks/data.py  # the same, beside tensorflow-io

The same clips are written as WAV, FLAC and Ogg Vorbis files of --rate-hz and
built for TFDS. What is measured has a process of its own for each kind of
files, on each number of cores of --cores, which the process is bound to before
TensorFlow counts them:

- `decode`: files decoded, resampled to 16 kHz and cut into chunks of 1 s;
- `first_epoch`: the same into an empty cache, then all chunks out of it,
  shuffled and jittered, in batches of 32: the first pass of a training;
- `later_epoch`: a later pass, which takes all out of the cache;
- `batches`: batches out of the cache without the start of a pass, over at
  least --batches of them;
- `peak_mib`: the largest memory, beyond what the libraries take.

Then `tfio`: FLAC files decoded by soundfile and by tensorflow-io in one
process, in turn; it says so where tensorflow-io is not installed. And
`training`: chunks per second of a training step of audio_transformer_small,
which the input must outrun. Files lie in the system's file cache. Figures are
medians of --repeats passes with the least and the largest; the first epoch is
one pass. `targets` compares the last number of cores with what is wanted.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SAMPLE_RATE_HZ = 16_000
BATCH_SIZE = 32
KINDS = ("wav", "flac", "ogg", "tfds")
WANTED_BATCHES, WANTED_TFIO = 20_000.0, 4.0


def find_files(folder, limit):
    import numpy as np

    from audio_tf.audio.audio_files import AUDIO_SUFFIXES

    found = sorted(
        file
        for file in pathlib.Path(folder).rglob("*")
        if file.suffix.lower() in AUDIO_SUFFIXES
    )
    order = np.random.default_rng(0).permutation(len(found))[:limit]
    return [found[index] for index in order]


def write_files(scratch, sources, rate_hz):
    """Writes the clips as files of all kinds; returns their seconds."""
    import soundfile

    from audio_tf.audio import AudioError, load_audio

    kinds = {"wav": "PCM_16", "flac": "PCM_16", "ogg": "VORBIS"}
    for kind in kinds:
        (scratch / kind / "audio").mkdir(parents=True)
    rows, seconds = [], 0.0
    for number, source in enumerate(sources):
        try:
            audio = load_audio(source, rate_hz)
        except AudioError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        seconds += len(audio) / rate_hz
        rows.append(f"{number}.wav,{number % 5 + 1},0,a")
        for kind, subtype in kinds.items():
            path = scratch / kind / "audio" / f"{number}.{kind}"
            with soundfile.SoundFile(
                path, "w", rate_hz, 1, subtype, format=kind
            ) as file:
                # Long Vorbis blocks overflow the stack of the encoder.
                for start in range(0, len(audio), rate_hz):
                    file.write(audio[start : start + rate_hz])
    count = len(rows)
    if not count:
        raise SystemExit("No file is usable.")
    rows = "\n".join(["filename,fold,target,category", *rows, ""])
    (scratch / "wav" / "esc50.csv").write_text(rows)
    try:
        from audio_tf.builders.esc import Esc
    except ImportError as error:
        # Its protobuf is newer than that of TensorFlow beside tensorflow-io.
        print(f"tfds left out: {error}", file=sys.stderr)
    else:
        Esc(
            source=scratch / "wav",
            config="esc50",
            data_dir=scratch / "tfds",
            partial=True,
            progress=False,
        ).download_and_prepare()
    return count, seconds


def files_of(scratch, kind):
    """Lists the files of a kind, those within a build too."""
    from audio_tf.audio import packed

    if kind == "tfds":
        return packed.below(packed.find_build(scratch / kind) / "release")
    return sorted((scratch / kind / "audio").iterdir())


# === What is measured, each in a process of its own ===


def decode_pass(files, decoder):
    """Decodes, resamples, cuts; returns the times real time."""
    import numpy as np

    from audio_tf import data
    from audio_tf.data.chunks import chunk_starts

    samples = 0
    start = time.perf_counter()
    for _, audio, _ in data.decode_files(files, SAMPLE_RATE_HZ, decoder):
        starts = chunk_starts(len(audio), SAMPLE_RATE_HZ, SAMPLE_RATE_HZ)
        for begin in starts:
            np.resize(audio[begin : begin + SAMPLE_RATE_HZ], SAMPLE_RATE_HZ)
        samples += len(audio)
    taken_s = time.perf_counter() - start
    return samples / SAMPLE_RATE_HZ / taken_s


def measure_epochs(scratch, kind, repeats, batches):
    """Measures all that is measured of a kind of files; see above."""
    from audio_tf import data
    from audio_tf.corpora import Corpus

    files = files_of(scratch, kind)
    before = peak_mib()
    decode_pass(files[:2], "soundfile")  # Traces the graph.
    decode = [decode_pass(files, "soundfile") for _ in range(repeats)]
    cache = pathlib.Path(tempfile.mkdtemp(dir=scratch))

    def epoch(chunks):
        start = time.perf_counter()
        for _ in chunks.dataset(BATCH_SIZE, shuffle=True, jitter=True):
            pass
        return time.perf_counter() - start

    start = time.perf_counter()
    clips = data.prepare(
        Corpus(files, [["a"] for _ in files], ["a"]),
        SAMPLE_RATE_HZ,
        cache,
        strict=True,
        progress=False,
    )
    chunks = data.Chunks(clips)
    epoch(chunks)
    first_s = time.perf_counter() - start
    audio_s = float(clips.lengths.sum()) / SAMPLE_RATE_HZ
    later_s = [epoch(chunks) for _ in range(repeats)]

    endless = iter(
        chunks.dataset(BATCH_SIZE, shuffle=True, jitter=True, first_epoch=0)
    )
    for _ in range(max(2, batches // 10)):
        next(endless)
    rates = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(batches):
            next(endless)
        # Chunks are 1 s.
        rates.append(batches * BATCH_SIZE / (time.perf_counter() - start))
    peak = peak_mib() - before
    shutil.rmtree(cache)
    return {
        "decode": summary(decode),
        "first_epoch": round(audio_s / first_s, 1),
        "later_epoch": summary([audio_s / each for each in later_s]),
        "first_to_later": round(first_s / statistics.median(later_s), 1),
        "batches": summary(rates),
        "peak_mib": round(peak, 1),
    }


def measure_tfio(scratch, repeats):
    """Measures FLAC decoded by soundfile and by tensorflow-io, in turn."""
    files = files_of(scratch, "flac")
    found = {"soundfile": [], "tfio": []}
    for decoder in found:  # Traces graphs, loads tensorflow-io.
        decode_pass(files[:2], decoder)
    for repeat in range(repeats):
        for decoder in list(found)[:: 1 if repeat % 2 else -1]:
            found[decoder].append(decode_pass(files, decoder))
    rows = {name: summary(values) for name, values in found.items()}
    ratio = rows["soundfile"]["median"] / rows["tfio"]["median"]
    return {**rows, "soundfile_to_tfio": round(ratio, 2)}


def measure_training(repeats, steps):
    """Measures chunks per second of training on one batch in memory."""
    import numpy as np
    import tensorflow as tf

    from audio_tf.models import AudioClassifier

    model = AudioClassifier.from_preset(
        "audio_transformer_small", num_classes=200
    )
    rng = np.random.default_rng(0)
    x = tf.constant(
        rng.standard_normal((BATCH_SIZE, SAMPLE_RATE_HZ)), tf.float32
    )
    y = tf.zeros((BATCH_SIZE, model.num_classes))
    dataset = tf.data.Dataset.from_tensors((x, y)).repeat(steps)
    rates = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        model.fit(dataset, shuffle=False, verbose=0)
        rates.append(BATCH_SIZE * steps / (time.perf_counter() - start))
    return summary(rates[1:])  # The first one traces the graph.


def summary(values):
    return {
        "median": round(statistics.median(values), 1),
        "min": round(min(values), 1),
        "max": round(max(values), 1),
    }


def peak_mib():
    """Returns the largest memory of this process so far, in MiB."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts in bytes, Linux in KiB.
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def measure(asked):
    """Measures one thing; `asked` says what, and how many cores it has."""
    if hasattr(os, "sched_setaffinity"):
        # Before TensorFlow is imported, which counts cores once.
        own = sorted(os.sched_getaffinity(0))[: asked["cores"]]
        os.sched_setaffinity(0, own)
    import tensorflow as tf

    from audio_tf import data, models  # noqa: F401

    tf.constant(0.0)  # What TensorFlow takes at its first use is no one's.
    scratch = pathlib.Path(asked["scratch"])
    what, repeats = asked["what"], asked["repeats"]
    if what == "tfio":
        return measure_tfio(scratch, repeats)
    if what == "training":
        return measure_training(repeats, asked["steps"])
    return measure_epochs(scratch, what, repeats, asked["batches"])


def in_process(asked):
    """Returns what `measure` returns in a process of its own."""
    print(f"{asked['what']}, cores: {asked['cores']}", file=sys.stderr)
    done = subprocess.run(
        [sys.executable, __file__, "--measure", json.dumps(asked)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


# === Report ===


def report(arguments, scratch):
    """Measures all and returns what is printed."""
    import keras
    import tensorflow as tf

    from audio_tf.corpora import write_synthetic_corpus

    folder = arguments.audio
    if folder is None:
        folder = scratch / "synthetic"
        write_synthetic_corpus(folder, progress=False)
    sources = find_files(folder, arguments.limit)
    count, audio_s = write_files(scratch, sources, arguments.rate_hz)
    cores = arguments.cores
    if not hasattr(os, "sched_setaffinity"):
        cores = [os.cpu_count()]
    common = {
        "scratch": str(scratch),
        "repeats": arguments.repeats,
        "batches": arguments.batches,
        "steps": arguments.steps,
    }
    found = {
        "files": count,
        "audio_s": round(audio_s),
        "rate_hz": arguments.rate_hz,
        "x_realtime": {
            kind: {
                f"{each} cores": in_process(
                    {**common, "what": kind, "cores": each}
                )
                for each in cores
            }
            for kind in KINDS
            if (scratch / kind).is_dir()
        },
    }
    if not (scratch / "tfds").is_dir():
        found["tfds"] = "skipped: tensorflow-datasets cannot be imported here"
    most = {**common, "cores": cores[-1]}
    if importlib.util.find_spec("tensorflow_io"):
        found["tfio"] = in_process({**most, "what": "tfio"})
    else:
        found["tfio"] = (
            "skipped: tensorflow-io is not installed here; --help says how"
        )
    found["training_chunks_per_s"] = in_process({**most, "what": "training"})
    found["targets"] = targets(found, f"{cores[-1]} cores")
    return {
        **found,
        "cores": os.cpu_count(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }


def targets(found, cores):
    """Compares the figures with what is wanted of them."""
    of_kinds = {kind: rows[cores] for kind, rows in found["x_realtime"].items()}
    training = found["training_chunks_per_s"]["median"]
    rows = {
        "batches_from_the_cache": (
            statistics.median(
                each["batches"]["median"] for each in of_kinds.values()
            ),
            WANTED_BATCHES,
        )
    }
    if "soundfile_to_tfio" in found["tfio"]:
        rows["flac_soundfile_to_tfio"] = (
            found["tfio"]["soundfile_to_tfio"],
            WANTED_TFIO,
        )
    compared = {
        name: {"measured": value, "wanted": wanted, "met": value >= wanted}
        for name, (value, wanted) in rows.items()
    }
    # Chunks are 1 s, so real time and chunks per second compare.
    for kind, row in of_kinds.items():
        ratio = row["first_epoch"] / training
        compared[f"first_epoch_of_{kind}_to_training"] = round(ratio, 2)
    return compared


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--audio", help="folder of audio files")
    parser.add_argument("--limit", type=int, default=300, help="files at most")
    parser.add_argument(
        "--rate-hz",
        type=int,
        default=SAMPLE_RATE_HZ,
        help="rate of the files; another than %(default)d is resampled",
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--batches", type=int, default=1_000, help="batches that are timed"
    )
    parser.add_argument(
        "--steps", type=int, default=20, help="steps of training"
    )
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if arguments.measure:
        print(json.dumps(measure(json.loads(arguments.measure))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(report(arguments, pathlib.Path(scratch)), indent=2))


if __name__ == "__main__":
    main()
