"""Pictures and tables that show a run: curves, confusion, classes, errors.

Pictures need matplotlib (extra `analysis`); without it a run says so once and
goes on.
"""

import functools
import math
import pathlib
import time

import keras
import numpy as np

from audio_tf import files, metrics
from audio_tf.analysis import charts, class_charts, figures, mistakes
from audio_tf.runs import history, results

CURVES = "learning_curves.png"
# Share of the time that drawing the curves during training may take.
MOST_DRAWING = 0.05


@functools.cache
def can_draw():
    """Returns whether there is matplotlib, and says so once if there is not."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("no pictures: they need pip install 'audio_tf[analysis]'")
        return False
    return True


class LearningCurves(keras.callbacks.Callback):
    """Draws the learning curves of a run after epochs, and at its end.

    It comes after `history.History`, whose file it draws. Where epochs are
    short, some are left out, so that drawing takes no more than `MOST_DRAWING`
    of the time.

    Args:
        out: folder of the run.
        figure: str, the figure beside the loss, a key of `metrics.METRICS`.
        monitor: str, a key of `metrics.monitors()`, the best epoch's figure.
        training: str, what the curves of training are called.
        clock: function that returns seconds.
    """

    def __init__(
        self,
        out,
        figure,
        monitor,
        training="training",
        clock=time.monotonic,
    ):
        super().__init__()
        self.out = pathlib.Path(out)
        self.figure = figure
        self.monitor = monitor
        self.training = training
        self.clock = clock
        self.next_at = -math.inf
        self.left_out = False

    def on_epoch_end(self, epoch, logs=None):
        self.left_out = self.clock() < self.next_at
        if not self.left_out:
            self.draw()

    def on_train_end(self, logs=None):
        if self.left_out:
            self.draw()

    def draw(self):
        """Draws the curves of all epochs so far."""
        start = self.clock()
        draw_curves(self.out, self.figure, self.monitor, self.training)
        end = self.clock()
        self.next_at = end + (end - start) / MOST_DRAWING


def draw_curves(out, figure, monitor, training="training"):
    """Draws the learning curves of a run's `history.csv`, if there is one.

    Args:
        out: `pathlib.Path`, the folder of the run.
        figure: str, the figure beside the loss.
        monitor: str, the figure that the best epoch is the best of.
        training: str, what the curves of training are called.
    """
    names, rows = history.read(out / "history.csv")
    if not rows or not can_draw():
        return
    figures_by_name = {
        name: [float(row[name] or math.nan) for row in rows] for name in names
    }
    best = history.best_row(rows, monitor)
    drawing = charts.draw_learning_curves(
        figures_by_name,
        figure,
        None if best is None else int(rows[best]["epoch"]),
        run_name(out),
        training,
        metrics.METRICS[figure].meaning,
    )
    figures.save(drawing, out / CURVES)


def run_name(out):
    """Returns the end of the path of a run's folder, for titles."""
    return "/".join(pathlib.Path(out).parts[-3:])


def show_split(folder, title, corpus, targets, scores):
    """Writes which clips of a split a model gets wrong, and draws it.

    The folder gets `errors.csv`, the worst error first, `classes.png`, and
    `confusion.png` where every clip has exactly one label.

    Args:
        folder: path of the folder, which is made.
        title: str, what the split is called in the pictures.
        corpus: `Corpus`, whose vocabulary is in the order of the scores.
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`, finite.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    wrong = mistakes.errors(corpus, targets, scores)
    mistakes.write_errors(folder / "errors.csv", wrong)
    if not can_draw():
        return
    labels, clips = corpus.vocabulary, np.asarray(targets).sum(axis=0)
    name = metrics.headline(targets)
    figure = metrics.METRICS[name].figure(
        np.asarray(targets, "int64"), np.asarray(scores, "float64")
    )
    title += f": {len(targets)} clips, {name} "
    title += "undefined" if figure is None else f"{figure:.4f}"
    figures.save(
        class_charts.draw_classes(
            mistakes.class_figures(targets, scores),
            labels,
            clips.astype(int),
            title,
        ),
        folder / "classes.png",
    )
    if name == "accuracy":
        counts = metrics.confusion(targets, scores)
        figures.save(
            class_charts.draw_confusion(counts, labels, title),
            folder / "confusion.png",
        )


def report_split(out, split, chunks, scores, labels, facts, calibrated=None):
    """Writes figures, pictures and errors of a split into a run's folder.

    Args:
        out: `pathlib.Path`, the folder of the run, which gets `SPLIT.json`
            and a folder of the split's name.
        split: str, `"val"` or `"test"`.
        chunks: `Chunks` of the split.
        scores: array `(clips, classes)`.
        labels: list of str, the labels in the order of the scores.
        facts: dict of what the JSON file has beside the figures.
        calibrated: dict by label of thresholds, or `None`.

    Returns:
        Dict of the figures.
    """
    report = results.figures(split, chunks, scores, labels, calibrated)
    files.write_json(out / f"{split}.json", {**report, **facts})
    corpus = chunks.clips.corpus
    show_split(
        out / split,
        f"{run_name(out)}, {split}",
        corpus,
        chunks.targets,
        scores,
    )
    return report
