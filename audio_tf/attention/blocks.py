"""Attentions and their arguments for each block of a model."""

import numpy as np

from audio_tf.attention.mechanisms import find, name_of, parts_of, taken_by
from audio_tf.ops.checks import parameters_of, reject_unknown


def by_block(mechanism, arguments, count):
    """Completes the attention of a model: one for each block, with arguments.

    Args:
        mechanism: for all blocks a key of `MIXTURES` or what `find` takes, or
            a list of one that `find` takes for each block.
        arguments: dict of further arguments for all blocks, or a list of a
            dict or `None` for each; `None` for none. Of a mixture each block
            has those of the dict that its attention takes.
        count: int, the number of blocks.

    Returns:
        Pair of a list of names and a list of dicts, one for each block.

    Raises:
        TypeError: if no part of a mixture takes an argument.
        ValueError: if there is no such mechanism, a list has another length,
            or there are fewer blocks than a mixture has parts.

    Examples:
        >>> from audio_tf import attention
        >>> attention.by_block("hybrid_local", None, 4)[0]
        ['local_dense_synthesizer', 'full', 'local_dense_synthesizer', 'full']
    """
    for name, value in (
        ("attention", mechanism),
        ("attention_kwargs", arguments),
    ):
        if isinstance(value, (list, tuple)) and len(value) != count:
            raise ValueError(
                f"`{name}` must be one value, or a list of one for each of "
                f"the {count} blocks. Received: {name}={value!r}"
            )
    if isinstance(mechanism, (list, tuple)):
        names = [name_of(each) for each in mechanism]
        parts = ()
    else:
        parts = parts_of(mechanism)
        names = [parts[index % len(parts)] for index in range(count)]
    if count < len(parts):
        raise ValueError(
            f"`attention` must not have more parts than there are blocks, "
            f"{count}. Received: attention={mechanism!r}, of {list(parts)}"
        )
    if isinstance(arguments, (list, tuple)):
        return names, [untracked(each or {}) for each in arguments]
    if len(parts) < 2:
        return names, [untracked(arguments or {}) for _ in names]
    given = dict(arguments or {})
    taken = [parameters_of(find(name)) for name in names]
    known = dict.fromkeys(each for takes in taken for each in takes)
    reject_unknown(f"attention={mechanism!r}", given, known, taken_by)
    return names, [
        {name: given[name] for name in given if name in takes}
        for takes in taken
    ]


def of_block(arguments, index):
    """Returns the arguments of a block's attention, whose seed is its own.

    Of one seed for all blocks all would draw the same, where they draw each
    for itself without any. The first block has the seed as it is given.

    Args:
        arguments: dict of further arguments, as a model is given them.
        index: int, the place of the block in the model.

    Examples:
        >>> from audio_tf import attention
        >>> attention.of_block({"seed": 5, "resample": True}, 0)
        {'seed': 5, 'resample': True}
        >>> attention.of_block({"seed": 5, "resample": True}, 1)
        {'seed': 1898245334, 'resample': True}
    """
    seed = arguments.get("seed") if isinstance(arguments, dict) else None
    if index == 0 or type(seed) is not int:
        return arguments
    drawn = np.random.SeedSequence([seed % 2**32, index]).generate_state(1)
    return {**arguments, "seed": int(drawn[0] >> 1)}


def one_for_all(values):
    """Returns the one value that all blocks have, or the list of theirs.

    Examples:
        >>> from audio_tf import attention
        >>> attention.one_for_all(["full", "full"])
        'full'
        >>> attention.one_for_all(["full", "xbox"])
        ['full', 'xbox']
    """
    same = all(value == values[0] for value in values)
    return values[0] if same else values


def untracked(value):
    """Copies lists and dicts, which Keras tracks once a model has them.

    Examples:
        >>> from audio_tf import attention
        >>> attention.untracked([{"num_candidates": 4}])
        [{'num_candidates': 4}]
    """
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return [untracked(each) for each in value]
    return value
