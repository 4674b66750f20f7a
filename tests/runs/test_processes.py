"""Commands of a table in processes of their own."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading

import pytest

pytest.importorskip("tensorflow")

from audio_tf import cli, configs
from audio_tf.runs import distribution, flags, processes
from audio_tf.runs.settings import Settings


def test_commands_have_processes_of_their_own(capfd, monkeypatch):
    monkeypatch.setattr(configs, "executed", {})
    processes.run("classify", "--help")
    said = capfd.readouterr().out.splitlines()
    assert said[0] == "$ audio-tf classify --help"
    assert said[1].startswith("usage: audio-tf classify ")
    with pytest.raises(subprocess.CalledProcessError):
        processes.run("evaluat")
    assert "did you mean 'evaluate'" in capfd.readouterr().err


def test_a_file_of_the_users_stands_for_no_module(tmp_path, capfd, monkeypatch):
    """Such as the config `ssl.py` of `audio-tf reproduce ssl`."""
    (tmp_path / "argparse.py").write_text("raise SystemExit('no such thing')")
    monkeypatch.chdir(tmp_path)
    processes.start(["--version"])
    assert capfd.readouterr().out.startswith("audio_tf ")


@pytest.mark.long
def test_a_process_finds_what_the_configs_of_a_table_add(
    tmp_path, capfd, monkeypatch
):
    """Also from another folder than the one that they are named from."""
    monkeypatch.setattr(configs, "executed", {})
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    (tmp_path / "mine.py").write_text(
        "from audio_tf import cli, models\n"
        "cli.COMMANDS['mine'] = 'a command that is added'\n"
        "def get_config():\n    return {}\n"
    )
    monkeypatch.setattr(cli, "COMMANDS", dict(cli.COMMANDS))
    assert flags.read_config("mine.py", Settings) == {}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    capfd.readouterr()
    processes.run("--help")
    said = capfd.readouterr()
    assert "a command that is added" in said.out
    # What TensorFlow logs while a config imports it is none of ours.
    assert said.err == ""


def test_gpus_have_an_item_each_and_one_follows_the_other(monkeypatch):
    """Of two, each is taken by one call at a time, and both are."""
    monkeypatch.setattr(distribution, "gpus", lambda: ["2", "5"])
    both, busy, ran = threading.Barrier(2), set(), []

    def call(item, device):
        assert device not in busy
        busy.add(device)
        if item < 2:
            # Neither goes on before the other has begun.
            both.wait(timeout=20)
        ran.append((item, device))
        busy.remove(device)

    assert sorted(processes.over_devices(call, list(range(5)))) == list(
        range(5)
    )
    assert {device for item, device in ran if item < 2} == {"2", "5"}
    monkeypatch.setattr(distribution, "gpus", lambda: ["2"])
    ran.clear()
    one = processes.over_devices(lambda *call: ran.append(call), [7, 8])
    assert next(one) == 7 and ran == [(7, None)]


def test_an_error_begins_nothing_more(monkeypatch):
    monkeypatch.setattr(distribution, "gpus", lambda: ["0", "1"])
    both, ran = threading.Barrier(2), []

    def call(item, device):
        ran.append(item)
        if item < 2:
            both.wait(timeout=20)
        raise OSError("disk full")

    with pytest.raises(OSError):
        list(processes.over_devices(call, list(range(50))))
    assert len(ran) < 50


# A table of two rows on as many GPUs as are named, each of which says that it
# is there, and that it was ended in order.
ROW = """
import os, time
from audio_tf import console
with console.errors_in_one_line(prog="row"):
    os.write(1, b"begun\\n")  # In one piece.
    while True:
        time.sleep(0.05)
"""


TABLE = """
import contextlib, sys
from audio_tf import console
from audio_tf.runs import distribution, processes
row, *devices = sys.argv[1:]
processes.AUDIO_TF = (sys.executable, "-c", row)
processes.ENDS_WITHIN_S = 20.0
distribution.gpus = lambda: devices
with console.errors_in_one_line(prog="table"):
    ran = processes.over_devices(
        lambda name, device: processes.start([name], device), ["a", "b"]
    )
    with contextlib.closing(ran) as done:
        list(done)
"""


def end_table(row, devices, number):
    """Sends a table a signal once all its rows have begun.

    Returns:
        Pair of the lines of its standard error and its status.
    """
    table = subprocess.Popen(
        [sys.executable, "-c", TABLE, row, *devices],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        for _ in devices or ["0"]:
            assert table.stdout.readline() == "begun\n"
        table.send_signal(number)
        # To the end of what the rows hold open, too.
        said = table.communicate(timeout=60)[1].splitlines()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(table.pid, signal.SIGKILL)
    return said, table.returncode


@pytest.mark.long
@pytest.mark.parametrize("devices", [[], ["0", "1"]])
def test_sigterm_ends_a_table_with_its_rows(devices):
    """A row that went on would train beside the next start of the table."""
    said, status = end_table(ROW, devices, signal.SIGTERM)
    ended = ["row: terminated"] * max(1, len(devices))
    assert said == [*ended, "table: terminated"]
    assert status == 143


# A row that is a command of `audio-tf`, and has an hour's work.
COMMAND = """
import os, sys, time, types
from audio_tf import cli
def run(arguments):
    os.write(1, b"begun\\n")
    time.sleep(3600)
command = types.ModuleType("audio_tf.cli.wait")
command.add, command.run = lambda parser: None, run
sys.modules[command.__name__] = command
cli.COMMANDS["wait"] = "wait"
sys.exit(cli.main(["wait"]))
"""


@pytest.mark.long
@pytest.mark.parametrize("devices", [[], ["0", "1"]])
def test_rows_end_with_a_table_that_is_killed_at_once(devices):
    """They would go on as nobody's, and hold the locks of their folders."""
    said, status = end_table(COMMAND, devices, signal.SIGKILL)
    assert said == ["audio-tf wait: terminated"] * max(1, len(devices))
    assert status == -signal.SIGKILL


def test_a_process_sees_the_gpu_that_it_is_given(monkeypatch):
    asked = []

    class Ended(subprocess.Popen):
        def __init__(self, command, env, stdin):
            asked.append(env)
            self.stdin = io.BytesIO()

        def wait(self, timeout=None):
            return 0

    monkeypatch.setattr(subprocess, "Popen", Ended)
    processes.run("train", device="3")
    processes.run("train")
    own, all_of_them = asked
    assert own["CUDA_VISIBLE_DEVICES"] == "3" and len(own) > 1
    name = "CUDA_VISIBLE_DEVICES"
    assert all_of_them.get(name) == os.environ.get(name)


def test_gpus_are_named_as_the_processes_know_them(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: [kind] * 2
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert distribution.gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-7")
    assert distribution.gpus() == ["3", "GPU-7"]
