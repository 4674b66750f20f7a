"""Products of values with one map of attention weights for all clips."""

from keras import ops

from audio_tf.ops import blocks


def shared_product(weights, value):
    """Multiplies one map for all clips, `(H, T, T)`, by `(B, H, T, V)`.

    The clips lie side by side in one product per head.
    """
    batch, heads, length, dim = ops.shape(value)
    value = ops.transpose(value, (1, 2, 0, 3))  # (H, T, B, V)
    value = ops.reshape(value, (heads, length, batch * dim))
    mixed = ops.matmul(weights, value)
    mixed = ops.reshape(mixed, (heads, length, batch, dim))
    return ops.transpose(mixed, (2, 0, 1, 3))  # (B, H, T, V)


def mix_real(weights, dropped, value, real):
    """Weights the real values, each row scaled to their share of it.

    Args:
        weights: floating tensor `(H, T, T)`.
        dropped: the same after dropout.
        value: floating tensor `(B, H, T, V)`.
        real: boolean `(B, 1 or H, T, 1)`, or `None` if all are.

    Returns:
        `(B, H, T, V)` in the dtype of `value`.
    """
    dtype = value.dtype
    value = ops.cast(value, weights.dtype)
    ones = ops.ones_like(value[..., :1])
    if real is not None:
        value, ones = ops.where(real, value, 0.0), ops.where(real, ones, 0.0)
    if dropped is weights:
        # The rows' sums as one more column.
        both = shared_product(weights, ops.concatenate([value, ones], axis=-1))
        dim = ops.shape(value)[3]
        mixed = blocks.narrow(both, 3, 0, dim)
        total = blocks.narrow(both, 3, dim, 1)
    else:
        mixed = shared_product(ops.cast(dropped, weights.dtype), value)
        total = shared_product(weights, ones)
    seen = total > 0.0
    mixed = ops.where(seen, mixed / ops.where(seen, total, 1.0), 0.0)
    return ops.cast(mixed, dtype)


def end_of(mask):
    """Frames up to and with the last real one, `(B, T)` to `(B,)`."""
    length = ops.shape(mask)[1]
    ends = ops.where(mask, ops.arange(1, length + 1, dtype="int32"), 0)
    # With its axis kept, it is one of an empty batch on Torch, too.
    return ops.squeeze(ops.max(ends, axis=1, keepdims=True, initial=0), 1)


def delay(x, frames):
    """Moves `(B, H, T, V)` by `frames`, `(B, H)`, and fills with zeros."""
    length = ops.shape(x)[2]
    source = ops.arange(length, dtype="int32") - ops.expand_dims(frames, 2)
    inside = ops.expand_dims((source >= 0) & (source < length), 3)
    moved = blocks.gather(x, ops.clip(source, 0, length - 1))
    return ops.where(inside, moved, ops.zeros((), x.dtype))
