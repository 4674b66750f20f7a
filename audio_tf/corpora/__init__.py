"""Corpora: which files there are, and what they are labelled with."""

from audio_tf.corpora.alignments import (
    PADDING_LABEL,
    PHONE_RATE_HZ,
    align_labels,
    read_phone_names,
    read_phones,
    read_utterance_list,
)
from audio_tf.corpora.layouts import Layout
from audio_tf.corpora.sound import (
    CORPORA,
    Corpus,
    load_corpus,
    read_csv,
    read_esc,
    read_folders,
    read_fsd50k,
)
from audio_tf.corpora.speech import SpeechCorpus
from audio_tf.corpora.speech_readers import (
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
from audio_tf.corpora.synthetic import write_synthetic_corpus

__all__ = [
    "CORPORA",
    "FSDD_OFFICIAL_SPLITS",
    "FSDD_SPLITS",
    "LIBRISPEECH_SUBSETS",
    "PADDING_LABEL",
    "PHONE_RATE_HZ",
    "SPEECH",
    "Corpus",
    "Layout",
    "SpeechCorpus",
    "align_labels",
    "load_corpus",
    "load_speech",
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
    "write_synthetic_corpus",
]
