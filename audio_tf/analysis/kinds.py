"""Sorting of attention maps: diagonal, increasing, decreasing or sparse.

Section 3.5 of "Input-independent Attention Weights Are Expressive Enough"
(arXiv 2006.05174) finds that "all attention weights can be categorized into
these four cases", and shows one picture of each in its Figure 4. The paper
gives no criteria. The criteria of `sort_map` are our reading of the pictures.
"""

import dataclasses
import itertools

import numpy as np

KINDS = ("diagonal", "increasing", "decreasing", "sparse")
UNSORTED = "unsorted"
# In a map of fewer frames, the narrowest band covers almost half of it.
MIN_FRAMES = 8

# The attributes of `MapKind` from which the kind follows.
FIGURES = ("diagonal", "trend", "tilt", "stripes", "distance")

# The band along a diagonal is so wide, as a share of the frames, but at least
# 3 frames.
BAND = 0.05
# A diagonal may be shifted so far, as a share of the frames.
REACH = 0.25


@dataclasses.dataclass(frozen=True)
class MapKind:
    """The kind of one attention map, and the figures that it follows from.

    Attributes:
        kind: one of `KINDS`, or `UNSORTED`.
        frames: int, the number of real frames of the map.
        diagonal: float, the share of the weight in the best band along a
            diagonal, on a scale where 0 is the share that a uniform map has
            in that band and 1 is all of the weight.
        offset: int, by how many frames the weight in that band is later than
            the query.
        trend: float from -1 to 1, the correlation with time of the square
            roots of the columns' means. Without the root, a few stripes would
            outweigh all others; by ranks, the smallest weights would count as
            much as the largest.
        tilt: float, the mean position of the weight: -1 at the first frame,
            1 at the last, 0 for a uniform map.
        stripes: float, the share of the map's variance that the columns'
            means explain. It is 1 if all rows are alike.
        distance: float from 0 to 1, the mean over the rows of the total
            variation distance to a uniform row.
        uniform: bool, whether `distance` is so small that the map hardly does
            more than average.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> found = analysis.sort_map(np.eye(20, k=1) + np.eye(20, k=-19))
        >>> found.kind, found.offset, found.frames
        ('diagonal', 1, 20)
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
        """Returns how clear an example of its kind the map is, from 0 to 1."""
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
    """Sorts one attention map into the first kind whose condition holds.

    1. The map is diagonal if the weight in a band along the main or a shifted
       diagonal exceeds a uniform map's by `min_diagonal` or more.
    2. It is increasing or decreasing if the columns' means rise or fall with
       time (`min_trend`), by an amount that matters (`min_tilt`), and if the
       rows agree on them (`min_stripes`), so that the map has vertical
       stripes.
    3. It is sparse otherwise. The paper also calls a map sparse that starts
       from small random numbers, whose softmax is nearly uniform. `uniform`
       tells such maps from the others.

    Args:
        weights: floating array `(frames, frames)`, query by key, of weights
            of at least 0. Frames behind the last one that gives or gets any
            weight count as padding. Rows without weight are left out.
        causal: bool. If True, a query sees no later key, and each row is
            compared with the average over the keys that it can see.
        min_diagonal: float, the smallest `MapKind.diagonal` of a diagonal.
        min_trend: float, the smallest absolute `MapKind.trend` of stripes.
        min_tilt: float, the smallest absolute `MapKind.tilt` of stripes.
        min_stripes: float, the smallest `MapKind.stripes` of stripes.
        max_uniform: float, the largest `MapKind.distance` of a uniform map.

    Returns:
        `MapKind`. A map of fewer than 8 real frames is `UNSORTED`.

    Raises:
        ValueError: if the map is not square, or has negative or non-finite
            weights.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> analysis.sort_map(np.eye(20)).kind
        'diagonal'
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
    """Finds the diagonal band that most exceeds the one of a uniform map.

    Args:
        weights: floating array `(rows, frames)`, rows that sum to one.
        uniform: floating array `(rows, frames)`, the rows of a uniform map.
        queries: integers `(rows,)`, the frame of each row's query.

    Returns:
        Pair of `MapKind.diagonal` and `MapKind.offset`.
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
            # A rounding error is no improvement.
            if share > best[0] + 1e-9:
                best = (float(share), offset)
    share, centre = best
    # A thin diagonal lies in several bands, so the weight says where it is.
    later = np.arange(frames) - queries[:, None]
    held = np.where(np.abs(later - centre) <= half, weights, 0.0)
    mean = (held * later).sum() / max(held.sum(), 1e-12)
    return share, round(float(mean))


def columns(ratios, visible):
    """Computes the figures of a map that follow from its columns.

    Args:
        ratios: floating array `(rows, frames)`, each weight divided by a
            uniform map's.
        visible: array `(rows, frames)` of 1 where the query can see the key,
            and 0 elsewhere.

    Returns:
        Triple of `trend`, `tilt` and `stripes` of `MapKind`.
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
    # The variance of a uniform map is rounding errors alone.
    stripes = between / total if total > 1e-9 * visible.sum() else 0.0
    roots = np.sqrt(means)
    trend = 0.0
    if np.std(roots) > 1e-6:
        trend = np.corrcoef(roots, positions)[0, 1]
    return float(trend), float(tilt), float(stripes)


def sort_head(found):
    """Sorts a head by the vote of its maps.

    Args:
        found: list of `MapKind`, one for each clip.

    Returns:
        Dict of `kind`, the kind of most maps (of several, the first in
        `KINDS`); `agreement`, the share of maps of that kind; and over the
        maps of that kind `frames` of the first, the means of `FIGURES`, the
        most frequent `offset`, and `uniform`, whether most are uniform.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> maps = [np.eye(20), np.eye(30), np.full((20, 20), 0.05)]
        >>> found = [analysis.sort_map(each) for each in maps]
        >>> head = analysis.sort_head(found)
        >>> head["kind"], round(head["agreement"], 2)
        ('diagonal', 0.67)
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
