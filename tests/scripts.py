"""Runs the scripts of training/ as a user runs them."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

TRAINING = pathlib.Path(__file__).resolve().parent.parent / "training"


def command(script, *arguments):
    return [sys.executable, str(TRAINING / script), *map(str, arguments)]


def run(script, *arguments, cache, fails=False, env=None, max_bytes=None):
    """Output of a script that must succeed, or must fail.

    Args:
        script: name of the file.
        *arguments: its flags.
        cache: folder of the cache.
        fails: bool, whether it must fail.
        env: dict of further variables of the environment.
        max_bytes: int, beyond which writing to a file fails, as on a full
            disk; `None` for any.
    """

    def limit():
        if max_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))

    done = subprocess.run(
        command(script, *arguments),
        capture_output=True,
        text=True,
        env={**os.environ, "AUDIO_TF_CACHE": str(cache), **(env or {})},
        preexec_fn=limit,
    )
    assert (done.returncode != 0) == fails, done.stderr[-3000:]
    return done.stdout + done.stderr


def kill_once_there(file, script, *arguments, cache):
    """Starts a script and sends SIGKILL as soon as it has written a file."""
    process = subprocess.Popen(
        command(script, *arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "AUDIO_TF_CACHE": str(cache)},
    )
    while not file.exists():
        assert process.poll() is None, "it ended without the file"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
