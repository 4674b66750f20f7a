"""A graph's tensors that 8 bits would ruin: all that a logarithm depends on."""

import typing


class Node(typing.NamedTuple):
    """An operation of a graph.

    Attributes:
        name: str.
        is_logarithm: bool.
        inputs, outputs: lists of what the graph knows its values by.
    """

    name: str
    is_logarithm: bool
    inputs: list
    outputs: list


def before(nodes):
    """Names the operations that a logarithm depends on.

    Rounded to 256 steps of the loudest, the power of soft bands is 0, and its
    logarithm says nothing of them: a front end keeps its precision.

    Args:
        nodes: list of `Node`.

    Returns:
        List of str, sorted.
    """
    makers = {value: node for node in nodes for value in node.outputs}
    waiting = [node for node in nodes if node.is_logarithm]
    found = set()
    while waiting:
        for value in waiting.pop().inputs:
            maker = makers.get(value)
            if maker is not None and maker.name not in found:
                found.add(maker.name)
                waiting.append(maker)
    return sorted(found)
