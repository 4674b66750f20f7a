"""Checks of arguments: errors that name the argument and what was received."""

import difflib
import inspect
import math
import numbers

# No count of anything is more, and libraries convert whole numbers to 64 bits.
MAX_COUNT = 2**32 - 1


def closest(name, known, prefix=""):
    """Returns `"; did you mean 'attention'"` for a near name, or `""`.

    Args:
        name: str, the unknown name.
        known: iterable of the known names.
        prefix: str that all of them begin with, and that makes none of them
            nearer, such as the dashes of flags.
    """
    bare = {str(each).removeprefix(prefix): str(each) for each in known}
    asked = str(name).removeprefix(prefix)
    near = difflib.get_close_matches(asked, bare, 1, 0.5)
    return f"; did you mean {bare[near[0]]!r}" if near else ""


def count_axes(x):
    """Counts the axes of a tensor, `None` where TensorFlow does not know yet.

    Args:
        x: array or tensor.
    """
    return None if getattr(x.shape, "rank", 0) is None else len(x.shape)


def declared(cls, last=None):
    """Yields the constructor's parameters of a class and of its bases.

    Args:
        cls, last: as `parameters_of` takes them.

    Yields:
        `inspect.Parameter`, the class's own first.
    """
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(base.__init__).parameters.values()
        kinds = {parameter.kind for parameter in parameters}
        for parameter in list(parameters)[1:]:
            if parameter.kind not in (
                parameter.VAR_KEYWORD,
                parameter.VAR_POSITIONAL,
            ):
                yield parameter
        if base is last or inspect.Parameter.VAR_KEYWORD not in kinds:
            break


def parameters_of(cls, last=None):
    """Lists the constructor's arguments of a class and of its bases.

    A base counts as long as its constructors hand what they do not know to
    the next one by `**kwargs`.

    Args:
        cls: a class.
        last: the last base that counts, or `None` for all.

    Returns:
        List of names, the class's own first, without `self` and `**kwargs`.
    """
    return list(dict.fromkeys(each.name for each in declared(cls, last)))


def defaults_of(cls, last=None):
    """Returns the defaults of the arguments that `parameters_of` lists.

    Args:
        cls, last: as `parameters_of` takes them.

    Returns:
        Dict by name; an argument without a default is left out.
    """
    found = {}
    for each in declared(cls, last):
        found.setdefault(each.name, each.default)
    return {k: v for k, v in found.items() if v is not inspect.Parameter.empty}


def reject_unknown(owner, given, known, hint=closest):
    """Raises a `TypeError` that names unknown arguments and the nearest known.

    Args:
        owner: str, what was given the arguments, for example a class's name.
        given: iterable of the names that were given.
        known: iterable of all names that the owner takes.
        hint: function of an unknown name and the known ones to what the error
            says of it, which may be nothing.
    """
    known = list(known)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise TypeError(
            f"{owner} takes no argument {unknown[0]!r}"
            f"{hint(unknown[0], known)}. Received: {sorted(unknown)}; "
            f"{owner} takes {sorted(known)}"
        )


def check_choice(name, value, choices):
    """Raises a `ValueError` unless an argument is one of its choices."""
    # What has no hash, as a list, is in no dict and no set, but may be asked.
    if value not in list(choices):
        raise ValueError(
            f"`{name}` must be one of {list(choices)}{closest(value, choices)}"
            f". Received: {name}={value!r}"
        )


def check_sizes(**sizes):
    """Raises a `ValueError` that names the first that is no positive int."""
    for name, size in sizes.items():
        if not is_size(size):
            raise ValueError(
                f"`{name}` must be a positive integer. "
                f"Received: {name}={size!r}"
            )


def is_size(value):
    """Returns whether a value is a positive int, and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def check_whole_numbers(**counts):
    """Raises a `ValueError` that names the first that is no count from 0 on.

    Whole numbers of numpy's are counts, too.
    """
    for name, count in counts.items():
        whole = isinstance(count, numbers.Integral) and is_number(count)
        if not (whole and count >= 0):
            raise ValueError(
                f"`{name}` must be a whole number of at least 0. "
                f"Received: {name}={count!r}"
            )


def check_list(name, values, of="values", empty=True):
    """Raises a `ValueError` unless an argument is a list or a tuple.

    Args:
        name: str, the argument that the error names.
        values: what it was given.
        of: str, what the list is of, for the error.
        empty: bool, whether the list may be empty.
    """
    if not isinstance(values, (list, tuple)) or not (empty or values):
        raise ValueError(
            f"`{name}` must be a list of {of}{'' if empty else ', not empty'}. "
            f"Received: {name}={values!r}"
        )


def sizes_of(name, sizes, empty=True):
    """Checks a list of sizes, and returns it as a tuple.

    Args:
        name: str, the argument that an error names.
        sizes: list or tuple of positive ints.
        empty: bool, whether it may be empty.

    Raises:
        ValueError: if it is something else.
    """
    meant = "positive integers"
    check_list(name, sizes, meant, empty)
    if not all(map(is_size, sizes)):
        raise ValueError(
            f"`{name}` must be a list of {meant}. Received: {name}={sizes!r}"
        )
    return tuple(sizes)


def is_pair(value):
    """Returns whether a value is a list or tuple of two positive ints."""
    pair = isinstance(value, (list, tuple)) and len(value) == 2
    return pair and all(map(is_size, value))


def pair_of(name, sizes):
    """Checks a pair of sizes, and returns it as a tuple.

    Args:
        name: str, the argument that an error names.
        sizes: list or tuple of two positive ints.

    Raises:
        ValueError: if it is something else.
    """
    if not is_pair(sizes):
        raise ValueError(
            f"`{name}` must be a pair of positive integers. "
            f"Received: {name}={sizes!r}"
        )
    return tuple(sizes)


def pairs_of(name, pairs):
    """Checks a list of pairs of sizes, and returns it as a tuple of tuples.

    Args:
        name: str, the argument that an error names.
        pairs: list or tuple, not empty, of pairs of positive ints.

    Raises:
        ValueError: if it is something else.
    """
    meant = "pairs of positive integers"
    check_list(name, pairs, meant, empty=False)
    if not all(map(is_pair, pairs)):
        raise ValueError(
            f"`{name}` must be a list of {meant}. Received: {name}={pairs!r}"
        )
    return tuple(map(tuple, pairs))


def check_flags(**flags):
    """Raises a `ValueError` that names the first that is no bool."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(
                f"`{name}` must be True or False. Received: {name}={flag!r}"
            )


def check_seeds(**seeds):
    """Raises a `ValueError` that names the first that is no int and no None."""
    for name, seed in seeds.items():
        if seed is not None and type(seed) is not int:
            raise ValueError(
                f"`{name}` must be an integer or None. "
                f"Received: {name}={seed!r}"
            )


def is_number(value):
    """Returns whether a value is a real number, and not a bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_positive(**values):
    """Raises a `ValueError` that names the first that is no number above 0."""
    for name, value in values.items():
        if not (is_number(value) and 0.0 < value < math.inf):
            raise ValueError(
                f"`{name}` must be a positive number. "
                f"Received: {name}={value!r}"
            )


def check_not_negative(**values):
    """Raises a `ValueError` that names the first number that is below 0."""
    for name, value in values.items():
        if not (is_number(value) and 0.0 <= value < math.inf):
            raise ValueError(
                f"`{name}` must be a number of at least 0. "
                f"Received: {name}={value!r}"
            )


def check_finite(**values):
    """Raises a `ValueError` that names the first that is no finite number."""
    for name, value in values.items():
        if not (is_number(value) and math.isfinite(value)):
            raise ValueError(
                f"`{name}` must be a finite number. Received: {name}={value!r}"
            )


def check_shares(**shares):
    """Raises a `ValueError` that names the first that is not in [0, 1]."""
    for name, share in shares.items():
        if not (is_number(share) and 0.0 <= share <= 1.0):
            raise ValueError(
                f"`{name}` must be a number in [0, 1]. "
                f"Received: {name}={share!r}"
            )


def check_rates(**rates):
    """Raises a `ValueError` that names the first that is not in [0, 1)."""
    for name, rate in rates.items():
        if not (is_number(rate) and 0.0 <= rate < 1.0):
            raise ValueError(
                f"`{name}` must be a number in [0, 1). "
                f"Received: {name}={rate!r}"
            )
