"""Labelled collections of audio files, read as their authors release them."""

import csv
import dataclasses
import os
import pathlib

import numpy as np

from audio_tf.corpora import layouts
from audio_tf.corpora.alignments import normal
from audio_tf.corpora.layouts import Layout
from audio_tf.corpora.synthetic import write_synthetic_corpus
from audio_tf.ops.checks import closest

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

    def annotation(self, row):
        """All that a file is labelled with, as a list of strings."""
        return [str(label) for label in self.labels[row]]

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


def file_identity(file):
    """What two names of one file have in common.

    The file system says so, which knows of links and of names that it does
    not tell apart by case; names of a file that is not there are compared.
    """
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return os.path.abspath(file)
    return status.st_dev, status.st_ino


def check_splits(where, splits):
    """Returns the splits of a corpus, if they do not contradict each other.

    Args:
        where: path of the corpus, for messages.
        splits: dict of `Corpus` by split.

    Raises:
        ValueError: if a file is in two splits, whatever its names, is listed
            twice, or has different labels under two names; if no split has a
            file, or a label cannot be told from another.
    """
    if not any(map(len, splits.values())):
        raise ValueError(
            f"{where}: no split has a file. Received: splits {list(splits)}"
        )
    listed, known = {}, {}
    for split, corpus in splits.items():
        check_vocabulary(where, corpus.vocabulary)
        for file, labels in zip(corpus.files, corpus.labels, strict=True):
            place = f"in {split} with {labels}"
            name = os.path.normpath(file)
            if name in listed:
                raise ValueError(
                    f"{where}: {file} is listed twice. "
                    f"Received: it {listed[name]} and {place}"
                )
            listed[name] = place
            first = known.setdefault(
                file_identity(file), (file, split, set(labels), place)
            )
            if first[1:3] != (split, set(labels)):
                raise ValueError(
                    f"{where}: {first[0]} and {file} are one file. "
                    f"Received: it {first[3]} and {place}"
                )
    return splits


def check_vocabulary(where, vocabulary):
    """Raises a `ValueError` if labels cannot be told from each other.

    Args:
        where: path of their file or corpus, for messages.
        vocabulary: list of labels.
    """
    known = {}
    for label in vocabulary:
        # Bytes that are no UTF-8 are not printable either.
        if not label.isprintable() or label != label.strip() or not label:
            raise ValueError(
                f"{where}: a label must be text without spaces around it. "
                f"Received: {label!r}"
            )
        # macOS hands out names of folders in another normal form.
        spelling = normal(label).casefold()
        if spelling in known:
            raise ValueError(
                f"{where}: a label occurs twice, or in two spellings. "
                f"Received: {known[spelling]!r} and {label!r}"
            )
        known[spelling] = label


def read_fields(path):
    """Rows of a CSV as pairs of the line number and the list of fields.

    Names of files need not be UTF-8: their bytes become surrogates, as
    everywhere in Python.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no CSV.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    with open(
        path, newline="", encoding="utf-8-sig", errors="surrogateescape"
    ) as file:
        reader = csv.reader(file)
        try:
            return [(reader.line_num, fields) for fields in reader if fields]
        except csv.Error as error:
            raise ValueError(
                f"{path}, row {reader.line_num}: not CSV ({error})"
            ) from error


def read_rows(path, columns, optional=None):
    """Rows of a CSV with a header.

    Args:
        path: the file.
        columns: names of the columns that it must have.
        optional: names of the others that it may have; any if `None`, as in
            the files of a release.

    Returns:
        List of pairs of the line number and a dict by column.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a column is missing, unknown or there twice, if there
            is no row, or one has not as many fields as the header.
    """
    rows = read_fields(path)
    header = rows[0][1] if rows else None
    names = header or []
    if optional is not None:
        known = [*columns, *optional]
        unknown = [name for name in names if name not in known]
        near = [f"{name!r}{closest(name, known)}" for name in unknown]
        if unknown:
            raise ValueError(
                f"{path}: unknown column {', '.join(near)}. "
                f"Received: {header}; known are {known}"
            )
    missing = sorted(set(columns) - set(names))
    if missing or len(set(names)) < len(names):
        near = closest(missing[0], names) if missing else ""
        raise ValueError(
            f"{path}: the header must have {sorted(columns)}, each once{near}. "
            f"Received: {header}"
        )
    if len(rows) == 1:
        raise ValueError(f"{path}: no rows below the header")
    for number, fields in rows[1:]:
        if len(fields) != len(names):
            few = len(fields) < len(names)
            raise ValueError(
                f"{path}, row {number}: "
                f"{'too few' if few else 'too many'} fields; one that holds "
                f"commas must be quoted. Received: {fields} for {names}"
            )
    return [
        (number, dict(zip(names, fields, strict=True)))
        for number, fields in rows[1:]
    ]


def audio_path(path, number, folder, name):
    """A file of a CSV's row; a `ValueError` if the row names none."""
    if not name.strip():
        raise ValueError(f"{path}, row {number}: no name of a file")
    return folder / name


def split_labels(path, number, field, vocabulary, needed=True):
    """Labels of one comma-separated field, checked against the vocabulary.

    Args:
        path: the file, for messages.
        number: int, the row, for messages.
        field: str.
        vocabulary: set of the labels that are known.
        needed: bool, whether there must be one.

    Raises:
        ValueError: if a label is unknown, empty, there twice, or needed; it
            names file and row, and the nearest known label.
    """
    labels = [label.strip() for label in field.split(",")]
    if labels == [""] and not needed:
        return []
    if "" in labels or len(set(labels)) < len(labels):
        raise ValueError(
            f"{path}, row {number}: labels must not be empty, and each be "
            f"there once. Received: {field!r}"
        )
    unknown = [label for label in labels if label not in vocabulary]
    if unknown:
        raise ValueError(
            f"{path}, row {number}: label not in the vocabulary of "
            f"{len(vocabulary)}{closest(unknown[0], vocabulary)}. "
            f"Received: {unknown}"
        )
    return labels


def read_vocabulary(path):
    """Labels of a vocabulary: FSD50K's `index,label,mid`, or one a line.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is neither, indices do not count from 0, or
            labels cannot be told from each other.
    """
    rows = read_fields(path)
    counted = len(rows) > 0 and len(rows[0][1]) > 1
    labels = []
    for number, fields in rows:
        fits = len(fields) == 1
        if counted:
            fits = len(fields) in (2, 3) and fields[0] == str(len(labels))
        if not fits:
            raise ValueError(
                f"{path}, row {number}: must be `index,label,mid`, counted "
                f"from 0, or one label a line. Received: {fields}"
            )
        labels.append(fields[1] if counted else fields[0])
    if not labels:
        raise ValueError(f"{path}: no labels")
    check_vocabulary(path, labels)
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
        folder = data_dir / f"FSD50K.{name}_audio"
        for number, row in read_rows(path, ["fname", "labels", *extra]):
            split = row["split"] if extra else "test"
            if extra and split not in ("train", "val"):
                raise ValueError(
                    f"{path}, row {number}: split must be train or val"
                    f"{closest(split, ('train', 'val'))}. Received: {split!r}"
                )
            file = audio_path(path, number, folder, row["fname"])
            files[split].append(file.with_name(f"{file.name}.wav"))
            labels[split].append(
                split_labels(path, number, row["labels"], known)
            )
    return check_splits(
        data_dir,
        {
            split: Corpus(files[split], labels[split], vocabulary)
            for split in SPLITS
        },
    )


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
        ValueError: if a fold is in two splits or has no clip, or a category
            has two targets.
    """
    data_dir = pathlib.Path(data_dir)
    names = ["meta/esc50.csv", "esc50.csv"]
    if only_esc10:
        names.insert(0, "esc10.csv")
    found = [data_dir / name for name in names if (data_dir / name).is_file()]
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
        rows = [pair for pair in rows if pair[1]["esc10"].lower() == "true"]
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
    used = [fold for split in folds.values() for fold in split]
    there = {fold for fold, _, _ in clips}
    if len(set(used)) != len(used) or not set(used) <= there:
        raise ValueError(
            f"Each fold must be one of {sorted(there)} and in one split only, "
            f"or clips of one recording are on both sides. Received: {folds}"
        )
    corpora = {}
    for split, numbers in folds.items():
        chosen = [clip for clip in clips if clip[0] in numbers]
        corpora[split] = Corpus(
            [file for _, file, _ in chosen],
            [[category] for _, _, category in chosen],
            vocabulary,
        )
    return check_splits(path, corpora)


def read_csv(path, vocabulary=None, seed=0):
    """A corpus listed in a CSV with the header `filename,labels[,split]`.

    Args:
        path: the CSV. Filenames are relative to its folder; labels are
            separated by commas inside the quoted field; an empty field is a
            file that has none of them.
        vocabulary: label names, the path of a file of such as
            `read_vocabulary` takes it, or `None` for all that occur, sorted.
            A label outside it is an error.
        seed: int. Without a split column, 80 % of the files become train, 10
            % val and 10 % test, drawn by this seed.

    Returns:
        Dict of `Corpus` by split: train, val, test. A split of which there is
        no row has no files; fewer than ten files are all drawn for train.

    Raises:
        ValueError: if a row or a column is not as above, or two contradict
            each other; see `check_splits`.
    """
    path = pathlib.Path(path)
    rows = read_rows(path, ["filename", "labels"], ["split"])
    if isinstance(vocabulary, str | os.PathLike):
        vocabulary = read_vocabulary(vocabulary)
    if vocabulary is None:
        names = (name for _, row in rows for name in row["labels"].split(","))
        vocabulary = sorted({name.strip() for name in names} - {""})
        if not vocabulary:
            raise ValueError(f"{path}: no row has a label")
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
        list(vocabulary),
    )
    if "split" not in rows[0][1]:
        # Or a file that is listed twice would be drawn into two splits.
        check_splits(path, {"the file": corpus})
        return check_splits(path, random_splits(corpus, seed))
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


def read_folders(data_dir, seed=0):
    """A folder per class, or train, val and test folders of such.

    Args:
        data_dir: the folder. If `train`, `val` or `test` in it has folders
            of its own with audio, these are the splits, and must be all that
            has audio; else each folder is a class, one named `train` too,
            and files are drawn as `read_csv` does.
        seed: int, seed of that draw.

    Returns:
        Dict of `Corpus` by split: train, val, test. A split without a folder
        has no files.

    Raises:
        FileNotFoundError: if there is no such folder, no audio in it, or none
            in a split.
        ValueError: if audio lies in no folder of a class, or some folders
            look like splits and others like classes.
    """
    data_dir = pathlib.Path(data_dir)
    depths = {}
    for file in audio_below(data_dir):
        folder, *rest = file.relative_to(data_dir).parts
        depths[folder] = max(len(rest), depths.get(folder, 0))
    like_splits = [split for split in SPLITS if depths.get(split, 0) > 1]
    if not like_splits:
        if depths and set(depths) <= set(SPLITS):
            raise ValueError(
                f"{data_dir}: splits need a folder per class in them. "
                f"Received: {sorted(depths)} with files alone"
            )
        corpus = read_class_folders(data_dir)
        return check_splits(data_dir, random_splits(corpus, seed))
    others = sorted(set(depths) - set(SPLITS))
    if others or "train" not in depths:
        near = closest(others[0], SPLITS) if others else ""
        raise ValueError(
            f"{data_dir}: {like_splits} look like splits, so that train must "
            f"be there and audio must be in {SPLITS} alone{near}. "
            f"Received: audio in {sorted(depths)}"
        )
    vocabulary = read_class_folders(data_dir / "train").vocabulary
    return check_splits(
        data_dir,
        {
            split: read_class_folders(data_dir / split, vocabulary)
            if (data_dir / split).is_dir()
            else Corpus([], [], vocabulary)
            for split in SPLITS
        },
    )


def read_class_folders(data_dir, vocabulary=None):
    """All audio files below the folders of `data_dir`, one folder a class.

    Args:
        data_dir: the folder.
        vocabulary: labels that its folders must be among, or `None` for the
            names of those that have audio, sorted.

    Returns:
        `Corpus`.

    Raises:
        FileNotFoundError: if there is no such folder or no audio.
        ValueError: if audio lies beside the folders, or a folder is not in
            the vocabulary.
    """
    data_dir = pathlib.Path(data_dir)
    found = audio_below(data_dir)
    if not found:
        raise FileNotFoundError(f"{data_dir}: no audio in folders of classes")
    names = [file.relative_to(data_dir).parts for file in found]
    beside = [parts[0] for parts in names if len(parts) == 1]
    if beside:
        raise ValueError(
            f"{data_dir}: audio must be in folders of classes. "
            f"Received: {len(beside)} files beside them, the first is "
            f"{beside[0]}"
        )
    names = [parts[0] for parts in names]
    if vocabulary is None:
        vocabulary = sorted(set(names))
        check_vocabulary(data_dir, vocabulary)
    unknown = sorted(set(names) - set(vocabulary))
    if unknown:
        raise ValueError(
            f"{data_dir}: folders that the train split lacks"
            f"{closest(unknown[0], vocabulary)}. Received: {unknown}"
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
