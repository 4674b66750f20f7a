"""ZIP archives read in place, in one file or cut into parts.

Python's `zipfile` reads no archive of several parts, which FSD50K is released
as: `name.z01`, `name.z02` and so on, and `name.zip` as the last. An entry of
such an archive names the part that it begins in (APPNOTE.TXT of PKWARE,
sections 4.3 and 4.4).
"""

import functools
import os
import pathlib
import struct
import typing
import zlib

END = struct.Struct("<4sHHHHIIH")
END_64_PLACE = struct.Struct("<4sIQI")
END_64 = struct.Struct("<4sQHHIIQQQQ")
ENTRY = struct.Struct("<4s6H3I5H2I")
LOCAL = struct.Struct("<4s5H3I2H")
FULL_16, FULL_32 = 0xFFFF, 0xFFFFFFFF

STORED, DEFLATED = 0, 8
ENCRYPTED = 1  # A bit of an entry's flags.


class ZipError(ValueError):
    """An archive that cannot be read; the message names part and reason."""


class Member(typing.NamedTuple):
    """One file within an archive.

    Attributes:
        name: str, its path in the archive, with `/` between folders.
        part: int, the part that it begins in, from 0.
        offset: int, the byte of that part where its header is.
        packed: int, its bytes in the archive.
        size: int, its bytes once it is unpacked.
        checksum: int, CRC-32 of these.
        method: int, `STORED` or `DEFLATED`.
        flags: int, the flags of its entry.
    """

    name: str
    part: int
    offset: int
    packed: int
    size: int
    checksum: int
    method: int
    flags: int


class SplitZip:
    """An archive: its members by name, each unpacked when it is asked for.

    Several threads may read at once.

    Args:
        path: the last part, `name.zip`; the others must be beside it.

    Raises:
        FileNotFoundError: if a part is missing; it names the part.
        ZipError: if a part is cut off, or the list of members is damaged.

    Attributes:
        members: dict of `Member` by name; folders are left out.
        parts: list of `pathlib.Path`.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.parts = [self.path]
        count, part, offset, entries, size = self.find_end()
        self.parts = [
            self.path.with_suffix(f".z{number:02d}")
            for number in range(1, count)
        ] + [self.path]
        missing = [each for each in self.parts if not each.is_file()]
        if missing:
            raise FileNotFoundError(
                f"{missing[0]}: this part of {self.path.name} is missing. "
                f"Received: {count - len(missing)} of {count} parts"
            )
        self.sizes = [each.stat().st_size for each in self.parts]
        # All but the last are of one size.
        for each, there in zip(self.parts[:-1], self.sizes, strict=False):
            if there < max(self.sizes[:-1]):
                raise ZipError(
                    f"{each}: this part is cut off. Received: {there} bytes "
                    f"of {max(self.sizes[:-1])}"
                )
        self.members = self.read_members(part, offset, entries, size)

    def find_end(self):
        """Reads the record at the end of the archive.

        Returns:
            Five int: how many parts there are; the part and the byte in it
            where the list of members begins; how many members are listed; and
            the bytes of the list.
        """
        size = self.path.stat().st_size
        with open(self.path, "rb") as file:
            file.seek(max(0, size - 2**16 - END.size - END_64_PLACE.size))
            tail = file.read()
            place = tail.rfind(b"PK\5\6")
            if place < 0 or len(tail) - place < END.size:
                raise ZipError(
                    f"{self.path}: cut off, or no ZIP archive: it has no list "
                    f"of members at its end. Received: {size} bytes"
                )
            _, last, part, _, entries, length, offset, _ = END.unpack_from(
                tail, place
            )
            place -= END_64_PLACE.size
            if place >= 0 and tail[place : place + 4] == b"PK\6\7":
                # The numbers above are too small for a large archive.
                _, _, offset_64, _ = END_64_PLACE.unpack_from(tail, place)
                file.seek(offset_64)
                head = file.read(END_64.size)
                if len(head) < END_64.size or head[:4] != b"PK\6\6":
                    raise ZipError(
                        f"{self.path}: the record of its members is damaged"
                    )
                *_, last, part, _, entries, length, offset = END_64.unpack(head)
        return last + 1, part, offset, entries, length

    def read_members(self, part, offset, entries, length):
        """Reads the list of members; see `find_end` for the arguments."""
        content = self.read_bytes(part, offset, length)
        members, place = {}, 0
        for _ in range(entries):
            if content[place : place + 4] != b"PK\1\2":
                raise ZipError(
                    f"{self.path}: the list of its {entries} members is "
                    f"damaged. Received: {len(members)} that can be read"
                )
            (
                *_,
                flags,
                method,
                _,
                _,
                checksum,
                packed,
                size,
                name_size,
                extra_size,
                comment_size,
                part,
                _,
                _,
                offset,
            ) = ENTRY.unpack_from(content, place)
            place += ENTRY.size
            name = content[place : place + name_size]
            extra = content[place + name_size :][:extra_size]
            place += name_size + extra_size + comment_size
            size, packed, offset, part = widen(
                extra, (size, packed, offset), part
            )
            name = decode_name(name)
            if name.endswith("/"):
                continue
            if name in members:
                raise ZipError(f"{self.path}: {name} is in it twice")
            members[name] = Member(
                name, part, offset, packed, size, checksum, method, flags
            )
        return members

    def read_bytes(self, part, offset, count):
        """Reads bytes that may go on in the next parts.

        Args:
            part: int, the part that they begin in.
            offset: int, the first byte in it.
            count: int, how many.

        Raises:
            ZipError: if the last part ends before them.
        """
        pieces, wanted = [], count
        while wanted > 0:
            if part >= len(self.parts):
                raise ZipError(
                    f"{self.parts[-1]}: ends too early. "
                    f"Received: {count - wanted} of {count} bytes"
                )
            with open(self.parts[part], "rb") as file:
                file.seek(offset)
                piece = file.read(wanted)
            pieces.append(piece)
            wanted -= len(piece)
            part, offset = part + 1, 0
        return b"".join(pieces)

    def read(self, name):
        """Unpacks a member.

        Args:
            name: str, its path in the archive.

        Returns:
            Bytes.

        Raises:
            ZipError: if it is damaged, encrypted or packed in a way that is
                not known; the message names the member and its part.
        """
        member = self.members[name]
        where = f"{self.parts[min(member.part, len(self.parts) - 1)]}: {name}"
        head = self.read_bytes(member.part, member.offset, LOCAL.size)
        if head[:4] != b"PK\3\4":
            raise ZipError(
                f"{where} does not begin where the list of members says; the "
                "part is cut off or damaged"
            )
        if member.flags & ENCRYPTED or member.method not in (STORED, DEFLATED):
            raise ZipError(
                f"{where} must be stored or deflated, and not encrypted. "
                f"Received: method {member.method}, flags {member.flags}"
            )
        *_, name_size, extra_size = LOCAL.unpack(head)
        packed = self.read_bytes(
            member.part,
            member.offset,
            LOCAL.size + name_size + extra_size + member.packed,
        )[LOCAL.size + name_size + extra_size :]
        try:
            content = packed
            if member.method == DEFLATED:
                content = zlib.decompress(packed, -15, member.size)
        except zlib.error as error:
            raise ZipError(f"{where} is damaged ({error})") from error
        if len(content) != member.size or zlib.crc32(content) != (
            member.checksum
        ):
            raise ZipError(f"{where} is damaged: its checksum does not fit")
        return content


def decode_name(name):
    """Returns the name of a member as text.

    It is UTF-8 where it can be, without the flag that says so, too: macOS
    writes none, and hardly a name in another encoding happens to be UTF-8.

    Args:
        name: bytes.
    """
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("cp437")


def widen(extra, sizes, part):
    """Replaces numbers that are too large for an entry of the list.

    Args:
        extra: bytes, the extra fields of the entry.
        sizes: triple of int: the size, the packed size and the offset.
        part: int, the part that the member begins in.

    Returns:
        The three, and the part.
    """
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        if kind == 1:
            values = extra[place + 4 : place + 4 + length]
            wide = []
            for each in sizes:
                if each == FULL_32:
                    each, values = (
                        struct.unpack("<Q", values[:8])[0],
                        values[8:],
                    )
                wide.append(each)
            if part == FULL_16:
                part = struct.unpack("<I", values[:4])[0]
            return *wide, part
        place += 4 + length
    return *sizes, part


def open_zip(path):
    """Returns the `SplitZip` of a path, opened once as long as it is the same.

    Raises:
        FileNotFoundError: if a part is missing.
        ZipError: if it cannot be read.
    """
    status = os.stat(path)
    return _open_zip(os.fspath(path), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _open_zip(path, size, modified_ns):
    return SplitZip(path)
