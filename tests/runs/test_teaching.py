"""What a training learns from beside its clips: mixes, noise, teachers."""

import json
import os
import shutil

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

import tiny
from training_cases import (
    COMMON,
    TINY_MEL,
    built,
    write_tone,
)

from audio_tf import data, layers
from audio_tf.corpora import Corpus
from audio_tf.export.classifiers import read_provenance
from audio_tf.models import AudioClassifier
from audio_tf.runs import (
    beside,
    corpus_records,
    heard,
    noise,
    recipes,
    teaching,
    train,
    unlabelled,
)
from audio_tf.runs.train_settings import TrainSettings


def test_wide_voices_are_further_apart_than_voices():
    narrow, wide = (
        {type(layer): layer.get_config() for layer in make(16_000)}
        for make in map(recipes.AUGMENTATIONS.get, ("voice", "voice_wide"))
    )
    ranges = {
        layers.SpeedPerturbation: "speed",
        layers.VocalTractPerturbation: "factor",
    }
    for kind, name in ranges.items():
        low, high = narrow[kind].pop(name)
        lower, higher = wide[kind].pop(name)
        assert lower < low < 1.0 < high < higher
    for of_kind in [*narrow.values(), *wide.values()]:
        del of_kind["name"]
    assert narrow == wide


def test_every_mixing_is_of_the_models_rate_and_trains_its_weights(
    corpus, tmp_path
):
    settings, classifier, _ = built(corpus, tmp_path)
    train.compile(classifier, settings, 1, True)
    for name, make in recipes.MIXINGS.items():
        training = teaching.make_training(
            settings.replace(mixing=name), classifier, True
        )
        if make(8_000) is None:
            assert name == "none" and training is classifier
            continue
        assert training.mixing.get_config() == {
            **make(8_000).get_config(),
            "name": training.mixing.name,
        }
        assert training.optimizer is classifier.optimizer
        assert training.loss == "huber"
    assert training.mixing.sample_rate_hz == 8_000


def test_teachers_count_as_settings_say():
    student, teacher = (
        AudioClassifier(tiny.backbone(), labels=["low", "high"], chunk_s=0.1)
        for _ in range(2)
    )
    student.compile("sgd", "binary_crossentropy")
    settings = TrainSettings(
        teachers=["a"], teacher_share=0.25, teacher_temperature=3.5
    )
    training = teaching.make_training(settings, student, False, [teacher])
    assert training.teachers == [teacher]
    assert (training.share, training.temperature) == (0.25, 3.5)
    assert training.optimizer is student.optimizer


@pytest.mark.costly
def test_teachers_are_checked_before_clips_are_decoded(
    refusal, corpus, tmp_path
):
    training = ["train", "--dataset", "csv", "--data-dir", corpus, *COMMON]
    training += ["--out", tmp_path / "run"]
    teacher = tmp_path / "teacher"
    AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000), labels=["low", "a"], chunk_s=0.1
    ).save_to_preset(str(teacher))
    line = refusal(*training, "--teachers", teacher)
    assert f"--teachers {teacher}: " in line
    assert "without ['high'], with ['a'] beyond" in line
    line = refusal(*training, "--teachers", "audio_transformer_esc1")
    assert "--teachers audio_transformer_esc1: " in line and "esc10'" in line
    AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000),
        labels=["low", "high"],
        chunk_s=0.1,
    ).save_to_preset(str(tmp_path / "one"))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    twice = [tmp_path / "one", tmp_path / "two"]
    line = refusal(*training, "--chunk-s", 0.1, "--teachers", *twice)
    assert f"the same weights of {twice[0]} and {twice[1]}" in line
    line = refusal(*training, "--teacher-share", 0.5)
    assert "--teacher-share applies to --teachers" in line
    taught = [*training, "--teachers", "x", "--teacher-share", 0.0]
    line = refusal(*taught, "--unlabelled", "y")
    assert "--unlabelled is judged by the teachers, who have no share" in line
    assert not (tmp_path / "run").exists()


def test_recordings_become_rows_of_noise(tmp_path):
    """Short ones go round, the last row of a long one ends with it."""
    lengths = {"short": 3_000, "row": 40_000, "long": 95_000, "still": 50_000}
    rng = np.random.default_rng(4)
    audio = {
        name: np.round(rng.uniform(-0.5, 0.5, length) * 2**15) / 2**15
        for name, length in lengths.items()
    }
    audio["still"][:] = 0.0
    for name, samples in audio.items():
        soundfile.write(tmp_path / f"{name}.wav", samples, 8_000)
    files = [str(tmp_path / f"{name}.wav") for name in lengths]
    listed = Corpus(files, [[]] * len(files), ["low"])
    clips = data.prepare(listed, 8_000, tmp_path / "cache", progress=False)
    bank = noise.read_bank(clips)
    long = audio["long"]
    expected = [
        [audio["short"][place % 3_000] for place in range(40_000)],
        audio["row"],
        long[:40_000],
        long[40_000:80_000],
        long[55_000:],
    ]
    np.testing.assert_array_equal(bank, np.array(expected, "float32"))
    with pytest.raises(ValueError, match="--noise must hold a recording that"):
        noise.read_bank(clips.select([3]))
    clips.lengths[0] = 8_000 * 3_600
    with pytest.raises(ValueError, match="at most. Received: 1.0 h in 4 files"):
        noise.read_bank(clips)


@pytest.mark.long
def test_noise_is_laid_under_clips(
    corpus, main, refusal, no_pictures, tmp_path, capsys, monkeypatch
):
    street = tmp_path / "here" / "street"
    street.mkdir(parents=True)
    rng = np.random.default_rng(5)
    soundfile.write(street / "a.wav", 0.1 * rng.standard_normal(9_000), 8_000)
    (street / "bad.wav").write_bytes(b"no audio")
    out, training = tmp_path / "run", ["train", "--dataset", "csv"]
    training += ["--data-dir", corpus, "--model-kwargs", TINY_MEL]
    training += ["--chunk-s", "0.1", "--epochs", 1, "--out", out]
    with_noise = [*training, "--noise", street]
    for asked, said in (
        ([*training, "--noise", street / "no"], "street/no: no such file"),
        ([*training, "--noise-share", "0.2"], "--noise-share applies to --noi"),
        (
            [*training, "--noise-snr-db", "1", "2"],
            "--noise-snr-db applies to --noise",
        ),
        (
            [*with_noise, "--noise-snr-db", "9", "2"],
            "must be two numbers in order. Received: [9.0, 2.0]",
        ),
        ([*with_noise, "--noise-snr-db", "9"], "must be two numbers"),
        ([*with_noise, "--noise-share", "1.5"], "--noise-share"),
    ):
        assert said in refusal(*asked)
    clips = TrainSettings(dataset="csv", data_dir=str(corpus)).load()
    shutil.copy(clips["test"].files[0], street / "scored.wav")
    line = refusal(*with_noise)
    assert "--noise must not hold clips that are scored" in line
    assert str(street / "scored.wav") in line
    (street / "scored.wav").unlink()
    assert not out.exists()

    asked = []
    call = layers.AdditiveNoise.call

    def spy(layer, waveform, lengths=None, bank=None, training=None):
        if training:
            asked.append((layer.snr_db, layer.rate, tuple(bank.shape)))
        return call(layer, waveform, lengths, bank, training)

    monkeypatch.setattr(layers.AdditiveNoise, "call", spy)
    main(*with_noise, "--noise-snr-db", "3", "12", "--noise-share", "0.7")
    assert set(asked) == {((3.0, 12.0), 0.7, (1, 40_000))}
    assert "bad.wav" in capsys.readouterr().out
    record = json.loads((out / "corpus.json").read_text())
    names = {f"../street/{name}" for name in ("a.wav", "bad.wav")}
    assert set(record["splits"]["noise"]) == names
    assert "../street/bad.wav" in record["left_out"]
    origin = json.loads((out / "preset" / "provenance.json").read_text())
    assert origin["corpus"]["noise"]["files"] == 1
    listed = Corpus([str(street / "a.wav")], [[]], ["low", "high"])
    heard_there = data.prepare(
        listed, 8_000, tmp_path / "cache", progress=False
    )
    assert set(heard_there.marks) <= set(heard.read(out / "preset").learned)

    (tmp_path / "here").rename(tmp_path / "there")
    again = ["train", "--out", out, "--resume", "--noise"]
    main(*again, tmp_path / "there" / "street")
    soundfile.write(
        tmp_path / "there" / "street" / "b.wav", np.ones(800) / 2, 8_000
    )
    line = refusal(*again, tmp_path / "there" / "street")
    assert "b.wav" in line and "noise" in line


@pytest.mark.parametrize(
    "loss",
    [
        None,
        "categorical_crossentropy",
        "categorical_focal_crossentropy",
        "binary_crossentropy",
    ],
)
def test_losses_of_shares_may_have_clips_without_labels(loss, tmp_path):
    """Where scores are a softmax, to have no label says nothing."""
    soundfile.write(tmp_path / "more.wav", np.ones(800) / 2, 8_000)
    given = {} if loss is None else {"loss": loss}
    settings = TrainSettings(
        teachers=["teacher"], unlabelled=[str(tmp_path)], **given
    )
    known = Corpus(["a.wav", "b.wav"], [["low"], ["high"]], ["low", "high"])
    if settings.head_options(True)["activation"] == "softmax":
        (found,) = unlabelled.listed(settings, known).values()
        assert found.files == [str(tmp_path / "more.wav")]
        return
    assert loss == "binary_crossentropy"
    wanted = "categorical_crossentropy or categorical_focal_crossentropy"
    with pytest.raises(ValueError, match=f"--loss {wanted}. Received: one"):
        unlabelled.listed(settings, known)


@pytest.mark.long
def test_clips_without_labels_are_trained_on(
    corpus, main, refusal, no_pictures, tmp_path, capsys
):
    teacher, more = tmp_path / "teacher", tmp_path / "here" / "more"
    AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000), labels=["low", "high"], chunk_s=0.1
    ).save_to_preset(str(teacher))
    (more / "below").mkdir(parents=True)
    rng = np.random.default_rng(5)
    write_tone(more / "a.wav", 700, rng)
    write_tone(more / "below" / "b.wav", 900, rng)
    (more / "bad.wav").write_bytes(b"no audio")
    settings = TrainSettings(dataset="csv", data_dir=str(corpus))
    clips = settings.load()
    # That it is heard without its label, too, is nobody's secret.
    shutil.copy(clips["train"].files[0], more / "known.wav")
    out, training = tmp_path / "run", ["train", "--dataset", "csv"]
    training += ["--data-dir", corpus, "--model-kwargs", TINY_MEL]
    training += ["--chunk-s", "0.1", "--epochs", 1, "--out", out]
    taught = [*training, "--teachers", teacher]
    for asked, said in (
        ([*training, "--unlabelled", more], "--unlabelled applies to --teach"),
        ([*taught, "--unlabelled", tmp_path / "*.wav"], "*.wav"),
        ([*taught, "--unlabelled", more / "no"], "more/no: no such file"),
        (
            [*taught, "--recipe", "paper", "--unlabelled", more],
            "Received: one label a clip, loss='huber'",
        ),
    ):
        assert said in refusal(*asked)
    several = TrainSettings(
        teachers=[str(teacher)],
        unlabelled=[str(more)],
        loss="categorical_crossentropy",
    )
    for labels in ([["low", "high"]], [[]]):
        corpus_of = Corpus(["a.wav"], labels, ["low", "high"])
        with pytest.raises(ValueError, match="several labels or none, loss"):
            unlabelled.listed(several, corpus_of)
    for split in ("val", "test"):
        copied = more / "scored.wav"
        shutil.copy(clips[split].files[0], copied)
        line = refusal(*taught, "--unlabelled", more)
        assert "--unlabelled must not hold clips that are scored" in line
        assert str(copied) in line and f" in {split}" in line
        copied.unlink()
    assert not out.exists()
    # What a teacher has heard, a student has by its scores.
    np.save(teacher / heard.FILE, np.array([7], "uint64"))
    main(*taught, "--unlabelled", more / "below" / "b.wav", more)
    assert 7 in heard.read(out / "preset").learned
    train_clips = len(clips["train"]) - 1  # One of them is no audio.
    assert f"train: {train_clips + 3} clips" in capsys.readouterr().out
    record = json.loads((out / "corpus.json").read_text())
    names = [f"../more/{name}" for name in ("below/b.wav", "a.wav", "bad.wav")]
    assert set(record["splits"]["unlabelled"]) == {
        *names,
        "../more/known.wav",
    }
    assert names[-1] in record["left_out"]
    origin = json.loads((out / "preset" / "provenance.json").read_text())
    assert origin["corpus"]["unlabelled"]["files"] == 3
    assert origin["corpus"]["train"]["files"] == train_clips

    again = ["train", "--out", out, "--resume", "--unlabelled"]
    (tmp_path / "here").rename(tmp_path / "there")
    main(*again, tmp_path / "there" / "more")
    after = json.loads((out / "corpus.json").read_text())["splits"]
    assert list(after["unlabelled"]) == list(record["splits"]["unlabelled"])
    (tmp_path / "there" / "more" / "a.wav").unlink()
    line = refusal(*again, tmp_path / "there" / "more")
    assert "The corpus is not the one" in line and "../more/a.wav" in line


# As of a config, and of a module that can be imported, which Keras does not.


def test_audio_by_two_paths_is_listed_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.wav", "b.wav"):
        (tmp_path / "more").mkdir(exist_ok=True)
        (tmp_path / "more" / name).write_bytes(b"audio")
    given = ["more/b.wav", str(tmp_path / "more")]
    found = beside.listed(given, ["low"]).files
    assert [os.path.basename(file) for file in found] == ["b.wav", "a.wav"]


@pytest.mark.parametrize("split", ["val", "test"])
def test_a_teacher_has_not_learned_from_what_is_scored(
    split, refusal, corpus, tmp_path, monkeypatch
):
    settings = TrainSettings(dataset="csv", data_dir=str(corpus))
    corpora = settings.load()
    record = corpus_records.make(corpora, settings.file_root())
    splits = record["splits"]
    name, (size, *labels) = next(iter(splits[split].items()))
    teacher = tmp_path / "heard" / "preset"
    AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000), labels=["low", "high"], chunk_s=0.1
    ).save_to_preset(str(teacher))

    def learned_from(clip_bytes, left_out=None):
        train = {**splits["train"], name: [clip_bytes, *labels]}
        content = {"splits": {"train": train}, "left_out": left_out}
        path = teacher.parent / "corpus.json"
        path.write_text(json.dumps({**record, **content}))

    def of_list(preset):
        known = heard.read(preset)
        return settings.leakage().of_list(
            "teachers", str(preset), known, corpora, record
        )

    learned_from(size + 1)  # Another clip of the same name.
    assert of_list(teacher) == []
    learned_from(size)
    training = ["train", "--dataset", "csv", "--data-dir", corpus, *COMMON]
    line = refusal(*training, "--out", tmp_path / "run", "--teachers", teacher)
    assert f"--teachers {teacher} must not have learned from clips" in line
    assert f"Received: 1 of {split}, such as {corpus.parent / name}" in line
    assert not (tmp_path / "run").exists()
    # What was left out then was not learned from.
    learned_from(size, left_out={name: "no audio"})
    assert of_list(teacher) == []
    # Nor was what a pre-training was told no label of.
    learned_from(size)
    (teacher / "task.json").rename(teacher / "task")
    assert of_list(teacher) == []
    # A released preset has nothing to do with the folder that one is in.
    (teacher / "task").rename(teacher / "task.json")
    monkeypatch.chdir(teacher.parent)
    assert of_list("audio_transformer_esc10") == []


@pytest.mark.costly
@pytest.mark.parametrize("split", ["val", "test"])
def test_nothing_to_build_on_has_heard_what_is_scored(
    split, untrained, refusal, main, corpus, tmp_path
):
    """Wherever its preset lies, and whatever the clips are called now."""
    clips = TrainSettings(dataset="csv", data_dir=str(corpus)).load()[split]
    heard_before = data.prepare(clips.select([1, 0]), 8_000, tmp_path / "c")
    preset = tmp_path / "preset"
    AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000), labels=["low", "high"], chunk_s=0.1
    ).save_to_preset(str(preset))
    np.save(preset / "heard.npy", np.sort(heard_before.marks))
    origin = {"settings": {"dataset": "esc50"}, "command": "audio-tf train"}
    (preset / "provenance.json").write_text(json.dumps(origin))
    out = tmp_path / "run"
    training = ["train", "--dataset", "csv", "--data-dir", corpus]
    training += ["--epochs", 1, "--out", out]
    taught = [*training, *COMMON, "--teachers", preset]
    for name, asked in (
        ("model", [*training, "--model", preset]),
        ("teachers", taught),
        ("teachers", [*taught, "--other-splits"]),
    ):
        line = refusal(*asked)
        said = f"--{name} {preset} must not have learned from clips that"
        assert said in line, line
        assert f"Received: 2 of {split}, such as {clips.files[0]}" in line
        assert ("--other-splits allows that" in line) == (name == "model")
        assert not out.exists()
    main(*training, "--model", preset, "--other-splits")
    (leak,) = json.loads((out / "test.json").read_text())["leaks"]
    assert leak["splits"] == ["model", split] and leak["clips"] == 2
    # The run knows it still when the preset is gone, and is told so again.
    known = heard.read(out / "preset").learned
    assert set(heard_before.marks) < set(known)
    shutil.rmtree(preset)
    main("train", "--out", out, "--resume")
    np.testing.assert_array_equal(heard.read(out / "preset").learned, known)
    assert json.loads((out / "test.json").read_text())["leaks"] == [leak]
    learned = {"dataset": "esc50", "command": "audio-tf train"}
    built_on = read_provenance(out / "preset")["built_on"]
    assert built_on == [{"preset": str(preset), **learned}]


@pytest.mark.costly
def test_a_model_without_marks_has_heard_what_its_list_says(
    untrained, refusal, main, corpus, tmp_path
):
    """As a teacher without marks has, also when its run's folder is gone."""
    settings = TrainSettings(dataset="csv", data_dir=str(corpus))
    record = corpus_records.make(settings.load(), settings.file_root())
    preset, out = tmp_path / "before" / "preset", tmp_path / "run"
    AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000), labels=["low", "high"], chunk_s=0.1
    ).save_to_preset(str(preset))
    splits = record["splits"]
    listed = {"train": {**splits["train"], **splits["test"]}}
    learned = preset.parent / "corpus.json"
    learned.write_text(json.dumps({**record, "splits": listed}))
    training = ["train", "--dataset", "csv", "--data-dir", corpus]
    training += ["--epochs", 1, "--out", out, "--model", preset]
    line = refusal(*training)
    count = len(splits["test"])
    first = corpus.parent / next(iter(splits["test"]))
    assert f"--model {preset} must not have learned from clips that" in line
    assert f"{count} of test, such as {first}. " in line + ". "
    assert "--other-splits allows that" in line and not out.exists()
    main(*training, "--other-splits")
    (leak,) = json.loads((out / "test.json").read_text())["leaks"]
    assert leak["splits"] == ["model", "test"] and leak["clips"] == count
    assert leak["files"] == [first.name, first.name]
    shutil.rmtree(preset.parent)
    main("train", "--out", out, "--resume")
    assert json.loads((out / "test.json").read_text())["leaks"] == [leak]


@pytest.mark.parametrize("policy", ["float16", "mixed_bfloat16"])
def test_teachers_are_not_rounded_as_what_they_teach_is(policy, tmp_path):
    one, labels = str(tmp_path / "one"), ["low", "high"]
    AudioClassifier(tiny.backbone(), labels=labels).save_to_preset(one)
    keras.mixed_precision.set_global_policy(policy)
    student = AudioClassifier(tiny.backbone(), labels=labels)
    settings = TrainSettings(teachers=[one])
    (teacher,) = teaching.load_teachers(settings, student)
    for part in (teacher.backbone, teacher.output_dense):
        assert part.compute_dtype == part.variable_dtype == "float32"
    assert keras.config.dtype_policy().name == policy
    assert student.backbone.compute_dtype == policy.removeprefix("mixed_")


def test_the_scale_of_a_loss_goes_on_with_its_training(tmp_path):
    keras.mixed_precision.set_global_policy("mixed_float16")
    settings = TrainSettings(mixing="mixup", precision="mixed_float16")
    classifier = AudioClassifier(
        tiny.backbone(), labels=["low", "high"], activation="softmax"
    )
    train.compile(classifier, settings, 1, True)
    teaching.make_training(settings, classifier, True)
    classifier.optimizer.dynamic_scale.assign(128.0)
    classifier.save(tmp_path / "last.keras")
    again = keras.saving.load_model(tmp_path / "last.keras")
    teaching.make_training(settings, again, True)
    assert float(again.optimizer.dynamic_scale) == 128.0
    counts = [len(each.optimizer.variables) for each in (classifier, again)]
    assert counts[0] == counts[1]
