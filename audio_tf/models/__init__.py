"""Backbones and tasks, on KerasHub's `Backbone` and `Task`.

`BACKBONES` maps names to classes. The contract that every one of them keeps
is that of `AudioBackbone`.
"""

from audio_tf import released
from audio_tf.models import conversion  # noqa: F401, registers itself
from audio_tf.models.attention_modules import ATTENTION_MODULES
from audio_tf.models.audio_albert import AudioAlbertBackbone, WeightedSum
from audio_tf.models.audio_transformer import AudioTransformerBackbone
from audio_tf.models.backbone import AudioBackbone
from audio_tf.models.classifier import AudioClassifier
from audio_tf.models.crnn import CRNNBackbone
from audio_tf.models.densenet import DenseNet121Backbone
from audio_tf.models.distillation import Distiller
from audio_tf.models.gaussian_adaptive_decoder import GaussianAdaptiveDecoder
from audio_tf.models.gaussian_adaptive_transformer import (
    GaussianAdaptiveTransformer,
)
from audio_tf.models.masked_acoustic_model import MaskedAcousticModel
from audio_tf.models.mel_resnet import MelResNetBackbone
from audio_tf.models.preprocessor import (
    AudioClassifierPreprocessor,
    WaveformConverter,
)
from audio_tf.models.presets import (
    list_released,
    list_sizes,
    register_released,
)
from audio_tf.models.resnet import ResNet18Backbone
from audio_tf.models.speech_encoder import SpeechEncoder
from audio_tf.models.training import ClassifierTraining
from audio_tf.models.vgg_like import VGGLikeBackbone
from audio_tf.models.wavlm import WavLMBackbone

BACKBONES = {
    "audio_transformer": AudioTransformerBackbone,
    "audio_albert": AudioAlbertBackbone,
    "speech_encoder": SpeechEncoder,
    "vgg_like": VGGLikeBackbone,
    "mel_resnet": MelResNetBackbone,
    "crnn": CRNNBackbone,
    "resnet18": ResNet18Backbone,
    "densenet121": DenseNet121Backbone,
    "wavlm": WavLMBackbone,
}
register_released(released.ROOT)

__all__ = [
    "ATTENTION_MODULES",
    "BACKBONES",
    "AudioAlbertBackbone",
    "AudioBackbone",
    "AudioClassifier",
    "AudioClassifierPreprocessor",
    "AudioTransformerBackbone",
    "CRNNBackbone",
    "ClassifierTraining",
    "DenseNet121Backbone",
    "Distiller",
    "GaussianAdaptiveDecoder",
    "GaussianAdaptiveTransformer",
    "MaskedAcousticModel",
    "MelResNetBackbone",
    "ResNet18Backbone",
    "SpeechEncoder",
    "VGGLikeBackbone",
    "WavLMBackbone",
    "WaveformConverter",
    "WeightedSum",
    "list_released",
    "list_sizes",
    "register_released",
]
