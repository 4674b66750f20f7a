"""Thresholds from which on a clip is said to have a label, one a class.

Where clips have any number of labels, the highest score does not answer: each
class has a threshold, which is calibrated on validation clips. Nothing takes
thresholds but what is given them.
"""

import numpy as np
from sklearn import metrics as sklearn_metrics

from audio_tf import metrics


def calibrate(targets, scores, labels):
    """Finds the threshold of each class with the highest F1 on some clips.

    A clip has the label whose score is at least the threshold. Of several
    that are as good, it is the highest.

    Args:
        targets: array of 0 and 1 `(clips, classes)`, of validation clips.
        scores: array `(clips, classes)`, finite.
        labels: list of str, the classes in their order.

    Returns:
        Dict by label of a float; `None` for a class that no clip has.

    Raises:
        ValueError: if a shape or a value is not as above, or there is not one
            label for each class.
    """
    targets, scores = of_labels(targets, scores, labels)
    found = {}
    for index, label in enumerate(labels):
        truth = targets[:, index] > 0
        if not truth.any():
            found[label] = None
            continue
        column = np.sort(scores[:, index])
        right = np.sort(scores[truth, index])
        candidates = np.unique(column)
        said = len(column) - np.searchsorted(column, candidates)
        hits = len(right) - np.searchsorted(right, candidates)
        # One division of counts: those that are as good are equal to the bit,
        # which a mean of precision and recall is not.
        f1 = 2 * hits / (said + len(right))
        best = np.flatnonzero(f1 == f1.max())[-1]
        found[label] = float(candidates[best])
    return found


def evaluate(targets, scores, thresholds):
    """Computes the F1 of clips at thresholds that others have calibrated.

    Args:
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`, finite.
        thresholds: dict by label, in the order of the classes, of a float, or
            `None` for a class that is left out.

    Returns:
        Dict ready for JSON: `f1_macro`, the mean over the classes that have
        a threshold and are in a clip or are found in one, `None` if there is
        none; `f1_micro`, of all their pairs of a clip and a label;
        `classes_without_threshold`, a list of labels; and `per_class`, by
        label the `threshold`, `precision`, `recall` and `f1`.

    Raises:
        ValueError: as `calibrate`.
    """
    targets, scores = of_labels(targets, scores, thresholds)
    used = [
        index
        for index, value in enumerate(thresholds.values())
        if value is not None
    ]
    labels = list(thresholds)
    result = {
        "f1_macro": None,
        "f1_micro": None,
        "classes_without_threshold": [
            label for label, value in thresholds.items() if value is None
        ],
        "per_class": {},
    }
    if not used:
        return result
    truth = targets[:, used]
    values = np.array([thresholds[labels[index]] for index in used])
    found = (scores[:, used] >= values).astype("int64")
    precision, recall, f1, _ = sklearn_metrics.precision_recall_fscore_support(
        truth.T.reshape(-1),
        found.T.reshape(-1),
        zero_division=0.0,
        average="binary",
    )
    result["f1_micro"] = float(f1)
    defined = []
    for column, index in enumerate(used):
        each = sklearn_metrics.precision_recall_fscore_support(
            truth[:, column],
            found[:, column],
            zero_division=0.0,
            average="binary",
        )
        precision, recall, f1 = map(float, each[:3])
        if truth[:, column].any() or found[:, column].any():
            defined.append(f1)
        result["per_class"][labels[index]] = {
            "threshold": float(values[column]),
            "precision": precision,
            "recall": recall,
            "f1": f1,
        }
    if defined:
        result["f1_macro"] = float(np.mean(defined))
    return result


def of_labels(targets, scores, labels):
    """Returns targets and scores as `metrics.validated` does, of such classes.

    Raises:
        ValueError: as there, or if there is not one label for each class.
    """
    targets, scores = metrics.validated(targets, scores)
    if len(labels) != targets.shape[1]:
        raise ValueError(
            "There must be one label for each class. "
            f"Received: {len(labels)} labels, {targets.shape[1]} classes"
        )
    if len(set(labels)) != len(labels):
        # A dict would keep the threshold of the last of them alone.
        raise ValueError(
            "Each class must have a label of its own. Received: "
            f"{len(labels)} labels, {len(set(labels))} different"
        )
    return targets, scores
