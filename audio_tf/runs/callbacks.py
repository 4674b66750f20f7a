"""Callbacks of training: validation, seeds, averages, time left."""

import importlib
import statistics
import time

import keras
import numpy as np

from audio_tf import metrics
from audio_tf.batch_metrics import BatchAveragePrecision
from audio_tf.data import score_clips
from audio_tf.data.shares import WHOLE

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

    Callbacks that come behind it, as `train_callbacks.STAGES` has them, then
    find `val_loss`, `val_mAP` and the other figures.

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
        for name, metric in metrics.METRICS.items():
            figure = report[name]
            if figure is None:
                # Or the best of all epochs would have none to be chosen by.
                targets = self.chunks.targets.astype("int64")
                figure = metric.extended(targets, self.scores)
            if figure is not None:
                logs[f"val_{name}"] = figure


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
    value = keras.losses.get(loss)(targets, scores)
    return float(np.mean(keras.ops.convert_to_numpy(value)))


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
        rng = np.random.default_rng([self.seed, epoch])
        for variable in self.model.variables:
            if variable.path.endswith("seed_generator_state"):
                variable.assign(rng.integers(0, 2**31, variable.shape))
        if keras.backend.backend() == "torch":
            # Keras' dropout draws from Torch's own state there.
            importlib.import_module("torch").manual_seed(rng.integers(2**31))


class Nested(keras.callbacks.Callback):
    """Runs other callbacks at an epoch's end; each subclass says how.

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
        for callback in self.callbacks:
            callback.on_epoch_end(epoch, logs)


def take_averages(model):
    """Gives a model the averages of its weights that its optimizer keeps.

    Args:
        model: `keras.Model`, compiled.
    """
    variables = model.trainable_variables
    model.optimizer.finalize_variable_values(variables)
    for variable in variables:
        # On JAX it is the optimizer's own array by now, which is given away
        # with the model's when that scores.
        variable.assign(keras.ops.copy(variable))


class WithAverageWeights(Nested):
    """Runs other callbacks at an epoch's end with averages of the weights.

    The weights themselves come back afterwards: training goes on with them.

    Args:
        callbacks: list of `keras.callbacks.Callback`, as `Nested` takes it.
    """

    def on_epoch_end(self, epoch, logs=None):
        variables = self.model.trainable_variables
        own = [keras.ops.convert_to_numpy(each) for each in variables]
        take_averages(self.model)
        try:
            super().on_epoch_end(epoch, logs)
        finally:
            for variable, value in zip(variables, own, strict=True):
                variable.assign(value)


class OnModel(Nested):
    """Runs other callbacks at an epoch's end on a model of their own.

    It is the model that is kept, where another one trains it: they share
    their weights.

    Args:
        model: `keras.Model`.
        callbacks: list of `keras.callbacks.Callback`, as `Nested` takes it.
    """

    def __init__(self, model, callbacks):
        super().__init__(callbacks)
        self.kept = model

    def set_model(self, model):
        """Hands the model that is kept on, and not the one that is trained."""
        super().set_model(self.kept)


class TimeLeft(keras.callbacks.Callback):
    """Prints a line after each epoch: figures, and the time that is left.

    The time of an epoch is also that of the callbacks before this one. The
    time left is the median of the last epochs' time for each that is left;
    the first epoch, which compiles, does not count once there is another. A
    run that stops early ends sooner.

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
        List of callbacks, of the stage `"show"`.
    """
    if terminal:
        return [keras.callbacks.ProgbarLogger(), TimeLeft()]
    names = ("loss", figure, "val_loss", f"val_{figure}", monitor)
    return [TimeLeft(names)]
