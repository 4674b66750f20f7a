"""The folders of the cache are listed, cleared and limited here."""

import contextlib
import dataclasses
import json
import pathlib
import re
import shutil
import time
import typing

from audio_tf import files
from audio_tf.corpora import CORPORA, SPEECH
from audio_tf.data import shards

# File of what a folder of features holds, for people.
ABOUT = "about.json"
# Corpora that are written to the cache, because they are made here, or are in
# files that nothing but TFDS reads.
WRITTEN = [
    rf"{re.escape(name)}-[0-9]+"
    for name, layout in {**CORPORA, **SPEECH}.items()
    if layout.makes_its_own
]
# Names of the folders by what they hold.
FOLDERS = {
    "audio": re.compile(r"[0-9]+-[0-9a-f]{8}"),
    "features": re.compile(r"features-[0-9a-f]{16}"),
    "corpus": re.compile("|".join([*WRITTEN, "librispeech-[0-9a-f]{16}"])),
}
# What an interrupted write has left; a younger one may be going on.
OLD_S = 24 * 3600.0


@dataclasses.dataclass(frozen=True)
class Folder:
    """A folder of the cache.

    Attributes:
        path: `pathlib.Path`.
        kind: str, a key of `FOLDERS`.
        entries: int, how many clips are in it; files, of a corpus.
        in_shards: int, how many of them are in shards of `audio-tf prepare`.
        size_bytes: int, of all its files.
        about: str, what it holds, empty where it does not say.
    """

    path: pathlib.Path
    kind: str
    entries: int
    in_shards: int
    size_bytes: int
    about: str

    @property
    def name(self):
        """The name of the folder."""
        return self.path.name

    def clear(self):
        """Removes the folder; another process must not be using it."""
        shutil.rmtree(self.path)


def folders(directory):
    """Lists the folders of a cache, whatever else is beside them.

    Args:
        directory: path of the cache, which may be missing.

    Returns:
        List of `Folder` by name.
    """
    found = []
    directory = pathlib.Path(directory)
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        kinds = [k for k, name in FOLDERS.items() if name.fullmatch(path.name)]
        if kinds and path.is_dir():
            found.append(read_folder(path, kinds[0]))
    return found


def read_folder(path, kind):
    """Returns the `Folder` of a path."""
    sizes = size_of_files(path)
    if kind == "corpus":
        about = "a corpus that is made, or made readable, when it is wanted"
        return Folder(path, kind, len(sizes), 0, sum(sizes.values()), about)
    alone = sum(each.suffix == ".f32" for each in sizes)
    in_shards = sum(
        len(note.rows)
        for sets in path.rglob(shards.PREPARED)
        for each in shards.sets_in(sets)
        for note in shards.read_notes(each).values()
    )
    about, text = path / ABOUT, ""
    if kind == "audio":
        text = f"decoded audio at {path.name.partition('-')[0]} Hz"
    elif about.is_file():
        # It is for people alone: one that a power cut has emptied keeps
        # nobody from clearing the cache.
        with contextlib.suppress(ValueError):
            text = json.loads(about.read_text("utf-8"))
    size = sum(sizes.values())
    return Folder(path, kind, alone + in_shards, in_shards, size, text)


def size_of_files(folder):
    """Returns the bytes of all files below a folder, by path."""
    sizes = {}
    for path in folder.rglob("*"):
        # A run may be at work.
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                sizes[path] = path.stat().st_size
    return sizes


def describe(folder, text):
    """Writes what a folder of features holds, unless it says so already.

    Args:
        folder: `pathlib.Path` of the folder.
        text: str.
    """
    about = folder / ABOUT
    if about.is_file():
        return
    # Another process may write it at the same time.
    with contextlib.suppress(FileNotFoundError):
        files.write_json(about, text)


class Removed(typing.NamedTuple):
    """Counts of the files that a limit has removed, and of what is left.

    Attributes:
        files: int, how many entries and shards.
        size_bytes: int, their bytes.
        left_bytes: int, bytes of audio and features that are left.
    """

    files: int
    size_bytes: int
    left_bytes: int


def limit(directory, most_bytes):
    """Removes what was used longest ago, until no more than so much is left.

    Entries and shards are removed one by one, each as a whole; what they held
    is decoded and computed again when it is wanted. Corpora stay. What killed
    processes have left is removed before all else.

    Args:
        directory: path of the cache; no other process must be using it.
        most_bytes: int, bytes of decoded audio and of features.

    Returns:
        `Removed`.
    """
    kept = [each for each in folders(directory) if each.kind != "corpus"]
    left = sum(each.size_bytes for each in kept)
    pieces = []
    for folder in kept:
        for path, size in size_of_files(folder.path).items():
            status = path.stat()
            used = max(status.st_atime, status.st_mtime)
            unfinished = path.suffix == ".partial" or path.name.startswith(".")
            if unfinished and time.time() - status.st_mtime > OLD_S:
                pieces.append((0.0, path, size))
            elif path.suffix in (".f32", ".tfrecord"):
                pieces.append((used, path, size))
    removed = gone = 0
    for used, path, size in sorted(pieces):
        if used and left <= most_bytes:
            break
        note = path.with_name(path.name.partition("-")[0] + ".json")
        if path.suffix == ".tfrecord" and note.is_file():
            size += note.stat().st_size
            note.unlink()
        path.unlink()
        removed, gone, left = removed + 1, gone + size, left - size
    return Removed(removed, gone, left)
