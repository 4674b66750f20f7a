"""Training over several devices, by the backend's own means."""

import contextlib
import json
import os

import keras

# Keras spreads training itself on JAX; on TensorFlow `tf.distribute` does.
STRATEGIES = ("none", "data_parallel")


def scope(strategy):
    """A context in which models are built, loaded and trained.

    To be entered before the backend computes anything. Each batch is cut
    evenly among all devices that the backend sees, which hold the same
    weights. On JAX that gives what one device would give. On TensorFlow
    losses are means over each device's share, averaged; gradients are clipped
    before they are added up; and the devices' random numbers are equal, so
    that row `i` of each share has the same masks and dropout.

    Several hosts, on TensorFlow alone: each runs the same command with its
    `TF_CONFIG` and the same --out on a shared disk, and reads all batches.

    Args:
        strategy: `"none"` or `"data_parallel"`.

    Raises:
        ValueError: if there is no such strategy, or the backend has no means.
    """
    if strategy not in STRATEGIES:
        raise ValueError(
            f"`strategy` must be one of {list(STRATEGIES)}. "
            f"Received: strategy={strategy!r}"
        )
    if strategy == "none":
        return contextlib.nullcontext()
    backend = keras.backend.backend()
    if backend not in SCOPES:
        raise ValueError(
            f"Only {sorted(SCOPES)} spread batches over devices here. "
            f"Received: backend {backend!r}"
        )
    return SCOPES[backend]()


def tensorflow_scope():
    import tensorflow as tf

    if "TF_CONFIG" in os.environ:
        return tf.distribute.MultiWorkerMirroredStrategy().scope()
    return tf.distribute.MirroredStrategy(
        tf.config.list_logical_devices("GPU")
        or tf.config.list_logical_devices("CPU")
    ).scope()


def jax_scope():
    return keras.distribution.DataParallel().scope()


SCOPES = {"tensorflow": tensorflow_scope, "jax": jax_scope}


def num_devices():
    """Devices that batches are cut among in the current scope."""
    backend = keras.backend.backend()
    if backend == "jax":
        mesh = getattr(keras.distribution.distribution(), "device_mesh", None)
        return 1 if mesh is None else mesh.devices.size
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.distribute.get_strategy().num_replicas_in_sync
    return 1


def is_chief():
    """Whether this process is the one that writes files."""
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
    return task.get("type", "chief") == "chief" or (
        task["type"] == "worker" and task["index"] == 0
    )
