"""Training over several devices or hosts, by the backend's own means."""

import contextlib
import os

import keras

# Keras spreads training itself on JAX; on TensorFlow `tf.distribute` does.
STRATEGIES = ("none", "data_parallel")


def scope(strategy):
    """A context in which models are built and loaded for a strategy.

    Batches are shared evenly by all devices that the backend sees. Several
    hosts: on TensorFlow each runs the same command with its `TF_CONFIG`; on
    JAX with `KERAS_DISTRIBUTION_JOB_ADDRESSES`,
    `KERAS_DISTRIBUTION_NUM_PROCESSES` and `KERAS_DISTRIBUTION_PROCESS_ID`.

    Args:
        strategy: `"none"` or `"data_parallel"`: all devices hold the same
            weights.

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
    if "KERAS_DISTRIBUTION_JOB_ADDRESSES" in os.environ:
        keras.distribution.initialize()
    return keras.distribution.DataParallel().scope()


SCOPES = {"tensorflow": tensorflow_scope, "jax": jax_scope}
