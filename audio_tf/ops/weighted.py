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
    # Rows that are one after the other in memory are summed fast.
    columns = np.ascontiguousarray(np.asarray(weights).T)
    total, count = np.zeros(len(weights)), np.zeros(len(weights))
    for truth, score in zip(targets.T, scores.T, strict=True):
        order = np.argsort(-score, kind="stable")
        (places,) = np.nonzero(truth[order])
        if not len(places):
            continue
        # Clips of equal score are found together.
        ends = np.flatnonzero(np.diff(score[order], append=np.nan) != 0)
        groups, firsts = np.unique(
            np.searchsorted(ends, places), return_index=True
        )
        ends = ends[groups]
        starts = np.concatenate([[0], ends[:-1] + 1])
        # Of each group with a positive: all clips down to it, and its own.
        down_to = columns[order[: ends[-1] + 1]]
        found = np.cumsum(np.add.reduceat(down_to, starts), axis=0)
        gained = np.add.reduceat(columns[order[places]], firsts)
        hits = np.cumsum(gained, axis=0)
        total += _share((gained * _share(hits, found)).sum(axis=0), hits[-1])
        count += hits[-1] > 0
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _share(part, whole):
    """Divides arrays `part / whole`; 0 where both are 0, of clips left out."""
    # Not by 1 at least: weights may be fractions, and sum to less.
    return part / np.where(whole > 0, whole, 1)
