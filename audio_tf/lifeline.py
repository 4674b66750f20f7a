"""Processes that end with the one that has started them, however that ends.

A process that SIGKILL ends, as schedulers and a lack of memory do it, tells
nobody. But what it holds is closed: here a pipe, whose other end is the
standard input of the process that it has started.
"""

import os
import signal
import subprocess
import threading

# It is in the environment of a process that is to end so.
VARIABLE = "AUDIO_TF_LIFELINE"


def start(command, environment):
    """Starts a command of `audio-tf` that ends when this process does.

    Args:
        command: list of str.
        environment: dict, the environment of the new process.

    Returns:
        `subprocess.Popen`, whose standard input must stay open.
    """
    environment = {**environment, VARIABLE: "stdin"}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE)


def hold():
    """Lets SIGTERM end this process when the one that has started it ends.

    Only a process that `start` has started does so.
    """
    # Processes of its own have another standard input.
    if os.environ.pop(VARIABLE, None):
        threading.Thread(target=wait, daemon=True).start()


def wait():
    """Waits until the other end of the standard input is closed."""
    # Not by `sys.stdin`, whose lock would be held while Python ends.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
