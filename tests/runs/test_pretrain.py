"""training/pretrain.py, run as a user runs it, on corpora of seconds."""

import csv
import json

import keras
import numpy as np
import pytest
import soundfile
from scripts import kill_once_there, run

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

from audio_tf import models, optimizers
from audio_tf.runs import callbacks, pretrain

TINY = {
    "num_heads": 2,
    "key_dim": 4,
    "hidden_dim": 8,
    "intermediate_dims": [8],
    "dropout": 0.1,
}
COMMON = [
    *("--dataset", "folder", "--sample-rate-hz", 8000),
    *("--features", "s3prl", "--target", "input", "--masking", "s3prl"),
    *(
        "--features-options",
        json.dumps({"num_mel_bins": 13, "fft_length": 256}),
    ),
    *("--model", "audio_albert_3", "--model-kwargs", json.dumps(TINY)),
    *(
        "--feature-cache",
        "--batch-size",
        6,
        "--buckets",
        2,
        "--learning-rate",
        0.1,
    ),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Chirps of unequal length, and a file that is not audio."""
    folder = tmp_path_factory.mktemp("speech")
    rng = np.random.default_rng(5)
    for number in range(30):
        speaker = folder / f"speaker{number % 3}"
        speaker.mkdir(exist_ok=True)
        time_s = np.arange(rng.integers(3_000, 7_000)) / 8_000
        rate_hz = rng.uniform(200, 1_000)
        chirp = np.sin(2 * np.pi * rate_hz * time_s * (1 + time_s))
        soundfile.write(speaker / f"{number}.wav", 0.3 * chirp, 8_000)
    (folder / "speaker2" / "bad.wav").write_text("no sound at all")
    return folder


def trained(out):
    model = keras.saving.load_model(out / "last.keras")
    assert isinstance(model.optimizer, optimizers.Lamb)
    return model


def assert_equal_runs(one, other, atol=1e-6):
    for a, b in zip(
        trained(one).get_weights(), trained(other).get_weights(), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=atol)


def losses(out, column="loss"):
    with open(out / "history.csv") as file:
        return [float(row[column]) for row in csv.DictReader(file)]


def test_killed_and_resumed_equals_unbroken(corpus, tmp_path):
    """Checkpoints are not at the end of a pass, masks and dropout random."""
    arguments = ["--data-dir", corpus, *COMMON, "--attention", "xbox"]
    arguments += ["--steps", 60, "--save-every", 3, "--accumulate", 2]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    output = run("pretrain.py", *arguments, "--out", whole, cache=tmp_path)
    assert "1 files left out" in output and "bad.wav" in output
    # No update was left out.
    assert (
        int(trained(whole).optimizer.iterations) == 60
        and len(losses(whole)) == 20
    )

    kill_once_there(
        broken / "last.keras",
        *("pretrain.py", *arguments, "--out", broken),
        cache=tmp_path,
    )
    stopped = trained(broken)
    assert 0 < int(stopped.optimizer.iterations) < 60
    refused = run(
        *("pretrain.py", *arguments, "--out", broken),
        cache=tmp_path,
        fails=True,
    )
    assert "--resume" in refused
    run("pretrain.py", "--out", broken, "--resume", cache=tmp_path)
    assert_equal_runs(whole, broken)
    assert losses(broken) == pytest.approx(losses(whole), abs=1e-5)
    assert losses(broken, "val_loss") == pytest.approx(
        losses(whole, "val_loss"), abs=1e-5
    )

    # What is left behind: an encoder, how it came to be, and pictures.
    encoder = models.AudioBackbone.from_preset(str(broken / "preset"))
    backbone = trained(broken).backbone
    for a, b in zip(
        encoder.encoder.get_weights(), backbone.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    origin = json.loads((broken / "preset" / "provenance.json").read_text())
    assert origin["settings"]["attention"] == "xbox"
    assert list((broken / "logs" / "pictures").glob("events.out.tfevents.*"))


def test_features_in_the_pipeline_equal_cached_ones(corpus, tmp_path):
    """With the paper's target, which has other features than the input."""
    arguments = ["--data-dir", corpus, *COMMON, "--target", "spectrogram"]
    arguments += ["--steps", 6, "--save-every", 3, "--buckets", 1]
    cached, computed = tmp_path / "cached", tmp_path / "computed"
    run("pretrain.py", *arguments, "--out", cached, cache=tmp_path)
    run(
        *("pretrain.py", *arguments, "--no-feature-cache", "--out", computed),
        cache=tmp_path,
    )
    # A graph rounds otherwise than single operations.
    assert_equal_runs(cached, computed, atol=1e-4)
    model = trained(cached)
    assert model.target_dim == 129


@pytest.mark.parametrize(
    "precision",
    [
        pytest.param("mixed_bfloat16", marks=pytest.mark.slow),
        "mixed_float16",
    ],
)
def test_mixed_precision_resumes(precision, corpus, tmp_path):
    arguments = ["--data-dir", corpus, *COMMON, "--precision", precision]
    arguments += ["--save-every", 2, "--steps", 100]
    out = tmp_path / "run"
    kill_once_there(
        out / "last.keras",
        *("pretrain.py", *arguments, "--out", out),
        cache=tmp_path,
    )
    model = keras.saving.load_model(out / "last.keras")
    assert model.backbone.blocks[0].compute_dtype == precision[6:]
    run(*("pretrain.py", *arguments, "--out", out, "--resume"), cache=tmp_path)
    assert len(losses(out)) == 50 and np.isfinite(losses(out)).all()
    # But for updates whose gradients overflow, which float16 leaves out.
    assert callbacks.epochs_done(out / "last.keras") == 50


def test_librispeech_from_its_released_layout(shared_data, tmp_path):
    """Six utterances prove the path alone."""
    out = tmp_path / "run"
    small = {**TINY, "hidden_dim": 32, "dropout": 0.0}
    output = run(
        *("pretrain.py", "--dataset", "librispeech", "--optimizer", "adamw"),
        *("--data-dir", shared_data / "LibriSpeech"),
        *("--train-subsets", "train-clean-100", "--val-subsets", "dev-clean"),
        *("--model-kwargs", json.dumps(small), "--learning-rate", 0.01),
        *("--steps", 4, "--save-every", 2, "--batch-size", 2),
        *("--out", out),
        cache=tmp_path,
    )
    assert "train: 4 utterances" in output and "val: 2 utterances" in output
    model = keras.saving.load_model(out / "last.keras")
    assert int(model.optimizer.iterations) == 4
    for column in ("loss", "val_loss"):
        assert np.isfinite(losses(out, column)).all()
    encoder = models.AudioBackbone.from_preset(str(out / "preset"))
    assert encoder.features.frame_size == 600


def test_what_diverges_is_not_kept(corpus, tmp_path):
    arguments = ["--data-dir", corpus, *COMMON, "--optimizer", "adamw"]
    out = tmp_path / "run"
    output = run(
        *("pretrain.py", *arguments, "--learning-rate", 1e30),
        *("--steps", 40, "--save-every", 20, "--out", out),
        cache=tmp_path,
        fails=True,
    )
    assert "NaN" in output
    assert not (out / "last.keras").exists() and not (out / "preset").exists()


def test_killed_before_its_first_checkpoint(corpus, tmp_path):
    arguments = ["--data-dir", corpus, *COMMON, "--steps", 2]
    out = tmp_path / "run"
    kill_once_there(
        out / "config.json",
        *("pretrain.py", *arguments, "--save-every", 2, "--out", out),
        cache=tmp_path,
    )
    assert not (out / "last.keras").exists()
    # As Keras leaves it that was killed before its first row.
    (out / "history.csv").write_text("")
    run("pretrain.py", "--out", out, "--resume", cache=tmp_path)
    assert len(losses(out)) == 1 and (out / "preset").is_dir()

    # With other settings, or other data, it would be another run.
    for flags in (["--steps", 4], ["--attention", "xbox"]):
        output = run(
            *("pretrain.py", "--out", out, "--resume", *flags),
            cache=tmp_path,
            fails=True,
        )
        assert "goes on with the settings" in output
    other = tmp_path / "other"
    other.mkdir()
    for number in range(9):
        soundfile.write(other / f"{number}.wav", np.ones(3_000) / 9, 8_000)
    output = run(
        *("pretrain.py", "--out", out, "--resume", "--data-dir", other),
        cache=tmp_path,
        fails=True,
    )
    assert "The corpus is not the one" in output and "removed" in output
    assert len(output.splitlines()) == 1


@pytest.fixture
def refusal(monkeypatch, tmp_path, capsys):
    """The one line that the script ends with that must fail."""
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "cache"))

    def refuse(*arguments):
        with pytest.raises(SystemExit) as stopped:
            pretrain.main(list(map(str, arguments)))
        said = capsys.readouterr().err + f"{stopped.value.code}"
        return said.strip().removesuffix("\n2")

    return refuse


def test_mistakes_are_named(corpus, refusal, tmp_path):
    table = ["--attention", "random_synthesizer", "--made-for-frames", 20]
    source, out = ["--data-dir", corpus, *COMMON], tmp_path / "run"
    for flags, named in (
        (["--steps", 7, "--save-every", 3], "--save-every must divide"),
        (["--batch-size", 5, "--accumulate", 2], "--accumulate must divide"),
        (["--resume"], "nothing to resume"),
        (
            [*("--accumulate", 2), *("--distribution", "data_parallel")],
            "one device only",
        ),
        ([], "--data-dir is needed"),
        ([*source, *table], "The longest utterance has"),
        ([*source, "--attention", "half"], "--attention must be one of"),
        (
            [*source, "--attention", "gaussian_adaptive", "--causal"],
            "--causal",
        ),
        (
            [*source, "--attention-kwargs", '{"strid": 3}'],
            "--attention-kwargs: ",
        ),
        (
            [
                *(*source, "--batch-size", 40, "--steps", 1000),
                *("--distribution", "data_parallel"),
            ],
            "No batch of 40 is full",
        ),
    ):
        line = refusal(*flags, "--out", out)
        assert named in line and "\n" not in line, line
    assert not out.exists()


def test_attentions_are_compared_with_equal_causality(
    corpus, tmp_path, monkeypatch
):
    """`--causal` reaches the blocks, and each record says what came out."""
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "cache"))
    for flags, causal in (([], False), (["--causal"], True)):
        out = tmp_path / f"{causal}"
        arguments = ["--data-dir", corpus, *COMMON, *flags]
        arguments += ["--attention", "sparse_strided", "--steps", 1]
        arguments += ["--save-every", 1, "--made-for-frames", 81]
        pretrain.main([*map(str, arguments), "--out", str(out)])
        for file in ("config.json", "preset/provenance.json"):
            model = json.loads((out / file).read_text())["model"]
            assert model["causal"] is causal
            assert model["made_for_frames"] == 81
        backbone = trained(out).backbone
        assert backbone.causal is causal
        assert backbone.blocks[0].attention.stride == 9
