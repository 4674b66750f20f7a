"""Names of labels: their spelling, vocabularies, lists in a field."""

import unicodedata

import numpy as np

from audio_tf.corpora.lists import check_utf8, read_fields
from audio_tf.ops.checks import closest
from audio_tf.terminal import JOINERS, first_quoted

# What separates labels in other corpora, where commas do here.
OTHER_SEPARATORS = (";", "|")
UNJOINED = str.maketrans("", "", JOINERS)


def compose_unicode(name):
    """Returns a name in composed Unicode (NFC).

    macOS hands out the names of files and folders decomposed, where a list
    has them as they were typed. Labels of both are one.
    """
    return unicodedata.normalize("NFC", name)


def check_vocabulary(where, vocabulary):
    """Raises a `ValueError` if labels cannot be told from each other.

    Args:
        where: path of their file or corpus, for messages.
        vocabulary: list of labels.
    """
    known = {}
    for label in vocabulary:
        check_utf8(where, label)
        # Without joiners: labels that differ by these alone look alike.
        plain = label.translate(UNJOINED)
        bare = label.strip().strip(JOINERS)
        if not plain.isprintable() or label != bare or not label:
            raise ValueError(
                f"{where}: a label must be printable text without spaces "
                f"around it. Received: {label!r}"
            )
        spelling = compose_unicode(plain).casefold()
        if spelling in known:
            raise ValueError(
                f"{where}: a label occurs twice, or in two spellings. "
                f"Received: {known[spelling]!r} and {label!r}"
            )
        known[spelling] = label


def read_vocabulary(path):
    """Reads a vocabulary: FSD50K's `index,label,mid`, or one label a line.

    Args:
        path: the file.

    Returns:
        List of labels, in the file's order.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is neither, or not UTF-8, indices do not count
            from 0, or labels cannot be told from each other.
    """
    rows = read_fields(path)
    counted = len(rows) > 0 and len(rows[0][1]) > 1
    labels = []
    for number, fields in rows:
        for field in fields:
            check_utf8(f"{path}, row {number}", field)
        fits = len(fields) == 1
        if counted:
            fits = len(fields) in (2, 3) and fields[0] == str(len(labels))
        if not fits:
            raise ValueError(
                f"{path}, row {number}: must be `index,label,mid`, counted "
                f"from 0, or one label a line. Received: {fields}"
            )
        labels.append(compose_unicode(fields[1] if counted else fields[0]))
    if not labels:
        raise ValueError(f"{path}: no labels")
    check_vocabulary(path, labels)
    return labels


def check_separators(path, number, labels, vocabulary):
    """Raises a `ValueError` if a label is several, separated otherwise.

    That is certain only where each part is a label itself.

    Args:
        path: the file, for messages.
        number: int, the row, for messages.
        labels: list of str, as they are between commas.
        vocabulary: set of the labels that are known.
    """
    for label in labels:
        for separator in OTHER_SEPARATORS:
            parts = [part.strip() for part in label.split(separator)]
            if len(parts) > 1 and set(parts) <= vocabulary:
                raise ValueError(
                    f"{path}, row {number}: `labels` must be separated by "
                    f"commas, in quotes, not by {separator!r}, where each "
                    "part is a label itself; a vocabulary that has it keeps "
                    f"it as one label. Received: {label!r}, not "
                    f"{','.join(parts)!r}"
                )


def split_labels(path, number, field, vocabulary, needed=True):
    """Splits one comma-separated field into labels of the vocabulary.

    Args:
        path: the file, for messages.
        number: int, the row, for messages.
        field: str.
        vocabulary: set of the labels that are known.
        needed: bool, whether there must be a label.

    Returns:
        List of labels, in the field's order.

    Raises:
        ValueError: if a label is unknown, empty or there twice, if there is
            none where one is needed, or the field is not UTF-8. The message
            names file and row, and the nearest known label.
    """
    check_utf8(f"{path}, row {number}", field)
    labels = [compose_unicode(label.strip()) for label in field.split(",")]
    if labels == [""] and not needed:
        return []
    if "" in labels or len(set(labels)) < len(labels):
        raise ValueError(
            f"{path}, row {number}: labels must not be empty, and each be "
            f"there once. Received: {field!r}"
        )
    unknown = [label for label in labels if label not in vocabulary]
    if unknown:
        check_separators(path, number, unknown, vocabulary)
        raise ValueError(
            f"{path}, row {number}: label not in the vocabulary of "
            f"{len(vocabulary)}{closest(unknown[0], vocabulary)}. "
            f"Received: {unknown}"
        )
    return labels


def column_order(labels, vocabulary, num_classes):
    """Finds the column of a model's scores for each label of a corpus.

    Args:
        labels: the model's labels in the order of its scores, or `None` if
            it does not know them.
        vocabulary: the corpus' labels in their order.
        num_classes: int, the model's scores of a clip.

    Returns:
        Integer array `(classes,)`: `scores[:, order]` are in the order of
        `vocabulary`.

    Raises:
        ValueError: if the labels are not the same; it names those that are
            not.
    """
    if labels is None:
        if num_classes != len(vocabulary):
            raise ValueError(
                f"The model must have a score for each of {len(vocabulary)} "
                f"labels. Received: {num_classes} scores"
            )
        return np.arange(num_classes)
    # Models that were saved before labels were composed have others.
    labels, vocabulary = (
        [compose_unicode(label) for label in each]
        for each in (labels, vocabulary)
    )
    if set(labels) != set(vocabulary):
        missing = [label for label in vocabulary if label not in labels]
        further = [label for label in labels if label not in vocabulary]
        parts = [f"without {first_quoted(missing)}"] if missing else []
        parts += [f"with {first_quoted(further)} beyond"] if further else []
        raise ValueError(
            "The model must have the labels of the corpus. Received: a model "
            f"{', '.join(parts)}"
        )
    column = {label: index for index, label in enumerate(labels)}
    return np.array([column[label] for label in vocabulary])
