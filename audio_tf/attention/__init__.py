"""Attention mechanisms by name.

`ATTENTIONS` maps each public name to its class; `create` builds a layer. The
contract that every one of them keeps is that of `SelfAttention`.
"""

import keras

from audio_tf.attention.base import SelfAttention
from audio_tf.attention.dot_product import FullAttention

ATTENTIONS = {
    "full": FullAttention,
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
    return attention_class(**kwargs)


__all__ = ["ATTENTIONS", "FullAttention", "SelfAttention", "create", "find"]
