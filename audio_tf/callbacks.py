"""Callbacks of training: clip-level validation and checkpoints."""

import csv
import os
import pathlib
import zipfile

import keras
import numpy as np

from audio_tf import metrics
from audio_tf.data import score_clips

EPOCHS_DONE = "epochs_done.txt"


class ClipValidation(keras.callbacks.Callback):
    """Adds clip-level figures of a split to the logs of each epoch.

    Must come before the callbacks that read them: `val_mAP` and its kin are
    then there for checkpoints, TensorBoard and early stopping.

    Args:
        chunks: `audio_tf.data.Chunks` of the split.
        batch_size: int.
    """

    def __init__(self, chunks, batch_size=64):
        super().__init__()
        self.chunks = chunks
        self.batch_size = batch_size

    def on_epoch_end(self, epoch, logs=None):
        scores = score_clips(
            self.model, self.chunks, self.batch_size, verbose=0
        )
        report = metrics.evaluate(
            self.chunks.targets, scores, self.chunks.clips.corpus.vocabulary
        )
        for name in metrics.METRICS:
            if report[name] is not None:
                logs[f"val_{name}"] = report[name]


class EpochSeeds(keras.callbacks.Callback):
    """Sets the random state of dropout and its kin at each epoch's start.

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

    The number of epochs is kept inside, since an optimizer does not know it:
    it leaves out batches whose gradients overflow.

    Args:
        path: the `.keras` file.
    """

    def __init__(self, path):
        super().__init__()
        self.path = pathlib.Path(path)

    def on_epoch_end(self, epoch, logs=None):
        temporary = self.path.with_name(f".{self.path.name}")
        self.model.save(temporary)
        with zipfile.ZipFile(temporary, "a") as file:
            file.writestr(EPOCHS_DONE, str(epoch + 1))
        os.replace(temporary, self.path)


def epochs_done(path):
    """Epochs that a model was trained for when `LastCheckpoint` saved it.

    Args:
        path: the `.keras` file; 0 if it is not there.
    """
    if not pathlib.Path(path).is_file():
        return 0
    with zipfile.ZipFile(path) as file:
        return int(file.read(EPOCHS_DONE))


def rewind_history(path, epoch, monitor=None):
    """Drops rows of a history from `epoch` on; best of `monitor` before.

    A run that was killed between its log and its checkpoint has logged an
    epoch that will be trained again.

    Returns:
        The largest value of the column `monitor`, or `None`.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        return None
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames
        rows = [row for row in reader if int(row["epoch"]) < epoch]
    if names is None:
        # Killed before the first row: there is not even a header.
        path.unlink()
        return None
    temporary = path.with_name(f".{path.name}")
    with open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, path)
    values = [float(row[monitor]) for row in rows if row.get(monitor)]
    return max(values, default=None)
