"""Attention maps as points in a plane: PCA, then t-SNE."""

import dataclasses
import hashlib

import numpy as np

# Fewer have no neighbours to speak of.
MIN_MAPS = 4


@dataclasses.dataclass(frozen=True)
class Projection:
    """Maps in a plane, and how they came there.

    Attributes:
        points: float array `(maps, 2)`.
        distinct: int, how many of the maps differ.
        components: int, what PCA kept.
        wanted: int, what it was asked to keep.
        explained: floats `(components,)`, the share of the variance of each.
        perplexity: float, that of t-SNE.
    """

    points: np.ndarray
    distinct: int
    components: int
    wanted: int
    explained: np.ndarray
    perplexity: float


def project(maps, components=900, perplexity=30.0, seed=0):
    """Projects maps as section 4.3 of arXiv 2006.05174 does.

    Each map is one long row, `500 x 500` to 250,000 numbers; PCA leaves 900,
    t-SNE two. Centred maps have no more components than one less than there
    are maps, so that 900 take 901 maps: 76 clips of twelve heads. Equal maps
    are one to both, and one point: t-SNE would spread them, and those of a
    Random Synthesizer are equal for all clips.

    Args:
        maps: floating array `(maps, ...)`, or a list of arrays of one shape.
        components: int, what PCA keeps, if there is as much.
        perplexity: float, about how many neighbours of a map count; at most
            a third of the other maps. The paper names none: scikit-learn's.
        seed: int, of t-SNE.

    Returns:
        `Projection`.

    Raises:
        ValueError: if fewer than 4 of the maps differ.
    """
    from sklearn.decomposition import KernelPCA
    from sklearn.manifold import TSNE

    places = {}
    inverse = [
        places.setdefault(hashlib.sha1(one.tobytes()).digest(), len(places))
        for one in maps
    ]
    _, first = np.unique(inverse, return_index=True)
    if len(first) < MIN_MAPS:
        raise ValueError(
            f"A projection takes at least {MIN_MAPS} different maps. "
            f"Received: {len(first)}"
        )
    rows = np.stack([np.ravel(maps[index]) for index in first])
    rows = rows.astype("float32", copy=False)
    possible = min(components, len(rows) - 1, rows.shape[1])
    perplexity = min(perplexity, (len(rows) - 1) / 3)
    # By the maps' products with each other, since they are few and long: as
    # exact as by their covariance, and in a twentieth of the time.
    rows -= rows.mean(axis=0)
    products = (rows @ rows.T).astype("float64")
    pca = KernelPCA(possible, kernel="precomputed", eigen_solver="dense")
    reduced = pca.fit_transform(products)
    points = TSNE(perplexity=perplexity, random_state=seed).fit_transform(
        reduced
    )
    return Projection(
        points[inverse],
        len(rows),
        possible,
        components,
        pca.eigenvalues_ / np.trace(products),
        perplexity,
    )
