"""`audio-tf query` as a user types it, against servers of ours."""

import io
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("an export is TensorFlow's", allow_module_level=True)

from audio_tf import cli
from audio_tf.client import address
from serving import grpc_server, process, rest_server, served

LABELS = ["dog", "rain", "siren"]


@pytest.fixture(scope="module")
def folder(shared_export):
    return shared_export.folder


@pytest.fixture(scope="module")
def model(folder):
    return served.Served(folder)


@pytest.fixture
def rest(model):
    server = rest_server.RestServer(model)
    yield server
    server.stop()


@pytest.fixture
def clip(tmp_path, rng):
    file = tmp_path / "clip.wav"
    audio = rng.uniform(-0.5, 0.5, 9_001)
    soundfile.write(file, audio, 8_000, subtype="FLOAT")
    return file


@pytest.mark.long
def test_query_prints_what_classify_prints(rest, folder, clip, capsys):
    """By REST and gRPC, with the labels of the export."""
    service = grpc_server.PredictionService(rest.model, address.MODEL_NAME)
    server, port = grpc_server.start(service)
    lines = []
    labels = ["--labels", str(folder / "assets.extra" / "audio_tf.json")]
    for arguments in (
        ["classify", "--model", str(folder), str(clip)],
        ["query", rest.url, str(clip), *labels],
        ["query", f"grpc://127.0.0.1:{port}", str(clip), *labels],
    ):
        assert cli.main([*arguments, "--top", "2"]) == 0
        lines.append(capsys.readouterr().out)
        assert cli.main([*arguments, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["file"] == str(clip) and set(found["scores"]) == {*LABELS}
    server.stop(0).wait()
    assert lines[0] == lines[1] == lines[2]
    assert lines[0].splitlines()[0] == str(clip)
    assert len(lines[0].splitlines()) == 3


@pytest.mark.costly
def test_query_sends_standard_input_as_a_file(rest, clip, capsys, monkeypatch):
    """WAV as it is, and any other format decoded, as from a file."""
    flac = clip.with_name("clip.flac")
    soundfile.write(flac, soundfile.read(clip)[0], 8_000)
    for file in (clip, flac):
        stdin = io.TextIOWrapper(io.BytesIO(file.read_bytes()))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cli.main(["query", rest.url, str(file), "-", "--json"]) == 0
        lines = capsys.readouterr().out.splitlines()
        first, second = map(json.loads, lines)
        assert (first["file"], second["file"]) == (str(file), "-")
        # Two rows of one batch need not be rounded alike.
        assert first["scores"] == pytest.approx(second["scores"], abs=1e-6)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no")))
    assert cli.main(["query", rest.url, str(clip), "-"]) == 1
    assert "-: not readable as audio" in capsys.readouterr().err


def test_classes_are_numbered_without_labels(rest, model, clip, capsys):
    assert cli.main(["query", rest.url, str(clip), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["scores"]
    outputs = model.run(
        "serving_audio_bytes", {"audio_bytes": [clip.read_bytes()]}
    )
    scores = [found[str(number)] for number in range(3)]
    np.testing.assert_allclose(scores, outputs["scores"][0], atol=1e-5)


def test_a_bad_file_is_named_and_the_others_scored(rest, clip, capsys):
    bad, lost = clip.with_name("bad.wav"), clip.with_name("lost.flac")
    bad.write_bytes(clip.read_bytes()[:2_000])
    files = [str(file) for file in (bad, clip, lost)]
    assert cli.main(["query", rest.url, *files, "--json"]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["file"] == str(clip)
    assert "2 files left out" in output.err
    assert f"{bad}: cut off" in output.err
    assert f"{lost}: no such file" in output.err


def test_the_servers_words_reach_the_user(rest, clip, capsys):
    arguments = ["query", rest.url, str(clip), "--signature", "sing"]
    assert cli.main([*arguments, "--model-name", "birds"]) == 1
    message = capsys.readouterr().err
    assert f"{clip}: {rest.url}/v1/models/birds: status 400" in message
    assert "sing" in message
    (path, _), *others = rest.requests
    assert path == "/v1/models/birds:predict" and not others


def test_timeout_retries_and_batches_are_flags(rest, clip, capsys):
    files = [clip.with_name(f"{number}.wav") for number in range(3)]
    for file in files:
        file.write_bytes(clip.read_bytes())
    arguments = ["query", rest.url, *map(str, files)]
    flags = ["--timeout", "60", "--retries", "0", "--batch-size", "2"]
    rest.answers = [(503, b"")]
    assert cli.main([*arguments, *flags, "--json"]) == 1
    output = capsys.readouterr()
    assert "status 503" in output.err and "1 attempts" in output.err
    assert len(output.out.splitlines()) == 1
    sizes = [len(body["inputs"]["audio_bytes"]) for _, body in rest.requests]
    assert sizes == [2, 1]


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--labels", "nowhere.txt"], "nowhere.txt"),
        (["--model-name", "a b"], "--model-name must be"),
    ],
)
def test_wrong_flags_are_named(flags, message, rest, clip, capsys):
    assert cli.main(["query", rest.url, str(clip), *flags]) == 2
    assert message in capsys.readouterr().err


def test_labels_of_another_model_are_refused(rest, clip, tmp_path, capsys):
    labels = tmp_path / "labels.txt"
    labels.write_text("dog\nrain\n")
    arguments = ["query", rest.url, str(clip), "--labels", str(labels)]
    assert cli.main(arguments) == 2
    message = capsys.readouterr().err
    assert "--labels" in message and "3 classes" in message


@pytest.mark.parametrize("version, agrees", [("1", True), ("2", False)])
def test_labels_of_another_version_are_refused(
    version, agrees, rest, clip, tmp_path, capsys
):
    """As many of other classes would be printed beside scores of these."""
    labels = tmp_path / "model" / version / "assets.extra" / "audio_tf.json"
    labels.parent.mkdir(parents=True)
    labels.write_text(json.dumps({"labels": LABELS}))
    url = f"{rest.url}/v1/models/model/versions/1"
    arguments = ["query", url, str(clip), "--labels", str(labels)]
    assert cli.main(arguments) == (0 if agrees else 2)
    message = capsys.readouterr().err
    assert agrees or (str(labels) in message and "versions/1" in message)
    assert len(rest.requests) == agrees
    # Without a version nothing is known of which one answers.
    arguments[1] = f"{rest.url}/v1/models/model"
    assert cli.main(arguments) == 0


def test_a_hostile_server_reaches_neither_terminal_nor_log(
    rest, clip, tmp_path, capsys
):
    labels = tmp_path / "labels.txt"
    labels.write_text("dog\nrain\n")
    url = rest.url.replace("//", "//me:p@ssw0rd@")
    rest.answers = [
        (400, b"\x1b[2J\x07 for p@ssw0rd"),
        (200, b'{"outputs": [[0.25, 0.75]]}'),
        (200, b'{"outputs": [[NaN, 0.75]]}'),
    ]
    files = [str(clip.with_name(f"{n}.wav")) for n in range(3)]
    for file in files:
        pathlib.Path(file).write_bytes(clip.read_bytes())
    arguments = ["query", url, *files, "--labels", str(labels)]
    flags = ["--batch-size", "1", "--json"]
    assert cli.main([*arguments, *flags]) == 1
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert found == {"file": files[1], "scores": {"rain": 0.75, "dog": 0.25}}
    assert r"status 400, \x1b[2J\x07 for ***" in output.err
    assert f"{files[2]}: {rest.url}" in output.err
    assert "nan for class 0" in output.err
    assert "p@ssw0rd" not in output.err
    assert all(line.isprintable() for line in output.err.splitlines())


def test_a_wrong_url_is_named(clip, capsys):
    assert cli.main(["query", "127.0.0.1:8501", str(clip)]) == 2
    assert "127.0.0.1:8501" in capsys.readouterr().err


@pytest.mark.costly
def test_grpc_is_loaded_in_silence(clip):
    """Whatever TensorFlow logs would stand above the line that matters."""
    environment = {**os.environ}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    port = process.free_port()
    done = subprocess.run(
        [sys.executable, "-m", "audio_tf.cli", "query", "--retries", "0"]
        + [f"grpc://127.0.0.1:{port}", str(clip)],
        env=environment,
        capture_output=True,
        text=True,
    )
    title, line = done.stderr.splitlines()
    assert done.returncode == 1 and title == "1 file left out"
    assert line.startswith(f"  {clip}: grpc://127.0.0.1:{port}/v1/models/")
