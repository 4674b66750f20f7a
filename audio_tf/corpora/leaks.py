"""Leaks: speakers, uploaders, recordings and sound on both sides of a split.

A model that has heard the speaker, or the very clip, in training scores
better than it does on what is new to it.
"""

import dataclasses
import itertools

from audio_tf.terminal import printable


@dataclasses.dataclass(frozen=True)
class Leak:
    """A thing of one kind that two splits of a corpus have in common.

    Attributes:
        kind: str, what they share: the corpus' `source_kind`, or `"audio"`
            for clips with the same samples.
        splits: pair of str, the names of the splits.
        shared: int, how many speakers, recordings or sounds are in both.
        clips: int, the clips of the second split that have one of them.
        files: pair of paths, the first clip of each split that shares one.
    """

    kind: str
    splits: tuple
    shared: int
    clips: int
    files: tuple

    def __str__(self):
        one, two = (
            f"{printable(file)} in {split}"
            for file, split in zip(self.files, self.splits, strict=True)
        )
        what = "the same audio" if self.kind == "audio" else f"one {self.kind}"
        return (
            f"{one} and {two} have {what}, as {self.clips} clips of "
            f"{self.splits[1]} have"
        )


def of_keys(kind, splits, keys):
    """Finds what splits share.

    Args:
        kind: str, see `Leak`.
        splits: dict of `Corpus` by split.
        keys: dict by split of a list with a key of each clip; clips share
            something if their keys are equal, and nothing if they are `None`.

    Returns:
        List of `Leak`, one for each pair of splits that share something.
    """
    first = {
        split: dict(zip(reversed(keys[split]), reversed(corpus.files)))
        for split, corpus in splits.items()
    }
    found = []
    for one, two in itertools.combinations(splits, 2):
        rows = [
            row
            for row, key in enumerate(keys[two])
            if key is not None and key in first[one]
        ]
        if rows:
            key, file = keys[two][rows[0]], splits[two].files[rows[0]]
            found.append(
                Leak(
                    kind,
                    (one, two),
                    len({keys[two][row] for row in rows}),
                    len(rows),
                    (first[one][key], file),
                )
            )
    return found


def of_sources(splits):
    """Finds speakers, uploaders or recordings that are in two splits.

    Args:
        splits: dict of `Corpus` by split.

    Returns:
        List of `Leak`; empty where the corpus does not know of sources.
    """
    keys = {
        split: corpus.sources or [None] * len(corpus)
        for split, corpus in splits.items()
    }
    kinds = {corpus.source_kind for corpus in splits.values()} - {None}
    return [
        leak for kind in sorted(kinds) for leak in of_keys(kind, splits, keys)
    ]
