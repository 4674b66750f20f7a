"""Labels of frames: the CPC phone file, lists of utterances, rates."""

import math
import pathlib
import unicodedata

import numpy as np

# CPC's phones for LibriSpeech: one label per 160 samples at 16 kHz.
PHONE_RATE_HZ = 100.0
# What frames behind a clip have as label: pass it to the loss, as
# `SparseCategoricalCrossentropy(ignore_class=PADDING_LABEL)`.
PADDING_LABEL = -1


def normal(name):
    """An identifier in composed Unicode.

    macOS hands out decomposed names; a list has them as they were typed.
    """
    return unicodedata.normalize("NFC", name)


def numbered_lines(path):
    """Yields the number from 1 and the fields of each line that has any.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is not UTF-8.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    with open(path, encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(file, start=1):
                fields = line.split()
                if fields:
                    yield number, fields
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 ({error})") from error


def read_phones(path, num_classes=None):
    """Frame labels in the format of CPC's `converted_aligned_phones.txt`.

    A line is `utterance label label ...`, blank-separated, a label per 10 ms
    (`PHONE_RATE_HZ`). CPC's own file has 41 classes, 0 is silence, and covers
    train-clean-100. There Kaldi's frames lie within the audio, so that `n`
    samples have `1 + (n - 400) // 160` labels, two or three fewer than the
    frames of a centred spectrogram with the same hop: `align_labels`.

    Args:
        path: the file.
        num_classes: int; labels must be below. Any if `None`.

    Returns:
        Dict of int16 arrays `(labels,)` by utterance, in the file's order.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line has no labels or one that is no integer, is
            negative or too large, or if an utterance occurs twice; it names
            file and line.
    """
    phones, lines = {}, {}
    for number, (name, *fields) in numbered_lines(path):
        where, name = f"{path}, line {number}", normal(name)
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
    """Names of the labels from lines `name label`, in order of the labels.

    Raises:
        ValueError: if the labels are not 0, 1, 2 and so on, each once.
    """
    names = {}
    for number, fields in numbered_lines(path):
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
    """Utterances of a list with one a line, as CPC's `train_split.txt`.

    Raises:
        ValueError: if a line has more than one field, or an utterance occurs
            twice.
    """
    lines = {}
    for number, fields in numbered_lines(path):
        name = normal(fields[0])
        if len(fields) > 1 or name in lines:
            raise ValueError(
                f"{path}, line {number}: must be one utterance, in the list "
                f"once. Received: {' '.join(fields)!r}"
            )
        lines[name] = number
    if not lines:
        raise ValueError(f"{path}: no utterances")
    return list(lines)


def align_labels(
    labels,
    label_rate_hz,
    frame_rate_hz,
    frames,
    name="labels",
    first_s=0.0,
    by_time=False,
    tolerance=3,
):
    """The label of each frame.

    Frame `i` has its middle at `first_s + i / frame_rate_hz` and takes the
    label of that moment, number `floor(middle * label_rate_hz)`. With equal
    rates it is label `i`; where labels are an exact multiple `k` as frequent,
    label `i * k`. Any other pair of rates is most often a mistake and is
    refused, unless `by_time` says that it is meant: Audio ALBERT's steps of
    37.5 ms over CPC's labels of 10 ms.

    At the end, up to `tolerance` labels may lack, and the last is repeated;
    as many may be left behind the last frame, and are cut. More means another
    recording or rate. The default of 3 is what CPC's labels need at a hop of
    10 ms, see `read_phones`.

    Args:
        labels: integer array `(labels,)`.
        label_rate_hz: float, labels per second.
        frame_rate_hz: float, frames per second.
        frames: int, how many frames there are.
        name: str, the utterance, for messages.
        first_s: float, the middle of the first frame in seconds.
        by_time: bool, whether to take rates that do not divide.
        tolerance: int, labels that may lack or be left.

    Returns:
        Array `(frames,)` of the dtype of `labels`.

    Raises:
        ValueError: if the rates do not fit, with both, or the ends do not,
            with the utterance and what it has.
    """
    rates = (label_rate_hz, frame_rate_hz)
    if not all(0 < rate < math.inf for rate in rates):
        raise ValueError(
            "Rates must be positive. Received: "
            f"label_rate_hz={label_rate_hz}, frame_rate_hz={frame_rate_hz}"
        )
    labels = np.asarray(labels)
    ratio = label_rate_hz / frame_rate_hz
    # A millionth is a frame in hours: rounding of a hop, not another rate.
    whole = round(ratio) >= 1 and abs(ratio / round(ratio) - 1) <= 1e-6
    if not whole and not by_time:
        raise ValueError(
            f"{name}: labels at {label_rate_hz:.10g} Hz do not fit frames at "
            f"{frame_rate_hz:.10g} Hz, which they must equal or be a multiple "
            "of. `by_time=True` takes the label at the middle of each frame."
        )
    middles = first_s * label_rate_hz + ratio * np.arange(frames)
    rows = np.floor(middles + 1e-6).astype(np.int64)
    needed = rows[-1] + 1 if frames else 0
    covered = math.ceil(middles[-1] + ratio - 1e-6) if frames else 0
    lacking, left = needed - len(labels), len(labels) - covered
    if max(lacking, left) > tolerance or (frames and not len(labels)):
        raise ValueError(
            f"{name}: {len(labels)} labels at {label_rate_hz:.10g} Hz "
            f"({len(labels) / label_rate_hz:.3f} s) for {frames} frames at "
            f"{frame_rate_hz:.10g} Hz ({frames / frame_rate_hz:.3f} s); at "
            f"most {tolerance} labels may lack or be left at the end"
        )
    return labels[np.minimum(rows, len(labels) - 1)]
