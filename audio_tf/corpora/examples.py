"""Texts and images with labels, for frozen encoders that hear nothing."""

import collections
import dataclasses
import hashlib
import pathlib
import typing

import numpy as np

from audio_tf.corpora.corpus import SPLITS
from audio_tf.corpora.labels import check_vocabulary


def as_it_is(item):
    """Returns an item that needs no decoding."""
    return item


@dataclasses.dataclass(frozen=True)
class Examples:
    """Texts or images, each with one label and in one split.

    Attributes:
        kind: str, `"text"` or `"image"`.
        items: sequence of what `decode` takes: texts, paths of files, or
            uint8 images `(height, width, 3)`.
        labels: list of str.
        splits: list of str, of train, val and test.
        names: list of str, where each comes from, for messages.
        sources: dict by name of a file of a list of its size and, of a file
            with many examples, its checksum: what they were read from.
        decode: function of an item to a text or an image; it raises a
            `ValueError` or an `OSError` if the item is bad.
    """

    kind: str
    items: typing.Sequence
    labels: list
    splits: list
    names: list
    sources: dict
    decode: typing.Callable = as_it_is

    def __len__(self):
        return len(self.items)

    def read(self, row):
        """Returns the text, or the uint8 image, of an example."""
        return self.decode(self.items[row])

    def check(self, where):
        """Returns these examples, if they can be told apart by their labels.

        Args:
            where: path that they were read from, for messages.

        Raises:
            ValueError: if there are none, or labels cannot be told apart.
        """
        if not len(self):
            raise ValueError(f"{where}: no {self.kind} with a label")
        check_vocabulary(where, sorted(set(self.labels)))
        return self


def with_validation(examples, share, seed):
    """Draws the split val where a release has only train and test.

    Args:
        examples: `Examples`.
        share: float, the share of each class of train that becomes val; 0
            makes val of what is test.
        seed: int, seed of the draw.

    Returns:
        `Examples`; they are as they were if some are in val already.

    Raises:
        ValueError: if the share leaves a class without any of them.
    """
    splits = np.array(examples.splits)
    if (splits == "val").any():
        return examples
    if share == 0.0:
        splits[splits == "test"] = "val"
        return dataclasses.replace(examples, splits=splits.tolist())
    rng, labels = np.random.default_rng(seed), np.array(examples.labels)
    for label in sorted(set(examples.labels)):
        rows = np.flatnonzero((labels == label) & (splits == "train"))
        drawn = rng.permutation(rows)[: round(share * len(rows))]
        if len(rows) and len(drawn) in (0, len(rows)):
            raise ValueError(
                "A share for validation must be some and not all of each "
                f"class. Received: {share} of {len(rows)} {label!r}"
            )
        splits[drawn] = "val"
    return dataclasses.replace(examples, splits=splits.tolist())


def source(path):
    """Describes a file that many examples are read from.

    Args:
        path: the file.

    Returns:
        List of its size in bytes and its SHA-256.
    """
    content = pathlib.Path(path).read_bytes()
    return [len(content), hashlib.sha256(content).hexdigest()]


def counts(examples):
    """Returns a text with the number of examples of each split."""
    found = collections.Counter(examples.splits)
    return ", ".join(f"{found[split]} {split}" for split in SPLITS)
