"""Attention mechanisms by name.

`ATTENTIONS` maps each public name to its class; `create` builds a layer. The
contract that every one of them keeps is that of `Attention`. `MIXTURES` names
models whose blocks differ in their attention.
"""

from audio_tf.attention.base import Attention
from audio_tf.attention.blocks import (
    by_block,
    of_block,
    one_for_all,
    untracked,
)
from audio_tf.attention.dense_synthesizer import DenseSynthesizerAttention
from audio_tf.attention.dot_product import (
    FullAttention,
    GroupedQueryAttention,
    SharedQKAttention,
)
from audio_tf.attention.folding import fold
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
from audio_tf.attention.local_synthesizer import LocalDenseSynthesizerAttention
from audio_tf.attention.mechanisms import (
    ARGUMENTS,
    ATTENTIONS,
    MIXTURES,
    check_arguments,
    create,
    find,
    name_of,
    parts_of,
)
from audio_tf.attention.random_synthesizer import RandomSynthesizerAttention
from audio_tf.attention.relative import GatedRelativeAttention
from audio_tf.attention.self_attention import SelfAttention
from audio_tf.attention.sparse import (
    FixedSparseAttention,
    StridedSparseAttention,
)

__all__ = [
    "ARGUMENTS",
    "ATTENTIONS",
    "Attention",
    "BiSkewedGaussianAttention",
    "DenseSynthesizerAttention",
    "FixedSparseAttention",
    "FullAttention",
    "GatedRelativeAttention",
    "GaussianAdaptiveAttention",
    "GaussianAttention",
    "GroupedQueryAttention",
    "GroupedQueryGaussianAdaptiveAttention",
    "MIXTURES",
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
    "by_block",
    "check_arguments",
    "create",
    "find",
    "fold",
    "name_of",
    "of_block",
    "one_for_all",
    "parts_of",
    "untracked",
]
