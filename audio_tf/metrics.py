"""Figures of merit for multi-label scores: one table, `METRICS`, by name.

`targets` is 0 or 1 and `scores` any finite real number, both
`(clips, classes)`, or it is a `ValueError`; a higher score means more likely.
A figure that the data leave undefined is `None`, so that a report is valid
JSON. All but lwlrap and accuracy are computed by scikit-learn.
"""

import math
import typing

import numpy as np
from scipy import special
from sklearn import metrics as sklearn_metrics

from audio_tf import terminal
from audio_tf.ops import weighted
from audio_tf.ops.checks import check_choice

# Handed on: figures of clips begin with it.
from audio_tf.ops.clip_scores import clip_scores as clip_scores
from audio_tf.ops.clip_scores import validated_scores


def average_precision_per_class(targets, scores):
    """Computes the average precision of each class over the clips.

    Args:
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`, finite.

    Returns:
        Float64 array `(classes,)`, NaN where a class has no positive.

    Raises:
        ValueError: if a shape or a value is not as above.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1], [1, 1]])
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
        >>> metrics.average_precision_per_class(targets, scores).tolist()
        [1.0, 1.0]
    """
    targets, scores = validated(targets, scores)
    return _per_class(
        sklearn_metrics.average_precision_score,
        targets,
        scores,
        targets.any(axis=0),
    )


def mean_average_precision(targets, scores):
    """Averages the precision of the classes that have a positive.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1], [1, 1]])
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
        >>> metrics.mean_average_precision(targets, scores)
        1.0
    """
    return _mean(average_precision_per_class(targets, scores))


def roc_auc(targets, scores):
    """Averages ROC-AUC over the classes with a positive and a negative.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
        >>> scores = np.array([[0.9, 0.1], [0.5, 0.8], [0.4, 0.6], [0.2, 0.7]])
        >>> round(metrics.roc_auc(targets, scores), 3)
        0.875
    """
    targets, scores = validated(targets, scores)
    has_both = targets.any(axis=0) & ~targets.all(axis=0)
    return _mean(
        _per_class(sklearn_metrics.roc_auc_score, targets, scores, has_both)
    )


def d_prime(targets, scores):
    """Computes `sqrt(2) * Phi^-1(roc_auc)`, undefined where it is infinite.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
        >>> scores = np.array([[0.9, 0.1], [0.5, 0.8], [0.4, 0.6], [0.2, 0.7]])
        >>> round(metrics.d_prime(targets, scores), 3)
        1.627
    """
    area = roc_auc(targets, scores)
    if area is None or not 0.0 < area < 1.0:
        return None
    return float(math.sqrt(2.0) * special.ndtri(area))


def infinite_d_prime(targets, scores):
    """Returns `d_prime` where it is infinite, else `None`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1]])
        >>> metrics.infinite_d_prime(targets, np.array([[0.9, 0], [0.5, 0.8]]))
        inf
    """
    return {0.0: -math.inf, 1.0: math.inf}.get(roc_auc(targets, scores))


def lwlrap(targets, scores):
    """Computes the label-weighted label-ranking average precision.

    It is the mean over all pairs of a clip and one of its labels: the share
    of labels of the clip among the classes that are ranked as high as this
    one or higher. Classes of equal score are ranked one after the other, the
    one of the larger index first, as the reference of DCASE 2019 task 2 does
    (`evaluation.py` of DCASE-REPO/dcase2019_task2_baseline), whose
    `argsort(scores)[::-1]` reverses an ascending sort; this sort is stable
    whatever the number of classes. scikit-learn's
    `label_ranking_average_precision_score` gives equal scores the last rank
    of them all, which is lower.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0, 0], [0, 1, 1]])
        >>> scores = np.array([[0.9, 0.1, 0.2], [0.8, 0.7, 0.9]])
        >>> round(metrics.lwlrap(targets, scores), 3)
        0.889
    """
    targets, scores = validated(targets, scores)
    if not targets.any():
        return None
    order = np.argsort(scores, axis=1, kind="stable")[:, ::-1]
    ranked = np.take_along_axis(targets, order, axis=1)
    precisions = np.cumsum(ranked, axis=1) / np.arange(1, ranked.shape[1] + 1)
    return float(precisions[ranked > 0].mean())


def pr_auc_micro(targets, scores):
    """Computes the area below the pooled precision-recall curve.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1]])
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> metrics.pr_auc_micro(targets, scores)
        1.0
    """
    targets, scores = validated(targets, scores)
    return _pr_auc(targets.ravel(), scores.ravel()) if targets.any() else None


def pr_auc_macro(targets, scores):
    """Averages `pr_auc_micro` of single classes over those with a positive.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1]])
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> metrics.pr_auc_macro(targets, scores)
        1.0
    """
    targets, scores = validated(targets, scores)
    return _mean(_per_class(_pr_auc, targets, scores, targets.any(axis=0)))


def one_label_each(targets):
    """Returns whether every clip has exactly one label.

    Args:
        targets: array of 0 and 1 `(clips, classes)`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> metrics.one_label_each(np.array([[1, 0], [0, 1]]))
        True
        >>> metrics.one_label_each(np.array([[1, 1], [0, 1]]))
        False
    """
    return bool(np.all(np.asarray(targets).sum(axis=1) == 1))


def headline(targets):
    """Returns which figure of a split is told first.

    Args:
        targets: array of 0 and 1 `(clips, classes)`.

    Returns:
        `"accuracy"` where every clip has exactly one label, else `"mAP"`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> metrics.headline(np.array([[1, 1], [0, 1]]))
        'mAP'
    """
    return "accuracy" if one_label_each(targets) else "mAP"


def confusion(targets, scores):
    """Counts which class has the highest score, for the clips of each class.

    Args:
        targets: array of 0 and 1 `(clips, classes)`, exactly one 1 a clip.
        scores: array `(clips, classes)`, finite.

    Returns:
        Int array `(classes, classes)`, `counts[true, predicted]`.

    Raises:
        ValueError: if a shape or a value is not as above.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1], [1, 0]])
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
        >>> metrics.confusion(targets, scores).tolist()
        [[1, 1], [0, 1]]
    """
    targets, scores = validated(targets, scores)
    if not one_label_each(targets):
        raise ValueError(
            "Each clip must have exactly one label. Received: from "
            f"{targets.sum(axis=1).min()} to {targets.sum(axis=1).max()}"
        )
    return sklearn_metrics.confusion_matrix(
        targets.argmax(axis=1),
        scores.argmax(axis=1),
        labels=np.arange(targets.shape[1]),
    )


def accuracy(targets, scores):
    """Computes the share of clips whose highest score is that of their label.

    Undefined unless every clip has exactly one label.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1], [1, 0], [1, 0]])
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]])
        >>> metrics.accuracy(targets, scores)
        0.75
    """
    targets, scores = validated(targets, scores)
    if not one_label_each(targets):
        return None
    return float(np.mean(scores.argmax(axis=1) == targets.argmax(axis=1)))


def weighted_accuracy(targets, scores, weights):
    """Computes `accuracy` of clips that count several times, or not at all.

    Args:
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`.
        weights: array `(draws, clips)`, at least 0.

    Returns:
        Float64 array `(draws,)`, NaN unless every clip has exactly one label.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1]])
        >>> scores = np.array([[0.9, 0.1], [0.7, 0.3]])
        >>> weights = np.array([[1, 1], [3, 1]])
        >>> metrics.weighted_accuracy(targets, scores, weights).tolist()
        [0.5, 0.75]
    """
    if not one_label_each(targets):
        return np.full(len(weights), np.nan)
    right = scores.argmax(axis=1) == targets.argmax(axis=1)
    return weights @ right / weights.sum(axis=1)


class Metric(typing.NamedTuple):
    """One entry of `METRICS`.

    Attributes:
        figure: function of `targets`, int64 `(clips, classes)`, and `scores`,
            float64 `(clips, classes)`, to a float, or `None` where it is
            undefined.
        mode: `"max"` if a higher figure is better, `"min"` if a lower one is.
        meaning: what the figure is, in a few words for help texts.
        weighted: function of `targets`, `scores` and weights `(draws, clips)`,
            how often a clip counts, to an array `(draws,)` with NaN where the
            figure is undefined: all draws of an interval at once. `None` if
            there is none, so that clips are repeated instead, which is slow.
        is_share: bool, whether the figure is a share of the clips.
        infinite: function as `figure`, to an infinite float, which JSON cannot
            hold, or `None` where it is not; `None` if the figure never is.
            Epochs are compared by it, and draws of an interval count it.

    Examples:
        >>> from audio_tf import metrics
        >>> metrics.METRICS["mAP"].mode, metrics.METRICS["mAP"].meaning
        ('max', 'mean average precision of the classes')
    """

    figure: typing.Callable
    mode: str
    meaning: str
    weighted: typing.Callable | None = None
    is_share: bool = False
    infinite: typing.Callable | None = None

    def extended(self, targets, scores):
        """Returns the figure, also where it is infinite, or `None`."""
        found = self.figure(targets, scores)
        if found is None and self.infinite is not None:
            return self.infinite(targets, scores)
        return found


METRICS = {
    "mAP": Metric(
        mean_average_precision,
        "max",
        "mean average precision of the classes",
        weighted.mean_average_precision,
    ),
    "d_prime": Metric(
        d_prime,
        "max",
        "separation of the classes, from ROC",
        infinite=infinite_d_prime,
    ),
    "roc_auc": Metric(roc_auc, "max", "mean area below the ROC curves"),
    "lwlrap": Metric(
        lwlrap, "max", "label-weighted label-ranking average precision"
    ),
    "pr_auc_micro": Metric(
        pr_auc_micro, "max", "area below the pooled precision-recall curve"
    ),
    "pr_auc_macro": Metric(
        pr_auc_macro, "max", "mean area below the precision-recall curves"
    ),
    "accuracy": Metric(
        accuracy,
        "max",
        "share of clips, where each has one label",
        weighted_accuracy,
        is_share=True,
    ),
}


def monitors():
    """Returns what training may monitor: a dict of the mode by name in the
    logs.

    The names are `val_` and a key of `METRICS`, whose mode it has, and
    `val_loss` and `loss`, the latter that of training, whose mode is `"min"`.

    Examples:
        >>> from audio_tf import metrics
        >>> metrics.monitors()["val_mAP"]
        'max'
    """
    modes = {f"val_{name}": metric.mode for name, metric in METRICS.items()}
    return {**modes, "val_loss": "min", "loss": "min"}


def monitor_mode(monitor):
    """Returns whether the largest or the smallest figure is the best one.

    Args:
        monitor: str, a key of `monitors()`.

    Returns:
        `"max"` or `"min"`.

    Raises:
        ValueError: if it is none; the error names the closest one.

    Examples:
        >>> from audio_tf import metrics
        >>> metrics.monitor_mode("val_loss")
        'min'
    """
    modes = monitors()
    check_choice("monitor", monitor, modes)
    return modes[monitor]


def evaluate(targets, scores, labels):
    """Computes all figures of `METRICS` for a set of clips.

    Args:
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`, finite.
        labels: sequence of `classes` distinct strings.

    Returns:
        Dict ready for JSON: a float or `None` by each key of `METRICS`, then
        `num_clips`, `num_classes`, `classes_without_positives` (list of
        labels) and `per_class` (label to `average_precision` and
        `positives`).

    Raises:
        ValueError: if a shape or a value is not as above.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1], [1, 0]])
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
        >>> report = metrics.evaluate(targets, scores, ["dog", "rain"])
        >>> report["mAP"], report["per_class"]["dog"]["positives"]
        (1.0, 2)
    """
    targets, scores = validated(targets, scores)
    labels = [str(label) for label in labels]
    if len(labels) != targets.shape[1] or len(set(labels)) != len(labels):
        raise ValueError(
            "`labels` must name each class once. "
            f"Received: len(labels)={len(labels)}, "
            f"distinct={len(set(labels))}, targets.shape={targets.shape}"
        )
    figures = {
        name: metric.figure(targets, scores) for name, metric in METRICS.items()
    }
    has_positive = targets.any(axis=0)
    precisions = average_precision_per_class(targets, scores)
    return {
        **figures,
        "num_clips": targets.shape[0],
        "num_classes": targets.shape[1],
        "classes_without_positives": [
            label for label, used in zip(labels, has_positive) if not used
        ],
        "per_class": {
            label: {
                "average_precision": float(precision) if used else None,
                "positives": int(positives),
            }
            for label, precision, used, positives in zip(
                labels, precisions, has_positive, targets.sum(axis=0)
            )
        },
    }


def format_report(report):
    """Formats the summary figures of a report as text.

    Args:
        report: dict, as `evaluate` returns it.

    Returns:
        String of one line per figure, names and numbers aligned, then one
        line on the classes without positives, if there are any.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> targets = np.array([[1, 0], [0, 1], [1, 0]])
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
        >>> report = metrics.evaluate(targets, scores, ["dog", "rain"])
        >>> print(metrics.format_report(report).splitlines()[0])
        mAP           1.0000
    """
    rows = [
        (name, "n/a" if report[name] is None else f"{report[name]:.4f}")
        for name in METRICS
    ]
    rows += [(name, str(report[name])) for name in ("num_clips", "num_classes")]
    name_width = max(len(name) for name, _ in rows)
    text_width = max(len(text) for _, text in rows)
    lines = [
        f"{name:<{name_width}}  {text:>{text_width}}" for name, text in rows
    ]
    left_out = report["classes_without_positives"]
    if left_out:
        named = terminal.first_names(left_out)
        lines.append(f"Left out, without positives: {named}")
    return "\n".join(lines)


def _per_class(figure, targets, scores, used):
    """`figure(targets, scores)` of each used class, NaN for the others."""
    values = np.full(targets.shape[1], np.nan)
    for index in np.flatnonzero(used):
        values[index] = figure(targets[:, index], scores[:, index])
    return values


def _mean(values):
    """Mean of the defined values, `None` if there is none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else None


def _pr_auc(targets, scores):
    """Trapezoid area below the precision-recall curve, both `(clips,)`."""
    precision, recall, _ = sklearn_metrics.precision_recall_curve(
        targets, scores
    )
    return float(sklearn_metrics.auc(recall, precision))


def validated(targets, scores):
    """Returns `targets` as int64 and `scores` as float64.

    Raises:
        ValueError: if their shapes differ, or values are not as they must be.

    Examples:
        >>> from audio_tf import metrics
        >>> targets, scores = metrics.validated([[True, False]], [[2, 1]])
        >>> targets.tolist(), scores.tolist()
        ([[1, 0]], [[2.0, 1.0]])
    """
    scores = validated_scores(scores)
    targets = np.asarray(targets)
    if targets.shape != scores.shape:
        raise ValueError(
            "`targets` and `scores` must have the same shape. "
            f"Received: targets.shape={targets.shape}, "
            f"scores.shape={scores.shape}"
        )
    wrong = targets[(targets != 0) & (targets != 1)]
    if wrong.size:
        raise ValueError(
            "`targets` must be 0 or 1. "
            f"Received: {wrong.size} other values, the first is {wrong[0]}"
        )
    return targets.astype(np.int64), scores
