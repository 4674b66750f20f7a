"""Rows of a table: commands in processes of their own, each done once.

A table takes days, and is stopped and goes on: what is finished is not done
again, a row that fails is named and leaves the others alone.
"""

import contextlib
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

from audio_tf import files
from audio_tf.runs.settings import flag

# `audio-tf`, wherever it is installed.
AUDIO_TF = (sys.executable, "-m", "audio_tf.cli")


def run(command, *flags):
    """Runs a command of `audio-tf` in a new process, and prints it.

    Args:
        command: str, such as `"train"`.
        *flags: its flags; anything that has a `str`.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    arguments = [command, *map(str, flags)]
    print("$", shlex.join(["audio-tf", *arguments]), flush=True)
    subprocess.run([*AUDIO_TF, *arguments], check=True)


def measure(command, file, asked):
    """Lets a new process measure something, unless that is done.

    The memory that it takes, also of an accelerator, is free afterwards.

    Args:
        command: list of str, the words behind `audio-tf`, to which the file
            and JSON of what is asked are added. It writes a dict that has
            `asked`.
        file: `pathlib.Path` of the JSON file.
        asked: dict that JSON can hold.

    Returns:
        The content of the file.

    Raises:
        subprocess.CalledProcessError: if the process fails.
    """
    if not file.is_file() or json.loads(file.read_text())["asked"] != asked:
        subprocess.run(
            [*AUDIO_TF, *command, str(file), json.dumps(asked)], check=True
        )
    return json.loads(file.read_text())


def resumed(out):
    """Returns a list of the flag that goes on with a run, empty for none."""
    return ["--resume"] if (out / "config.json").is_file() else []


def as_flags(values):
    """Returns a list of flags and values from a dict of settings."""
    flags = []
    for name, value in values.items():
        if isinstance(value, bool):
            flags.append(flag(name) if value else flag(f"no_{name}"))
            continue
        if isinstance(value, dict):
            value = json.dumps(value)
        several = value if isinstance(value, list) else [value]
        flags += [flag(name), *several]
    return flags


def begin(out, asked):
    """Makes the folder of a table.

    Args:
        out: path of the folder.
        asked: dict that JSON can hold: all that the rows have in common.

    Raises:
        ValueError: if the folder has rows of another setting.
    """
    out = pathlib.Path(out)
    # As it comes out of the file.
    asked = json.loads(json.dumps(asked))
    file = out / "config.json"
    if file.is_file() and json.loads(file.read_text()) != asked:
        raise ValueError(
            f"{out} holds rows of other configs or data; choose another --out"
        )
    out.mkdir(parents=True, exist_ok=True)
    files.write_json(file, asked)


class Failures:
    """The commands of a table that have failed.

    Attributes:
        commands: list of str.
    """

    def __init__(self):
        self.commands = []

    @contextlib.contextmanager
    def kept(self):
        """Makes a context in which a command may fail, and is remembered."""
        try:
            yield
        except subprocess.CalledProcessError as error:
            # Hours of other rows must not be lost with this one.
            command = error.cmd[len(AUDIO_TF) :]
            self.commands.append(shlex.join(["audio-tf", *command]))

    def end(self):
        """Names the commands that have failed, if there are any.

        Raises:
            SystemExit: with status 1, after that.
        """
        if self.commands:
            print(
                f"\n{len(self.commands)} runs failed:",
                *self.commands,
                sep="\n  ",
            )
            raise SystemExit(1)


def in_turn(functions, repeats, clock=time.perf_counter):
    """Measures functions that take turns, so that other load meets all alike.

    Args:
        functions: dict by name of functions without arguments.
        repeats: int, turns that count; one before them compiles.
        clock: function that returns seconds.

    Returns:
        Dict by name of the median of the seconds of a call.
    """
    seconds = {name: [] for name in functions}
    for turn in range(repeats + 1):
        for name, function in functions.items():
            start = clock()
            function()
            if turn:
                seconds[name].append(clock() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}
