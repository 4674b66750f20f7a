"""The standard error of a host that JAX may end, with one line instead of JAX'.

JAX' own code ends a process that cannot reach the others any more, in the
midst of whatever Python does, and says so in twenty lines. So its standard
error runs through this program, a process of its own:

    python -S last_words.py LINE

It copies what it reads to its standard error. At JAX' message it writes LINE
and drops what follows. A host that ends by an error of its own writes ENDS
first; JAX may end it before its error is written, or while Python ends, and
either way one line is left. It imports nothing of the package: it starts
quickly.
"""

import re
import sys

ENDED = (
    b"JAX distributed service detected fatal errors",
    b"terminate called after throwing",
)
ENDS = b"audio-tf: a host ends by an error\n"
LOGGED = re.compile(rb"[IWEF]\d{4} ")  # By JAX' own code.


def copy(source, target, line):
    """Copies lines until JAX ends the process.

    Args:
        source: binary file that is read.
        target: binary file that is written.
        line: bytes, what is written once instead of JAX' message, with its
            end of line.
    """
    ended = ends = told = False
    for each in source:
        if each == ENDS:
            ends = True
        elif any(words in each for words in ENDED):
            if not told:
                write(target, line)
            ended = told = True
        elif not ended:
            write(target, each)
            told = ends and (told or not LOGGED.match(each))


def write(target, line):
    """Writes a line at once."""
    target.write(line)
    target.flush()


if __name__ == "__main__":
    copy(sys.stdin.buffer, sys.stderr.buffer, sys.argv[1].encode() + b"\n")
