"""Entries of the cache in shards, TFRecord files that `audio-tf prepare` fills.

Where entries are, a folder `prepared` has a folder for each set that was
filled, and in it

    plan.jsonl      the sources of each shard, a line for each shard
    00000-5f2c91d7.tfrecord     records of little-endian float32 values
    00000.json      what is in that file; it is written last
    whole           there is no shard to come

A record is found by its byte, so that a piece of a clip is read alone. Each
belongs to a source as an entry does, by its path, size and time of change. It
is found by what the source holds, too: on a machine that has the same corpus
elsewhere, or copied, a clip is the one whose bytes are the same.
"""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import secrets
import typing
import warnings
import zlib

import numpy as np

from audio_tf import files
from audio_tf.audio import packed
from audio_tf.data.cache import (
    BLOCK,
    EntryFacts,
    mark_used,
    read_bytes_into,
    source_size,
)

PREPARED, WHOLE, PLAN = "prepared", "whole", "plan.jsonl"
# Files of what sources elsewhere were found to hold.
SEEN = "seen-{}.json"
# Bytes of a TFRecord before and after its content.
HEAD, TAIL = 12, 4


class Row(typing.NamedTuple):
    """A record of a shard.

    Attributes:
        entry: str, the name that its entry would have.
        digest: str, SHA-256 of the bytes of its source.
        start: int, the byte of the shard at which its values begin.
        length: int, how many values it has.
        checksum: int, their CRC-32.
    """

    entry: str
    digest: str
    start: int
    length: int
    checksum: int


@dataclasses.dataclass(frozen=True)
class Found:
    """An entry that is in a shard.

    Attributes:
        shard: `pathlib.Path`.
        row: `Row`.
    """

    shard: pathlib.Path
    row: Row

    @property
    def place(self):
        """The path of the shard, and the byte at which values begin."""
        return self.shard, self.row.start

    @property
    def facts(self):
        """The `EntryFacts`."""
        return EntryFacts(self.row.length, self.row.checksum)

    def is_whole(self):
        """Returns whether the values are what was written."""
        checksum, rest = 0, self.row.length
        start = self.row.start
        while rest:
            part = np.empty(min(rest, BLOCK), "<f4")
            read_bytes_into(self.shard, start, part)
            checksum = zlib.crc32(part, checksum)
            start, rest = start + part.nbytes, rest - len(part)
        return checksum == self.row.checksum


@dataclasses.dataclass(frozen=True)
class Note:
    """The content of a shard, as the file beside it tells.

    Attributes:
        file: str, the name of the shard.
        size: int, its bytes.
        rows: list of `Row`.
        failures: dict by the name of the entry of pairs of the path of a
            source that could not be used, and why.
    """

    file: str
    size: int
    rows: list
    failures: dict


def folder_of(entry):
    """Returns the folder of the sets of an entry, which need not be there."""
    return entry.parent.parent / PREPARED


def read_notes(folder):
    """Reads what is in the shards of a set.

    Args:
        folder: `pathlib.Path` of the set.

    Returns:
        Dict of `Note` by the path of the note, a `pathlib.Path`, of those
        whose shard is there.
    """
    found = {}
    for path in sorted(folder.glob("*.json")):
        note = read_note(path)
        if note is not None:
            found[path] = note
    return found


def read_note(path):
    """Returns the `Note` at a path, `None` if it or its shard is not whole."""
    try:
        content = json.loads(path.read_text("utf-8"))
        rows = [Row(*row) for row in content.pop("rows")]
        note = Note(rows=rows, **content)
        there = os.path.getsize(path.with_name(note.file))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return note if there == note.size else None


def sets_in(folder):
    """Lists the sets in a folder of them, which need not be there."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir())


def read_index(folder):
    """Reads what is in all shards of all sets of a folder.

    Args:
        folder: `pathlib.Path`, as `folder_of` returns it.

    Returns:
        Pair of dicts of `Found`, by the name of the entry and by digest.
    """
    by_name, by_digest = {}, {}
    for each in sets_in(folder):
        for path, note in read_notes(each).items():
            shard = path.with_name(note.file)
            for row in note.rows:
                by_name[row.entry] = by_digest[row.digest] = Found(shard, row)
    return by_name, by_digest


def failures_in(folder, names):
    """Returns why files could not be used when sets were filled.

    Args:
        folder: `pathlib.Path`, the folder of the sets.
        names: set of the names of the entries that are asked for.

    Returns:
        Dict of the reason by the path of the file.
    """
    return dict(
        failure
        for each in sets_in(folder)
        for note in read_notes(each).values()
        for name, failure in note.failures.items()
        if name in names
    )


def find(sources):
    """Finds the entries of audio files that are in shards, and whole.

    A source of another path or time is read, unless it was before: it may be
    a copy of what was prepared. One warning counts damaged records.

    Args:
        sources: dict of the path of the audio file by the path of its entry,
            all of one folder of the cache.

    Returns:
        Dict of `Found` by entry.
    """
    if not sources:
        return {}
    folder = folder_of(next(iter(sources)))
    by_name, by_digest = read_index(folder)
    if not by_name:
        return {}
    sizes = {source_size(pathlib.Path(name)) for name in by_name}
    seen = read_seen(folder)
    new = {}

    def look(entry):
        if entry.name in by_name:
            return by_name[entry.name]
        digest = seen.get(entry.name)
        if digest is None and source_size(entry) in sizes:
            with contextlib.suppress(OSError, packed.PackError):
                digest = new[entry.name] = digest_of(sources[entry])
        return by_digest.get(digest)

    found = look_at_all(look, sources)
    new = {name: each for name, each in new.items() if each in by_digest}
    if new:
        # A cache that may only be read is looked into anew by each run.
        with contextlib.suppress(OSError):
            path = folder / SEEN.format(secrets.token_hex(8))
            files.write_json(path, new)
    return found


def find_features(clips, wanted):
    """Finds the features of clips that are in shards, and whole.

    Args:
        clips: `Clips` of samples.
        wanted: dict by the path of the entry of features, all of one folder
            of the cache, of the path of the entry of the samples.

    Returns:
        Dict of `Found` by the entry of features.
    """
    if not wanted:
        return {}
    by_name, by_digest = read_index(folder_of(next(iter(wanted))))

    def look(entry):
        if entry.name in by_name:
            return by_name[entry.name]
        samples = clips.in_shards.get(wanted[entry])
        return by_digest.get(samples.row.digest) if samples else None

    return look_at_all(look, wanted) if by_name else {}


def look_at_all(look, entries):
    """Looks for entries by threads, and checks what is found.

    Args:
        look: function of an entry to its `Found`, or `None`.
        entries: iterable of paths.

    Returns:
        Dict of `Found` by entry.
    """

    def look_and_check(entry):
        found = look(entry)
        try:
            return entry, found, found is None or found.is_whole()
        except OSError:
            return entry, found, False

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        looked = list(pool.map(look_and_check, entries))
    damaged = [found.shard for _, found, whole in looked if not whole]
    if damaged:
        warnings.warn(
            f"{len(damaged)} damaged records of shards are made again, as "
            f"entries; the first is in {damaged[0]}",
            RuntimeWarning,
            stacklevel=4,
        )
    kept = {entry: found for entry, found, whole in looked if found and whole}
    for shard in {found.shard for found in kept.values()}:
        mark_used(shard)
    return kept


def read_seen(folder):
    """Returns digests of sources by the names of their entries."""
    seen = {}
    for path in folder.glob(SEEN.format("*")):
        with contextlib.suppress(OSError, ValueError):
            seen |= json.loads(path.read_text("utf-8"))
    return seen


def digest_of(source):
    """Returns the SHA-256 of the bytes of a file, packed or not.

    Raises:
        OSError: if it cannot be read.
        PackError: if what it is in is damaged.
    """
    if os.path.isfile(source):
        with open(source, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(packed.read_bytes(source)).hexdigest()


def write(folder, name, records, failures):
    """Writes a shard and what is in it, whole or not at all.

    Whoever writes it twice, with the same content, writes the same files. Two
    processes may do so at once: the note is of what is there.

    Args:
        folder: `pathlib.Path` of the set.
        name: str, the name of the shard without its suffix.
        records: iterable of triples of the name of an entry, the digest of
            its source, and its float32 values.
        failures: dict, see `Note`; filled while records are taken, perhaps.

    Returns:
        `Note`.
    """
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    rows, place, checksum = [], 0, 0
    partial = folder / f".{name}.{secrets.token_hex(8)}"
    try:
        with tf.io.TFRecordWriter(os.fspath(partial)) as writer:
            for entry, digest, values in records:
                content = np.ascontiguousarray(values, "<f4").tobytes()
                writer.write(content)
                own = zlib.crc32(content)
                checksum = zlib.crc32(content, checksum)
                start = place + HEAD
                length = len(content) // 4
                rows.append(Row(entry, digest, start, length, own))
                place = start + len(content) + TAIL
        # Features of two machines may differ in their last bit: neither
        # may end in a file that the other's note tells of.
        file = f"{name}-{checksum:08x}.tfrecord"
        os.replace(partial, folder / file)
        note = Note(file, place, rows, failures)
        partial.write_text(json.dumps(dataclasses.asdict(note)), "utf-8")
        os.replace(partial, folder / f"{name}.json")
    except FileNotFoundError:
        # Another process has filled the set, and removed what was not whole.
        note = read_note(folder / f"{name}.json")
        if note is None:
            raise
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return note
