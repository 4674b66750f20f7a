"""ESC-50 and its subset ESC-10, split by fold."""

import pathlib
import re

from audio_tf.corpora.arguments import (
    check_in_one_split,
    check_numbers_by_split,
)
from audio_tf.corpora.corpus import Corpus, check_splits
from audio_tf.corpora.lists import audio_path, is_there, read_rows
from audio_tf.corpora.protocols import one_fold_in_turn
from audio_tf.ops.checks import closest

ESC_FOLDS = {"train": [1, 2, 3], "val": [4], "test": [5]}
ESC_PROTOCOL = one_fold_in_turn(range(1, 6))
# Fold, recording of Freesound, take and, in ESC-50, target.
NAME = re.compile(r"[1-5]-(\w+)-[A-Z](-[0-9]+)?\.\w+")


def read_esc10(data_dir, folds=ESC_FOLDS):
    """Reads ESC-10; see `read_esc`."""
    return read_esc(data_dir, folds, only_esc10=True)


def read_esc50(data_dir, folds=ESC_FOLDS):
    """Reads ESC-50; see `read_esc`."""
    return read_esc(data_dir, folds)


def read_esc(data_dir, folds, only_esc10=False):
    """Reads ESC-50, or its subset ESC-10, by fold.

    ```python
    splits = read_esc(
        "ESC-50-master", {"train": [1, 2, 3], "val": [4], "test": [5]}
    )
    ```

    It takes the release (`meta/esc50.csv` beside `audio/`) and any folder
    with `esc10.csv` or `esc50.csv` beside `audio/`. All clips of one
    recording are in one fold, but of the recordings 131943 and 134049, which
    folds 2 and 3 of ESC-50 share. A row that does not fit is an error that
    names it; an audio file that is missing or bad is left out when it is
    decoded.

    Args:
        data_dir: the folder that holds `audio/`.
        folds: dict of fold numbers by split, for example
            `{"train": [1, 2, 3], "val": [], "test": [4]}`.
        only_esc10: bool, whether to keep the clips of ESC-10 alone.

    Returns:
        Dict of `Corpus` by split, whose sources are the recordings that names
        of files tell; the vocabulary is in order of the targets.

    Raises:
        FileNotFoundError: if there is no such list.
        ValueError: if `folds` is no such dict, a fold is in two splits or has
            no clip, or a category has two targets.
    """
    check_numbers_by_split(folds=folds)
    data_dir = pathlib.Path(data_dir)
    path, rows = find_esc(data_dir, only_esc10)
    order, clips = {}, []
    for number, row in rows:
        if not row["fold"].isdecimal() or not row["target"].isdecimal():
            raise ValueError(
                f"{path}, row {number}: fold and target must be numbers. "
                f"Received: {row['fold']!r} and {row['target']!r}"
            )
        category, target = row["category"], int(row["target"])
        if order.setdefault(category, target) != target:
            raise ValueError(
                f"{path}, row {number}: {category!r} has target "
                f"{order[category]} above. Received: {target}"
            )
        file = audio_path(path, number, data_dir / "audio", row["filename"])
        clips.append((int(row["fold"]), file, category))
    vocabulary = sorted(order, key=order.get)
    if len(set(order.values())) < len(order):
        raise ValueError(f"{path}: two categories of one target: {order}")
    check_in_one_split("fold", folds, {fold for fold, _, _ in clips})
    corpora = {}
    for split, numbers in folds.items():
        chosen = [clip for clip in clips if clip[0] in numbers]
        corpora[split] = Corpus(
            [file for _, file, _ in chosen],
            [[category] for _, _, category in chosen],
            vocabulary,
            sources=[recording(file) for _, file, _ in chosen],
            source_kind="recording",
        )
    return check_splits(path, corpora)


def recording(file):
    """Returns which recording a clip was cut from, `None` if it is not told.

    Args:
        file: `pathlib.Path` of the clip, such as `1-100032-A-0.wav`.
    """
    match = NAME.fullmatch(file.name)
    return match and match[1]


def find_esc(data_dir, only_esc10=False):
    """Finds the list of ESC-50 or ESC-10 and reads its rows.

    Args:
        data_dir: `pathlib.Path` of the folder that holds `audio/`.
        only_esc10: bool, whether to keep the rows of ESC-10 alone.

    Returns:
        Pair of the path of the list and a list of pairs of the line number
        and a dict by column.

    Raises:
        FileNotFoundError: if there is no such list.
        ValueError: if a row does not fit, or the list does not tell what is
            in ESC-10.
    """
    names = ["meta/esc50.csv", "esc50.csv"]
    if only_esc10:
        names.insert(0, "esc10.csv")
    found = [data_dir / name for name in names if is_there(data_dir / name)]
    if not found:
        raise FileNotFoundError(f"{data_dir}: none of {', '.join(names)} there")
    path = found[0]
    rows = read_rows(path, ["filename", "fold", "target", "category"])
    if only_esc10 and path.name != "esc10.csv":
        header = rows[0][1]
        if "esc10" not in header:
            raise ValueError(
                f"{path}: no column tells what is in ESC-10"
                f"{closest('esc10', header)}. Received: {list(header)}"
            )
        rows = [
            pair
            for pair in rows
            if is_in_esc10(path, pair[0], pair[1]["esc10"])
        ]
    return path, rows


def is_in_esc10(path, number, field):
    """Returns what the column `esc10` says of a clip.

    Args:
        path: the list, for messages.
        number: int, the row, for messages.
        field: str, `True` or `False`, in letters of any case.

    Raises:
        ValueError: if it is neither.
    """
    known = {"true": True, "false": False}
    if field.lower() not in known:
        raise ValueError(
            f"{path}, row {number}: esc10 must be True or False. "
            f"Received: {field!r}"
        )
    return known[field.lower()]
