"""What commands and scripts share: flags and errors of one line."""

import sys

import pytest

from audio_tf import console


def parsed(flags, **options):
    """What a parser with the flag `--top` makes of flags."""
    parser = console.Parser(prog="tool", **options)
    parser.add_argument("--top", type=int)
    parser.add_argument("--no-bar", action="store_true")
    return parser.parse_args(flags)


def test_a_wrong_flag_is_one_line_that_names_the_nearest(capsys):
    for flags, line in (
        (["--tpo", "3"], "tool: there is no flag --tpo; did you mean '--top'"),
        (["--tpo=3"], "tool: there is no flag --tpo; did you mean '--top'"),
        (["--to", "3"], "there is no flag --to; did you mean '--top'"),
        (["--debg"], "there is no flag --debg; did you mean '--debug'"),
        (["--nobar"], "there is no flag --nobar; did you mean '--no-bar'"),
        (["all"], "tool: takes no 'all'; see --help"),
        (["--top", "x\n\x1b[31m"], r"\x1b[31m"),
    ):
        with pytest.raises(SystemExit) as stopped:
            parsed(flags)
        assert stopped.value.code == 2
        output = capsys.readouterr()
        (said,) = output.err.splitlines()
        assert line in said and said.isprintable() and not output.out, flags


def test_debug_is_a_flag_of_every_parser():
    assert "debug" not in parsed([])
    assert parsed(["--debug"]).debug is True


def test_errors_end_a_script_with_one_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["training/script.py"])
    inner = (
        "ValueError: the truth\nTraceback (most recent call last):\n"
        '  File "x.py", line 1\n\nValueError: the truth\n\n\t [[{{node}}]]'
    )
    for error, line in (
        (ValueError("one\n  two\n"), "script.py: one; two; kept"),
        (OSError(28, "No space left"), "script.py: [Errno 28] No space left"),
        (RuntimeError(inner), "script.py: ValueError: the truth; kept"),
        (ImportError("no such thing"), "script.py: no such thing; kept"),
        (KeyError("x"), "script.py: KeyError: 'x'; kept"),
        (KeyboardInterrupt(), "script.py: interrupted; kept"),
        (ValueError("\n".join("abcdefghijklm")), "j; 3 lines more; kept"),
        (ValueError("a\x1b[31m"), r"script.py: a\x1b[31m; kept"),
    ):
        with (
            pytest.raises(SystemExit) as stopped,
            console.errors_in_one_line([], lambda: "kept"),
        ):
            raise error
        assert capsys.readouterr().err == f"{stopped.value}\n"
        assert line in str(stopped.value)
        assert "\n" not in str(stopped.value)
        status = 130 if isinstance(error, KeyboardInterrupt) else 2
        assert stopped.value.code == status
        with (
            pytest.raises(type(error)),
            console.errors_in_one_line(["--debug"]),
        ):
            raise error
        with (
            pytest.raises(SystemExit, match="^audio-tf train: "),
            console.errors_in_one_line([], prog="audio-tf train"),
        ):
            raise error
        capsys.readouterr()


def test_arguments_are_named_by_their_flags(capsys):
    error = ValueError("`batch_size` must divide `n`. Received: batch_size=3")
    console.print_error("tool", error, flags=["batch_size"])
    said = capsys.readouterr().err
    assert said.startswith("tool: --batch-size must divide `n`. Received:")
