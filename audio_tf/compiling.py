"""Whether models are compiled by XLA, on each backend of Keras."""

import keras


def jit_compile():
    """Returns `jit_compile` of `keras.Model.compile`, where nobody says it.

    TensorFlow runs graphs without XLA, which would compile longer than small
    models run. JAX has no other graphs: it would run each operation by
    itself, a hundred times slower.
    """
    return keras.backend.backend() == "jax"
