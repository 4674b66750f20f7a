"""Leakage: which sides of a figure may have clips or sources in common.

A figure is of clips that are new to a model. What they have in common with
what the model has learned from is a `corpora.leaks.Leak`: one speaker, uploader
or recording, or the same samples, whatever files are called. Its sides are the
splits of a corpus, or its groups where each is left out in turn; what training
hears beside the corpus; and what models that it builds on have heard before.
Groups are told as `group NAME`, for a speaker may be called as a split is.

| in common | official splits | `--other-splits` | other than both |
|---|---|---|---|
| two splits or groups | counted | counted | refused |
| audio beside a corpus, a split that is scored | refused | counted | refused |
| audio beside a corpus, the training split | no leak | no leak | no leak |
| the model, a split that is scored | refused | counted | refused |
| a teacher, a split that is scored | refused | refused | refused |
| a pre-training, a split that is scored | counted | counted | counted |

Pre-training is told no label of what it fills in: it is no reason to refuse a
figure, and one to say so beside it.
What a model has heard of a scored split is the splits' own matter where the
training split has it, too: whoever trains on official splits hears it. What is
counted is printed, and stands in the result.
"""

import dataclasses
import typing

import numpy as np

from audio_tf import data
from audio_tf.corpora.leaks import Leak, of_sources
from audio_tf.runs import heard
from audio_tf.runs.beside import BESIDE, NOISE, UNLABELLED
from audio_tf.runs.settings import flag

TRAIN = "train"
SCORED = ("val", "test")
# Models that a training builds on, or one that is scored, by their flags.
MODEL = "model"
TEACHERS = "teachers"
# That of a model, which no flag of its own says.
PRETRAINING = "pretraining"
WAY_OUT = "--other-splits allows that, and stands in the result"


class Side(typing.NamedTuple):
    """A side of a leak that is no split of the corpus.

    Attributes:
        fault: str, what is wrong with it where it has scored clips, `None` if
            that is counted alone.
        by_request: bool, whether `--other-splits` allows that.
    """

    fault: str | None
    by_request: bool


# By the names of their flags, where they have one. Splits, and groups that are
# left out, are none.
SIDES = {
    UNLABELLED: Side("must not hold clips that are scored", True),
    NOISE: Side("must not hold clips that are scored", True),
    MODEL: Side("must not have learned from clips that are scored here", True),
    TEACHERS: Side(
        "must not have learned from clips that are scored here", False
    ),
    PRETRAINING: Side(None, True),
}


@dataclasses.dataclass(frozen=True)
class Leakage:
    """Finds what sides have in common, and refuses what they may not have.

    Each `of_...` returns a list of the `Leak` that are allowed, for
    `results.facts`, and prints them; it raises a `ValueError` at one that is
    not, which names two files or a preset, and the flag that allows it.

    Attributes:
        official: bool, whether the splits are those of the corpus' authors.
        other_splits: bool, whether leaks were allowed by the user.
    """

    official: bool
    other_splits: bool

    def allows(self, sides):
        """Returns whether two sides may have something in common.

        Args:
            sides: pair of str, names of splits, of groups or of `SIDES`.
        """
        beyond = [SIDES[side] for side in sides if side in SIDES]
        if beyond:
            return all(
                each.fault is None or (self.other_splits and each.by_request)
                for each in beyond
            )
        return self.official or self.other_splits

    def judged(self, found, whose=""):
        """Returns leaks that are allowed, or raises the error of the first.

        Args:
            found: list of `Leak`.
            whose: str, the preset where a side is a model's.
        """
        for leak in found:
            if not self.allows(leak.splits):
                raise ValueError(refusal(leak, whose))
        for leak in found:
            print(f"on both sides: {leak}")
        return found

    def of_sources(self, corpora):
        """Finds speakers, uploaders or recordings on two sides.

        Args:
            corpora: dict of `Corpus` by split or group.
        """
        return self.judged(of_sources(corpora))

    def of_audio(self, clips):
        """Finds clips of the same samples on two sides.

        Args:
            clips: dict of `Clips` by split, by group or by name of `BESIDE`.
        """
        return self.judged(
            [leak for leak in data.same_audio(clips) if is_leak(leak.splits)]
        )

    def of_model(self, side, preset, known, clips, scored=SCORED):
        """Finds clips that a model has heard and that are scored.

        Args:
            side: `MODEL` or `TEACHERS`, which has learned what it has.
            preset: str, the model's, for the message.
            known: `heard.Heard` of it.
            clips: dict of `Clips` by split or group.
            scored: iterable of str, those that figures are of.
        """
        found = []
        for each, marks in (
            (side, known.learned),
            (PRETRAINING, known.unlabelled()),
        ):
            if marks is None:
                continue
            if TRAIN in clips and TRAIN not in scored:
                marks = np.setdiff1d(marks, clips[TRAIN].marks)
            again = {
                split: heard.find(marks, clips[split])
                for split in scored
                if split in clips
            }
            found += self.of_files(each, preset, again)
        return found

    def of_files(self, side, preset, again):
        """Judges files of scored splits that a model has heard.

        Args:
            side: `MODEL`, `TEACHERS` or `PRETRAINING`.
            preset: as `of_model` takes it.
            again: dict by split of a list of paths, of any length.
        """
        found = []
        for split, files in again.items():
            if files:
                count, same = len(files), (files[0], files[0])
                found.append(Leak("audio", (side, split), count, count, same))
        return self.judged(found, preset)

    def of_list(self, side, preset, known, corpora, record):
        """Finds clips that a model has learned from by the list of that.

        Nothing is decoded for that. Another corpus may have names, sizes and
        labels in common with this one: beside marks, which tell more, a list
        counts only if this corpus has all of it.

        Args:
            side, preset, known: as `of_model` takes them.
            corpora: dict of `Corpus` by split.
            record: dict that `corpus_records.make` has returned of them.
        """
        listed, splits = entries(known.listed), record["splits"]
        there = set().union(*map(entries, splits.values()))
        if known.learned is not None and not listed <= there:
            return []
        again = {
            split: [
                file
                for file, entry in zip(
                    corpora[split].files, splits[split].items(), strict=True
                )
                if entries([entry]) <= listed
            ]
            for split in SCORED
            if split in splits
        }
        return self.of_files(side, preset, again)

    def of_split(self, preset, split, clips, again, train):
        """Judges clips of one split that the model which scores it has heard.

        Args:
            preset: as `of_model` takes it.
            split: str, its name. That a model has heard `train` is no leak.
            clips: `Clips` of the split.
            again: list of paths, those of them that the model has heard.
            train: function without arguments that returns the `Clips` of the
                training split, or `None` without one; it is called where that
                decides.
        """
        if split == TRAIN or not again:
            return []
        found = []
        training = train() if self.official and not self.other_splits else None
        if training is not None:
            found = self.of_audio({TRAIN: training, split: clips})
            there = heard.find(training.marks, clips)
            again = [file for file in again if file not in there]
        return [*found, *self.of_files(MODEL, preset, {split: again})]


def entries(split):
    """Returns the files of a split of a `corpus_record` as they are compared.

    Args:
        split: dict by name of the list of a file's size and labels, or a list
            of pairs of these.

    Returns:
        Set of tuples of the name and what the list has.
    """
    return {(name, *entry) for name, entry in dict(split).items()}


def is_leak(sides):
    """Returns whether it matters that two sides have the same audio.

    What is beside a corpus may be there twice, and be trained on with a label.

    Args:
        sides: pair of str, as `Leakage.allows` takes them.
    """
    return not (set(sides) <= {TRAIN, *BESIDE})


def refusal(leak, whose):
    """Returns the message of an error: what is shared, and the way out.

    Args:
        leak: `Leak` that is not allowed.
        whose: str, the preset where a side is a model's.
    """
    beyond = [side for side in leak.splits if side in SIDES]
    if not beyond:
        return (
            f"{leak}. {WAY_OUT}. Received: {leak.shared} of the kind "
            f"{leak.kind!r} on both sides"
        )
    side = beyond[0]
    way_out = f"; {WAY_OUT}" if SIDES[side].by_request else ""
    received = f"{leak}"
    if side not in BESIDE:
        received = f"{leak.clips} of {leak.splits[1]}, such as {leak.files[1]}"
    name = " ".join(filter(None, [flag(side), whose]))
    return f"{name} {SIDES[side].fault}{way_out}. Received: {received}"
