"""The Free Spoken Digit Dataset, split by the number of the recording."""

import pathlib
import re
import typing

from audio_tf.audio.audio_files import audio_below
from audio_tf.corpora import phones
from audio_tf.corpora.arguments import (
    check_in_one_split,
    check_names,
    check_numbers_by_split,
)
from audio_tf.corpora.corpus import Corpus, check_splits, split_by_speaker
from audio_tf.corpora.labels import compose_unicode
from audio_tf.corpora.lists import is_there
from audio_tf.corpora.protocols import without
from audio_tf.corpora.speech_corpus import collect
from audio_tf.ops.checks import closest

# Indices of recordings. The first leaves the official test split, 0 to 4,
# untouched.
FSDD_SPLITS = {
    "train": range(15, 50),
    "val": range(10, 15),
    "test": range(5, 10),
}
FSDD_OFFICIAL_SPLITS = {
    "train": range(10, 50),
    "val": range(5, 10),
    "test": range(5),
}

FSDD_PROTOCOL = without(
    ("val_speakers", "test_speakers"), "recordings 0 to 4 are the test"
)

# What a clip may be labelled with: attributes of `Recording`.
FSDD_CLASSES = {"digits": "digit", "speakers": "speaker"}


class Recording(typing.NamedTuple):
    """A recording and all that its name says.

    Attributes:
        file: `pathlib.Path`.
        name: str, the name without its suffix.
        digit: str, what is spoken.
        speaker: str, who speaks.
        index: int, the number of the recording.
    """

    file: pathlib.Path
    name: str
    digit: str
    speaker: str
    index: int


def find_recordings(data_dir):
    """Lists the files `recordings/{digit}_{speaker}_{index}.wav`.

    Args:
        data_dir: `pathlib.Path` of the folder that holds `recordings`.

    Returns:
        Pair of a list of `Recording`, sorted by file, and a list of the audio
        files that have another name.

    Raises:
        FileNotFoundError: if there is no folder `recordings`.
    """
    found, others = [], []
    for file in audio_below(data_dir / "recordings"):
        match = re.fullmatch(
            r"([0-9])_(.+)_([0-9]+)", compose_unicode(file.stem)
        )
        if match is None:
            others.append(file)
        else:
            found.append(
                Recording(file, match[0], match[1], match[2], int(match[3]))
            )
    return found, others


def read_fsdd(data_dir, splits=None, strict=False):
    """Reads the Free Spoken Digit Dataset, split by index.

    ```python
    splits = read_fsdd("free-spoken-digit-dataset", FSDD_OFFICIAL_SPLITS)
    splits["train"].speakers
    ```

    An utterance is `recordings/{digit}_{speaker}_{index}.wav`. If
    `converted_aligned_phones.txt` and `phones.txt` are beside `recordings`,
    utterances have phones. An audio file of another name is left out and is
    in the report; one that is bad is left out when it is decoded.

    Args:
        data_dir: the folder that holds `recordings`.
        splits: dict by split of collections of indices; `FSDD_SPLITS` if
            `None`, which never touches the official test split, as
            `FSDD_OFFICIAL_SPLITS` does.
        strict: bool. If True, whatever does not fit is an error instead of
            an entry in the report.

    Returns:
        Dict of `SpeechCorpus` by split.

    Raises:
        ValueError: if an index is in two splits, or a split is empty.
    """
    data_dir = pathlib.Path(data_dir)
    splits = FSDD_SPLITS if splits is None else splits
    check_numbers_by_split(splits=splits)
    used = check_in_one_split("index", splits)
    recordings, others = find_recordings(data_dir)
    corpus = collect(
        [(each.file, each.name, each.speaker) for each in recordings]
    )
    indices = [each.index for each in recordings]
    found = {
        "files not named digit_speaker_index": [file.name for file in others],
        "utterances in no split": [
            each.name for each in recordings if each.index not in used
        ],
    }
    corpus = corpus.reporting(found, strict)
    alignment = data_dir / "converted_aligned_phones.txt"
    if is_there(alignment):
        names = phones.read_phone_names(data_dir / "phones.txt")
        corpus = corpus.with_frame_labels(
            phones.read_phones(alignment, len(names)),
            label_names=names,
            strict=strict,
        )
    rows = {
        split: [row for row, index in enumerate(indices) if index in chosen]
        for split, chosen in splits.items()
    }
    for split in splits:
        if not rows[split]:
            raise ValueError(
                f"{data_dir}: no recording of the split {split}. "
                f"Received: {splits[split]}"
            )
    return check_splits(
        data_dir, {split: corpus.select(each) for split, each in rows.items()}
    )


def read_fsdd_clips(
    data_dir, classes="digits", val_speakers=(), test_speakers=()
):
    """Reads the Free Spoken Digit Dataset as clips to classify.

    ```python
    splits = read_fsdd_clips(
        "free-spoken-digit-dataset", "digits", test_speakers=["theo"]
    )
    ```

    Without speakers it is split by index, as `FSDD_OFFICIAL_SPLITS` says: the
    test is the official one, recordings 0 to 4, and validation is cut from
    the official training split, 5 to 49. With speakers it is split by them
    alone, whatever the index.

    Args:
        data_dir: the folder that holds `recordings`, whose files are
            `{digit}_{speaker}_{index}.wav`.
        classes: str, what a clip is labelled with: `"digits"` or
            `"speakers"`.
        val_speakers: list of str, the speakers of the split val.
        test_speakers: list of str, the speakers of the split test.

    Returns:
        Dict of `Corpus` by split: train, val, test. A split without a
        recording has no clips, as the official test where it is held back.

    Raises:
        FileNotFoundError: if there is no folder `recordings`.
        ValueError: if a file has another name or an index of no split, two
            files are one recording, `classes` is unknown, or speakers are to
            be told apart who are in one split alone; see also
            `split_by_speaker`.
    """
    data_dir = pathlib.Path(data_dir)
    if classes not in FSDD_CLASSES:
        raise ValueError(
            f"`classes` must be one of {list(FSDD_CLASSES)}"
            f"{closest(classes, FSDD_CLASSES)}. Received: classes={classes!r}"
        )
    check_names(val_speakers=val_speakers, test_speakers=test_speakers)
    by_speaker = bool(val_speakers or test_speakers)
    if by_speaker and classes == "speakers":
        raise ValueError(
            "`val_speakers` and `test_speakers` apply to digits alone: a "
            "speaker who is not in train cannot be told. Received: "
            f"classes={classes!r}, val_speakers={list(val_speakers)}, "
            f"test_speakers={list(test_speakers)}"
        )
    recordings, others = find_recordings(data_dir)
    if others:
        raise ValueError(
            f"{others[0]}: must be named digit_speaker_index. "
            f"Received: {len(others)} files that are not"
        )
    names = [getattr(each, FSDD_CLASSES[classes]) for each in recordings]
    speech = collect(
        [(each.file, each.name, each.speaker) for each in recordings]
    )
    speakers = [each.speaker for each in recordings]
    corpus = Corpus(
        speech.files,
        [[name] for name in names],
        sorted(set(names)),
        # Who is left out cannot be told.
        groups=None if classes == "speakers" else speakers,
        sources=None if classes == "speakers" else speakers,
        source_kind=None if classes == "speakers" else "speaker",
    )
    if by_speaker:
        splits = split_by_speaker(
            data_dir, corpus, speakers, val_speakers, test_speakers
        )
        return check_splits(data_dir, splits)
    rows = {split: [] for split in FSDD_OFFICIAL_SPLITS}
    for row, each in enumerate(recordings):
        owners = [
            split
            for split, indices in FSDD_OFFICIAL_SPLITS.items()
            if each.index in indices
        ]
        if not owners:
            raise ValueError(
                f"{each.file}: its index is in no split of "
                f"{FSDD_OFFICIAL_SPLITS}. Received: {each.index}"
            )
        rows[owners[0]].append(row)
    return check_splits(
        data_dir, {split: corpus.select(each) for split, each in rows.items()}
    )
