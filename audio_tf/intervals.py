"""Intervals of figures: how far other clips may be from those measured.

Clips of one speaker or of one recording are alike, so that few speakers say
less than many clips do: where a corpus knows of its sources, these are drawn
anew, with all of their clips, and else single clips.
"""

import math

import numpy as np

LEVEL = 0.95
# Of the normal distribution to each side, between which is that much of it.
DEVIATIONS = 1.96
DRAWS = 1_000
# Of a figure that is computed draw by draw.
FEWER_DRAWS = 200
# Draws of a figure that differ by less are the same, but for rounding.
SAME = 1e-12
# Beyond all figures but infinite ones.
HUGE = 1e300
# Weights that are held at a time.
BLOCK = 4_000_000


def units(corpus):
    """Returns what is drawn anew for an interval, and which clip has which.

    Args:
        corpus: `Corpus`.

    Returns:
        Pair of the kind, `"clip"` or the corpus' `source_kind`, and int64
        `(clips,)`, the number of each clip's unit, from 0 on. A clip whose
        source is not known is one of its own. Of a single source nothing can
        be drawn: clips are.
    """
    sources = corpus.sources or [None] * len(corpus)
    names = [
        f"clip {row}" if source is None else f"source {source}"
        for row, source in enumerate(sources)
    ]
    _, found = np.unique(names, return_inverse=True)
    known = {source for source in sources if source is not None}
    if len(known) < 2:
        return "clip", np.arange(len(corpus))
    return corpus.source_kind, found.reshape(-1)


def draw_weights(unit, draws, seed=0):
    """Draws units with repetition, as many as there are.

    Args:
        unit: int64 `(clips,)`, the number of each clip's unit, from 0 on.
        draws: int.
        seed: int, seed of the draws.

    Yields:
        Int64 `(some draws, clips)`, how often each clip is in a draw.
    """
    rng = np.random.default_rng(seed)
    count = unit.max() + 1
    block = max(1, min(draws, BLOCK // max(count, len(unit))))
    for start in range(0, draws, block):
        size = min(block, draws - start)
        drawn = rng.multinomial(count, np.full(count, 1 / count), size)
        yield drawn[:, unit]


def _quantiles(found):
    """Returns the interval that draws of a figure lie in, as floats."""
    outside = (1 - LEVEL) / 2
    # Between two infinite ones, or one of them and another, is no number.
    found = np.clip(found, -HUGE, HUGE)
    ends = np.quantile(found, [outside, 1 - outside])
    infinite = np.copysign(np.inf, ends)
    low, high = np.where(np.abs(ends) > HUGE**0.5, infinite, ends)
    return float(low), float(high)


def bootstrap(metric, targets, scores, unit=None):
    """Computes the interval of a figure over units drawn with repetition.

    B. Efron, "Bootstrap methods: another look at the jackknife", 1979: the
    quantiles of the figure over the draws. A share of exactly 0 or 1 is the
    same in every draw; it has the interval of `wilson` over the units. Another
    figure that is the same in every draw, as mean average precision is where
    all is right, or a share that two speakers have alike, has none: it would
    be of no width, as if it was that of any other clip. A draw whose figure is
    infinite counts as that, so that an end may be infinite.

    Args:
        metric: `metrics.Metric`.
        targets: int64 array of 0 and 1 `(clips, classes)`.
        scores: float64 array `(clips, classes)`.
        unit: int64 `(clips,)`, as `units` returns it; `None` for clips.

    Returns:
        Pair of floats, or `None` if no draw has the figure, or it is the same
        in all of them, as in those of one unit alone, and no share of 0 or 1:
        these tell nothing of others.
    """
    unit = np.arange(len(targets)) if unit is None else unit
    if metric.weighted is not None:
        found = np.concatenate(
            [
                metric.weighted(targets, scores, weights)
                for weights in draw_weights(unit, DRAWS)
            ]
        )
        found = found[~np.isnan(found)]
    else:
        values = [
            metric.extended(targets[rows], scores[rows])
            for weights in draw_weights(unit, FEWER_DRAWS)
            for rows in (np.repeat(np.arange(len(unit)), w) for w in weights)
        ]
        found = [value for value in values if value is not None]
    if not len(found):
        return None
    return _interval(found, metric.is_share, int(unit.max()) + 1)


def _interval(found, is_share, count):
    """Returns the interval of a figure, `None` if draws of it do not differ.

    Args:
        found: floats, the figure in each draw.
        is_share: bool, whether it is a share.
        count: int, the units that were drawn from.
    """
    if not np.isclose(found, found[0], 0.0, SAME).all():
        return _quantiles(found)
    if is_share and found[0] in (0.0, 1.0):
        return wilson(float(found[0]), count)
    return None


def bootstrap_mean(values):
    """Computes the interval of a mean over units, such as speakers.

    Args:
        values: list of floats, the share of each unit; two at least.

    Returns:
        Pair of floats, the quantiles of the mean over units drawn with
        repetition. Where the share of each is exactly 0, or that of each 1,
        all draws are the same: it is the interval of `wilson` over the units.
        Where that of each is another, `None`: draws tell nothing of others.

    Raises:
        ValueError: if there are fewer than two units.
    """
    values = np.asarray(values, "float64")
    if len(values) < 2:
        raise ValueError(
            f"values must be of two units or more. Received: {len(values)}"
        )
    found = np.concatenate(
        [
            weights @ values / len(values)
            for weights in draw_weights(np.arange(len(values)), DRAWS)
        ]
    )
    return _interval(found, True, len(values))


def wilson(share, count):
    """Returns the 95 % interval of a share of independent clips.

    E. B. Wilson, "Probable inference, the law of succession, and statistical
    inference", 1927.

    Args:
        share: float, the share that was measured.
        count: int, the clips.

    Returns:
        Pair of floats.
    """
    z = DEVIATIONS
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    spread = math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    spread = z * spread / (1 + z**2 / count)
    return max(0.0, middle - spread), min(1.0, middle + spread)
