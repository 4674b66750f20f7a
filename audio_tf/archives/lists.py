"""The clips of a part of a plan, written down shard by shard."""

import contextlib
import io
import json
import math
import os
import typing

from audio_tf.archives import members, places
from audio_tf.terminal import printable

LISTS = "plan"

# A shard ends after so many clips or bytes. Few clips make smaller shards, so
# that several workers have some, and a kill costs little.
CLIPS, LEAST_CLIPS = 500, 25
BYTES, LEAST_BYTES = 2**26, 2**22
SHARDS = 16


class Clip(typing.NamedTuple):
    """A clip that is to be scored.

    Attributes:
        path: str, of the file or of the archive that it is in.
        member: str, its path in the archive, or `None`.
        place: int, where it begins in a tar, or `None`.
        size: int, its bytes, or `None` if they are not known.
        version: str of the file, or `None`; see `listing.Found`.
        base: str, the folder that a path on this machine is relative to.
        source: str, the source that a file was found by, or `None`; see
            `listing.Found`.
    """

    path: str
    member: str | None = None
    place: int | None = None
    size: int | None = None
    version: str | None = None
    base: str = ""
    source: str | None = None

    @property
    def place_on_disk(self):
        """The path of the file or the archive, from whatever folder."""
        return absolute(self.path, self.base)

    @property
    def identity(self):
        """`place_on_disk`, the same however it was written."""
        return places.anywhere(self.place_on_disk)

    @property
    def name(self):
        """The name in answers: `sounds/a.wav`, `sounds.tar/folder/a.wav`."""
        name = self.path if self.member is None else self.joined
        # Bytes that are no UTF-8 are no text in a Parquet file.
        return os.fsencode(name).decode("utf-8", "backslashreplace")

    @property
    def joined(self):
        """The path of the archive, and that in it."""
        return f"{self.path}/{self.member}"


class Shard(typing.NamedTuple):
    """Clips that are scored by one worker into one file.

    Attributes:
        name: str, the name of its part and its number in it.
        clips: int, how many.
        size: int, bytes of the clips, as far as they are known.
    """

    name: str
    clips: int
    size: int

    @property
    def place(self):
        """The name of its part, and the row group in that part's list."""
        part, _, number = self.name.partition("-")
        return part, int(number)


class Part(typing.NamedTuple):
    """Clips that were planned together.

    Attributes:
        name: str.
        archive: str, the path of the archive that all are in, or `None`.
        version: str of the archive, or `None`.
        base: str, the folder that its path is relative to.
        size: int, bytes of the archive, or `None` if they are not known.
    """

    name: str
    archive: str | None = None
    version: str | None = None
    base: str = ""
    # Plans of before have none.
    size: int | None = None

    @property
    def clip(self):
        """The archive itself as a `Clip`, for its name and its identity."""
        return Clip(self.archive, base=self.base)


class Listing(typing.NamedTuple):
    """The shards of a part, and what failed in it.

    Attributes:
        shards: list of `Shard`.
        failed: list of pairs of a name and why it cannot be scored.
        others: dict, see `members.Listed`.
    """

    shards: list
    failed: list
    others: dict


def list_path(out, part):
    """Returns the path of the list of a part's clips."""
    return places.join(out, LISTS, f"{part}.parquet")


def absolute(path, base):
    """Returns a path that holds in whatever folder a worker is."""
    return path if places.is_remote(path) else os.path.join(base, path)


def check_names(out, there, given):
    """Refuses names that tell nobody which of two files is meant.

    Args:
        out: str, the folder of the results.
        there: list of `Clip` that are planned, also for archives.
        given: list of `Clip` that are to be planned.

    Raises:
        ValueError: if one of `given` has the name of another.
    """
    names = {clip.name: clip.identity for clip in there}
    for clip in given:
        other = names.setdefault(clip.name, clip.identity)
        if other != clip.identity:
            raise ValueError(
                f"{out} knows {printable(other)} by the name "
                f"{printable(clip.name)}, from a run in another folder: give "
                "this one by its whole path, or take another `out`. "
                f"Received: {printable(clip.identity)}"
            )


def cut(sizes, packed=False):
    """Says where shards end.

    Args:
        sizes: list of the bytes of clips, `None` where they are not known.
        packed: bool, whether each shard has to read what is before it, too.

    Returns:
        List of pairs of the first clip of a shard and the one behind its last.
    """
    total = sum(size or 0 for size in sizes)
    most_clips = max(LEAST_CLIPS, math.ceil(len(sizes) / SHARDS))
    most_bytes = max(LEAST_BYTES, math.ceil(total / SHARDS))
    if not packed:
        most_clips = min(CLIPS, most_clips)
        most_bytes = min(BYTES, most_bytes)
    spans, begin, there = [], 0, 0
    for place, size in enumerate(sizes):
        full = place - begin == most_clips or there + (size or 0) > most_bytes
        if place > begin and full:
            spans.append((begin, place))
            begin, there = place, 0
        there += size or 0
    return [*spans, (begin, len(sizes))] if sizes else []


def write_list(out, part, clips, failed=(), packed=False, others=None):
    """Writes the list of a part's clips, whole or not at all.

    Args:
        out: str, the folder of the results.
        part: str, its name.
        clips: list of `Clip`, all of one `base`.
        failed: list of pairs of a name and why it cannot be scored.
        packed: bool, see `cut`.
        others: dict, see `Listing`, or `None` for none.
    """
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [
            ("path", pyarrow.binary()),
            ("member", pyarrow.binary()),
            ("place", pyarrow.int64()),
            ("size", pyarrow.int64()),
            ("version", pyarrow.string()),
            ("source", pyarrow.binary()),
        ]
    )
    spans = cut([clip.size for clip in clips], packed)
    sizes = [
        sum(clip.size or 0 for clip in clips[begin:end]) for begin, end in spans
    ]
    base = clips[0].base if clips else ""
    note = {"sizes": sizes, "failed": list(failed), "base": base}
    note = json.dumps({**note, "others": others or {}})
    schema = schema.with_metadata({"audio_tf": note})
    file = io.BytesIO()
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for begin, end in spans:
            rows = [
                {
                    **clip._asdict(),
                    "path": os.fsencode(clip.path),
                    "member": clip.member and os.fsencode(clip.member),
                    "source": clip.source and os.fsencode(clip.source),
                }
                for clip in clips[begin:end]
            ]
            table = pyarrow.Table.from_pylist(rows, schema)
            writer.write_table(table, row_group_size=len(rows))
    places.write(list_path(out, part), file.getvalue())


@contextlib.contextmanager
def open_list(out, part):
    """Opens the list of a part: pyarrow's `ParquetFile`, and its note."""
    import pyarrow.parquet

    with places.opened(list_path(out, part)) as file:
        table = pyarrow.parquet.ParquetFile(file)
        yield table, json.loads(table.schema_arrow.metadata[b"audio_tf"])


def read_list(out, part):
    """Returns the `Listing` of a part."""
    with open_list(out, part) as (table, note):
        shards = [
            Shard(
                f"{part}-{number:05d}",
                table.metadata.row_group(number).num_rows,
                size,
            )
            for number, size in enumerate(note["sizes"])
        ]
    failed = [tuple(each) for each in note["failed"]]
    # Lists of before do not say what is passed over.
    return Listing(shards, failed, note.get("others", {}))


def largest_first(found):
    """Sorts shards: runners that deal them out in turn give each the same.

    Those of about one size are in the order of their names, in which a packed
    archive is best read.
    """
    return sorted(found, key=by_size)


def by_size(shard):
    """Returns what a shard is sorted by in `largest_first`."""
    return -shard.size.bit_length(), shard.name


def read_clips(out, shard):
    """Returns the clips of a shard, list of `Clip`, by its name."""
    part, number = Shard(shard, 0, 0).place
    with open_list(out, part) as (table, note):
        return group_of(table, number, note["base"])


def read_part(out, part):
    """Yields name and clips of each shard of a part."""
    with open_list(out, part) as (table, note):
        for number in range(table.num_row_groups):
            yield (
                f"{part}-{number:05d}",
                group_of(table, number, note["base"]),
            )


def group_of(table, number, base):
    """Returns the clips of a row group, list of `Clip`."""
    return [
        Clip(
            os.fsdecode(row["path"]),
            row["member"] and os.fsdecode(row["member"]),
            row["place"],
            row["size"],
            row["version"],
            base,
            # Lists of before have none.
            os.fsdecode(row["source"]) if row.get("source") else None,
        )
        for row in table.read_row_group(number).to_pylist()
    ]


def list_archive(out, part):
    """Lists the members of an archive as a part of the plan.

    Args:
        out: str, the folder of the results.
        part: `Part`.

    Returns:
        `Listing`.
    """
    where = absolute(part.archive, part.base)
    found, fault, others = members.list_members(where)
    clips, failed = [], []
    for each in found:
        clip = Clip(
            part.archive,
            each.name,
            each.place,
            each.size,
            part.version,
            part.base,
        )
        if each.fault is None:
            clips.append(clip)
        else:
            failed.append((clip.name, each.fault))
    if fault is not None:
        failed.append((Clip(part.archive).name, fault))
    packed = members.is_packed(part.archive)
    write_list(out, part.name, clips, failed, packed, others)
    return read_list(out, part.name)
