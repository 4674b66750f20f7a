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
    return {
        "file": str(name),
        "scores": {
            labels[index]: float(scores[index])
            for index in best_first(scores, top)
        },
    }


def best_first(scores, top=None):
    """Returns the classes of the highest scores, the highest first.

    Of equal scores, as sigmoids of 1 are, the first class comes first: it is
    the one that accuracy counts and that `explain` explains.

    Args:
        scores: float array `(classes,)`.
        top: int, how many classes, or `None` for all.

    Returns:
        Int array of their places.
    """
    return (-scores).argsort(kind="stable")[:top]


def refusal(name, reason):
    """Returns the answer for a clip that cannot be used.

    Args:
        name: path or str, what the clip is called.
        reason: str, why it cannot be used.

    Returns:
        Dict of `file` and `error`.
    """
    return {"file": str(name), "error": reason}
