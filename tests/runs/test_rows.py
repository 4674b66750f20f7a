"""Rows of tables: commands, their flags, and functions that take turns."""

import subprocess
import types

import pytest

pytest.importorskip("tensorflow")

from audio_tf import cli
from audio_tf.runs import (
    compare,
    flags,
    processes,
    reproduce,
    rows,
)


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
    none = tmp_path / "none"
    assert rows.seeds_in(none, asked, finished.__contains__) == asked
    rows.tell_of_seeds("out", asked, asked)
    assert capsys.readouterr().out == ""


def test_what_a_user_keeps_beside_a_run_is_none_of_the_table(tmp_path):
    for name in ("seed_10", "seed_2", "seed_2_old", "seed_new", "probe_3"):
        (tmp_path / "full" / name).mkdir(parents=True)
        (tmp_path / "full" / name / "config.json").touch()
    (tmp_path / "full" / "seed_4").mkdir()
    found = rows.runs_in(tmp_path)
    assert found == [tmp_path / "full" / f"seed_{n}" for n in (10, 2)]
    assert [rows.seed_of(run) for run in found] == [10, 2]
    (probe,) = rows.runs_in(tmp_path, "probe")
    assert rows.seed_of(probe, "probe") == 3 and rows.seed_of(probe) is None


def test_seeds_that_are_alike_have_no_interval():
    """It would be of no width, as sure of any other seed."""
    for values in ([0.95], [0.95] * 3, [1.0, 1.0], [0.3, 0.1 + 0.2]):
        mean, *ends = rows.interval(values)
        assert mean == pytest.approx(values[0]) and ends == [None, None]
    assert None not in rows.interval([0.3, 0.3, 0.3001])


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
    for name, status in (("one", 2), ("two words", -15), ("three", -9)):
        with failures.kept():
            raise subprocess.CalledProcessError(
                status, [*processes.AUDIO_TF, "train", "--out", name]
            )
    with pytest.raises(SystemExit) as stopped:
        failures.end()
    assert stopped.value.code == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "3 runs failed:",
        "  audio-tf train --out one",
        "  audio-tf train --out 'two words'  # ended by signal 15",
        "  audio-tf train --out three  # ended by signal 9, as the kernel does "
        "where memory is short",
    ]
    # Any other error ends the table at once.
    with pytest.raises(OSError):
        with failures.kept():
            raise OSError("disk full")


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
