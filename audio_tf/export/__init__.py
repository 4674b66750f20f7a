"""SavedModels for TensorFlow Serving and other runtimes; needs TensorFlow."""

from audio_tf.export.loading import ExportedClassifier, saved_model_folder
from audio_tf.export.saved_model import export

__all__ = ["ExportedClassifier", "export", "saved_model_folder"]
