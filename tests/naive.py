"""Obviously right, slow references, in numpy float64 and loops."""

import inspect

import numpy as np


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def dense(layer, x):
    """What a Keras Dense layer computes, without its activation."""
    weights = [np.asarray(w, np.float64) for w in layer.get_weights()]
    y = x @ weights[0]
    return y + weights[1] if len(weights) > 1 else y


def layer_norm(x, epsilon):
    """Normalised over the last axis, with fresh gamma 1 and beta 0."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


def full_attention(layer, x, mask=None):
    """Full attention, one output row and one head at a time.

    Returns:
        Output `(B, T, F)` and weights `(B, H, T, T)`.
    """
    batch, length, _ = x.shape
    query, key, value = (
        dense(part, x)
        for part in (layer.query_dense, layer.key_dense, layer.value_dense)
    )
    d = layer.key_dim
    weights = np.zeros((batch, layer.num_heads, length, length))
    mixed = np.zeros_like(value)
    for b in range(batch):
        for h in range(layer.num_heads):
            part = slice(h * d, (h + 1) * d)
            for i in range(length):
                seen = [
                    j
                    for j in range(length)
                    if (mask is None or mask[b, j])
                    and not (layer.causal and j > i)
                ]
                if not seen:
                    continue
                scores = [
                    query[b, i, part] @ key[b, j, part] / np.sqrt(d)
                    for j in seen
                ]
                weights[b, h, i, seen] = softmax(np.array(scores))
                for j in seen:
                    mixed[b, i, part] += weights[b, h, i, j] * value[b, j, part]
    return dense(layer.output_dense, mixed), weights


def missing_from_config(layer):
    """Constructor arguments along the class chain that the config lacks."""
    config, missing = layer.get_config(), []
    for cls in type(layer).__mro__:
        if not cls.__module__.startswith("audio_tf"):
            continue
        if "__init__" not in vars(cls):
            continue
        for name, parameter in inspect.signature(cls).parameters.items():
            if parameter.kind is not parameter.VAR_KEYWORD:
                if name not in config:
                    missing.append(name)
    return missing
