"""The answer for one clip, as Python and the command line give it."""


def answer(name, scores, labels, top=None):
    """Returns the best labels of a clip with their scores.

    Args:
        name: path or str, what the clip is called.
        scores: float array `(classes,)`.
        labels: list of str, a name for each class.
        top: int, how many labels there are at most, or `None` for all.

    Returns:
        Dict that JSON can hold: `file`, a str, and `scores`, a dict of floats
        by label, the highest first.
    """
    best = scores.argsort()[::-1][:top]
    return {
        "file": str(name),
        "scores": {labels[index]: float(scores[index]) for index in best},
    }


def refusal(name, reason):
    """Returns the answer for a clip that cannot be used.

    Args:
        name: path or str, what the clip is called.
        reason: str, why it cannot be used.

    Returns:
        Dict of `file` and `error`.
    """
    return {"file": str(name), "error": reason}
