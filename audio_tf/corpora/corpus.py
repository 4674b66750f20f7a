"""Corpora: files and labels by split, and splits that contradict each other."""

import dataclasses
import os
import types

import numpy as np

from audio_tf.corpora.arguments import check_names
from audio_tf.corpora.labels import check_vocabulary
from audio_tf.ops.checks import check_whole_numbers, closest

SPLITS = ("train", "val", "test")


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Clips as audio files with labels; nothing of them is decoded here.

    Attributes:
        files: list of the paths, one a clip.
        labels: list of the label names of each clip, lists of strings.
        vocabulary: list of all label names, in the order of a model's scores.
        groups: list of str, who speaks in each clip, or its session: what is
            left out in turn; `None` where the corpus does not say.
        sources: list of str, the person, the uploader or the recording that
            each clip comes from, `None` for a clip of which that is not
            known; clips of one source are alike, and figures are of few
            sources rather than of many clips. `None` instead of the list
            where the corpus knows of none, or its labels are the sources.
        source_kind: str, what the sources are: `"speaker"`, `"uploader"`,
            `"recording"`, or `"source"` where that is not told; `None`
            without them.
        licences: list of str, the licence of each clip as the lists of the
            corpus have it, `None` for a clip of which they do not say, and
            instead of the list where they say nothing of licences.
        frame_labels: `None`, since the labels are of whole clips alone;
            `SpeechCorpus` may have labels of frames.
        report: empty, since what does not fit is an error; `SpeechCorpus`
            may have what it leaves out.

    Examples:
        >>> from audio_tf import corpora
        >>> files = ["a.wav", "b.wav", "c.wav"]
        >>> labels = [["dog"], ["dog", "rain"], ["rain"]]
        >>> corpus = corpora.Corpus(files, labels, ["dog", "rain"])
        >>> corpus.select([1]).labels
        [['dog', 'rain']]
    """

    files: list
    labels: list
    vocabulary: list
    groups: list | None = dataclasses.field(default=None, kw_only=True)
    sources: list | None = dataclasses.field(default=None, kw_only=True)
    source_kind: str | None = dataclasses.field(default=None, kw_only=True)
    licences: list | None = dataclasses.field(default=None, kw_only=True)

    # The attributes that have something of each clip.
    OF_CLIPS = ("files", "labels", "groups", "sources", "licences")
    frame_labels = None
    report = types.MappingProxyType({})

    def __post_init__(self):
        for name, values in self.lists().items():
            if len(values) != len(self.files):
                raise ValueError(
                    f"`{name}` must have one entry for each of `files`. "
                    f"Received: {len(values)} for {len(self.files)} files"
                )

    def __len__(self):
        return len(self.files)

    def lists(self):
        """Returns the lists that have something of each clip, by attribute."""
        found = {name: getattr(self, name) for name in self.OF_CLIPS}
        return {k: v for k, v in found.items() if v is not None}

    def targets(self):
        """Returns multi-hot labels, a float32 array `(clips, classes)`.

        Raises:
            ValueError: if a label is not in the vocabulary.
        """
        column = {label: index for index, label in enumerate(self.vocabulary)}
        targets = np.zeros((len(self), len(self.vocabulary)), "float32")
        for row, labels in enumerate(self.labels):
            for label in labels:
                if label not in column:
                    raise ValueError(
                        f"{self.files[row]}: label not in the vocabulary of "
                        f"{len(column)}{closest(label, column)}. "
                        f"Received: {label!r}"
                    )
            targets[row, [column[label] for label in labels]] = 1.0
        return targets

    def has_one_label(self):
        """Returns whether each clip has exactly one label."""
        return all(len(labels) == 1 for labels in self.labels)

    def check_teaches(self):
        """Checks that something can be learned from the clips.

        Raises:
            ValueError: if all clips have one and the same label and no other,
                or none has any.
        """
        found = {label for labels in self.labels for label in labels}
        if not found:
            raise ValueError(
                "Training needs clips with labels in the split `train`. "
                f"Received: {len(self)} clips, none with a label"
            )
        if len(found) == 1 and self.has_one_label():
            raise ValueError(
                "Training needs clips of two labels, or some without the one "
                "that there is: nothing else can be told from it. Received: "
                f"{found.pop()!r} of all {len(self)} clips of training"
            )

    def annotation(self, row):
        """Returns all that clip `row` is labelled with, a list of strings.

        Two corpora whose files and annotations are equal are equal data: the
        checksum of a training run is made from both.
        """
        return [str(label) for label in self.labels[row]]

    def select(self, rows):
        """Returns the corpus of these clips alone, its vocabulary unchanged.

        Args:
            rows: iterable of int, the indices of the clips, in their new
                order.

        Raises:
            ValueError: if rows are True or False; these would be 1 and 0.
        """
        rows = list(rows)
        if any(isinstance(row, (bool, np.bool_)) for row in rows):
            raise ValueError(
                "`rows` must be the indices of clips, as `numpy.flatnonzero` "
                "has them of a mask. Received: True or False"
            )
        chosen = {
            name: [values[row] for row in rows]
            for name, values in self.lists().items()
        }
        return dataclasses.replace(self, **chosen)


def draw_splits(corpus, seed):
    """Draws 80 % of the clips for train, 10 % for val and 10 % for test.

    Args:
        corpus: `Corpus`. Where it knows of sources, these are drawn whole, so
            that none is in two splits; the shares are then of sources.
        seed: int, seed of the draw, or `None` for 0.

    Returns:
        Dict of `Corpus` by split; within a split the clips keep their order.

    Raises:
        ValueError: if the seed is no whole number of at least 0.
    """
    if seed is None:
        seed = 0
    check_whole_numbers(seed=seed)
    if corpus.sources is not None:
        # A clip whose source is not known is one of its own.
        units = [
            (source is None, row if source is None else source)
            for row, source in enumerate(corpus.sources)
        ]
        names = list(dict.fromkeys(units))
        drawn = np.random.default_rng(seed).permutation(len(names))
        place = {names[unit]: at for at, unit in enumerate(drawn)}
        tenth = len(names) // 10
        rows = {"train": [], "val": [], "test": []}
        for row, unit in enumerate(units):
            at = place[unit]
            rows[
                "val" if at < tenth else "test" if at < 2 * tenth else "train"
            ].append(row)
        return {split: corpus.select(rows[split]) for split in SPLITS}
    order = np.random.default_rng(seed).permutation(len(corpus))
    tenth = len(corpus) // 10
    return {
        "train": corpus.select(sorted(order[2 * tenth :])),
        "val": corpus.select(sorted(order[:tenth])),
        "test": corpus.select(sorted(order[tenth : 2 * tenth])),
    }


def check_no_draw(where, seed):
    """Checks that no seed is given to splits that need no draw.

    Args:
        where: what has the splits, for messages.
        seed: int, or `None` where none is given.

    Raises:
        ValueError: if one is given.
    """
    if seed is not None:
        raise ValueError(
            f"{where} has splits of its own, which no seed of the corpus "
            f"draws. Received: seed={seed}"
        )


def split_by_speaker(where, corpus, speakers, val_speakers, test_speakers):
    """Splits a corpus so that no speaker is in two splits.

    Args:
        where: path of the corpus, for messages.
        corpus: `Corpus`.
        speakers: list of str, the speaker of each clip.
        val_speakers: list of str, the speakers of the split val.
        test_speakers: list of str, the speakers of the split test; all who
            are in neither are for training.

    Returns:
        Dict of `Corpus` by split, whose groups and sources are the speakers;
        within a split the clips keep their order.

    Raises:
        FileNotFoundError: if there are no clips.
        ValueError: if no list of speakers is given, a speaker is named twice
            or has no clip, or nobody is left for training.
    """
    check_names(val_speakers=val_speakers, test_speakers=test_speakers)
    if not len(corpus):
        raise FileNotFoundError(f"{where}: no clips to be split by speaker")
    corpus = dataclasses.replace(
        corpus,
        groups=list(speakers),
        sources=list(speakers),
        source_kind="speaker",
    )
    known = sorted(set(speakers))
    named = {"val_speakers": val_speakers, "test_speakers": test_speakers}
    held_out = [*val_speakers, *test_speakers]
    for option, names in named.items():
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{where}: `{option}` must be among {known}"
                    f"{closest(name, known)}. Received: {name!r}"
                )
    if len(set(held_out)) < len(held_out) or len(held_out) == len(known):
        raise ValueError(
            f"{where}: each speaker must be named once, and one of {known} be "
            f"left for training. Received: val_speakers={list(val_speakers)}, "
            f"test_speakers={list(test_speakers)}"
        )
    owner = dict.fromkeys(known, "train")
    owner |= dict.fromkeys(val_speakers, "val")
    owner |= dict.fromkeys(test_speakers, "test")
    return {
        split: corpus.select(
            [row for row, name in enumerate(speakers) if owner[name] == split]
        )
        for split in SPLITS
    }


def file_identity(file):
    """Returns a value that two names of one file have in common.

    The file system knows of links, and of names that it does not tell apart
    by case. Of files that are not there, the names are compared.
    """
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return os.path.abspath(file)
    return status.st_dev, status.st_ino


def check_splits(where, splits):
    """Returns the splits of a corpus, if they do not contradict each other.

    Files are not opened: a missing or bad one is found by `data.prepare`,
    which leaves it out and names it.

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
            # Beside names from the folder of the corpus, whole paths.
            name = os.path.abspath(file)
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
