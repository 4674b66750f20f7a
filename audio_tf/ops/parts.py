"""Weights that hold several parts, each of a scale of its own.

A table of attention logits holds one map per head: crafted heads outweigh
random ones by three orders of magnitude. An optimizer that scales steps by the
size of what they move, as LAMB does, must look at one part at a time.
"""


def declare(variable, axis):
    """Says that a weight is a stack of independent parts.

    Args:
        variable: `keras.Variable`.
        axis: int, the axis along which the parts stand.
    """
    variable.parts_axis = axis


def axis_of(variable):
    """The axis along which the parts of a weight stand.

    Args:
        variable: `keras.Variable`.

    Returns:
        Int as `declare` was given it, or `None` for a weight that is one part.
    """
    return vars(variable).get("parts_axis")
