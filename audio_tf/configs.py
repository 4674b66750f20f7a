"""Configs: Python files that hold settings, and may add to tables of others.

A process that a run starts must find what the configs of the run have added,
such as an attention of the user's own: it executes them again.
"""

import contextlib
import importlib.util
import json
import os
import traceback

# The variable by which a process is told of the configs of its parent.
VARIABLE = "AUDIO_TF_CONFIGS"
# For errors of what may be the user's own, and was not found.
HINT = (
    "; what is your own is known once its module is imported, to a command by "
    f"""{VARIABLE}='["mine.py"]' in its environment"""
)

# Absolute paths of what this process has executed, in their order.
executed = {}


def execute(path):
    """Executes a config, and remembers it for `environment`.

    Args:
        path: path of a Python file, `*.py`.

    Returns:
        The module that it makes.

    Raises:
        OSError: if there is no such file.
        ValueError: if it raises an error; it names the line.
    """
    spec = importlib.util.spec_from_file_location("audio_tf_config", path)
    module = importlib.util.module_from_spec(spec)
    with naming_the_line(path):
        spec.loader.exec_module(module)
    executed[os.path.abspath(path)] = None
    return module


@contextlib.contextmanager
def naming_the_line(path):
    """Makes a context whose errors name the line of a config they come from.

    Args:
        path: path of the config.

    Raises:
        ValueError: in place of an error that the config's code has raised.
    """
    try:
        yield
    except Exception as error:
        whole = os.path.abspath(path)
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == whole
        ]
        if isinstance(error, SyntaxError) and error.filename == whole:
            lines.append(error.lineno)
        # No line of it has been reached, as when there is no such file.
        if not lines:
            raise
        raise ValueError(
            f"{path}, line {lines[-1]}: {type(error).__name__}: {error}"
        ) from error


def environment():
    """Returns the environment of a process that finds the same configs."""
    if not executed:
        return dict(os.environ)
    return {**os.environ, VARIABLE: json.dumps(list(executed))}


def execute_again():
    """Executes what the process that has started this one had executed.

    What this process has executed already is left out.

    Raises:
        ValueError: if the variable holds no list of Python files, or as
            `execute`.
        OSError: if there is no such file.
    """
    text = os.environ.get(VARIABLE, "[]")
    try:
        paths = json.loads(text)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(
        isinstance(path, str) and path.endswith(".py") for path in paths
    ):
        raise ValueError(
            f"{VARIABLE} must be a list of Python files in JSON, such as "
            f"""'["mine.py"]'. Received: {text!r}"""
        )
    for path in paths:
        if os.path.abspath(path) not in executed:
            execute(path)
