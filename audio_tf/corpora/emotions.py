"""Acted emotional speech whose files are named after speaker and emotion."""

import pathlib
import re

from audio_tf.audio.audio_files import audio_below
from audio_tf.corpora.corpus import Corpus, check_splits, split_by_speaker
from audio_tf.corpora.speech_corpus import collect

# By the third number of a name.
RAVDESS = {
    "01": "neutral",
    "02": "calm",
    "03": "happiness",
    "04": "sadness",
    "05": "anger",
    "06": "fear",
    "07": "disgust",
    "08": "surprise",
}
CREMA_D = {
    "ANG": "anger",
    "DIS": "disgust",
    "FEA": "fear",
    "HAP": "happiness",
    "NEU": "neutral",
    "SAD": "sadness",
}


def read_ravdess(data_dir, val_speakers=(), test_speakers=()):
    """Reads the speech of RAVDESS by its file names.

    ```python
    splits = read_ravdess("RAVDESS", val_speakers=["11"], test_speakers=["12"])
    ```

    A clip is `Actor_12/03-01-06-01-02-01-12.wav`: audio alone, speech,
    fearful, normal, statement 2, repetition 1, actor 12. Recordings of song
    (`03-02-...`) are left out, they have other emotions. There is no official
    split.

    Args:
        data_dir: the folder that holds `Actor_01` to `Actor_24`.
        val_speakers: list of str, the actors of the split val, for example
            `["12"]`.
        test_speakers: list of str, the actors of the split test.

    Returns:
        Dict of `Corpus` by split: train, val, test, whose vocabulary is the
        eight emotions, sorted.

    Raises:
        FileNotFoundError: if there is no such folder, or no speech in it.
        ValueError: if a file has another name, two files are one clip, or the
            speakers do not fit; see `split_by_speaker`.
    """
    data_dir = pathlib.Path(data_dir)
    names = [file for file in audio_below(data_dir) if not is_song(file)]
    return read_names(
        data_dir,
        names,
        rf"03-01-(?P<emotion>{'|'.join(RAVDESS)})-0[12]-0[12]-0[12]-"
        r"(?P<speaker>[0-9]{2})",
        RAVDESS,
        "03-01-06-01-02-01-12",
        (val_speakers, test_speakers),
    )


def is_song(file):
    """Returns whether a file of RAVDESS is song, and not speech."""
    return re.match(r"03-02-", file.stem) is not None


def read_crema_d(data_dir, val_speakers=(), test_speakers=()):
    """Reads CREMA-D by its file names, labelled with what was acted.

    ```python
    splits = read_crema_d(
        "CREMA-D", val_speakers=["1001"], test_speakers=["1002", "1003"]
    )
    ```

    A clip is `AudioWAV/1001_DFA_ANG_XX.wav`: actor 1001, sentence DFA, angry,
    of unspecified intensity. There is no official split.

    Args:
        data_dir: the folder that holds `AudioWAV`.
        val_speakers: list of str, the actors of the split val.
        test_speakers: list of str, the actors of the split test.

    Returns:
        Dict of `Corpus` by split: train, val, test, whose vocabulary is the
        six emotions, sorted.

    Raises:
        FileNotFoundError: if there is no folder `AudioWAV`, or no audio in it.
        ValueError: if a file has another name, two files are one clip, or the
            speakers do not fit; see `split_by_speaker`.
    """
    data_dir = pathlib.Path(data_dir)
    return read_names(
        data_dir,
        audio_below(data_dir / "AudioWAV"),
        rf"(?P<speaker>[0-9]{{4}})_[A-Z]{{3}}_(?P<emotion>{'|'.join(CREMA_D)})"
        r"_(LO|MD|HI|XX|X)",
        CREMA_D,
        "1001_DFA_ANG_XX",
        (val_speakers, test_speakers),
    )


def read_names(where, found, pattern, emotions, example, held_out):
    """Reads files by their names, and splits them by speaker.

    Args:
        where: path of the corpus, for messages.
        found: list of the paths of the audio files.
        pattern: regular expression of a whole name without its suffix, with
            the groups `speaker` and `emotion`.
        emotions: dict of labels by what names have.
        example: str, a name that fits, for messages.
        held_out: pair of the speakers of val and of those of test.

    Returns:
        Dict of `Corpus` by split.

    Raises:
        FileNotFoundError: if there are no files.
        ValueError: if a file has another name, two files are one clip, or the
            speakers do not fit.
    """
    clips, labels, speakers = [], [], []
    for file in found:
        match = re.fullmatch(pattern, file.stem)
        if match is None:
            raise ValueError(
                f"{file}: must be named as {example} is, with one of "
                f"{', '.join(emotions)} for the emotion. "
                f"Received: {file.stem!r}"
            )
        clips.append((file, file.stem, match["speaker"]))
        labels.append([emotions[match["emotion"]]])
        speakers.append(match["speaker"])
    vocabulary = sorted(emotions.values())
    corpus = Corpus(collect(clips).files, labels, vocabulary)
    return check_splits(
        where, split_by_speaker(where, corpus, speakers, *held_out)
    )
