"""A corpus to batches: decoded, cached, chunked; needs TensorFlow."""

from audio_tf.audio.decoders import DECODERS
from audio_tf.data.cache import AudioCache, default_cache_dir
from audio_tf.data.chunks import Chunks
from audio_tf.data.clips import Clips, prepare
from audio_tf.data.decoding import decode_files
from audio_tf.data.feature_cache import cache_features
from audio_tf.data.frame_labels import PADDING_LABEL, Frames, align_labels
from audio_tf.data.limits import limit_lengths
from audio_tf.data.loading import TASKS, load
from audio_tf.data.scoring import score_clips
from audio_tf.data.shared_audio import same_audio
from audio_tf.data.utterances import Utterances

__all__ = [
    "DECODERS",
    "PADDING_LABEL",
    "TASKS",
    "AudioCache",
    "Chunks",
    "Clips",
    "Frames",
    "Utterances",
    "align_labels",
    "cache_features",
    "decode_files",
    "default_cache_dir",
    "limit_lengths",
    "load",
    "prepare",
    "same_audio",
    "score_clips",
]
