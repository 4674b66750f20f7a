"""Files and folders that are written whole or not at all."""

import contextlib
import json
import os
import pathlib
import shutil


@contextlib.contextmanager
def whole_file(path):
    """Yields the path of a new file that takes the place of `path` at the end.

    If the block raises, for example because the disk is full, `path` stays
    what it was and the new file is removed.

    Args:
        path: the file.

    Yields:
        Path in the same folder, with the suffix of `path`; the block writes
        it.
    """
    path = pathlib.Path(path)
    new = path.with_name(f".{path.name}")
    try:
        yield new
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def whole_folder(path):
    """Yields a new folder that takes the place of `path` at the end.

    Args:
        path: the folder.

    Yields:
        Path of an empty folder beside it; the block fills it.
    """
    path = pathlib.Path(path)
    new, old = (path.with_name(f".{path.name}.{age}") for age in ("new", "old"))
    if old.exists() and not path.exists():
        # Killed between the two renames below.
        old.rename(path)
    for rest in (new, old):
        shutil.rmtree(rest, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    # A folder cannot replace another one at once.
    if path.exists():
        path.rename(old)
    new.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def write_text(path, text):
    """Writes a text file, whole or not at all."""
    with whole_file(path) as new:
        new.write_text(text, encoding="utf-8")


def write_json(path, content):
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(content, indent=2))
