"""Faults to plant in the code, each of which some test must notice.

The tables are the text files beside this one. A fault reads

    = what is wrong
    - the old text
    + the new text
    ? attention/test_attention.py::test_config_is_complete

`@ audio_tf/attention/base.py` before it names the file, from the repository
root, for all faults up to the next `@`. The old text is any part of the file
that occurs once in it. Of several lines, each has its own `-` or `+`, and
breaks and indentation count; a lone `+` is an empty line, and no `+` at all
leaves nothing of the old text. `?` names the tests, from the folder of
tests: a file, or the beginning of names of tests in a file. One of them must
fail. Lines that begin with `#` say why.

`python -m defects` plants the faults; `__main__.py` says how.
"""

import difflib
import pathlib
from typing import NamedTuple

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent


class Fault(NamedTuple):
    """A change of the code that makes it wrong.

    Attributes:
        title: str, what is wrong.
        file: str, the path from the repository root.
        old: str, a part of the file.
        new: str, what stands there instead.
        tests: tuple of str, beginnings of ids of tests; one must fail.
    """

    title: str
    file: str
    old: str
    new: str
    tests: tuple

    @property
    def name(self):
        return f"{self.file}: {self.title}"

    def planted(self, text):
        """The text of the file with the fault in it.

        Raises:
            ValueError: if the old text does not occur in it exactly once, or
                the new one is no other.
        """
        if text.count(self.old) != 1 or self.new == self.old:
            raise ValueError(
                f"{self.name}: the old text must occur once, and the new one "
                f"differ. Received: {text.count(self.old)} times {self.old!r}"
            )
        return text.replace(self.old, self.new)

    def change(self):
        """The change as lines that begin with `-` and `+`."""
        lines = difflib.ndiff(self.old.splitlines(), self.new.splitlines())
        return "\n".join(line for line in lines if line[0] in "-+")


def read(text):
    """Reads the faults of a table.

    Args:
        text: str, as the docstring of this module describes it.

    Returns:
        List of `Fault`.

    Raises:
        ValueError: if a line has no known mark, or a fault lacks a part.
    """
    faults, file, parts = [], None, None

    def finish():
        if parts is None:
            return
        if not (file and parts["-"] and parts["?"]):
            raise ValueError(
                "a fault needs a file, an old text and tests. "
                f"Received: {file}: {parts['=']}"
            )
        faults.append(
            Fault(
                " ".join(parts["="]),
                file,
                "\n".join(parts["-"]),
                "\n".join(parts["+"]),
                tuple(f"tests/{test}" for test in parts["?"]),
            )
        )

    for line in text.splitlines():
        mark, rest = line[:1], line[2:]
        if mark in ("", "#"):
            continue
        if line[1:2] not in ("", " ") or mark not in "@=-+?":
            raise ValueError(f"no line of a fault. Received: {line!r}")
        if mark in "@=":
            finish()
            parts = None
        if mark == "@":
            file = rest.strip()
            continue
        if mark == "=":
            parts = {"=": [], "-": [], "+": [], "?": []}
        parts[mark].append(rest)
    finish()
    return faults


def faults():
    """All faults, in the order of their tables."""
    found = []
    for table in sorted(FOLDER.glob("*.txt")):
        found += read(table.read_text())
    return found
