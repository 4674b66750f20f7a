"""Flags that several commands have, and what their values must be."""

import argparse
import math

from audio_tf.ops.checks import MAX_COUNT, closest

MAX_SEED = 2**32 - 1  # Of numpy and scikit-learn.
MAX_VERSION = 2**63 - 1  # Of TensorFlow Serving.
MAX_PORT = 2**16 - 1


def checked(kind, text, fits, wanted):
    """Converts a text by `kind`, and refuses it unless that `fits`."""
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if not fits(number):
        raise argparse.ArgumentTypeError(f"must be {wanted}. Received: {text}")
    return number


def positive_int(text):
    """Converts a flag's number that is at least 1."""
    wanted = f"a positive integer, at most {MAX_COUNT}"
    return checked(int, text, lambda n: 1 <= n <= MAX_COUNT, wanted)


def whole(text):
    """Converts a flag's number that is at least 0: a count, or a seed."""
    wanted = f"an integer from 0 to {MAX_SEED}"
    return checked(int, text, lambda n: 0 <= n <= MAX_SEED, wanted)


def version_number(text):
    """Converts a flag's number of a SavedModel's version."""
    wanted = "an integer, at least 0"
    return checked(int, text, lambda n: 0 <= n <= MAX_VERSION, wanted)


def port_number(text):
    """Converts a flag's number of a port, or 0 for any."""
    wanted = f"an integer from 0 to {MAX_PORT}"
    return checked(int, text, lambda n: 0 <= n <= MAX_PORT, wanted)


def positive_float(text):
    """Converts a flag's number above 0, and finite."""
    return checked(float, text, lambda n: 0.0 < n < math.inf, "positive")


def one_of(names):
    """Returns a function that takes a name of a table, or names the nearest."""

    def known(text):
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"must be one of {', '.join(names)}{closest(text, names)}. "
                f"Received: {text!r}"
            )
        return text

    return known


def need(flag, value, needed, met):
    """Raises a `ValueError` if a flag is given without the one it needs.

    Args:
        flag: str, the flag.
        value: its value; `None`, `False` and `[]` are of a flag not given.
        needed: str, the flag that it needs.
        met: whether that one is given.
    """
    # Not by its truth: 0 was given too.
    given = not (value is None or value is False or value == [])
    if given and not met:
        raise ValueError(
            f"{flag} means nothing without {needed}. Received: "
            + (flag if value is True else f"{flag} {value}")
        )


def add_files(parser, more=""):
    """Adds the audio files that a command reads.

    Args:
        parser: the command's parser.
        more: str, what else may stand for a file, for the help text.

    Returns:
        The `argparse.Action`.
    """
    return parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="audio file, a folder of such, or a quoted pattern such as "
        f"'sounds/**/*.wav'{more}",
    )


def add_output(parser):
    """Adds how scores are printed."""
    parser.add_argument(
        "--top",
        type=positive_int,
        default=5,
        help="labels for each file (default: 5)",
        metavar="N",
    )
    add_json(parser)


def add_labels(parser, of):
    """Adds the file of the names of a model's classes.

    Args:
        parser: the command's parser.
        of: str, whose classes they are, for the help text.
    """
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help=f"names of the classes{of}: assets.extra/audio_tf.json of an "
        "export, or a label per line, in quotes if it has a comma",
    )


def add_json(parser):
    """Adds the choice of JSON in place of text."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per file"
    )


def add_strict(parser):
    """Adds the choice to take no bad file."""
    parser.add_argument(
        "--strict", action="store_true", help="stop at the first bad file"
    )
