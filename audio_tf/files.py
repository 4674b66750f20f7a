"""Files and folders that are written whole or not at all."""

import contextlib
import errno
import json
import os
import pathlib
import re
import secrets
import shutil

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextlib.contextmanager
def whole_file(path, shared=False):
    """Yields the path of a new file that takes the place of `path` at the end.

    If the block raises, for example because the disk is full, `path` stays
    what it was and the new file is removed. A stream, such as `/dev/stdout`,
    is written as it is: root would put a file in the place of the device.

    Args:
        path: the file.
        shared: bool, whether another process may write `path` at the same
            time. The new file has a name of its own then, and is left behind
            by a process that is killed.

    Yields:
        Path in the same folder, with the suffix of `path` unless `shared`, so
        that what is left behind is no file of its kind; the block writes it.
    """
    path = pathlib.Path(path)
    if is_stream(path):
        yield path
        return
    own = f".{secrets.token_hex(8)}" if shared else ""
    new = path.with_name(f".{path.name}{own}")
    try:
        yield new
        os.replace(new, path)
    except BaseException as error:
        new.unlink(missing_ok=True)
        tell_which_disk(error, path)
        raise


def tell_which_disk(error, path):
    """Names what was written in the error of a full disk that names nothing.

    Args:
        error: exception, which is changed.
        path: the file or folder.
    """
    if not isinstance(error, OSError) or error.filename is not None:
        return
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        error.filename = os.fspath(path)


def is_stream(path):
    """Returns whether a path is that of a device, a pipe or an open file.

    Args:
        path: `pathlib.Path`. An open file has names such as `/dev/stdout` and
            `/dev/fd/63`, which lead into `/proc`.
    """
    while path.is_symlink() and path.exists():
        if path.parent.resolve().is_relative_to("/proc"):
            return True
        path = path.parent / os.readlink(path)
    return path.exists() and not (path.is_file() or path.is_dir())


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
        remove_folder(rest)
    new.mkdir(parents=True)
    try:
        yield new
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)
        tell_which_disk(error, path)
        raise
    # A folder cannot replace another one at once.
    if path.exists():
        path.rename(old)
    new.rename(path)
    remove_folder(old)


def check_folder(name, folder):
    """Checks that files can be written into a folder, which may be new.

    Args:
        name: str, what names the folder, such as a flag.
        folder: its path; a config may have anything. A link to nothing cannot
            be made a folder.

    Raises:
        ValueError: if nothing can be written there, or the name is empty: a
            variable of the shell that is not set would be the working folder;
            or it begins with `~`, which a shell leaves as it is in
            `--out=~/runs`: a folder of that name would be made.
    """
    path = None
    if isinstance(folder, (str, os.PathLike)) and os.fspath(folder):
        home = os.path.expanduser(folder)
        if home != os.fspath(folder):
            raise ValueError(
                f"{name} must be a folder by its whole path, {home}: the shell "
                f"has not replaced the `~`. Received: {os.fspath(folder)}"
            )
        path = pathlib.Path(os.path.abspath(folder))
        while not os.path.lexists(path) and path != path.parent:
            path = path.parent
    if path is None or not (path.is_dir() and os.access(path, os.W_OK)):
        raise ValueError(
            f"{name} must be a folder that can be written to. "
            f"Received: {folder or 'an empty name'}"
        )


def remove_folder(path):
    """Removes a folder, or a link to one, whatever stands against it.

    Args:
        path: `pathlib.Path`, which need not be there.
    """
    if path.is_symlink():
        path.unlink()
        return
    shutil.rmtree(path, ignore_errors=True)


def take_lock(file):
    """Locks an open file until it is closed, or its process ends.

    Args:
        file: the file, open for writing.

    Returns:
        Whether no other process holds it; True where files have no locks, as
        of some that are mounted over a network.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


@contextlib.contextmanager
def only_one(path, doing):
    """Holds a lock while the block runs, which ends with the process.

    Where the system or its files have no locks, the block runs without.

    Args:
        path: the file of the lock, which is removed at the end.
        doing: str, what another process is doing that holds it.

    Raises:
        BlockingIOError: if another process holds it.
    """
    if fcntl is None:
        yield
        return
    path = pathlib.Path(path)
    with contextlib.ExitStack() as stack:
        is_there = False
        while not is_there:
            file = stack.enter_context(open(path, "w"))
            if not take_lock(file):
                raise BlockingIOError(
                    f"{path.parent}: another process is {doing}"
                )
            # Who held it may have removed the file since it was opened: a
            # third process would lock a new one.
            with contextlib.suppress(FileNotFoundError):
                is_there = os.path.samestat(
                    os.fstat(file.fileno()), os.stat(path)
                )
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def scratch(path):
    """Yields an empty folder beside `path`, to make in it what goes there.

    It is removed at the end, and so is the folder of `path` if it is new and
    has nothing else. What a process that was killed has left of it is removed
    by the next one that writes the same path.

    Args:
        path: the file or folder that is to be made.

    Yields:
        Path of a folder with a hidden name.

    Raises:
        BlockingIOError: if another process is writing the same path.
    """
    path = pathlib.Path(path)
    new = path.with_name(f".{path.name}.new")
    lock = path.with_name(f".{path.name}.lock")
    is_new = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with only_one(lock, f"writing {path.name}"):
            shutil.rmtree(new, ignore_errors=True)
            try:
                new.mkdir()
                yield new
            finally:
                shutil.rmtree(new, ignore_errors=True)
    finally:
        if is_new:
            with contextlib.suppress(OSError):
                path.parent.rmdir()


def write_text(path, text):
    """Writes a text file, whole or not at all."""
    with whole_file(path) as new:
        new.write_text(text, encoding="utf-8")


def write_json(path, content):
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(content, indent=2))


# Bytes of a unit, as disks are sold and as memory is counted.
UNITS = {
    "": 1,
    **{f"{letter}B": 10 ** (3 * n) for n, letter in enumerate("kMGTP", 1)},
    **{f"{letter}iB": 2 ** (10 * n) for n, letter in enumerate("KMGTP", 1)},
}


def parse_size(text):
    """Returns the bytes of a text such as `20GB` or `1.5 TiB`.

    Raises:
        ValueError: if it is no such text.
    """
    units = {name.lower(): size for name, size in UNITS.items()}
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(\w*)", text.strip())
    if not found or found[2].lower() not in units:
        raise ValueError(
            "A size must be a number and a unit, one of "
            f"{', '.join(filter(None, UNITS))}, or of bytes. Received: {text}"
        )
    return int(float(found[1]) * units[found[2].lower()])
