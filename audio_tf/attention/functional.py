"""Attention as pure functions of tensors."""

from keras import ops

from audio_tf.ops import masks, statistics

# Added to a score, it leaves nothing of it; and it is finite in float32, so
# that a row of nothing else is no NaN.
EXCLUDED = -3e38


def split_heads(x, num_heads):
    """Cuts features into heads: `(B, T, H * D)` to `(B, H, T, D)`."""
    x = ops.reshape(
        x, (-1, ops.shape(x)[1], num_heads, x.shape[-1] // num_heads)
    )
    return ops.transpose(x, (0, 2, 1, 3))  # (B, H, T, D)


def merge_heads(x):
    """Joins heads to features: `(B, H, T, D)` to `(B, T, H * D)`."""
    num_heads, head_dim = x.shape[1], x.shape[3]
    x = ops.transpose(x, (0, 2, 1, 3))  # (B, T, H, D)
    return ops.reshape(x, (-1, ops.shape(x)[1], num_heads * head_dim))


def dot_product_scores(query, key):
    """Returns scaled scores `Q K^T / sqrt(D)` of queries and keys.

    The query is scaled before the product, which keeps float16 in range.

    Returns:
        `(..., T, S)`.
    """
    query = query * (query.shape[-1] ** -0.5)
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def product_per_head(x, kernel):
    """Multiplies `(B, H, T, N)` by the kernel of each head, `(H, N, S)`.

    Returns:
        `(B, H, T, S)`.
    """
    heads, inner, _ = kernel.shape
    if heads > 1:
        return ops.matmul(x, ops.expand_dims(kernel, 0))
    # TensorFlow 2.21 corrupts memory when it broadcasts one head on a CPU:
    # https://github.com/tensorflow/tensorflow/issues/117700
    product = ops.matmul(ops.reshape(x, (-1, inner)), kernel[0])
    length = ops.shape(x)[2]
    return ops.reshape(product, (-1, 1, length, ops.shape(kernel)[2]))


def softmax_weights(scores, mask=None):
    """Computes a softmax over the last axis in float32 or better.

    A row without any True comes out uniform: `mix` silences its output,
    which costs less than another pass over all weights.
    """
    dtype = scores.dtype
    scores = statistics.to_float32(scores)
    if mask is not None:
        scores = scores + ops.where(
            mask, ops.cast(0.0, scores.dtype), ops.cast(EXCLUDED, scores.dtype)
        )
    if scores.shape[-1] == 1:
        # A clip of one frame, of whose softmax Keras would warn.
        return ops.cast(ops.exp(scores - scores), dtype)
    return ops.cast(ops.softmax(scores, axis=-1), dtype)


def mix(scores, value, mask=None, dropout=None):
    """Sums the values, weighted by the softmax of their scores.

    Args:
        scores: floating tensor `(..., T, S)`.
        value: floating tensor `(..., S, V)`.
        mask: boolean tensor broadcastable to `scores`, or `None`.
        dropout: function applied to the weights, or `None`.

    Returns:
        `(..., T, V)` in the dtype of `scores`, zero in every row whose mask
        has no True.
    """
    weights = softmax_weights(scores, mask)
    if dropout is not None:
        weights = dropout(weights)
    return silence(ops.matmul(weights, value), mask)


def silence(mixed, mask):
    """Zeros the rows of `(..., T, V)` whose mask `(..., T, S)` is empty."""
    if mask is None:
        return mixed
    return mixed * ops.cast(ops.any(mask, axis=-1, keepdims=True), mixed.dtype)


def mix_with_rest(scores, value, mask, rest, count):
    """Sums the values as `mix` does, where keys not chosen have score 0.

    The literal reading of a mask that multiplies the scores: every key that
    may be seen has a weight, `exp(score)` where attended to and `exp(0)`
    elsewhere. The rest enters by its sum alone, so that no `T x T` map is
    formed.

    Args:
        scores: floating tensor `(..., T, S)` of the keys attended to.
        value: floating tensor `(..., S, V)`, theirs.
        mask: boolean tensor broadcastable to `scores`.
        rest: sum of the values of all keys that may be seen, attended to or
            not, broadcastable to `(..., T, V)`.
        count: how many they are, broadcastable to `(..., T, 1)`.

    Returns:
        `(..., T, V)` in the dtype of `scores`, zero where `count` is.
    """
    dtype = scores.dtype
    scores = ops.where(mask, statistics.to_float32(scores), EXCLUDED)
    chosen = ops.cast(mask, scores.dtype) * ops.ones_like(scores)
    count = ops.cast(count, scores.dtype)
    others = count - ops.sum(chosen, axis=-1, keepdims=True)
    # Without an initial value an empty batch has no largest score.
    top = ops.max(scores, axis=-1, keepdims=True, initial=EXCLUDED)
    top = ops.where(others > 0, ops.maximum(top, 0.0), top)
    top = ops.stop_gradient(top)
    # Of a row that sees nothing, `top` is so low that the rest overflows.
    rest_weight = ops.exp(-ops.where(others > 0, top, 0.0))
    rest_weight = ops.where(others > 0, rest_weight, 0.0)
    weights = chosen * ops.exp(scores - top)
    total = ops.sum(weights, axis=-1, keepdims=True) + rest_weight * others
    # The rest is what all sum to, less what is chosen.
    mixed = ops.matmul(
        weights - rest_weight * chosen, ops.cast(value, scores.dtype)
    )
    mixed = mixed + rest_weight * ops.cast(rest, scores.dtype)
    seen = count > 0
    mixed = ops.where(seen, mixed / ops.where(seen, total, 1.0), 0.0)
    return ops.cast(mixed, dtype)


def flash_attention(query, key, value, mask=None, causal=False):
    """Attends by the kernel of the device that never forms the map.

    "FlashAttention" (arXiv 2205.14135), as `keras.ops` has it.

    Args:
        query: tensor `(B, H, T, D)`, of float16 or bfloat16.
        key: tensor `(B, G, T, D)`; `G` divides `H`.
        value: tensor `(B, G, T, D)`.
        mask: padding mask `(B, T)` or `None`.
        causal: bool, whether a position sees its past alone.

    Returns:
        `(B, H, T, D)`, zero in a row that may attend to nothing.

    Raises:
        ValueError, RuntimeError: if the backend, the device or the dtype has
            no such kernel; which one it is, Keras says.
    """
    length = ops.shape(query)[2]
    pairs = None
    if mask is not None:
        # cuDNN takes a mask of all pairs alone, and gradients through it for
        # an even length.
        odd = length % 2
        pad = [[0, 0], [0, 0], [0, odd], [0, 0]]
        query, key, value = (ops.pad(x, pad) for x in (query, key, value))
        pairs = masks.keys(ops.pad(mask, [[0, 0], [0, odd]]))
        pairs = ops.broadcast_to(
            pairs, (ops.shape(mask)[0], 1, length + odd, length + odd)
        )
    mixed = ops.dot_product_attention(
        *(ops.transpose(x, (0, 2, 1, 3)) for x in (query, key, value)),
        mask=pairs,
        is_causal=causal,
        flash_attention=True,
    )
    mixed = ops.transpose(mixed, (0, 2, 1, 3))[:, :, :length]
    if mask is None:
        return mixed
    counts = ops.cast(mask, "int32")
    if causal:
        counts = ops.cumsum(counts, axis=1)
    else:
        counts = ops.sum(counts, axis=1, keepdims=True)
    return mixed * ops.cast(masks.queries(counts > 0), mixed.dtype)


def rest_of(value, mask, causal):
    """Prepares what `mix_with_rest` needs of all values `(B, H, T, V)`.

    Args:
        value: floating tensor `(B, H, T, V)`.
        mask: padding mask `(B, T)` or `None`.
        causal: bool, whether a position sees its past alone.

    Returns:
        Sums, `(B, H, T, V)` if causal and else `(B, H, 1, V)`, and counts,
        `(B, 1, T, 1)` or `(B, 1, 1, 1)`.
    """
    value = statistics.to_float32(value)
    ones = ops.ones_like(value[:, :1, :, :1])
    if mask is not None:
        real = masks.queries(mask)
        ones = ops.where(real, ones, 0.0)
        value = ops.where(real, value, 0.0)
    if causal:
        return ops.cumsum(value, axis=2), ops.cumsum(ones, axis=2)
    return (
        ops.sum(value, axis=2, keepdims=True),
        ops.sum(ones, axis=2, keepdims=True),
    )


def check_literal_mask(literal_mask, dropout):
    """Refuses dropout of weights that `mix_with_rest` does not form."""
    if literal_mask and dropout:
        raise ValueError(
            "`dropout` must be 0 with `literal_mask=True`, whose weights are "
            f"not formed one by one. Received: dropout={dropout}"
        )
