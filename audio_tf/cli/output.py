"""Printing of scores, and of files that have none."""

import json
import sys

from audio_tf import console
from audio_tf.terminal import describe_failures, printable


def print_scores(file, scores, labels, top, as_json):
    """Prints the best labels of one file.

    Args:
        file: the path.
        scores: floats `(classes,)`.
        labels: list of str, a name for each class.
        top: int, how many labels are printed.
        as_json: bool, whether to print a line of JSON.
    """
    best = scores.argsort()[::-1][:top]
    ranked = {labels[index]: float(scores[index]) for index in best}
    if as_json:
        found = {"file": str(file), "scores": ranked}
        print(json.dumps(found, allow_nan=False), flush=True)
        return
    print(printable(file))
    for label, score in ranked.items():
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
