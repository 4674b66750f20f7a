"""TensorFlow's messages, kept off the terminal of commands and scripts.

It is light: nothing here imports Keras or TensorFlow.
"""

import contextlib
import faulthandler
import logging
import os
import re
import sys
import tempfile

# Initials of the severities that each TF_CPP_MIN_LOG_LEVEL hides.
HIDDEN = {"1": b"I", "2": b"IW", "3": b"IWE"}
# It comes before the first message, whether that is hidden or not.
ABSL_BEGINS = b"WARNING: All log messages before absl::InitializeLog()"


@contextlib.contextmanager
def tensorflow():
    """Keeps to itself what TensorFlow logs while a block imports it.

    `TF_CPP_MIN_LOG_LEVEL` says which messages are kept off, as TensorFlow has
    it: 0 none, 1 information, 2 warnings too, 3 errors too; 3 if the
    environment does not say. From its first import on TensorFlow itself obeys;
    only what it logs while it is loaded comes whatever the level is. So the
    standard error is held back for as long as the block lasts, and what is
    no such message follows, also when the block raises.
    """
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if "tensorflow" in sys.modules or level not in HIDDEN:
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    # A crash of TensorFlow's own code ends the process within the block.
    crashes = not faulthandler.is_enabled()
    if crashes:
        faulthandler.enable(terminal)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            if crashes:
                faulthandler.disable()
            os.close(terminal)
            held.seek(0)
            os.write(2, b"".join(shown(held, HIDDEN[level])))


def hide_retracing():
    """Keeps off TensorFlow's advice to a program that has several models.

    Of the fifth model of a kind in one process it says that tracing is
    expensive; who gave a command has nothing to do about that.
    """
    logging.getLogger("tensorflow").addFilter(no_retracing)


def no_retracing(record):
    """Returns whether a `logging.LogRecord` is anything but that advice."""
    return "triggered tf.function retracing" not in record.getMessage()


def shown(lines, hidden):
    """Yields the lines that are no messages of some severities.

    Args:
        lines: iterable of bytes.
        hidden: bytes, the initials of the severities.
    """
    message = re.compile(rb"[%b]\d{4} \d\d:\d\d:" % hidden)
    for line in lines:
        if not message.match(line) and not line.startswith(ABSL_BEGINS):
            yield line
