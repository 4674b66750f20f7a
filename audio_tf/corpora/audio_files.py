"""Audio files in folders, found by their suffix."""

import os
import pathlib

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
    """
    data_dir = pathlib.Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"{data_dir}: no such folder")
    return sorted(
        file
        for file in data_dir.rglob("*")
        if file.suffix.lower() in AUDIO_SUFFIXES
    )


def list_files(paths):
    """Replaces each folder among some paths by the audio files below it.

    Args:
        paths: paths of files, which need not be there, and of folders.

    Returns:
        List of paths; those of one folder are sorted.

    Raises:
        FileNotFoundError: if a folder holds no audio.
    """
    files = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        below = audio_below(path)
        if not below:
            raise FileNotFoundError(f"{path}: no audio in this folder")
        files += below
    return files
