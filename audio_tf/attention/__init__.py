"""Attention mechanisms by name.

`ATTENTIONS` maps each public name to its class; `create` builds a layer. The
contract that every one of them keeps is that of `SelfAttention`.
"""

import inspect

import keras

from audio_tf.attention.base import SelfAttention
from audio_tf.attention.dot_product import (
    FullAttention,
    GroupedQueryAttention,
    SharedQKAttention,
)
from audio_tf.attention.gaussian import (
    BiSkewedGaussianAttention,
    GaussianAttention,
    SkewedGaussianAttention,
)
from audio_tf.attention.gaussian_adaptive import (
    GaussianAdaptiveAttention,
    GroupedQueryGaussianAdaptiveAttention,
)
from audio_tf.attention.hashing import (
    SignALSHAttention,
    SimpleALSHAttention,
    SimpleLSHAttention,
    XBOXAttention,
    XBOXQNFAttention,
)
from audio_tf.attention.local_synthesizer import (
    LocalDenseSynthesizerAttention,
)
from audio_tf.attention.sparse import (
    FixedSparseAttention,
    StridedSparseAttention,
)
from audio_tf.attention.synthesizer import (
    DenseSynthesizerAttention,
    RandomSynthesizerAttention,
    fold,
)

ATTENTIONS = {
    "full": FullAttention,
    "shared_qk": SharedQKAttention,
    "sparse_strided": StridedSparseAttention,
    "sparse_fixed": FixedSparseAttention,
    "sign_alsh": SignALSHAttention,
    "xbox": XBOXAttention,
    "xbox_qnf": XBOXQNFAttention,
    "simple_lsh": SimpleLSHAttention,
    "simple_alsh": SimpleALSHAttention,
    "dense_synthesizer": DenseSynthesizerAttention,
    "dense_synthesizer_per_head": DenseSynthesizerAttention,
    "random_synthesizer": RandomSynthesizerAttention,
    "crafted_synthesizer": RandomSynthesizerAttention,
    "raganato_synthesizer": RandomSynthesizerAttention,
    "local_dense_synthesizer": LocalDenseSynthesizerAttention,
    "grouped_query": GroupedQueryAttention,
    "gaussian_adaptive": GaussianAdaptiveAttention,
    "grouped_query_gaussian_adaptive": GroupedQueryGaussianAdaptiveAttention,
    "skewed_gaussian": SkewedGaussianAttention,
    "bi_skewed_gaussian": BiSkewedGaussianAttention,
}

# What a name stands for beyond its class.
ARGUMENTS = {
    "dense_synthesizer_per_head": {"per_head": True},
    "crafted_synthesizer": {"patterns": "crafted"},
    "raganato_synthesizer": {"patterns": "raganato"},
}


def find(mechanism):
    """Looks up the class of a mechanism.

    Args:
        mechanism: a key of `ATTENTIONS`, the name under which a class was
            registered with `keras.saving.register_keras_serializable`, or a
            subclass of `keras.layers.Layer`.

    Raises:
        ValueError: if there is no such mechanism.
    """
    if isinstance(mechanism, type) and issubclass(
        mechanism, keras.layers.Layer
    ):
        return mechanism
    found = None
    if isinstance(mechanism, str):
        found = ATTENTIONS.get(mechanism)
        if found is None:
            found = keras.saving.get_registered_object(mechanism)
    if found is None:
        raise ValueError(
            "`attention` must be one of "
            f"{sorted(ATTENTIONS)}, a registered name or a Layer class. "
            f"Received: attention={mechanism!r}"
        )
    return found


def create(mechanism, /, **kwargs):
    """Builds the attention layer of that name.

    Args:
        mechanism: as `find` takes it. Positional only, since `name` is the
            Keras name of the layer.
        **kwargs: arguments of the mechanism's class; `num_heads`, `key_dim`,
            `dropout` and `causal` are common to all.

    Returns:
        A new `keras.layers.Layer`.

    Raises:
        ValueError: if there is no such mechanism.
    """
    attention_class = find(mechanism)
    if isinstance(mechanism, str):
        kwargs = {**ARGUMENTS.get(mechanism, {}), **kwargs}
    return attention_class(**kwargs)


def arguments_for(mechanism, length):
    """What a mechanism has to be told about the longest input.

    Args:
        mechanism: as `find` takes it.
        length: int, frames.

    Returns:
        Dict of arguments of its class: `max_length` where it has a table, and
        the papers' `stride`, the square root of the length.
    """
    known = inspect.signature(find(mechanism)).parameters
    sizes = {"max_length": length, "stride": round(length**0.5)}
    return {name: size for name, size in sizes.items() if name in known}


def longest_input(blocks):
    """Frames of the longest input that the attentions of blocks take.

    Args:
        blocks: layers with an `attention`.

    Returns:
        Int, the shortest `max_length` of a table, or `None` without tables.
    """
    limits = [getattr(block.attention, "max_length", None) for block in blocks]
    return min((limit for limit in limits if limit), default=None)


__all__ = [
    "ARGUMENTS",
    "ATTENTIONS",
    "BiSkewedGaussianAttention",
    "DenseSynthesizerAttention",
    "FixedSparseAttention",
    "FullAttention",
    "GaussianAdaptiveAttention",
    "GaussianAttention",
    "GroupedQueryAttention",
    "GroupedQueryGaussianAdaptiveAttention",
    "LocalDenseSynthesizerAttention",
    "RandomSynthesizerAttention",
    "SelfAttention",
    "SharedQKAttention",
    "SignALSHAttention",
    "SimpleALSHAttention",
    "SimpleLSHAttention",
    "SkewedGaussianAttention",
    "StridedSparseAttention",
    "XBOXAttention",
    "XBOXQNFAttention",
    "arguments_for",
    "create",
    "find",
    "fold",
    "longest_input",
]
