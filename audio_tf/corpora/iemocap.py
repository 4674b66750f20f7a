"""IEMOCAP in the folders of its release, split by session."""

import pathlib
import re

from audio_tf.corpora.arguments import (
    check_in_one_split,
    check_numbers_by_split,
)
from audio_tf.corpora.corpus import Corpus, check_splits
from audio_tf.corpora.lists import read_list
from audio_tf.corpora.protocols import one_fold_in_turn
from audio_tf.ops.checks import closest

# In the order of the targets of "Gaussian adaptive attention is all you need"
# (arXiv 2401.11143): excitement counts as happiness.
IEMOCAP_CLASSES = {
    "sadness": ("sad",),
    "neutral": ("neu",),
    "happiness": ("hap", "exc"),
    "anger": ("ang",),
}
OTHER_CODES = ("fru", "fea", "sur", "dis", "oth", "xxx")
IEMOCAP_FOLDS = {"train": [1, 2, 3], "val": [4], "test": [5]}
IEMOCAP_PROTOCOL = one_fold_in_turn(range(1, 6))

# The line of a turn: [begin - end], the utterance, its emotion, ratings.
TURN = re.compile(r"\[\d+\.\d+ - \d+\.\d+\]\t(\S+)\t(\S+)\t\[.*\]")
NAME = re.compile(r"Ses0([1-5])[FM]_(impro|script)\w+_([FM])[0-9X]+")


def read_iemocap(data_dir, folds=IEMOCAP_FOLDS):
    """Reads the four usual emotions of IEMOCAP (Busso et al. 2008) by session.

    ```python
    splits = read_iemocap(
        "IEMOCAP_full_release", {"train": [1, 2, 3], "val": [4], "test": [5]}
    )
    ```

    A clip is `Session1/sentences/wav/{dialog}/{utterance}.wav`, and its
    emotion is what the judges' majority says in
    `Session1/dialog/EmoEvaluation/{dialog}.txt`. Other emotions than
    `IEMOCAP_CLASSES` are left out. Each session has two speakers of its own;
    the usual protocol leaves one session out at a time, which is the test.

    Args:
        data_dir: the folder `IEMOCAP_full_release`.
        folds: dict by split of lists of sessions, 1 to 5.

    Returns:
        Dict of `Corpus` by split, whose groups are the sessions and whose
        sources the speakers; the vocabulary is in the order of
        `IEMOCAP_CLASSES`.

    Raises:
        FileNotFoundError: if a session that is asked for is not there.
        ValueError: if `folds` is no such dict, a session is in two splits, a
            line of a dialog does not fit, or a dialog has no turn; it names
            file and line.
    """
    check_numbers_by_split(folds=folds)
    data_dir = pathlib.Path(data_dir)
    check_in_one_split("session", folds, range(1, 6))
    corpora = {}
    for split, sessions in folds.items():
        turns = [
            (str(session), *turn)
            for session in sessions
            for turn in read_session(data_dir, session)
        ]
        corpora[split] = Corpus(
            [file for _, file, _ in turns],
            [[emotion] for *_, emotion in turns],
            list(IEMOCAP_CLASSES),
            groups=[session for session, *_ in turns],
            sources=[iemocap_speaker(file.stem) for _, file, _ in turns],
            source_kind="speaker",
        )
    return check_splits(data_dir, corpora)


def session_lists(data_dir, session):
    """Lists the files that say which emotions a session has, sorted.

    Args:
        data_dir: `pathlib.Path` of the release.
        session: int, from 1 to 5.

    Raises:
        FileNotFoundError: if there are none.
    """
    folder = data_dir / f"Session{session}" / "dialog" / "EmoEvaluation"
    # Some copies have files of macOS beside each, of the same suffix.
    found = sorted(folder.glob("Ses*.txt"))
    if not found:
        raise FileNotFoundError(f"{folder}: no dialogs of the session there")
    return found


def read_session(data_dir, session):
    """Reads the turns of a session that have one of the four emotions.

    Returns:
        List of pairs of the path of a clip and the name of its emotion.
    """
    names = {
        code: name for name, codes in IEMOCAP_CLASSES.items() for code in codes
    }
    known = [*names, *OTHER_CODES]
    turns, lines = [], {}
    for path in session_lists(data_dir, session):
        text = read_list(path).decode("ascii", errors="replace")
        before = len(lines)
        for number, line in enumerate(text.splitlines(), start=1):
            # Lines of single judges and of ratings are between the turns.
            if not line.startswith("["):
                continue
            turn = TURN.fullmatch(line.strip())
            if turn is None:
                raise ValueError(
                    f"{path}, line {number}: must be [begin - end], utterance, "
                    f"emotion, [ratings]. Received: {line.strip()!r}"
                )
            name, code = turn.groups()
            if not name.startswith(f"{path.stem}_") or not NAME.fullmatch(name):
                raise ValueError(
                    f"{path}, line {number}: no utterance of {path.stem}. "
                    f"Received: {name!r}"
                )
            if code not in known:
                raise ValueError(
                    f"{path}, line {number}: an emotion must be one of "
                    f"{known}{closest(code, known)}. Received: {code!r}"
                )
            if name in lines:
                raise ValueError(
                    f"{path}, line {number}: {name} is in line {lines[name]} "
                    "already"
                )
            lines[name] = number
            if code in names:
                folder = data_dir / f"Session{session}" / "sentences" / "wav"
                file = folder / path.stem / f"{name}.wav"
                turns.append((file, names[code]))
        if len(lines) == before:
            raise ValueError(
                f"{path}: no turn of the dialog, no line that begins with a "
                "bracket; it may be cut off, or in UTF-16"
            )
    return turns


def iemocap_speaker(utterance):
    """Returns the speaker of an utterance, such as `"1F"`: session and sex.

    Args:
        utterance: str, such as `"Ses01F_impro01_M000"`, whose first letter is
            that of the actor with the markers, the last of who speaks.
    """
    match = NAME.fullmatch(utterance)
    return f"{match[1]}{match[3]}"
