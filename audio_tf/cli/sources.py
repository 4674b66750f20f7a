"""Audio that a command is given: files, folders, patterns, standard input."""

import os
import sys

from audio_tf import quiet

STDIN = "-"


def find_files(paths):
    """Finds the files that a command is given, each once, in their order.

    Says on the standard error how many were given twice.

    Args:
        paths: list of str: files, folders, patterns, or `STDIN`.

    Returns:
        List of paths.

    Raises:
        FileNotFoundError: if a folder holds no audio, or a pattern matches
            none.
    """
    from audio_tf.corpora import list_files

    files = list_files(paths)
    once = {}
    for file in files:
        # No file of that name: the standard input.
        place = file if file == STDIN else os.path.abspath(file)
        once.setdefault(place, file)
    if len(once) < len(files):
        more = len(files) - len(once)
        print(f"{more} files were given twice, taken once", file=sys.stderr)
    return list(once.values())


def find_sources(paths):
    """Finds what a command is given, as the library takes it.

    Args:
        paths: as `find_files` takes them.

    Returns:
        List of `audio.sources.Source`.

    Raises:
        FileNotFoundError: as `find_files`.
    """
    files = find_files(paths)
    contents = read_stdin(files)
    with quiet.tensorflow():
        # It loads TensorFlow, here where it is quiet.
        from audio_tf.audio.sources import Source
    return [Source(file, content=contents.get(file)) for file in files]


def read_stdin(files):
    """Reads the standard input if it is among the files.

    Args:
        files: paths, as `find_files` gives them.

    Returns:
        Dict of the bytes by `STDIN`, empty if it is not asked for.
    """
    return {STDIN: sys.stdin.buffer.read()} if STDIN in files else {}
