"""What commands and scripts share: flags, and errors of one line."""

import io
import os
import signal
import subprocess
import sys
import threading
import warnings

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
        # Near to `--help` by its dashes alone.
        (["--label", "7"], "tool: there is no flag --label; see --help"),
        (["all"], "tool: takes no 'all'; see --help"),
        (["--top", "x\n\x1b[31m"], r"\x1b[31m"),
    ):
        with pytest.raises(SystemExit) as stopped:
            parsed(flags)
        assert stopped.value.code == 2
        output = capsys.readouterr()
        (said,) = output.err.splitlines()
        assert line in said and said.isprintable() and not output.out, flags


def test_an_unknown_flag_is_a_nearer_reason_than_what_is_missing(capsys):
    parser = console.Parser(prog="tool")
    parser.add_argument("--model", required=True)
    parser.add_argument("files", nargs="+")
    for words, line in (
        (["a", "--modl", "m"], "no flag --modl; did you mean '--model'"),
        (["a", "--modl=m"], "no flag --modl; did you mean '--model'"),
        (["a"], "the following arguments are required: --model"),
        (["--", "--modl"], "the following arguments are required: --model"),
    ):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        assert line in capsys.readouterr().err, words
    # What argparse takes for a value, or for help, is no unknown flag.
    asked = parser.parse_args(["--model", "--a b", "--", "--modl"])
    assert (asked.model, asked.files) == ("--a b", ["--modl"])
    with pytest.raises(SystemExit) as helped:
        parser.parse_args(["--modl", "--help"])
    assert helped.value.code == 0


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
        (
            ModuleNotFoundError("No module named 'x'", name="x"),
            "script.py: No module named 'x'; kept",
        ),
        (
            ModuleNotFoundError("No module named 'jax'", name="jax"),
            "needs it: pip install 'audio_tf[jax]'; kept",
        ),
        (KeyError("x"), "script.py: KeyError: 'x'; kept"),
        (KeyboardInterrupt(), "script.py: interrupted; kept"),
        (console.Terminated("terminated"), "script.py: terminated; kept"),
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
        statuses = {KeyboardInterrupt: 130, console.Terminated: 143}
        assert stopped.value.code == statuses.get(type(error), 2)
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


# What prints by itself, at the end, and by what Keras prints a summary by.
PRINTS = {
    "at once": "print('x', flush=True)",
    "at the end": "print('x')",
    "a summary": """
import io, rich.console
class Model:
    def summary(self, print_fn=None):
        made = rich.console.Console(file=io.StringIO() if print_fn else None)
        made.print('x')
        if print_fn:
            print_fn(made.file.getvalue())
console.print_summary(Model())
""",
}


@pytest.mark.parametrize("prints", PRINTS)
@pytest.mark.parametrize("kept", ["", "2 epochs"])
def test_a_reader_that_goes_away_ends_a_script(prints, kept, monkeypatch):
    # Or each line would be written at once.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    lines = "\n    ".join(PRINTS[prints].strip().splitlines())
    script = (
        "from audio_tf import console\n"
        f"with console.errors_in_one_line([], lambda: {kept!r}, 'work'):\n"
        f"    {lines}\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", script],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writer)
    assert ended.returncode == 141
    said = "work: nobody reads the output; 2 epochs\n"
    assert ended.stderr == (said if kept else "")


def test_streams_that_are_closed_are_nobodys():
    """As of what a daemon starts; the next file has none of their numbers."""
    script = """
import os, sys
from audio_tf import console, quiet
with console.errors_in_one_line([], prog="work"):
    print("x", flush=True)
    print("y", file=sys.stderr, flush=True)
    assert sys.stdin.buffer.read() == b""
    with open(os.devnull) as file, quiet.tensorflow():
        assert file.fileno() > 2
    sys.exit(7)
"""
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
        + [sys.executable, "-c", script]
    )
    assert ended.returncode == 7


GIVES = (
    "import sys, warnings; from audio_tf import cli, console\n"
    "with console.errors_in_one_line([], prog='work'):\n"
    "    warnings.warn(sys.argv[1])"
)
# It looks for files before it asks the server, which nobody is.
ASKS = (
    "import sys; from audio_tf import cli\n"
    "cli.main(['query', 'http://127.0.0.1:1', '--retries', '0', sys.argv[1]])"
)


@pytest.mark.parametrize("program", [GIVES, ASKS])
def test_a_warning_is_one_line_that_steers_no_terminal(program, tmp_path):
    folder = tmp_path / "a\x1b[31mb\nc"
    folder.mkdir()
    (folder / "d.wav").touch()
    os.symlink("nowhere", folder / "gone")
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "\x1b" not in done.stderr
    told = done.stderr.splitlines()[0]
    assert told.startswith("warning: ") and r"a\x1b[31mb; c" in told
    assert "warnings.warn" not in done.stderr and "console.py" not in told


def test_warnings_of_a_program_are_its_own_again():
    before = warnings.formatwarning
    with console.warnings_in_one_line():
        assert warnings.formatwarning is not before
    assert warnings.formatwarning is before


def test_what_is_kept_does_not_hide_the_error(capsys):
    """It may be a file that cannot be read, which is why the run has ended."""

    def kept():
        raise KeyError("no such member")

    with (
        pytest.raises(SystemExit) as stopped,
        console.errors_in_one_line([], kept, "work"),
    ):
        raise ValueError("last.keras is no checkpoint")
    assert capsys.readouterr().err == "work: last.keras is no checkpoint\n"
    assert stopped.value.code == 2


def test_sigterm_raises_once_and_leaves_other_handlers_alone():
    with pytest.raises(console.Terminated):
        with console.terminable():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                # A second one kills.
                assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    with console.terminable(), console.terminable():
        assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with console.terminable():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    except console.Terminated:
        # Let through, it would end pytest as Ctrl-C does.
        pytest.fail("a handler of the program's own was replaced")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    thread = threading.Thread(target=console.terminable().__enter__)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_error_is_written_in_one_piece(monkeypatch):
    """Lines of processes that end together would otherwise run together."""

    class Unbuffered(io.StringIO):
        def write(self, text):
            pieces.append(text)

    pieces = []
    monkeypatch.setattr(sys, "stderr", Unbuffered())
    console.print_error("row", console.Terminated("terminated"))
    assert [piece for piece in pieces if piece] == ["row: terminated\n"]


def test_arguments_are_named_by_their_flags(capsys):
    error = ValueError("`batch_size` must divide `n`. Received: batch_size=3")
    console.print_error("tool", error, flags=["batch_size"])
    said = capsys.readouterr().err
    assert said.startswith("tool: --batch-size must divide `n`. Received:")
