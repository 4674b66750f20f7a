"""The tables of corpora by name: one line each, all else follows from it.

To add a corpus, write a function from `data_dir` and further options to a
dict of `Corpus` (of `SpeechCorpus`, for utterances with speakers) by split in
a file of its own, and add a line here. `--dataset` of the command line and of
the scripts then takes its name, help texts have its meaning, and an option
that its function does not take is refused.
"""

from audio_tf.corpora import layouts
from audio_tf.corpora.arabic_speech_commands import (
    read_arabic_speech_commands,
)
from audio_tf.corpora.class_folders import read_folders
from audio_tf.corpora.csv_file import read_csv
from audio_tf.corpora.emodb import read_emodb
from audio_tf.corpora.emotions import read_crema_d, read_ravdess
from audio_tf.corpora.esc import ESC_PROTOCOL, read_esc10, read_esc50
from audio_tf.corpora.fsd50k import read_fsd50k
from audio_tf.corpora.iemocap import IEMOCAP_PROTOCOL, read_iemocap
from audio_tf.corpora.layouts import Layout
from audio_tf.corpora.librispeech import (
    LIBRISPEECH_PROTOCOL,
    LIBRISPEECH_SUBSETS,
    read_librispeech,
)
from audio_tf.corpora.protocols import AS_RELEASED
from audio_tf.corpora.speech_commands import read_speech_commands
from audio_tf.corpora.speech_folder import read_speech_folder
from audio_tf.corpora.spoken_digits import (
    FSDD_PROTOCOL,
    read_fsdd,
    read_fsdd_clips,
)
from audio_tf.corpora.synthetic import read_synthetic
from audio_tf.corpora.tfds_librispeech import read_tfds_librispeech

# Clips with labels, for classification.
CORPORA = {
    "synthetic": Layout(
        read_synthetic,
        "sounds that are made here, to try everything",
        makes_its_own=True,
        protocol=AS_RELEASED,
    ),
    "fsd50k": Layout(
        read_fsd50k,
        "FSD50K as released, its folders or their archives",
        marks=("FSD50K.ground_truth",),
        protocol=AS_RELEASED,
    ),
    "esc10": Layout(
        read_esc10,
        "ESC-10, alone or within ESC-50",
        marks=("esc10.csv",),
        protocol=ESC_PROTOCOL,
    ),
    "esc50": Layout(
        read_esc50,
        "ESC-50 as released",
        marks=("meta/esc50.csv", "esc50.csv"),
        protocol=ESC_PROTOCOL,
    ),
    "arabic_speech_commands": Layout(
        read_arabic_speech_commands,
        "Arabic Speech Commands as released",
        marks=("train.csv",),
        protocol=AS_RELEASED,
    ),
    "speech_commands": Layout(
        read_speech_commands,
        "Google Speech Commands as released, all words",
        marks=("validation_list.txt",),
        protocol=AS_RELEASED,
    ),
    "emodb": Layout(
        read_emodb, "EmoDB's files, split by speaker", marks=("wav",)
    ),
    "ravdess": Layout(
        read_ravdess, "the speech of RAVDESS, by speaker", marks=("Actor_01",)
    ),
    "crema_d": Layout(
        read_crema_d,
        "CREMA-D's AudioWAV, split by speaker",
        marks=("AudioWAV",),
    ),
    "iemocap": Layout(
        read_iemocap,
        "IEMOCAP, split by session",
        marks=("Session1",),
        protocol=IEMOCAP_PROTOCOL,
    ),
    "fsdd": Layout(
        read_fsdd_clips,
        "spoken digits, split by index or by speaker",
        marks=("recordings",),
        protocol=FSDD_PROTOCOL,
    ),
    "folders": Layout(read_folders, "a folder per class, or splits of such"),
    "csv": Layout(
        read_csv, "a file with the header filename,labels[,split][,source]"
    ),
}

# Utterances with speakers and phones, for pre-training and probes.
SPEECH = {
    "librispeech": Layout(
        read_librispeech,
        "the folders of LibriSpeech as released",
        marks=("LibriSpeech", *LIBRISPEECH_SUBSETS),
        protocol=LIBRISPEECH_PROTOCOL,
    ),
    "tfds_librispeech": Layout(
        read_tfds_librispeech,
        "LibriSpeech that TFDS has prepared",
        protocol=LIBRISPEECH_PROTOCOL,
    ),
    "fsdd": Layout(
        read_fsdd,
        "spoken digits, with splits of their own",
        marks=("recordings",),
    ),
    "folder": Layout(read_speech_folder, "all audio in a folder and below"),
}


def load_corpus(dataset, data_dir, **options):
    """Reads a corpus of clips by the name of its layout.

    ```python
    splits = audio_tf.corpora.load_corpus("fsd50k", "FSD50K")
    splits["train"].vocabulary
    ```

    Args:
        dataset: str, a key of `CORPORA`.
        data_dir: path of the folder; for `"csv"` of the file.
        **options: further arguments of the layout's reader, see
            `Layout.takes`.

    Returns:
        Dict of `Corpus` by split.

    Raises:
        TypeError: if no layout takes one of the options.
        ValueError: if there is no such layout, it does not take an option, or
            the corpus contradicts itself.
        FileNotFoundError: if the folder or a list of the corpus is missing;
            missing audio is found when it is decoded.
    """
    return layouts.load(CORPORA, dataset, data_dir, options)


def load_speech(dataset, data_dir, **options):
    """Reads a corpus of speech by the name of its layout.

    ```python
    splits = audio_tf.corpora.load_speech("fsdd", "free-spoken-digit-dataset")
    splits["train"].speakers
    ```

    Args:
        dataset: str, a key of `SPEECH`.
        data_dir: path of the folder.
        **options: further arguments of the layout's reader, see
            `Layout.takes`.

    Returns:
        Dict of `SpeechCorpus` by split.

    Raises:
        TypeError: if no layout takes one of the options.
        ValueError: if there is no such layout, it does not take an option, or
            the corpus contradicts itself.
        FileNotFoundError: if the folder or a list is missing; missing audio
            is found when it is decoded.
    """
    return layouts.load(SPEECH, dataset, data_dir, options)
