"""Parts of commands and scripts: flags, and errors of one line.

It is light: nothing here imports Keras or TensorFlow.
"""

import argparse
import contextlib
import io
import itertools
import os
import pathlib
import re
import signal
import sys
import threading
import warnings

from audio_tf.ops.checks import closest
from audio_tf.terminal import printable

# Errors of these classes say enough without the name of their class.
EXPECTED = (
    ValueError,
    TypeError,
    OSError,
    RuntimeError,
    ImportError,
    KeyboardInterrupt,
)
MOST_LINES = 10  # Of one error.
# What brings the package of a backend of Keras that TensorFlow is not.
BACKENDS = {
    "jax": "pip install 'audio_tf[jax]'",
    "torch": "pip install torch",
}

# The exit statuses of every command and script, beside 0.
LEFT_OUT = 1  # Something was left out, or differs.
FAILED = 2  # Nothing could be done.
INTERRUPTED = 130  # As a shell says of what Ctrl-C has ended.
TERMINATED = 143  # As a shell says of what SIGTERM has ended.
READER_GONE = 141  # As a shell says of what a closed pipe has ended.


class Parser(argparse.ArgumentParser):
    """A parser of flags whose errors are one line that names the nearest flag.

    It takes the flag `--debug`, which leaves an attribute in the namespace
    only if it is given. No flag may be abbreviated: what an abbreviation means
    would change with the next flag.

    Args:
        **kwargs: arguments of `argparse.ArgumentParser`.
    """

    def __init__(self, **kwargs):
        self.flags = []
        super().__init__(allow_abbrev=False, **kwargs)
        self.add_argument(
            "--debug",
            action="store_true",
            default=argparse.SUPPRESS,
            help="show where an error comes from",
        )

    def add_argument(self, *names, **kwargs):
        """Adds a flag, as argparse does, and remembers its names."""
        action = super().add_argument(*names, **kwargs)
        self.flags += action.option_strings
        return action

    def parse_known_args(self, args=None, namespace=None):
        """Parses as argparse does, and refuses a flag that is not known.

        It is refused before what is missing, which it may be meant for.
        """
        words = sys.argv[1:] if args is None else list(args)
        if not {"-h", "--help"} & {*words}:
            for word in itertools.takewhile(lambda word: word != "--", words):
                # Argparse takes a word with a blank in it for a value.
                if word.startswith("--") and " " not in word:
                    self.check_known(word)
        namespace, unknown = super().parse_known_args(words, namespace)
        if unknown:
            if unknown[0].startswith("-"):
                self.check_known(unknown[0])
            self.error(f"takes no {unknown[0]!r}")
        return namespace, unknown

    def check_known(self, word):
        """Ends the process if a word, as `--top=3`, is of no known flag."""
        name = word.split("=")[0]
        if name not in self.flags:
            meant = closest(name, self.flags, prefix="--")
            self.error(f"there is no flag {name}{meant}")

    def error(self, message):
        """Ends the process with one line on the standard error."""
        line = f"{self.prog}: {one_line(message)}; see --help\n"
        self.exit(FAILED, line)


def choose(argv, choices, noun, prog, description, version=None):
    """Reads the first argument, which names one of several things.

    Args:
        argv: list of str, the arguments, or `None` for those of the process.
        choices: dict by name of a line that says what it is.
        noun: str, what they are, such as `"table"`.
        prog: str, the program's name in usage and errors.
        description: str, the text of the help.
        version: str that the flag `--version` prints, or `None` for no such
            flag.

    Returns:
        Pair of the name and the list of the arguments behind it.

    Raises:
        SystemExit: after the help or the version, or one line that says that
            there is no such name.
    """
    argv = sys.argv[1:] if argv is None else list(map(str, argv))
    if argv and argv[0] in choices:
        return argv[0], argv[1:]
    width = max(map(len, choices)) + 2
    lines = [f"  {name:{width}s}{line}" for name, line in choices.items()]
    flags = "[-h] [--debug]" + (" [--version]" if version else "")
    parser = Parser(
        prog=prog,
        usage=f"%(prog)s {flags} {noun.upper()} ...",
        description=description,
        epilog="\n".join([f"{noun}s:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if version:
        parser.add_argument("--version", action="version", version=version)
    parser.add_argument(
        noun,
        metavar=noun.upper(),
        nargs="?",  # An unknown flag is a nearer reason than its absence.
        help=f"one of those below; {prog} {noun.upper()} --help tells of its "
        "flags",
    )
    if argv and not argv[0].startswith("-"):
        parser.error(f"no {noun} {argv[0]!r}{closest(argv[0], choices)}")
    parser.parse_args(argv)
    parser.error(
        f"a {noun} must come first. Received: {' '.join(argv) or 'none'}"
    )


class Terminated(KeyboardInterrupt):
    """The end of a command by SIGTERM: what Ctrl-C cleans up, it does too."""


class Failed(SystemExit):
    """The end of a script after an error.

    Args:
        line: str, what was printed of the error.
        status: int, the exit status.
    """

    def __init__(self, line, status):
        super().__init__(line)
        self.code = status


def one_line(message):
    """Returns a message on one line, without a traceback that it may hold.

    An error that Python code has raised within a TensorFlow graph comes with
    its traceback as text, in which the error itself stands last.

    Args:
        message: str, or anything that has one.

    Returns:
        String of printable characters.
    """
    message = str(message)
    raised = re.findall(r"^[\w.]*(?:Error|Exception): .+$", message, re.M)
    if "Traceback (most recent call last)" in message and raised:
        return printable(raised[-1].strip())
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"{len(lines) - MOST_LINES} lines more"]
    return printable("; ".join(lines))


def print_error(prog, error, kept="", flags=()):
    """Prints an error as one line on the standard error.

    Args:
        prog: str, name of the command or script.
        error: the exception.
        kept: str, what the command has left that can be used, or `""`.
        flags: names of the arguments that are flags of the command. In the
            message, the name of one in backticks is replaced by its flag.

    Returns:
        Pair of the line and the exit status.
    """

    def as_flag(found):
        name = found[1]
        return "--" + name.replace("_", "-") if name in flags else found[0]

    text = re.sub(r"`(\w+)`", as_flag, one_line(error)) or "interrupted"
    if isinstance(error, ModuleNotFoundError) and error.name in BACKENDS:
        # Of KERAS_BACKEND, or of Keras' own file, which nobody has in mind.
        text += f"; the backend of Keras needs it: {BACKENDS[error.name]}"
    if not isinstance(error, EXPECTED):
        text = f"{type(error).__name__}: {text}"
    line = f"{prog}: " + "; ".join(filter(None, [text, kept]))
    # In one piece even where Python is unbuffered: the rows of a table may end
    # at the same moment.
    print(line + "\n", end="", file=sys.stderr)
    return line, next(
        (code for kind, code in STATUSES if isinstance(error, kind)), FAILED
    )


# Of errors that are no failures, the particular one first.
STATUSES = ((Terminated, TERMINATED), (KeyboardInterrupt, INTERRUPTED))


@contextlib.contextmanager
def terminable():
    """Makes a context that SIGTERM ends by an exception, as Ctrl-C does.

    A process that the signal killed at once would leave its temporary files
    behind, and its children running. It is the first signal that raises; a
    second one kills, should the exception be lost in what cannot be ended.
    A program that has a handler of its own keeps it, and a thread that cannot
    have one goes without.

    Raises:
        Terminated: where the signal meets the main thread.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return

    def end(number, frame):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated("terminated")

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def errors_in_one_line(argv=None, kept=lambda: "", prog=None, flags=()):
    """Ends a script with one line if its block raises, or SIGTERM ends it.

    Where nobody reads its output any more, only what it has left is said. With
    `--debug` among the flags the error is raised as it is.

    Args:
        argv: list of str, the flags; those of the process if `None`.
        kept: function without arguments to a text on what an unfinished run
            has left, empty if there is nothing to say.
        prog: str, name that the line begins with; that of the script if
            `None`.
        flags: names of the settings, as `print_error` takes them.

    Raises:
        Failed: after the line.
    """
    open_streams()
    show_any_name()
    try:
        with terminable(), warnings_in_one_line():
            yield
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in (sys.argv if argv is None else argv):
            raise
        prog = prog or pathlib.Path(sys.argv[0]).name
        left = ""
        # What cannot be read may be why the run has ended.
        with contextlib.suppress(Exception):
            left = kept()
        if isinstance(error, BrokenPipeError):
            line = f"{prog}: nobody reads the output; {left}" if left else ""
            if line:
                print(line, file=sys.stderr)
            drop_output()
            raise Failed(line, READER_GONE) from None
        raise Failed(*print_error(prog, error, left, flags)) from None


@contextlib.contextmanager
def warnings_in_one_line():
    """Makes a context in which each warning is one printable line.

    Python would print the name of a file as it is, whatever it makes of a
    terminal, and the line of ours that gives the warning as a second one.
    """
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *where: (
        f"warning: {one_line(message)}\n"
    )
    try:
        yield
    finally:
        warnings.formatwarning = before


def open_streams():
    """Opens the null device in place of standard streams that are closed.

    Else the next file that is opened would be taken for one of them.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


def show_any_name():
    """Lets the standard streams escape what their encoding lacks.

    Names of files and labels may be no text that a terminal can show.
    """
    for stream in (sys.stdout, sys.stderr):
        # A program that calls a command may have put anything in their place.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_output():
    """Lets Python end in silence although nobody reads its output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_summary(model):
    """Prints the layers of a Keras model.

    Args:
        model: `keras.Model`. What Keras prints by ends a process by itself
            where nobody reads; a terminal has somebody.
    """
    model.summary(print_fn=None if sys.stdout.isatty() else print)
