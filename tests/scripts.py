"""Runs the scripts of training/ as a user runs them."""

import os
import pathlib
import signal
import subprocess
import sys
import time

TRAINING = pathlib.Path(__file__).resolve().parent.parent / "training"


def command(script, *arguments):
    return [sys.executable, str(TRAINING / script), *map(str, arguments)]


def run(script, *arguments, cache, fails=False, env=None):
    """Output of a script that must succeed, or must fail."""
    done = subprocess.run(
        command(script, *arguments),
        capture_output=True,
        text=True,
        env={**os.environ, "AUDIO_TF_CACHE": str(cache), **(env or {})},
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
    deadline = time.monotonic() + 120
    while not file.exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
