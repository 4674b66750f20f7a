"""Training and evaluation, on corpora of seconds."""

import contextlib
import csv
import importlib
import json
import os
import re
import resource
import runpy
import shutil
import sys

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

import tensorflow as tf
from scripts import TRAINING, end_at, kill_at
from training_cases import (
    COMMON,
    TINY,
    TINY_MEL,
    built,
    class_folders,
    equal_weights,
    write_tone,
)

from audio_tf import models
from audio_tf.corpora import read_fsd50k
from audio_tf.data.shares import WHOLE
from audio_tf.models import AudioClassifier
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import (
    callbacks,
    checkpoints,
    heard,
    history,
    results,
    train,
    train_callbacks,
    train_data,
    train_model,
)
from audio_tf.runs.flags import read_config


@pytest.mark.long
def test_train_evaluate_and_classify(
    corpus, main, refusal, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "run"
    source = ["--dataset", "csv", "--data-dir", corpus]
    training = [*source, *COMMON, "--epochs", 2, "--learning-rate", 0.02]

    validate = callbacks.ClipValidation.on_epoch_end

    def worse_and_worse(self, epoch, logs):
        validate(self, epoch, logs)
        logs["val_mAP"] = 1.0 / (1 + epoch)

    monkeypatch.setattr(
        callbacks.ClipValidation, "on_epoch_end", worse_and_worse
    )
    main("train", *training, "--out", out, "--export")
    output = capsys.readouterr().out
    assert "1 file left out" in output and "bad.wav" in output

    report = json.loads((out / "test.json").read_text())
    assert report["num_clips"] == 4 and report["causal"] is True
    with open(out / "history.csv") as file:
        epochs = list(csv.DictReader(file))
    assert len(epochs) == 2
    figures = {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert figures <= set(epochs[0])
    assert "\nepoch 2 of 2: loss " in output
    assert (out / "learning_curves.png").is_file()
    for split in ("val", "test"):
        assert (out / split / "confusion.png").is_file()
        told = json.loads((out / f"{split}.json").read_text())
        rows = list(csv.reader(open(out / split / "errors.csv", newline="")))
        wrong = round((1.0 - told["accuracy"]) * told["num_clips"])
        assert len(rows) == 1 + wrong
    # The validation's figures are the best epoch's.
    told = json.loads((out / "val.json").read_text())
    assert told["accuracy"] == float(epochs[0]["val_accuracy"])
    for row in epochs:
        figures = {name: float(value) for name, value in row.items()}
        # It is infinite where all classes are told apart.
        assert not np.isnan(figures.pop("val_d_prime"))
        assert np.isfinite(list(figures.values())).all()
    assert list((out / "logs").rglob("events.out.tfevents.*"))
    origin = json.loads((out / "preset" / "provenance.json").read_text())
    assert origin["settings"]["seed"] == 0
    assert origin["corpus"]["train"]["files"] == 22
    assert origin["labels"] == ["high", "low"]
    config = json.loads((out / "config.json").read_text())
    assert config["model"] == origin["model"]
    assert config["model"]["causal"] is True
    # 0.1 s of patches of 25 ms.
    assert config["model"]["made_for_frames"] == 4

    # The preset is of the best epoch, the first.
    best, last = (
        keras.saving.load_model(out / f"{name}.keras")
        for name in ("best", "last")
    )
    assert not equal_weights(best, last)
    preset = AudioClassifier.from_preset(str(out / "preset"))
    assert equal_weights(preset, best)

    known, exported = map(heard.read, (out / "preset", out / "saved_model"))
    np.testing.assert_array_equal(exported.learned, known.learned)
    for model in (out / "preset", out / "saved_model"):
        evaluated = tmp_path / "evaluated.json"
        main(
            *("evaluate", "--model", model, *source, "--report", evaluated),
            *("--pictures", tmp_path / "pictures"),
        )
        errors = (tmp_path / "pictures" / "errors.csv").read_text()
        assert errors == (out / "test" / "errors.csv").read_text()
        again = json.loads(evaluated.read_text())
        assert again["mAP"] == pytest.approx(report["mAP"], abs=1e-6)
        assert set(again["per_class"]) == {"low", "high"}

    assert "--resume" in refusal("train", *training, "--out", out)


def test_whole_clips_longer_than_a_table_are_left_out(corpus, tmp_path):
    """The table has ten frames, as long as all clips but one."""
    own = tmp_path / "own"
    shutil.copytree(corpus.parent, own)
    write_tone(own / "0.wav", 300, np.random.default_rng(5), 2_001)
    settings, classifier, _ = built(
        own / "list.csv",
        tmp_path,
        model_kwargs={**json.loads(TINY), "made_for_frames": 10},
        attention="random_synthesizer",
        chunk_s=0.0,
    )
    chunks, failures = train_data.load_chunks(
        settings, settings.load(), classifier
    )
    assert len(chunks["train"]) == 21
    assert {os.path.basename(name) for name in failures} == {"0.wav", "bad.wav"}
    reason = failures[str(own / "0.wav")]
    assert reason == "longer than the 0.25 s that the model takes"


def test_chunks_overlap_where_they_are_scored_too(corpus, tmp_path):
    _, classifier, chunks = built(corpus, tmp_path, chunk_hop_s=0.04)
    assert classifier.chunk_hop_s == 0.04
    for split in ("train", "val"):
        steps = np.diff(chunks[split].starts)
        assert 0.04 * 8_000 in steps and (steps <= 0.04 * 8_000).all(), split
    assert results.how_scored(chunks["val"])["chunk_hop_s"] == 0.04


def test_hosts_are_compared_before_they_decode_in_parts(
    corpus, tmp_path, monkeypatch
):
    """Of other splits they would wait for each other in vain, without words."""
    compared = []

    def check_alike(facts, share):
        compared.append(facts)
        raise ValueError("hosts differ")

    monkeypatch.setattr(train.hosts, "check_alike", check_alike)
    monkeypatch.setattr(train_data, "decode", None)
    settings = train.TrainSettings(
        dataset="csv",
        data_dir=str(corpus),
        cache_dir=str(tmp_path / "cache"),
        model_kwargs=json.loads(TINY),
        model="audio_transformer_small",
        test=False,
    )
    with pytest.raises(ValueError, match="hosts differ"):
        train.run(settings, tmp_path / "run")
    assert {*compared[0]["corpus"]} == {"train", "val"}
    assert not (tmp_path / "run").exists()


def test_what_diverges_is_not_kept(corpus, tmp_path, monkeypatch):
    """The callbacks that training is given end it before its checkpoint."""
    settings, classifier, chunks = built(corpus, tmp_path)
    given = {}
    monkeypatch.setattr(
        classifier, "fit", lambda dataset, **options: given.update(options)
    )
    monkeypatch.setattr(keras.saving, "load_model", lambda path: None)
    train.fit(settings, classifier, chunks, tmp_path)
    hooks = keras.callbacks.CallbackList(given["callbacks"], model=classifier)
    hooks.on_train_batch_end(0, {"loss": 0.5})
    with pytest.raises(RuntimeError, match="NaN"):
        hooks.on_train_batch_end(1, {"loss": np.nan})
    # The last step of an epoch, of which no clip that is scored is to blame.
    classifier.output_dense.bias.assign([1.0, np.nan])
    name = re.escape(classifier.output_dense.bias.path)
    with pytest.raises(ValueError, match=f"epoch 1 .*Received: .* {name}"):
        hooks.on_epoch_end(0, {"loss": 0.5})
    assert not (tmp_path / "last.keras").exists()


def test_callbacks_stand_in_the_order_of_their_stages(corpus, tmp_path):
    """Whatever the order they are made in: each finds what it reads."""
    settings, classifier, chunks = built(
        corpus, tmp_path, patience=2, schedule="plateau", learning_rate=0.5
    )
    stages = train_callbacks.of_training(
        settings, classifier, chunks, tmp_path, WHOLE, "accuracy", 0
    )
    assert set(stages) == set(train_callbacks.STAGES)

    def names(hooks):
        for hook in hooks:
            if isinstance(hook, callbacks.Nested):
                yield from names(hook.callbacks)
            else:
                yield type(hook).__name__

    backwards = dict(reversed(stages.items()))
    found = [*names(train_callbacks.in_order(backwards))]
    for chain in (
        "TerminateOnNaN FiniteWeights ClipValidation BestCheckpoint",
        "BestCheckpoint LastCheckpoint",
        "ClipValidation TensorBoard LastCheckpoint",
        "ClipValidation History LastCheckpoint LearningCurves TimeLeft",
        "EpochSeeds ClipValidation",
        "History Plateau StopTogether",
        "History Patience StopTogether",
    ):
        places = [found.index(name) for name in chain.split()]
        assert places == sorted(places), chain
    with pytest.raises(KeyError, match=r"one of \['guard'.*: \['kept'\]"):
        train_callbacks.in_order({"kept": [], "show": []})


def test_a_new_training_keeps_nothing_of_another(corpus, tmp_path):
    """Without validation, the best model of that would be its own."""
    settings, classifier, chunks = built(corpus, tmp_path)
    left = [tmp_path / name for name in ("best.keras", "val_scores.npy")]
    for epochs_done in (3, 0):
        for file in left:
            file.write_bytes(b"of the run before")
        train_callbacks.of_training(
            *(settings, classifier, {"train": chunks["train"]}),
            *(tmp_path, WHOLE, "accuracy", epochs_done),
        )
        assert [each.is_file() for each in left] == [epochs_done > 0] * 2


@pytest.mark.parametrize("batch_size, scored", [(5, 5), (200, 64)])
def test_no_more_is_scored_at_once_than_is_trained_on(
    batch_size, scored, corpus, tmp_path, monkeypatch, no_pictures
):
    """Or a training whose batches just fit ends at its first validation."""
    settings, classifier, chunks = built(
        corpus, tmp_path, batch_size=batch_size
    )
    given, sizes = {}, []
    monkeypatch.setattr(
        classifier, "fit", lambda dataset, **options: given.update(options)
    )
    train.fit(settings, classifier, chunks, tmp_path)
    (validation,) = [
        each
        for hook in given["callbacks"]
        if isinstance(hook, callbacks.OnModel)
        for each in hook.callbacks
        if isinstance(each, callbacks.ClipValidation)
    ]
    assert validation.batch_size == scored

    def score(model, chunks, size, verbose):
        sizes.append(size)
        return np.full(chunks.targets.shape, 0.5)

    # At the end: of the split val there are no scores kept here.
    done = train.Prepared(chunks, [], None, {}, {}, {})
    monkeypatch.setattr(train, "train", lambda *_: done)
    monkeypatch.setattr(train, "kept_model", lambda *_: classifier)
    monkeypatch.setattr(train, "save", lambda *_: None)
    monkeypatch.setattr(train.data, "score_clips", score)
    train.run(settings, tmp_path)
    assert sizes == [scored, scored]


def test_figures_of_validation_need_its_split(corpus, tmp_path):
    for options in (
        {"patience": 2},
        {"monitor": "val_loss"},
        {"schedule": "plateau"},
    ):
        settings, classifier, _ = built(corpus, tmp_path, **options)
        corpora = {"train": settings.load()["train"]}
        (name,) = options
        with pytest.raises(ValueError, match=f"--{name} needs a validation"):
            train_data.load_chunks(settings, corpora, classifier)


def test_a_figure_that_no_model_can_change_chooses_no_epoch(corpus, tmp_path):
    """One clip of validation has a mean average precision of 1, always."""
    settings, classifier, _ = built(corpus, tmp_path)
    for rows in ([0], [0, 2]):
        corpora = settings.load()
        corpora["val"] = corpora["val"].select(rows)
        with pytest.raises(ValueError, match="--monitor val_mAP must tell"):
            train_data.load_chunks(settings, corpora, classifier)
    corpora["val"] = settings.load()["val"].select([0])
    for monitor, fits in (
        ("val_loss", True),
        ("val_accuracy", True),
        ("val_lwlrap", True),
        ("val_d_prime", False),
        ("val_pr_auc_macro", False),
    ):
        settings.monitor = monitor
        with contextlib.ExitStack() as context:
            if not fits:
                message = f"{monitor} must tell .*: 1 clips, labelled 'low'"
                context.enter_context(pytest.raises(ValueError, match=message))
            train_data.load_chunks(settings, corpora, classifier)


def test_a_label_that_no_clip_of_training_has_is_told(corpus, tmp_path, capsys):
    settings, classifier, chunks = built(corpus, tmp_path)
    assert "no clip has" not in capsys.readouterr().out
    corpora = settings.load()
    rows = [row for row in range(len(corpora["train"])) if row % 2 == 0]
    corpora["train"] = corpora["train"].select(rows)
    train_data.load_chunks(settings, corpora, classifier)
    said = capsys.readouterr().out
    assert "train: no clip has 'high', which a model of 2 labels" in said


def test_the_rate_of_a_plateau_is_that_of_training(
    corpus, tmp_path, monkeypatch
):
    settings, classifier, chunks = built(
        corpus,
        tmp_path,
        schedule="plateau",
        plateau_patience=1,
        learning_rate=0.5,
        epochs=9,
    )
    given = {}
    monkeypatch.setattr(
        classifier, "fit", lambda *_, **more: given.update(more)
    )
    monkeypatch.setattr(keras.saving, "load_model", lambda path: None)
    train.fit(settings, classifier, chunks, tmp_path)
    rows = [{"epoch": 0, "val_mAP": 0.5}, {"epoch": 1, "val_mAP": 0.4}]
    history.write(tmp_path / "history.csv", ["epoch", "val_mAP"], rows)
    hooks = keras.callbacks.CallbackList(given["callbacks"], model=classifier)
    hooks.on_epoch_begin(2)
    assert float(classifier.optimizer.learning_rate) == 0.25


def test_a_run_that_patience_ended_is_not_trained_on(
    corpus, tmp_path, monkeypatch
):
    settings, classifier, chunks = built(corpus, tmp_path, patience=1, epochs=9)
    train.compile(classifier, settings, 1, False)
    last = checkpoints.LastCheckpoint(tmp_path / "last.keras")
    last.set_model(classifier)
    last.on_epoch_end(1)
    fitted = []
    monkeypatch.setattr(classifier, "fit", lambda *_, **__: fitted.append(1))
    for second, goes_on in ((0.4, False), (0.6, True)):
        rows = [
            {"epoch": 0, "val_mAP": 0.5},
            {"epoch": 1, "val_mAP": second},
        ]
        names = ["epoch", "val_mAP"]
        history.write(tmp_path / "history.csv", names, rows)
        train.fit(settings, classifier, chunks, tmp_path)
        assert bool(fitted) is goes_on


@pytest.mark.costly
def test_an_epoch_of_one_batch_is_a_step_of_adam(
    corpus, tmp_path, eager_models
):
    """Of the mean Huber loss of all chunks, by hand."""
    settings, classifier, chunks = built(
        corpus,
        tmp_path,
        batch_size=99,
        epochs=1,
        learning_rate=0.01,
        dropout=0.0,
    )
    del chunks["val"]
    (batch,) = chunks["train"].dataset(99)
    x, targets = batch
    with tf.GradientTape() as tape:
        error = tf.abs(classifier(x, training=True) - targets)
        huber = tf.where(error < 1.0, 0.5 * error**2, error - 0.5)
        loss = tf.reduce_mean(huber)
    before = [each.numpy() for each in classifier.trainable_weights]
    gradients = tape.gradient(loss, classifier.trainable_weights)
    train.fit(settings, classifier, chunks, tmp_path)
    kept = train_model.kept_model(settings, tmp_path)
    (row,) = history.read(tmp_path / "history.csv")[1]
    assert float(row["loss"]) == pytest.approx(float(loss), rel=1e-4)
    checked = 0
    for old, weight, gradient in zip(
        before, kept.trainable_weights, gradients, strict=True
    ):
        gradient = gradient.numpy()
        # Where float32's rounding cannot turn the sign.
        clear = np.abs(gradient) > 1e-5
        # Means of one gradient, beta 0.9 and 0.999, both unbiased.
        root = np.sqrt(0.001) * np.abs(gradient[clear])
        step = 0.01 * np.sqrt(0.001) * gradient[clear] / (root + 1e-7)
        moved = (weight.numpy() - old)[clear]
        np.testing.assert_allclose(moved, -step, rtol=0.01, atol=1e-6)
        checked += clear.sum()
    assert checked > 100


@pytest.mark.long
@pytest.mark.parametrize(
    "killed", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_killed_and_resumed_equals_unbroken(
    killed, corpus, main, refusal, no_pictures, tmp_path, request
):
    """Killed after an epoch's row of the history, before its checkpoint."""
    if not killed:
        request.getfixturevalue("eager_models")
    teacher = tmp_path / "teacher"
    tiny_mel = {**json.loads(TINY_MEL), "filterbank": "log_mel"}
    AudioClassifier(
        models.AudioTransformerBackbone(**tiny_mel),
        labels=["low", "high"],
        chunk_s=0.1,
    ).save_to_preset(str(teacher))
    arguments = ["--dataset", "csv", "--data-dir", corpus]
    arguments += ["--recipe", "strong", "--augmentation", "voice"]
    arguments += ["--model-kwargs", TINY_MEL, "--chunk-s", "0.1"]
    arguments += ["--epochs", 2, "--dropout", 0.3, "--jitter"]
    arguments += ["--batch-size", 24, "--average-share", 0.5]
    arguments += ["--mixing", "between_class", "--teachers", teacher]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    main("train", *arguments, "--out", whole)
    end = ("audio_tf.runs.checkpoints:LastCheckpoint.on_epoch_end", 2)
    run = ("train", *arguments, "--out", broken)
    if killed:
        kill_at(*end, *run, cache=tmp_path / "cache")
    else:
        end_at(*end, main, *run)
    assert checkpoints.epochs_done(broken / "last.keras") == 1
    assert len(history.read(broken / "history.csv")[1]) == 2

    main("train", "--out", broken, "--resume")
    one, other = (
        keras.saving.load_model(folder / "last.keras")
        for folder in (whole, broken)
    )
    assert int(one.optimizer.iterations) == 2 * 3
    assert equal_weights(one, other)
    rows = [
        history.read(folder / "history.csv")[1] for folder in (whole, broken)
    ]
    assert rows[0] == rows[1]
    assert [row["epoch"] for row in rows[0]] == list("01")

    # The teacher is known by its weights.
    origin = json.loads((whole / "preset" / "provenance.json").read_text())
    (told,) = origin["teachers"]
    assert told["preset"] == str(teacher)
    loaded = AudioClassifier.from_preset(str(teacher))
    assert told["weights_sha256"] == weights_sha256(loaded.weights)
    loaded.output_dense.bias.assign([0.25, 0.5])
    shutil.rmtree(teacher)
    loaded.save_to_preset(str(teacher))
    line = refusal("train", "--out", whole, "--resume")
    assert "--teachers are not those" in line and str(teacher) in line


@pytest.mark.costly
def test_a_test_that_was_left_out_is_scored_when_asked_for(
    untrained, corpus, main, refusal, tmp_path
):
    """Of the model that was chosen without it, bad clips of it left out."""
    own, out = tmp_path / "own", tmp_path / "run"
    shutil.copytree(corpus.parent, own)
    (own / "worse.wav").write_bytes(b"no sound either")
    with open(own / "list.csv", "a", newline="") as file:
        csv.writer(file).writerow(["worse.wav", "low", "test"])
    training = ["train", "--dataset", "csv", "--data-dir", own / "list.csv"]
    training += [*COMMON, "--epochs", 1, "--out", out]
    main(*training, "--no-test")
    preset = out / "preset"
    first = json.loads((preset / "provenance.json").read_text())
    assert first["test"] is None and set(first["corpus"]) == {"train", "val"}
    assert not (out / "test.json").exists()

    again = ["train", "--out", out, "--resume"]
    main(*again, "--test")
    origin = json.loads((preset / "provenance.json").read_text())
    assert origin["corpus"]["test"]["files"] == 4
    assert origin["settings"]["test"] is True
    report = json.loads((out / "test.json").read_text())
    assert origin["test"]["accuracy"] == report["accuracy"]
    assert report["num_clips"] == 4
    assert {k: origin["corpus"][k] for k in first["corpus"]} == first["corpus"]
    # It cannot be taken back, and no clip may be added to it.
    assert "removed, test" in refusal(*again, "--no-test")
    shutil.copy(own / "0.wav", own / "new.wav")
    with open(own / "list.csv", "a", newline="") as file:
        csv.writer(file).writerow(["new.wav", "low", "test"])
    line = refusal(*again)
    assert "new.wav" in line and "added, test" in line


@pytest.mark.slow
def test_statistics_of_batches_go_on_as_weights_do(
    corpus, main, eager_models, tmp_path, monkeypatch
):
    """Of a convolutional model, whose own head no recipe replaces."""
    kwargs = {"filters": [3], "depths": [1], "num_mel_bins": 8}
    kwargs = json.dumps({**kwargs, "sample_rate_hz": 8_000})
    arguments = ["--dataset", "csv", "--data-dir", corpus, "--epochs", 2]
    arguments += ["--model", "vgg_like", "--model-kwargs", kwargs]
    arguments += ["--chunk-s", "0.1", "--batch-size", 22]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    main("train", *arguments, "--out", whole)
    save = checkpoints.LastCheckpoint.on_epoch_end

    def save_once(self, epoch, logs=None):
        if epoch:
            raise RuntimeError("broken off")
        save(self, epoch, logs)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.LastCheckpoint, "on_epoch_end", save_once)
        with pytest.raises(SystemExit):
            main("train", *arguments, "--out", broken)
    main("train", "--out", broken, "--resume")
    one, other = (
        keras.saving.load_model(folder / "last.keras")
        for folder in (whole, broken)
    )
    assert equal_weights(one, other)
    moving = [w for w in one.weights if "moving" in w.path]
    assert len(moving) == 2
    assert all(np.ptp(weight.numpy()) > 0.0 for weight in moving)
    # The average of weights was validated with the statistics of now.
    best = keras.saving.load_model(whole / "best.keras")
    assert not equal_weights(one, best)
    assert one.pooling == "max_mean" and one.hidden_dim == 256
    config = json.loads((whole / "config.json").read_text())
    assert config["settings"]["pooling"] == "max_mean"
    assert config["model"]["attention"] is None


@pytest.mark.long
def test_a_run_keeps_its_labels_and_files(untrained, main, refusal, tmp_path):
    """What a run was made from may move, but not change."""
    folder, out = tmp_path / "tones", tmp_path / "run"
    class_folders(folder, ["a", "b", "c"])
    training = ["--dataset", "folders", "--data-dir", folder, "--epochs", 1]
    main("train", *training, *COMMON, "--out", out)
    resume = ["train", "--out", out, "--resume"]

    # Two labels swap their places, and all is as before but its meaning.
    (folder / "a").rename(folder / "x")
    line = refusal(*resume)
    assert "labels: 'a' gone, 'x' new" in line and "corpus.json" in line
    (folder / "x").rename(folder / "a")
    moved = tmp_path / "moved"
    folder.rename(moved)
    main(*resume, "--data-dir", moved)

    (moved / "b" / "new.wav").write_bytes((moved / "b/0.wav").read_bytes())
    line = refusal(*resume)
    assert "1 files ('b/new.wav') added, " in line
    # Another number of files is drawn otherwise.
    assert "in another split, " in line and "removed" not in line
    (moved / "b" / "new.wav").unlink()
    kept = (moved / "b" / "3.wav").read_bytes()
    write_tone(moved / "b" / "3.wav", 440, np.random.default_rng(0), 2_001)
    assert "Received: 1 files ('b/3.wav') changed, " in refusal(*resume)
    (moved / "b" / "3.wav").write_bytes(kept)
    main(*resume)


@pytest.mark.long
def test_the_order_of_labels_is_kept_by_every_script(
    untrained, main, refusal, tmp_path
):
    """And evaluation maps another order by name."""
    folder = tmp_path / "tones"
    class_folders(folder, ["a", "b", "c"], 4)
    rows = [["filename", "labels", "split"]]
    for number in range(4):
        split = ("train", "train", "val", "test")[number]
        rows += [[f"{name}/{number}.wav", name, split] for name in "abc"]
    with open(folder / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    order = folder / "order.txt"
    order.write_text("c\na\nb\n")
    source = ["--dataset", "csv", "--data-dir", folder / "list.csv"]
    ordered = [*source, "--vocabulary", order]
    out, second = tmp_path / "run", tmp_path / "second"
    main("train", *ordered, *COMMON, "--epochs", 1, "--out", out)
    order.write_text("a\nc\nb\n")
    line = refusal("train", "--out", out, "--resume")
    assert "the same in another order, 'a', 'c', 'b' instead of 'c'" in line

    reports = []
    for number, labels in enumerate(("c\na\nb\n", "a\nb\nc\n")):
        order.write_text(labels)
        path = tmp_path / f"{number}.json"
        evaluating = ["evaluate", "--model", out / "preset", *ordered]
        main(*evaluating, "--report", path)
        reports.append(json.loads(path.read_text()))
    for name in ("mAP", "lwlrap", "accuracy", "roc_auc"):
        assert reports[0][name] == pytest.approx(reports[1][name], abs=1e-9)
    one, other = (each["per_class"] for each in reports)
    assert list(one) == ["c", "a", "b"] and list(other) == ["a", "b", "c"]
    assert one == other

    # Labels that the model does not have, by name.
    rows = [[*row[:1], row[1].replace("b", "d"), *row[2:]] for row in rows]
    rows[0] = ["filename", "labels", "split"]
    with open(folder / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    line = refusal("evaluate", "--model", out / "preset", *source)
    assert "without 'd', with 'b' beyond" in line

    # A head for other labels, or the same in another order, is a new one.
    main(
        *("train", *source, "--epochs", 1, "--out", second),
        *("--model", out / "preset"),
    )
    model = AudioClassifier.from_preset(str(second / "preset"))
    assert model.labels == ["a", "c", "d"]


def test_a_mistake_leaves_no_folder_behind(refusal, corpus, tmp_path):
    out = tmp_path / "run"
    source = ["--dataset", "csv", "--data-dir", corpus]
    whole = ["--model-kwargs", TINY, "--chunk-s", 0]
    (tmp_path / "empty").mkdir()
    for flags, said in (
        (["--data-dir", tmp_path / "none", "--dataset", "folders"], "none"),
        (["--data-dir", tmp_path / "empty", "--dataset", "folders"], "empty"),
        (["--dataset", "folders"], "--data-dir is needed"),
        ([*source, "--model", "audio_transformer_smal"], "_small"),
        ([*source, "--model-kwargs", '{"num_heads": 0}'], "num_heads"),
        ([*source, *whole, "--jitter"], "--jitter applies to chunks"),
        (
            [*source, *whole, "--chunk-hop-s", 1],
            "--chunk-hop-s applies to chunks",
        ),
    ):
        line = refusal("train", *flags, "--epochs", 1, "--out", out)
        assert said in line, line
    assert not out.exists()


@pytest.mark.long
def test_whatever_a_file_is_called(
    main, tmp_path, capsys, monkeypatch, eager_models, no_pictures
):
    """Names that are no UTF-8, and sources that are gone when a run ends.

    Of a clip that is too loud the samples are finite, but no longer so in the
    model: it is one bad clip.
    """
    folder, out = tmp_path / "tones", tmp_path / "run"
    class_folders(folder, ["a", "b"])
    odd = os.fsdecode(b"\xff\xe4.wav")
    shutil.copy(folder / "a" / "0.wav", folder / "a" / odd)
    odd_bad = os.fsdecode(b"\xfe.wav")
    (folder / "a" / odd_bad).write_text("no sound")
    loud = np.full(2_000, 1e30, "float32")
    soundfile.write(folder / "a" / "loud.wav", loud, 8_000, subtype="FLOAT")
    training = ["--dataset", "folders", "--data-dir", folder, "--epochs", 1]
    original = train.fit

    def deleting(*arguments):
        model = original(*arguments)
        shutil.rmtree(folder / "b")
        return model

    monkeypatch.setattr(train, "fit", deleting)
    main("train", *training, *COMMON, "--out", out)
    output = capsys.readouterr().out
    assert "2 files left out" in output and "loud.wav" in output
    origin = json.loads((out / "preset" / "provenance.json").read_text())
    files = {name: each["files"] for name, each in origin["corpus"].items()}
    assert sum(files.values()) == 21
    listed = json.loads((out / "corpus.json").read_text())
    names = [name for split in listed["splits"].values() for name in split]
    assert f"a/{odd}" in names
    assert set(listed["left_out"]) == {f"a/{odd_bad}", "a/loud.wav"}


@pytest.mark.long
def test_a_full_disk_is_one_line_and_the_last_checkpoint_stays(
    corpus, refusal, tmp_path, monkeypatch, eager_models, no_pictures
):
    out = tmp_path / "run"
    original, before = checkpoints.LastCheckpoint.on_epoch_end, []

    def on_a_full_disk(self, epoch, logs=None):
        if not before:
            original(self, epoch, logs)
            before.append(self.path.read_bytes())
            return
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(
            resource.RLIMIT_FSIZE, (len(before[0]) // 2, limits[1])
        )
        try:
            original(self, epoch, logs)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    monkeypatch.setattr(
        checkpoints.LastCheckpoint, "on_epoch_end", on_a_full_disk
    )
    arguments = ["--dataset", "csv", "--data-dir", corpus, *COMMON]
    line = refusal("train", *arguments, "--epochs", 3, "--out", out)
    assert "File too large" in line
    assert f"{out / 'last.keras'} is whole, after epoch 1" in line
    assert (out / "last.keras").read_bytes() == before[0]
    assert not list(out.glob(".*"))


def test_what_there_is_to_resume(refusal, tmp_path):
    line = refusal("train", "--resume", "--out", tmp_path / "none")
    assert "nothing to resume" in line


def test_every_config_of_the_repository_is_known():
    configs = sorted((TRAINING / "configs").glob("*.py"))
    assert configs
    for config in configs:
        name = f"training/configs/{config.name}"
        script = re.search(
            rf"python training/(\w+)\.py --config {name}", config.read_text()
        )[1]
        module = importlib.import_module(f"audio_tf.runs.{script}")
        settings_class = getattr(module, f"{script.capitalize()}Settings")
        assert settings_class(**read_config(config, settings_class))


def test_every_script_is_the_library(capsys, monkeypatch):
    """And its help shows its commands."""
    scripts = sorted(TRAINING.glob("*.py"))
    assert scripts
    for script in scripts:
        table = ["ssl"] if script.stem == "reproduce" else []
        monkeypatch.setattr(sys, "argv", [str(script), *table, "--help"])
        with pytest.raises(SystemExit) as stopped:
            runpy.run_path(str(script), run_name="__main__")
        assert stopped.value.code == 0
        said = capsys.readouterr().out
        assert f"usage: {script.name}" in said, script
        assert f"\n    audio-tf {script.stem} " in said, script
        assert f"\n    python training/{script.name} " in script.read_text()


@pytest.mark.long
def test_fsd50k_from_its_released_layout(
    mini_fsd50k, untrained, main, tmp_path, capsys
):
    """Real clips in FSD50K's folders, through the code that reads FSD50K."""
    source = ["--dataset", "fsd50k", "--data-dir", mini_fsd50k]
    out = tmp_path / "run"
    main(
        *("train", *source, "--model-kwargs", TINY, "--epochs", 1),
        *("--out", out),
    )
    model = AudioClassifier.from_preset(str(out / "preset"))
    assert model.num_classes == 200 and model.labels[14] == "Bird"
    capsys.readouterr()
    main("evaluate", "--model", out / "preset", *source)
    output = capsys.readouterr().out
    assert "num_clips" in output and "80" in output
    assert len(read_fsd50k(mini_fsd50k)["test"]) == 80
