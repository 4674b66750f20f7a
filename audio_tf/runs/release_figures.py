"""The figures that a released model's card and the index tell."""

import dataclasses
import json
import pathlib

import numpy as np

from audio_tf import metrics, released
from audio_tf.runs import corpus_records, history, model_card, results
from audio_tf.runs.evaluate import score_split
from audio_tf.runs.settings import flag

# How far the preset's figures may be from those that the run has left.
TOLERANCE = 1e-4


@dataclasses.dataclass
class Figures:
    """The figures of a model on a split, for its card and for the index.

    Attributes:
        metric: `released.Metric`, the one that counts.
        table: list of pairs of a name and of a figure with its interval.
        baseline: list of pairs of the name of a baseline and its figure of
            the same name.
        details: str, Markdown on what is confused.
        labels: list of str, or `None` of an encoder.
        meaning: str, what was scored and what the intervals are.
        chosen: bool, whether the epoch that was scored is the best on this
            very split.
    """

    metric: released.Metric
    table: list
    baseline: list
    details: str
    labels: list | None
    meaning: str
    chosen: bool = False


def of_classifier(settings, scored, classifier):
    """Scores the split of a run's corpus by its classifier.

    Args:
        settings: `ReleaseSettings`.
        scored: `FinishedRun`.
        classifier: its `AudioClassifier`.

    Returns:
        `Figures`.

    Raises:
        ValueError: if the corpus is not the run's, the figures are not those
            that it has left, or the baseline is of other clips.
    """
    run, origin = scored.settings, scored.origin
    baseline = read_report("baseline", settings.baseline, "figures")
    same_clips(baseline["corpus"], origin, settings, "the baseline")
    corpus = run.load()[settings.split]
    chunks, scores = score_split(
        classifier, corpus, settings.split, run.prepare_arguments()
    )
    clips, root = chunks.clips, run.file_root()
    record = corpus_records.make({settings.split: clips.corpus}, root)
    same_clips(corpus_records.summary(record), origin, settings, "the corpus")
    labels = clips.corpus.vocabulary
    report = metrics.evaluate(chunks.targets, scores, labels)
    check_figures(scored.folder / f"{settings.split}.json", report)
    targets = chunks.targets.astype(np.int64)
    found = results.intervals_of(metrics.METRICS, targets, scores, clips.corpus)
    counts = metrics.headline(targets)
    if counts not in found:
        raise ValueError(
            "A released model needs a figure with an interval, for which draws "
            f"of the clips must differ. Received: {counts} {report[counts]} of "
            f"{found['units']} {found['unit']}s in the split {settings.split}"
        )
    if counts == "accuracy":
        details = model_card.confusions(targets, scores, labels)
    else:
        details = model_card.hardest(report)
    epochs = history.read(scored.folder / "history.csv")[1]
    chosen = history.best_row(epochs, run.monitor) is not None
    return Figures(
        released.Metric(counts, report[counts], found[counts], len(targets)),
        [
            (name, report[name], found.get(name))
            for name in metrics.METRICS
            if report[name] is not None
        ],
        baseline_rows(baseline, counts, origin),
        details,
        labels,
        f"Figures of {len(targets)} clips, "
        f"{results.how_scored(chunks)['how']}, with 95 % intervals of the "
        f"bootstrap over {found['units']} {found['unit']}s.",
        chosen and settings.split == "val",
    )


def read_report(name, path, held):
    """Reads a report that a setting names.

    Args:
        name: str, the setting.
        path: path of the JSON file.
        held: str, what it must have beside the corpus.

    Raises:
        ValueError: if it is no such report.
        OSError: if it cannot be read.
    """
    try:
        report = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError:
        report = None
    if not isinstance(report, dict) or not {"corpus", held} <= set(report):
        command = "baseline" if held == "figures" else "probe"
        raise ValueError(
            f"{flag(name)} must be a report of audio-tf {command}, which has "
            f"`corpus` and `{held}`. Received: {path}"
        )
    return report


def baseline_rows(baseline, name, origin):
    """Returns the rows of a baseline for `Figures`.

    Args:
        baseline: dict, the report of `audio-tf baseline`.
        name: str, the figure that counts.
        origin: dict, the `provenance.json` of the run that it stands beside.
    """
    learned = learned_from(baseline["corpus"], origin)
    return [
        (
            f"{model}, {baseline_name(figures[name])}{learned}",
            figures[name]["mean"],
        )
        for model, figures in baseline["figures"].items()
    ]


def baseline_name(figure):
    """Returns a text of how often a baseline was trained."""
    count = len(figure["values"])
    if count == 1:
        return "one training"
    return f"{count} seeds, deviation {figure['deviation']:.3f}"


def learned_from(facts, origin):
    """Returns a text of what a baseline has learned from, empty if the same.

    Args:
        facts: dict by split that `corpus_records.summary` has returned.
        origin: dict, the `provenance.json` of the run that it stands beside.
    """
    ours, theirs = origin["corpus"]["train"], facts.get("train")
    if theirs is None or ours == theirs:
        return ""
    return (
        f", learned from {theirs['files']} clips, which are not the "
        f"{ours['files']} of the model"
    )


def same_clips(facts, origin, settings, what):
    """Checks that something is of the very clips of a run.

    Args:
        facts: dict by split that `corpus_records.summary` has returned.
        origin: dict, the `provenance.json` of the run.
        settings: `ReleaseSettings`.
        what: str, what is checked.

    Raises:
        ValueError: if it is of other clips, or the run knows none.
    """
    split = settings.split
    found, wanted = facts.get(split), origin["corpus"].get(split)
    if wanted is None:
        raise ValueError(
            f"--split must be one that the run knows, {[*origin['corpus']]}: "
            "a training with --no-test does not read the test, and goes on "
            "to it with --resume --test. "
            f"Received: {split}"
        )
    if found is None or found != wanted:
        raise ValueError(
            f"The split {split} of {what} must be that of the run, {wanted}. "
            f"Received: {found}"
        )


def check_figures(path, report):
    """Checks that a preset scores as its run has said.

    Args:
        path: `pathlib.Path` of the figures that the run has left.
        report: dict of figures by name.

    Raises:
        ValueError: if it does not.
    """
    said = json.loads(path.read_text())
    for name in metrics.METRICS:
        before, now = said[name], report[name]
        if before != now and abs(before - now) > TOLERANCE:
            raise ValueError(
                f"The preset does not score as {path} says. Received: "
                f"{name} {now}, there {before}"
            )


def check_baseline(figures):
    """Checks that the figure that counts is not below a baseline's.

    Raises:
        ValueError: if it is.
    """
    best = max(value for _, value in figures.baseline)
    if figures.metric.value < best:
        raise ValueError(
            "No model is released whose figure is below that of the baseline. "
            f"Received: {figures.metric}, the baseline has {best:.3f}"
        )
