"""Attention as pure functions of tensors."""

import keras
from keras import ops


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
    """Scaled scores `Q K^T / sqrt(D)` of `(B, H, T, D)` and `(B, H, S, D)`.

    The query is scaled before the product, which keeps float16 in range.

    Returns:
        `(B, H, T, S)`.
    """
    query = query * (query.shape[-1] ** -0.5)
    return ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))


def masked_softmax(scores, mask=None):
    """Softmax over the last axis in float32 or better, cast back.

    Args:
        scores: floating tensor `(..., S)`.
        mask: boolean tensor broadcastable to `scores`, or `None`.

    Returns:
        Weights shaped and typed as `scores`, zero where `mask` is False; a
        row without any True is all zeros.
    """
    dtype = keras.backend.standardize_dtype(scores.dtype)
    scores = ops.cast(scores, keras.backend.result_type(dtype, "float32"))
    if mask is None:
        return ops.cast(ops.softmax(scores, axis=-1), dtype)
    weights = ops.softmax(ops.where(mask, scores, -1e9), axis=-1)
    # An empty row comes out of the softmax uniform: padding would leak.
    return ops.cast(ops.where(mask, weights, 0.0), dtype)
