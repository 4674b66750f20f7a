"""Figures of clips that count several times, or not at all."""

import numpy as np


def mean_average_precision(targets, scores, weights):
    """Computes the mean average precision for several sets of weights.

    Scikit-learn's takes one set of weights at a time; this sorts the clips of
    a class once for all.

    Args:
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`.
        weights: array `(draws, clips)`, at least 0.

    Returns:
        Float64 array `(draws,)`: the means over the classes that have a
        positive among the clips of the draw, NaN where none has.
    """
    total, count = np.zeros(len(weights)), np.zeros(len(weights))
    for truth, score in zip(targets.T, scores.T, strict=True):
        order = np.argsort(-score, kind="stable")
        # Clips of equal score are found together.
        ends = np.flatnonzero(np.diff(score[order], append=np.nan) != 0)
        drawn = weights[:, order]
        hits = np.cumsum(drawn * truth[order], axis=1)[:, ends]
        found = np.cumsum(drawn, axis=1)[:, ends]
        gained = np.diff(hits, axis=1, prepend=0)
        gains = (gained * hits / np.maximum(found, 1)).sum(axis=1)
        positives = hits[:, -1]
        total += gains / np.maximum(positives, 1)
        count += positives > 0
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
