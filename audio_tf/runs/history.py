"""The history of a run: figures of its epochs, and what follows from them."""

import csv
import math
import pathlib

import keras

from audio_tf import files, metrics


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
        self.names, self.rows = read(path)

    def on_epoch_end(self, epoch, logs=None):
        figures = {name: float(value) for name, value in (logs or {}).items()}
        new = sorted(set(figures) - set(self.names))
        self.names = [*(self.names or ["epoch"]), *new]
        self.rows.append({"epoch": epoch, **figures})
        write(self.path, self.names, self.rows)


def read(path):
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


def write(path, names, rows):
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


def rewind(path, epoch, monitor=None):
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
    names, rows = read(path)
    if not names:
        pathlib.Path(path).unlink(missing_ok=True)
        return None
    rows = [row for row in rows if int(row["epoch"]) < epoch]
    write(path, names, rows)
    if monitor is None:
        return None
    best = best_row(rows, monitor)
    return None if best is None else float(rows[best][monitor])


def best_row(rows, monitor):
    """Finds the first of the best epochs of a history.

    Args:
        rows: list of dicts of strings, as `read` returns them.
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


def better(monitor):
    """Returns the function of two floats that says if the first is better.

    Args:
        monitor: str, a key of `audio_tf.metrics.monitors()`.
    """
    if metrics.monitor_mode(monitor) == "min":
        return float.__lt__
    return float.__gt__


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
        rows = read(self.path)[1]
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
        for row in read(self.path)[1]:
            figure = float(row.get(self.monitor) or math.nan)
            if not math.isnan(figure):
                if best is None or is_better(figure, best):
                    best, waited = figure, 0
                    continue
            waited += 1
            if waited == self.patience:
                rate, waited = rate * self.factor, 0
        return rate
