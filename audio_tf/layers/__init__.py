"""Layers of audio models, in `keras.ops` alone."""

from audio_tf.layers.encoder import (
    FeedForward,
    SinusoidalPositions,
    TransformerBlock,
)
from audio_tf.layers.frontend import FrameMask, WaveformFrontend
from audio_tf.layers.multiscale import MultiScaleAverage
from audio_tf.layers.pooling import MaskedMean, TemporalAveragePooling

__all__ = [
    "FeedForward",
    "FrameMask",
    "MaskedMean",
    "MultiScaleAverage",
    "SinusoidalPositions",
    "TemporalAveragePooling",
    "TransformerBlock",
    "WaveformFrontend",
]
