"""Obviously right, slow references, in numpy float64 and loops."""

import functools
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


def attend(layer, x, mask, head_scores, value_heads=None):
    """Attention one clip, one head and one query at a time.

    Args:
        layer: the layer whose value and output projections are used.
        x: `(B, T, F)`.
        mask: boolean `(B, T)`, True where a frame is real, or `None`.
        head_scores: `(b, h, real) -> row`, `real` being the real frames of
            clip `b`, and `row(i, seen) -> {key: score}`, `seen` being those
            that query `i` may see. Keys left out are not attended to.
        value_heads: as `mixed` takes it.

    Returns:
        Output `(B, T, F)` and weights `(B, H, T, T)`.
    """
    batch, length, _ = x.shape
    weights = np.zeros((batch, layer.num_heads, length, length))
    for b in range(batch):
        real = [j for j in range(length) if mask is None or mask[b, j]]
        for h in range(layer.num_heads):
            row = head_scores(b, h, real)
            for i in range(length):
                seen = [j for j in real if not (layer.causal and j > i)]
                scores = row(i, seen)
                if scores:
                    keys = list(scores)
                    weights[b, h, i, keys] = softmax(
                        np.array([scores[j] for j in keys])
                    )
    return mixed(layer, x, weights, value_heads), weights


def mixed(layer, x, weights, value_heads=None):
    """The output that `(B, H, T, T)` weights give, with `layer`'s values.

    `value_heads` is how many heads the values have, if fewer than `H`.
    """
    batch, num_heads, length, _ = weights.shape
    d = layer.key_dim
    value = dense(layer.value_dense, x)
    shared = num_heads // (value_heads or num_heads)
    y = np.zeros((batch, length, num_heads * d))
    for b in range(batch):
        for h in range(num_heads):
            theirs = head(value[b], h // shared, d)
            y[b, :, h * d : (h + 1) * d] = weights[b, h] @ theirs
    return dense(layer.output_dense, y)


def head(x, h, size):
    """Head `h` of the last axis cut into heads of that size."""
    return x[..., h * size : (h + 1) * size]


def query_and_key(layer, x):
    query = dense(layer.query_dense, x)
    if layer.shared_qk:
        return query, query
    return query, dense(layer.key_dense, x)


def dot_products(q, k, seen):
    """Scores of a query `(D,)` with the keys `(T, D)` that it may see."""
    return dict(zip(seen, k[seen] @ q / np.sqrt(len(q)), strict=True))


def full_attention(layer, x, mask=None):
    query, key = query_and_key(layer, x)
    d = layer.key_dim

    def head_scores(b, h, real):
        q, k = head(query[b], h, d), head(key[b], h, d)
        return lambda i, seen: dot_products(q[i], k, seen)

    return attend(layer, x, mask, head_scores)


def shared_qk_attention(layer, x, mask=None):
    query = dense(layer.query_dense, x)
    d = layer.key_dim

    def head_scores(b, h, real):
        q = head(query[b], h, d)
        k = q
        if layer.normalize_keys:
            k = np.array([v / np.sqrt(np.mean(v**2) + 1e-6) for v in q])

        def row(i, seen):
            scores = dot_products(q[i], k, seen)
            if layer.mask_self and i in scores:
                scores[i] = -1e5
            return scores

        return row

    return attend(layer, x, mask, head_scores)


def grouped_query_attention(layer, x, mask=None):
    query, key = query_and_key(layer, x)
    d, shared = layer.key_dim, layer.num_heads // layer.num_key_value_heads

    def head_scores(b, h, real):
        q, k = head(query[b], h, d), head(key[b], h // shared, d)
        return lambda i, seen: dot_products(q[i], k, seen)

    return attend(layer, x, mask, head_scores, layer.num_key_value_heads)


def chosen_scores(layer, q, k, i, seen, chosen):
    """Scores of the chosen keys; read literally, 0 for all others."""
    scores = dot_products(q[i], k, [j for j in seen if j in chosen])
    if layer.literal_mask:
        scores.update({j: 0.0 for j in seen if j not in chosen})
    return scores


def sparse_attention(layer, x, mask, attends):
    """`attends(h, i, j)` says whether the pattern of a head has a pair."""
    query, key = query_and_key(layer, x)
    d = layer.key_dim

    def head_scores(b, h, real):
        q, k = head(query[b], h, d), head(key[b], h, d)

        def row(i, seen):
            chosen = [j for j in seen if attends(h, i, j)]
            return chosen_scores(layer, q, k, i, seen, chosen)

        return row

    return attend(layer, x, mask, head_scores)


def strided_sparse_attention(layer, x, mask=None):
    stride = layer.stride
    window = stride if layer.window is None else layer.window

    def attends(h, i, j):
        if h < layer.num_heads - layer.num_heads // 2:
            return abs(i - j) <= window
        return (i - j) % stride == 0

    return sparse_attention(layer, x, mask, attends)


def fixed_sparse_attention(layer, x, mask=None):
    stride = layer.stride

    def attends(h, i, j):
        if h < layer.num_heads - layer.num_heads // 2:
            return i // stride == j // stride
        return j % stride >= stride - layer.num_columns

    return sparse_attention(layer, x, mask, attends)


# What each hashing kind makes of a query and of a key `v`, M being the
# largest norm of all real ones.


def sign_alsh(layer, v, M):
    v = layer.norm_bound * shrunk(v, M)
    powers = range(1, layer.num_powers + 1)
    tail = [0.5 - np.linalg.norm(v) ** (2**power) for power in powers]
    return [*v, *np.zeros(layer.num_powers)], [*v, *tail]


def xbox(layer, v, M):
    return [*v, 0.0], [*v, missing_length(v, M)]


def xbox_qnf(layer, v, M):
    norm = np.linalg.norm(v)
    scale = M / norm if norm > 0 else 1.0
    return [*(scale * v), 0.0], [*v, missing_length(v, M)]


def simple_lsh(layer, v, M):
    v = shrunk(v, M)
    both = [*v, missing_length(v, 1.0)]
    return both, both


def simple_alsh(layer, v, M):
    v = shrunk(v, M)
    tail = missing_length(v, 1.0)
    return [*v, 0.0, tail], [*v, tail, 0.0]


def shrunk(v, M):
    return v / M if M > 0 else v


def missing_length(v, M):
    """What one more coordinate must be for `v` to have norm `M`."""
    return np.sqrt(max(0.0, M**2 - np.linalg.norm(v) ** 2))


def hashes(layer, x, mask, transform):
    """Projections `(B, H, T)` on the hash vectors, of queries and of keys."""
    batch, length, _ = x.shape
    query, key = query_and_key(layer, x)
    d = layer.key_dim
    vectors = np.asarray(layer.hash_vectors, np.float64)
    found = np.zeros((2, batch, layer.num_heads, length))
    for b in range(batch):
        real = [j for j in range(length) if mask is None or mask[b, j]]
        for h in range(layer.num_heads):
            for side, all_heads in enumerate((query, key)):
                v = head(all_heads[b], h, d)
                M = max((np.linalg.norm(v[j]) for j in real), default=0.0)
                for i in range(length):
                    transformed = transform(layer, v[i], M)[side]
                    found[side, b, h, i] = vectors[h] @ transformed
    return found


def hashed_attention(layer, x, mask=None, *, transform):
    query, key = query_and_key(layer, x)
    query_hash, key_hash = hashes(layer, x, mask, transform)
    d = layer.key_dim

    def head_scores(b, h, real):
        q, k = head(query[b], h, d), head(key[b], h, d)
        key_at = key_hash[b, h]
        ranked = {
            sign: sorted(real, key=lambda j: (sign * key_at[j], j))
            for sign in (-1, 1)
        }

        def row(i, seen):
            positive = query_hash[b, h, i] >= 0
            chosen = ranked[-1 if positive else 1][: layer.num_candidates]
            if layer.require_match:
                chosen = [j for j in chosen if (key_at[j] >= 0) == positive]
            return chosen_scores(layer, q, k, i, seen, chosen)

        return row

    return attend(layer, x, mask, head_scores)


def dense_synthesizer_attention(layer, x, mask=None):
    hidden = np.maximum(dense(layer.hidden_dense, x), 0.0)
    kernel = np.asarray(layer.length_kernel, np.float64)
    bias = np.zeros(kernel.shape[::2])
    if layer.use_bias:
        bias = np.asarray(layer.length_bias, np.float64)

    def head_scores(b, h, real):
        g = h if layer.per_head else 0
        units = head(hidden[b], g, layer.intermediate_dim)
        return lambda i, seen: {
            j: units[i] @ kernel[g, :, j] + bias[g, j] for j in seen
        }

    return attend(layer, x, mask, head_scores)


# Heads whose pattern counts from the end of the clip.
ANCHORED_AT_END = {None: (), "crafted": (6,), "raganato": (4, 6)}


def random_synthesizer_attention(layer, x, mask=None):
    """Undefined for queries after the last real frame."""
    table = np.asarray(layer.table, np.float64)

    def head_scores(b, h, real):
        end = not layer.causal and h in ANCHORED_AT_END[layer.patterns]
        length = 1 + max(real, default=-1)

        def row(i, seen):
            if not end:
                return {j: table[h, i, j] for j in seen}
            if i >= length:
                return {}
            shift = layer.max_length - length
            return {j: table[h, i + shift, j + shift] for j in seen}

        return row

    return attend(layer, x, mask, head_scores)


def local_dense_synthesizer_attention(layer, x, mask=None):
    batch, length, _ = x.shape
    d, c = layer.key_dim, layer.context_size
    hidden = np.maximum(dense(layer.hidden_dense, x), 0.0)
    kernel = np.asarray(layer.context_kernel, np.float64)
    bias = np.zeros((layer.num_heads, c))
    if layer.use_bias:
        bias = np.asarray(layer.context_bias, np.float64)
    left = c - 1 if layer.causal else c // 2
    weights = np.zeros((batch, layer.num_heads, length, length))
    for b in range(batch):
        real = [j for j in range(length) if mask is None or mask[b, j]]
        for h in range(layer.num_heads):
            for t in range(length):
                logits = head(hidden[b, t], h, d) @ kernel[h] + bias[h]
                inside = [j for j in range(c) if t + j - left in real]
                counted = inside if layer.edges == "renorm" else range(c)
                if not inside:
                    continue
                found = softmax(logits[list(counted)])
                for j, weight in zip(counted, found, strict=True):
                    if j in inside:
                        weights[b, h, t, t + j - left] = weight
    return mixed(layer, x, weights), weights


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
                # A functional model's graph is made by its subclass.
                if name not in {*config, "inputs", "outputs"}:
                    missing.append(name)
    return missing


def distance_bucket(lag, num_buckets, max_distance):
    """T5's buckets of a signed distance, one at a time."""
    half = num_buckets // 2
    offset, lag = (half if lag > 0 else 0), abs(lag)
    if lag < half // 2:
        return offset + lag
    far = np.log(lag / (half // 2)) / np.log(max_distance / (half // 2))
    # Just above what rounding makes of a whole number.
    ranged = int(half // 2 + far * (half - half // 2) + 1e-6)
    return offset + min(ranged, half - 1)


def gated_relative_attention(layer, x, mask=None):
    """Section 3.1 of arXiv 2110.13900, gate by gate and pair by pair."""
    query, key = query_and_key(layer, x)
    d, part = layer.key_dim, x.shape[-1] // layer.num_heads
    table = np.asarray(layer.positions.table, np.float64)
    scale = np.asarray(layer.gate_scale, np.float64)

    def head_scores(b, h, real):
        q, k = head(query[b], h, d), head(key[b], h, d)

        def row(i, seen):
            units = dense(layer.gate_dense, head(x[b, i], h, part))
            one, other = 1.0 / (1.0 + np.exp(-units.reshape(2, 4).sum(axis=1)))
            gate = one * (other * scale[h, 0, 0] - 1.0) + 2.0
            scores = dot_products(q[i], k, seen)
            for j in seen:
                bucket = distance_bucket(
                    j - i, layer.num_buckets, layer.max_distance
                )
                scores[j] += gate * table[bucket, h]
            return scores

        return row

    return attend(layer, x, mask, head_scores)


HASHES = {
    "sign_alsh": sign_alsh,
    "xbox": xbox,
    "xbox_qnf": xbox_qnf,
    "simple_lsh": simple_lsh,
    "simple_alsh": simple_alsh,
}

ATTENTIONS = {
    "full": full_attention,
    "shared_qk": shared_qk_attention,
    "grouped_query": grouped_query_attention,
    "gated_relative": gated_relative_attention,
    "sparse_strided": strided_sparse_attention,
    "sparse_fixed": fixed_sparse_attention,
    **{
        name: functools.partial(hashed_attention, transform=transform)
        for name, transform in HASHES.items()
    },
    "dense_synthesizer": dense_synthesizer_attention,
    "dense_synthesizer_per_head": dense_synthesizer_attention,
    "random_synthesizer": random_synthesizer_attention,
    "crafted_synthesizer": random_synthesizer_attention,
    "raganato_synthesizer": random_synthesizer_attention,
    "local_dense_synthesizer": local_dense_synthesizer_attention,
}
