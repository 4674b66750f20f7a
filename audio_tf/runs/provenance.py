"""Provenance of a model, kept beside its weights and in the run's folder.

The folder of a run has `config.json`, its settings and what was built, and
the record of its corpus (`audio_tf.runs.corpus_records`).
"""

import datetime
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys

import keras
import numpy as np

from audio_tf import files
from audio_tf.export import classifiers
from audio_tf.version import __version__


def run_facts(settings, out=None):
    """Describes a run by its command, its settings and its machine.

    Args:
        settings: `audio_tf.runs.settings.Settings` of a script.
        out: the folder that `begin_run` has made, where a run that goes on
            finds the command it began with; `None` without a folder.

    Returns:
        Dict that JSON can hold.
    """
    backend = keras.backend.backend()
    return {
        "command": command_line() if out is None else first_command(out),
        **settings.to_json(),
        "versions": {
            "audio_tf": __version__,
            "keras": keras.__version__,
            "backend": backend,
            backend: importlib.metadata.version(backend),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "code": code_facts(),
        "cores": os.cpu_count(),
        "date": datetime.date.today().isoformat(),
    }


@functools.cache
def code_facts(folder=pathlib.Path(__file__).parent):
    """Describes the code that runs.

    Args:
        folder: the folder of this file.

    Returns:
        Dict for JSON: `version`; `commit`, that of the checkout of git which
        the code is in, or `None` of an installed package, even one within a
        checkout; and `changed`, whether files differ from the commit.
    """
    facts = {"version": __version__, "commit": None, "changed": None}

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    try:
        # An environment may lie within another project's checkout.
        if not git("ls-files", "."):
            return facts
        changed = git("status", "--porcelain", "--untracked-files=no")
        return {
            **facts,
            "commit": git("rev-parse", "HEAD"),
            "changed": bool(changed),
        }
    except (OSError, subprocess.CalledProcessError):
        return facts


def first_command(out):
    """Returns the command that the run of a folder began with.

    Args:
        out: the folder; without `config.json`, this process' command counts.
    """
    return begun(out).get("command", command_line())


def built_on(settings, out):
    """Lists what a training builds on, as `export.classifiers.built_on`.

    A run that goes on has it from its folder: presets may be gone by then.

    Args:
        settings: `audio_tf.runs.settings.Settings` of a training.
        out: folder of the run; it may not be there yet.
    """
    return classifiers.built_on({**settings.to_json(), **begun(out)})


def begun(out):
    """Returns the dict that a run has begun with, empty where there is none.

    Args:
        out: folder of the run; it may not be there yet.
    """
    path = pathlib.Path(out, "config.json")
    return json.loads(path.read_text()) if path.is_file() else {}


def command_line():
    """Returns the command that this process was started with.

    It does not name the folder that `audio-tf` is installed in, which may
    also be run as `python -m audio_tf.cli`.
    """
    script, *arguments = sys.argv
    name = pathlib.Path(script).name
    if name.endswith(".py") and name != "__main__.py":
        return shlex.join(["python", script, *arguments])
    return shlex.join(["audio-tf", *arguments])


def model_facts(backbone):
    """Describes a model by what the settings alone do not tell.

    Args:
        backbone: an `AudioBackbone`.

    Returns:
        Dict that JSON can hold: `class`, `attention` and `attention_kwargs`
        (lists where each block has its own), `causal` (whether no frame
        depends on a later sample), `made_for_frames` and `parameters`.
    """
    return {
        "class": type(backbone).__name__,
        "attention": backbone.attention,
        "attention_kwargs": backbone.attention_kwargs,
        "causal": backbone.causal,
        "made_for_frames": backbone.made_for_frames,
        "parameters": backbone.count_params(),
    }


def parts_done(path, parts, model, mark=lambda facts: facts):
    """Reads what a run has done so far, of the model that it goes on with.

    Args:
        path: `pathlib.Path` of the report, which may be missing.
        parts: str, the key of the parts in the report, such as `"folds"`.
        model: dict of facts about the model, `None` without one.
        mark: function of these facts to what tells a model from another.

    Returns:
        Dict of reports by part.

    Raises:
        ValueError: if the model has changed since.
    """
    if not path.is_file():
        return {}
    done = json.loads(path.read_text())
    now, before = mark(model), mark(done["model"])
    if now != before:
        raise ValueError(
            f"The model is not that of {path}. "
            f"Received: {now} in place of {before}"
        )
    return done[parts]


def parts_kept(path, parts):
    """Returns a text on the parts that an unfinished run has done.

    Args:
        path, parts: as `parts_done` takes them.
    """
    if not path.is_file():
        return ""
    done = ", ".join(json.loads(path.read_text())[parts])
    return f"{path} has {done}; --resume goes on"


def has_begun(out):
    """Returns whether a folder has a run, and the list of its corpus.

    A start that was killed before there was a run may have left that alone.

    Args:
        out: folder, which may not be there.
    """
    written = ("corpus.json", "config.json")
    return all(pathlib.Path(out, name).is_file() for name in written)


def begin_run(out, settings, record, **facts):
    """Makes the folder of a run, once its model and its corpus stand.

    Args:
        out: the folder.
        settings: `audio_tf.runs.settings.Settings`.
        record: the `corpus_record`.
        **facts: more for `config.json`.
    """
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    files.write_json(out / "corpus.json", record)
    facts = {**settings.to_json(), "command": first_command(out), **facts}
    # Last: what has it is a run.
    files.write_json(out / "config.json", facts)
