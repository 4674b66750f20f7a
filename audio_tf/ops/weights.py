"""Weights: how they begin, the parts that one may hold, and their checksum.

A table of attention logits holds one map per head: crafted heads outweigh
random ones by three orders of magnitude. An optimizer that scales steps by the
size of what they move, as LAMB does, must look at one part at a time.
"""

import hashlib

import keras
import numpy as np


def another(initializer):
    """Copies an initializer, which draws the same for every weight of a shape.

    Args:
        initializer: as `keras.initializers.get` returns it: a function, which
            Keras takes too, is no object that could be copied.
    """
    if isinstance(initializer, keras.initializers.Initializer):
        return initializer.clone()
    return initializer


def declare_parts(variable, axis):
    """Says that a weight is a stack of independent parts.

    Args:
        variable: `keras.Variable`.
        axis: int, the axis along which the parts stand.
    """
    variable.parts_axis = axis


def parts_axis(variable):
    """Returns the axis along which the parts of a weight stand.

    Args:
        variable: `keras.Variable`.

    Returns:
        Int as `declare_parts` was given it, or `None` for a weight of one part.
    """
    return vars(variable).get("parts_axis")


def weights_sha256(weights):
    """Computes a checksum of weights: values, shapes and dtypes, in order."""
    digest = hashlib.sha256()
    for weight in weights:
        value = np.asarray(weight)
        digest.update(f"{value.dtype} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
