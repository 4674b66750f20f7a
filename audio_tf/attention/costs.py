"""Costs of an attention: our count of its work, and the paper's."""

from typing import NamedTuple


class Cost(NamedTuple):
    """Work and memory of one clip.

    Attributes:
        multiply_adds: int, of all matrix products.
        weight_bytes: int, bytes of attention weights formed, in float32.
    """

    multiply_adds: int
    weight_bytes: int


def _hashed(L, D, H, C, N):
    return L * D + H * L * C


def _hashing(L, D, H, C, N):
    # Halved: the paper hashes in 16 bits.
    return (H * L + 2 * H * L**2) / 2


def _table(L, D, H, C, N):
    return H * L**2


# Table 1 of arXiv 2006.05174, "Theoretical Time", by mechanism: terms that
# have a gradient and count twice in training, and those that have none, for
# L frames, width D, H heads, C keys attended to and N hidden units.
_WITH_GRADIENT = {
    "full": lambda L, D, H, C, N: 2 * L * D + H * L**2,
    "shared_qk": lambda L, D, H, C, N: L * D + H * L**2,
    "sparse_strided": lambda L, D, H, C, N: L * D + 1.5 * H * L**1.5,
    "sparse_fixed": lambda L, D, H, C, N: L * D + H * L**1.5,
    "sign_alsh": _hashed,
    "xbox": _hashed,
    "xbox_qnf": _hashed,
    "simple_lsh": _hashed,
    "simple_alsh": _hashed,
    "dense_synthesizer": lambda L, D, H, C, N: L * N + L**2,
    "dense_synthesizer_per_head": lambda L, D, H, C, N: H * (L * N + L**2),
}
_WITHOUT_GRADIENT = {
    name: _hashing
    for name in ("sign_alsh", "xbox", "xbox_qnf", "simple_lsh", "simple_alsh")
}
# Learned, but nothing to compute once it is.
_TRAINING_ONLY = {
    "random_synthesizer": _table,
    "crafted_synthesizer": _table,
    # "SYN. (Ours)" of the version of 2020.
    "raganato_synthesizer": _table,
}


def paper_cost(
    mechanism,
    length,
    dim=768,
    num_heads=12,
    num_candidates=16,
    intermediate_dim=16,
    training=False,
):
    """Returns the "Theoretical Time" of Table 1 of arXiv 2006.05174.

    It counts the numbers that a mechanism forms on the way to its attention
    weights, and neither the products behind them nor values and output.

    Args:
        mechanism: key of `audio_tf.attention.ATTENTIONS`.
        length: int, frames, `L`.
        dim: int, the model's width, `D`.
        num_heads: int, `H`.
        num_candidates: int, `C`, keys attended to by hashing.
        intermediate_dim: int, `N`, of the dense Synthesizer.
        training: bool.

    Returns:
        float, or `None` if the table does not have the mechanism.
    """
    sizes = (length, dim, num_heads, num_candidates, intermediate_dim)
    if mechanism in _TRAINING_ONLY:
        return _TRAINING_ONLY[mechanism](*sizes) if training else 0.0
    if mechanism not in _WITH_GRADIENT:
        return None
    total = _WITH_GRADIENT[mechanism](*sizes) * (2 if training else 1)
    if mechanism in _WITHOUT_GRADIENT:
        total += _WITHOUT_GRADIENT[mechanism](*sizes)
    return float(total)
