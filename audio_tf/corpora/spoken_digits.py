"""The Free Spoken Digit Dataset, split by the number of the recording."""

import pathlib
import re

from audio_tf.corpora import phones
from audio_tf.corpora.audio_files import audio_below
from audio_tf.corpora.corpus import check_splits
from audio_tf.corpora.labels import compose_unicode
from audio_tf.corpora.speech_corpus import collect

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


def read_fsdd(data_dir, splits=None, strict=False):
    """Reads the Free Spoken Digit Dataset, split by index.

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
    used = [index for indices in splits.values() for index in indices]
    if len(set(used)) < len(used):
        raise ValueError(
            f"Each index must be in one split only. Received: {splits}"
        )
    found, indices, unknown, unused = [], [], [], []
    for file in audio_below(data_dir / "recordings"):
        match = re.fullmatch(
            r"([0-9])_(.+)_([0-9]+)", compose_unicode(file.stem)
        )
        if match is None:
            unknown.append(file.name)
            continue
        found.append((file, match[0], match[2]))
        indices.append(int(match[3]))
        if indices[-1] not in used:
            unused.append(match[0])
    corpus = collect(found)
    found = {
        "files not named digit_speaker_index": unknown,
        "utterances in no split": unused,
    }
    corpus = corpus.reporting(found, strict)
    alignment = data_dir / "converted_aligned_phones.txt"
    if alignment.is_file():
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
