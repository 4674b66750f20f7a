"""Settings from a config file, from flags, or from a run that goes on.

The defaults of settings are overridden by a config, a Python file with
`get_config()` that returns a dict, and that by flags with the names of the
settings. An error names the flag.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import typing

from audio_tf import configs, console, files, memory
from audio_tf.corpora import layouts
from audio_tf.ops.checks import closest
from audio_tf.runs.settings import choices_of, flag, kind_of

# More would hide the meaning in a help text.
MOST_CHOICES = 8


def read_config(path, settings_class, name="config", own=()):
    """Reads a config file.

    Args:
        path: a Python file with a function `get_config()`.
        settings_class: the class of `Settings` that it is for.
        name: str, the setting that names the file.
        own: names of the settings that the rows of a table say.

    Returns:
        The dict that `get_config()` returns.

    Raises:
        ValueError: if it is no Python file, has no such function, that returns
            no dict, the dict has a key that the settings lack or that is in
            `own`, or its code raises an error.
        OSError: if there is no such file.
    """
    if pathlib.Path(path).suffix != ".py":
        raise ValueError(
            f"{flag(name)} must be a Python file, *.py. Received: {path!r}"
        )
    get_config = getattr(configs.execute(path), "get_config", None)
    if not callable(get_config):
        raise ValueError(
            f"{path} must have a function get_config(). Received: {get_config}"
        )
    with configs.naming_the_line(path):
        config = get_config()
    if not isinstance(config, dict):
        raise ValueError(
            f"{path}: get_config() must return a dict of settings by name. "
            f"Received: {config!r}"
        )
    known = [field.name for field in dataclasses.fields(settings_class)]
    unknown = sorted(set(config) - set(known), key=str)
    if unknown:
        raise ValueError(
            f"{path}: unknown setting {unknown[0]!r}"
            f"{closest(unknown[0], known)}. Received: {unknown}; "
            f"known are {sorted(known)}"
        )
    for each in own:
        if each in config:
            raise ValueError(
                f"{path}: {each!r} is that of the rows. "
                f"Received: {config[each]!r}"
            )
    return config


def add_flags(parser, settings_class):
    """Adds a flag for each setting; one that is not given leaves no trace."""
    for field in dataclasses.fields(settings_class):
        arguments = {
            "default": argparse.SUPPRESS,
            "help": help_of(field, settings_class).replace("%", "%%"),
        }
        kind = kind_of(field)
        if kind is bool:
            arguments["action"] = argparse.BooleanOptionalAction
        elif typing.get_origin(kind) is list:
            arguments["type"] = typing.get_args(kind)[0]
            arguments["nargs"] = "*"
        else:
            arguments["type"] = json_dict if kind is dict else kind
        if kind is dict:
            arguments["metavar"] = "JSON"
        parser.add_argument(flag(field.name), **arguments)


def help_of(field, settings_class):
    """Returns a flag's help: meaning, choices, where it applies, default."""
    text, choices = field.metadata["help"], choices_of(field)
    if field.name == "dataset":
        text += f": {layouts.describe(settings_class.layouts)}"
    elif choices and len(choices) <= MOST_CHOICES:
        text += f": {', '.join(map(str, choices))}"
    option, only = field.metadata["option"], field.metadata["only"]
    if option:
        takers = layouts.takers(settings_class.layouts, option)
        text += f"; for --dataset {', '.join(takers)}"
    if only:
        text += f"; for {flag(only[0])} {', '.join(only[1])}"
    default = field.default
    if default is dataclasses.MISSING:
        default = field.default_factory()
    if default is None:
        default = field.metadata["unless_given"]
    return f"{text} (default: {default})"


def json_dict(text):
    """Reads the dict of a flag that is a JSON object."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be JSON ({error}). Received: {text}"
        ) from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(
            f"must be a JSON object. Received: {text}"
        )
    return value


def saved_run(out):
    """Reads the `config.json` that an earlier run has left in its folder.

    Returns:
        Dict with what `Settings.to_json` returns, and more.

    Raises:
        ValueError: if there was no run, or one of another version.
    """
    path = pathlib.Path(out, "config.json")
    if not path.is_file():
        raise ValueError(f"{path} is missing: nothing to resume in --out")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} must be JSON. Received: {error}") from error
    if not isinstance(content, dict) or not {"settings", "given"} <= set(
        content
    ):
        raise ValueError(
            f"{path} must have `settings` and `given`. "
            f"Received: {sorted(content)}"
        )
    return content


def resumed(settings_class, out, given, free):
    """Reads the settings of a run that goes on.

    Args:
        settings_class: the class of `Settings`.
        out: folder of the run.
        given: dict of what flags and config say now.
        free: names of the settings that may change when a run goes on.

    Returns:
        The settings of the run, the free ones as they are given.

    Raises:
        ValueError: if there is no run, or it would go on with other settings.
    """
    content = saved_run(out)
    free = {"out", *free, *settings_class.names_of_start()}
    free = {name: given[name] for name in given if name in free}
    try:
        settings = settings_class.from_json(content, **free)
        # The same checks and types as in the run.
        asked = settings_class.from_json(content, **given)
    except ValueError as error:
        raise ValueError(f"{out}: {error}") from None
    changed = [
        name
        for name in sorted(given)
        if getattr(asked, name) != getattr(settings, name)
    ]
    if changed:
        raise ValueError(
            f"--resume goes on with the settings of {out}. Received: "
            + ", ".join(
                f"{name}={getattr(asked, name)!r} in place of "
                f"{getattr(settings, name)!r}"
                for name in changed
            )
        )
    return settings


def check_folder(name, folder, corpus=None):
    """Raises a `ValueError` if a folder is not one to write results to.

    Args:
        name: str, the setting that names the folder.
        folder: its path. It can be made, or written to, and is not that of
            the corpus, into which nothing is mixed.
        corpus: path of the corpus, or `None`.
    """
    files.check_folder(flag(name), folder)
    if corpus and os.path.realpath(folder) == os.path.realpath(corpus):
        raise ValueError(
            f"{flag(name)} must be another folder than that of the corpus. "
            f"Received: {os.fspath(folder)}"
        )


def parse(
    settings_class,
    description,
    argv=None,
    resumable=False,
    free=(),
    prog=None,
):
    """Reads settings from defaults, config and flags, the later the stronger.

    Args:
        settings_class: the class of `Settings`.
        description: text of the script's help.
        argv: list of str, the flags; those of the process if `None`.
        resumable: bool, whether `--resume` goes on with the run that has left
            its settings in `out`.
        free: names of settings that may change when a run goes on.
        prog: str, name of the program in help and errors; that of the script
            if `None`.

    Returns:
        The settings; if `resumable`, a pair with whether to resume.

    Raises:
        SystemExit: after one line that names the flag, if there is a mistake.
    """
    parser = console.Parser(
        prog=prog,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", help="Python file with get_config()")
    if resumable:
        parser.add_argument(
            "--resume",
            action="store_true",
            help="go on with the run in --out, with its settings",
        )
    add_flags(parser, settings_class)
    flags = vars(parser.parse_args(argv))
    config_path = flags.pop("config")
    resume = flags.pop("resume", False)
    debug = flags.pop("debug", False)
    try:
        given = flags
        if config_path is not None:
            given = {**read_config(config_path, settings_class), **flags}
        if resumable:
            out = given.get("out", settings_class.out)
            check_folder("out", out)
        if resume:
            return resumed(settings_class, out, given, free), True
        if resumable and pathlib.Path(out, "config.json").exists():
            raise ValueError(
                f"{out} holds a run. Add --resume, or choose another --out"
            )
        settings = settings_class(**given)
        if resumable:
            # Once more, beside a corpus that is known to be named by a text.
            check_folder("out", out, given.get("data_dir"))
    except (ValueError, OSError) as error:
        if debug:
            raise
        parser.error(str(error))
    return (settings, resume) if resumable else settings


def run_by_flags(
    run, settings_class, description, argv=None, prog=None, free=None, kept=None
):
    """Runs a program of this package as flags say.

    Args:
        run: function of the settings; of a program that can be resumed also
            of the folder of the run.
        settings_class: the class of `Settings`.
        description: text of the program's help.
        argv: list of str, the flags; those of the process if `None`.
        prog: str, the program's name in usage and errors; the script's if
            `None`.
        free: names of settings that may change when a run goes on, or `None`
            if the program cannot be resumed.
        kept: function from the folder of a run to a text on what it has left
            when it ends with an error, empty if there is nothing to say.

    Raises:
        SystemExit: after one line on a wrong flag or an error of the run.
        TypeError: if only one of `free` and `kept` is given.
    """
    if (free is None) != (kept is None):
        raise TypeError(
            "`free` and `kept` are both of a program that can be resumed. "
            f"Received: free={free}, kept={kept}"
        )
    memory.keep_freed()
    flags = [field.name for field in dataclasses.fields(settings_class)]
    if free is None:
        settings = parse(settings_class, description, argv, prog=prog)
        with console.errors_in_one_line(argv, prog=prog, flags=flags):
            run(settings)
        return
    settings, goes_on = parse(
        settings_class, description, argv, True, free, prog
    )
    out = pathlib.Path(settings.out)
    with console.errors_in_one_line(argv, prog=prog, flags=flags):
        with held(out) if settings.writes else contextlib.nullcontext():
            if settings.writes and not goes_on:
                check_new(out, kept)
            with console.errors_in_one_line(
                argv, lambda: kept(out), prog, flags
            ):
                run(settings, out)


def check_new(out, kept):
    """Checks that a new run would not go on with what another has left.

    Without the settings of that one, such as once they were removed to begin
    anew, its weights would be taken for those of the new settings.

    Args:
        out: `pathlib.Path` of the folder.
        kept: as `run_by_flags` takes it.

    Raises:
        ValueError: if something is left.
    """
    if kept(out):
        raise ValueError(
            "--out must be a folder without what another run has left behind, "
            "which a new one would go on with. "
            f"Received: {out}, of a run whose config.json is gone"
        )


@contextlib.contextmanager
def held(out):
    """Holds the folder of a run, which no other process may write meanwhile.

    A training that a table has started goes on when the table was killed by
    SIGKILL: two of them in one folder would overwrite each other's epochs.

    Args:
        out: `pathlib.Path`; a run that does not begin leaves no new folder.

    Raises:
        BlockingIOError: if another process holds it.
    """
    new = [each for each in (out, *out.parents) if not each.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        with files.only_one(out / ".lock", "at work on this run"):
            yield
    finally:
        for each in new:
            # What has files stays.
            with contextlib.suppress(OSError):
                each.rmdir()
