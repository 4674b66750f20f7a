"""Clips that a model gets wrong, and how well it knows each class."""

import csv

import numpy as np

from audio_tf import files, metrics

COLUMNS = ("file", "labels", "predicted", "score", "score_of_truth")


def errors(corpus, targets, scores):
    """Lists the clips whose highest score is at none of their labels.

    Args:
        corpus: `Corpus`, whose vocabulary is in the order of the scores.
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`, finite.

    Returns:
        List of dicts by `COLUMNS`, the highest score of a wrong answer first.
        `labels` are joined by commas; `score_of_truth` is the highest score
        of a label of the clip, `None` for a clip without labels.
    """
    targets, scores = np.asarray(targets) > 0, np.asarray(scores)
    answers = scores.argmax(axis=1)
    rows = np.arange(len(scores))
    wrong = np.flatnonzero(~targets[rows, answers])
    # A stable sort: clips of equal score keep their order.
    wrong = wrong[np.argsort(-scores[wrong, answers[wrong]], kind="stable")]
    return [
        {
            "file": str(corpus.files[row]),
            "labels": ",".join(map(str, corpus.labels[row])),
            "predicted": str(corpus.vocabulary[answers[row]]),
            "score": float(scores[row, answers[row]]),
            "score_of_truth": float(scores[row, targets[row]].max())
            if targets[row].any()
            else None,
        }
        for row in wrong
    ]


def write_errors(path, rows):
    """Writes what `errors` returns as CSV, whole or not at all.

    Args:
        path: the file.
        rows: list of dicts by `COLUMNS`.
    """
    with (
        files.whole_file(path) as new,
        # Names of files may be bytes that are no UTF-8.
        open(
            new, "w", newline="", encoding="utf-8", errors="surrogateescape"
        ) as file,
    ):
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def class_figures(targets, scores):
    """Computes how well each class is known.

    Args:
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`, finite.

    Returns:
        Dict by name of a float array `(classes,)`, NaN where a class leaves
        the figure undefined. Where every clip has exactly one label: `recall`
        (share of the clips of the class that are told as such) and
        `precision` (share of the clips told as the class that are of it);
        else `average precision`.
    """
    if not metrics.one_label_each(targets):
        precisions = metrics.average_precision_per_class(targets, scores)
        return {"average precision": precisions}
    counts = metrics.confusion(targets, scores).astype("float64")
    hits, clips, told = counts.diagonal(), counts.sum(1), counts.sum(0)
    with np.errstate(invalid="ignore"):
        return {"recall": hits / clips, "precision": hits / told}
