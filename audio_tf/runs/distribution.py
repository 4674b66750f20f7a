"""Training over the devices of a host, by the backend's own means."""

import contextlib
import os

import keras

# Keras spreads training itself on JAX; on TensorFlow `tf.distribute` does.
STRATEGIES = ("none", "data_parallel")


def scope(strategy):
    """Returns a context in which models are built, loaded and trained.

    It must be entered before the backend computes anything. Each batch is cut
    evenly among all devices that the backend sees, which hold the same
    weights. On JAX the result is that of one device. On TensorFlow
    losses are means over each device's share, averaged; gradients are clipped
    before they are added up; and the devices' random numbers are equal, so
    that row `i` of each share has the same masks and dropout.

    One host alone: `fit` of Keras 3.15 fails on what
    `MultiWorkerMirroredStrategy` gives it, and JAX' trainer takes no dataset
    of batches that differ in size.

    Args:
        strategy: `"none"` or `"data_parallel"`.

    Raises:
        ValueError: if there is no such strategy, the backend has no means, or
            several hosts are wanted.
    """
    if strategy not in STRATEGIES:
        raise ValueError(
            f"`strategy` must be one of {list(STRATEGIES)}. "
            f"Received: strategy={strategy!r}"
        )
    if strategy == "none":
        return contextlib.nullcontext()
    if "TF_CONFIG" in os.environ:
        raise ValueError(
            "Batches are spread over the devices of one host. "
            f"Received: TF_CONFIG={os.environ['TF_CONFIG']}"
        )
    backend = keras.backend.backend()
    if backend not in SCOPES:
        raise ValueError(
            f"Only {sorted(SCOPES)} spread batches over devices here. "
            f"Received: backend {backend!r}"
        )
    return SCOPES[backend]()


def tensorflow_scope():
    """Returns the scope of all local devices on TensorFlow."""
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(
        tf.config.list_logical_devices("GPU")
        or tf.config.list_logical_devices("CPU")
    ).scope()


def jax_scope():
    """Returns the scope of all local devices on JAX."""
    return keras.distribution.DataParallel().scope()


SCOPES = {"tensorflow": tensorflow_scope, "jax": jax_scope}


def gpus():
    """Lists the GPUs of the host as `CUDA_VISIBLE_DEVICES` names them."""
    import tensorflow as tf

    found = tf.config.list_physical_devices("GPU")
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = chosen.split(",") if chosen else map(str, range(len(found)))
    return list(names)[: len(found)]


def num_devices():
    """Returns the number of devices that share a batch in this scope."""
    backend = keras.backend.backend()
    if backend == "jax":
        spread = keras.distribution.distribution()
        return 1 if spread is None else spread.device_mesh.devices.size
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.distribute.get_strategy().num_replicas_in_sync
    return 1
