"""The figures that a released model's card and the index tell."""

import dataclasses
import json
import pathlib
import typing

import numpy as np

from audio_tf import intervals, metrics, released
from audio_tf.export.classifiers import read_provenance
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import (
    corpus_records,
    heard,
    history,
    model_card,
    results,
)
from audio_tf.runs.evaluate import score_split
from audio_tf.runs.flags import saved_run
from audio_tf.runs.leakage import PRETRAINING
from audio_tf.runs.settings import flag
from audio_tf.runs.train_settings import ASIDE, TrainSettings

# Settings of `audio-tf probe` that figures beside each other have in common:
# which lengths are left out, and how a probe is made and trained.
OF_PROBES = (
    *("min_s", "max_s"),
    *("hidden_dim", "hidden_dropout"),
    *("epochs", "batch_size", "learning_rate"),
)
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


class FinishedRun(typing.NamedTuple):
    """A training that has ended.

    Attributes:
        folder: `pathlib.Path`.
        settings: `TrainSettings`.
        origin: dict, the `provenance.json` of its preset.
    """

    folder: pathlib.Path
    settings: TrainSettings
    origin: dict


def read_origin(folder):
    """Reads the `provenance.json` that a finished run has left.

    Args:
        folder: `pathlib.Path` of the run.

    Raises:
        ValueError: if it has not ended.
    """
    origin = read_provenance(folder / "preset")
    if origin is None:
        raise ValueError(
            f"A finished run is needed. Received: {folder}, without "
            "preset/provenance.json"
        )
    return origin


def finished_run(folder, **changes):
    """Reads the folder of a finished training.

    Args:
        folder: path.
        **changes: settings that may differ, such as where the corpus is.

    Returns:
        `FinishedRun`.

    Raises:
        ValueError: if it has not ended.
    """
    folder = pathlib.Path(folder)
    origin = read_origin(folder)
    settings = TrainSettings.from_json(saved_run(folder), **changes)
    return FinishedRun(folder, settings, origin)


def check_alike(run, measured):
    """Checks that a run is that of another one on more clips.

    Args:
        run: `FinishedRun`.
        measured: `FinishedRun`, whose figures stand for those of `run`.

    Raises:
        ValueError: if their settings differ in more than the splits and
            places, or their labels, or if a clip that the other learned from
            is not the run's.
    """
    splits = {
        field.name
        for field in dataclasses.fields(TrainSettings)
        if field.metadata["option"]
    }
    for field in dataclasses.fields(TrainSettings):
        ours, theirs = (
            getattr(each.settings, field.name) for each in (run, measured)
        )
        if field.name == "teachers":
            check_teachers(ours, theirs)
        elif ours != theirs and field.name not in splits | ASIDE:
            raise ValueError(
                f"{measured.folder} must be trained as {run.folder}, but for "
                f"the splits. Received: {field.name}={theirs!r}, "
                f"not {ours!r}"
            )
    if run.origin["labels"] != measured.origin["labels"]:
        raise ValueError(
            f"{measured.folder} must have the labels {run.origin['labels']}. "
            f"Received: {measured.origin['labels']}"
        )
    ours, theirs = (
        heard.trained_files(each.folder) for each in (run, measured)
    )
    others = [name for name in theirs if theirs[name] != ours.get(name)]
    if others:
        raise ValueError(
            f"{run.folder} must have learned from all clips of "
            f"{measured.folder}. Received: {len(others)} others, the first "
            f"{others[0]}"
        )


def check_teachers(ours, theirs):
    """Checks that the teachers of two runs are alike, as `check_alike` does.

    Args:
        ours: list of paths of the presets that taught the run.
        theirs: list of those that taught the one whose figures are told.

    Raises:
        ValueError: if they are not as many, one is not in the folder of its
            training, or two were not trained alike.
    """
    if len(ours) != len(theirs):
        raise ValueError(
            f"Both runs must have as many teachers. Received: {ours} and "
            f"{theirs}"
        )
    for pair in zip(ours, theirs, strict=True):
        if pair[0] != pair[1]:
            check_alike(*(finished_run(pathlib.Path(p).parent) for p in pair))


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
    table = [
        (name, report[name], found.get(name))
        for name in metrics.METRICS
        if report[name] is not None
    ]
    counts = "accuracy" if report["accuracy"] is not None else "mAP"
    ((_, value, interval),) = [row for row in table if row[0] == counts]
    if interval is None:
        raise ValueError(
            "A released model needs a figure with an interval, for which draws "
            f"of the clips must differ. Received: {counts} {value} of "
            f"{found['units']} {found['unit']}s in the split {settings.split}"
        )
    learned = learned_from(baseline["corpus"], origin)
    rows = [
        (
            f"{name}, {baseline_name(figures[counts])}{learned}",
            figures[counts]["mean"],
        )
        for name, figures in baseline["figures"].items()
    ]
    epochs = history.read(scored.folder / "history.csv")[1]
    chosen = history.best_row(epochs, run.monitor) is not None
    if counts == "accuracy":
        details = model_card.confusions(targets, scores, labels)
    else:
        details = model_card.hardest(report)
    return Figures(
        released.Metric(counts, value, list(interval), len(targets)),
        table,
        rows,
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


def of_encoder(settings, encoder):
    """Reads the figures of the probes of an encoder.

    Args:
        settings: `ReleaseSettings`.
        encoder: `models.AudioBackbone`, the one that is released.

    Returns:
        `Figures`, the first task's counts.

    Raises:
        ValueError: if no probes are given, they are those of another encoder,
            or those of the baseline are of an encoder, too, have other tasks
            or other utterances, or were trained otherwise.
    """
    if settings.probes is None:
        raise ValueError(
            "--probes is needed for an encoder, which has no labels. "
            "Received: none"
        )
    ours, plain = (
        read_report(name, getattr(settings, name), "tasks")
        for name in ("probes", "baseline")
    )
    weights, probed = weights_sha256(encoder.weights), probed_weights(ours)
    if probed != weights:
        raise ValueError(
            f"--probes must be of the encoder in {settings.run}, whose "
            f"weights have the checksum {weights}. Received: "
            f"{settings.probes}, of {probed or 'plain features'}"
        )
    if probed_weights(plain) is not None:
        raise ValueError(
            "--baseline must be of plain features: audio-tf probe without "
            f"--model, or with --layer features. Received: {settings.baseline},"
            f" of weights with the checksum {probed_weights(plain)}"
        )
    if ours["corpus"] != plain["corpus"] or set(ours["tasks"]) - set(
        plain["tasks"]
    ):
        raise ValueError(
            "--baseline must have probes of the same tasks and utterances. "
            f"Received: tasks {list(plain['tasks'])}, not "
            f"{list(ours['tasks'])}, or another corpus"
        )
    for name in OF_PROBES:
        one, other = (each["settings"].get(name) for each in (ours, plain))
        if one != other:
            raise ValueError(
                "--baseline must have probes of the same utterances, trained "
                f"alike. Received: {flag(name)} {other}, not {one}"
            )
    table = []
    for task, report in ours["tasks"].items():
        count = report["utterances"]["test"]
        share = report["test_accuracy"]
        table.append(
            (f"accuracy of {task}", share, intervals.wilson(share, count))
        )
    task, report = next(iter(ours["tasks"].items()))
    name, share, interval = table[0]
    count = report["utterances"]["test"]
    rows = "\n".join(
        f"| {task} | {report['test_accuracy']:.4f} "
        f"| {plain['tasks'][task]['test_accuracy']:.4f} "
        f"| {report['chance']:.4f} |"
        for task, report in ours["tasks"].items()
    )
    return Figures(
        released.Metric(name, share, list(interval), count),
        table,
        [("plain features", plain["tasks"][task]["test_accuracy"])],
        "A probe is a small classifier of frozen frames. Accuracy of each, "
        "the same probe's of plain features, and that of who always names the "
        "most frequent class:\n\n"
        "| probe | this encoder | plain features | most frequent class |\n"
        f"| --- | --- | --- | --- |\n{rows}",
        None,
        f"Figures of {count} clips with Wilson's 95 % intervals."
        + known_before(ours),
    )


def known_before(report):
    """Returns a text of what a pre-training has heard, empty if of nothing.

    Args:
        report: dict, the `probes.json` of its encoder.
    """
    clips = sum(
        leak["clips"]
        for leak in report.get("leaks", ())
        if leak["splits"] == [PRETRAINING, "test"]
    )
    if not clips:
        return ""
    return f" The encoder was pre-trained on {clips} of them, without labels."


def probed_weights(report):
    """Returns the checksum of the weights whose outputs a report is of.

    Args:
        report: dict, the `probes.json` of a run.

    Returns:
        Str, or `None` if plain features were probed.
    """
    model = report.get("model")
    plain = model is None or report["settings"]["layer"] == "features"
    return None if plain else model["weights_sha256"]


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
