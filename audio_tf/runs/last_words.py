"""The standard error of a host that JAX may end, with one line instead of JAX'.

JAX' own code ends a process that cannot reach the others any more, in the
midst of whatever Python does, and says so in twenty lines. So its standard
error runs through this program, a process of its own:

    python -S last_words.py LINE

It copies what it reads to its standard error. At JAX' message it writes LINE
and drops what follows. It imports nothing of the package: it starts quickly.
"""

import sys

ENDED = (
    b"JAX distributed service detected fatal errors",
    b"terminate called after throwing",
)


def copy(source, target, line):
    """Copies lines until JAX ends the process.

    Args:
        source: binary file that is read.
        target: binary file that is written.
        line: bytes, what is written once instead of JAX' message.
    """
    ended = False
    for each in source:
        if not ended and any(words in each for words in ENDED):
            ended, each = True, line + b"\n"
        elif ended:
            continue
        target.write(each)
        target.flush()


if __name__ == "__main__":
    copy(sys.stdin.buffer, sys.stderr.buffer, sys.argv[1].encode())
