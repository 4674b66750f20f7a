"""Dtype policies of heads: as they are asked for, and as configs keep them."""

import keras

from audio_tf import compat


def asked(head_dtype):
    """Returns the policy that a head was asked to have, `None` of none.

    Args:
        head_dtype: policy, its name or its config, or `None`.

    Raises:
        ValueError: if there is no such policy.
    """
    if head_dtype is None:
        return None
    return keras.dtype_policies.get(head_dtype)


def saved(own, plain, layers):
    """Returns what a config keeps, by which a head is built as it is now.

    Args:
        own: `keras.DTypePolicy` that the head was asked to have, or `None`.
        plain: `keras.DTypePolicy` of those layers that are not quantised.
        layers: list of the layers of the head.

    Returns:
        Dict for JSON, `None` where the head has the policy of its model.
    """
    policy = compat.quantized_policy(plain, layers) or own
    return policy and keras.dtype_policies.serialize(policy)
