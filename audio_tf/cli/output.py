"""Printing of scores, and of files that have none."""

import json
import sys

from audio_tf import console
from audio_tf.terminal import describe_failures, printable


def print_scores(found, as_json):
    """Prints the best labels of one file.

    Args:
        found: dict that `ops.answers.answer` has returned.
        as_json: bool, whether to print a line of JSON.
    """
    if as_json:
        print(json.dumps(found, allow_nan=False), flush=True)
        return
    print(printable(found["file"]))
    for label, score in found["scores"].items():
        print(f"  {score:6.3f}  {printable(label)}", flush=True)


def report(failures):
    """Prints which files were left out, and why.

    Args:
        failures: dict of the reason by file.

    Returns:
        The exit status.
    """
    if not failures:
        return 0
    print(describe_failures(failures), file=sys.stderr)
    return console.LEFT_OUT
