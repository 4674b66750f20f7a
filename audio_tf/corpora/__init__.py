"""Corpora: which files there are, and which labels they have.

Nothing is decoded and no TensorFlow is imported here. `CORPORA` and `SPEECH`
in `tables.py` name the corpora that commands and scripts can read.
"""

from audio_tf.audio.audio_files import audio_below, list_files
from audio_tf.corpora.arabic_speech_commands import (
    read_arabic_speech_commands,
)
from audio_tf.corpora.class_folders import read_folders
from audio_tf.corpora.corpus import SPLITS, Corpus
from audio_tf.corpora.csv_file import read_csv
from audio_tf.corpora.emodb import read_emodb
from audio_tf.corpora.emotions import read_crema_d, read_ravdess
from audio_tf.corpora.esc import read_esc
from audio_tf.corpora.fsd50k import read_fsd50k
from audio_tf.corpora.iemocap import read_iemocap
from audio_tf.corpora.layouts import Layout
from audio_tf.corpora.librispeech import (
    LIBRISPEECH_SUBSETS,
    read_librispeech,
    read_librispeech_speakers,
)
from audio_tf.corpora.phones import (
    PHONE_RATE_HZ,
    read_phone_names,
    read_phones,
    read_utterance_list,
)
from audio_tf.corpora.protocols import Protocol
from audio_tf.corpora.speech_commands import read_speech_commands
from audio_tf.corpora.speech_corpus import SpeechCorpus
from audio_tf.corpora.speech_folder import read_speech_folder
from audio_tf.corpora.spoken_digits import (
    FSDD_CLASSES,
    FSDD_OFFICIAL_SPLITS,
    FSDD_SPLITS,
    read_fsdd,
    read_fsdd_clips,
)
from audio_tf.corpora.synthetic import write_synthetic_corpus
from audio_tf.corpora.tables import CORPORA, SPEECH, load_corpus, load_speech
from audio_tf.corpora.tfds_librispeech import read_tfds_librispeech

__all__ = [
    "CORPORA",
    "FSDD_CLASSES",
    "FSDD_OFFICIAL_SPLITS",
    "FSDD_SPLITS",
    "LIBRISPEECH_SUBSETS",
    "PHONE_RATE_HZ",
    "SPEECH",
    "SPLITS",
    "Corpus",
    "Layout",
    "Protocol",
    "SpeechCorpus",
    "audio_below",
    "list_files",
    "load_corpus",
    "load_speech",
    "read_arabic_speech_commands",
    "read_crema_d",
    "read_csv",
    "read_emodb",
    "read_esc",
    "read_folders",
    "read_fsd50k",
    "read_fsdd",
    "read_fsdd_clips",
    "read_iemocap",
    "read_librispeech",
    "read_librispeech_speakers",
    "read_phone_names",
    "read_phones",
    "read_ravdess",
    "read_speech_commands",
    "read_speech_folder",
    "read_tfds_librispeech",
    "read_utterance_list",
    "write_synthetic_corpus",
]
