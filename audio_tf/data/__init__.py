"""A corpus to batches: decoded, cached, chunked; needs TensorFlow."""

from audio_tf.data.cache import AudioCache, default_cache_dir
from audio_tf.data.chunks import Chunks, score_clips
from audio_tf.data.clips import (
    DECODERS,
    Clips,
    decode_dataset,
    describe,
    prepare,
)
from audio_tf.data.feature_cache import cache_features
from audio_tf.data.frame_labels import PADDING_LABEL, align_labels
from audio_tf.data.utterances import Frames, Utterances, limit_lengths

__all__ = [
    "DECODERS",
    "PADDING_LABEL",
    "AudioCache",
    "Chunks",
    "Clips",
    "Frames",
    "Utterances",
    "align_labels",
    "cache_features",
    "decode_dataset",
    "default_cache_dir",
    "describe",
    "limit_lengths",
    "prepare",
    "score_clips",
]
