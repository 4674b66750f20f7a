"""Corpora of speech: utterances, speakers, labels of frames."""

import dataclasses
import hashlib
import os
import random

import numpy as np

from audio_tf.corpora import phones
from audio_tf.corpora.arguments import check_names_by_split
from audio_tf.corpora.corpus import Corpus
from audio_tf.corpora.labels import compose_unicode
from audio_tf.terminal import first_names, first_quoted

# What a report says of utterances that lack labels, and are there all the same.
WITHOUT_LABELS = "utterances without labels"


@dataclasses.dataclass(frozen=True)
class SpeechCorpus(Corpus):
    """Utterances with speakers and, where given, labels of their frames.

    An utterance is a clip of speech. As labels of a `Corpus` it has its
    speaker, or none if that is not known; the vocabulary has the speakers of
    all splits that were read together, sorted as strings.

    Attributes:
        utterances: list of the utterances' names, unique in the corpus.
        frame_labels: list with an integer array `(labels,)` for each
            utterance, or `None` for one that has no labels; `None` instead of
            the list if no utterance has any.
        label_rate_hz: float, labels per second, or `None` without labels.
        label_names: list of the labels' names, or `None`.
        report: dict of lists of names (of utterances or files) by a text that
            says what did not fit when the corpus was read. All splits of one
            corpus share it.

    Examples:
        >>> from audio_tf import corpora
        >>> corpus = corpora.SpeechCorpus(
        ...     files=["5/a.flac", "7/b.flac"],
        ...     labels=[["5"], ["7"]],
        ...     vocabulary=["5", "7"],
        ...     utterances=["5-a", "7-b"],
        ... )
        >>> corpus.select([1]).utterances
        ['7-b']
    """

    OF_CLIPS = (*Corpus.OF_CLIPS, "utterances", "frame_labels")
    utterances: list
    frame_labels: list | None = None
    label_rate_hz: float | None = None
    label_names: list | None = None
    report: dict = dataclasses.field(default_factory=dict)

    @property
    def speakers(self):
        """Returns each speaker's index in the vocabulary, int32 `(clips,)`.

        It is -1 for an utterance whose speaker is not known.
        """
        column = {name: index for index, name in enumerate(self.vocabulary)}
        return np.array(
            [column[names[0]] if names else -1 for names in self.labels],
            np.int32,
        )

    def annotation(self, row):
        """Returns the speaker, and a checksum of the frames' labels if any."""
        labels = self.frame_labels and self.frame_labels[row]
        if labels is None:
            return super().annotation(row)
        frames = np.ascontiguousarray(labels, "<i4").tobytes()
        return [*super().annotation(row), hashlib.sha256(frames).hexdigest()]

    def labelled(self):
        """Returns the corpus of the utterances whose frames have labels."""
        labels = self.frame_labels or [None] * len(self)
        return self.select(
            [row for row, each in enumerate(labels) if each is not None]
        )

    def describe(self):
        """Returns a text that counts what did not fit and names some of it.

        It has one line for each entry of the report, none if all did fit.
        """
        lines = []
        for what, names in self.report.items():
            shown = first_names(map(str, names))
            lines.append(f"{len(names)} {what}: {shown}")
        return "\n".join(lines)

    def reporting(self, found, strict=False):
        """Returns the corpus with more in its report, or raises if `strict`.

        Args:
            found: dict of lists of names by a text that says what is the
                matter with them; empty lists are passed over.
            strict: bool. If True, any name is a `ValueError`.
        """
        found = {what: names for what, names in found.items() if names}
        corpus = dataclasses.replace(self, report={**self.report, **found})
        if strict and found:
            raise ValueError(
                f"Not everything fits, with strict=True.\n{corpus.describe()}"
            )
        return corpus

    def with_frame_labels(
        self,
        labels,
        label_rate_hz=phones.PHONE_RATE_HZ,
        label_names=None,
        strict=False,
    ):
        """Returns the corpus with labels of the utterances' frames.

        Args:
            labels: dict of integer arrays `(labels,)` by the name of the
                utterance.
            label_rate_hz: float, labels per second.
            label_names: list of the labels' names, or `None`.
            strict: bool. If True, an utterance without labels, or labels
                without an utterance, is an error; else the report has it.

        Returns:
            `SpeechCorpus`; utterances without labels stay, with `None`.

        Raises:
            ValueError: if no utterance has labels, or one has a label
                without a name.
        """
        there = set(self.utterances)
        found = [labels.get(name) for name in self.utterances]
        known = [each for each in found if each is not None]
        if not known:
            raise ValueError(
                f"None of {len(self)} utterances is among the {len(labels)} "
                f"with labels. Received: {first_quoted(self.utterances)}; "
                f"and {first_quoted(labels)}"
            )
        top = max(each.max(initial=0) for each in known)
        if label_names is not None and top >= len(label_names):
            raise ValueError(
                f"There are {len(label_names)} names of labels. "
                f"Received: label {top}"
            )
        corpus = dataclasses.replace(
            self,
            frame_labels=found,
            label_rate_hz=float(label_rate_hz),
            label_names=label_names,
        )
        found = {
            "labels without audio": [
                name for name in labels if name not in there
            ],
            WITHOUT_LABELS: [
                name for name in self.utterances if name not in labels
            ],
        }
        return corpus.reporting(found, strict)

    def split(self, lists, strict=False):
        """Splits the corpus by lists of utterances.

        Args:
            lists: dict by split of a list of utterances, or of the path of
                such a list as `read_utterance_list` takes it.
            strict: bool. If True, an utterance in no list, or in a list but
                not there, is an error; else the report has it.

        Returns:
            Dict of `SpeechCorpus` by split, in the order of the lists.

        Raises:
            ValueError: if an utterance is in two lists, or a split is empty.
        """
        check_names_by_split("lists", lists, paths=True)
        rows = {name: row for row, name in enumerate(self.utterances)}
        lists = {
            split: phones.read_utterance_list(names)
            if isinstance(names, str | os.PathLike)
            else [compose_unicode(name) for name in names]
            for split, names in lists.items()
        }
        owner = {}
        for split, names in lists.items():
            for name in names:
                if name in owner:
                    raise ValueError(
                        f"{name} is listed twice, in the splits {owner[name]} "
                        f"and {split}"
                    )
                owner[name] = split
        found = {
            "listed without audio": [
                name for name in owner if name not in rows
            ],
            "utterances in no list": [
                name for name in rows if name not in owner
            ],
        }
        corpus = self.reporting(found, strict)
        chosen = {
            split: [rows[name] for name in names if name in rows]
            for split, names in lists.items()
        }
        for split, each in chosen.items():
            if not each:
                raise ValueError(
                    f"No utterance of the split {split} is there. Received: "
                    f"{len(lists[split])} listed\n{corpus.describe()}"
                )
        return {split: corpus.select(each) for split, each in chosen.items()}

    @classmethod
    def join(cls, corpora):
        """Joins corpora that were read together, in their order.

        Args:
            corpora: list of `SpeechCorpus`, at least one.

        Raises:
            ValueError: if their vocabularies differ.
        """
        first = corpora[0]
        for each in corpora[1:]:
            if each.vocabulary != first.vocabulary:
                raise ValueError(
                    "Only corpora with one vocabulary are joined. Received: "
                    f"{len(first.vocabulary)} and {len(each.vocabulary)} "
                    "speakers"
                )
        labels = None
        if any(each.frame_labels for each in corpora):
            labels = [
                label
                for each in corpora
                for label in each.frame_labels or [None] * len(each)
            ]
        return dataclasses.replace(
            first,
            files=[file for each in corpora for file in each.files],
            labels=[label for each in corpora for label in each.labels],
            utterances=[name for each in corpora for name in each.utterances],
            frame_labels=labels,
        )

    def hold_out(self, share=0.1, seed=1337):
        """Draws whole utterances for validation.

        The defaults do as s3prl's `downstream/phone_linear/dataset.py` does
        with CPC's training list: the list is shuffled by a seed, and its end
        is held out.

        Args:
            share: float from 0 to 1, the share of the utterances that is held
                out.
            seed: int, seed of the shuffle.

        Returns:
            Pair of `SpeechCorpus`: the rest, and the part that is held out.

        Raises:
            ValueError: if `share` is not from 0 to 1.
        """
        if not 0.0 <= share <= 1.0:
            raise ValueError(
                f"`share` must be from 0 to 1. Received: share={share}"
            )
        order = list(range(len(self)))
        random.Random(seed).shuffle(order)
        cut = int(len(order) * (1 - share))
        return self.select(order[:cut]), self.select(order[cut:])


def collect(found):
    """Makes a corpus of utterances that were found on disk.

    Args:
        found: list of triples of the file, the name of the utterance, and the
            speaker or `None` if that is not known.

    Returns:
        `SpeechCorpus`, its report empty.

    Raises:
        ValueError: if two files are one utterance; it names both.
    """
    files = {}
    for file, name, _ in found:
        if name in files:
            raise ValueError(
                f"Two files are the utterance {name}. "
                f"Received: {files[name]} and {file}"
            )
        files[name] = file
    speakers = [speaker for *_, speaker in found]
    return SpeechCorpus(
        [file for file, *_ in found],
        [[] if speaker is None else [speaker] for speaker in speakers],
        sorted(set(speakers) - {None}),
        [name for _, name, _ in found],
    )
