"""Activations in a form that every runtime can take."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable("audio_tf")
def gelu(x):
    """Computes the exact GELU, `x / 2 * (1 + erf(x / sqrt 2))`.

    `keras.activations.gelu` is the same function by `erfc` on TensorFlow
    2.21, which ONNX does not have: a converter writes the node as it is, and
    ONNX Runtime refuses the file.
    """
    return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))


def get(activation):
    """Finds an activation as Keras does; GELU is `gelu` of this file."""
    activation = keras.activations.get(activation)
    return gelu if activation is keras.activations.gelu else activation


def serialize(activation):
    """Turns an activation into a value for JSON that `get` takes."""
    if activation is gelu:
        return "gelu"
    return keras.activations.serialize(activation)
