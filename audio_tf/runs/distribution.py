"""Training over the devices of all hosts, by the backend's own means."""

import contextlib
import os

import keras

# Keras spreads training itself on JAX; on TensorFlow `tf.distribute` does.
STRATEGIES = ("none", "data_parallel")
UPSTREAM = "https://github.com/keras-team/keras/issues/20585"
ONE_HOST = (
    "Only JAX trains over several hosts, KERAS_BACKEND=jax with "
    "--job-addresses: on TensorFlow Keras' fit spreads batches over the "
    f"devices of one host, see {UPSTREAM}."
)


def scope(strategy):
    """Returns a context in which models are built, loaded and trained.

    It must be entered before the backend computes anything. Each batch is cut
    evenly among all devices that the backend sees, which hold the same
    weights. On JAX the result is that of one device. On TensorFlow
    losses are means over each device's share, averaged; gradients are clipped
    before they are added up; and the devices' random numbers are equal, so
    that row `i` of each share has the same masks and dropout.

    Several hosts, which `audio_tf.runs.hosts` connects, train on JAX alone:
    `fit` of Keras 3.15 fails on what `MultiWorkerMirroredStrategy` gives it
    (https://github.com/keras-team/keras/issues/20585).

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
    check_environment()
    backend = keras.backend.backend()
    if backend not in SCOPES:
        raise ValueError(
            f"Only {sorted(SCOPES)} spread batches over devices here. "
            f"Received: backend {backend!r}"
        )
    return SCOPES[backend]()


def check_environment():
    """Raises a `ValueError` if the environment names hosts as TensorFlow does.

    They would be ignored, and each host would train alone.
    """
    if "TF_CONFIG" in os.environ:
        raise ValueError(
            "`distribution` takes no hosts from TF_CONFIG: without that "
            "variable it is over the devices of one host, and over several on "
            "KERAS_BACKEND=jax with --job-addresses. "
            f"Received: TF_CONFIG={os.environ['TF_CONFIG']}"
        )


def tensorflow_scope():
    """Returns the scope of all local devices on TensorFlow."""
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(
        tf.config.list_logical_devices("GPU")
        or tf.config.list_logical_devices("CPU")
    ).scope()


def jax_scope():
    """Returns the scope of the devices of all hosts on JAX."""
    # Each host reads its own rows already.
    return keras.distribution.DataParallel(auto_shard_dataset=False).scope()


SCOPES = {"tensorflow": tensorflow_scope, "jax": jax_scope}


def gpus():
    """Lists the GPUs of the host as `CUDA_VISIBLE_DEVICES` names them.

    TensorFlow says which there are, whatever the backend: JAX would take their
    memory to do so.
    """
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
