"""Layers on JAX as one program each, which is how `fit` and `predict` run them.

With no compiler around it, JAX compiles each operation for each shape: a layer
is dozens of small programs then, and takes several times as long.
"""

import threading

import jax
import keras
from keras.src.backend import get_keras_mask, set_keras_mask
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.symbolic_scope import in_symbolic_scope


def is_array(leaf):
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def is_symbol(leaf):
    return isinstance(leaf, (keras.KerasTensor, jax.core.Tracer))


def symbol_of(leaf):
    """What has the shape and the dtype of an array, and no values."""
    if not is_array(leaf):
        return leaf
    return keras.KerasTensor(leaf.shape, str(leaf.dtype))


def call_as_one_program(call, layer, args, kwargs):
    """Returns `call(layer, *args, **kwargs)`, compiled as one program.

    Masks of Keras come along, and the layer's variables have the values that
    the call leaves behind.
    """
    leaves, structure = jax.tree.flatten((args, kwargs))
    arrays = {i: leaf for i, leaf in enumerate(leaves) if is_array(leaf)}
    masks = {i: get_keras_mask(array) for i, array in arrays.items()}
    variables = layer.variables

    def program(values, arrays, masks):
        for i, mask in masks.items():
            if mask is not None:
                set_keras_mask(arrays[i], mask)
        args, kwargs = jax.tree.unflatten(
            structure, [arrays.get(i, leaf) for i, leaf in enumerate(leaves)]
        )
        with keras.StatelessScope(
            zip(variables, values), collect_losses=True
        ) as scope:
            outputs = call(layer, *args, **kwargs)
        if scope.losses or len(scope.state_mapping) > len(variables):
            raise TypeError("losses, or variables of other layers")
        return (
            outputs,
            [get_keras_mask(leaf) for leaf in jax.tree.leaves(outputs)],
            [scope.get_current_value(variable) for variable in variables],
        )

    outputs, masks, values = jax.jit(program)(
        [variable.value for variable in variables], arrays, masks
    )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    for leaf, mask in zip(jax.tree.leaves(outputs), masks, strict=True):
        if mask is not None:
            set_keras_mask(leaf, mask)
    return outputs


def whole(call):
    """Returns `keras.Layer.__call__` whose outermost calls are compiled."""
    within = threading.local()

    def run(layer, *args, **kwargs):
        leaves = jax.tree.leaves((args, kwargs))
        if (
            getattr(within, "a_call", False)
            or in_stateless_scope()
            or in_symbolic_scope()
            or any(map(is_symbol, leaves))
            or not any(map(is_array, leaves))
        ):
            return call(layer, *args, **kwargs)
        within.a_call = True
        try:
            if not layer.built:
                symbols, named = jax.tree.map(symbol_of, (args, kwargs))
                call(layer, *symbols, **named)
            return call_as_one_program(call, layer, args, kwargs)
        # It looks at values, adds losses, writes to variables of others, or
        # is wrong, which the same call without a compiler tells best.
        except Exception:
            return call(layer, *args, **kwargs)
        finally:
            within.a_call = False

    return run
