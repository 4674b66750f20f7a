"""Layers: what Keras keeps of them to itself."""

import keras
from keras import ops
from keras.src import backend


def layers_within(model, recursive=True):
    """Lists the layers of a model or layer, without itself.

    Args:
        model: a model or a layer.
        recursive: bool, whether to list layers at any depth.
    """
    return model._flatten_layers(include_self=False, recursive=recursive)


def mask_of(x):
    """Returns the mask that a layer has attached to its output, or `None`.

    Args:
        x: array or tensor, such as what `keras.layers.Masking` returns.
    """
    return backend.get_keras_mask(x)


def quantized_policy(policy, layers):
    """Makes one map of policies of which some layers are quantised.

    A model is built with it as the one that is saved was quantised.

    Args:
        policy: `keras.DTypePolicy` of the layers that are not; of a map, its
            default.
        layers: list of layers.

    Returns:
        `keras.dtype_policies.DTypePolicyMap`, `None` if none is quantised.
    """
    quantized = {
        layer.path: layer.dtype_policy
        for layer in layers
        if layer.quantization_mode is not None
    }
    if not quantized:
        return None
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        policy = policy.default_policy
    return keras.dtype_policies.DTypePolicyMap(policy, quantized)


def settle_dtypes(model):
    """Gives each layer its own dtype policy where a map holds them all.

    A quantised model is built with one map of policies. Keras 3.15 then asks
    the map, not the layer's entry in it, how to save the layer, and fails.

    Args:
        model: a built `keras.Model`; changed in place.
    """
    for layer in layers_within(model):
        policy = layer._dtype_policy
        if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
            # Without a path it has no weights.
            own = policy[layer.path] if layer.path else policy.default_policy
            layer._dtype_policy = own


def scale_loss_for(model, policy):
    """Has `compile` scale the loss of a model that computes in float16.

    Keras asks the model for its policy, not its layers, and small gradients
    would be lost. It scales none of pure float16, either. Any other policy
    leaves the model's own. On Torch, Keras takes the scale off in the dtype
    of the weights: of pure float16, gradients below 6e-8 stay lost there.

    Args:
        model: a functional `keras.Model`; changed in place.
        policy: `keras.DTypePolicy` of some of its layers.
    """
    if policy.name in ("float16", "mixed_float16"):
        model.dtype_policy = keras.dtype_policies.get("mixed_float16")


def replace_weight(layer, weight, make):
    """Replaces a weight of a built layer by another one.

    Args:
        layer: a built layer, which tracks no new weights any longer.
        weight: `keras.Variable`, the weight that is dropped.
        make: function without arguments that adds the new weight.
    """
    layer._tracker.unlock()
    layer._untrack_variable(weight)
    make()
    layer._tracker.lock()


def has_flash_attention(query, key, value):
    """Returns whether Keras has a flash attention that takes these tensors.

    Keras' own test, which on a processor would go on without one. That of
    Torch, which takes no mask, was not tried.

    Args:
        query: tensor `(batch, heads, time, dim)`.
        key: tensor `(batch, groups, time, dim)`.
        value: tensor like `key`.
    """
    if keras.backend.backend() != "jax":
        return False
    if keras.config.is_flash_attention_enabled() is False:
        return False
    from keras.src.backend.jax import nn

    heads_last = [ops.swapaxes(x, 1, 2) for x in (query, key, value)]
    return nn._can_use_flash_attention(*heads_last, bias=None)
