"""Rows of tables: commands, their flags, and functions that take turns."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import types

import pytest

pytest.importorskip("tensorflow")

from audio_tf import cli, configs
from audio_tf.runs import compare, distribution, flags, reproduce, rows
from audio_tf.runs.settings import Settings


def test_settings_become_the_flags_that_say_the_same():
    values = {
        "data_dir": "x y",
        "train_folds": [1, 2],
        "val_folds": [],
        "jitter": True,
        "causal": False,
        "model_kwargs": {"num_layers": 2},
    }
    assert list(map(str, rows.as_flags(values))) == [
        *("--data-dir", "x y", "--train-folds", "1", "2", "--val-folds"),
        *("--jitter", "--no-causal", "--model-kwargs", '{"num_layers": 2}'),
    ]


def test_seeds_of_a_table_are_those_that_are_finished(tmp_path, capsys):
    """Asked for now or before, in whatever row."""
    done = {"full/seed_4", "xbox/seed_0", "xbox/seed_1", "xbox/seed_new"}
    for name in (*done, "full/seed_7", "xbox/seed_12"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").touch()
    finished = {tmp_path / name for name in done}
    asked = [1, 9]
    seeds = rows.seeds_in(tmp_path, asked, finished.__contains__)
    assert seeds == [1, 9, 0, 4]
    rows.tell_of_seeds("out", asked, seeds)
    assert "--seeds 1 9, which count in their rows, too: 0, 4" in (
        capsys.readouterr().out
    )
    assert rows.seeds_in(tmp_path / "none", asked) == asked
    rows.tell_of_seeds("out", asked, asked)
    assert capsys.readouterr().out == ""


def test_one_process_alone_makes_a_table(tmp_path, capsys, monkeypatch):
    """Two would name each other's rows as failed."""

    def begun(settings):
        raise ValueError("it has begun")

    monkeypatch.setattr(compare, "compare", begun)
    tables = {"emotion": reproduce.TABLES["emotion"]._replace(reproduce=begun)}
    monkeypatch.setattr(reproduce, "TABLES", tables)
    out, made = tmp_path / "new" / "table", []
    asked = types.SimpleNamespace(out=str(out))
    table = rows.alone(made.append)
    table(asked)
    assert made == [asked] and not out.parent.exists()
    emotion = ["reproduce", "emotion", "--embeddings", "x.npz", "--out", out]
    compared = ["compare", "--train-config", tmp_path / "config.py"]
    (tmp_path / "config.py").write_text("def get_config():\n    return {}\n")
    with flags.held(out):
        with pytest.raises(BlockingIOError, match="another process is at work"):
            table(asked)
        for command in (emotion, [*compared, "--out", out]):
            with pytest.raises(SystemExit):
                cli.main(command)
            assert "another process is at work" in capsys.readouterr().err
    asked.out = str(tmp_path / "config.py")
    with pytest.raises(ValueError, match="--out must be a folder"):
        table(asked)
    assert len(made) == 1


def test_commands_have_processes_of_their_own(capfd, monkeypatch):
    monkeypatch.setattr(configs, "executed", {})
    rows.run("classify", "--help")
    said = capfd.readouterr().out.splitlines()
    assert said[0] == "$ audio-tf classify --help"
    assert said[1].startswith("usage: audio-tf classify ")
    with pytest.raises(subprocess.CalledProcessError):
        rows.run("evaluat")
    assert "did you mean 'evaluate'" in capfd.readouterr().err


def test_a_file_of_the_users_stands_for_no_module(tmp_path, capfd, monkeypatch):
    """Such as the config `ssl.py` of `audio-tf reproduce ssl`."""
    (tmp_path / "argparse.py").write_text("raise SystemExit('no such thing')")
    monkeypatch.chdir(tmp_path)
    rows.start(["--version"])
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
    rows.run("--help")
    said = capfd.readouterr()
    assert "a command that is added" in said.out
    # What TensorFlow logs while a config imports it is none of ours.
    assert said.err == ""


def test_functions_take_turns_and_the_median_counts():
    """The first turn, which compiles, does not."""
    now, calls = [0.0], []
    taken = {
        "a": iter([50.0, 1.0, 3.0, 8.0]),
        "b": iter([0.0, 2.0, 2.5, 0.5]),
    }

    def call(name):
        calls.append(name)
        now[0] += next(taken[name])

    functions = {name: lambda name=name: call(name) for name in taken}
    found = rows.in_turn(functions, 3, clock=lambda: now[0])
    assert found == {"a": 3.0, "b": 2.0}
    assert calls == ["a", "b"] * 4


def test_failed_commands_are_named_at_the_end(capsys):
    failures = rows.Failures()
    failures.end()
    for name in ("one", "two words"):
        with failures.kept():
            raise subprocess.CalledProcessError(
                2, [*rows.AUDIO_TF, "train", "--out", name]
            )
    with pytest.raises(SystemExit) as stopped:
        failures.end()
    assert stopped.value.code == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "2 runs failed:",
        "  audio-tf train --out one",
        "  audio-tf train --out 'two words'",
    ]
    # Any other error ends the table at once.
    with pytest.raises(OSError):
        with failures.kept():
            raise OSError("disk full")


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

    assert sorted(rows.over_devices(call, list(range(5)))) == list(range(5))
    assert {device for item, device in ran if item < 2} == {"2", "5"}
    monkeypatch.setattr(distribution, "gpus", lambda: ["2"])
    ran.clear()
    one = rows.over_devices(lambda *call: ran.append(call), [7, 8])
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
        list(rows.over_devices(call, list(range(50))))
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
from audio_tf.runs import distribution, rows
row, *devices = sys.argv[1:]
rows.AUDIO_TF = (sys.executable, "-c", row)
rows.ENDS_WITHIN_S = 20.0
distribution.gpus = lambda: devices
with console.errors_in_one_line(prog="table"):
    ran = rows.over_devices(
        lambda name, device: rows.start([name], device), ["a", "b"]
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
    rows.run("train", device="3")
    rows.run("train")
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


def test_a_folder_is_of_the_settings_of_its_rows(tmp_path):
    """But for what no row was made with."""
    asked = {"common": [1, (2, 3)], "one": {"a": 1}}
    rows.begin(tmp_path / "out", asked)
    rows.begin(tmp_path / "out", asked)
    changed = {**asked, "one": {"a": 2, "b": {"c": 3}}}
    message = r"other values of one\.a \(1, now 2\), one\.b \(None, now \{"
    with pytest.raises(ValueError, match=message):
        rows.begin(tmp_path / "out", changed)
    with pytest.raises(ValueError, match=r"of one\.a \(1, now 2\)$"):
        rows.begin(tmp_path / "out", changed, unused=["one.b", "a"])
    rows.begin(tmp_path / "out", changed, unused=["one"])
    again = {**asked, "one": {"a": 2, "b": {"c": 4}}}
    with pytest.raises(ValueError, match=r"of one\.b\.c \(3, now 4\)$"):
        rows.begin(tmp_path / "out", again)
    rows.begin(tmp_path / "out", again, unused=["one.b.c"])
    with pytest.raises(ValueError, match=r"other values of common \(.*one \("):
        rows.begin(tmp_path / "out", {})
