"""Faults of files that libsndfile passes over, by what is in their headers."""

import functools
import io
import math
import os
import re
import struct
import zlib

from audio_tf.audio import mpeg

# Writers that cannot seek back leave one of these as the size of WAV data.
STREAMING_SIZES = {
    0,
    0x7FFFFFFF,
    0x7FFFF000,
    0x80000000,
    0xFFFFFFFF,
    0xFFFFF000,
}

# The chunks that may have the samples, and the order of bytes in the sizes of
# chunks, by the first bytes of a WAV, AIFF or SVX file.
CONTAINERS = {
    b"RIFF": ((b"data",), "little"),
    b"RF64": ((b"data",), "little"),
    b"RIFX": ((b"data",), "big"),
    b"FORM": ((b"SSND", b"BODY"), "big"),
}

# Where RF64, a WAV of more than 4 GiB, has the chunk of its true sizes.
WIDE_SIZES = 12

# A file has two to ten chunks; millions of empty ones would take minutes.
MAX_CHUNKS = 256

# How a FLAC begins: its name, then the 34 bytes that describe it, which may be
# the last that do.
FLAC = re.compile(rb"fLaC[\0\x80]\0\0\x22")

# How files begin whose ID3 tags, if any, libsndfile is not to see: of a WAV or
# an AIFF it would take the end away, and an Ogg it would refuse.
TAGLESS = (*CONTAINERS, b"OggS", b"fLaC")

JOINED = (
    "several recordings joined as one {}, of which the first alone would be "
    "read"
)

# Each byte with its bits turned around.
TURNED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class ContainerError(ValueError):
    """A file that says less than it holds; the message says how."""


def inspect(file):
    """Looks for faults that libsndfile passes over in some kinds of files.

    It reads as much of a cut WAV, AIFF, SVX, Ogg, AU, Wave64, VOC, CAF or NIST
    SPHERE, which TIMIT's files called `.WAV` are, as is there, the beginning of
    one so long that its sizes have begun again at 0, the first of several
    recordings that were joined as one Ogg or FLAC, an Ogg without its pages
    that are damaged, nothing of a WAV whose writer left the size of the data at
    0, of a WAV or AIFF behind ID3 tags as much less as these are long, and of
    an MP3 what `mpeg` tells. A cut IRCAM, PVF or PAF is taken for complete:
    these say nowhere how long they are.

    Args:
        file: the file, open for reading bytes.

    Returns:
        Pair of a bool, whether the file is complete, and the content to read
        in its place, an `io.BytesIO`, or `None` for the file itself.

    Raises:
        ContainerError: if it is longer than its header can say, an Ogg or a
            FLAC of several recordings, or an Ogg with a damaged page.
    """
    rest = behind_tags(file)
    if rest is not None:
        complete, mended = inspect(rest)
        rest.seek(0)
        return complete, mended or rest
    file.seek(0)
    magic = file.read(4)
    if magic == b"OggS":
        if ogg_begins_again(file):
            raise ContainerError(
                f"{JOINED.format('Ogg')}; make them one, as `ffmpeg -i` does"
            )
        damaged = ogg_damage(file)
        if damaged is not None:
            raise ContainerError(f"damaged: its Ogg page at byte {damaged}")
        return ogg_has_its_end(file), None
    if magic == b"fLaC" and flac_begins_again(file):
        raise ContainerError(JOINED.format("FLAC"))
    if mpeg.begins(magic):
        content = mpeg.mend(file)
        return True, content and io.BytesIO(content)
    if magic in ENDS:
        file.seek(0)
        end = ENDS[magic](file.read(HEAD_BYTES))
        return end is None or end <= file.seek(0, os.SEEK_END), None
    if magic not in CONTAINERS:
        return True, None
    samples = find_samples(file, *CONTAINERS[magic])
    if samples is None:
        return True, None
    start, promised, there = samples
    wide = find_wide_size(file) if magic == b"RF64" else None
    if wide is not None:
        return wide <= there, None
    is_zero = promised == 0 and CONTAINERS[magic] == CONTAINERS[b"RIFF"]
    if there >= 2**32 and (is_zero or promised not in STREAMING_SIZES):
        raise ContainerError("longer than the header of its format can say")
    if is_zero and there > 0 and not is_chunks(file, start):
        file.seek(0)
        content = bytearray(file.read())
        content[start - 4 : start] = b"\xff" * 4
        return True, io.BytesIO(content)
    return promised <= there or promised in STREAMING_SIZES, None


def end_of_au(head, order="big"):
    """Returns where the samples of an AU file end, `None` if it was streamed.

    Args:
        head: bytes, the first of the file.
        order: str, the order of bytes in its numbers.
    """
    start, size = (
        int.from_bytes(head[place : place + 4], order) for place in (4, 8)
    )
    return None if size == 0xFFFFFFFF else start + size


def end_of_wave64(head):
    """Returns where a Wave64 file ends, `None` if it was streamed."""
    size = int.from_bytes(head[16:24], "little")
    return None if size >= 2**62 else size


def end_of_nist(head):
    """Returns where the samples of a NIST SPHERE file end, `None` if unsaid."""
    start = head[8:16].strip()
    if not start.isdigit():
        return None
    head = head[: int(start)]
    # Of A-law and mu-law libsndfile writes the bytes of a sample as text.
    fields = re.findall(rb"^(\w+) -(?:i|s\d+) (\d+)\s*$", head, re.MULTILINE)
    fields = dict(fields)
    counts = [
        fields.get(name)
        for name in (b"sample_count", b"sample_n_bytes", b"channel_count")
    ]
    if None in counts:
        return None
    return int(start) + math.prod(map(int, counts))


def end_of_caf(head):
    """Returns where the samples of a CAF file end, `None` if unsaid."""
    place = 8
    while place + 12 <= len(head):
        name, size = struct.unpack_from(">4sq", head, place)
        place += 12 + size
        if size < 0:
            return None
        if name == b"data":
            return place
    return None


def end_of_voc(head):
    """Returns where the last block of a VOC file ends that begins in `head`."""
    place = int.from_bytes(head[20:22], "little")
    while place + 4 <= len(head) and head[place] != 0:
        place += 4 + int.from_bytes(head[place + 1 : place + 4], "little")
    return place


# Functions of the first bytes of a file to the byte that its samples end at,
# by the first four. CAF has 4 KiB free before its samples.
HEAD_BYTES = 2**14
ENDS = {
    b".snd": end_of_au,
    b"dns.": functools.partial(end_of_au, order="little"),
    b"riff": end_of_wave64,
    b"NIST": end_of_nist,
    b"caff": end_of_caf,
    b"Crea": end_of_voc,
}


def behind_tags(file):
    """Returns what a file has behind ID3 tags, unless that is an MP3.

    Args:
        file: the file, open for reading bytes.

    Returns:
        `io.BytesIO`, or `None` of an MP3, and if there are no tags.
    """
    start = mpeg.skip_tags(file)
    file.seek(start)
    magic = file.read(4)
    if not start or magic not in TAGLESS:
        return None
    return io.BytesIO(magic + file.read())


def ogg_begins_again(file):
    """Returns whether an open Ogg file has a stream behind the end of another.

    Of streams side by side, as of sound and pictures, the first pages of all
    come before any other page (RFC 3533, section 4).
    """
    place, begun = 0, False
    while True:
        file.seek(place)
        page = file.read(27)
        if len(page) < 27 or not page.startswith(b"OggS"):
            return False
        is_first = bool(page[5] & 2)
        if is_first and begun:
            return True
        begun = begun or not is_first
        place += 27 + page[26] + sum(file.read(page[26]))


def flac_begins_again(file):
    """Returns whether an open FLAC has the beginning of another within it."""
    file.seek(4)
    before = b""
    while block := file.read(2**20):
        if FLAC.search(before + block):
            return True
        before = block[-7:]
    return False


def ogg_damage(file):
    """Returns the byte at which an open Ogg file has a damaged page, or `None`.

    libogg leaves out a page whose checksum is not that of its content. Where
    that is the first one with sound, the count of samples does not tell: it is
    reckoned from the first page that is left.
    """
    place, (last, _) = 0, ogg_last_page(file)
    while place <= last:
        file.seek(place)
        head = file.read(27)
        sizes = file.read(head[26]) if len(head) == 27 else b""
        page = head + sizes + file.read(sum(sizes))
        if place == last and not is_whole(page):
            return None  # It is cut off.
        if page[:4] != b"OggS" or page[22:26] != ogg_checksum(page):
            return place
        place += len(page)
    return None


def ogg_checksum(page):
    """Returns the checksum of an Ogg page, 4 bytes as they stand in it.

    It is the CRC-32 of `zlib` with the bits of each byte turned around, begun
    at 0 and not inverted, over the page with a checksum of 0 (RFC 3533).
    """
    content = (page[:22] + bytes(4) + page[26:]).translate(TURNED)
    checksum = zlib.crc32(content, 0xFFFFFFFF) ^ 0xFFFFFFFF
    return checksum.to_bytes(4, "big").translate(TURNED)


def ogg_last_page(file):
    """Returns where an Ogg file's last page begins, and what is from there.

    Args:
        file: the file, open for reading bytes.

    Returns:
        Pair of an int and bytes; -1 and none if no page is near the end.
    """
    start = max(0, file.seek(0, os.SEEK_END) - 2**17)
    file.seek(start)  # A page has at most 64 KiB.
    tail = file.read()
    place = tail.rfind(b"OggS")
    return (start + place, tail[place:]) if place >= 0 else (-1, b"")


def ogg_has_its_end(file):
    """Returns whether an open Ogg file ends with a page marked as the last."""
    _, page = ogg_last_page(file)
    return is_whole(page) and bool(page[5] & 4)


def is_whole(page):
    """Returns whether bytes that begin with an Ogg page have all of it."""
    if len(page) < 27:
        return False
    sizes = page[27 : 27 + page[26]]
    return len(sizes) == page[26] and len(page) >= 27 + len(sizes) + sum(sizes)


def chunks_from(file, place, order="little"):
    """Yields name, start and size of `MAX_CHUNKS` chunks from `place`.

    Args:
        file: the file, open for reading bytes.
        place: int, the byte that the first chunk begins at.
        order: str, the order of bytes in a size, `"little"` or `"big"`.
    """
    for _ in range(MAX_CHUNKS):
        file.seek(place)
        head = file.read(8)
        if len(head) < 8 or not any(head):
            return
        size = int.from_bytes(head[4:], order)
        yield head[:4], place + 8, size
        place += 8 + size + size % 2


def find_samples(file, wanted, order):
    """Finds the samples of an open WAV, AIFF or SVX file.

    Args:
        file: the file, open for reading bytes.
        wanted: tuple of bytes, the names of the chunks that may have them.
        order: str, the order of bytes in the sizes of chunks.

    Returns:
        Triple of int: the byte that the chunk's content starts at, the bytes
        that its header promises, and the bytes that are there; `None` if
        there is no such chunk.
    """
    end = file.seek(0, os.SEEK_END)
    for name, start, size in chunks_from(file, 12, order):
        if name in wanted:
            return start, size, end - start
    return None


def find_wide_size(file):
    """Returns the bytes of data that an open RF64 file promises, or `None`."""
    file.seek(WIDE_SIZES)
    chunk = file.read(24)
    is_wide = chunk[:4] == b"ds64" and len(chunk) == 24
    return int.from_bytes(chunk[16:], "little") if is_wide else None


def is_chunks(file, place):
    """Returns whether an open file has RIFF chunks from `place` to its end."""
    end = file.seek(0, os.SEEK_END)
    stops = [
        start + size
        for name, start, size in chunks_from(file, place)
        if name.isascii()
    ]
    return bool(stops) and end - 1 <= stops[-1] <= end
