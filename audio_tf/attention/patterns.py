"""Initial logits of attention weights, crafted by hand.

A pattern is a function of `(length)` to a matrix of non-negative weights,
query by key, not normalised, whose smallest positive entry is 1. It comes
with the end of the clip from which it counts: what counts from the start
stays the same when a clip is shorter than the table, what counts from the
end has to be read from the table's other corner.

A row without support, such as the first of "previous frame" or the first two
of "left context", has no weight at all, and its softmax is even. No text of
the papers' authors settles such rows; one public implementation of Raganato's
patterns puts all of their weight on the first frame.
"""

import numpy as np

# The weight of what a pattern leaves out, beside 1 for its least entry. With
# 1e-9 a step of Adam took twice the time on a CPU, presumably since the second
# moments of such logits' gradients are subnormal.
EPSILON = 1e-7
# Logit of a row's largest weight if the weights themselves serve as logits.
SCALE = 10.0
POWER = 3


def shifted(offset):
    """Puts all weight on the frame `offset` later, where there is one."""
    return lambda length: np.eye(length, k=offset), "start"


def increasing(length):
    """Returns weights `(j + 1)^3`, more on later frames."""
    return np.tile(np.arange(1.0, length + 1) ** POWER, (length, 1))


def decreasing(length):
    """Returns weights `(n - j)^3`, more on earlier frames."""
    return increasing(length)[:, ::-1]


def larger_left(length):
    """Returns weights `(j + 1)^3` for `j <= i - 2`."""
    return np.tril(increasing(length), k=-2)


def larger_right(length):
    """Returns weights `(n - j)^3` for `j >= i + 2`."""
    return np.triu(decreasing(length), k=2)


# Heads in order; those beyond are random.
PATTERNS = {
    # Figure 2a of arXiv 2006.05174: five diagonals, one increasing, one
    # decreasing. Its rates are not stated: those of the other set are taken.
    "crafted": [
        shifted(0),
        shifted(-1),
        shifted(-2),
        shifted(1),
        shifted(2),
        (increasing, "start"),
        (decreasing, "end"),
    ],
    # Raganato et al., arXiv 2002.10260, used by the paper's version of 2020:
    # current, previous, next, left and right context, end, start.
    "raganato": [
        shifted(0),
        shifted(-1),
        shifted(1),
        (larger_left, "start"),
        (larger_right, "end"),
        (increasing, "start"),
        (decreasing, "end"),
    ],
}


def anchors(patterns, num_heads):
    """Returns for each head from which end of the clip its table counts."""
    known = [anchor for _, anchor in PATTERNS.get(patterns, [])]
    return tuple(known[:num_heads] + ["start"] * (num_heads - len(known)))


def logits(patterns, form, length):
    """Yields the logits `(length, length)` of each crafted head.

    Args:
        patterns: key of `PATTERNS`.
        form: `"log"`, `log(p + epsilon)`, whose softmax is the pattern;
            or `"scaled"`, the pattern scaled to a largest logit of 10.
        length: int, frames.
    """
    for pattern, _ in PATTERNS[patterns]:
        weights = pattern(length)
        if form == "log":
            yield np.log(weights + EPSILON)
        else:
            peak = np.maximum(weights.max(axis=1, keepdims=True), EPSILON)
            yield SCALE * weights / peak
