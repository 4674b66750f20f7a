"""MP3 files that do not say how long they are: their frames are counted.

An encoder may say in a first frame without sound, Xing's header, how many
frames follow. Decoders stop there. Where it is missing, libsndfile takes the
bit rate of the first frame for that of all: it stops too early, or a whole
file seems to be cut off. So what is missing, or ends before the file does
because files were joined, is put there. As of files that have the header, the
first 529 samples, which are the decoder's own delay, do not come out then.

Frames are those of ISO/IEC 11172-3 and 13818-3, layer III.
"""

import re

# kbit/s by the index of a frame, of MPEG-1 and of MPEG-2 and 2.5.
RATES_KBIT = {
    3: (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
RATES_KBIT[0] = RATES_KBIT[2]
# Hz by the index of a frame, by the two bits of the version.
RATES_HZ = {
    3: (44_100, 48_000, 32_000),
    2: (22_050, 24_000, 16_000),
    0: (11_025, 12_000, 8_000),
}
# Ahead: one that is none may hold the first byte of one that is.
HEADER = re.compile(
    rb"\xff(?=[\xe2\xe3\xf2\xf3\xfa\xfb][^\x00-\x0f\xf0-\xff].)", re.DOTALL
)
# Places that are tried before a file is taken as it is: what is no sound
# between frames is a tag, or a picture in it.
MOST_PLACES = 100_000
# Xing's header is in the first frame, of 1,441 bytes at most.
FIRST_READ = 2048
# Bytes of tags behind the frames, with which a header still tells all.
TAGS_SIZE = 4096


def begins(magic):
    """Returns whether a file may be an MP3, by its first four bytes."""
    return magic.startswith(b"ID3") or HEADER.match(magic) is not None


def mend(file):
    """Adds to an MP3 what it does not say of its length.

    Args:
        file: the file, open for reading bytes.

    Returns:
        Bytes of the file with a header that tells all its frames, or `None`
        if there is nothing to mend, or nothing that can be.
    """
    start = skip_tags(file)
    file.seek(start)
    content = file.read(FIRST_READ)
    told, size = told_size(content), file.seek(0, 2) - start
    if told is not None and told <= size <= told + TAGS_SIZE:
        file.seek(start + told)
        behind = file.read()
        # A short file that was joined is no tag.
        if not behind or find_frame(behind, 0) is None:
            return None
    file.seek(start)
    content = file.read()
    try:
        first = find_frame(content, 0)
        content = content[first:]
        count = None if first is None else count_frames(content)
    except OverflowError:
        count = None
    if not count:
        return None
    place = header_of(content)
    if place is None or not content[place + 7] & 1:
        return make_header(content, count) + content
    said = int.from_bytes(content[place + 8 : place + 12], "big")
    # The header itself is a frame, too.
    if count - 1 <= said:
        return None
    mended = bytearray(content)
    mended[place + 8 : place + 12] = (count - 1).to_bytes(4, "big")
    if content[place + 7] & 2:
        mended[place + 12 : place + 16] = len(content).to_bytes(4, "big")
    return bytes(mended)


def skip_tags(file):
    """Returns the byte behind the ID3 tags that a file begins with."""
    place = 0
    while True:
        file.seek(place)
        head = file.read(10)
        if len(head) < 10 or not head.startswith(b"ID3"):
            return place
        place += 10 + tag_size(head)


def tag_size(head):
    """Returns the bytes of an ID3 tag behind its own ten, `head`."""
    size = 0
    for byte in head[6:10]:
        size = size << 7 | byte & 0x7F
    return size + 10 * bool(head[5] & 0x10)


def told_size(content):
    """Returns how many bytes a file has by its header.

    Args:
        content: bytes, the beginning of the frames.

    Returns:
        Int, or `None` if it does not tell that and its frames.
    """
    place = header_of(content) if frame_size(content, 0) else None
    if place is None or content[place + 7] & 3 != 3:
        return None
    return int.from_bytes(content[place + 12 : place + 16], "big")


def frame_size(content, place):
    """Returns the bytes of the frame at a place, or `None` if none is there."""
    if not HEADER.match(content, place):
        return None
    version = content[place + 1] >> 3 & 3
    third = content[place + 2]
    if third >> 2 & 3 == 3:
        return None
    kbit = RATES_KBIT[version][(third >> 4) - 1]
    rate_hz = RATES_HZ[version][third >> 2 & 3]
    samples = 1152 if version == 3 else 576
    return samples // 8 * kbit * 1000 // rate_hz + (third >> 1 & 1)


def kind_of(content, place):
    """Returns what all frames of a file have alike."""
    return content[place + 1] & 0xFE, content[place + 2] & 0x0C


def find_frame(content, place, kind=None):
    """Finds a frame that another of its kind, or the end, follows.

    Args:
        content: bytes.
        place: int, the byte to begin at.
        kind: as `kind_of` returns it, or `None` for any.

    Returns:
        Int, or `None` if there is none.

    Raises:
        OverflowError: if there are `MOST_PLACES` that might be one.
    """
    for number, found in enumerate(HEADER.finditer(content, place)):
        if number == MOST_PLACES:
            raise OverflowError
        at = found.start()
        size = frame_size(content, at)
        if size is None or kind not in (None, kind_of(content, at)):
            continue
        after = at + size
        if after == len(content) or (
            frame_size(content, after)
            and kind_of(content, after) == kind_of(content, at)
        ):
            return at
    return None


def count_frames(content):
    """Counts the frames of a file.

    Args:
        content: bytes that begin with a frame.

    Returns:
        Int.

    Raises:
        OverflowError: as `find_frame`.
    """
    kind = kind_of(content, 0)
    # Bytes of a frame by its third byte; the second tells the kind.
    sizes = [
        frame_size(bytes([0xFF, content[1], third, 0]), 0)
        if third & 0x0C == kind[1]
        else None
        for third in range(256)
    ]
    place, count, end = 0, 0, len(content)
    while place is not None and place < end:
        while (
            place + 4 <= end
            and content[place] == 0xFF
            and content[place + 1] & 0xFE == kind[0]
            and sizes[content[place + 2]]
        ):
            place += sizes[content[place + 2]]
            # Nothing is decoded of a last one that is cut off.
            count += place <= end
        if content.startswith(b"ID3", place):
            place += 10 + tag_size(content[place : place + 10].ljust(10))
        place = find_frame(content, place, kind)
    return count


def header_of(content):
    """Finds Xing's header in the first frame of a file.

    Args:
        content: bytes that begin with a frame.

    Returns:
        Int, the byte that it begins at, or `None` if there is none.
    """
    place = 4 + side_size(content)
    found = content[place : place + 4]
    if found not in (b"Xing", b"Info") or len(content) < place + 16:
        return None
    return place


def side_size(content):
    """Returns the bytes between the head of the first frame and its data."""
    mono = content[3] >> 6 == 3
    if content[1] >> 3 & 3 == 3:
        return 17 if mono else 32
    return 9 if mono else 17


def make_header(content, count):
    """Makes a first frame that tells how many frames follow.

    Args:
        content: bytes that begin with a frame.
        count: int, the frames.

    Returns:
        Bytes of a frame of that kind without sound.
    """
    # Without a checksum and padding, of the least bit rate that has room.
    head = bytearray(content[:4])
    head[1] |= 1
    for index in range(1, 15):
        head[2] = index << 4 | content[2] & 0x0C
        size = frame_size(bytes(head), 0)
        data = bytes(side_size(content)) + b"Xing\0\0\0\1"
        frame = bytes(head) + data + count.to_bytes(4, "big")
        if len(frame) <= size:
            break
    return frame.ljust(size, b"\0")
