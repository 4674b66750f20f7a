"""`audio-tf explain` as a user types it, on a model of a few weights."""

import json
import os
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip(
        "the command line reads through tf.data", allow_module_level=True
    )

from audio_tf import analysis, cli, files
from audio_tf.analysis import figures
from audio_tf.cli import explain
from audio_tf.export import classifiers
from audio_tf.models import AudioClassifier, explaining


@pytest.fixture(scope="module")
def classifier():
    keras.utils.set_random_seed(5)
    return tiny.eager(
        AudioClassifier(tiny.backbone(), labels=["dog", "rain"], chunk_s=0.1)
    )


@pytest.fixture
def command(classifier, tmp_path, rng, monkeypatch):
    """A function that explains a good file and a bad one, and its folder."""
    monkeypatch.setattr(classifiers, "load_trained", lambda name: classifier)
    audio = rng.uniform(-0.5, 0.5, 2 * tiny.RATE_HZ // 10)
    good, bad = tmp_path / "good.wav", tmp_path / "bad.wav"
    soundfile.write(good, audio, tiny.RATE_HZ, subtype="FLOAT")
    bad.write_bytes(b"no sound")

    def run(*more, files=(good, bad)):
        return cli.main(["explain", *files, "--model", "any", *more])

    return run, tmp_path


def test_json_is_what_python_gives(command, classifier, capsys):
    run, folder = command
    flags = ["--label", "dog", "--patch-s", "0.05", "--bands", "3"]
    pictures = folder / "pictures"
    status = run("--json", *flags, "--pictures", pictures)
    printed, said = capsys.readouterr()
    assert status == 1 and "bad.wav: not readable as audio" in said
    (line,) = printed.splitlines()
    found, file = json.loads(line), str(folder / "good.wav")
    assert found.pop("picture") == str(pictures / "good.png")
    expected = classifier.explain(file, "dog", patch_s=0.05, bands=3)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        same = np.testing.assert_array_equal
        same(found[key], value, err_msg=key)
    assert (pictures / "good.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(pictures.iterdir())) == 1


def test_lines_are_of_the_largest_weights(command, classifier, capsys):
    run, folder = command
    file = folder / "good.wav"
    flags = ("--method", "occlusion", "--bands", "2", "--show", "1")
    assert run(*flags, files=[file]) == 0
    first, second = capsys.readouterr().out.splitlines()
    found = classifier.explain(file, method="occlusion", bands=2)
    assert first.startswith(f"{file}: {found['label']} {found['score']:.3f}")
    weights = found["weights"]
    time, band = np.unravel_index(np.abs(weights).argmax(), weights.shape)
    low, high = found["frequency_hz"][band : band + 2]
    assert (
        second.split()
        == (
            f"{weights[time, band]:+.3f} {found['time_s'][time]:.2f} to "
            f"{found['time_s'][time + 1]:.2f} s {low:.0f} to {high:.0f} Hz"
        ).split()
    )


def test_pictures_have_names_that_every_disk_tells_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "save", lambda drawn, path: None)
    monkeypatch.setattr(analysis, "draw_explanation", lambda *_: None)
    draw = explain.Pictures(tmp_path / "new", 8_000)
    names = []
    for name in ("a/Dog.wav", "b/dog.wav", "b/dog_2.wav", "c/DOG.wav"):
        source = types.SimpleNamespace(name=name, load=lambda rate_hz: None)
        names.append(os.path.basename(draw(source, {})))
    assert names == ["Dog.png", "dog_2.png", "dog_2_2.png", "DOG_3.png"]


def test_pictures_of_the_longest_names_can_be_written(tmp_path, monkeypatch):
    """Sounds may have all of the 255 bytes that a name has room for."""
    monkeypatch.setattr(analysis, "draw_explanation", lambda *_: None)

    def save(drawn, path):
        with files.whole_file(path) as new:
            new.touch()

    monkeypatch.setattr(figures, "save", save)
    draw = explain.Pictures(tmp_path, 8_000)
    for name in ("a/" + "x" * 251 + ".wav", "b/" + "x" * 251 + ".wav"):
        draw(types.SimpleNamespace(name=name, load=lambda rate_hz: None), {})
    arabic = "\u0639" * 125 + ".wav"
    draw(types.SimpleNamespace(name=arabic, load=lambda rate_hz: None), {})
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == [
        "x" * 230 + ".png",
        "x" * 230 + "_2.png",
        "\u0639" * 115 + ".png",
    ]


def test_what_is_wrong_is_one_line(command, capsys):
    run, _ = command
    assert run("--label", "rian") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "did you mean 'rain'" in line
    assert run("--strict") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "bad.wav: not readable" in line
    assert run("--show", "3", "--json") == 2
    assert "--show means nothing without text" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("--method", "oclusion")
    assert "did you mean 'occlusion'" in capsys.readouterr().err


def test_the_flag_has_all_methods():
    assert explain.METHODS == tuple(explaining.METHODS)


@pytest.mark.long
def test_tensorflow_is_loaded_in_silence(tmp_path):
    """Whatever it logs would stand above the line that matters."""
    clip = tmp_path / "clip.wav"
    soundfile.write(clip, np.zeros(800), 8_000)
    environment = {**os.environ}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    done = subprocess.run(
        [sys.executable, "-m", "audio_tf.cli", "explain"]
        + [str(clip), "--model", "nowhere"],
        env=environment,
        capture_output=True,
        text=True,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("audio-tf explain: --model is no preset")
