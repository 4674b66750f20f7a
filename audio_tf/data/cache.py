"""Decoded audio on disk, so that each file is decoded once.

An entry is a file: a header of `HEADER_SIZE` bytes, see `HEADER`, then the
samples as little-endian float32, mono, full scale 1, at the cache's rate. The
feature cache keeps `(frames, dim)` float32 in the same way, row after row.
"""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import secrets
import struct
import time
import warnings
import zlib

import numpy as np

from audio_tf.audio import packed
from audio_tf.audio.resampling import RESAMPLER, SUMS

# The header has the magic, whose entry it is, how many values follow, their
# CRC-32, and the CRC-32 of all that. The number in the magic is the layout's.
HEADER = struct.Struct("<8s16sQII")
MAGIC = b"audiotf2"
HEADER_SIZE = 64  # Samples begin on a cache line.
BLOCK = 2**20  # Bytes that are checked at a time.


def default_cache_dir():
    """Returns `$AUDIO_TF_CACHE`, or `audio_tf` in the user's cache folder.

    ```python
    cache_dir = audio_tf.data.default_cache_dir()
    clips = audio_tf.data.prepare(corpus, 16_000, cache_dir)
    ```
    """
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    found = os.environ.get("AUDIO_TF_CACHE") or os.path.join(base, "audio_tf")
    # Of a variable that no shell has set, "~" would be a folder's name.
    return os.path.expanduser(found)


class EntryError(ValueError):
    """An entry that cannot be used; the message says why."""


@dataclasses.dataclass(frozen=True)
class EntryFacts:
    """The number of values in an entry and their checksum, from its header.

    Attributes:
        length: int, how many float32 values follow.
        checksum: int, their CRC-32.
    """

    length: int
    checksum: int


class AudioCache:
    """Samples of audio files, decoded and resampled, one entry a file.

    An entry holds float32 samples `(samples,)`, mono, full scale 1. It is
    named by the path of its source, the audio file, and by the source's size
    and time of change, so that a changed source is a miss. Rates, decoders
    and resamplers have folders of their own. Entries appear whole or not at
    all, and nothing is ever removed, since another process may be reading it:
    several processes may share a cache. Its folder may be deleted as a whole
    when nobody uses it. Bad files have no entry, and are tried again by each
    run.

    Args:
        directory: path of the cache's folder, made if missing.
        sample_rate_hz: int, the rate of the samples in the entries.
        decoder: str, name of the decoder that makes them.

    Examples:
        >>> import soundfile
        >>> from audio_tf import audio, data
        >>> soundfile.write("a.wav", [0.5] * 8_000, 8_000)
        >>> cache = data.AudioCache("cache", sample_rate_hz=16_000)
        >>> cache.put("a.wav", audio.load_audio("a.wav", 16_000)).length
        16000
    """

    def __init__(self, directory, sample_rate_hz, decoder="soundfile"):
        settings = f"{sample_rate_hz} {decoder} {RESAMPLER} {SUMS} {MAGIC}"
        digest = hashlib.sha1(settings.encode()).hexdigest()[:8]
        self.directory = pathlib.Path(directory) / f"{sample_rate_hz}-{digest}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise other_cache(error, error.strerror, self.directory) from error

    def entry(self, source):
        """Returns the path where the samples of a source are, or would be.

        Args:
            source: path of the audio file, looked at as it is now.

        Raises:
            FileNotFoundError: if there is no such source.
        """
        source = os.path.abspath(source)
        size, modified_ns = packed.status(source)
        name = hashlib.sha1(os.fsencode(source)).hexdigest()
        version = f"{size:x}-{modified_ns:x}"
        return self.directory / name[:2] / f"{name}-{version}.f32"

    def owner(self, entry):
        """Returns 16 bytes that tell an entry from one of another place."""
        place = entry.relative_to(self.directory.parent).as_posix()
        return hashlib.sha1(place.encode()).digest()[:16]

    def put(self, source, audio, entry=None):
        """Stores the samples of a source.

        Args:
            source: path of the audio file.
            audio: float array `(samples,)`, or of more axes, stored as
                float32.
            entry: path that `entry(source)` was before the source was read,
                so that a source that changes meanwhile is a miss; `None` for
                what it is now.

        Returns:
            `EntryFacts`.

        Raises:
            TypeError: if the samples are integers.
            OSError: if they cannot be written; then there is no new entry,
                and one that was there stays.
        """
        entry = entry or self.entry(source)
        entry.parent.mkdir(parents=True, exist_ok=True)
        return write_entry(entry, audio, self.owner(entry))

    def check(self, entry):
        """Returns the facts of an entry after a look at all of its bytes.

        Raises:
            FileNotFoundError: if there is no such entry.
            EntryError: if it is cut off, damaged, or no entry of this place.
        """
        with open(entry, "rb") as file:
            facts = read_header(file, self.owner(entry))
            checksum = 0
            while block := file.read(BLOCK):
                checksum = zlib.crc32(block, checksum)
        if checksum != facts.checksum:
            raise EntryError("its samples are not what was written")
        mark_used(entry)
        return facts

    def check_all(self, entries):
        """Returns the facts of those entries that are there and whole.

        One warning counts the damaged entries and names the first.

        Args:
            entries: list of paths.

        Returns:
            List of `EntryFacts`, with `None` for an entry that is to be made.
        """

        def look(entry):
            try:
                return self.check(entry), None
            except FileNotFoundError:
                return None, None
            except (EntryError, OSError) as error:
                return None, f"{entry}: {error}"

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(look, entries))
        damaged = [reason for _, reason in found if reason is not None]
        if damaged:
            warnings.warn(
                f"{len(damaged)} damaged entries of the cache are made again, "
                f"the first is {damaged[0]}",
                RuntimeWarning,
                stacklevel=3,
            )
        return [facts for facts, _ in found]


def mark_used(path):
    """Notes that a file was used now, as the time of its last access.

    The disk itself may be told to note no accesses. A cache that may only be
    read is used all the same.
    """
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), os.stat(path).st_mtime_ns))


def write_error(error, directory, kept, count):
    """Returns the error of a write as one line that says what was kept.

    Args:
        error: the `OSError` that stopped the write.
        directory: folder of the cache.
        kept: int, how many entries are whole.
        count: int, how many are wanted.
    """
    text = (
        f"{error.strerror}; {kept} of {count} entries are in the cache and "
        "are kept, the next run goes on from there"
    )
    return other_cache(error, text, directory)


def other_cache(error, text, directory):
    """Returns an error of the cache that says how to have it elsewhere.

    Args:
        error: the `OSError`.
        text: str, what there is to say of it.
        directory: folder of the cache.
    """
    text += "; `cache_dir` may be another folder"
    return OSError(error.errno, text, str(directory))


def write_entry(entry, audio, owner=bytes(16)):
    """Writes an entry, whole or not at all; see `AudioCache.put`.

    Returns:
        `EntryFacts`.
    """
    audio = np.asarray(audio)
    if audio.dtype.kind in "biu":
        raise TypeError(f"Samples must be floats. Received: {audio.dtype}")
    samples = memoryview(np.ascontiguousarray(audio, "<f4").reshape(-1))
    facts = EntryFacts(len(samples), zlib.crc32(samples))
    head = HEADER.pack(MAGIC, owner, facts.length, facts.checksum, 0)
    head = HEADER.pack(
        MAGIC, owner, facts.length, facts.checksum, zlib.crc32(head)
    )
    # A name of its own: processes on two machines may have one number.
    partial = entry.with_suffix(f".{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "xb") as file:
            file.write(head.ljust(HEADER_SIZE, b"\0"))
            file.write(samples)
        os.replace(partial, entry)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return facts


def read_header(file, owner):
    """Reads the header of an open entry, up to where its samples begin.

    Returns:
        `EntryFacts`.

    Raises:
        EntryError: if the header is damaged or another's, or the file has not
            as many samples as it says.
    """
    head = file.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        raise EntryError(f"cut off after {len(head)} bytes")
    magic, whose, length, checksum, own = HEADER.unpack_from(head)
    expected = HEADER.pack(magic, whose, length, checksum, 0)
    if magic != MAGIC or own != zlib.crc32(expected):
        raise EntryError("its header is damaged")
    if whose != owner:
        raise EntryError("it is the entry of another file")
    there = os.fstat(file.fileno()).st_size - HEADER_SIZE
    if there != 4 * length:
        raise EntryError(f"it has {there} bytes instead of {4 * length}")
    return EntryFacts(length, checksum)


def source_size(entry):
    """Returns how many bytes the source had that an entry was made from."""
    return int(entry.stem.split("-")[1], 16)


def entry_length(entry):
    """Returns how many float32 values an entry holds."""
    return (os.path.getsize(entry) - HEADER_SIZE) // 4


def read_entry(entry, start=0, count=-1):
    """Reads `count` values of an entry from `start` on, or all of them if -1.

    Returns:
        Float32 array `(count,)`.

    Raises:
        OSError: if it has not as many.
    """
    if count == -1:
        count = max(entry_length(entry) - start, 0)
    audio = np.empty(count, "<f4")
    read_into(entry, start, audio)
    return audio


def read_into(entry, start, out):
    """Reads the values of an entry from `start` on that fill an array.

    Args:
        entry: path of the entry.
        start: int, the first value.
        out: contiguous float32 array `(count,)`.

    Raises:
        OSError: if it has not as many.
    """
    read_bytes_into(entry, HEADER_SIZE + 4 * start, out)


def read_bytes_into(path, place, out):
    """Reads little-endian values that fill an array, from a byte of a file on.

    Args:
        path: path of the file, an entry or a shard.
        place: int, the byte at which the first value begins.
        out: contiguous float32 array `(count,)`.

    Raises:
        OSError: if it has not as many.
    """
    rest = memoryview(out.view(np.uint8))
    # numpy.fromfile takes twice as long, for chunks of a second.
    with open(path, "rb", buffering=0) as file:
        file.seek(place)
        while len(rest) and (count := file.readinto(rest)):
            rest = rest[count:]
    if len(rest):
        raise OSError(
            f"{path}: was cut off while it was in use. Received: "
            f"{out.size - -(-len(rest) // 4)} of {out.size} samples"
        )
