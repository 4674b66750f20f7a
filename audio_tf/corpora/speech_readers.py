"""Corpora of speech as their authors release them."""

import pathlib
import re

from audio_tf.corpora import alignments, layouts, tfds_speech
from audio_tf.corpora.alignments import normal
from audio_tf.corpora.layouts import Layout
from audio_tf.corpora.sound import audio_below, check_splits, random_splits
from audio_tf.corpora.speech import SpeechCorpus, collect

LIBRISPEECH_SUBSETS = (
    "train-clean-100",
    "train-clean-360",
    "train-other-500",
    "dev-clean",
    "dev-other",
    "test-clean",
    "test-other",
)
# Indices of FSDD. Its own test split, 0 to 4, is untouched by the first.
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


def read_librispeech(
    data_dir, subsets=None, alignment=None, lists=None, strict=False
):
    """LibriSpeech from its released folders.

    `LibriSpeech/<subset>/<speaker>/<chapter>/<speaker>-<chapter>-NNNN.flac`,
    as the archives unpack; nothing is decoded here. Speakers are the folders'
    numbers; where the release's `SPEAKERS.TXT` is there, it must agree.

    The phones and splits of train-clean-100 that CPC (arXiv 1807.03748)
    released:

    ```python
    splits = read_librispeech(
        data_dir,
        ["train-clean-100"],
        alignment="converted_aligned_phones.txt",
        lists={"train": "train_split.txt", "test": "test_split.txt"},
    )
    ```

    Args:
        data_dir: the folder `LibriSpeech`, or the one that holds it.
        subsets: names of folders, or a dict of such by split, whose subsets
            are joined; all seven that are there if `None`.
        alignment: path of a phone file, see `read_phones`, or `None`.
        lists: dict by split of lists of utterances, see
            `SpeechCorpus.split`. If `None`, the splits are those of
            `subsets`, or else the subsets themselves.
        strict: bool. If True, whatever does not fit is an error instead of
            an entry in the report.

    Returns:
        Dict of `SpeechCorpus` by split. The vocabulary has the speakers of
        all `subsets`, sorted as strings, as s3prl has them.

    Raises:
        FileNotFoundError: if a subset is not there or has no audio.
        ValueError: if an utterance is there twice, a subset is named twice,
            or `SPEAKERS.TXT` does not agree.
    """
    data_dir = pathlib.Path(data_dir)
    inner = data_dir / "LibriSpeech"
    root = inner if inner.is_dir() else data_dir
    if subsets is None:
        subsets = [
            each for each in LIBRISPEECH_SUBSETS if (root / each).is_dir()
        ]
    splits = {} if isinstance(subsets, str) else subsets_by_split(subsets)
    named = [each for group in splits.values() for each in group]
    if not named:
        raise FileNotFoundError(
            f"{root}: name the subsets, of {', '.join(LIBRISPEECH_SUBSETS)}. "
            f"Received: subsets={subsets!r}"
        )
    found, misplaced, origin = [], [], []
    for subset in named:
        before = len(found)
        for file in audio_below(root / subset):
            folders = file.relative_to(root / subset).parts[:-1]
            match = re.fullmatch(r"([0-9]+)-([0-9]+)-[0-9]+", file.stem)
            if match is None or match.groups() != folders:
                misplaced.append(file.relative_to(root).as_posix())
                continue
            found.append((file, file.stem, folders[0]))
            origin.append(subset)
        if len(found) == before:
            raise FileNotFoundError(f"{root / subset}: no utterances")
    if (root / "SPEAKERS.TXT").is_file():
        check_speakers(
            root / "SPEAKERS.TXT",
            {
                (each[2], subset)
                for each, subset in zip(found, origin, strict=True)
            },
        )
    corpus = collect(found).reporting(
        {"files not named by their folders": misplaced}, strict
    )
    if alignment is not None:
        corpus = corpus.with_frame_labels(
            alignments.read_phones(alignment), strict=strict
        )
    if lists is not None:
        return check_splits(root, corpus.split(lists, strict))
    rows = {subset: [] for subset in named}
    for row, subset in enumerate(origin):
        rows[subset].append(row)
    read = {subset: corpus.select(each) for subset, each in rows.items()}
    joined = {
        split: SpeechCorpus.join([read[each] for each in group])
        for split, group in splits.items()
        if group
    }
    return check_splits(root, joined)


def subsets_by_split(subsets):
    """Dict of lists of subsets by split; each is a split if no dict is given.

    Raises:
        ValueError: if a subset is named twice.
    """
    named = subsets
    if not isinstance(subsets, dict):
        subsets = {each: [each] for each in named}
    else:
        named = [each for group in subsets.values() for each in group]
    if len(set(named)) < len(named):
        raise ValueError(
            "Each subset must be named once, in one split. "
            f"Received: subsets={subsets}"
        )
    return subsets


def read_librispeech_speakers(path):
    """Speakers of LibriSpeech's `SPEAKERS.TXT`.

    Lines are `id | sex | subset | minutes | name`, comments begin with `;`,
    and a name may hold further bars.

    Returns:
        Dict by id, a str, of dicts with `sex`, `subset`, `minutes` (float)
        and `name`.

    Raises:
        ValueError: if a line has too few fields or a speaker occurs twice.
    """
    speakers = {}
    # Only names have letters beyond ASCII, and nothing depends on those.
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.startswith(";") or not line.strip():
                continue
            fields = [field.strip() for field in line.split("|", 4)]
            try:
                speaker, sex, subset, minutes, name = fields
                minutes = float(minutes)
            except ValueError:
                raise ValueError(
                    f"{path}, line {number}: must be ID | SEX | SUBSET | "
                    f"MINUTES | NAME. Received: {line.strip()!r}"
                ) from None
            if speaker in speakers:
                raise ValueError(
                    f"{path}, line {number}: speaker {speaker} occurs twice"
                )
            speakers[speaker] = {
                "sex": sex,
                "subset": subset,
                "minutes": minutes,
                "name": name,
            }
    return speakers


def check_speakers(path, pairs):
    """Raises a `ValueError` if a speaker is in another subset than listed.

    Args:
        path: the release's `SPEAKERS.TXT`.
        pairs: pairs of speaker and subset.
    """
    speakers = read_librispeech_speakers(path)
    for speaker, subset in sorted(pairs):
        if speaker not in speakers:
            raise ValueError(f"{path}: it lacks speaker {speaker} of {subset}")
        listed = speakers[speaker]["subset"]
        # Folders of one's own are no subsets of the release.
        if subset in LIBRISPEECH_SUBSETS and subset != listed:
            raise ValueError(
                f"{path}: speaker {speaker} is of {listed}. "
                f"Received: a folder in {subset}"
            )


def read_fsdd(data_dir, splits=None, strict=False):
    """The Free Spoken Digit Dataset, split by index.

    `recordings/{digit}_{speaker}_{index}.wav`. If
    `converted_aligned_phones.txt` and `phones.txt` are beside `recordings`,
    as in the project's own data, utterances have phones.

    Args:
        data_dir: the folder that holds `recordings`.
        splits: dict by split of indices; `FSDD_SPLITS` if `None`, which never
            touches the official test split. `FSDD_OFFICIAL_SPLITS` does.
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
        match = re.fullmatch(r"([0-9])_(.+)_([0-9]+)", normal(file.stem))
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
        names = alignments.read_phone_names(data_dir / "phones.txt")
        corpus = corpus.with_frame_labels(
            alignments.read_phones(alignment, len(names)),
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


def read_speech_folder(
    data_dir, alignment=None, lists=None, seed=0, strict=False
):
    """All audio in a folder and below.

    An utterance is the path within the folder, without the suffix and with
    `/` between folders; its speaker is the first folder of that path, not
    known for files at the top.

    Args:
        data_dir: the folder.
        alignment: path of a phone file, see `read_phones`, or `None`.
        lists: dict by split of lists of utterances, see
            `SpeechCorpus.split`. If `None`, 80 % of the files become train,
            10 % val and 10 % test.
        seed: int, seed of that draw.
        strict: bool. If True, whatever does not fit is an error instead of
            an entry in the report.

    Returns:
        Dict of `SpeechCorpus` by split.
    """
    data_dir = pathlib.Path(data_dir)
    found = []
    for file in audio_below(data_dir):
        name = file.relative_to(data_dir).with_suffix("")
        speaker = normal(name.parts[0]) if len(name.parts) > 1 else None
        found.append((file, normal(name.as_posix()), speaker))
    if not found:
        raise FileNotFoundError(f"{data_dir}: no audio there")
    corpus = collect(found)
    if alignment is not None:
        corpus = corpus.with_frame_labels(
            alignments.read_phones(alignment), strict=strict
        )
    splits = (
        random_splits(corpus, seed)
        if lists is None
        else corpus.split(lists, strict)
    )
    return check_splits(data_dir, splits)


def read_tfds_librispeech(
    data_dir, out_dir, subsets=None, alignment=None, lists=None, strict=False
):
    """LibriSpeech that TFDS has prepared, by way of files.

    Args:
        data_dir: TFDS' own folder.
        out_dir: where the utterances go as FLAC, see
            `tfds_speech.export_librispeech`.
        subsets: as `read_librispeech` takes them; all that are prepared if
            `None`.
        alignment: as `read_librispeech` takes it.
        lists: as `read_librispeech` takes them.
        strict: as `read_librispeech` takes it.

    Returns:
        Dict of `SpeechCorpus` by split.
    """
    named = None
    if subsets is not None:
        splits = subsets_by_split(subsets)
        named = [each for group in splits.values() for each in group]
    written = tfds_speech.export_librispeech(data_dir, out_dir, named)
    return read_librispeech(
        out_dir,
        written if subsets is None else subsets,
        alignment,
        lists,
        strict,
    )


SPEECH = {
    "librispeech": Layout(
        read_librispeech, "the folders of LibriSpeech as released"
    ),
    "tfds_librispeech": Layout(
        read_tfds_librispeech, "LibriSpeech that TFDS has prepared"
    ),
    "fsdd": Layout(read_fsdd, "spoken digits, with splits of their own"),
    "folder": Layout(read_speech_folder, "all audio in a folder and below"),
}


def load_speech(dataset, data_dir, **options):
    """Reads a corpus of speech by the name of its layout.

    Args:
        dataset: a key of `SPEECH`.
        data_dir: the folder.
        **options: what the layout takes beside, see `Layout.takes`.

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
