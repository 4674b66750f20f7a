"""Audio files in folders, found by their suffix."""

import glob
import os
import pathlib

from audio_tf.audio import packed

AUDIO_SUFFIXES = {".wav", ".flac", ".ogg", ".mp3", ".aif", ".aiff"}


def audio_below(data_dir):
    """Lists the audio files in a folder and in all folders below it.

    Files of other suffixes are passed over; a file of such a suffix that
    holds no audio is found when it is decoded.

    Args:
        data_dir: path of the folder.

    Returns:
        Sorted list of `pathlib.Path`.

    Raises:
        FileNotFoundError: if there is no such folder.

    Examples:
        >>> import pathlib
        >>> from audio_tf import corpora
        >>> pathlib.Path("sounds/dog").mkdir(parents=True)
        >>> pathlib.Path("sounds/dog/a.wav").touch()
        >>> pathlib.Path("sounds/readme.txt").touch()
        >>> [file.as_posix() for file in corpora.audio_below("sounds")]
        ['sounds/dog/a.wav']
    """
    data_dir = pathlib.Path(data_dir)
    # A build has lists of its corpus as files, and its clips packed.
    found = packed.below(data_dir)
    if found is None:
        if not data_dir.is_dir():
            raise FileNotFoundError(f"{data_dir}: no such folder")
        found = data_dir.rglob("*")
    return sorted(
        file for file in found if file.suffix.lower() in AUDIO_SUFFIXES
    )


def is_folder(path):
    """Returns whether there is a folder, or audio packed as if in one."""
    return os.path.isdir(path) or packed.below(path) is not None


def list_files(paths):
    """Replaces folders and patterns among some paths by the files they mean.

    A path is a pattern if it has `*`, `?` or `[` in it and nothing has that
    very name. `**` stands for any folders. Of the files that match, those of
    other suffixes than audio are passed over, unless the pattern ends with
    their suffix.

    Args:
        paths: paths of files, which need not be there, and of folders, and
            patterns.

    Returns:
        List of paths, in the order of what they are found by; those of one
        folder or pattern are sorted, and each is there once for it.

    Raises:
        FileNotFoundError: if a folder holds no audio, or a pattern matches
            none.

    Examples:
        >>> import pathlib
        >>> from audio_tf import corpora
        >>> for name in ["b.wav", "a.wav", "c.flac"]:
        ...     pathlib.Path(name).touch()
        >>> [str(file) for file in corpora.list_files(["c.flac", "*.wav"])]
        ['c.flac', 'a.wav', 'b.wav']
    """
    files = []
    for path in paths:
        if os.path.isdir(path):
            files += audio_in(path)
        elif glob.has_magic(os.fspath(path)) and not os.path.lexists(path):
            files += match_files(os.fspath(path))
        else:
            files.append(path)
    return files


def audio_in(folder):
    """Lists the audio files below a folder; none is a `FileNotFoundError`."""
    below = audio_below(folder)
    if not below:
        raise FileNotFoundError(f"{folder}: no audio in this folder")
    return below


def match_files(pattern):
    """Lists what a pattern stands for; see `list_files`.

    Args:
        pattern: str.

    Returns:
        Sorted list of `pathlib.Path`.

    Raises:
        FileNotFoundError: if nothing matches.
    """
    suffixes = {*AUDIO_SUFFIXES, pathlib.PurePath(pattern).suffix.lower()} - {
        ""
    }
    found = set()
    for match in map(pathlib.Path, glob.glob(pattern, recursive=True)):
        if match.is_dir():
            found.update(audio_below(match))
        elif match.suffix.lower() in suffixes:
            found.add(match)
    if not found:
        raise FileNotFoundError(f"{pattern}: no audio file matches")
    return sorted(found)
