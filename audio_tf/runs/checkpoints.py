"""Checkpoints of a training: the last epoch's and the best one's."""

import math
import pathlib
import zipfile

import keras
import numpy as np

from audio_tf import files
from audio_tf.runs import history

BEST = "best.keras"
EPOCHS_DONE = "epochs_done.txt"
# Scores of the clips of the validation split by the best model.
SCORES = "val_scores.npy"


class LastCheckpoint(keras.callbacks.Callback):
    """Saves model and optimizer after each epoch, whole or not at all.

    The file also holds the number of epochs, which an optimizer does not
    know: it leaves out batches whose gradients overflow.

    Args:
        path: the `.keras` file.

    Raises:
        ValueError: after an epoch whose last step has left a weight that is
            not finite: nothing could go on from there.
    """

    def __init__(self, path):
        super().__init__()
        self.path = pathlib.Path(path)

    def on_epoch_end(self, epoch, logs=None):
        # The loss is that before the step, so that it is finite still.
        check_finite(self.model, epoch)
        with files.whole_file(self.path) as new:
            self.model.save(new)
            with zipfile.ZipFile(new, "a") as file:
                file.writestr(EPOCHS_DONE, str(epoch + 1))


class FiniteWeights(keras.callbacks.Callback):
    """Ends training after an epoch whose last step has diverged.

    It comes before validation, which would blame a clip for its scores.

    Raises:
        ValueError: if a weight is not finite.
    """

    def on_epoch_end(self, epoch, logs=None):
        check_finite(self.model, epoch)


def check_finite(model, epoch):
    """Raises a `ValueError` if a weight of a model is not finite.

    Args:
        model: the Keras model.
        epoch: int, the epoch that has ended, from 0.
    """
    for weight in model.weights:
        if not np.isfinite(keras.ops.convert_to_numpy(weight)).all():
            raise ValueError(
                f"The weights must be finite after epoch {epoch + 1} to be "
                "saved; a lower --learning-rate may keep them so. "
                f"Received: NaN or infinity in {weight.path}"
            )


class BestCheckpoint(keras.callbacks.Callback):
    """Saves the model after each epoch that is the best so far.

    An epoch whose figure is no number is none of them.

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
        self.better = history.better(monitor)
        self.best = best
        self.validation = validation

    def on_epoch_end(self, epoch, logs=None):
        if self.monitor not in (logs or {}):
            raise ValueError(
                f"No epoch has the figure {self.monitor!r}: the validation "
                f"split does not define it. Received: {sorted(logs or {})}"
            )
        figure = float(logs[self.monitor])
        # Nothing is better than that, and `history.best_row` passes it over.
        if math.isnan(figure):
            return
        if self.best is not None and not self.better(figure, self.best):
            return
        with files.whole_file(self.path) as new:
            self.model.save(new)
        if self.validation is not None:
            with files.whole_file(self.path.with_name(SCORES)) as new:
                np.save(new, self.validation.scores)
        self.best = figure


def forget_best(out):
    """Removes the best model of a folder, and its scores, if they are there.

    Args:
        out: path of the folder of a run.
    """
    for name in (BEST, SCORES):
        pathlib.Path(out, name).unlink(missing_ok=True)


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
