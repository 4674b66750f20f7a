"""Audio files and sample rates, on the host and in a TensorFlow graph.

Only the modules `graph_...` import TensorFlow when they are imported.
"""

from audio_tf.audio.decode import AudioError, load_audio, read_audio
from audio_tf.audio.resampling import RESAMPLER, resample

__all__ = [
    "RESAMPLER",
    "AudioError",
    "load_audio",
    "read_audio",
    "resample",
]
