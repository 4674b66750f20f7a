"""A corpus listed in one CSV of one's own."""

import os
import pathlib

from audio_tf.corpora.arguments import check_names
from audio_tf.corpora.corpus import (
    SPLITS,
    Corpus,
    check_no_draw,
    check_splits,
    draw_splits,
)
from audio_tf.corpora.labels import (
    check_separators,
    check_vocabulary,
    compose_unicode,
    read_vocabulary,
    split_labels,
)
from audio_tf.corpora.lists import audio_path, check_utf8, read_rows
from audio_tf.ops.checks import closest


def read_csv(path, vocabulary=None, seed=None):
    """Reads a corpus listed in a CSV of one's own.

    It is UTF-8; only names of files may be in other bytes. Its header is
    `filename,labels`, and `split` and `source` where wanted: a source is the
    speaker, the uploader or the recording that a clip comes from, and must
    not be in two splits; the field is empty where it is not known. A row or a
    column that does not fit is an error that names it; an audio file that is
    missing or bad is left out when it is decoded.

    Args:
        path: the CSV. Filenames are relative to its folder; labels are
            separated by commas inside the quoted field; an empty field is a
            clip that has none of them.
        vocabulary: list of label names, the path of a file that
            `read_vocabulary` reads, or `None` for all labels that occur,
            sorted. A label outside it is an error, and so is, without one,
            `dog;rain` or `dog|rain` where dog and rain are labels too.
        seed: int. Without a split column, 80 % of the clips become train, 10
            % val and 10 % test, drawn by this seed, or by 0 if it is `None`;
            with a source column so many sources do.

    Returns:
        Dict of `Corpus` by split: train, val, test. A split of which there is
        no row has no clips; fewer than ten clips are all drawn for train.

    Raises:
        FileNotFoundError: if the CSV or the vocabulary is missing.
        ValueError: if a row or a column is not as above, or two contradict
            each other, see `check_splits`; or if a seed is given beside a
            split column.

    Examples:
        >>> import csv
        >>> from audio_tf import corpora
        >>> rows = [["filename", "labels", "split"]]
        >>> rows += [["a.wav", "dog", "train"], ["b.wav", "rain", "test"]]
        >>> with open("mine.csv", "w") as file:
        ...     csv.writer(file).writerows(rows)
        >>> corpora.read_csv("mine.csv")["test"].labels
        [['rain']]
    """
    path = pathlib.Path(path)
    rows = read_rows(path, ["filename", "labels"], ["split", "source"])
    if isinstance(vocabulary, str | os.PathLike):
        vocabulary = read_vocabulary(vocabulary)
    if vocabulary is None:
        for number, row in rows:
            check_utf8(f"{path}, row {number}", row["labels"])
        labels = [
            (
                number,
                [
                    compose_unicode(name.strip())
                    for name in row["labels"].split(",")
                ],
            )
            for number, row in rows
        ]
        known = {name for _, names in labels for name in names} - {""}
        for number, names in labels:
            check_separators(path, number, names, known)
        vocabulary = sorted(known)
        if not vocabulary:
            raise ValueError(f"{path}: no row has a label")
    check_names(vocabulary=vocabulary)
    vocabulary = [compose_unicode(label) for label in vocabulary]
    check_vocabulary(path, vocabulary)
    known = set(vocabulary)
    corpus = Corpus(
        [
            audio_path(path, number, path.parent, row["filename"])
            for number, row in rows
        ],
        [
            split_labels(path, number, row["labels"], known, needed=False)
            for number, row in rows
        ],
        vocabulary,
        **sources_of(path, rows),
    )
    if "split" not in rows[0][1]:
        # Or a file that is listed twice would be drawn into two splits.
        check_splits(path, {"the file": corpus})
        return check_splits(path, draw_splits(corpus, seed))
    check_no_draw(path, seed)
    chosen = {split: [] for split in SPLITS}
    for place, (number, row) in enumerate(rows):
        if row["split"] not in chosen:
            raise ValueError(
                f"{path}, row {number}: split must be one of {SPLITS}"
                f"{closest(row['split'], SPLITS)}. Received: {[row['split']]}"
            )
        chosen[row["split"]].append(place)
    return check_splits(
        path, {split: corpus.select(places) for split, places in chosen.items()}
    )


def sources_of(path, rows):
    """Returns arguments of `Corpus` on what clips come from.

    Args:
        path: the CSV, for messages.
        rows: list of pairs of the line number and a dict by column.

    Returns:
        Dict; empty without a column of sources.

    Raises:
        ValueError: if a source is not UTF-8.
    """
    if "source" not in rows[0][1]:
        return {}
    for number, row in rows:
        check_utf8(f"{path}, row {number}", row["source"])
    # Or one speaker, typed here and copied from a name there, would be two.
    names = [compose_unicode(row["source"].strip()) for _, row in rows]
    return {
        "sources": [name or None for name in names],
        "source_kind": "source",
    }
