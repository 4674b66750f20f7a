"""Training, evaluation, pre-training and probing: settings, runs, records.

Runs are programs, on whose terminal TensorFlow has nothing to say: it is
imported here first, quietly, and gives no advice on several models.
"""

from audio_tf import quiet

with quiet.tensorflow():
    import keras  # noqa: F401

    # Which Keras on another backend has not loaded.
    import tensorflow  # noqa: F401

quiet.hide_retracing()
