"""Attention mechanisms by name: how they are found, and built."""

import keras

from audio_tf import configs
from audio_tf.attention.base import Attention
from audio_tf.attention.dense_synthesizer import DenseSynthesizerAttention
from audio_tf.attention.dot_product import (
    FullAttention,
    GroupedQueryAttention,
    SharedQKAttention,
)
from audio_tf.attention.gaussian import (
    BiSkewedGaussianAttention,
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
from audio_tf.attention.random_synthesizer import RandomSynthesizerAttention
from audio_tf.attention.relative import GatedRelativeAttention
from audio_tf.attention.sparse import (
    FixedSparseAttention,
    StridedSparseAttention,
)
from audio_tf.ops.checks import (
    check_sizes,
    closest,
    parameters_of,
    reject_unknown,
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
    "gated_relative": GatedRelativeAttention,
    "gaussian_adaptive": GaussianAdaptiveAttention,
    "grouped_query_gaussian_adaptive": GroupedQueryGaussianAdaptiveAttention,
    "skewed_gaussian": SkewedGaussianAttention,
    "bi_skewed_gaussian": BiSkewedGaussianAttention,
}

# Arguments that the layers of a model have from it.
FROM_THE_MODEL = ("name", "dtype")

# What a name stands for beyond its class.
ARGUMENTS = {
    "dense_synthesizer_per_head": {"per_head": True},
    "crafted_synthesizer": {"patterns": "crafted"},
    "raganato_synthesizer": {"patterns": "raganato"},
}

# Attentions that blocks have in turn. Local dense Synthesizer attention (LDSA)
# and dot products one behind the other are its authors' hybrid attention.
MIXTURES = {"hybrid_local": ("local_dense_synthesizer", "full")}


def find(mechanism):
    """Looks up the class of a mechanism.

    Args:
        mechanism: a key of `ATTENTIONS`, the name under which a class was
            registered with `keras.saving.register_keras_serializable`, or a
            subclass of `Attention`.

    Raises:
        ValueError: if there is no such mechanism, it is one of `MIXTURES`, or
            its class is no `Attention` and so does not say what it is capable
            of.

    Examples:
        >>> from audio_tf import attention
        >>> attention.find("xbox").__name__
        'XBOXAttention'
    """
    found = mechanism
    if isinstance(mechanism, str):
        found = ATTENTIONS.get(mechanism)
        if found is None:
            found = keras.saving.get_registered_object(mechanism)
    if isinstance(mechanism, str) and mechanism in MIXTURES:
        raise ValueError(
            "One layer has one attention; a mixture is for the blocks of a "
            f"model, which have in turn {list(MIXTURES[mechanism])}. "
            f"Received: attention={mechanism!r}"
        )
    if not isinstance(found, type) or not issubclass(found, Attention):
        raise ValueError(
            f"`attention` must be one of {sorted(ATTENTIONS)}, or a subclass "
            "of audio_tf.attention.Attention or its registered name"
            f"{closest(mechanism, ATTENTIONS) or configs.HINT}. "
            f"Received: attention={mechanism!r}"
        )
    return found


def name_of(mechanism):
    """Returns the name by which `find` finds a mechanism again.

    Args:
        mechanism: as `find` takes it.

    Returns:
        str, the key of `ATTENTIONS` or the registered name.

    Raises:
        ValueError: if there is no such mechanism, or its class is not
            registered.

    Examples:
        >>> from audio_tf import attention
        >>> attention.name_of(attention.XBOXAttention)
        'xbox'
    """
    found = find(mechanism)
    if isinstance(mechanism, str):
        return mechanism
    for name, known in ATTENTIONS.items():
        if known is found and name not in ARGUMENTS:
            return name
    name = keras.saving.get_registered_name(found)
    if keras.saving.get_registered_object(name) is not found:
        raise ValueError(
            "A model saves the name of its attention, which a class of one's "
            "own has by @keras.saving.register_keras_serializable(). "
            f"Received: attention={name} without it"
        )
    return name


def parts_of(mechanism):
    """Returns the attentions that blocks have in turn, one for most names.

    Args:
        mechanism: a key of `MIXTURES`, or as `find` takes it.

    Returns:
        Tuple of names.

    Raises:
        ValueError: if there is no such mechanism.

    Examples:
        >>> from audio_tf import attention
        >>> attention.parts_of("hybrid_local")
        ('local_dense_synthesizer', 'full')
    """
    if isinstance(mechanism, str) and mechanism in MIXTURES:
        return MIXTURES[mechanism]
    return (name_of(mechanism),)


def create(
    mechanism,
    /,
    *,
    num_heads=None,
    key_dim=None,
    causal=None,
    dropout=0.0,
    max_length=None,
    kernel_initializer=None,
    **own,
):
    """Builds the attention layer of a mechanism.

    What is common to all is passed on to those that take it: a Gaussian
    attention has no `key_dim`, a layer without projections no initializer,
    and only tables and strides depend on the longest input.

    Args:
        mechanism: as `find` takes it. Positional only, since `name` is the
            Keras name of the layer.
        num_heads: int, the number of heads; never left out.
        key_dim: int, the size of each head, where heads have one.
        causal: bool. If True, no position sees a later one; `None` means
            True where the mechanism can be causal.
        dropout: float, the rate at which attention weights are dropped.
        max_length: int, the longest input in frames, from which `sizes_for`
            of the class takes tables and strides that `own` does not give;
            `None` for the defaults of the class.
        kernel_initializer: initializer of the projections; `None` for the
            default of the class.
        **own: further arguments of the mechanism's class.

    Returns:
        A new `Attention`.

    Raises:
        TypeError: if an argument is unknown, or one that it needs is missing.
        ValueError: if there is no such mechanism, an argument is out of
            range, or contradicts the name.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import attention
        >>> layer = attention.create("xbox", num_heads=2, key_dim=8)
        >>> x = np.zeros((1, 12, 16), "float32")
        >>> output, weights = layer(x, return_attention_scores=True)
        >>> tuple(output.shape), tuple(weights.shape)
        ((1, 12, 16), (1, 2, 12, 12))
    """
    attention = find(mechanism)
    # A layer by itself needs no name that is found again.
    name = mechanism if isinstance(mechanism, str) else attention.__name__
    meant = ARGUMENTS.get(name, {})
    for argument, value in meant.items():
        if own.get(argument, value) != value:
            raise ValueError(
                f"`{argument}` must be {value!r}, for which {name!r} stands. "
                f"Received: {argument}={own[argument]!r}"
            )
    # First the unknown: it may be the missing one, with a wrong letter.
    known = [*parameters_of(attention), "max_length"]
    reject_unknown(attention.__name__, own, known, taken_by)
    if num_heads is None:
        raise TypeError(f"{name!r} needs `num_heads`, the number of heads")
    arguments = {"num_heads": num_heads, "causal": causal, "dropout": dropout}
    if attention.takes_key_dim:
        if key_dim is None:
            raise TypeError(f"{name!r} needs `key_dim`, the size of a head")
        arguments["key_dim"] = key_dim
    if attention.takes_kernel_initializer and kernel_initializer is not None:
        arguments["kernel_initializer"] = kernel_initializer
    if max_length is not None:
        check_sizes(max_length=max_length)
        arguments.update(attention.sizes_for(max_length))
    return attention(**{**arguments, **meant, **own})


def check_arguments(mechanism, given):
    """Refuses arguments that a mechanism does not take within a model.

    They are those that its class does not name, and those that layers have
    from the model. `create` takes what is common to all for all; this does
    not.

    Args:
        mechanism: as `find` takes it.
        given: iterable of names.

    Raises:
        TypeError: if there is an unknown one, it names the closest known; or
            one that is the model's.

    Examples:
        >>> from audio_tf import attention
        >>> attention.check_arguments("xbox", ["num_candidates", "seed"])
    """
    given = list(given)
    owner = f"attention={name_of(mechanism)!r}"
    for name in FROM_THE_MODEL:
        if name in given:
            raise TypeError(
                f"{owner} takes no argument {name!r} of its own within a "
                f"model, whose layers have theirs from it. Received: "
                f"{sorted(given)}"
            )
    known = [
        name
        for name in parameters_of(find(mechanism))
        if name not in FROM_THE_MODEL
    ]
    reject_unknown(owner, given, known, taken_by)


def taken_by(argument, known):
    """Returns which mechanisms take an argument, or the nearest known one.

    Args:
        argument: str, what a mechanism does not take.
        known: iterable of the names that it takes.

    Examples:
        >>> from audio_tf.attention import mechanisms
        >>> mechanisms.taken_by("stride", ["trainable"])
        "; others take it: 'sparse_strided', 'sparse_fixed'"
        >>> mechanisms.taken_by("trainible", ["trainable"])
        "; did you mean 'trainable'"
    """
    others = [
        name for name in ATTENTIONS if argument in parameters_of(find(name))
    ]
    if not others:
        return closest(argument, known)
    return f"; others take it: {', '.join(map(repr, others))}"
