"""Attention maps sorted into diagonal, increasing, decreasing and sparse.

Section 3.5 of "Input-independent Attention Weights Are Expressive Enough"
(arXiv 2006.05174) finds that "all attention weights can be categorized into
these four cases", and shows one picture of each in its Figure 4. It has no
criteria: those of `sort_map` are a reading of the pictures.
"""

import dataclasses
import itertools

import numpy as np

KINDS = ("diagonal", "increasing", "decreasing", "sparse")
# Maps of fewer frames tell nothing: a band is half of them.
UNSORTED = "unsorted"
MIN_FRAMES = 8

# What a kind is told by.
FIGURES = ("diagonal", "trend", "tilt", "stripes", "distance")

# Width of the diagonal's band as a share of the frames, at least 3 frames.
BAND = 0.05
# How far a diagonal may be shifted, as a share of the frames.
REACH = 0.25


@dataclasses.dataclass(frozen=True)
class MapKind:
    """What `sort_map` makes of a map.

    Attributes:
        kind: one of `KINDS`, or `UNSORTED`.
        frames: int, the real frames of the map.
        diagonal: how much more of the weight lies in the best band along the
            diagonal than in a uniform map: 0 as there, 1 all of it.
        offset: int, how many frames the weight there is later than the query.
        trend: correlation with time, -1 to 1, of the square roots of the
            columns' means. Without the root a few stripes would outweigh the
            others; by ranks, the least of weights would count like them.
        tilt: mean position of the weight, -1 at the first frame, 1 at the
            last, 0 as in a uniform map.
        stripes: share of the map's variance that its columns' means explain:
            1 if all rows are alike.
        distance: mean total variation distance of the rows from uniform ones,
            0 to 1.
        uniform: bool, whether that distance is so small that the map does
            little but average.
    """

    kind: str
    frames: int
    diagonal: float = 0.0
    offset: int = 0
    trend: float = 0.0
    tilt: float = 0.0
    stripes: float = 0.0
    distance: float = 0.0
    uniform: bool = False

    @property
    def strength(self):
        """How good an example of its kind the map is; larger is better."""
        if self.kind == "diagonal":
            return self.diagonal
        if self.kind in ("increasing", "decreasing"):
            return abs(self.trend * self.tilt)
        return self.distance


def sort_map(
    weights,
    causal=False,
    min_diagonal=0.25,
    min_trend=0.4,
    min_tilt=0.1,
    min_stripes=0.1,
    max_uniform=0.1,
):
    """Sorts one attention map.

    The first that holds of

    1. diagonal: a band along the main or a shifted diagonal holds weight,
       beyond a uniform map's, of at least `min_diagonal`;
    2. increasing or decreasing: the columns' means rise or fall with time
       (`min_trend`), by an amount that matters (`min_tilt`), and the rows
       share them (`min_stripes`), so that the map shows vertical stripes;
    3. sparse: all else. The paper calls sparse what begins as small random
       numbers too, whose softmax is nearly uniform; such maps, and uniform
       ones, are told apart by `uniform`.

    Args:
        weights: floating array `(frames, frames)`, query by key, of
            non-negative weights. Frames behind the last that gives or gets
            any weight are taken for padding; rows without weight do not count.
        causal: bool. If True, a query can see no later key, and is compared
            with the average over those that it can see.
        min_diagonal: float, least share beyond a uniform map's.
        min_trend: float, least absolute correlation.
        min_tilt: float, least absolute shift of the mean position.
        min_stripes: float, least share of the variance.
        max_uniform: float, largest distance of a map called uniform.

    Returns:
        `MapKind`. A map of fewer than 8 real frames is `UNSORTED`.

    Raises:
        ValueError: if the map is not square, or has negative or non-finite
            weights.
    """
    weights = np.asarray(weights, "float64")
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(
            f"A map must be `(frames, frames)`. Received: shape={weights.shape}"
        )
    if not np.all(weights >= 0.0) or not np.all(np.isfinite(weights)):
        raise ValueError(
            "A map must be of finite weights of at least 0. Received: "
            f"{weights.min()} to {weights.max()}"
        )
    real = np.flatnonzero(weights.sum(axis=1) > 0.0)
    used = np.flatnonzero(weights.sum(axis=1) + weights.sum(axis=0))
    frames = int(used[-1]) + 1 if len(used) else 0
    if frames < MIN_FRAMES:
        return MapKind(UNSORTED, frames)
    weights = weights[real, :frames]
    weights = weights / weights.sum(axis=1, keepdims=True)
    visible = np.ones_like(weights)
    if causal:
        visible = np.tril(np.ones((frames, frames)))[real]
    uniform = visible / visible.sum(axis=1, keepdims=True)

    diagonal, offset = best_diagonal(weights, uniform, real)
    trend, tilt, stripes = columns(
        weights / uniform.max(axis=1)[:, None], visible
    )
    distance = 0.5 * float(np.abs(weights - uniform).sum(axis=1).mean())
    kind = "sparse"
    if diagonal >= min_diagonal:
        kind = "diagonal"
    elif (
        trend * np.sign(tilt) >= min_trend
        and abs(tilt) >= min_tilt
        and stripes >= min_stripes
    ):
        kind = "increasing" if tilt > 0.0 else "decreasing"
    return MapKind(
        kind,
        frames,
        diagonal,
        offset,
        trend,
        tilt,
        stripes,
        distance,
        uniform=distance <= max_uniform,
    )


def best_diagonal(weights, uniform, queries):
    """The band along a diagonal that holds most beyond a uniform map's share.

    Args:
        weights: floating array `(rows, frames)`, rows that sum to one.
        uniform: the same of a uniform map.
        queries: integers `(rows,)`, the frame that each row is of.

    Returns:
        Pair of that share, 1 if it is all that it can be, and the offset of
        the weight in the band, in frames: its mean.
    """
    frames = weights.shape[1]
    half = max(1, round(BAND * frames / 2))
    reach = max(1, int(REACH * frames))
    best = (0.0, 0)
    sums, uniform_sums = (
        np.pad(np.cumsum(x, axis=1), ((0, 0), (1, 0)))
        for x in (weights, uniform)
    )
    for offset in sorted(range(-reach, reach + 1), key=abs):
        centres = queries + offset
        rows = np.flatnonzero((centres >= 0) & (centres < frames))
        if not len(rows):
            continue
        begin = np.maximum(centres[rows] - half, 0)
        end = np.minimum(centres[rows] + half + 1, frames)
        held, expected = (
            np.mean(x[rows, end] - x[rows, begin]) for x in (sums, uniform_sums)
        )
        if expected < 1.0:
            share = (held - expected) / (1.0 - expected)
            # Not by a rounding error.
            if share > best[0] + 1e-9:
                best = (float(share), offset)
    share, centre = best
    # A thin diagonal is in several bands; where in this one its weight is.
    later = np.arange(frames) - queries[:, None]
    held = np.where(np.abs(later - centre) <= half, weights, 0.0)
    mean = (held * later).sum() / max(held.sum(), 1e-12)
    return share, round(float(mean))


def columns(ratios, visible):
    """Trend, tilt and stripes, as `MapKind` has them.

    Args:
        ratios: floating array `(rows, frames)`, weights relative to those of
            a uniform map.
        visible: 0 or 1 in the same shape, 0 for what no weight can be at.
    """
    frames = ratios.shape[1]
    counts = visible.sum(axis=0)
    seen = counts > 0
    means = (ratios * visible).sum(axis=0)[seen] / counts[seen]
    positions = np.linspace(-1.0, 1.0, frames)[seen]
    tilt = np.sum(means * positions) / max(np.sum(means), 1e-12)
    centre = np.sum(ratios * visible) / visible.sum()
    total = np.sum(visible * np.square(ratios - centre))
    between = np.sum(counts[seen] * np.square(means - centre))
    # A uniform map has nothing but rounding errors to explain.
    stripes = between / total if total > 1e-9 * visible.sum() else 0.0
    roots = np.sqrt(means)
    trend = 0.0
    if np.std(roots) > 1e-6:
        trend = np.corrcoef(roots, positions)[0, 1]
    return float(trend), float(tilt), float(stripes)


def sort_head(found):
    """What a head is, by the vote of its maps.

    Args:
        found: list of `MapKind`, one of each clip.

    Returns:
        Dict: `kind`, that of most maps, of equals the first in `KINDS`;
        `agreement`, the share of maps of that kind; and the means over these
        of the other figures, but the `offset` that most have. `uniform` is
        True if most are.
    """
    votes = [sum(one.kind == kind for one in found) for kind in KINDS]
    winner = KINDS[int(np.argmax(votes))] if any(votes) else UNSORTED
    chosen = [one for one in found if one.kind == winner]
    offsets = [one.offset for one in chosen]
    means = {
        name: float(np.mean([getattr(one, name) for one in chosen]))
        for name in FIGURES
    }
    return {
        "kind": winner,
        "agreement": len(chosen) / len(found),
        "frames": chosen[0].frames,
        **means,
        "offset": max(
            (len(list(of)), -abs(value), value)
            for value, of in itertools.groupby(sorted(offsets))
        )[2],
        "uniform": 2 * sum(one.uniform for one in chosen) > len(chosen),
    }
