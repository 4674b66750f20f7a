"""`audio-tf` as a user types it."""

import json

import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip(
        "the command line reads through tf.data", allow_module_level=True
    )

from audio_tf import attention, cli, export
from audio_tf.models import AudioClassifier, AudioTransformerBackbone

LABELS = ["dog", "rain", "siren"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One classifier, as a preset and as a SavedModel."""
    top = tmp_path_factory.mktemp("models")
    backbone = tiny.backbone(sample_rate_hz=8_000)
    classifier = AudioClassifier(backbone, labels=LABELS, chunk_s=0.5)
    classifier.save_to_preset(str(top / "preset"))
    export.export(classifier, top / "served")
    return classifier, {"preset": top / "preset", "served": top / "served"}


@pytest.fixture
def clip(tmp_path, rng):
    file = tmp_path / "clip.wav"
    audio = rng.uniform(-0.5, 0.5, 8_000)
    soundfile.write(file, audio, 8_000, subtype="FLOAT")
    return file


@pytest.mark.parametrize("kind", ["preset", "served"])
def test_classify_prints_the_top_labels(kind, folders, clip, capsys):
    classifier, models = folders
    arguments = ["classify", str(clip), "--model", str(models[kind])]
    assert cli.main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    audio, _ = soundfile.read(clip, dtype="float32")
    expected = np.mean(classifier(audio.reshape(2, 4_000)), axis=0)
    assert found["file"] == str(clip)
    assert list(found["scores"]) == [
        LABELS[i] for i in expected.argsort()[::-1]
    ]
    for label, score in found["scores"].items():
        assert score == pytest.approx(expected[LABELS.index(label)], abs=1e-5)

    assert cli.main([*arguments, "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(clip) and len(lines) == 3
    best = int(expected.argmax())
    assert lines[1].split() == [f"{expected[best]:.3f}", LABELS[best]]


def test_a_bad_file_is_named_and_the_others_scored(folders, clip, capsys):
    bad = clip.with_name("bad.wav")
    bad.write_text("no sound")
    arguments = ["classify", str(clip), str(bad), "--json"]
    arguments += ["--model", str(folders[1]["preset"])]
    assert cli.main(arguments) == 1
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 1 and str(clip) in output.out
    assert "1 files left out" in output.err and str(bad) in output.err
    assert cli.main([*arguments, "--strict"]) == 2
    assert str(bad) in capsys.readouterr().err


@pytest.mark.parametrize(
    "model, message",
    [
        ("nowhere", "nowhere"),
        ("audio_transformer_small", "without trained weights"),
    ],
)
def test_a_missing_model_is_named(model, message, clip, capsys):
    assert cli.main(["classify", str(clip), "--model", model]) == 2
    assert message in capsys.readouterr().err


def test_export_writes_the_next_version(folders, tmp_path, capsys):
    preset = str(folders[1]["preset"])
    for version in ("1", "2"):
        assert cli.main(["export", str(tmp_path), "--model", preset]) == 0
        assert capsys.readouterr().out.strip() == str(tmp_path / version)
    assert (tmp_path / "2" / "saved_model.pb").is_file()


def test_presets_lists_every_size(capsys):
    assert cli.main(["presets"]) == 0
    output = capsys.readouterr().out
    for size in AudioTransformerBackbone.sizes:
        assert size in output
    assert "974,272" in output


def test_attentions_are_listed_with_their_cost(capsys):
    assert cli.main(["attentions"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["name", "complexity", "causal"]
    assert [line.split()[0] for line in lines] == list(attention.ATTENTIONS)
    assert "O(L^1.5 D)" in lines[2] and lines[0].split()[-3] == "1.00"

    sizes = ["--length", "300", "--dim", "24", "--num-heads", "4"]
    assert cli.main(["attentions", "--json", "--training", *sizes]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    full = attention.create("full", num_heads=4, key_dim=6, causal=False)
    full = full.cost(300, 24, True)
    assert rows[0] == {
        "name": "full",
        "complexity": "O(L^2 D)",
        "causal": True,
        "multiply_adds": full.multiply_adds,
        "weight_bytes": full.weight_bytes,
    }
    assert [row["name"] for row in rows] == list(attention.ATTENTIONS)


def test_attentions_names_a_wrong_size(capsys):
    assert cli.main(["attentions", "--dim", "25"]) == 2
    assert "--num-heads must divide --dim" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["attentions", "--length", "0"])
    assert "positive integer" in capsys.readouterr().err
