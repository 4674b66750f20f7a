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
import tiny
from scripts import TRAINING, end_at, kill_at

from audio_tf import data, layers, metrics, models, optimizers
from audio_tf.corpora import Corpus, read_fsd50k
from audio_tf.data.shares import WHOLE
from audio_tf.export.classifiers import read_provenance
from audio_tf.models import AudioClassifier
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import (
    beside,
    callbacks,
    checkpoints,
    heard,
    history,
    noise,
    optimizing,
    provenance,
    recipes,
    results,
    teaching,
    train,
    train_callbacks,
    train_data,
    train_model,
    unlabelled,
)
from audio_tf.runs.flags import read_config
from audio_tf.runs.train_settings import TrainSettings

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


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A CSV corpus of two tones; one file of it is not audio."""
    folder = tmp_path_factory.mktemp("corpus")
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


@pytest.fixture
def untrained(monkeypatch, no_pictures, eager_models):
    """Runs are as they are, but that no weight is trained and nothing drawn."""

    def fit(settings, classifier, chunks, out, teachers, share, bank):
        if not (out / "last.keras").is_file():
            train.compile(classifier, settings, 1, False)
            last = checkpoints.LastCheckpoint(out / "last.keras")
            last.set_model(classifier)
            last.on_epoch_end(settings.epochs - 1)
        return classifier

    monkeypatch.setattr(train, "fit", fit)


def equal_weights(one, other):
    return all(
        np.array_equal(a, b)
        for a, b in zip(one.get_weights(), other.get_weights(), strict=True)
    )


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


@pytest.mark.parametrize("several", [False, True])
def test_the_loss_is_that_of_the_head_whatever_bad_files_leave(
    several, corpus, tmp_path
):
    """The only clip of several labels may be no sound at all."""
    own = tmp_path / "own"
    shutil.copytree(corpus.parent, own)
    if several:
        text = (own / "list.csv").read_text()
        text = text.replace("bad.wav,low", 'bad.wav,"low,high"')
        (own / "list.csv").write_text(text)
    settings = train.TrainSettings(
        dataset="csv",
        data_dir=str(own / "list.csv"),
        cache_dir=str(tmp_path / "cache"),
        model="audio_transformer_small",
        model_kwargs=json.loads(TINY),
        chunk_s=0.1,
    )
    corpora = settings.load()
    classifier = train_model.build(settings, corpora["train"])
    chunks, _ = train_data.load_chunks(settings, corpora, classifier)
    targets = train.known_targets(settings, chunks)
    one_label = metrics.one_label_each(targets)
    assert one_label
    train.compile(classifier, settings, 1, one_label)
    softmax = classifier.activation is keras.activations.softmax
    assert softmax == (not several)
    kind = "Categorical" if softmax else "Binary"
    assert type(classifier.loss).__name__ == f"{kind}Crossentropy"


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


def test_a_head_may_learn_faster_than_its_backbone(corpus, tmp_path):
    settings, classifier, _ = built(corpus, tmp_path, head_rate=10.0)
    train.compile(classifier, settings, 1, True)
    classifier.optimizer.build(classifier.trainable_variables)
    heads = {"predictions/kernel": 10.0, "predictions/bias": 10.0}
    assert classifier.optimizer.rate_factors == heads
    assert sorted(classifier.optimizer.factors)[-3:] == [1.0, 10.0, 10.0]
    # Without decay it is the Adam that the recipe has.
    assert classifier.optimizer.weight_decay == 0.0
    train.compile(classifier, settings.replace(head_rate=1.0), 1, True)
    assert type(classifier.optimizer) is keras.optimizers.Adam
    # But for weights in half, of whose precision its moments would be.
    half = settings.replace(head_rate=1.0, precision="float16")
    optimizer = optimizing.make_optimizer(half, 1)
    assert type(optimizer) is optimizers.Lamb
    assert optimizer.weight_decay == 0.0 and not optimizer.use_ema
    with pytest.raises(ValueError, match="--head-rate.*--trainable all alone"):
        settings.replace(trainable="head")


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
        "TerminateOnNaN ClipValidation BestCheckpoint LastCheckpoint",
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
    assert set(heard_there.marks) <= set(heard.read(out / "preset"))

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
@pytest.mark.parametrize("module", ["audio_tf_config", __name__])
def test_a_class_that_could_not_be_loaded_is_refused_before_training(
    module, refusal, corpus, tmp_path, monkeypatch
):
    class Unregistered(models.AudioTransformerBackbone):
        __module__ = module

    made = AudioClassifier(
        Unregistered(**tiny.SIZES, sample_rate_hz=8_000), labels=["low", "high"]
    )
    monkeypatch.setattr(AudioClassifier, "from_preset", lambda *_, **__: made)
    out = tmp_path / "run"
    line = refusal(
        *["train", "--dataset", "csv", "--data-dir", corpus, "--out", out]
    )
    assert "register_keras_serializable(). Received: Unregistered" in line
    assert not out.exists()


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
    record = provenance.corpus_record(corpora, settings.file_root())
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
    record = provenance.corpus_record(settings.load(), settings.file_root())
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


def class_folders(folder, names, per_class=10):
    """A folder of tones a class, of the class's own rate."""
    rng = np.random.default_rng(4)
    for index, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            rate_hz = 300 * (1 + index)
            write_tone(folder / name / f"{number}.wav", rate_hz, rng)


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


def backbone_config(preset):
    config = models.AudioBackbone.from_preset(str(preset)).get_config()
    return {name: config[name] for name in config if name != "name"}


@pytest.mark.long
def test_a_preset_stays_what_it_is(
    untrained, main, refusal, corpus, tmp_path, capsys
):
    """Fine-tuning changes what is given, and nothing else."""
    kwargs = {**json.loads(TINY), "dropout": 0.3, "filterbank": "mel"}
    backbone = models.AudioTransformerBackbone(
        **kwargs,
        attention="sparse_strided",
        attention_kwargs={"stride": 2},
        causal=False,
        made_for_frames=9,
    )
    preset = tmp_path / "preset"
    AudioClassifier(
        backbone, num_classes=7, chunk_s=0.125, silence_db=-50.0
    ).save_to_preset(str(preset))
    before = backbone_config(preset)
    tuning = ["train", "--dataset", "csv", "--data-dir", corpus]
    tuning += ["--model", preset, "--epochs", 1]
    main(*tuning, "--out", tmp_path / "same")
    assert backbone_config(tmp_path / "same" / "preset") == before
    model = AudioClassifier.from_preset(str(tmp_path / "same" / "preset"))
    assert model.chunk_s == 0.125 and model.silence_db == -50.0
    config = json.loads((tmp_path / "same" / "config.json").read_text())
    assert config["model"]["causal"] is False
    assert config["model"]["attention"] == "sparse_strided"

    main(*tuning, "--dropout", 0.5, "--silence-db", 0, "--out", tmp_path / "o")
    after = backbone_config(tmp_path / "o" / "preset")
    assert after == {**before, "dropout": 0.5}
    model = AudioClassifier.from_preset(str(tmp_path / "o" / "preset"))
    assert model.silence_db is None and model.chunk_s == 0.125

    # The same labels have their head again.
    again = ["--model", tmp_path / "o" / "preset", "--learning-rate", 1e-30]
    capsys.readouterr()
    main(*tuning, *again, "--out", tmp_path / "again")
    assert "the preset's head for" in capsys.readouterr().out
    tuned = AudioClassifier.from_preset(str(tmp_path / "again" / "preset"))
    np.testing.assert_allclose(
        tuned.output_dense.kernel, model.output_dense.kernel, atol=1e-6
    )

    # A mechanism that its weights are not those of.
    line = refusal(*tuning, "--attention", "random_synthesizer", "--out", "x")
    assert "--attention: " in line and "'stride'" in line
    line = refusal(*tuning, "--model-kwargs", '{"key_dim": 5}', "--out", "x")
    assert "do not fit" in line


@pytest.mark.long
def test_the_head_alone_is_trained(
    main, refusal, corpus, tmp_path, eager_models, no_pictures
):
    """And the preset that comes of it is not frozen."""
    kwargs = {**json.loads(TINY_MEL), "filterbank": "log_mel", "dropout": 0.5}
    backbone = models.AudioTransformerBackbone(
        **kwargs,
        norm_first=True,
        causal=False,
        augmentation=[layers.RandomGain(), layers.TimeMasking(2)],
    )
    preset, out = tmp_path / "preset", tmp_path / "run"
    AudioClassifier(backbone, num_classes=7, chunk_s=0.1).save_to_preset(
        str(preset)
    )
    tuning = ["train", "--dataset", "csv", "--data-dir", corpus]
    tuning += ["--trainable", "head", "--epochs", 1, "--batch-size", 99]
    main(*tuning, "--model", preset, "--out", out)
    last = keras.saving.load_model(out / "last.keras")
    assert equal_weights(last.backbone, backbone)
    assert len(last.trainable_weights) == 2
    # An epoch is a step, with two moments and an average of either weight.
    assert int(last.optimizer.iterations) == 1
    moved = [np.abs(each).max() for each in last.output_dense.get_weights()]
    assert moved[1] > 0.0
    tuned = AudioClassifier.from_preset(str(out / "preset"))
    assert len(tuned.trainable_weights) == 2 + len(backbone.trainable_weights)
    assert tuned.backbone.dropout == 0.5

    # What the weights would not feel.
    line = refusal(*tuning, "--model", preset, "--dropout", 0.1, "--out", "x")
    assert "--dropout" in line and "--trainable head" in line
    line = refusal(*tuning, *COMMON[:-2], "--out", "x")
    assert "--trainable head needs a preset" in line


@pytest.mark.costly
def test_what_a_backbone_does_not_take_is_named_by_its_flag(
    untrained, refusal, main, corpus, tmp_path
):
    encoder = models.SpeechEncoder(
        tiny.albert(),
        layers.SpeechFeatures(
            "s3prl", 8_000, {"num_mel_bins": 13, "fft_length": 256}
        ),
    )
    preset = tmp_path / "encoder"
    encoder.save_to_preset(str(preset))
    tuning = ["train", "--dataset", "csv", "--data-dir", corpus]
    tuning += ["--epochs", 1, "--out", tmp_path / "run"]
    for flags, blamed, said in (
        (["--model", preset, "--filterbank", "mel"], "--filterbank: ", ""),
        (
            ["--model", preset, "--augmentation", "voice"],
            "--augmentation: ",
            "VocalTractPerturbation augments the spectrum",
        ),
        (
            ["--model", "audio_albert_3", "--augmentation", "sound"],
            "--augmentation must be none for AudioAlbertBackbone",
            "augmentation='sound'",
        ),
        (
            ["--model-kwargs", '{"num_layer": 1}'],
            "--model-kwargs: ",
            "did you mean 'num_layers'",
        ),
        (
            [
                *("--attention", "xbox"),
                *("--attention-kwargs", '{"num_candidate": 1}'),
            ],
            "--attention-kwargs: ",
            "did you mean 'num_candidates'",
        ),
    ):
        line = refusal(*tuning, *flags)
        assert blamed in line and said in line, line
    assert not (tmp_path / "run").exists()
    # What the encoder within it takes reaches it.
    sound = ["--augmentation", "sound"]
    main(*tuning, "--model", preset, "--dropout", 0.25, *sound)
    tuned = models.AudioBackbone.from_preset(str(tmp_path / "run" / "preset"))
    assert tuned.encoder.dropout == 0.25
    assert len(tuned.augmentation) == 3


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


def test_one_label_alone_is_nothing_to_learn(refusal, tmp_path):
    """Softmax of one class says 1 whatever it hears, and is always right."""
    listed = tmp_path / "list.csv"
    source = ["--dataset", "csv", "--data-dir", listed]
    rows = "filename,labels\n" + "".join(f"{n}.wav,bark\n" for n in range(12))
    listed.write_text(rows)
    line = refusal("train", *source, "--out", tmp_path / "run")
    assert "two labels" in line and "'bark' of all 10 clips of training" in line
    assert not (tmp_path / "run").exists()
    # Nor do labels that no clip has make a difference.
    order = tmp_path / "labels.csv"
    order.write_text("bark\nmeow\n")
    line = refusal("train", *source, "--vocabulary", order)
    assert "'bark' of all 10 clips of training" in line
    for split, clips in (("test", 0), ("train", 2)):
        listed.write_text(
            f"filename,labels,split\na.wav,,{split}\nb.wav,,{split}\n"
        )
        line = refusal("train", *source, "--vocabulary", order)
        assert f"Received: {clips} clips, none with a label" in line
    # Where a clip lacks it, it can be told.
    corpus = Corpus(["a.wav", "b.wav"], [["bark"], []], ["bark"])
    settings = TrainSettings(model_kwargs=json.loads(TINY_MEL))
    assert train_model.build(settings, corpus).labels == ["bark"]


@pytest.mark.parametrize("rests", ["backbone", "classifier", "encoder"])
def test_what_rests_in_a_preset_is_trained_where_it_is_asked_for(
    rests, tmp_path
):
    """Such as one that a script has saved after it has trained a new head."""
    backbone = tiny.backbone(trainable=rests != "backbone")
    if rests == "encoder":
        backbone = models.SpeechEncoder(
            tiny.albert(trainable=False),
            layers.SpeechFeatures("s3prl", 4_000, {"num_mel_bins": 13}),
        )
    AudioClassifier(
        backbone,
        labels=["low", "high"],
        chunk_s=0.1,
        trainable=rests != "classifier",
    ).save_to_preset(str(tmp_path / "preset"))
    corpus = Corpus(["a.wav", "b.wav"], [["low"], ["high"]], ["low", "high"])
    for trainable in ("all", "head"):
        settings = TrainSettings(
            model=str(tmp_path / "preset"), trainable=trainable
        )
        built = train_model.build(settings, corpus)
        trained = {"all": built.weights, "head": built.weights[-2:]}[trainable]
        assert [w.path for w in built.trainable_weights] == [
            w.path for w in trained
        ]


def test_a_decoder_of_a_frozen_model_is_trained_by_another_command(tmp_path):
    models.GaussianAdaptiveTransformer(
        tiny.backbone(), labels=["low", "high"], filters=4
    ).save_to_preset(str(tmp_path / "preset"))
    corpus = Corpus(["a.wav", "b.wav"], [["low"], ["high"]], ["low", "high"])
    settings = TrainSettings(model=str(tmp_path / "preset"))
    with pytest.raises(ValueError, match="^--model must not be a Gaussian"):
        train_model.build(settings, corpus)


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


@pytest.mark.parametrize("labels", [["low", "high"], []])
def test_several_labels_are_not_trained_on_as_shares(labels):
    """Of a clip with two, a softmax reaches none."""
    corpus = Corpus(
        ["a.wav", "b.wav", "c.wav"],
        [["low"], labels, ["high"]],
        ["low", "high"],
    )
    tiny_mel = json.loads(TINY_MEL)
    for loss in ("categorical_crossentropy", "categorical_focal_crossentropy"):
        settings = TrainSettings(loss=loss, model_kwargs=tiny_mel)
        message = f"{len(labels)} labels for clip 1"
        with pytest.raises(ValueError, match=message):
            train_model.build(settings, corpus)
    settings = TrainSettings(model_kwargs=tiny_mel)
    assert train_model.build(settings, corpus).activation.__name__ == "sigmoid"


def test_a_rate_that_never_falls_is_named_as_it_was_given():
    """Keras has a step of the fall at least."""
    settings = TrainSettings(warmup_share=0.99, epochs=2)
    message = "^--warmup-share must leave.*Received: 0.99 of 10 steps"
    with pytest.raises(ValueError, match=message):
        optimizing.make_optimizer(settings, 5)
    rate = optimizing.make_optimizer(settings, 50)._learning_rate
    assert float(rate(99)) == pytest.approx(settings.learning_rate)


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
