"""The training scripts, run as a user runs them, on corpora of seconds."""

import csv
import importlib
import json
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

from scripts import TRAINING, kill_once_there, run

from audio_tf import data
from audio_tf.models import AudioClassifier

TINY = json.dumps(
    {
        "num_layers": 1,
        "num_heads": 2,
        "key_dim": 4,
        "embedding_dim": 8,
        "feed_forward_dims": [8],
        "frontend_filters": 16,
        "sample_rate_hz": 8000,
    }
)
COMMON = ["--model-kwargs", TINY, "--chunk-s", "0.1", "--batch-size", "8"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A CSV corpus of two tones; one file of it is not audio."""
    folder = tmp_path_factory.mktemp("corpus")
    rows = [["filename", "labels", "split"]]
    rng = np.random.default_rng(3)
    for number in range(30):
        kind = number % 2
        time_s = np.arange(2_000) / 8_000
        tone = np.sin(
            2 * np.pi * (300, 1_500)[kind] * time_s + rng.uniform(0, 6)
        )
        name = f"{number}.wav"
        soundfile.write(folder / name, 0.5 * tone, 8_000)
        split = "test" if number > 25 else "val" if number > 21 else "train"
        rows.append([name, ("low", "high")[kind], split])
    (folder / "bad.wav").write_text("no sound at all")
    rows.append(["bad.wav", "low", "train"])
    with open(folder / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "list.csv"


def test_train_evaluate_and_classify(corpus, tmp_path):
    out = tmp_path / "run"
    source = ["--dataset", "csv", "--data-dir", corpus]
    training = [*source, *COMMON, "--epochs", 25, "--learning-rate", 0.02]
    output = run(
        "train.py", *training, "--out", out, "--export", cache=tmp_path
    )
    assert "1 files left out" in output and "bad.wav" in output

    report = json.loads((out / "test.json").read_text())
    assert report["accuracy"] == 1.0 and report["num_clips"] == 4
    with open(out / "history.csv") as file:
        history = list(csv.DictReader(file))
    assert len(history) == 25 and float(history[-1]["val_mAP"]) == 1.0
    assert list((out / "logs").rglob("events.out.tfevents.*"))
    origin = json.loads((out / "preset" / "provenance.json").read_text())
    assert origin["settings"]["seed"] == 0
    assert origin["corpus"]["train"]["files"] == 22
    assert origin["labels"] == ["high", "low"]

    for model in (out / "preset", out / "saved_model"):
        evaluated = tmp_path / "evaluated.json"
        run(
            "evaluate.py",
            *("--model", model, *source, "--out", evaluated),
            cache=tmp_path,
        )
        again = json.loads(evaluated.read_text())
        assert again["mAP"] == pytest.approx(report["mAP"], abs=1e-6)
        assert set(again["per_class"]) == {"low", "high"}

    refused = run(
        "train.py", *training, "--out", out, cache=tmp_path, fails=True
    )
    assert "--resume" in refused


def test_killed_and_resumed_equals_unbroken(corpus, tmp_path):
    arguments = ["--dataset", "csv", "--data-dir", corpus, *COMMON]
    arguments += ["--epochs", "60", "--dropout", "0.3", "--jitter"]
    arguments += ["--schedule", "cosine", "--warmup-epochs", "2"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run("train.py", *arguments, "--out", whole, cache=tmp_path)

    kill_once_there(
        broken / "last.keras",
        *("train.py", *arguments, "--out", broken),
        cache=tmp_path,
    )
    stopped = keras.saving.load_model(broken / "last.keras")
    assert 0 < int(stopped.optimizer.iterations) < 60 * 6

    run("train.py", "--out", broken, "--resume", cache=tmp_path)
    one, other = (
        keras.saving.load_model(folder / "last.keras")
        for folder in (whole, broken)
    )
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    epochs = [
        [row["epoch"] for row in csv.DictReader(open(folder / "history.csv"))]
        for folder in (whole, broken)
    ]
    assert epochs[0] == epochs[1] == [str(i) for i in range(60)]


def test_config_file_and_its_mistakes(tmp_path):
    config = tmp_path / "config.py"
    config.write_text("def get_config():\n    return {'epoch': 3}\n")
    output = run("train.py", "--config", config, cache=tmp_path, fails=True)
    assert "unknown settings" in output and "['epoch']" in output
    output = run(
        *("train.py", "--resume", "--out", tmp_path / "none"),
        cache=tmp_path,
        fails=True,
    )
    assert "nothing to resume" in output


def test_every_config_of_the_repository_is_known(monkeypatch):
    from audio_tf.settings import read_config

    monkeypatch.syspath_prepend(TRAINING)
    configs = sorted((TRAINING / "configs").glob("*.py"))
    assert configs
    for config in configs:
        name = f"training/configs/{config.name}"
        script = re.search(
            rf"python training/(\w+)\.py --config {name}", config.read_text()
        )[1]
        module = importlib.import_module(script)
        settings_class = getattr(module, f"{script.capitalize()}Settings")
        assert settings_class(**read_config(config, settings_class))


def test_fsd50k_from_its_released_layout(shared_data, tmp_path):
    """Real clips in FSD50K's folders, through the code that reads FSD50K."""
    corpus = tmp_path / "FSD50K"
    maker = shared_data / "make_fsd50k_mini.py"
    subprocess.run([sys.executable, maker, corpus], check=True)
    source = ["--dataset", "fsd50k", "--data-dir", corpus]
    out = tmp_path / "run"
    run(
        *("train.py", *source, "--model-kwargs", TINY, "--epochs", 1),
        *("--out", out),
        cache=tmp_path,
    )
    model = AudioClassifier.from_preset(str(out / "preset"))
    assert model.num_classes == 200 and model.labels[14] == "Bird"
    output = run(
        *("evaluate.py", "--model", out / "preset", *source),
        cache=tmp_path,
    )
    assert "num_clips" in output and "80" in output
    assert len(data.read_fsd50k(corpus)["test"]) == 80
