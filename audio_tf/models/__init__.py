"""Backbones and tasks, on KerasHub's `Backbone` and `Task`."""

from audio_tf.models.audio_transformer import AudioTransformerBackbone
from audio_tf.models.backbone import AudioBackbone
from audio_tf.models.classifier import AudioClassifier

__all__ = ["AudioBackbone", "AudioClassifier", "AudioTransformerBackbone"]
