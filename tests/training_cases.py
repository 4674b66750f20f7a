"""Corpora and models of seconds, for tests of training."""

import csv
import json

import numpy as np
import soundfile

from audio_tf.runs import checkpoints, train, train_data, train_model

TINY = json.dumps(
    {
        "num_layers": 1,
        "num_heads": 2,
        "key_dim": 4,
        "hidden_dim": 8,
        "intermediate_dims": [8],
        "frontend_filters": 16,
        "sample_rate_hz": 8000,
    }
)
TINY_MEL = json.dumps(
    {
        "num_layers": 1,
        "num_heads": 2,
        "key_dim": 5,
        "hidden_dim": 12,
        "intermediate_dims": [7],
        "frontend_filters": 8,
        "sample_rate_hz": 8000,
    }
)
COMMON = ["--recipe", "paper", "--model-kwargs", TINY]
COMMON += ["--chunk-s", "0.1", "--batch-size", "8"]


def write_tones(folder):
    """Writes a CSV corpus of two tones; one file of it is not audio."""
    rows = [["filename", "labels", "split"]]
    rng = np.random.default_rng(3)
    for number in range(30):
        kind = number % 2
        write_tone(folder / f"{number}.wav", (300, 1_500)[kind], rng)
        split = "test" if number > 25 else "val" if number > 21 else "train"
        rows.append([f"{number}.wav", ("low", "high")[kind], split])
    (folder / "bad.wav").write_text("no sound at all")
    rows.append(["bad.wav", "low", "train"])
    with open(folder / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "list.csv"


def write_tone(path, rate_hz, rng, samples=2_000):
    time_s = np.arange(samples) / 8_000
    tone = np.sin(2 * np.pi * rate_hz * time_s + rng.uniform(0, 6))
    soundfile.write(path, 0.5 * tone, 8_000)


def fit_nothing(settings, classifier, chunks, out, teachers, share, bank):
    """Leaves the checkpoint of a run as `train.fit` does, untrained."""
    if not (out / "last.keras").is_file():
        train.compile(classifier, settings, 1, False)
        last = checkpoints.LastCheckpoint(out / "last.keras")
        last.set_model(classifier)
        last.on_epoch_end(settings.epochs - 1)
    return classifier


def equal_weights(one, other):
    return all(
        np.array_equal(a, b)
        for a, b in zip(one.get_weights(), other.get_weights(), strict=True)
    )


def built(corpus, tmp_path, **options):
    """Settings, a new classifier and the chunks of a run."""
    settings = train.TrainSettings(
        dataset="csv",
        data_dir=str(corpus),
        cache_dir=str(tmp_path / "cache"),
        recipe="paper",
        **{"model_kwargs": json.loads(TINY), "chunk_s": 0.1, **options},
    )
    corpora = settings.load()
    classifier = train_model.build(settings, corpora["train"])
    chunks, _ = train_data.load_chunks(settings, corpora, classifier)
    return settings, classifier, chunks


def class_folders(folder, names, per_class=10):
    """A folder of tones a class, of the class's own rate."""
    rng = np.random.default_rng(4)
    for index, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            rate_hz = 300 * (1 + index)
            write_tone(folder / name / f"{number}.wav", rate_hz, rng)
