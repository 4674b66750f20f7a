"""Runs in the test's own process, and ends of runs in their midst."""

import importlib
import os
import pathlib
import pkgutil
import signal
import subprocess
import sys
import unittest.mock

import pytest

from audio_tf.runs import processes

TRAINING = pathlib.Path(__file__).resolve().parent.parent / "training"

# A process that kills itself instead of a call of a function.
PROGRAM = """
import importlib
import os
import runpy
import signal
import sys

function, number, script, *flags = sys.argv[1:]
module, _, path = function.partition(":")
*holders, name = path.split(".")
holder = importlib.import_module(module)
for each in holders:
    holder = getattr(holder, each)
original, calls = getattr(holder, name), []


def deadly(*args, **kwargs):
    calls.append(name)
    if len(calls) == int(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **kwargs)


setattr(holder, name, deadly)
sys.argv = [script, *flags]
runpy.run_path(script, run_name="__main__")
"""


def in_this_process(arguments, device=None):
    """In place of `runs.processes.start`; a device makes no difference."""
    _, _, module = processes.AUDIO_TF
    try:
        status = importlib.import_module(module).main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    if status:
        command = [*processes.AUDIO_TF, *arguments]
        raise subprocess.CalledProcessError(status, command)


class Death(BaseException):
    """What no code expects or handles, as a signal."""


def end_at(function, call, main, script, *arguments):
    """Runs a script in this process up to a call, of which nothing is done.

    That clean-ups run is all that tells it from a signal.

    Args:
        function: str, `"module:name"` or `"module:class.name"`.
        call: int, which call of the function is the script's end, from 1.
        main: the fixture of this name.
        script: str, as `main` takes it.
        *arguments: flags of the script.
    """
    original, calls = pkgutil.resolve_name(function), []

    def deadly(*args, **kwargs):
        calls.append(function)
        if len(calls) == call:
            raise Death
        return original(*args, **kwargs)

    target = function.replace(":", ".")
    with unittest.mock.patch(target, deadly), pytest.raises(Death):
        main(script, *arguments)


def kill_at(function, call, script, *arguments, cache):
    """Runs a script in a process that is killed by SIGKILL.

    No clock decides where: on a busy machine it is the same place.

    Args:
        function: str, as `end_at` takes it.
        call: int, likewise.
        script: str, name of the file in training/ without its suffix.
        *arguments: flags of the script.
        cache: folder of the cache.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-c", PROGRAM, function, str(call)),
            *(str(TRAINING / f"{script}.py"), *map(str, arguments)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "AUDIO_TF_CACHE": str(cache)},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
