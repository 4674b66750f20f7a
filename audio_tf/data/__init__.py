"""Audio files to batches: decode, resample, cache, chunk; needs TensorFlow."""

from audio_tf.data.alignments import (
    PADDING_LABEL,
    PHONE_RATE_HZ,
    align_labels,
    read_phone_names,
    read_phones,
    read_utterance_list,
)
from audio_tf.data.cache import AudioCache, default_cache_dir
from audio_tf.data.chunks import Chunks, score_clips
from audio_tf.data.corpora import (
    CORPORA,
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
from audio_tf.data.feature_cache import cache_features
from audio_tf.data.layouts import Layout
from audio_tf.data.pipeline import (
    DECODERS,
    Clips,
    decode_dataset,
    describe,
    prepare,
)
from audio_tf.data.speech import SpeechCorpus
from audio_tf.data.speech_readers import (
    FSDD_OFFICIAL_SPLITS,
    FSDD_SPLITS,
    LIBRISPEECH_SUBSETS,
    SPEECH,
    load_speech,
    read_fsdd,
    read_librispeech,
    read_librispeech_speakers,
    read_speech_folder,
    read_tfds_librispeech,
)
from audio_tf.data.synthetic import write_synthetic_corpus
from audio_tf.data.utterances import Frames, Utterances, limit_lengths

__all__ = [
    "CORPORA",
    "DECODERS",
    "FSDD_OFFICIAL_SPLITS",
    "FSDD_SPLITS",
    "LIBRISPEECH_SUBSETS",
    "PADDING_LABEL",
    "PHONE_RATE_HZ",
    "RESAMPLER",
    "SPEECH",
    "AudioCache",
    "AudioError",
    "Chunks",
    "Clips",
    "Corpus",
    "Frames",
    "Layout",
    "SpeechCorpus",
    "Utterances",
    "align_labels",
    "cache_features",
    "decode_dataset",
    "default_cache_dir",
    "describe",
    "limit_lengths",
    "load_audio",
    "load_corpus",
    "load_speech",
    "prepare",
    "read_audio",
    "read_csv",
    "read_esc",
    "read_folders",
    "read_fsd50k",
    "read_fsdd",
    "read_librispeech",
    "read_librispeech_speakers",
    "read_phone_names",
    "read_phones",
    "read_speech_folder",
    "read_tfds_librispeech",
    "read_utterance_list",
    "resample",
    "score_clips",
    "write_synthetic_corpus",
]
