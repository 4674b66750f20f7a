"""TensorFlow's messages do not reach those who gave a command."""

import logging
import os
import subprocess
import sys

import pytest

from audio_tf import cli, quiet

# What TensorFlow 2.21 writes past all settings while it is loaded.
LOADED = """\
WARNING: All log messages before absl::InitializeLog() is called are written
I0000 00:00:1795337355.970509   31732 port.cc:153] oneDNN custom operations
W0000 00:00:1795337355.970509   31732 gpu.cc:3] no GPU
E0000 00:00:1795337355.970509   31732 cuda.cc:52] failed call
Illustrated: E0000 is no message
"""
SAYS = """
import os, sys
from audio_tf import cli, quiet
with quiet.tensorflow():
    os.write(2, sys.argv[1].encode())
    print("our own", file=sys.stderr)
    if len(sys.argv) > 2:
        raise ValueError(sys.argv[2])
assert "numpy" not in sys.modules
print("later", file=sys.stderr)
"""


@pytest.mark.parametrize(
    "level, first, raises",
    [
        (None, 4, False),
        (None, 4, True),
        ("3", 4, False),
        ("2", 3, False),
        ("1", 2, False),
        ("0", 0, False),
    ],
)
def test_only_what_tensorflow_logs_is_kept_off(level, first, raises):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": level or ""}
    if level is None:
        del environment["TF_CPP_MIN_LOG_LEVEL"]
    done = subprocess.run(
        [sys.executable, "-c", SAYS, LOADED, *["broken"] * raises],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (done.returncode != 0) == raises
    lines = done.stderr.splitlines()
    shown = [*LOADED.splitlines()[first:], "our own"]
    assert lines[: len(shown)] == shown
    if raises:
        assert lines[-1] == "ValueError: broken"
    else:
        assert lines[len(shown) :] == ["later"]


def test_commands_hide_the_advice_on_retracing(monkeypatch, capsys):
    """Those that train nothing, too: the page may have several models."""
    monkeypatch.setattr(logging.getLogger("tensorflow"), "filters", [])
    assert cli.main(["presets"]) == 0
    assert quiet.no_retracing in logging.getLogger("tensorflow").filters


MODELS = """
import audio_tf.runs, keras, logging, sys
import numpy as np
for _ in range(7):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.predict(np.ones((1, 2)), verbose=0)
logging.getLogger("tensorflow").warning("something else")
"""


@pytest.mark.long
@pytest.mark.parametrize("runs", [True, False])
def test_several_models_in_a_run_are_no_warning(runs):
    code = MODELS if runs else MODELS.replace("audio_tf.runs, ", "")
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
    )
    assert done.returncode == 0, done.stderr
    assert ("retracing" in done.stderr) == (not runs)
    assert "something else" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_runs_load_tensorflow_in_silence(backend):
    pytest.importorskip(backend)
    environment = {**os.environ, "KERAS_BACKEND": backend}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    code = "import audio_tf.runs, audio_tf.data, tensorflow"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_crash_while_tensorflow_is_loaded_is_seen():
    code = (
        "import os\nfrom audio_tf import quiet\n"
        "with quiet.tensorflow():\n    os.abort()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.returncode != 0 and "Aborted" in done.stderr
