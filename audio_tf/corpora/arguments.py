"""Checks of the lists that readers of corpora are given, alone or by split."""

import collections.abc
import numbers
import os

from audio_tf.ops.checks import is_number


def is_list_of(value, kind):
    """Returns whether a value is a list, or another collection, of a kind.

    A string is none: its letters are not what is meant.

    Args:
        value: what an argument was given.
        kind: `str`, or `int` for whole numbers of numpy's, too.
    """
    several = isinstance(value, collections.abc.Collection)
    if not several or isinstance(value, (str, bytes, collections.abc.Mapping)):
        return False
    if kind is int:
        return all(
            isinstance(each, numbers.Integral) and is_number(each)
            for each in value
        )
    return all(isinstance(each, kind) for each in value)


def check_names(**given):
    """Raises a `ValueError` that names the first that is no list of strings."""
    for name, value in given.items():
        if not is_list_of(value, str):
            raise ValueError(
                f"`{name}` must be a list of strings. "
                f"Received: {name}={value!r}"
            )


def check_numbers_by_split(**given):
    """Raises a `ValueError` unless arguments are dicts of lists of integers."""
    for name, value in given.items():
        if not isinstance(value, dict) or not all(
            is_list_of(each, int) for each in value.values()
        ):
            raise ValueError(
                f"`{name}` must be a dict by split of lists of integers, such "
                "as {'train': [1, 2, 3], 'val': [4], 'test': [5]}. "
                f"Received: {name}={value!r}"
            )


def check_in_one_split(noun, by_split, known=None):
    """Raises a `ValueError` if a number is twice in a dict by split.

    Clips would be on both sides of a figure.

    Args:
        noun: str, what the numbers are of, such as `"fold"`.
        by_split: dict of lists of int.
        known: collection of the numbers that there are, or `None` for any.

    Returns:
        List of all the numbers, of all splits.
    """
    used = [number for numbers in by_split.values() for number in numbers]
    unknown = known is not None and not set(used) <= set(known)
    if len(set(used)) < len(used) or unknown:
        among = "" if known is None else f"one of {sorted(known)} and "
        raise ValueError(
            f"Each {noun} must be {among}in one split only, or clips of one "
            f"are on both sides. Received: {by_split}"
        )
    return used


def check_names_by_split(name, value, paths=False):
    """Raises a `ValueError` unless an argument is a dict of lists of strings.

    Args:
        name: str, the argument that the error names.
        value: what it was given.
        paths: bool, whether the path of a file may stand for a list.
    """
    if not isinstance(value, dict) or not all(
        is_list_of(each, str)
        or (paths and isinstance(each, (str, os.PathLike)))
        for each in value.values()
    ):
        or_paths = ", or of paths of such lists" if paths else ""
        raise ValueError(
            f"`{name}` must be a dict by split of lists of strings{or_paths}. "
            f"Received: {name}={value!r}"
        )
