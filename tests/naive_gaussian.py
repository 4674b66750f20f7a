"""Gaussian attentions in numpy float64, one entry at a time."""

import numpy as np
from naive import softmax


def values_of(layer):
    """Weights in float64 by their path below the layer."""
    return {
        weight.path.split("/", 1)[1]: np.asarray(weight, np.float64)
        for weight in layer.weights
    }


def paper(layer, values, head, at, x, members):
    offset = values["mean_offset"][head, at]
    xi = values["scaled_variance"][head, at]
    psi = np.mean(members) + offset
    variance = np.mean(np.square(members)) - np.mean(members) ** 2
    y = (x - psi) / np.sqrt(variance + layer.epsilon)
    return np.exp(-(y**2) / (2 * xi))


def package(layer, values, head, at, x, members):
    def product(x):
        # Of one frame alone the unbiased variance is undefined, and 0 here.
        spread = np.sum((members - np.mean(members)) ** 2)
        variance = spread / max(len(members) - 1, 1) + layer.epsilon
        total = 1.0
        for index in range(layer.num_gaussians):
            offset = values["mean_offset"][head, index]
            c2 = max(values["gaussian_width"][head, index] ** 2, layer.epsilon)
            y = (x - np.mean(members) - offset) / np.sqrt(variance)
            total *= np.exp(-(y**2) / (2 * c2)) / np.sqrt(2 * np.pi * c2)
        return total

    return product(x) / max(product(members).sum(), layer.epsilon)


def skewed(layer, values, head, at, x, members, index=0):
    theta = values[f"mean_shift_{index}"][head, at]
    psi = np.mean(members) * (1 + np.tanh(theta))
    side = "left" if x < psi else "right"
    width = values[f"{side}_width_{index}"][head, at]
    return np.exp(
        -((x - psi) ** 2) / (np.var(members) + layer.epsilon) / (2 * width)
    )


def bi_skewed(*args):
    return (skewed(*args) + skewed(*args, index=1)) / 2


def gaussian_map(entry, layer, values, x, mask=None):
    """`entry` of each feature of each frame, given who shares its mean."""
    weights = np.zeros(x.shape)
    batch, length, dim = x.shape
    for b, t, f in np.ndindex(*x.shape):
        if mask is not None and not mask[b, t]:
            continue
        if layer.head_axis == 1:
            part, at = length // layer.num_heads, f
            head = t // part
            frames = range(head * part, (head + 1) * part)
            features = range(dim)
        else:
            part = dim // layer.num_heads
            head, at = f // part, f % part
            frames = range(length)
            features = range(head * part, (head + 1) * part)
        if layer.axis == 1:
            real = [s for s in frames if mask is None or mask[b, s]]
            members = x[b, real, f]
        else:
            members = x[b, t, features]
        weights[b, t, f] = entry(layer, values, head, at, x[b, t, f], members)
    return weights


def gaussian_attention(entry, layer, values, x, mask=None):
    """Output and Gaussian map, each `(B, T, F)`."""
    x = np.asarray(x, np.float64)
    weights = gaussian_map(entry, layer, values, x, mask)
    if mask is not None:
        x = np.where(mask[..., None], x, 0.0)
    return x * weights, weights


def grouped_query(entry, layer, values, x, mask=None):
    """Output `(B, T, E)` and Gaussian map `(B, T, F)`."""

    def dense(name, x):
        y = x @ values[f"{name}/kernel"]
        bias = values.get(f"{name}/bias")
        return y if bias is None else y + bias

    adapted, weights = gaussian_attention(entry, layer, values, x, mask)
    x = dense("input", adapted)
    batch, length, dim = x.shape
    query, key, value = (dense(n, x) for n in ("query", "key", "value"))
    groups = layer.num_key_value_heads
    size = dim // layer.query_heads
    scale = size if layer.scale_twice else np.sqrt(size)
    mixed = np.zeros((batch, length, groups * size))
    outputs = np.zeros((batch, length, dim))
    for b, i in np.ndindex(batch, length):
        if mask is not None and not mask[b, i]:
            continue
        seen = [
            j
            for j in range(length)
            if (mask is None or mask[b, j]) and not (layer.causal and j > i)
        ]
        for g in range(groups):
            group = layer.query_heads // groups
            heads = range(g * group, (g + 1) * group)
            own = slice(g * size, (g + 1) * size)
            scores = [
                sum(
                    query[b, i, q * size : (q + 1) * size] @ key[b, j, own]
                    for q in heads
                )
                / scale
                for j in seen
            ]
            for j, weight in zip(seen, softmax(np.array(scores)), strict=True):
                mixed[b, i, own] += weight * value[b, j, own]
        row = mixed[b, i] - mixed[b, i].mean()
        row = row / np.sqrt(np.mean(row**2) + 1e-5)
        row = row * values["output_norm/gamma"] + values["output_norm/beta"]
        outputs[b, i] = dense("output", row)
    return outputs, weights


ENTRIES = {"paper": paper, "package": package}


def adaptive(layer, x, mask=None):
    return gaussian_attention(
        ENTRIES[layer.variant], layer, values_of(layer), x, mask
    )


def grouped_query_adaptive(layer, x, mask=None):
    return grouped_query(
        ENTRIES[layer.variant], layer, values_of(layer), x, mask
    )


ATTENTIONS = {
    "gaussian_adaptive": adaptive,
    "grouped_query_gaussian_adaptive": grouped_query_adaptive,
    "skewed_gaussian": lambda layer, x, mask=None: gaussian_attention(
        skewed, layer, values_of(layer), x, mask
    ),
    "bi_skewed_gaussian": lambda layer, x, mask=None: gaussian_attention(
        bi_skewed, layer, values_of(layer), x, mask
    ),
}
