"""Pre-training: frames per second, what input costs, `full` against others.

    python benchmarks/pretraining.py              # the paper's size, on noise
    python benchmarks/pretraining.py --config training/configs/fsdd_ssl.py \\
        --data-dir fsdd                           # a corpus of one's own

Without a corpus, utterances of noise of --seconds stand in for speech, since
only their lengths matter here; the default makes the paper's 500 frames.
Settings, batches and model are made by `audio_tf.runs.pretrain`.
Ratios are medians over steps that the attentions take in turn, in one process;
peak memory is what training adds to a process of each one's own.

- step: a training step on a batch that is in memory;
- fed: the same out of the pipeline, features from the cache or computed from
  the waveform with each batch; its loss is 1 - step / fed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import soundfile  # noqa: E402
from attention import peak_mib, resident_mib  # noqa: E402

from audio_tf.runs import pretrain, pretrain_batches  # noqa: E402
from audio_tf.runs.flags import read_config  # noqa: E402

# Settings of pre-training that bear on the cost of one step.
PAPER = {
    "dataset": "folder",
    "features": "paper",
    "target": "spectrogram",
    "batch_size": 2,
    "buckets": 1,
    # Tables as long as what is trained on.
    "made_for_frames": 500,
}


def write_noise(folder, count, seconds):
    rng = np.random.default_rng(0)
    for number in range(count):
        noise = 0.1 * rng.standard_normal(round(seconds * 16_000))
        soundfile.write(folder / f"{number}.flac", noise, 16_000)


def make_settings(arguments, attention, **changes):
    config = PAPER
    if arguments.config is not None:
        config = read_config(arguments.config, pretrain.PretrainSettings)
    return pretrain.PretrainSettings(
        **{
            **config,
            "data_dir": arguments.data_dir,
            "cache_dir": arguments.cache_dir,
            "attention": attention,
            **changes,
        }
    )


def make_batches(settings):
    clips = settings.prepare(settings.load()["train"], "train")
    return pretrain_batches.Batches(clips, settings)


def as_numpy(batch):
    parts = batch if isinstance(batch, tuple) else (batch,)
    return [
        {name: value.numpy() for name, value in part.items()}
        if isinstance(part, dict)
        else part.numpy()
        for part in parts
    ]


def frames_of(batch, settings):
    """Returns the real spectra of a batch; a frame may stack several."""
    stack = settings.feature_layer().stacking.size
    return stack * int(np.sum(batch[0]["lengths"]))


def timed(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def measure_steps(arguments):
    """Measures steps on the same batches; the attentions take turns."""
    models, taken = {}, {}
    for name in arguments.attentions:
        settings = make_settings(arguments, name)
        models[name] = pretrain.build(settings)
        taken[name] = []
    batches = make_batches(settings)
    dataset = batches.training(0)
    held = [as_numpy(each) for each in dataset.take(arguments.repeats)]
    for name, model in models.items():
        # Each shape is traced once.
        for width in {
            each[0]["features"].shape: each for each in held
        }.values():
            model.train_on_batch(*width)
    for batch in held:
        for name, model in models.items():
            taken[name].append(timed(model.train_on_batch, *batch))
    frames = [frames_of(batch, settings) for batch in held]
    baseline = arguments.attentions[0]
    rows = {}
    for name in models:
        rows[name] = {
            "step_s": statistics.median(taken[name]),
            "frames_per_s": sum(frames) / sum(taken[name]),
            "ratio": statistics.median(
                ours / full
                for ours, full in zip(taken[name], taken[baseline], strict=True)
            ),
        }
        for fed, cached in (("cached", True), ("computed", False)):
            settings = make_settings(
                arguments, name, feature_cache=cached, jit_compile=False
            )
            source = iter(make_batches(settings).training(0))
            next(source)

            def run(source=source, model=models[name]):
                for _ in range(len(held)):
                    model.train_on_batch(*as_numpy(next(source)))

            def again(model=models[name]):
                for batch in held:
                    model.train_on_batch(*batch)

            # In turn, so that what else the machine does meets both.
            pairs = [(timed(run), timed(again)) for _ in range(3)]
            rows[name][f"{fed}_loss"] = statistics.median(
                1.0 - alone / with_input for with_input, alone in pairs
            )
    return rows


def measure_memory(arguments, attention):
    """Returns the MiB that a few training steps add to this process."""
    settings = make_settings(arguments, attention)
    batch = as_numpy(next(iter(make_batches(settings).training(0))))
    keras.ops.matmul(
        batch[0]["features"],
        np.ones((batch[0]["features"].shape[-1], 8), "float32"),
    )
    before = resident_mib()
    model = pretrain.build(settings)
    for _ in range(3):
        model.train_on_batch(*batch)
    return peak_mib() - before


def memory_of_its_own(attention, argv):
    done = subprocess.run(
        [sys.executable, __file__, *argv, "--memory-of", attention],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", help="settings of audio-tf pretrain")
    parser.add_argument("--data-dir", help="folder of the corpus")
    parser.add_argument("--cache-dir", help="folder of audio and features")
    parser.add_argument(
        "--attentions", nargs="+", default=["full", "crafted_synthesizer"]
    )
    parser.add_argument("--seconds", type=float, default=18.76)
    parser.add_argument("--repeats", type=int, default=9, help="steps timed")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.cache_dir is None:
            arguments.cache_dir = f"{folder}/cache"
        if arguments.data_dir is None:
            arguments.data_dir = f"{folder}/noise"
            pathlib.Path(arguments.data_dir).mkdir()
            write_noise(pathlib.Path(arguments.data_dir), 10, arguments.seconds)
        if arguments.memory_of is not None:
            print(measure_memory(arguments, arguments.memory_of))
            return
        argv = ["--data-dir", arguments.data_dir]
        argv += ["--cache-dir", arguments.cache_dir]
        if arguments.config is not None:
            argv += ["--config", arguments.config]
        memory = {
            name: memory_of_its_own(name, argv) for name in arguments.attentions
        }
        rows = measure_steps(arguments)
    baseline = memory[arguments.attentions[0]]
    for name, row in rows.items():
        row["training_mib"] = memory[name]
        row["memory_ratio"] = memory[name] / baseline
        print(json.dumps({"attention": name, **row}), flush=True)


if __name__ == "__main__":
    main()
