"""The callbacks of a training, stage by stage.

Keras calls them in the order of their list, and what one leaves is what the
next one finds: `STAGES` is that order, and the only place that says it.
"""

import sys

import keras

from audio_tf.runs import (
    callbacks,
    checkpoints,
    history,
    host_callbacks,
    hosts,
    showing,
)
from audio_tf.runs.teaching import training_name

# By name, in their order: why a stage stands where it does.
STAGES = {
    "guard": "what diverges ends before a good checkpoint is overwritten",
    "draw": "random states are set before the first batch of an epoch",
    "validate": "figures of validation join the logs that all others read",
    "log": "an epoch is in the history before it is in the checkpoint: that "
    "drops a row of an epoch which is trained again, and cannot add one",
    "keep": "the last epoch is whole on the disk before it is spoken of",
    "show": "the time of an epoch is also that of all that was written",
    "steer": "rate and end follow from the history with this epoch in it",
    "agree": "hosts end together by whatever has ended the first one",
}


def in_order(stages):
    """Puts callbacks in the order of their stages.

    Args:
        stages: dict by key of `STAGES`, in any order, of a list of
            `keras.callbacks.Callback`.

    Returns:
        List of all of them.

    Raises:
        KeyError: if there is no such stage.
    """
    strange = stages.keys() - STAGES.keys()
    if strange:
        raise KeyError(
            f"A stage must be one of {list(STAGES)}. Received: "
            f"{sorted(strange)}"
        )
    return [each for name in STAGES for each in stages.get(name, ())]


def of_training(settings, classifier, chunks, out, share, figure, first_epoch):
    """Makes the callbacks of a training, of which there is one for each host.

    Args:
        settings: `TrainSettings`.
        classifier: `AudioClassifier` that is kept.
        chunks: dict of `Chunks` by split.
        out: `pathlib.Path`, the folder of the run, whose history is rewound.
        share: `Share` of this host.
        figure: str, `"accuracy"` or `"mAP"`.
        first_epoch: int, the epochs that were trained before.

    Returns:
        Dict as `in_order` takes it.
    """
    path, monitor = out / "history.csv", settings.monitor
    best = (
        history.rewind(path, first_epoch, monitor) if share.is_first else None
    )
    if share.is_first and not first_epoch:
        # Of a run that was here before, it would pass for the best of one
        # that has no validation split.
        checkpoints.forget_best(out)
    # What it asks the optimizer is computed by all hosts.
    logs = hosts.folder(out / "logs", share)
    last = checkpoints.LastCheckpoint(out / "last.keras")
    kept = host_callbacks.OfFirst([last], share)
    stages = {
        "guard": [
            keras.callbacks.TerminateOnNaN(raise_error=True),
            callbacks.OnModel(classifier, [checkpoints.FiniteWeights()]),
        ],
        "draw": [callbacks.EpochSeeds(settings.seed)],
        "log": [keras.callbacks.TensorBoard(logs, write_graph=False)],
        "keep": [callbacks.OnModel(classifier, [kept])],
        "steer": [],
        "agree": [host_callbacks.StopTogether(share)],
    }
    if "val" in chunks:
        stages["validate"] = [
            callbacks.OnModel(
                classifier,
                of_validation(settings, chunks["val"], out, share, best),
            )
        ]
    if settings.schedule == "plateau":
        stages["steer"].append(
            history.Plateau(
                path,
                monitor,
                settings.learning_rate,
                settings.plateau_factor,
                settings.plateau_patience,
            )
        )
    if share.is_first:
        stages["log"].append(history.History(path))
        stages["show"] = [
            showing.LearningCurves(
                out, figure, monitor, training_name(settings)
            ),
            *callbacks.progress(figure, monitor, sys.stdout.isatty()),
        ]
        if settings.patience is not None:
            stages["steer"].append(
                history.Patience(path, monitor, settings.patience)
            )
    return stages


def of_validation(settings, chunks, out, share, best):
    """Makes the callbacks that score validation and keep the best epoch.

    Args:
        settings, out, share: as `of_training` takes them.
        chunks: `Chunks` of validation.
        best: float, the best figure of epochs before, or `None`.

    Returns:
        List of callbacks; the first one scores.
    """
    validation = callbacks.ClipValidation(
        chunks,
        settings.scored_at_once,
        share=share,
        scorer=lambda model: host_callbacks.whole_scores(model, share),
    )
    keeper = checkpoints.BestCheckpoint(
        out / checkpoints.BEST, settings.monitor, best, validation
    )
    kept = [validation, host_callbacks.OfFirst([keeper], share)]
    if settings.average_share:
        return [callbacks.WithAverageWeights(kept)]
    return kept


def is_over(settings, out, first_epoch):
    """Returns whether a run that has ended, or was killed as it did, is over.

    Args:
        settings, out, first_epoch: as `of_training` takes them.
    """
    if first_epoch >= settings.epochs:
        return True
    if settings.patience is None:
        return False
    path = out / "history.csv"
    return history.Patience(path, settings.monitor, settings.patience).is_over()
