"""LibriSpeech in the folders of its release."""

import io
import pathlib
import re

from audio_tf.audio.audio_files import audio_below, is_folder
from audio_tf.corpora import phones
from audio_tf.corpora.arguments import check_names, check_names_by_split
from audio_tf.corpora.corpus import check_splits
from audio_tf.corpora.lists import is_there, read_list
from audio_tf.corpora.protocols import Protocol
from audio_tf.corpora.speech_corpus import SpeechCorpus, collect

LIBRISPEECH_SUBSETS = (
    "train-clean-100",
    "train-clean-360",
    "train-other-500",
    "dev-clean",
    "dev-other",
    "test-clean",
    "test-other",
)
# What the names of the subsets of a split begin with.
SUBSETS_OF = {"train": "train", "val": "dev", "test": "test"}


def of_other_splits(options):
    """Returns which released subsets are used in another split than theirs.

    Args:
        options: dict of the options of the reader.

    Returns:
        Text, empty if there are none. Folders of one's own may be anything.
    """
    subsets = options.get("subsets")
    splits = {} if subsets is None else subsets_by_split(subsets)
    found = [
        f"{subset} is of {subset.partition('-')[0]}, not of {split}"
        for split, names in splits.items()
        for subset in names
        if subset in LIBRISPEECH_SUBSETS
        and subset != split
        and subset.partition("-")[0] != SUBSETS_OF.get(split)
    ]
    return ", ".join(found)


LIBRISPEECH_PROTOCOL = Protocol(
    "subsets train-* for training, dev-* for validation, test-* for the test",
    of_other_splits,
)


def read_librispeech(
    data_dir, subsets=None, alignment=None, lists=None, strict=False
):
    """Reads LibriSpeech from its released folders.

    An utterance is
    `LibriSpeech/<subset>/<speaker>/<chapter>/<speaker>-<chapter>-NNNN.flac`,
    as the archives unpack; nothing is decoded here. Speakers are the numbers
    of the folders; where the release's `SPEAKERS.TXT` is there, it must
    agree. An audio file in another place is left out and is in the report;
    one that is bad is left out when it is decoded.

    This reads the phones and splits of train-clean-100 that CPC (arXiv
    1807.03748) released:

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
        subsets: list of names of folders, each a split; or a dict by split of
            lists of such names, which are joined; or `None` for those of the
            release's seven that are there.
        alignment: path of a phone file, see `read_phones`, or `None`.
        lists: dict by split of lists of utterances, see
            `SpeechCorpus.split`. If `None`, `subsets` says the splits.
        strict: bool. If True, whatever does not fit is an error instead of
            an entry in the report.

    Returns:
        Dict of `SpeechCorpus` by split. The vocabulary has the speakers of
        all `subsets`, sorted as strings, as s3prl does it.

    Raises:
        FileNotFoundError: if a subset is not there or has no audio.
        ValueError: if an utterance is there twice, a subset is named twice,
            or `SPEAKERS.TXT` does not agree.
    """
    data_dir = pathlib.Path(data_dir)
    inner = data_dir / "LibriSpeech"
    root = inner if is_folder(inner) else data_dir
    if subsets is None:
        subsets = [
            each for each in LIBRISPEECH_SUBSETS if is_folder(root / each)
        ]
    splits = subsets_by_split(subsets)
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
    if is_there(root / "SPEAKERS.TXT"):
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
            phones.read_phones(alignment), strict=strict
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
    """Returns a dict of lists of subsets by split.

    Args:
        subsets: such a dict, or a list of subsets, each of which is a split.

    Raises:
        ValueError: if it is neither, or a subset is named twice.
    """
    named = subsets
    if not isinstance(subsets, dict):
        check_names(subsets=subsets)
        subsets = {each: [each] for each in named}
    else:
        check_names_by_split("subsets", subsets)
        named = [each for group in subsets.values() for each in group]
    if len(set(named)) < len(named):
        raise ValueError(
            "Each subset must be named once, in one split. "
            f"Received: subsets={subsets}"
        )
    return subsets


def read_librispeech_speakers(path):
    """Reads LibriSpeech's `SPEAKERS.TXT`.

    Lines are `id | sex | subset | minutes | name`, comments begin with `;`,
    and a name may hold further bars.

    Args:
        path: the file.

    Returns:
        Dict by the speaker's id, a str, of dicts with `sex`, `subset`,
        `minutes` (float) and `name`.

    Raises:
        ValueError: if a line has too few fields or a speaker occurs twice.

    Examples:
        >>> from audio_tf import corpora
        >>> with open("SPEAKERS.TXT", "w") as file:
        ...     print("; id | sex | subset | minutes | name", file=file)
        ...     print("5 | F | dev-clean | 8.5 | Ann | Lee", file=file)
        >>> corpora.read_librispeech_speakers("SPEAKERS.TXT")["5"]["name"]
        'Ann | Lee'
    """
    speakers = {}
    # Only names have letters beyond ASCII, and nothing depends on those.
    content = io.BytesIO(read_list(path))
    with io.TextIOWrapper(content, "utf-8-sig", "replace") as file:
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
        pairs: set of pairs of the speaker's id and the subset of its folder.
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
