"""End-to-end audio classification in Keras 3: waveform in, labels out.

Importing the package registers layers, models and optimizers with Keras, so
that `keras.saving.load_model` can load them. It imports no TensorFlow of its
own: `audio_tf.data` and `audio_tf.export` do, and are imported by name.
"""

from audio_tf import attention, layers, models, optimizers
from audio_tf.version import __version__

__all__ = ["__version__", "attention", "layers", "models", "optimizers"]
