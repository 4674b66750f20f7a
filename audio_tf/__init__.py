"""End-to-end audio classification in Keras 3: waveform in, labels out.

Importing the package registers every layer and model with Keras, so that
`keras.saving.load_model` can load them. It imports no TensorFlow of its own:
`audio_tf.data` and `audio_tf.export` do, and are imported by name.
"""

import os
import sys

if os.path.basename(sys.argv[0]) == "audio-tf":
    # TensorFlow writes notes on start-up to the terminal as it is imported.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from audio_tf import attention, layers, models  # noqa: E402
from audio_tf.version import __version__  # noqa: E402

__all__ = ["__version__", "attention", "layers", "models"]
