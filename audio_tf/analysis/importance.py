"""The Importance Factor: which layers and features a decoder attends to.

Section 3.4 of "Gaussian Adaptive Attention is All You Need" (arXiv
2401.11143), for a `GaussianAdaptiveDecoder` with a Gaussian module.
"""

import numpy as np

from audio_tf.models.targets import check_inputs
from audio_tf.ops.checks import check_sizes


def mean_map(decoder, embeddings, batch_size=64):
    """Averages the Gaussian attention maps of a decoder over clips.

    Args:
        decoder: `GaussianAdaptiveDecoder`.
        embeddings: floating array or nested list `(clips, layers, dim)`, of
            validation.
        batch_size: int, clips that are computed at a time.

    Returns:
        Float64 array `(layers, dim)`.

    Raises:
        ValueError: if the module has no such map, there is no clip, or one
            has NaN or infinity in it.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis, models
        >>> decoder = models.GaussianAdaptiveDecoder(8, 16, num_classes=4)
        >>> embeddings = np.random.default_rng(0).normal(size=(3, 8, 16))
        >>> analysis.mean_map(decoder, embeddings).shape
        (8, 16)
    """
    check_sizes(batch_size=batch_size)
    embeddings = np.asarray(embeddings)
    if not len(embeddings):
        raise ValueError("A mean needs clips. Received: none")
    check_inputs(embeddings, decoder.axes_of_inputs)
    total = np.zeros(embeddings.shape[1:])
    for start in range(0, len(embeddings), batch_size):
        part = embeddings[start : start + batch_size]
        total += decoder.gaussian_map(part).sum(axis=0, dtype="float64")
    return total / len(embeddings)


def scaled(weights):
    """Scales a map to [0, 1] by its smallest and its largest entry.

    Args:
        weights: floating array.

    Returns:
        Array of the same shape; zeros where all entries are equal, none of
        which is more important.
    """
    low, high = weights.min(), weights.max()
    if high == low:
        return np.zeros_like(weights)
    return (weights - low) / (high - low)


def importance_factor(decoder, embeddings, batch_size=64):
    """Computes the Importance Factor of each feature of each layer.

    It is the mean over clips of the Gaussian attention map, scaled to [0, 1].

    Args:
        decoder, embeddings, batch_size: as `mean_map` takes them.

    Returns:
        Float64 array `(layers, dim)`.

    Raises:
        ValueError: as `mean_map`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis, models
        >>> decoder = models.GaussianAdaptiveDecoder(8, 16, num_classes=4)
        >>> embeddings = np.random.default_rng(0).normal(size=(3, 8, 16))
        >>> importance = analysis.importance_factor(decoder, embeddings)
        >>> importance.shape, float(importance.min()), float(importance.max())
        ((8, 16), 0.0, 1.0)
    """
    return scaled(mean_map(decoder, embeddings, batch_size))


def contributions(weights):
    """Computes the share of each layer in all attention weights, in percent.

    Args:
        weights: floating array `(layers, dim)`, not negative, what `mean_map`
            returns.

    Returns:
        Float64 array `(layers,)` that sums to 100.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> analysis.contributions(np.array([[1.0, 2.0], [0.0, 1.0]])).tolist()
        [75.0, 25.0]
    """
    by_layer = np.asarray(weights, "float64").sum(axis=1)
    return 100.0 * by_layer / by_layer.sum()


def select_layers(importance, count=1):
    """Selects the layers of the highest and of the lowest Importance Factor.

    Args:
        importance: floating array `(layers, dim)`.
        count: int, how many of each.

    Returns:
        Dict of `high` and `low`, ascending lists of int, places of layers in
        the array by the mean over their features; of equal ones the first are
        the higher.

    Raises:
        ValueError: if there are not twice as many layers.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> importance = np.array([[0.5, 0.5], [1.0, 0.8], [0.0, 0.1]])
        >>> analysis.select_layers(importance)
        {'high': [1], 'low': [2]}
    """
    check_sizes(count=count)
    if 2 * count > len(importance):
        raise ValueError(
            f"{count} high and {count} low layers must be different ones. "
            f"Received: {len(importance)} layers"
        )
    order = np.argsort(-importance.mean(axis=1), kind="stable")
    return {
        "high": sorted(map(int, order[:count])),
        "low": sorted(map(int, order[-count:])),
    }
