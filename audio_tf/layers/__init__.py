"""Layers of audio models, in `keras.ops` alone."""

from audio_tf.layers.augment_spectrogram import (
    BandMasking,
    TimeMasking,
    VocalTractPerturbation,
)
from audio_tf.layers.augment_speed import SpeedPerturbation
from audio_tf.layers.augment_waveform import (
    AdditiveNoise,
    PolarityInversion,
    RandomCrop,
    RandomGain,
    TimeShift,
)
from audio_tf.layers.cepstral import MFCC
from audio_tf.layers.compression import PCEN, LogCompression
from audio_tf.layers.convolution import (
    BandPooling,
    Convolution,
    ConvolutionBlock,
)
from audio_tf.layers.convolutional_frontend import (
    ChannelNorm,
    ConvolutionalFrontend,
)
from audio_tf.layers.convolutional_positions import ConvolutionalPositions
from audio_tf.layers.densely_connected import (
    DenselyConnectedBlock,
    DenseTransition,
    NormalizedReLU,
)
from audio_tf.layers.encoder import FrameNorm, TransformerBlock
from audio_tf.layers.features import SpeechFeatures
from audio_tf.layers.feed_forward import FeedForward
from audio_tf.layers.frame_masking import (
    MASKING_POLICIES,
    FrameMasking,
    LearnedFrameMasking,
)
from audio_tf.layers.frames import Deltas, FrameStacking, UtteranceNorm
from audio_tf.layers.frontend import FrameMask, WaveformFrontend
from audio_tf.layers.mel_frontend import MelFrontend
from audio_tf.layers.mixing import BetweenClassMixing, Mixup
from audio_tf.layers.multiscale import MultiScaleAverage
from audio_tf.layers.patches import MelPatches
from audio_tf.layers.pooling import (
    LastStatesPooling,
    MaskedMean,
    MaxMeanPooling,
    TemporalAveragePooling,
    TemporalMaxPooling,
)
from audio_tf.layers.positions import SinusoidalPositions
from audio_tf.layers.recurrent import BidirectionalGRU
from audio_tf.layers.residual import ResidualBlock
from audio_tf.layers.spectral import DecibelSpectrogram, LogMel, Spectrogram
from audio_tf.layers.statistics import AttentionPooling, StatisticsPooling

__all__ = [
    "MASKING_POLICIES",
    "AdditiveNoise",
    "AttentionPooling",
    "BandMasking",
    "BandPooling",
    "BetweenClassMixing",
    "BidirectionalGRU",
    "ChannelNorm",
    "Convolution",
    "ConvolutionBlock",
    "ConvolutionalFrontend",
    "ConvolutionalPositions",
    "DecibelSpectrogram",
    "Deltas",
    "DenseTransition",
    "DenselyConnectedBlock",
    "FeedForward",
    "FrameMask",
    "FrameMasking",
    "FrameNorm",
    "FrameStacking",
    "LastStatesPooling",
    "LearnedFrameMasking",
    "LogCompression",
    "LogMel",
    "MFCC",
    "MaskedMean",
    "MaxMeanPooling",
    "MelFrontend",
    "MelPatches",
    "Mixup",
    "MultiScaleAverage",
    "NormalizedReLU",
    "PCEN",
    "PolarityInversion",
    "RandomCrop",
    "RandomGain",
    "ResidualBlock",
    "SinusoidalPositions",
    "Spectrogram",
    "SpeechFeatures",
    "SpeedPerturbation",
    "StatisticsPooling",
    "TemporalAveragePooling",
    "TemporalMaxPooling",
    "TimeMasking",
    "TimeShift",
    "TransformerBlock",
    "UtteranceNorm",
    "VocalTractPerturbation",
    "WaveformFrontend",
]
