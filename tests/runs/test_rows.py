"""Rows of tables: commands, their flags, and functions that take turns."""

import subprocess

import pytest

pytest.importorskip("tensorflow")

from audio_tf.runs import rows


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


def test_commands_have_processes_of_their_own(capfd):
    rows.run("classify", "--help")
    said = capfd.readouterr().out.splitlines()
    assert said[0] == "$ audio-tf classify --help"
    assert said[1].startswith("usage: audio-tf classify ")
    with pytest.raises(subprocess.CalledProcessError):
        rows.run("evaluat")
    assert "did you mean 'evaluate'" in capfd.readouterr().err


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
