"""Gradients of a function's outputs by its inputs, on every backend of Keras.

Keras has none that its backends share: here is what each of them offers.
"""

import importlib

import keras

# What gradients are computed times, and divided by again: a power of two, and
# exact. In float16, those of a score near 0 or 1 lie where few digits are left.
SCALE = 256.0


def of_tensorflow(function, x):
    """Does the work of `input_gradients` on TensorFlow, in a graph too."""
    tf = importlib.import_module("tensorflow")
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = SCALE * function(x)
    found = tape.gradient(
        outputs, x, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return found / SCALE


def of_jax(function, x):
    """Does the work of `input_gradients` on JAX."""
    jax = importlib.import_module("jax")
    find = jax.grad(lambda value: SCALE * keras.ops.sum(function(value)))
    return find(keras.ops.convert_to_tensor(x)) / SCALE


def of_torch(function, x):
    """Does the work of `input_gradients` on PyTorch."""
    torch = importlib.import_module("torch")
    x = keras.ops.convert_to_tensor(x).detach().requires_grad_()
    with torch.enable_grad():
        # A sum with zeros of `x`, or there may be nothing to go back along.
        total = keras.ops.sum(function(x)) + 0.0 * keras.ops.sum(x)
        total = SCALE * total
    return torch.autograd.grad(total, x)[0] / SCALE


BACKENDS = {"tensorflow": of_tensorflow, "jax": of_jax, "torch": of_torch}


def input_gradients(function, x):
    """Computes how a function's outputs grow with its inputs.

    Args:
        function: function of a tensor like `x` to a tensor `(batch,)`, each
            number of which depends on its own row alone.
        x: floating array or tensor `(batch, ...)`.

    Returns:
        Tensor of the shape of `x`, the gradient of each row's number by that
        row; zeros where it does not depend on it.

    Raises:
        RuntimeError: if Keras runs on a backend that has none here.
    """
    backend = keras.backend.backend()
    if backend not in BACKENDS:
        raise RuntimeError(
            f"Gradients are computed on {', '.join(BACKENDS)}. "
            f"Received: backend={backend!r}"
        )
    return BACKENDS[backend](function, x)
