"""Callbacks: clip-level figures in the logs, histories that are rewound."""

import csv
import re

import keras
import numpy as np
import pytest
import soundfile
import tiny

from audio_tf import data, metrics
from audio_tf.corpora import Corpus
from audio_tf.models import AudioClassifier
from audio_tf.runs import callbacks, checkpoints, history


def classifier(dropout=0.0):
    backbone = tiny.backbone(sample_rate_hz=1_000, dropout=dropout)
    return AudioClassifier(backbone, labels=["a", "b"], chunk_s=0.1)


@pytest.fixture
def chunks(tmp_path, rng):
    files = []
    for number in range(5):
        files.append(tmp_path / f"{number}.wav")
        soundfile.write(files[-1], 0.1 * rng.standard_normal(330), 1_000)
    labels = [["a"], ["b"], ["a", "b"], ["a"], ["b"]]
    corpus = Corpus(files, labels, ["a", "b"])
    clips = data.prepare(corpus, 1_000, tmp_path / "cache", progress=False)
    return data.Chunks(clips, 0.1)


def test_validation_is_at_clip_level(chunks):
    model = classifier()
    seen = {}

    class Later(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.update(logs)

    hooks = [callbacks.ClipValidation(chunks), Later()]
    keras.callbacks.CallbackList(hooks, model=model).on_epoch_end(
        0, {"loss": 0.5}
    )
    assert seen["loss"] == 0.5
    scores = data.score_clips(model, chunks, verbose=0)
    assert scores.shape == (5, 2)
    report = metrics.evaluate(chunks.targets, scores, ["a", "b"])
    assert seen["val_mAP"] == pytest.approx(report["mAP"])
    assert "val_accuracy" not in seen
    # The Huber loss of errors below 1, that the model is compiled with.
    error = chunks.targets - scores
    assert seen["val_loss"] == pytest.approx((0.5 * error**2).mean(), rel=1e-5)
    np.testing.assert_array_equal(hooks[0].scores, scores)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_epoch_whose_d_prime_is_infinite_is_compared(
    sign, chunks, monkeypatch, tmp_path
):
    """No clip is behind one of another label, and no figure is above that."""
    model = classifier()
    validation = callbacks.ClipValidation(chunks)
    best = checkpoints.BestCheckpoint(tmp_path / "best.keras", "val_d_prime")
    saved = []
    monkeypatch.setattr(AudioClassifier, "save", lambda _, new: new.touch())
    hooks = keras.callbacks.CallbackList(
        [validation, best, history.History(tmp_path / "history.csv")],
        model=model,
    )
    blurred = 0.5 + 0.1 * chunks.targets
    blurred[0] = 0.45, 0.65
    for epoch, scores in enumerate([blurred, sign * chunks.targets, blurred]):
        monkeypatch.setattr(
            callbacks, "score_clips", lambda *_, s=scores, **__: s
        )
        hooks.on_epoch_end(epoch, {})
        saved.append(best.best)
    finite = metrics.evaluate(chunks.targets, blurred, ["a", "b"])["d_prime"]
    best_of_all = [finite, np.inf, np.inf] if sign > 0 else 3 * [finite]
    assert 0 < finite < np.inf and saved == best_of_all
    rows = history.read(tmp_path / "history.csv")[1]
    assert float(rows[1]["val_d_prime"]) == sign * np.inf
    place = history.best_row(rows, "val_d_prime")
    assert place == (1 if sign > 0 else 0)


def test_losses_of_keras_and_losses_by_name_are_of_clips():
    targets = np.array([[0, 1], [1, 0], [1, 0]], "float32")
    scores = np.array([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]])
    expected = -np.log([0.75, 0.5, 0.75]).mean()
    for loss in (
        "categorical_crossentropy",
        keras.losses.CategoricalCrossentropy(),
    ):
        found = callbacks.clip_loss(loss, targets, scores)
        assert found == pytest.approx(expected, rel=1e-5)


def test_training_has_the_figure_that_its_labels_define():
    (one,) = callbacks.training_metrics(True, 3)
    assert one.name == "accuracy"
    # Mixed clips: the highest score is at the highest target of the second.
    one.update_state([[0.6, 0.4, 0], [0, 0.3, 0.7]], [[0.1, 0.9, 0], [0, 0, 1]])
    assert float(one.result()) == 0.5
    (several,) = callbacks.training_metrics(False, 3)
    assert several.name == "mAP"


def test_the_line_after_an_epoch_says_how_long_the_run_takes(capsys):
    """The median of the epochs but the first, which compiles."""
    seconds = iter([100.0, 400.0, 410.0, 430.0, 440.0, 441.0])
    line = callbacks.TimeLeft(
        ["loss", "val_mAP", "loss"], lambda: next(seconds)
    )
    line.set_params({"epochs": 10})
    line.on_train_begin()
    logs = {"loss": 0.5, "val_mAP": np.float32(0.25), "val_roc_auc": 0.75}
    for epoch in (4, 5, 6):
        line.on_epoch_end(epoch, logs)
    line.on_epoch_end(7)
    line.on_epoch_end(9, {"loss": 1.0})
    assert capsys.readouterr().out.splitlines() == [
        "epoch 5 of 10: loss 0.5000, val_mAP 0.2500; 5 min, about 25 min left",
        "epoch 6 of 10: loss 0.5000, val_mAP 0.2500; 10 s, about 40 s left",
        "epoch 7 of 10: loss 0.5000, val_mAP 0.2500; 20 s, about 45 s left",
        "epoch 8 of 10, about 20 s left",
        "epoch 10 of 10: loss 1.0000; 1 s",
    ]
    assert callbacks.duration(60 * 125) == "2 h 5 min"
    assert [callbacks.duration(at) for at in (99.4, 99.6)] == ["99 s", "2 min"]


def test_a_terminal_has_the_bar_before_the_line():
    bar, line = callbacks.progress("accuracy", "val_mAP", terminal=True)
    assert isinstance(bar, keras.callbacks.ProgbarLogger)
    assert line.figures == ()
    (line,) = callbacks.progress("accuracy", "val_mAP", terminal=False)
    names = ("loss", "accuracy", "val_loss", "val_accuracy", "val_mAP")
    assert line.figures == names


def test_seeds_depend_on_the_epoch_alone(rng):
    model, x = classifier(dropout=0.5), rng.standard_normal((3, 100))
    seeds = callbacks.EpochSeeds(7)
    seeds.set_model(model)

    def outputs(epoch):
        seeds.on_epoch_begin(epoch)
        return np.asarray(model(x, training=True))

    first, second = outputs(0), outputs(1)
    assert np.abs(first - second).max() > 1e-4
    np.testing.assert_array_equal(outputs(0), first)
    np.testing.assert_array_equal(outputs(1), second)


def test_last_checkpoint_is_whole_or_the_one_before(tmp_path, monkeypatch):
    model, path = classifier(), tmp_path / "last.keras"
    last = checkpoints.LastCheckpoint(path)
    last.set_model(model)
    last.on_epoch_end(0)
    before = path.read_bytes()

    def killed(target):
        target.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        last.on_epoch_end(1)
    assert path.read_bytes() == before
    assert checkpoints.kept(tmp_path).startswith(
        f"{path} is whole, after epoch 1"
    )
    assert checkpoints.kept(tmp_path / "none") == ""


def test_weights_that_are_not_finite_do_not_take_the_last_checkpoint(tmp_path):
    """A step may end in NaN, of which only the next loss would tell."""
    model, path = classifier(), tmp_path / "last.keras"
    last = checkpoints.LastCheckpoint(path)
    last.set_model(model)
    last.on_epoch_end(0)
    before = path.read_bytes()
    model.output_dense.bias.assign([1.0, np.nan])
    name = re.escape(model.output_dense.bias.path)
    with pytest.raises(ValueError, match=f"epoch 2 .*Received: .* {name}"):
        last.on_epoch_end(1)
    assert path.read_bytes() == before
    assert checkpoints.epochs_done(path) == 1


def written(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def test_history_is_rewound(tmp_path):
    path = tmp_path / "history.csv"
    rows = [["epoch", "loss", "val_mAP"], [0, 0.3, 0.25], [1, 0.1, 0.75]]
    rows += [[2, 0.2, ""], [3, 0.05, 0.9]]
    written(path, rows)
    assert history.rewind(path, 3, "val_mAP") == 0.75
    with open(path, newline="") as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == list("012")
    assert history.rewind(path, 3, "loss") == 0.1
    assert history.rewind(path, 3, "val_roc_auc") is None
    assert history.rewind(tmp_path / "none", 3, "val_mAP") is None
    path.write_text("")
    assert history.rewind(path, 3) is None and not path.exists()
    written(path, [["epoch", "loss"], [0, 0.5, 0.25]])
    with pytest.raises(ValueError, match="row 2: it must have.*2 cells"):
        history.rewind(path, 3)


def test_columns_of_a_history_stay_where_they_are(tmp_path):
    """Whatever figures the later part of a run has more or less."""
    path = tmp_path / "history.csv"
    for epoch, logs in enumerate(
        (
            {"loss": 3.0, "val_mAP": 0.5},
            {"loss": 2.0},
            {"loss": 1.0, "accuracy": 0.75, "val_mAP": 0.25},
        )
    ):
        # A run that goes on knows of its history by the file alone.
        history.History(path).on_epoch_end(epoch, logs)
    with open(path, newline="") as file:
        assert list(csv.reader(file)) == [
            ["epoch", "loss", "val_mAP", "accuracy"],
            ["0", "3.0", "0.5", ""],
            ["1", "2.0", "", ""],
            ["2", "1.0", "0.25", "0.75"],
        ]


def test_the_best_epoch_is_kept_whole(tmp_path, monkeypatch):
    path = tmp_path / "best.keras"

    class Validation:
        scores = None

    def saved_at(monitor, figures, best=None):
        """Indices of the figures after which the model was saved."""
        keeper = checkpoints.BestCheckpoint(path, monitor, best, Validation)
        model = classifier()
        found = []
        keeper.set_model(model)
        for epoch, figure in enumerate(figures):
            path.unlink(missing_ok=True)
            Validation.scores = np.full((2, 3), epoch)
            keeper.on_epoch_end(epoch, {monitor: figure})
            found += [epoch] if path.is_file() else []
        # The scores are those of the model that is kept.
        assert (np.load(tmp_path / checkpoints.SCORES) == found[-1]).all()
        (tmp_path / checkpoints.SCORES).unlink()
        return found

    assert saved_at("val_mAP", [0.5, 0.25, 0.5, 0.75]) == [0, 3]
    assert saved_at("val_mAP", [0.5, 0.75], best=0.6) == [1]
    assert saved_at("loss", [0.5, 0.75, 0.25]) == [0, 2]
    # As of the history, of which the best epoch is told.
    assert saved_at("val_loss", [np.nan, 0.75, np.nan, 0.25]) == [1, 3]
    before = path.write_bytes(b"good") and path.read_bytes()
    keeper = checkpoints.BestCheckpoint(path, "val_mAP")
    keeper.set_model(classifier())

    def full(target):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keeper.model, "save", full)
    with pytest.raises(OSError, match="No space"):
        keeper.on_epoch_end(0, {"val_mAP": 1.0})
    assert path.read_bytes() == before
    # Nor does half a file stay and fill the disk.
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match="no.*'val_accuracy'|'val_accuracy'"):
        checkpoints.BestCheckpoint(path, "val_accuracy").on_epoch_end(
            0, {"val_mAP": 1.0}
        )
    with pytest.raises(ValueError, match="did you mean 'val_mAP'"):
        checkpoints.BestCheckpoint(path, "val_map")


@pytest.mark.costly
def test_last_checkpoint_knows_its_epochs(tmp_path, rng):
    """Whatever the optimizer has counted, with gradients accumulated."""
    path = tmp_path / "last.keras"
    assert checkpoints.epochs_done(path) == 0
    model, x = classifier(), rng.standard_normal((7, 100)).astype("float32")
    model.compile(
        keras.optimizers.Adam(gradient_accumulation_steps=5),
        "huber",
        run_eagerly=True,
    )
    model.fit(
        x,
        np.ones((7, 2)),
        batch_size=3,
        epochs=2,
        callbacks=[checkpoints.LastCheckpoint(path)],
        verbose=0,
    )
    assert checkpoints.epochs_done(path) == 2
    again = keras.saving.load_model(path)
    for one, other in zip(
        model.get_weights(), again.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert list(tmp_path.iterdir()) == [path]


def test_averages_are_validated_and_the_weights_come_back(rng):
    """After steps of gradient descent whose averages are known by hand."""
    model = classifier()
    model.compile(
        keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.75),
        "huber",
        run_eagerly=True,
    )
    bias = model.output_dense.bias
    x = rng.standard_normal((4, 100)).astype("float32")
    values = []
    for _ in range(3):
        model.train_on_batch(x, np.eye(2)[[0, 1, 0, 1]])
        values.append(keras.ops.convert_to_numpy(bias))
    # The average begins as the weights behind the first step.
    average = values[0]
    for value in values[1:]:
        average = 0.75 * average + 0.25 * value
    assert np.abs(average - values[-1]).max() > 1e-4
    seen = []

    class Looks(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(
                keras.ops.convert_to_numpy(self.model.output_dense.bias)
            )
            raise OSError("no space")

    hook = callbacks.WithAverageWeights([Looks()])
    hook.set_model(model)
    with pytest.raises(OSError, match="no space"):
        hook.on_epoch_end(0, {})
    np.testing.assert_allclose(seen[0], average, atol=1e-6)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(bias), values[-1])


def test_what_is_kept_is_not_the_model_that_fits():
    """Callbacks within see their own model, and fill the same logs."""
    kept, fitted, seen = classifier(), classifier(), {}

    class Looks(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["looked"] = self.model is kept
            seen[epoch] = logs

    logs = {"loss": 0.5}
    hooks = [callbacks.OnModel(kept, [Looks()])]
    keras.callbacks.CallbackList(hooks, model=fitted).on_epoch_end(3, logs)
    assert seen == {3: {"loss": 0.5, "looked": True}}


@pytest.mark.parametrize(
    "figures, stops",
    [
        ([0.1, 0.5, 0.4, 0.5], True),
        ([0.5, 0.4, 0.6, 0.5], False),
        ([0.1], False),
    ],
)
def test_training_ends_when_it_no_longer_gets_better(figures, stops, tmp_path):
    path = tmp_path / "history.csv"
    rows = [
        {"epoch": number, "val_mAP": figure}
        for number, figure in enumerate(figures)
    ]
    history.write(path, ["epoch", "val_mAP"], rows)
    hook = history.Patience(path, "val_mAP", 2)
    model = classifier()
    hook.set_model(model)
    hook.on_epoch_end(len(figures) - 1)
    assert model.stop_training is stops


@pytest.mark.parametrize("monitor", ["val_mAP", "val_loss"])
def test_the_rate_falls_as_keras_lets_it_fall(monitor, tmp_path, rng):
    """Against Keras' callback, which forgets all when training is resumed."""
    mode = "min" if monitor == "val_loss" else "max"
    path, rows = tmp_path / "history.csv", []
    theirs, ours = classifier(), classifier()
    for model in (theirs, ours):
        model.compile(keras.optimizers.Adam(0.25))
    plateau = keras.callbacks.ReduceLROnPlateau(
        monitor, 0.5, 2, mode=mode, min_delta=0.0
    )
    plateau.set_model(theirs)
    plateau.on_train_begin()
    rates = []
    for epoch, figure in enumerate(rng.integers(0, 9, 24) / 8.0):
        # Resumed in each epoch.
        own = history.Plateau(path, monitor, 0.25, 0.5, 2)
        own.set_model(ours)
        own.on_epoch_begin(epoch)
        rates.append(float(ours.optimizer.learning_rate))
        assert rates[-1] == float(theirs.optimizer.learning_rate)
        plateau.on_epoch_end(epoch, {monitor: figure})
        rows.append({"epoch": epoch, monitor: figure})
        history.write(path, ["epoch", monitor], rows)
    assert len(set(rates)) > 3


def test_the_best_epoch_is_the_first_of_the_best():
    columns = {
        "val_mAP": ["", "nan", "0.5", "0.25", "0.5"],
        "val_loss": ["", "3", "2", "1", "4"],
    }
    rows = [
        dict(zip(columns, cells, strict=True))
        for cells in zip(*columns.values(), strict=True)
    ]
    assert history.best_row(rows, "val_mAP") == 2
    assert history.best_row(rows, "val_loss") == 3
    assert history.best_row(rows, "val_accuracy") is None
    assert history.best_row([], "val_mAP") is None
