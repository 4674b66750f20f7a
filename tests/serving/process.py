"""The KServe server as a process of its own, which other packages need."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

TESTS = pathlib.Path(__file__).resolve().parents[1]

# A Python with kserve and TensorFlow; audio_tf need not be there.
PYTHON = os.environ.get("KSERVE_PYTHON", sys.executable)


def has_kserve(python=PYTHON):
    """Whether a Python can import kserve."""
    code = "import importlib.util; print(importlib.util.find_spec('kserve'))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return found.returncode == 0 and found.stdout.strip() != "None"


def free_port():
    """A port of loopback that nobody listens on."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(folder, port, log, flags=(), python=PYTHON):
    """Starts the server.

    Args:
        folder: of the SavedModel.
        port: int, for REST.
        log: path of a file for what the server prints.
        flags: further ones of `kserve_server.py`.
        python: path of a Python with kserve.

    Returns:
        `subprocess.Popen`.
    """
    with open(log, "ab") as output:
        return subprocess.Popen(
            [
                *(python, "-m", "serving.kserve_server"),
                *(os.path.abspath(folder), "--port", str(port), *flags),
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=TESTS,
            env={
                "TF_CPP_MIN_LOG_LEVEL": "3",
                **os.environ,
                "PYTHONPATH": str(TESTS),
            },
        )


def await_ready(process, url, log):
    """Waits until the server answers.

    Raises:
        RuntimeError: if it ends before it is ready; holds the end of the log.
    """
    while not is_ready(url):
        if process.poll() is not None:
            text = pathlib.Path(log).read_text(errors="replace")
            raise RuntimeError(f"the server has ended: {text[-3000:]}")
        time.sleep(0.2)


@contextlib.contextmanager
def serve(folder, log, python=PYTHON):
    """Runs the server on a free port until the block ends.

    Args:
        folder, log, python: as `start` takes them.

    Yields:
        Pair of the `subprocess.Popen` and `http://127.0.0.1:PORT`.

    Raises:
        RuntimeError: if it ends before it is ready; holds the end of the log.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = start(folder, port, log, python=python)
    try:
        await_ready(process, url, log)
        yield process, url
    finally:
        # It has nothing to put in order.
        process.kill()
        process.wait()


def is_ready(url):
    """Whether the model's status is 200."""
    try:
        with urllib.request.urlopen(f"{url}/v1/models/audio_tf", timeout=5.0):
            return True
    except (urllib.error.URLError, OSError):
        return False
