"""Audio files in folders, found by their suffix."""

import collections
import glob
import os
import pathlib
import re
import warnings

from audio_tf.audio import packed

AUDIO_SUFFIXES = {".wav", ".flac", ".ogg", ".mp3", ".aif", ".aiff"}
# What macOS adds to an archive: a file for each, of the same name and no audio.
# Unpacked, it would be a class beside the others.
OF_MACOS = "__MACOSX"
# The same beside the file itself, in a tar and on disks of other systems.
BESIDE_OF_MACOS = "._"
# Folders where systems keep what was deleted on a disk, some with the number
# of who has done so. Each would be a class beside the others.
BINS = re.compile(r"\.Trash(-\d+|es)?|\$RECYCLE\.BIN|#recycle", re.IGNORECASE)
# Of audio, too, and not looked for in folders: nobody should find out by a
# class that is missing.
OTHER_SUFFIXES = {
    *(".aac", ".ac3", ".aifc", ".alac", ".amr", ".ape", ".au", ".caf"),
    *(".m4a", ".m4b", ".mka", ".mp2", ".oga", ".opus", ".ra", ".rf64"),
    *(".snd", ".sph", ".spx", ".w64", ".wave", ".webm", ".wma", ".wv"),
}
# How archives are called. A class that is packed would be missing, too.
ARCHIVE_SUFFIXES = (
    *(".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2"),
    *(".tar.xz", ".txz"),
)


def audio_below(data_dir):
    """Lists the audio files in a folder and in all folders below it.

    Files of other suffixes are passed over. Warnings count those of audio in
    other formats, such as `.m4a`, and archives but for those beside a folder
    of their name, which are unpacked. A file of a suffix of audio that holds
    none is found when it is decoded.

    Args:
        data_dir: path of the folder; links to folders in it are followed.

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
    return audio_among(data_dir, all_below(data_dir))


def all_below(folder):
    """Lists all files below a folder; none there is a `FileNotFoundError`."""
    folder = pathlib.Path(folder)
    # A build has lists of its corpus as files, and its clips packed.
    found = packed.below(folder)
    if found is None:
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder}: no such folder")
        return list(files_below(folder))
    return [file for file in found if not is_rest(file.relative_to(folder))]


def audio_among(where, found, own="", unless=""):
    """Lists the audio among some files, sorted, and tells what is passed over.

    Args:
        where: path of the folder or pattern that they are of, for messages.
        found: iterable of paths as `pathlib` has them.
        own: str, a suffix that is taken beside those of audio, in lower case.
        unless: str, what would take archives, as `warn_of_archives` has it.
    """
    taken, left = [], []
    suffixes = {*AUDIO_SUFFIXES, own} - {""}
    for file in found:
        (taken if file.suffix.lower() in suffixes else left).append(file)
    warn_of_archives(where, left, unless)
    tell_of_others(where, count_others(left))
    return sorted(taken)


def is_rest(path):
    """Returns whether a path within a folder leads to what systems add to it.

    Args:
        path: `pathlib.PurePath` of a file.
    """
    *folders, name = path.parts
    return name.startswith(BESIDE_OF_MACOS) or any(map(is_rest_folder, folders))


def is_rest_folder(name):
    """Returns whether a folder of that name is of a system, and no class."""
    return name == OF_MACOS or BINS.fullmatch(name) is not None


def files_below(folder, above=()):
    """Lists the files in a folder and in all below it, links among these.

    `pathlib.Path.rglob` follows no link to a folder: a class that lies on
    another disk would be missing, without a word. A link that leads nowhere
    has a warning, as where that disk is not mounted, unless it is called as
    audio is: then it is a file that is missing. What macOS adds to archives
    and beside files is passed over, and what was deleted on a disk; a pipe, a
    socket or a device, which could be waited for without end, has a warning.

    Args:
        folder: path of the folder.
        above: identities of the folders that it is in, as the file system
            tells them; a link to one of these leads nowhere new.

    Yields:
        `pathlib.Path`, in no order.
    """
    status = os.stat(folder)
    identity = status.st_dev, status.st_ino
    if identity in above:
        return
    try:
        entries = list(os.scandir(folder))
    except PermissionError:
        warnings.warn(
            f"{folder}: this folder may not be read, and is left out",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    for entry in entries:
        if leads_nowhere(entry):
            if pathlib.Path(entry.path).suffix.lower() in AUDIO_SUFFIXES:
                yield pathlib.Path(entry.path)
                continue
            warnings.warn(
                f"{entry.path}: this link leads nowhere, and is left out",
                RuntimeWarning,
                stacklevel=2,
            )
        elif entry.is_dir():
            if not is_rest_folder(entry.name):
                yield from files_below(entry.path, (*above, identity))
        elif not entry.is_file():
            warnings.warn(
                f"{entry.path}: this is no regular file, and is left out",
                RuntimeWarning,
                stacklevel=2,
            )
        elif not entry.name.startswith(BESIDE_OF_MACOS):
            yield pathlib.Path(entry.path)


def leads_nowhere(entry):
    """Returns whether an `os.DirEntry` is a link to nothing, or to itself."""
    return entry.is_symlink() and not os.path.exists(entry.path)


def count_others(found):
    """Counts audio of other suffixes than those that are looked for.

    Args:
        found: iterable of paths as `pathlib` has them.

    Returns:
        Dict of int by suffix, sorted.
    """
    others = collections.Counter(
        suffix
        for suffix in (file.suffix.lower() for file in found)
        if suffix in OTHER_SUFFIXES
    )
    return dict(sorted(others.items()))


def tell_of_others(where, others):
    """Gives a warning of files that are passed over, if there are any.

    Args:
        where: path of what they are in, for the message.
        others: dict of int by suffix, how many there are.
    """
    if others:
        counted = ", ".join(
            f"{count} {suffix}" for suffix, count in others.items()
        )
        warnings.warn(
            f"{where}: files of other suffixes than "
            f"{', '.join(sorted(AUDIO_SUFFIXES))} are passed over. "
            f"Received: {counted}",
            RuntimeWarning,
            stacklevel=3,
        )


def archive_suffix(path):
    """Returns what a path ends with if it is named as an archive, or `None`."""
    name = str(path).lower()
    return next(filter(name.endswith, ARCHIVE_SUFFIXES), None)


def is_archive(path):
    """Returns whether a path is named as an archive is."""
    return archive_suffix(path) is not None


def warn_of_archives(where, found, unless=""):
    """Gives a warning that counts archives that are passed over, if any are.

    Those beside a folder of their name are unpacked, and do not count.

    Args:
        where: path of the folder or pattern that passes them over.
        found: iterable of the paths of the files that it stands for.
        unless: str, what would take them, for the message.
    """
    count = sum(
        not os.path.isdir(str(file)[: -len(archive_suffix(file))])
        for file in found
        if is_archive(file)
    )
    if count:
        warnings.warn(
            f"{where}: archives are passed over{unless}. Received: {count}",
            RuntimeWarning,
            stacklevel=3,
        )


def is_folder(path):
    """Returns whether there is a folder, or audio packed as if in one."""
    return os.path.isdir(path) or packed.below(path) is not None


def is_given_folder(path):
    """Returns whether a path that somebody gives is of a folder, packed or not.

    A damaged archive is none, nor is what may not be looked at or has a longer
    name than there are: whoever reads what is in it says why.
    """
    if os.path.lexists(path):
        return os.path.isdir(path)
    try:
        return is_folder(path)
    except (packed.PackError, OSError):
        return False


def list_files(paths):
    """Replaces folders and patterns among some paths by the files they mean.

    A path is a pattern if it has `*`, `?` or `[` in it and nothing has that
    very name. `**` stands for any folders. Of the files that match, those of
    other suffixes than audio are passed over, unless the pattern ends with
    their suffix; warnings count those of audio in other formats, and archives.

    Args:
        paths: paths of files, which need not be there, of folders, which may
            be packed, see `packed`, and patterns.

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
    return [file for path in paths for file in files_of(path)]


def files_of(path, unless=""):
    """Lists the files that one path means, as `list_files` has it.

    Args:
        path: path of a file, a folder or a pattern.
        unless: str, what would take archives, as `warn_of_archives` has it.

    Raises:
        FileNotFoundError: if a folder or a pattern has no audio.
    """
    if is_given_folder(path):
        files = audio_among(path, all_below(path), unless=unless)
        none = "no audio in this folder"
    elif is_pattern(path):
        own = pathlib.PurePath(path).suffix.lower()
        files = audio_among(path, all_matching(path), own, unless)
        none = "no audio file matches"
    else:
        return [path]
    if not files:
        raise FileNotFoundError(f"{path}: {none}")
    return files


def is_pattern(path):
    """Returns whether a path is one of several files; see `list_files`."""
    return glob.has_magic(os.fspath(path)) and not os.path.lexists(path)


def all_matching(pattern):
    """Lists all files that match a pattern, or are below a folder that does.

    Args:
        pattern: path with `*`, `?` or `[` in it.

    Returns:
        Sorted list of `pathlib.Path`.
    """
    found = set()
    for match in map(
        pathlib.Path, glob.glob(os.fspath(pattern), recursive=True)
    ):
        if match.is_dir():
            found.update(all_below(match))
        else:
            found.add(match)
    return sorted(found)
