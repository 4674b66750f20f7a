"""Files on this machine and behind `gs://`, `s3://` and the like.

All that is not on this machine goes through the filesystems of Apache Beam,
which know their services and credentials.
"""

import contextlib
import os
import pathlib
import secrets
import tempfile

from audio_tf import files, pipelines
from audio_tf.terminal import first_line

# Stores in which an object is there when it is whole, and not before.
WHOLE_OBJECTS = ("gs", "s3", "azfs")

# What is held in memory of one file; larger ones go to a temporary file.
IN_MEMORY = 2**26
# A clip cannot be larger; the sizes in archives may lie.
MAX_BYTES = 2**35


def need_beam(names=("apache_beam", "pyarrow")):
    """Raises an `ImportError` of one line unless Beam and pyarrow are there."""
    pipelines.need(names)


def is_remote(path):
    """Returns whether a path is not one of this machine: `gs://b/a.wav`."""
    return "://" in os.fspath(path)


def anywhere(path):
    """Returns a path or a pattern as it is from whatever folder."""
    return path if is_remote(path) else os.path.abspath(path)


@contextlib.contextmanager
def filesystems(path):
    """Yields Beam's `FileSystems`; its errors become an `OSError` of one line.

    Args:
        path: str, what is worked on, for messages.

    Raises:
        OSError: if Beam has no such filesystem, or that refuses.
    """
    need_beam(["apache_beam"])
    from apache_beam.io.filesystem import BeamIOError
    from apache_beam.io.filesystems import FileSystems

    try:
        yield FileSystems
    except BeamIOError as error:
        details = error.exception_details or {}
        reasons = [str(each) for each in details.values()] or [str(error)]
        raise OSError(f"{path}: {first_line(reasons[0])}") from error
    except FileNotFoundError:
        raise
    except Exception as error:
        # Clients of clouds raise classes of their own.
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise OSError(f"{path}: {reason}") from error


@contextlib.contextmanager
def opened(path):
    """Opens a file for reading bytes, from any place in it.

    Args:
        path: str.

    Raises:
        OSError: if it cannot be opened.
    """
    if not is_remote(path):
        with open(path, "rb") as file:
            yield file
        return
    with filesystems(path) as beam:
        file = beam.open(path, compression_type="uncompressed")
    with file:
        yield file


def match(pattern):
    """Lists what a pattern stands for where it is no path of this machine.

    Args:
        pattern: str, the path of a file, of a folder, or a pattern; `**`
            stands for any folders.

    Returns:
        List of triples of path, bytes and version, see `version_of`, sorted.

    Raises:
        OSError: if the filesystem refuses, or is not known.
    """
    magic = any(letter in pattern for letter in "*?[")
    patterns = [pattern] if magic else [pattern, f"{pattern.rstrip('/')}/**"]
    with filesystems(pattern) as beam:
        for each in patterns:
            found = beam.match([each])[0].metadata_list
            if found:
                break
    return sorted(
        (each.path, each.size_in_bytes, f"{each.last_updated_in_seconds:.3f}")
        for each in found
    )


def version_of(path):
    """Returns bytes and version of a file on this machine.

    Returns:
        Pair of int and of a str that changes when the file does; `None` for
        both if there is no such file.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None, None
    return found.st_size, f"{found.st_mtime_ns / 1e9:.3f}"


def join(folder, *names):
    """Returns the path of something in a folder."""
    if is_remote(folder):
        return "/".join([os.fspath(folder).rstrip("/"), *names])
    return os.path.join(folder, *names)


def names_in(folder):
    """Lists the names of the files in a folder, which need not be there."""
    if not is_remote(folder):
        with contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(folder))
        return []
    with filesystems(folder) as beam:
        found = beam.match([join(folder, "*")])[0].metadata_list
    return sorted(each.path.rpartition("/")[2] for each in found)


def exists(path):
    """Returns whether there is a file.

    Raises:
        OSError: if the filesystem refuses, or is not known.
    """
    if not is_remote(path):
        return os.path.exists(path)
    with filesystems(path) as beam:
        return beam.exists(path)


def read(path):
    """Returns the bytes of a file.

    Raises:
        FileNotFoundError: if there is none.
        OSError: if it cannot be read.
    """
    if is_remote(path) and not exists(path):
        raise FileNotFoundError(f"{path}: no such file")
    with opened(path) as file:
        return file.read()


def write(path, content):
    """Writes a file, whole or not at all, whoever else writes it.

    Args:
        path: str.
        content: bytes.
    """
    if not is_remote(path):
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        with files.whole_file(path, shared=True) as new:
            with open(new, "wb") as file:
                file.write(content)
                file.flush()
                # Or a power cut may leave the name, and nothing in it.
                os.fsync(file.fileno())
        return
    new = path
    if path.partition("://")[0] not in WHOLE_OBJECTS:
        folder, _, name = path.rpartition("/")
        new = f"{folder}/.{name}.{secrets.token_hex(8)}"
    with filesystems(path) as beam:
        with beam.create(new, compression_type="uncompressed") as file:
            file.write(content)
        if new != path:
            beam.rename([new], [path])


def remove(paths):
    """Removes files, those that are there."""
    for path in paths:
        if is_remote(path):
            with filesystems(path) as beam:
                if beam.exists(path):
                    beam.delete([path])
        else:
            pathlib.Path(path).unlink(missing_ok=True)


class Fetched:
    """The content of one clip, in memory or in a temporary file.

    Args:
        stream: a file that is open for reading bytes.
        size: int, the bytes to be read from it, or `None` for all.

    Attributes:
        content: bytes, or `None` if they are in `path`.
        path: str, the temporary file, or `None`.

    Raises:
        EOFError: if the stream ends before.
        ValueError: if there are more than `MAX_BYTES`.
    """

    def __init__(self, stream, size=None):
        self.path = None
        limit = MAX_BYTES if size is None else size
        if limit > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES} bytes")
        try:
            self.content = stream.read(min(limit, IN_MEMORY))
            there = len(self.content)
            if there == IN_MEMORY and there < limit:
                there = self.spill(stream, limit)
            if size is not None and there < size:
                raise EOFError(f"cut off after {there} of {size} bytes")
        except BaseException:
            # Or as many temporary files stay as are damaged, of gigabytes.
            self.close()
            raise

    def spill(self, stream, limit):
        """Moves the content to a temporary file, and reads on into it."""
        with tempfile.NamedTemporaryFile(delete=False) as file:
            self.path = file.name
            file.write(self.content)
            there = len(self.content)
            while there < limit:
                piece = stream.read(min(2**22, limit - there))
                if not piece:
                    break
                file.write(piece)
                there += len(piece)
        self.content = None
        return there

    def close(self):
        """Removes the temporary file."""
        if self.path is not None:
            pathlib.Path(self.path).unlink(missing_ok=True)
