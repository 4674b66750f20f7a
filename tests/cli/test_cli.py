"""`audio-tf` as a user types it."""

import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip(
        "the command line reads through tf.data", allow_module_level=True
    )

import audio_tf
from audio_tf import attention, cli, compat, configs, data, export
from audio_tf.corpora import Corpus, audio_below
from audio_tf.export import classifiers
from audio_tf.models import (
    AudioBackbone,
    AudioClassifier,
    list_released,
    list_sizes,
)

LABELS = ["dog", "rain", "siren"]
# Where it is not the scores' graph that is looked at.
eager = pytest.mark.usefixtures("eager_models")


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


@eager
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


@pytest.mark.long
def test_every_way_to_score_a_file_gives_one_answer(
    folders, tmp_path, rng, capsys
):
    """Python, command line, evaluation and the served graph agree.

    At odd rates, of several channels, over several chunks and of silence.
    """
    sounds = tmp_path / "sounds"
    sounds.mkdir()
    for name, rate_hz, shape in (
        ("odd", 11_025, 7_001),
        ("stereo", 44_100, (30_011, 2)),
        ("long", 8_000, 29_003),
        ("short", 16_000, 501),
        ("silent", 22_050, 20_000),
    ):
        audio = rng.uniform(-0.5, 0.5, shape) * (name != "silent")
        soundfile.write(sounds / f"{name}.wav", audio, rate_hz, "FLOAT")
    files = sorted(sounds.iterdir())
    classifier, models = folders
    corpus = Corpus(files, [[] for _ in files], LABELS)
    clips = data.prepare(corpus, 8_000, tmp_path / "cache", progress=False)
    chunks = data.Chunks(clips, 0.5, silence_db=classifier.silence_db)
    expected = data.score_clips(classifier, chunks, verbose=0)
    served = classifiers.load_classifier(models["served"])
    inside = served.score_bytes([file.read_bytes() for file in files])
    np.testing.assert_allclose(inside["scores"], expected, rtol=0, atol=1e-5)

    arguments = ["classify", str(sounds), "--json", "--model"]
    assert cli.main([*arguments, str(models["preset"])]) == 0
    printed = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert printed == classifier.classify(sounds)
    for found in (printed, served.classify(sounds)):
        assert [each["file"] for each in found] == list(map(str, files))
        scores = [[each["scores"][label] for label in LABELS] for each in found]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)


@eager
def test_a_folder_stands_for_the_audio_below_it(folders, tmp_path, capsys):
    (tmp_path / "b").mkdir()
    for name in ("c.wav", "b/a.wav", "a.flac", "notes.txt"):
        audio = np.full(4_000, 0.1)
        if not name.endswith("txt"):
            soundfile.write(tmp_path / name, audio, 8_000)
    (tmp_path / "notes.txt").write_text("no audio")
    last = tmp_path / "c.wav"
    arguments = ["classify", str(last), str(tmp_path), str(last), "--json"]
    arguments += ["--model", str(folders[1]["preset"])]
    assert cli.main(arguments) == 0
    output = capsys.readouterr()
    files = [json.loads(line)["file"] for line in output.out.splitlines()]
    below = [str(file) for file in audio_below(tmp_path)]
    assert len(below) == 3
    assert files == [str(last), *(file for file in below if file != str(last))]
    assert "2 files were given twice" in output.err
    (tmp_path / "empty").mkdir()
    arguments[1:4] = [str(tmp_path / "empty")]
    assert cli.main(arguments) == 2
    assert "empty: no audio in this folder" in capsys.readouterr().err


@eager
def test_a_quoted_pattern_stands_for_what_it_matches(folders, tmp_path, capsys):
    names = ["b.wav", "a.wav", "take[1].wav", "deep/c.wav"]
    (tmp_path / "deep").mkdir()
    for name in names:
        soundfile.write(tmp_path / name, np.full(4_000, 0.1), 8_000)
    files = [str(tmp_path / name) for name in names]
    arguments = ["classify", "--json", "--model", str(folders[1]["preset"])]
    patterns = [files[2], f"{tmp_path}/**/*.wav"]
    assert cli.main([*arguments, *patterns]) == 0
    output = capsys.readouterr()
    found = [json.loads(line)["file"] for line in output.out.splitlines()]
    assert found == [files[2], *sorted({*files} - {files[2]})]
    assert "1 files were given twice" in output.err
    assert cli.main([*arguments, files[0], f"{tmp_path}/*.mp3"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert f"{tmp_path}/*.mp3: no audio file matches" in output.err


@eager
def test_standard_input_is_one_file(folders, clip, capsys, monkeypatch):
    flac = clip.with_name("clip.flac")
    soundfile.write(flac, soundfile.read(clip)[0], 8_000)
    # As a program leaves it that writes to a pipe.
    streamed = bytearray(clip.read_bytes())
    place = streamed.find(b"data") + 4
    streamed[place : place + 4] = b"\xff" * 4
    arguments = ["classify", "--json", "--model", str(folders[1]["preset"])]
    for content, file in (
        (flac.read_bytes(), flac),
        (clip.read_bytes(), clip),
        (bytes(streamed), clip),
    ):
        stdin = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cli.main([*arguments, str(file), "-", "-"]) == 0
        output = capsys.readouterr()
        assert "1 files were given twice" in output.err
        first, second = map(json.loads, output.out.splitlines())
        assert [first["file"], second["file"]] == [str(file), "-"]
        assert first["scores"] == pytest.approx(second["scores"], abs=1e-6)
    for content, reason in ((b"", "empty file"), (b"no", "not readable")):
        stdin = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cli.main([*arguments, "-"]) == 1
        output = capsys.readouterr()
        assert output.out == "" and f"-: {reason}" in output.err


@eager
def test_classify_writes_nothing_to_disk(
    folders, clip, tmp_path, capsys, monkeypatch
):
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in ("AUDIO_TF_CACHE", "XDG_CACHE_HOME", "TMPDIR", "HOME"):
        monkeypatch.setenv(name, str(empty))
    monkeypatch.setattr(tempfile, "tempdir", str(empty))
    monkeypatch.chdir(empty)
    before = sorted(tmp_path.rglob("*"))
    # A folder that has come and gone would leave its time of change.
    times = [path.stat().st_mtime_ns for path in (tmp_path, empty)]
    model = str(folders[1]["preset"])
    assert cli.main(["classify", str(clip), "--model", model]) == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert [path.stat().st_mtime_ns for path in (tmp_path, empty)] == times
    capsys.readouterr()


@pytest.mark.long
def test_a_process_says_nothing_but_the_answer(folders, clip, tmp_path):
    """No word of TensorFlow, Keras or audio_tf on the standard error."""
    environment = dict(os.environ)
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    command = [sys.executable, "-m", "audio_tf.cli", "classify", str(clip)]
    done = subprocess.run(
        [*command, "--json", "--model", str(folders[1]["preset"])],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["file"] == str(clip)


@eager
def test_scores_that_are_not_finite_are_one_clips_own(
    folders, clip, capsys, monkeypatch
):
    """A model may overflow on one clip; JSON has no NaN."""
    classifier = AudioClassifier.from_preset(str(folders[1]["preset"]))
    loud = clip.with_name("loud.wav")
    soundfile.write(loud, np.ones(8_000), 8_000, subtype="FLOAT")

    def score_batch(waveform):
        whole = np.all(waveform == 1.0, axis=1)
        return np.where(whole[:, None], np.nan, 0.25 * np.ones(3))

    monkeypatch.setattr(classifier, "score_batch", score_batch)
    monkeypatch.setattr(classifiers, "load_classifier", lambda name: classifier)
    arguments = ["classify", str(loud), str(clip), "--json", "--model", "any"]
    assert cli.main(arguments) == 1
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert found["file"] == str(clip) and found["scores"]["dog"] == 0.25
    assert f"{loud}: its scores are not finite" in output.err
    assert cli.main([*arguments, "--strict"]) == 2
    assert str(loud) in capsys.readouterr().err


@eager
def test_names_of_files_and_labels_do_not_steer_the_terminal(
    tmp_path, rng, capsys
):
    backbone = tiny.backbone(sample_rate_hz=8_000)
    labels = ["\x1b[31mdog", "r\u202eain", "caf\u00e9"]
    classifier = AudioClassifier(backbone, labels=labels, chunk_s=0.5)
    classifier.save_to_preset(str(tmp_path / "preset"))
    names = [b"a\x1b[2J\nb.wav", b"caf\xe9.wav"]
    files = [os.fsdecode(os.fsencode(tmp_path) + b"/" + n) for n in names]
    for file in files:
        with open(os.fsencode(file), "wb") as written:
            audio = rng.uniform(-0.5, 0.5, 4_000)
            soundfile.write(written, audio, 8_000, format="WAV")
    bad = os.fsdecode(os.fsencode(tmp_path) + b"/\x1b]0;\xff.wav")
    pathlib.Path(bad).write_text("no sound")
    arguments = ["classify", *files, bad, "--model", str(tmp_path / "preset")]
    assert cli.main(arguments) == 1
    output = capsys.readouterr()
    text = output.out + output.err
    assert all(line.isprintable() for line in text.splitlines())
    for shown in (
        r"a\x1b[2J\nb.wav",
        r"caf\udce9.wav",
        r"\x1b]0;\udcff.wav",
        r"\x1b[31mdog",
        r"r\u202eain",
        "caf\u00e9",
    ):
        assert shown in text
    assert cli.main([*arguments, "--json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["file"] for line in lines] == files


@eager
def test_a_bad_file_is_named_and_the_others_scored(folders, clip, capsys):
    bad = clip.with_name("bad.wav")
    bad.write_text("no sound")
    arguments = ["classify", str(clip), str(bad), "--json"]
    arguments += ["--model", str(folders[1]["preset"])]
    assert cli.main(arguments) == 1
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 1 and str(clip) in output.out
    assert "1 file left out" in output.err and str(bad) in output.err
    # The path of a shell's variable that is not set is to be seen.
    assert cli.main(["classify", "", *arguments[1:]]) == 1
    assert "\n  '': no such file" in capsys.readouterr().err
    assert cli.main([*arguments, "--strict"]) == 2
    assert str(bad) in capsys.readouterr().err


@pytest.mark.parametrize(
    "model, message",
    [
        ("nowhere", "nowhere"),
        ("audio_transformer_small", "without trained weights"),
        ("audio_transfomer_small", "mean 'audio_transformer_small'"),
    ],
)
def test_a_missing_model_is_named(model, message, clip, capsys):
    assert cli.main(["classify", str(clip), "--model", model]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.costly
def test_export_writes_the_next_version(folders, tmp_path, capsys):
    preset, served = (str(folders[1][name]) for name in ("preset", "served"))
    assert os.listdir(served) == ["1"]
    (tmp_path / "1").mkdir()
    assert cli.main(["export", str(tmp_path), "--model", preset]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "2")
    assert (tmp_path / "2" / "saved_model.pb").is_file()


def test_presets_lists_every_size_of_every_backbone(capsys, monkeypatch):
    """It builds none of them, unless their parameters are asked for."""
    names = [*list_released(), *list_sizes(), "speech_encoder"]
    with monkeypatch.context() as patched:
        patched.setattr(AudioBackbone, "__init__", None)
        assert cli.main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == names
    listed = {line.split()[0]: line for line in lines}
    for name, family in list_sizes().items():
        assert listed[name].endswith(f"untrained, takes {family.takes}")
    told = {
        "audio_transformer_small": "waveform, 974,272 parameters, causal",
        "audio_transformer_large_multiscale": "parameters, not causal",
        "audio_albert_6": "features, 7,458,816 parameters, not causal",
    }
    for name in set(compat.SIZE_LOADERS) - set(told):
        monkeypatch.delitem(compat.SIZE_LOADERS, name)  # To build all is long.
    assert cli.main(["presets", "--parameters"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {line.split()[0]: line for line in lines}
    for name, found in told.items():
        assert listed[name].endswith(found)


def test_help_imports_nothing_heavy():
    """One process prints every help text, and says what it has imported."""
    code = """
import sys
from audio_tf import cli
for argv in [[], *([name] for name in cli.COMMANDS if name != "export")]:
    try:
        cli.main([*argv, "--help"])
    except SystemExit as end:
        assert end.code == 0
heavy = ["keras", "tensorflow", "numpy", "scipy", "sklearn", "soundfile"]
assert not {*heavy} & {*sys.modules}, {*heavy} & {*sys.modules}
try:
    cli.main(["export", "--help"])
except SystemExit as end:
    assert end.code == 0
assert not {*heavy[:2]} & {*sys.modules}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name, meaning in {**cli.COMMANDS, **cli.RUNS}.items():
        assert f"  {name:12s}{meaning}\n" in done.stdout
    for name in cli.COMMANDS:
        assert f"usage: audio-tf {name} [-h] [--debug]" in done.stdout


@pytest.mark.parametrize("name", cli.RUNS)
def test_runs_are_commands(name, capsys):
    table = {"reproduce": ["ssl"], "prepare": ["train"]}.get(name, [])
    command = " ".join(["audio-tf", name, *table])
    with pytest.raises(SystemExit) as exit:
        cli.main([name, *table, "--help"])
    assert exit.value.code == 0
    output = capsys.readouterr()
    assert output.out.startswith(f"usage: {command} [-h]") and not output.err
    assert "--config CONFIG" in output.out and "--debug" in output.out
    with pytest.raises(SystemExit) as exit:
        cli.main([name, *table, "--confg", "x"])
    assert exit.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{command}: there is no flag --confg; did you")


def test_debug_shows_where_an_error_comes_from(clip, capsys):
    arguments = ["classify", str(clip), "--model", "nowhere"]
    assert cli.main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("audio-tf classify: --model is no preset")
    for argv in ([*arguments, "--debug"], ["--debug", *arguments]):
        with pytest.raises(ValueError, match="`model` is no preset"):
            cli.main(argv)


@pytest.mark.parametrize(
    "error, status, line",
    [
        (BrokenPipeError(), 141, None),
        (KeyboardInterrupt(), 130, "audio-tf presets: interrupted"),
        (OSError("no disk"), 2, "audio-tf presets: no disk"),
        (KeyError("x"), 2, "audio-tf presets: KeyError: 'x'"),
    ],
)
def test_the_exit_status_says_how_it_ended(
    error, status, line, capsys, monkeypatch
):
    def fail(arguments):
        raise error

    monkeypatch.setattr("audio_tf.cli.presets.run", fail)
    monkeypatch.setattr("audio_tf.console.drop_output", lambda: None)
    assert cli.main(["presets"]) == status
    assert capsys.readouterr().err.splitlines() == ([line] if line else [])


def test_errors_name_no_flag_of_what_stands_alone(capsys, monkeypatch):
    def fail(arguments):
        raise ValueError("`path` holds versions, and `max_clip` is a time")

    monkeypatch.setattr("audio_tf.cli.export.run", fail)
    assert cli.main(["export", "sounds/1", "--model", "preset"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("`path` holds versions, and --max-clip is a time")


@pytest.mark.parametrize("text", ["mine.py", '"mine.py"', '["mine.txt"]'])
def test_a_wrong_list_of_configs_names_the_variable(text, capsys, monkeypatch):
    monkeypatch.setenv(configs.VARIABLE, text)
    assert cli.main(["presets"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "AUDIO_TF_CONFIGS must be a list" in error and repr(text) in error


def test_flags_of_score_are_what_it_is_asked_for(monkeypatch, tmp_path):
    """Here Beam need not be there: whole runs of it are elsewhere."""
    pytest.importorskip("pyarrow", reason="ARCHIVES ARE NOT TESTED")
    from audio_tf.archives import places, scoring

    asked = []

    def score(*given, **options):
        asked.append((given, options))
        return scoring.Result(3, [], {}, [])

    monkeypatch.setattr(scoring, "score", score)
    monkeypatch.setattr(places, "need_beam", lambda: None)
    labels = tmp_path / "labels.txt"
    labels.write_text("dog\nrain\n")
    described = tmp_path / "audio_tf.json"
    described.write_text('{"labels": ["dog", "rain"], "errors": null}')
    usual = {
        **{"window_s": 60.0, "top": 5, "embeddings": False, "labels": None},
        **{"column": "file", "retry_failed": False, "runner": None},
        **{"options": [], "workers": None},
    }
    for flags, changed in (
        ([], {}),
        (["--whole"], {"window_s": None}),
        (["--window-s", "7.5"], {"window_s": 7.5}),
        (["--all-scores"], {"top": None}),
        (["--top", "2"], {"top": 2}),
        (["--embeddings"], {"embeddings": True}),
        (["--labels", str(labels)], {"labels": ["dog", "rain"]}),
        (["--labels", str(described)], {"labels": ["dog", "rain"]}),
        (["--column", "path"], {"column": "path"}),
        (["--retry-failed"], {"retry_failed": True}),
        (["--workers", "3"], {"workers": 3}),
        (
            ["--runner", "Other", "--beam", "--one=1 --two"],
            {"runner": "Other", "options": ["--one=1", "--two"]},
        ),
    ):
        source = ["score", "sounds", "list.csv", "--model", "m", "--out", "o"]
        assert cli.main([*source, *flags]) == 0
        ((given, options),) = asked
        assert given == (["sounds", "list.csv"], "m", "o")
        assert options == {**usual, **changed}, flags
        asked.clear()


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"audio_tf {audio_tf.__version__}\n"


def wrong(arguments, capsys):
    """What a command line that is refused says, one line, exit status 2."""
    with pytest.raises(SystemExit) as exit:
        sys.exit(cli.main(arguments.split()))
    assert exit.value.code == 2
    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    assert output.out == "" and line.startswith("audio-tf")
    return line


@pytest.mark.parametrize(
    "flags, message",
    [
        ("classify a.wav --model m --top -3", "--top: must be a positive int"),
        ("classify a.wav --model m --top 0", "Received: 0"),
        ("classify a.wav --model m --top x", "Received: x"),
        ("classify a.wav --model m --tpo 3", "did you mean '--top'"),
        ("classify a.wav --model m --strct", "did you mean '--strict'"),
        ("classify a.wav", "required: --model"),
        ("classify a.wav --mod m", "did you mean '--model'"),
        ("clasify a.wav", "no command 'clasify'; did you mean 'classify'"),
        ("gather out esc10", "Expected DATASET=DIR. Received: 'esc10'"),
        ("gather out esc10=", "Expected DATASET=DIR. Received: 'esc10='"),
        ("gather out esc1=a", "did you mean 'esc10'"),
        ("presets all", "audio-tf presets: takes no 'all'"),
        ("query http://h a.wav --batch-size -1", "--batch-size: must be"),
        ("query http://h a.wav --timeout 0", "--timeout: must be positive"),
        ("query http://h a.wav --timeout nan", "Received: nan"),
        ("query http://h a.wav --retries -1", "--retries: must be"),
        ("query http://h a.wav --signature embed", "--signature must take"),
        ("query http://h/v1/models/a a.wav --model-name b", "--model-name"),
        ("query http://h a.wav --model-name a/b", "--model-name must be"),
        ("query http://me:pw@h?pw a.wav", "Received: http://***@h?***"),
        ("export out --model m --max-clip -5", "--max-clip: must be positive"),
        ("export out --model m --max-clip inf", "Received: inf"),
        ("export out --model m --version -1", "--version: must be"),
        ("export out --model m --format onx", "did you mean 'onnx'"),
        ("export out --model m --quantize int4", "did you mean 'int8'"),
        ("export out --model m --verify --dataset esc1", "mean 'esc10'"),
        ("export out --model m --clips a.wav", "--clips means nothing without"),
        ("export out --model m --dataset esc10", "nothing without --verify"),
        ("export out --model m --data-dir d", "nothing without --dataset"),
        (
            "export out --model m --test-folds 5",
            "--test-folds means nothing without --dataset esc10 or esc50",
        ),
        (
            "export out --model m --verify --dataset csv --test-folds 5",
            "--test-folds means nothing without --dataset esc10 or esc50",
        ),
        (
            "export out --model m --format onnx --stream",
            "--stream means nothing without --format savedmodel",
        ),
        (
            "export out --model m --format onnx,litert,openvino --explain",
            "--explain means nothing without --format savedmodel",
        ),
        (
            "export out --model m --format onnx --max-clip 3",
            "Received: --max-clip 3.0",
        ),
        ("export /dev/null --model m", "export: DIR must be a folder that can"),
        ("inspect /dev/null/x a.wav --model m", "OUT_DIR must be a folder"),
        ("explain a.wav --model m --pictures /dev/null", "--pictures must be"),
        ("inspect out a.wav --model m --seconds nan", "--seconds: must be"),
        ("inspect out a.wav --model m --seed -1", "--seed: must be"),
        ("inspect out a.wav --model m --clips 0", "--clips: must be"),
    ],
)
def test_wrong_flags_are_one_line_that_names_them(
    flags, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.wav").write_bytes(b"")
    assert message in wrong(flags, capsys)
    assert [file.name for file in tmp_path.iterdir()] == ["a.wav"]


def test_gather_links_what_is_trained_on(tmp_path, clip, capsys):
    rows = ["filename,labels,split"]
    for split in ("train", "val", "test"):
        (tmp_path / "corpus" / split).mkdir(parents=True)
        (tmp_path / "corpus" / split / "a.wav").write_bytes(clip.read_bytes())
        rows.append(f"{split}/a.wav,dog,{split}")
    listed = tmp_path / "corpus" / "list.csv"
    listed.write_text("\n".join(rows) + "\n")
    command = ["gather", tmp_path / "all", f"csv={listed}"]
    for _ in range(2):
        assert cli.main(command) == 0
    (link,) = audio_below(tmp_path / "all")
    assert link.resolve() == tmp_path / "corpus" / "train" / "a.wav"
    # No name that begins with a dot, which hides a file.
    assert link.parent.name == "csv" and link.name == "train_a.wav"
    assert "1 clips of the split train" in capsys.readouterr().out
    link.unlink()
    link.write_bytes(b"")
    assert cli.main(command) == 2
    assert "is there and is no link to" in capsys.readouterr().err


def test_gather_links_files_whose_names_are_alike(tmp_path, clip):
    rows = []
    for name in ("a/b_c.wav", "a_b/c.wav", "a_b_c.wav", "d.wav"):
        for corpus in ("one", "two"):
            file = tmp_path / corpus / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(clip.read_bytes())
        rows.append(f"{name},dog,train")
    folder = tmp_path / "all" / "csv"

    def gather(*corpora, rows=rows):
        lines = "\n".join(["filename,labels,split", *rows]) + "\n"
        listed = [tmp_path / corpus / "list.csv" for corpus in corpora]
        for path in listed:
            path.write_text(lines)
        given = [f"csv={path}" for path in listed]
        assert cli.main(["gather", folder.parent, *given]) == 0
        return {link.name: link.resolve() for link in folder.iterdir()}

    # The names that there have always been.
    first = gather("one", rows=rows[:1] + rows[3:])
    root = tmp_path / "one"
    assert first == {"a_b_c.wav": root / "a/b_c.wav", "d.wav": root / "d.wav"}
    every = gather("one", "two")
    assert len(every) == 8 and first.items() <= every.items()
    assert set(every.values()) == {
        tmp_path / corpus / row.split(",")[0]
        for corpus in ("one", "two")
        for row in rows
    }
    assert gather("two", "one", rows=rows[::-1]) == every


def test_gather_links_files_whose_names_are_long(tmp_path, clip):
    """Those of two folders may be longer together than one may be."""
    rows = ["filename,labels,split"]
    letters = "\u30ac\u30e9"
    for letter in letters:
        name = f"{70 * letter}/{80 * letters[0]}.wav"
        file = tmp_path / name
        file.parent.mkdir()
        file.write_bytes(clip.read_bytes())
        rows.append(f"{name},dog,train")
    listed = tmp_path / "list.csv"
    listed.write_text("\n".join(rows) + "\n", "utf-8")
    for _ in range(2):
        assert cli.main(["gather", tmp_path / "all", f"csv={listed}"]) == 0
    links = audio_below(tmp_path / "all")
    assert {link.resolve() for link in links} == {
        tmp_path / row.split(",")[0] for row in rows[1:]
    }
    assert len(links) == 2


def test_gather_keeps_no_link_to_what_is_tested_on(tmp_path, clip, capsys):
    """Splits may have changed, and other corpora be gathered beside."""
    folder = tmp_path / "all" / "csv"
    for name, splits in (
        ("one", ("train", "test")),
        ("two", ("train", "test")),
        ("one", ("test", "train")),
    ):
        corpus = tmp_path / name
        corpus.mkdir(exist_ok=True)
        rows = ["filename,labels,split"]
        for number, split in enumerate(splits):
            file = f"{name}{number}.wav"
            (corpus / file).write_bytes(clip.read_bytes())
            rows.append(f"{file},dog,{split}")
        (corpus / "list.csv").write_text("\n".join(rows) + "\n")
        status = cli.main(["gather", folder.parent, f"csv={corpus}/list.csv"])
        assert status == (0 if splits[0] == "train" else 2)
    assert sorted(file.name for file in folder.iterdir()) == [
        "one0.wav",
        "two0.wav",
    ]
    printed = capsys.readouterr().err
    assert "not in the split train;" in printed
    assert "1 of them, such as one0.wav" in printed


def test_gather_keeps_no_link_to_what_is_tested_on_elsewhere(
    tmp_path, clip, capsys
):
    """The clips of a CSV may lie beside its folder."""
    listed = tmp_path / "lists" / "list.csv"
    listed.parent.mkdir()
    (tmp_path / "audio").mkdir()
    for name in ("a", "b"):
        file = tmp_path / "audio" / f"{name}.wav"
        file.write_bytes(clip.read_bytes())
    command = ["gather", tmp_path / "all", f"csv={listed}"]
    for splits, status in (("train", "train"), 0), (("test", "train"), 2):
        rows = [
            f"../audio/{name}.wav,dog,{split}"
            for name, split in zip("ab", splits, strict=True)
        ]
        listed.write_text("\n".join(["filename,labels,split", *rows]) + "\n")
        assert cli.main(command) == status
    assert "1 of them, such as .._audio_a.wav" in capsys.readouterr().err


def test_gather_links_nothing_that_another_corpus_is_tested_on(
    tmp_path, clip, capsys
):
    """Of both at once, in one folder of links or two, and one by one."""
    sounds = tmp_path / "sounds"
    for split in ("train", "test"):
        for label in ("a", "b"):
            folder = sounds / split / label
            folder.mkdir(parents=True)
            (folder / f"{split}.wav").write_bytes(clip.read_bytes())
    lists = {}
    for name, split in (("all", "train"), ("own", "test")):
        lists[name] = tmp_path / f"{name}.csv"
        rows = [
            f"sounds/{part}/{label}/{part}.wav,{label},"
            f"{'train' if part == 'train' else split}"
            for part in ("train", "test")
            for label in ("a", "b")
        ]
        text = "\n".join(["filename,labels,split", *rows])
        lists[name].write_text(text)
    every, own = f"csv={lists['all']}", f"csv={lists['own']}"
    folders = f"folders={sounds}"
    out = tmp_path / "out"
    for corpora in ((every, folders), (folders, every), (every, own)):
        assert cli.main(["gather", out, *corpora]) == 2
        said = capsys.readouterr().err
        assert "2 of them in" in said and "test.wav" in said
        assert not out.exists()
    assert cli.main(["gather", out, own, folders]) == 0
    other = tmp_path / "other"
    assert cli.main(["gather", other, every]) == 0
    assert cli.main(["gather", other, folders]) == 2
    assert f"2 of them in {other / 'csv'}" in capsys.readouterr().err


def test_gather_knows_a_file_by_all_its_names(tmp_path, clip, capsys):
    """A corpus that was copied by hard links is the same files once more."""
    for corpus, split in (("one", "train"), ("two", "test")):
        for name in ("a", "b"):
            file = tmp_path / corpus / f"{name}.wav"
            file.parent.mkdir(exist_ok=True)
            if corpus == "one":
                file.write_bytes(clip.read_bytes())
            else:
                file.hardlink_to(tmp_path / "one" / file.name)
        rows = ["filename,labels,split", f"a.wav,dog,{split}"]
        if corpus == "two":
            (tmp_path / "two" / "c.wav").write_bytes(clip.read_bytes())
            rows.append("c.wav,dog,train")
        listed = tmp_path / corpus / "list.csv"
        listed.write_text("\n".join(rows) + "\n")
    one, two = (f"csv={tmp_path / name}/list.csv" for name in ("one", "two"))
    out = tmp_path / "out"
    for corpora in ((one, two), (two, one)):
        assert cli.main(["gather", out, *corpora]) == 2
        said = capsys.readouterr().err
        assert "1 of them in" in said and "two/a.wav" in said
        assert not out.exists()
    # Nor are links of before left to one that is tested on by another name.
    assert cli.main(["gather", out, one]) == 0
    assert cli.main(["gather", out, two]) == 2
    assert "1 of them, such as a.wav" in capsys.readouterr().err


def test_gather_names_what_is_missing(tmp_path, clip, capsys):
    (tmp_path / "a.wav").write_bytes(clip.read_bytes())
    listed = tmp_path / "list.csv"
    rows = ["filename,labels,split", "a.wav,dog,train", "b.wav,dog,train"]
    listed.write_text("\n".join(rows) + "\n")
    command = ["gather", tmp_path / "all", f"csv={listed}"]
    assert cli.main(command) == 1
    printed = capsys.readouterr()
    assert "csv: 1 clips of the split train" in printed.out
    assert "b.wav" in printed.err and "no file of its own" in printed.err
    assert len(audio_below(tmp_path / "all")) == 1
    assert cli.main([*command, "--strict"]) == 2
    capsys.readouterr()
    assert cli.main(["gather", listed, f"csv={listed}"]) == 2
    assert "FOLDER must be a folder that can be" in capsys.readouterr().err
    (tmp_path / "a.wav").unlink()
    assert cli.main(["gather", tmp_path / "none", f"csv={listed}"]) == 2


def test_attentions_are_listed_with_their_cost(capsys):
    assert cli.main(["attentions"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["name", "complexity", "causal"]
    known = [*attention.ATTENTIONS, *attention.MIXTURES]
    assert [line.split()[0] for line in lines] == known
    assert "O(L^1.5 D)" in lines[2] and lines[0].split()[-4] == "1.00"
    # By hand from Table 1 of arXiv 2006.05174: 2 L D + H L^2, in millions.
    assert head.split()[-1] == "paper" and lines[0].split()[-1] == "13.536"
    (local,) = [each for each in lines if each.startswith("local_dense")]
    assert local.split()[-1] == "-"

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
        "paper_cost": 2 * (2 * 300 * 24 + 4 * 300**2),
    }
    assert [row["name"] for row in rows] == known
    # Half of the blocks have each: a mixture costs their mean.
    found = {row["name"]: row["multiply_adds"] for row in rows}
    parts = found["full"] + found["local_dense_synthesizer"]
    assert found["hybrid_local"] == parts / 2


def test_attentions_names_a_wrong_size(capsys):
    assert cli.main(["attentions", "--dim", "25"]) == 2
    assert "--num-heads must divide --dim" in capsys.readouterr().err
    assert "positive integer" in wrong("attentions --length 0", capsys)
    line = wrong(f"attentions --length {2**32}", capsys)
    assert "at most 4294967295. Received: 4294967296" in line
