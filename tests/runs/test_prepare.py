"""`audio-tf prepare`: what a training finds, by workers of this process."""

import importlib.util
import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

from audio_tf import cli, pipelines
from audio_tf.data import clips, feature_cache, shards
from audio_tf.runs import prepare, pretrain, pretrain_batches
from audio_tf.runs.prepare_settings import COMMANDS

RATE_HZ = 8_000
PRETRAIN = {
    "dataset": "folder",
    "sample_rate_hz": RATE_HZ,
    "features": "s3prl",
    "features_options": {"num_mel_bins": 7, "fft_length": 256},
    "target": "input",
    "feature_cache": True,
    "max_s": 0.6,
    "batch_size": 2,
    "buckets": 1,
}


@pytest.fixture
def corpus(tmp_path):
    """Nine utterances, one too long and one that is no audio."""
    folder = tmp_path / "speech"
    rng = np.random.default_rng(3)
    for number in range(8):
        (folder / f"s{number % 2}").mkdir(parents=True, exist_ok=True)
        count = 6_000 if number == 5 else 2_000 + 211 * number
        audio = 0.1 * rng.standard_normal(count)
        soundfile.write(folder / f"s{number % 2}/{number}.wav", audio, RATE_HZ)
    (folder / "s1" / "bad.wav").write_text("no sound at all")
    return folder


@pytest.fixture
def here(monkeypatch):
    """Tasks are done in this process, the last one first; how many were."""
    done = []

    def run(function, tasks, options):
        for task in reversed(tasks):
            done.append(task)
            function(task)

    monkeypatch.setattr(pipelines, "need", lambda *names: None)
    monkeypatch.setattr(pipelines, "check_options", lambda *options: None)
    monkeypatch.setattr(pipelines, "run", run)
    return done


def flags(settings):
    """The flags of some settings."""
    found = []
    for name, value in settings.items():
        found.append("--" + name.replace("_", "-"))
        if value is not True:
            whole = isinstance(value, dict)
            found.append(json.dumps(value) if whole else str(value))
    return found


def run(*arguments):
    assert cli.main(["prepare", *map(str, arguments)]) == 0


def never(*args, **kwargs):
    raise RuntimeError("made again")


def test_pretraining_finds_audio_and_features(
    corpus, here, tmp_path, capsys, monkeypatch
):
    given = {**PRETRAIN, "data_dir": corpus, "cache_dir": tmp_path / "cache"}
    run("pretrain", *flags(given), "--shard-size", "30kB")
    out = capsys.readouterr().out
    assert "8 of 9 clips of 8000 Hz in shards" in out
    assert "7 of 7 clips in shards as SpeechFeatures, 7 values" in out
    assert "1 file left out" in out and "bad.wav" in out
    assert len(here) > 4
    settings = pretrain.PretrainSettings(**given)
    monkeypatch.setattr(feature_cache, "compute", never)
    monkeypatch.setattr(clips.AudioCache, "put", never)
    corpora = {"train": settings.load()["train"]}
    batches, failures = pretrain_batches.load_batches(settings, corpora, None)
    assert len(failures) == 2
    (utterances,) = batches["train"].utterances
    assert len(utterances) == len(utterances.clips.in_shards) == 7
    layer = settings.feature_layer()
    for row in range(7):
        audio, _ = soundfile.read(utterances.clips.corpus.files[row])
        alone = keras.ops.convert_to_numpy(layer(audio[None].astype("f4")))[0]
        found = utterances.clips.read(row).reshape(-1, 7)
        np.testing.assert_allclose(found, alone, atol=1e-3)
    # Nothing is left to do.
    here.clear()
    run("pretrain", *flags(given))
    assert not here


def test_what_a_training_hears_beside_a_corpus_is_prepared(
    corpus, here, tmp_path, capsys
):
    (corpus / "s1" / "bad.wav").unlink()
    for name, number in ("street", 11), ("any", 12):
        (tmp_path / name).mkdir()
        audio = 0.1 * np.random.default_rng(number).standard_normal(3_000)
        soundfile.write(tmp_path / name / f"{number}.wav", audio, RATE_HZ)
    given = {"dataset": "folders", "data_dir": corpus, "seed": 1}
    given |= {"model": "audio_transformer_mel_small"}
    given |= {"model_kwargs": {"sample_rate_hz": RATE_HZ}}
    given |= {"cache_dir": tmp_path / "cache"}
    given |= {"noise": tmp_path / "street"}
    run("train", *flags(given))
    assert "9 of 9 clips of 8000 Hz in shards" in capsys.readouterr().out
    # Unlabelled clips need teachers; which those are, nobody looks here.
    settings = COMMANDS["train"](
        **{**given, "noise": [str(tmp_path / "street")]},
        teachers=["a_teacher"],
        unlabelled=[str(tmp_path / "any")],
    )
    found = [str(file) for each in settings.corpora() for file in each.files]
    assert len(found) == 10
    assert {str(tmp_path / "street/11.wav"), str(tmp_path / "any/12.wav")} <= {
        *found
    }


def test_a_limit_leaves_the_rest_to_the_training(
    corpus, here, tmp_path, capsys
):
    given = {**PRETRAIN, "data_dir": corpus, "cache_dir": tmp_path / "cache"}
    del given["feature_cache"]
    run("pretrain", *flags(given), "--shard-size=20kB", "--limit=60kB")
    out = capsys.readouterr().out
    kept = int(out.split(" of 9 clips of")[0].split()[-1])
    assert f"{9 - kept} clips have no room" in out and "changed" not in out
    sizes = [
        path.stat().st_size for path in (tmp_path / "cache").rglob("*.tfrecord")
    ]
    assert 30_000 < sum(sizes) <= 60_000
    here.clear()
    run("pretrain", *flags(given), "--shard-size=20kB")
    assert here and "no room" not in capsys.readouterr().out
    assert len(list((tmp_path / "cache").rglob(shards.WHOLE))) == 1


def test_clips_that_change_meanwhile_are_told_apart(
    corpus, here, tmp_path, capsys, monkeypatch
):
    def change(function, tasks, options):
        sound = 0.1 * np.random.default_rng(0).standard_normal(2_100)
        soundfile.write(corpus / "s0" / "2.wav", sound, RATE_HZ)
        (corpus / "s1" / "3.wav").unlink(missing_ok=True)
        for task in tasks:
            function(task)

    monkeypatch.setattr(pipelines, "run", change)
    given = {**PRETRAIN, "data_dir": corpus, "cache_dir": tmp_path / "cache"}
    del given["feature_cache"]
    run("pretrain", *flags(given))
    out = capsys.readouterr().out
    assert "2 clips have changed or gone since they were listed" in out
    assert "no room" not in out


def test_a_limit_is_of_the_features_of_all_layers(corpus, here, tmp_path):
    """Samples may be there, of which no features were wanted then."""
    cache = tmp_path / "cache"
    given = {**PRETRAIN, "data_dir": corpus, "cache_dir": cache}
    given |= {"target": "spectrogram", "features": "paper"}
    del given["feature_cache"], given["features_options"]

    def size():
        return sum(path.stat().st_size for path in cache.rglob("*.tfrecord"))

    run("pretrain", *flags(given))
    samples = size()
    features = [*flags(given), "--feature-cache", "--shard-size=20kB"]
    room = 200_000
    run("pretrain", *features, f"--limit={samples + room}")
    limited = size() - samples
    assert room / 2 < limited <= room
    run("pretrain", *features)
    assert size() - samples > 2 * room


def test_a_worker_that_fails_costs_its_shard_alone(
    corpus, here, tmp_path, capsys, monkeypatch
):
    given = {**PRETRAIN, "data_dir": corpus, "cache_dir": tmp_path / "cache"}
    write = shards.write

    def full(folder, name, *rest):
        if name == "00001":
            raise OSError(28, "No space left on device")
        return write(folder, name, *rest)

    monkeypatch.setattr(shards, "write", full)
    arguments = ["prepare", "pretrain", *flags(given), "--shard-size=20kB"]
    with pytest.raises(SystemExit) as ended:
        cli.main(list(map(str, arguments)))
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left on device" in line and "are kept" in line
    assert list((tmp_path / "cache").rglob("*.tfrecord"))


def test_what_cannot_be_prepared_is_one_line(capsys, here):
    for arguments, words in (
        ([], "a command must come first. Received: none"),
        (["--limit", "1GB", "train"], "there is no flag --limit"),
        (["tain"], "no command 'tain'; did you mean 'train'"),
        (["train", "--limit", "much"], "--limit: A size must be a number"),
        (["train", "--shard-size", "1XB"], "--shard-size: A size"),
        (["train", "--shard-size", "0"], "--shard-size must be above 0"),
        (["train", "--runner", "X", "--workers", "2"], "--workers is of this"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(["prepare", *arguments])
        assert ended.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line, line


def test_the_rate_is_that_of_the_model():
    for model, kwargs, rate_hz in (
        ("audio_transformer_mel_small", {}, 16_000),
        ("audio_transformer_mel_small", {"sample_rate_hz": 8_000}, 8_000),
        ("wavlm_base", {}, 16_000),
        ("audio_albert_speech", {}, 16_000),
    ):
        settings = COMMANDS["train"](model=model, model_kwargs=kwargs)
        assert settings.rate_hz() == rate_hz


needs_beam = pytest.mark.skipif(
    importlib.util.find_spec("apache_beam") is None, reason="needs Beam"
)


@needs_beam
def test_beam_does_not_wait_for_a_worker_that_is_gone():
    """As where memory runs out; Beam's runner would wait for ever."""
    script = (
        "import os; from audio_tf import pipelines\n"
        "try: pipelines.run(os._exit, [9, 9], pipelines.local_options(2))\n"
        "except pipelines.LostWorker as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and "return code 9" in done.stdout, done


@needs_beam
def test_beam_does_the_same(corpus, tmp_path, capsys):
    given = {**PRETRAIN, "data_dir": corpus, "cache_dir": tmp_path / "cache"}
    run("pretrain", *flags(given), "--workers=1", "--shard-size=30kB")
    out = capsys.readouterr().out
    assert "8 of 9 clips of 8000 Hz in shards" in out
    assert "7 of 7 clips in shards as SpeechFeatures, 7 values" in out
    assert not list((tmp_path / "cache").rglob(prepare.LOG))
