"""ZIP archives in parts, by the text of the format."""

import io
import struct
import zipfile


def write_parts(folder, name, size, members):
    """Cuts an archive into parts of `size` bytes, as `zip -s` does.

    `members` is a dict of bytes by name.
    """
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/", b"")
        for member, content in members.items():
            archive.writestr(member, content)
    content = bytearray(whole.getvalue())
    end = content.rindex(b"PK\5\6")
    (begin,) = struct.unpack_from("<I", content, end + 16)
    parts = -(-len(content) // size)
    place = begin
    while content[place : place + 4] == b"PK\1\2":
        (offset,) = struct.unpack_from("<I", content, place + 42)
        struct.pack_into("<H", content, place + 34, offset // size)
        struct.pack_into("<I", content, place + 42, offset % size)
        place += 46 + sum(struct.unpack_from("<3H", content, place + 28))
    struct.pack_into("<HH", content, end + 4, parts - 1, begin // size)
    struct.pack_into("<I", content, end + 16, begin % size)
    paths = []
    for number in range(parts):
        suffix = f"z{number + 1:02d}" if number < parts - 1 else "zip"
        paths.append(folder / f"{name}.{suffix}")
        paths[-1].write_bytes(content[number * size : (number + 1) * size])
    return paths
