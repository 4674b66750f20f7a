"""Backbones and tasks, on KerasHub's `Backbone` and `Task`."""

from audio_tf.models.audio_albert import AudioAlbertBackbone, WeightedSum
from audio_tf.models.audio_transformer import AudioTransformerBackbone
from audio_tf.models.backbone import AudioBackbone
from audio_tf.models.classifier import AudioClassifier
from audio_tf.models.masked_acoustic_model import MaskedAcousticModel
from audio_tf.models.speech_encoder import SpeechEncoder

__all__ = [
    "AudioAlbertBackbone",
    "AudioBackbone",
    "AudioClassifier",
    "AudioTransformerBackbone",
    "MaskedAcousticModel",
    "SpeechEncoder",
    "WeightedSum",
]
