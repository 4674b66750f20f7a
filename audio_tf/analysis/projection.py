"""Projection of attention maps to points in a plane: PCA, then t-SNE."""

import dataclasses
import hashlib

import numpy as np

# Among fewer maps, a map has too few neighbours for t-SNE.
MIN_MAPS = 4


@dataclasses.dataclass(frozen=True)
class Projection:
    """The points in a plane that maps were projected to, and how.

    Attributes:
        points: float array `(maps, 2)`.
        distinct: int, the number of different maps.
        components: int, the number of components that PCA kept.
        wanted: int, the number of components that PCA was asked for.
        explained: float array `(components,)`, the share of the variance that
            each component explains.
        perplexity: float, the perplexity of t-SNE.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> maps = np.random.default_rng(0).random((7, 5, 5))
        >>> projection = analysis.project(maps, components=4)
        >>> projection.distinct, projection.components, projection.wanted
        (7, 4, 4)
    """

    points: np.ndarray
    distinct: int
    components: int
    wanted: int
    explained: np.ndarray
    perplexity: float


def project(maps, components=900, perplexity=30.0, seed=0):
    """Projects maps as section 4.3 of arXiv 2006.05174 does.

    Each map is one long row, 250,000 numbers for 500 frames. PCA leaves 900 of
    them and t-SNE two. Centred maps have at most one component less than there
    are maps, so that 900 components take 901 maps: 76 clips of twelve heads.
    Equal maps become one point. t-SNE would spread them, and the maps of a
    random Synthesizer are equal for all clips.

    Args:
        maps: floating array `(maps, ...)`, or a list of arrays of one shape.
        components: int, the number of components that PCA keeps; fewer if the
            maps have fewer.
        perplexity: float, about how many neighbours of a map count. It is
            lowered to a third of the other maps. The paper gives none; the
            default is scikit-learn's.
        seed: int, the seed of t-SNE.

    Returns:
        `Projection`.

    Raises:
        ValueError: if fewer than 4 of the maps differ.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> maps = np.random.default_rng(0).random((7, 5, 5))
        >>> analysis.project(maps, components=4).points.shape
        (7, 2)
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
    # The maps are few and long. Their products with each other give the
    # components as exactly as their covariance, in a twentieth of the time.
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
