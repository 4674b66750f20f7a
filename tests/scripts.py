"""Runs the scripts of training/ as a user runs them, and kills them."""

import os
import pathlib
import signal
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
TRAINING = TESTS.parent / "training"

# A process that kills itself instead of a call of a function.
PROGRAM = """
import importlib
import os
import runpy
import signal
import sys

eager, function, number, script, *flags = sys.argv[1:]
if eager == "True":
    import keras
    import tiny

    keras.Model.run_eagerly = tiny.ALWAYS_EAGER
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


def kill_at(function, call, script, *arguments, cache, eager=False):
    """Runs a script in a process that is killed by SIGKILL.

    No clock decides where: on a busy machine it is the same place.

    Args:
        function: str, `"module:name"` or `"module:class.name"`.
        call: int, which call of the function is the script's death, from 1;
            nothing of that call is done.
        script: str, name of the file in training/.
        *arguments: flags of the script.
        cache: folder of the cache.
        eager: bool, whether models run without graphs.
    """
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [
            *(sys.executable, "-c", PROGRAM, str(eager), function, str(call)),
            *(str(TRAINING / script), *map(str, arguments)),
        ],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "AUDIO_TF_CACHE": str(cache),
            "PYTHONPATH": os.pathsep.join(paths),
        },
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
