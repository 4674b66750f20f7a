"""Text from elsewhere, made fit to be printed."""

NAMES_SHOWN = 5
# Invisible by themselves, they say how letters of Persian and many a script of
# India, and parts of one emoji, are joined.
JOINERS = "\u200c\u200d"


def printable(text, limit=None):
    r"""Returns a text on one line, without anything that steers a terminal.

    Names of files and words of a server may hold control characters, which
    recolour a terminal or rewrite its lines, marks that turn the direction of
    writing, and bytes that are no UTF-8. Each comes as an escape, such as
    `\x1b`.

    Args:
        text: str, or anything that has one.
        limit: int, characters after which the text is cut, or `None`.

    Returns:
        String of printable characters.
    """
    text = str(text)
    shown = "".join(
        character
        if character.isprintable() or character in JOINERS
        else character.encode("unicode_escape").decode("ascii")
        for character in text[:limit]
    )
    return shown if limit is None or len(text) <= limit else f"{shown}..."


def describe_failures(failures):
    """Counts files that were left out, and names each on a line of its own.

    Args:
        failures: dict of the reason by path.

    Returns:
        String of printable lines.
    """
    plural = "" if len(failures) == 1 else "s"
    lines = [f"{len(failures)} file{plural} left out"]
    lines += [
        f"  {printable(path) or repr('')}: {printable(reason)}"
        for path, reason in failures.items()
    ]
    return "\n".join(lines)


def first_line(error):
    """Gives the first line of what an error says; converters say hundreds."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else repr(error)


def first_names(names, count=None):
    """Returns a printable text of the first few of some names.

    Args:
        names: iterable of str.
        count: int, how many there are if these are the first of them.
    """
    names = list(names)
    shown = ", ".join(map(printable, names[:NAMES_SHOWN]))
    more = (len(names) if count is None else count) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def first_quoted(names):
    """Returns `first_names` of names in quotes, such as labels with commas."""
    return first_names(map(repr, names)) or "none"
