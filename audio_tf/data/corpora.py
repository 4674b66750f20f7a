"""Labelled collections of audio files, read as their authors release them."""

import csv
import dataclasses
import os
import pathlib

import numpy as np

from audio_tf.data import layouts
from audio_tf.data.layouts import Layout
from audio_tf.data.synthetic import write_synthetic_corpus

AUDIO_SUFFIXES = {".wav", ".flac", ".ogg", ".mp3", ".aif", ".aiff"}
SPLITS = ("train", "val", "test")
ESC_FOLDS = {"train": [1, 2, 3], "val": [4], "test": [5]}


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Audio files with labels.

    Attributes:
        files: paths.
        labels: for each file, its label names.
        vocabulary: all label names, in the order of a model's scores.
        frame_labels: `None`: the labels are of whole files alone.
    """

    files: list
    labels: list
    vocabulary: list

    frame_labels = None

    def __len__(self):
        return len(self.files)

    def targets(self):
        """Multi-hot labels, float32 `(files, classes)`."""
        column = {label: index for index, label in enumerate(self.vocabulary)}
        targets = np.zeros((len(self), len(self.vocabulary)), "float32")
        for row, labels in enumerate(self.labels):
            targets[row, [column[label] for label in labels]] = 1.0
        return targets

    def select(self, rows):
        """The corpus of these files alone, vocabulary unchanged."""
        return dataclasses.replace(
            self,
            files=[self.files[row] for row in rows],
            labels=[self.labels[row] for row in rows],
        )


def audio_below(data_dir):
    """Sorted audio files in a folder and all below it.

    Raises:
        FileNotFoundError: if there is no such folder.
    """
    data_dir = pathlib.Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"{data_dir}: no such folder")
    return sorted(
        file
        for file in data_dir.rglob("*")
        if file.suffix.lower() in AUDIO_SUFFIXES
    )


def list_files(paths):
    """Files as they are given, and in place of a folder the audio below it.

    Args:
        paths: paths of files, which need not be there, and of folders.

    Returns:
        List of paths; those of a folder are sorted.

    Raises:
        FileNotFoundError: if a folder holds no audio.
    """
    files = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        below = audio_below(path)
        if not below:
            raise FileNotFoundError(f"{path}: no audio in this folder")
        files += below
    return files


def read_rows(path, columns):
    """Rows of a CSV with a header, as dicts that have `columns`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a column is missing or there is no row.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        missing = set(columns) - set(reader.fieldnames or ())
        if missing:
            raise ValueError(
                f"{path}: the header must have {sorted(columns)}. "
                f"Received: {reader.fieldnames}"
            )
        rows = list(reader)
    if not rows:
        raise ValueError(f"{path}: no rows below the header")
    for number, row in enumerate(rows, start=2):
        if any(row[column] is None for column in columns):
            raise ValueError(
                f"{path}, row {number}: too few fields. "
                f"Received: {list(row.values())}"
            )
    return rows


def split_labels(path, number, field, vocabulary):
    """Labels of one comma-separated field, checked against the vocabulary.

    Raises:
        ValueError: if one is unknown; it names file, row and label.
    """
    labels = [label.strip() for label in field.split(",") if label.strip()]
    unknown = [label for label in labels if label not in vocabulary]
    if unknown:
        raise ValueError(
            f"{path}, row {number}: label not in the vocabulary of "
            f"{len(vocabulary)}. Received: {unknown}"
        )
    return labels


def read_vocabulary(path):
    """Labels of a vocabulary: FSD50K's `index,label,mid`, or one a line."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    labels = [row[1] if len(row) > 1 else row[0] for row in rows]
    if len(set(labels)) != len(labels):
        raise ValueError(f"{path}: a label occurs twice")
    return labels


def read_fsd50k(data_dir):
    """FSD50K from its released folders (Zenodo 4060432).

    `FSD50K.dev_audio`, `FSD50K.eval_audio` and `FSD50K.ground_truth`. The
    release's own train and val columns split dev; eval is the test split.
    Labels are already propagated to their ancestors there.

    Args:
        data_dir: the folder that holds those three.

    Returns:
        Dict of `Corpus` by split: train, val, test.
    """
    data_dir = pathlib.Path(data_dir)
    truth = data_dir / "FSD50K.ground_truth"
    vocabulary = read_vocabulary(truth / "vocabulary.csv")
    known = set(vocabulary)
    files = {split: [] for split in SPLITS}
    labels = {split: [] for split in SPLITS}
    for name, extra in (("dev", ["split"]), ("eval", [])):
        path = truth / f"{name}.csv"
        rows = read_rows(path, ["fname", "labels", *extra])
        for number, row in enumerate(rows, start=2):
            split = row["split"] if extra else "test"
            if extra and split not in ("train", "val"):
                raise ValueError(
                    f"{path}, row {number}: split must be train or val. "
                    f"Received: {split!r}"
                )
            files[split].append(
                data_dir / f"FSD50K.{name}_audio" / f"{row['fname']}.wav"
            )
            labels[split].append(
                split_labels(path, number, row["labels"], known)
            )
    return {
        split: Corpus(files[split], labels[split], vocabulary)
        for split in SPLITS
    }


def read_esc(data_dir, folds, only_esc10=False):
    """ESC-50, or its subset ESC-10, by fold.

    Reads the release (`meta/esc50.csv` beside `audio/`) and any folder with
    `esc10.csv` or `esc50.csv` beside `audio/`. Clips of one recording share
    a fold.

    Args:
        data_dir: the folder that holds `audio/`.
        folds: dict of fold numbers by split, for example
            `{"train": [1, 2, 3], "val": [], "test": [4]}`.
        only_esc10: bool, keep the clips of ESC-10 alone.

    Returns:
        Dict of `Corpus` by split; the vocabulary is in order of the targets.

    Raises:
        ValueError: if a fold is in two splits or has no clip.
    """
    data_dir = pathlib.Path(data_dir)
    names = ["meta/esc50.csv", "esc50.csv"]
    if only_esc10:
        names.insert(0, "esc10.csv")
    found = [data_dir / name for name in names if (data_dir / name).is_file()]
    if not found:
        raise FileNotFoundError(f"{data_dir}: none of {', '.join(names)} there")
    rows = read_rows(found[0], ["filename", "fold", "target", "category"])
    if only_esc10 and found[0].name != "esc10.csv":
        if "esc10" not in rows[0]:
            raise ValueError(f"{found[0]}: no column tells what is in ESC-10")
        rows = [row for row in rows if row["esc10"].lower() == "true"]
    order = {row["category"]: int(row["target"]) for row in rows}
    vocabulary = sorted(order, key=order.get)
    used = [fold for split in folds.values() for fold in split]
    there = {int(row["fold"]) for row in rows}
    if len(set(used)) != len(used) or not set(used) <= there:
        raise ValueError(
            f"Each fold must be one of {sorted(there)} and in one split only, "
            f"or clips of one recording are on both sides. Received: {folds}"
        )
    corpora = {}
    for split, numbers in folds.items():
        chosen = [row for row in rows if int(row["fold"]) in numbers]
        corpora[split] = Corpus(
            [data_dir / "audio" / row["filename"] for row in chosen],
            [[row["category"]] for row in chosen],
            vocabulary,
        )
    return corpora


def read_csv(path, vocabulary=None, seed=0):
    """A corpus listed in a CSV with the header `filename,labels[,split]`.

    Args:
        path: the CSV. Filenames are relative to its folder; labels are
            separated by commas inside the quoted field.
        vocabulary: label names, the path of a file of such as
            `read_vocabulary` takes it, or `None` for all that occur, sorted.
            A label outside it is an error.
        seed: int. Without a split column, 80 % of the files become train, 10
            % val and 10 % test, drawn by this seed.

    Returns:
        Dict of `Corpus` by split: train, val, test.
    """
    path = pathlib.Path(path)
    rows = read_rows(path, ["filename", "labels"])
    if isinstance(vocabulary, str | os.PathLike):
        vocabulary = read_vocabulary(vocabulary)
    if vocabulary is None:
        names = (name for row in rows for name in row["labels"].split(","))
        vocabulary = sorted({name.strip() for name in names} - {""})
    known = set(vocabulary)
    if len(known) < len(vocabulary):
        raise ValueError(f"A label occurs twice. Received: {vocabulary}")
    corpus = Corpus(
        [path.parent / row["filename"] for row in rows],
        [
            split_labels(path, number, row["labels"], known)
            for number, row in enumerate(rows, start=2)
        ],
        list(vocabulary),
    )
    if "split" not in rows[0]:
        return random_splits(corpus, seed)
    splits = [row["split"] for row in rows]
    unknown = set(splits) - set(SPLITS)
    if unknown:
        raise ValueError(
            f"{path}: split must be one of {SPLITS}. "
            f"Received: {sorted(map(str, unknown))}"
        )
    return {
        split: corpus.select(
            [row for row, other in enumerate(splits) if other == split]
        )
        for split in SPLITS
    }


def read_folders(data_dir, seed=0):
    """A folder per class, or train, val and test folders of such.

    Args:
        data_dir: the folder. If it has a folder `train` with folders in it,
            `train`, `val` and `test` are the splits; else files are drawn as
            `read_csv` does.
        seed: int, seed of that draw.

    Returns:
        Dict of `Corpus` by split: train, val, test.
    """
    data_dir = pathlib.Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"{data_dir}: no such folder")
    if not any(entry.is_dir() for entry in data_dir.glob("train/*")):
        corpus = read_class_folders(data_dir)
        return random_splits(corpus, seed)
    vocabulary = read_class_folders(data_dir / "train").vocabulary
    return {
        split: read_class_folders(data_dir / split, vocabulary)
        for split in SPLITS
    }


def read_class_folders(data_dir, vocabulary=None):
    """All audio files below the folders of `data_dir`, one folder a class."""
    # A split may be missing, and files beside the folders have no class.
    found = [
        file
        for folder in sorted(data_dir.glob("*"))
        if folder.is_dir()
        for file in audio_below(folder)
    ]
    names = [file.relative_to(data_dir).parts[0] for file in found]
    if vocabulary is None and not found:
        raise FileNotFoundError(f"{data_dir}: no audio in folders of classes")
    vocabulary = vocabulary or sorted(set(names))
    unknown = set(names) - set(vocabulary)
    if unknown:
        raise ValueError(
            f"{data_dir}: folders that the train split lacks. "
            f"Received: {sorted(unknown)}"
        )
    return Corpus(found, [[name] for name in names], vocabulary)


def random_splits(corpus, seed):
    """80 % train, 10 % val, 10 % test, whole files."""
    order = np.random.default_rng(seed).permutation(len(corpus))
    tenth = len(corpus) // 10
    return {
        "train": corpus.select(sorted(order[2 * tenth :])),
        "val": corpus.select(sorted(order[:tenth])),
        "test": corpus.select(sorted(order[tenth : 2 * tenth])),
    }


def read_synthetic(data_dir, seed=0):
    """The synthetic corpus, written to `data_dir` if it is not there.

    Args:
        data_dir: the folder.
        seed: int, seed of the corpus.

    Returns:
        Dict of `Corpus` by split: train, val, test.
    """
    return read_csv(write_synthetic_corpus(data_dir, seed=seed))


def read_esc10(data_dir, folds=ESC_FOLDS):
    """ESC-10; see `read_esc`."""
    return read_esc(data_dir, folds, only_esc10=True)


def read_esc50(data_dir, folds=ESC_FOLDS):
    """ESC-50; see `read_esc`."""
    return read_esc(data_dir, folds)


CORPORA = {
    "synthetic": Layout(
        read_synthetic,
        "sounds that are made here, to try everything",
        makes_its_own=True,
    ),
    "fsd50k": Layout(read_fsd50k, "the folders of FSD50K as released"),
    "esc10": Layout(read_esc10, "ESC-10, alone or within ESC-50"),
    "esc50": Layout(read_esc50, "ESC-50 as released"),
    "folders": Layout(read_folders, "a folder per class, or splits of such"),
    "csv": Layout(read_csv, "a file with the header filename,labels[,split]"),
}


def load_corpus(dataset, data_dir, **options):
    """Reads a corpus by the name of its layout.

    Args:
        dataset: a key of `CORPORA`.
        data_dir: the folder; for `"csv"` the file.
        **options: what the layout takes beside, see `Layout.takes`.

    Returns:
        Dict of `Corpus` by split.

    Raises:
        TypeError: if no layout takes one of the options.
        ValueError: if there is no such layout, it does not take an option, or
            the corpus contradicts itself.
        FileNotFoundError: if the folder or a list of the corpus is missing;
            missing audio is found when it is decoded.
    """
    return layouts.load(CORPORA, dataset, data_dir, options)
