"""The splits on which figures of a corpus are compared, and other ones.

A corpus whose authors have split it, or said how to, has a `Protocol` in its
line of the table. Any other choice of splits departs from it.
"""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Protocol:
    """The way in which the authors of a corpus split it.

    Attributes:
        meaning: str, which splits are the official ones, in a few words.
        departure: function of the dict of the options of the corpus' reader
            to a text on how the splits differ from the official ones, empty
            if they do not.
        leaves_one_out: bool, whether each group of the corpus (a session, for
            example) is to be left out in turn.

    Examples:
        >>> from audio_tf import corpora
        >>> protocol = corpora.CORPORA["iemocap"].protocol
        >>> protocol.leaves_one_out
        True
    """

    meaning: str
    departure: typing.Callable
    leaves_one_out: bool = False


# A corpus whose reader takes nothing that would split it otherwise.
AS_RELEASED = Protocol("the lists of the release", lambda options: "")


def one_fold_in_turn(units):
    """Returns the `Protocol` of a corpus that comes in parts.

    One part is the test, each of them in turn, and all others are for
    training and validation. Where nothing is trained, the test alone counts.

    Args:
        units: iterable of the numbers of the parts, which the reader's option
            `folds` gives as a dict by split of lists.
    """
    units = sorted(units)

    def departure(options):
        folds = options["folds"]
        tested = list(folds["test"])
        if len(tested) != 1 or tested[0] not in units:
            return f"the test is {tested}"
        used = [unit for split in folds.values() for unit in split]
        left = [unit for unit in units if unit not in used]
        if left and used != tested:
            return f"{left} are in no split"
        return ""

    return Protocol(
        f"one of {units} is the test, and all others are for training and "
        "validation",
        departure,
        leaves_one_out=True,
    )


def without(names, meaning):
    """Returns the `Protocol` of a corpus that has splits unless others are
    asked for.

    Args:
        names: tuple of the reader's options that ask for others, empty lists
            as long as they do not.
        meaning: str, which splits are the official ones.
    """

    def departure(options):
        asked = {name: options[name] for name in names if options.get(name)}
        return ", ".join(f"{name} is {value}" for name, value in asked.items())

    return Protocol(meaning, departure)
