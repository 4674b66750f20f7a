"""Phones of utterances and lists of utterances, in CPC's text files."""

import numpy as np

from audio_tf.corpora.labels import compose_unicode
from audio_tf.corpora.lists import read_lines

# CPC's phones for LibriSpeech: one label per 160 samples at 16 kHz.
PHONE_RATE_HZ = 100.0


def read_phones(path, num_classes=None):
    """Reads labels of frames as CPC's `converted_aligned_phones.txt` has them.

    A line is `utterance label label ...`, blank-separated, a label per 10 ms
    (`PHONE_RATE_HZ`). CPC's own file has 41 classes, 0 is silence, and covers
    train-clean-100. There Kaldi's frames lie within the audio, so that `n`
    samples have `1 + (n - 400) // 160` labels, two or three fewer than a
    centred spectrogram of the same hop has frames; `data.align_labels` allows
    for that. A line that does not fit is an error that names it.

    Args:
        path: the file.
        num_classes: int, above all labels, or `None` to take any label from 0
            on.

    Returns:
        Dict of int16 arrays `(labels,)` by utterance, in the file's order.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line has no labels or one that is no integer, is
            negative or too large, or if an utterance occurs twice; it names
            file and line.

    Examples:
        >>> from audio_tf import corpora
        >>> with open("phones.txt", "w") as file:
        ...     print("5-11-0000 0 0 40 40 7", file=file)
        >>> corpora.read_phones("phones.txt")["5-11-0000"].tolist()
        [0, 0, 40, 40, 7]
    """
    phones, lines = {}, {}
    for number, (name, *fields) in read_lines(path):
        where, name = f"{path}, line {number}", compose_unicode(name)
        if name in phones:
            raise ValueError(
                f"{where}: {name} has labels in line {lines[name]} already"
            )
        if not fields:
            raise ValueError(f"{where}: {name} has no labels")
        try:
            labels = np.array(fields, np.int16)
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"{where}: labels must be integers ({error})"
            ) from error
        top = np.inf if num_classes is None else num_classes
        if labels.min() < 0 or labels.max() >= top:
            raise ValueError(
                f"{where}: labels must be at least 0 and below {top}. "
                f"Received: {labels.min()} to {labels.max()}"
            )
        phones[name], lines[name] = labels, number
    if not phones:
        raise ValueError(f"{path}: no labels")
    return phones


def read_phone_names(path):
    """Reads names of labels from lines `name label`.

    Args:
        path: the file.

    Returns:
        List of the names, in order of the labels.

    Raises:
        ValueError: if the labels are not 0, 1, 2 and so on, each once.

    Examples:
        >>> from audio_tf import corpora
        >>> with open("phones.txt", "w") as file:
        ...     print("SIL 0", file=file)
        ...     print("AA 1", file=file)
        >>> corpora.read_phone_names("phones.txt")
        ['SIL', 'AA']
    """
    names = {}
    for number, fields in read_lines(path):
        if len(fields) != 2 or not fields[1].isdecimal():
            raise ValueError(
                f"{path}, line {number}: must be a name and its label. "
                f"Received: {' '.join(fields)!r}"
            )
        if int(fields[1]) in names:
            raise ValueError(
                f"{path}, line {number}: label {fields[1]} has a name already"
            )
        names[int(fields[1])] = fields[0]
    if sorted(names) != list(range(len(names))) or not names:
        raise ValueError(
            f"{path}: labels must be 0, 1, 2 and so on. "
            f"Received: {sorted(names)}"
        )
    return [names[label] for label in range(len(names))]


def read_utterance_list(path):
    """Reads a list with one utterance a line, as CPC's `train_split.txt` is.

    Args:
        path: the file.

    Returns:
        List of the names of the utterances, in the file's order.

    Raises:
        ValueError: if a line has more than one field, or an utterance occurs
            twice.

    Examples:
        >>> from audio_tf import corpora
        >>> with open("train_split.txt", "w") as file:
        ...     print("5-11-0000", file=file)
        ...     print("13-17-0000", file=file)
        >>> corpora.read_utterance_list("train_split.txt")
        ['5-11-0000', '13-17-0000']
    """
    lines = {}
    for number, fields in read_lines(path):
        name = compose_unicode(fields[0])
        if len(fields) > 1 or name in lines:
            raise ValueError(
                f"{path}, line {number}: must be one utterance, in the list "
                f"once. Received: {' '.join(fields)!r}"
            )
        lines[name] = number
    if not lines:
        raise ValueError(f"{path}: no utterances")
    return list(lines)
