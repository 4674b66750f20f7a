"""Audio files to batches: decode, resample, cache, chunk; needs TensorFlow."""

from audio_tf.data.cache import AudioCache, default_cache_dir
from audio_tf.data.corpora import (
    Corpus,
    load_corpus,
    read_csv,
    read_esc,
    read_folders,
    read_fsd50k,
)
from audio_tf.data.decode import (
    RESAMPLER,
    AudioError,
    load_audio,
    read_audio,
    resample,
)
from audio_tf.data.pipeline import (
    DECODERS,
    Chunks,
    Clips,
    decode_dataset,
    describe,
    prepare,
    score_clips,
)
from audio_tf.data.synthetic import write_synthetic_corpus

__all__ = [
    "DECODERS",
    "RESAMPLER",
    "AudioCache",
    "AudioError",
    "Chunks",
    "Clips",
    "Corpus",
    "decode_dataset",
    "default_cache_dir",
    "describe",
    "load_audio",
    "load_corpus",
    "prepare",
    "read_audio",
    "read_csv",
    "read_esc",
    "read_folders",
    "read_fsd50k",
    "resample",
    "score_clips",
    "write_synthetic_corpus",
]
