"""Callbacks of training: validation, checkpoints, history, time left."""

import csv
import math
import pathlib
import statistics
import time
import zipfile

import keras
import numpy as np

from audio_tf import files, metrics
from audio_tf.batch_metrics import BatchAveragePrecision
from audio_tf.data import score_clips
from audio_tf.data.shares import WHOLE

EPOCHS_DONE = "epochs_done.txt"
# Scores of the clips of the validation split by the best model.
SCORES = "val_scores.npy"
# Epochs that the time left is estimated from.
RECENT_EPOCHS = 5


def training_metrics(one_label, num_classes):
    """Makes the figure of training that is told beside its loss.

    It is of the batches as the model sees them. Where every clip has exactly
    one label it is the share of chunks whose highest score is at the highest
    target, also where augmentation has mixed the targets.

    Args:
        one_label: bool, whether every clip has exactly one label.
        num_classes: int, the number of classes.

    Returns:
        List of one Keras metric, named `"accuracy"` or `"mAP"`.
    """
    if one_label:
        return [keras.metrics.CategoricalAccuracy(name="accuracy")]
    return [BatchAveragePrecision(num_classes)]


class ClipValidation(keras.callbacks.Callback):
    """Adds loss and clip-level figures of a split to the logs of each epoch.

    It must come before the callbacks that read them: checkpoints, TensorBoard
    and early stopping then find `val_loss`, `val_mAP` and the other figures.

    Args:
        chunks: `audio_tf.data.Chunks` of the split.
        batch_size: int.
        share: `audio_tf.data.shares.Share` of this host.
        scorer: function of the model to the one that scores, of which each
            host has the scores of all.

    Attributes:
        scores: float64 `(clips, classes)`, the scores after the last epoch,
            `None` before the first.
    """

    def __init__(
        self, chunks, batch_size=64, share=WHOLE, scorer=lambda model: model
    ):
        super().__init__()
        self.chunks = chunks
        self.batch_size = batch_size
        self.share = share
        self.scorer = scorer
        self.scores = None

    def set_model(self, model):
        """Takes the model, and makes the one that scores."""
        super().set_model(model)
        self.scoring = self.scorer(model)

    def on_epoch_end(self, epoch, logs=None):
        self.scores = score_clips(
            self.scoring,
            self.chunks,
            self.batch_size,
            verbose=0,
            share=self.share,
        )
        report = metrics.evaluate(
            self.chunks.targets,
            self.scores,
            self.chunks.clips.corpus.vocabulary,
        )
        logs["val_loss"] = clip_loss(
            self.model.loss, self.chunks.targets, self.scores
        )
        for name in metrics.METRICS:
            if report[name] is not None:
                logs[f"val_{name}"] = report[name]


def clip_loss(loss, targets, scores):
    """Computes the mean loss of the scores of clips.

    Args:
        loss: as `keras.Model.compile` takes it.
        targets: float32 `(clips, classes)`.
        scores: floating `(clips, classes)`.

    Returns:
        float.
    """
    scores = np.asarray(scores, "float32")
    return float(np.mean(keras.losses.get(loss)(targets, scores)))


class EpochSeeds(keras.callbacks.Callback):
    """Sets the random state of all layers at each epoch's start.

    Keras saves no random state: without this, training that is resumed draws
    other numbers than training that is not broken.

    Args:
        seed: int, not negative.
    """

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def on_epoch_begin(self, epoch, logs=None):
        states = [
            variable
            for variable in self.model.variables
            if variable.path.endswith("seed_generator_state")
        ]
        rng = np.random.default_rng([self.seed, epoch])
        for state in states:
            state.assign(rng.integers(0, 2**31, state.shape))


class LastCheckpoint(keras.callbacks.Callback):
    """Saves model and optimizer after each epoch, whole or not at all.

    The file also holds the number of epochs, which an optimizer does not
    know: it leaves out batches whose gradients overflow.

    Args:
        path: the `.keras` file.
    """

    def __init__(self, path):
        super().__init__()
        self.path = pathlib.Path(path)

    def on_epoch_end(self, epoch, logs=None):
        with files.whole_file(self.path) as new:
            self.model.save(new)
            with zipfile.ZipFile(new, "a") as file:
                file.writestr(EPOCHS_DONE, str(epoch + 1))


class BestCheckpoint(keras.callbacks.Callback):
    """Saves the model after each epoch that is the best so far.

    Keras' `ModelCheckpoint` writes over the file in place, so that a full
    disk or a kill leaves none, and only warns if its figure is missing.

    Args:
        path: the `.keras` file, written whole or not at all.
        monitor: str, a key of `audio_tf.metrics.monitors()`.
        best: float, the best figure of epochs before, `None` if there is
            none.
        validation: `ClipValidation`, whose scores are kept beside the model
            in `SCORES`, or `None`.

    Raises:
        ValueError: after an epoch without that figure.
    """

    def __init__(self, path, monitor, best=None, validation=None):
        super().__init__()
        self.path = pathlib.Path(path)
        self.monitor = monitor
        self.better = better(monitor)
        self.best = best
        self.validation = validation

    def on_epoch_end(self, epoch, logs=None):
        if self.monitor not in (logs or {}):
            raise ValueError(
                f"No epoch has the figure {self.monitor!r}: the validation "
                f"split does not define it. Received: {sorted(logs or {})}"
            )
        figure = float(logs[self.monitor])
        if self.best is not None and not self.better(figure, self.best):
            return
        with files.whole_file(self.path) as new:
            self.model.save(new)
        if self.validation is not None:
            with files.whole_file(self.path.with_name(SCORES)) as new:
                np.save(new, self.validation.scores)
        self.best = figure


class WithAverageWeights(keras.callbacks.Callback):
    """Runs other callbacks at an epoch's end with averages of the weights.

    The weights themselves come back afterwards: training goes on with them.

    Args:
        callbacks: list of `keras.callbacks.Callback`, of which only
            `on_epoch_end` is called.
    """

    def __init__(self, callbacks):
        super().__init__()
        self.callbacks = callbacks

    def set_model(self, model):
        """Hands the model on to the callbacks within."""
        super().set_model(model)
        for callback in self.callbacks:
            callback.set_model(model)

    def on_epoch_end(self, epoch, logs=None):
        variables = self.model.trainable_variables
        own = [keras.ops.convert_to_numpy(each) for each in variables]
        self.model.optimizer.finalize_variable_values(variables)
        try:
            for callback in self.callbacks:
                callback.on_epoch_end(epoch, logs)
        finally:
            for variable, value in zip(variables, own, strict=True):
                variable.assign(value)


class OnModel(keras.callbacks.Callback):
    """Runs other callbacks at an epoch's end on a model of their own.

    It is the model that is kept, where another one trains it: they share
    their weights.

    Args:
        model: `keras.Model`.
        callbacks: list of `keras.callbacks.Callback`, of which only
            `on_epoch_end` is called.
    """

    def __init__(self, model, callbacks):
        super().__init__()
        self.callbacks = callbacks
        for callback in callbacks:
            callback.set_model(model)

    def on_epoch_end(self, epoch, logs=None):
        for callback in self.callbacks:
            callback.on_epoch_end(epoch, logs)


class Patience(keras.callbacks.Callback):
    """Ends training once so many epochs have not been better than the best.

    It reads the history, so that training that is resumed ends where
    unbroken training does. It comes behind the callbacks that write.

    Args:
        path: the CSV of the history.
        monitor: str, a key of `audio_tf.metrics.monitors()`.
        patience: int, epochs.
    """

    def __init__(self, path, monitor, patience):
        super().__init__()
        self.path = path
        self.monitor = monitor
        self.patience = patience

    def on_epoch_end(self, epoch, logs=None):
        if self.is_over():
            print(
                f"no better {self.monitor} for {self.patience} epochs: "
                "training ends"
            )
            self.model.stop_training = True

    def is_over(self):
        """Returns whether the last epochs were no better than the best."""
        rows = read_history(self.path)[1]
        best = best_row(rows, self.monitor)
        return best is not None and len(rows) - 1 - best >= self.patience


class Plateau(keras.callbacks.Callback):
    """Lowers the rate whenever so many epochs have not been better.

    The rate follows from the history alone, so that training that is resumed
    goes on at the rate of unbroken training. The epochs are counted anew once
    the rate is lower, as `keras.callbacks.ReduceLROnPlateau` does.

    Args:
        path: the CSV of the history.
        monitor: str, a key of `audio_tf.metrics.monitors()`.
        learning_rate: float, the rate of the first epoch.
        factor: float in (0, 1), what the rate is multiplied by.
        patience: int, epochs.
    """

    def __init__(self, path, monitor, learning_rate, factor, patience):
        super().__init__()
        self.path = path
        self.monitor = monitor
        self.learning_rate = learning_rate
        self.factor = factor
        self.patience = patience

    def on_epoch_begin(self, epoch, logs=None):
        self.model.optimizer.learning_rate = self.rate()

    def rate(self):
        """Returns the rate of the epoch that follows the history."""
        is_better = better(self.monitor)
        rate, best, waited = self.learning_rate, None, 0
        for row in read_history(self.path)[1]:
            figure = float(row.get(self.monitor) or math.nan)
            if not math.isnan(figure):
                if best is None or is_better(figure, best):
                    best, waited = figure, 0
                    continue
            waited += 1
            if waited == self.patience:
                rate, waited = rate * self.factor, 0
        return rate


def better(monitor):
    """Returns the function of two floats that says if the first is better.

    Args:
        monitor: str, a key of `audio_tf.metrics.monitors()`.
    """
    if metrics.monitor_mode(monitor) == "min":
        return float.__lt__
    return float.__gt__


class History(keras.callbacks.Callback):
    """Keeps a CSV of the logs of all epochs, one row an epoch.

    Columns of an earlier part of the run stay where they are. A figure that
    is new gets a column at the end, empty in the rows before; one that is
    gone leaves its cells empty.

    Args:
        path: the CSV; rows that are there are kept.
    """

    def __init__(self, path):
        super().__init__()
        self.path = pathlib.Path(path)
        self.names, self.rows = read_history(path)

    def on_epoch_end(self, epoch, logs=None):
        figures = {name: float(value) for name, value in (logs or {}).items()}
        new = sorted(set(figures) - set(self.names))
        self.names = [*(self.names or ["epoch"]), *new]
        self.rows.append({"epoch": epoch, **figures})
        write_history(self.path, self.names, self.rows)


def read_history(path):
    """Reads the CSV of a history, which may be missing.

    Returns:
        Pair of a list of names, empty if there is no history, and a list of
        dicts of strings by name.

    Raises:
        ValueError: if a row has more or fewer cells than the header.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        return [], []
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        names, rows = list(reader.fieldnames or []), list(reader)
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(
                f"{path}, row {number}: it must have the header's "
                f"{len(names)} cells. Received: "
                f"{list(row.values())}"
            )
    return names, rows


def write_history(path, names, rows):
    """Writes the CSV of a history, whole or not at all.

    Args:
        path: the CSV.
        names: list of str, the columns.
        rows: list of dicts by column; a cell that one lacks stays empty.
    """
    with (
        files.whole_file(path) as new,
        open(new, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)


class TimeLeft(keras.callbacks.Callback):
    """Prints a line after each epoch: figures, and the time that is left.

    It comes last, so that the time of an epoch is also that of the other
    callbacks. The time left is the median of the last epochs' time for each
    that is left; the first epoch, which compiles, does not count once there
    is another. A run that stops early ends sooner.

    Args:
        figures: names of the figures that the line has, as far as the logs
            have them.
        clock: function that returns seconds.
    """

    def __init__(self, figures=(), clock=time.monotonic):
        super().__init__()
        self.figures = tuple(dict.fromkeys(figures))
        self.clock = clock
        self.taken = []

    def on_train_begin(self, logs=None):
        self.taken = []
        self.begun = self.clock()

    def on_epoch_end(self, epoch, logs=None):
        now = self.clock()
        self.taken.append(now - self.begun)
        self.begun = now
        print(self.line(epoch, logs or {}), flush=True)

    def line(self, epoch, logs):
        """Returns the line after an epoch.

        Args:
            epoch: int, counted from 0.
            logs: dict of the figures by name.
        """
        epochs = self.params["epochs"]
        text = f"epoch {epoch + 1} of {epochs}"
        shown = [
            f"{name} {float(logs[name]):.4f}"
            for name in self.figures
            if name in logs
        ]
        if shown:
            text += f": {', '.join(shown)}; {duration(self.taken[-1])}"
        left = epochs - epoch - 1
        if not left:
            return text
        recent = (self.taken[1:] or self.taken)[-RECENT_EPOCHS:]
        return (
            f"{text}, about {duration(left * statistics.median(recent))} left"
        )


def duration(seconds):
    """Returns a text of a duration that one reads at a glance.

    Args:
        seconds: float.
    """
    minutes = round(seconds / 60)
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def progress(figure, monitor, terminal):
    """Makes the callbacks that show how far a run is.

    On a terminal Keras' bar shows the figures, and the line after it the time
    that is left; elsewhere a line after each epoch shows both, for which
    `fit` takes `verbose=0`.

    Args:
        figure: str, `"accuracy"` or `"mAP"`.
        monitor: str, the figure that is monitored.
        terminal: bool, whether the output is a terminal.

    Returns:
        List of callbacks, which come last of all.
    """
    if terminal:
        return [keras.callbacks.ProgbarLogger(), TimeLeft()]
    names = ("loss", figure, "val_loss", f"val_{figure}", monitor)
    return [TimeLeft(names)]


def epochs_done(path):
    """Returns the epochs that a model that was saved had been trained for.

    Args:
        path: the `.keras` file that `LastCheckpoint` writes. Without it, 0
            is returned.
    """
    if not pathlib.Path(path).is_file():
        return 0
    with zipfile.ZipFile(path) as file:
        return int(file.read(EPOCHS_DONE))


def kept(out):
    """Returns a text on the checkpoint of an unfinished run, empty for none.

    Args:
        out: folder of the run.
    """
    last = pathlib.Path(out, "last.keras")
    if not last.is_file():
        return ""
    return (
        f"{last} is whole, after epoch {epochs_done(last)}; --resume goes on "
        "from there"
    )


def rewind_history(path, epoch, monitor=None):
    """Drops the rows of a history from an epoch on.

    A run that was killed between its log and its checkpoint has logged an
    epoch that will be trained again.

    Args:
        path: the CSV; it may be missing.
        epoch: int, the first epoch that will be trained again.
        monitor: str, a key of `audio_tf.metrics.monitors()`, or `None`.

    Returns:
        The best value of the column `monitor` in the rows that stay, a float,
        or `None` if there is none.
    """
    names, rows = read_history(path)
    if not names:
        pathlib.Path(path).unlink(missing_ok=True)
        return None
    rows = [row for row in rows if int(row["epoch"]) < epoch]
    write_history(path, names, rows)
    if monitor is None:
        return None
    best = best_row(rows, monitor)
    return None if best is None else float(rows[best][monitor])


def best_row(rows, monitor):
    """Finds the first of the best epochs of a history.

    Args:
        rows: list of dicts of strings, as `read_history` returns them.
        monitor: str, a key of `audio_tf.metrics.monitors()`.

    Returns:
        int, the place of its row, or `None` if no epoch has that figure.
    """
    found, best = None, None
    for place, row in enumerate(rows):
        figure = float(row.get(monitor) or math.nan)
        if not math.isnan(figure):
            if found is None or better(monitor)(figure, best):
                found, best = place, figure
    return found
