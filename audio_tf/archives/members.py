"""Audio in tar and zip archives, read in place and never unpacked to disk.

What is wrong with a member is found out when members are listed, and leaves
the others alone.
"""

import bz2
import collections
import contextlib
import gzip
import lzma
import pathlib
import tarfile
import typing
import zipfile
import zlib

from audio_tf.archives import places
from audio_tf.audio.audio_files import (
    AUDIO_SUFFIXES,
    BESIDE_OF_MACOS,
    OF_MACOS,
    archive_suffix,
    count_others,
    is_archive,
)
from audio_tf.audio.split_zip import decode_name

# How the content of a file is unpacked, by the bytes that it begins with.
PACKERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}

# The flag of a member of a zip whose name is in UTF-8.
UTF_8 = 0x800

# What the libraries raise for archives that are damaged.
DAMAGED = (
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


class Member(typing.NamedTuple):
    """A file within an archive.

    Attributes:
        name: str, its path in the archive.
        place: int, where its content begins in a tar that is unpacked; 0 in a
            zip, which knows its members by name.
        size: int, its bytes.
        fault: str, why it cannot be scored, or `None`.
    """

    name: str
    place: int
    size: int
    fault: str | None


class Listed(typing.NamedTuple):
    """The audio in an archive, and what is not scored.

    Attributes:
        members: list of `Member`, in their order in the archive.
        fault: str, why there may be more, as the archive is cut off, damaged
            or without any; `None` if all is well.
        others: dict of int by suffix, how many members are passed over that
            are audio of other formats, or archives.
    """

    members: list
    fault: str | None
    others: dict


def is_packed(path):
    """Returns whether an archive can be read from its beginning alone."""
    return not str(path).lower().endswith((".zip", ".tar"))


def list_members(path):
    """Lists the audio in an archive.

    Args:
        path: str.

    Returns:
        `Listed`.
    """
    members, fault = [], None
    try:
        with places.opened(path) as file:
            listed = zip_members if is_zip(path) else tar_members
            for member in listed(file):
                members.append(member)
    except FileNotFoundError:
        fault = "no such file"
    except DAMAGED as error:
        fault = f"cut off or damaged ({places.first_line(error)})"
        if members:
            fault = f"{fault}, after {members[-1].name}"
    kept = [
        each
        for each in members
        if each.fault is not None or is_audio(each.name)
    ]
    if fault is None and not kept:
        fault = f"no audio among its {len(members)} members"
    return Listed(refuse_twins(kept), fault, others_among(members))


def is_zip(path):
    """Returns whether a path is named as a zip is."""
    return str(path).lower().endswith(".zip")


def is_audio(name):
    """Returns whether a member is named as audio is, of what is looked for."""
    suffix = pathlib.PurePosixPath(name).suffix.lower()
    return suffix in AUDIO_SUFFIXES and not is_of_macos(name)


def is_of_macos(name):
    """Returns whether a member is one of attributes that macOS has added.

    It leaves one beside each file that it packs: in a zip in a folder of
    their own, in a tar under its name behind `._`.
    """
    path = pathlib.PurePosixPath(name)
    beside = path.name.startswith(BESIDE_OF_MACOS)
    return OF_MACOS in path.parts[:1] or beside


def others_among(members):
    """Counts members that somebody may take for scored; see `Listed`."""
    names = [
        each.name
        for each in members
        if each.fault is None and not is_of_macos(each.name)
    ]
    within = [archive_suffix(name) for name in names if is_archive(name)]
    counted = count_others(map(pathlib.PurePosixPath, names))
    return {**counted, **collections.Counter(sorted(within))}


def refuse_twins(members):
    """Gives all members that share a name a fault, once."""
    found = {}
    for each in members:
        if each.name in found:
            each = each._replace(fault="in the archive more than once")
        found[each.name] = each
    return list(found.values())


def unsafe(name):
    """Returns why a member's name is none for a file in a folder, or `None`."""
    path = pathlib.PurePosixPath(name.replace("\\", "/"))
    outside = path.is_absolute() or ".." in path.parts or name[1:3] == ":\\"
    return "its name leads out of the archive" if outside else None


def zip_members(file):
    """Yields the members of a zip."""
    with zipfile.ZipFile(file) as archive:
        for each in archive.infolist():
            fault = unsafe(each.orig_filename)
            if fault is None and each.is_dir():
                continue
            if fault is None and each.flag_bits & 1:
                fault = "it is encrypted"
            yield Member(zip_name(each), 0, each.file_size, fault)


def zip_name(entry):
    """Returns the name of a member of a zip, a `zipfile.ZipInfo`.

    `zipfile` takes a name without the flag of UTF-8 for code page 437, and
    macOS writes UTF-8 without the flag.
    """
    if entry.flag_bits & UTF_8:
        return entry.filename
    try:
        return decode_name(entry.filename.encode("cp437"))
    except UnicodeEncodeError:
        # Newer Pythons read it from a field beside.
        return entry.filename


def tar_members(file):
    """Yields the members of a tar, packed or not."""
    with unpacked(file) as (stream, _):
        end = None
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            while (each := archive.next()) is not None:
                # It remembers all that it has seen.
                archive.members = []
                end = archive.offset
                fault = unsafe(each.name)
                if fault is None and each.isdir():
                    continue
                if fault is None and (not each.isreg() or each.issparse()):
                    fault = "a link or a device, not a file"
                yield Member(each.name, each.offset_data, each.size, fault)
        # Its reader takes an end without a word, wherever it is.
        stream.seek(end or 0)
        mark = stream.read(tarfile.BLOCKSIZE)
        if mark != b"\0" * tarfile.BLOCKSIZE:
            raise EOFError("it has no end")


@contextlib.contextmanager
def unpacked(file):
    """Yields the content of a tar that may be packed.

    Args:
        file: the open archive.

    Yields:
        Pair of a file that can be read and sought, and whether it is packed.
    """
    head = file.read(6)
    file.seek(0)
    for begin, opener in PACKERS.items():
        if head.startswith(begin):
            with opener(file, "rb") as stream:
                yield stream, True
            return
    yield file, False


class Reader:
    """An open archive, from which members are read in their order.

    Args:
        path: str.

    Attributes:
        slow_to_open: bool, whether to open it again takes longer the more it
            holds: a packed tar has to be unpacked from its beginning up to a
            member, of a zip all names are read.
    """

    def __init__(self, path):
        self.path, self.version = path, places.version_of(path)
        self.stack = contextlib.ExitStack()
        file = self.stack.enter_context(places.opened(path))
        self.zip, self.stream, self.slow_to_open = None, None, True
        self.entries = {}
        if is_zip(path):
            self.zip = self.stack.enter_context(zipfile.ZipFile(file))
            self.entries = {zip_name(each): each for each in self.zip.filelist}
        else:
            self.stream, self.slow_to_open = self.stack.enter_context(
                unpacked(file)
            )

    def fetch(self, name, place, size):
        """Reads a member.

        Args:
            name, place, size: as a `Member` has them.

        Returns:
            `places.Fetched`.

        Raises:
            ValueError: if it cannot be read; the message says why.
        """
        try:
            if self.zip is None:
                self.stream.seek(place)
                return places.Fetched(self.stream, size)
            if name not in self.entries:
                raise ValueError("no longer in the archive")
            with self.zip.open(self.entries[name]) as stream:
                fetched = places.Fetched(stream, size)
                # The checksum is compared at the end.
                if stream.read(1):
                    raise ValueError("longer than the archive says")
                return fetched
        except DAMAGED as error:
            reason = places.first_line(error)
            raise ValueError(
                f"cut off or damaged in its archive ({reason})"
            ) from error

    def close(self):
        """Closes the archive."""
        self.stack.close()


# The archive that was read last, by what tells it from others.
LEFT_OPEN = {}


def take(path):
    """Returns a `Reader` of an archive, which may be one that was left open.

    Args:
        path: str.
    """
    # Taken out as long as it is in use: another thread opens its own.
    return LEFT_OPEN.pop((path, places.version_of(path)), None) or Reader(path)


def leave(reader):
    """Leaves what is slow to open for who reads on in it, and closes others.

    A worker reads shard after shard of an archive.

    Args:
        reader: `Reader`, all of whose members so far could be read.
    """
    version = places.version_of(reader.path)
    if not reader.slow_to_open or version != reader.version or None in version:
        reader.close()
        return
    for key in list(LEFT_OPEN):
        if other := LEFT_OPEN.pop(key, None):
            other.close()
    LEFT_OPEN[reader.path, version] = reader
