"""Files that lie within others: in ZIP archives, and in TFRecord files.

A path may go on where the file system ends. `FSD50K.dev_audio/64760.wav`,
where there is `FSD50K.dev_audio.zip` and no such folder, is a member of that
archive, of one file or of parts. `<build>/release/audio/1-100032-A-0.wav` is
a clip of a corpus that `audio-tf build` has written for TFDS, under the name
that it has in the corpus' release. Whoever reads a file asks here if there is
none of its name.
"""

import csv
import functools
import json
import os
import pathlib
import struct
import typing
import zlib

from audio_tf.audio import split_zip

# What a build has beside the files of TFDS: the lists of the release, where
# each clip is, and what the whole is.
RELEASE, CLIPS, BUILD = "release", "clips.csv", "build.json"
COLUMNS = ("file", "shard", "offset", "bytes", "checksum", "source_bytes")
# What every build says of itself, old ones too.
SAID = (
    *("version", "default", "layouts", "sample_rate_hz", "dtype"),
    *("complete", "left_out"),
)

# The formats of WAV files by the type of samples that records hold.
WAV_FORMATS = {"int16": (1, 16), "float32": (3, 32)}


class PackError(ValueError):
    """A file within another that cannot be read; the message says why."""


class LeftOutError(PackError):
    """A clip that is not in a build because it was left out when it was built.

    The message says why it was.
    """


class Packed(typing.NamedTuple):
    """A file within another.

    Attributes:
        size: int, the bytes of the file, of a clip in a record as its source
            had them.
        modified_ns: int, when what it is in was changed, in nanoseconds.
        read: function of nothing to the bytes of the file; for a clip in a
            record, of a WAV file of the same samples.
    """

    size: int
    modified_ns: int
    read: typing.Callable


def find(path):
    """Finds a file within another.

    Args:
        path: path where there is no file.

    Returns:
        `Packed`, or `None` if there is none.

    Raises:
        PackError: if there is an archive or an index that is damaged.
    """
    found = container(pathlib.Path(path))
    return found and found[0].find(found[1])


def below(folder):
    """Lists what is packed in a folder and in all folders below it.

    Args:
        folder: path of a folder that is not there, or is of a build.

    Returns:
        Sorted list of `pathlib.Path`, or `None` if no such folder is packed.
    """
    found = container(pathlib.Path(folder))
    if found is None:
        return None
    names = found[0].names()
    start = f"{found[1]}/" if found[1] else ""
    folder = pathlib.Path(folder)
    inside = [name[len(start) :] for name in names if name.startswith(start)]
    return sorted(folder / name for name in inside) or None


def status(path):
    """Returns size and time of change of a file, packed or not.

    Args:
        path: path of the file.

    Returns:
        Pair of int, bytes and nanoseconds.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    try:
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        packed = find(path)
        if packed is None:
            raise
        return packed.size, packed.modified_ns


def read_bytes(path):
    """Returns the bytes of a file, packed or not.

    Raises:
        FileNotFoundError: if there is no such file.
        PackError: if it is packed and damaged.
    """
    packed = None if os.path.isfile(path) else find(path)
    if packed is None:
        return pathlib.Path(path).read_bytes()
    return packed.read()


def container(path):
    """Finds what a path that is no file is in.

    Returns:
        Pair of `Archive` or `Build` and the rest of the path, a str with `/`
        between folders; `None` if it is in neither.
    """
    for parent in (path, *path.parents):
        rest = path.relative_to(parent).as_posix()
        rest = "" if rest == "." else rest
        if parent.name == RELEASE and is_build(parent.parent):
            return open_build(parent.parent), rest
        archive = parent.with_name(f"{parent.name}.zip") if parent.name else ""
        if archive and not parent.exists() and archive.is_file():
            # The archive of a folder begins with that folder.
            name = f"{parent.name}/{rest}" if rest else parent.name
            return Archive(archive), name
    return None


class Archive(typing.NamedTuple):
    """A ZIP archive that stands where the folder in it might be.

    Attributes:
        path: `pathlib.Path` of `name.zip`.
    """

    path: pathlib.Path

    def open(self):
        """Returns the `SplitZip`; a part that is bad is a `PackError`."""
        try:
            return split_zip.open_zip(self.path)
        except (split_zip.ZipError, OSError) as error:
            raise PackError(str(error)) from error

    def names(self):
        """Lists the names of the members."""
        return list(self.open().members)

    def find(self, name):
        """Returns a member as `Packed`, or `None` if there is none."""
        archive = self.open()
        member = archive.members.get(name)
        if member is None:
            return None

        def read():
            try:
                return archive.read(name)
            except (split_zip.ZipError, OSError) as error:
                raise PackError(str(error)) from error

        return Packed(member.size, self.path.stat().st_mtime_ns, read)


class Build:
    """A corpus that was built for TFDS, with the index of its clips.

    Args:
        folder: `pathlib.Path` of the folder that holds the TFRecord files.

    Attributes:
        facts: dict of what `build.json` says.
        rows: dict by file of dicts by column of `COLUMNS`.
    """

    def __init__(self, folder):
        self.folder = folder
        self.facts = read_facts(folder)
        with open(folder / CLIPS, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise PackError(
                    f"{folder / CLIPS}: the columns must be {list(COLUMNS)}. "
                    f"Received: {reader.fieldnames}"
                )
            self.rows = {row["file"]: row for row in reader}
        # Older builds do not count them.
        count = self.facts.get("clips", len(self.rows))
        if len(self.rows) != count or any(
            None in row.values() for row in self.rows.values()
        ):
            raise PackError(
                f"{folder / CLIPS}: cut off or damaged; copy or build it "
                f"again. Received: {len(self.rows)} of {count} clips"
            )

    @property
    def is_part(self):
        """Whether it was built of a part of the release."""
        # Older builds do not say why they are not complete.
        return self.facts.get("part", not self.facts["complete"])

    def names(self):
        """Lists the names of the clips in the release."""
        return list(self.rows)

    def find(self, name):
        """Returns a clip as `Packed`, or `None` if there is none.

        Raises:
            LeftOutError: if it was left out when the build was made.
            PackError: if its file of the build is missing.
        """
        row = self.rows.get(name)
        if name in self.facts["left_out"]:
            raise LeftOutError(
                f"left out of the build: {self.facts['left_out'][name]}"
            )
        if row is None:
            return None
        shard = self.folder / row["shard"]
        try:
            modified_ns = shard.stat().st_mtime_ns
        except FileNotFoundError:
            raise PackError(
                f"{shard}: this file of the build is missing; copy or build "
                "it again"
            ) from None

        def read():
            with open(shard, "rb") as file:
                file.seek(int(row["offset"]))
                samples = file.read(int(row["bytes"]))
            if zlib.crc32(samples) != int(row["checksum"]):
                raise PackError(
                    f"{shard}: damaged where {name} is; build it again"
                )
            return wav_file(
                samples, self.facts["dtype"], self.facts["sample_rate_hz"]
            )

        return Packed(int(row["source_bytes"]), modified_ns, read)


def wav_file(samples, dtype, sample_rate_hz):
    """Returns the bytes of a WAV file of one channel.

    Args:
        samples: bytes of little-endian samples.
        dtype: str, a key of `WAV_FORMATS`.
        sample_rate_hz: int.
    """
    tag, bits = WAV_FORMATS[dtype]
    width = bits // 8
    head = struct.pack(
        "<4sI8sIHHIIHH4sI",
        b"RIFF",
        36 + len(samples),
        b"WAVEfmt ",
        16,
        tag,
        1,
        sample_rate_hz,
        sample_rate_hz * width,
        width,
        bits,
        b"data",
        len(samples),
    )
    return head + samples


def is_build(folder):
    """Returns whether a folder has both files that tell of a build.

    Others may have a `release` beside a `clips.csv`, or a `build.json`.

    Args:
        folder: `pathlib.Path`.
    """
    return (folder / CLIPS).is_file() and (folder / BUILD).is_file()


def read_facts(folder):
    """Returns what a build says of itself, a dict.

    Args:
        folder: `pathlib.Path` of the build.

    Raises:
        PackError: if that is damaged; it names the file.
    """
    path = folder / BUILD
    try:
        facts = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise PackError(f"{path}: cut off or damaged ({error})") from error
    missing = [name for name in SAID if name not in facts]
    if missing:
        raise PackError(
            f"{path}: must say {', '.join(missing)}, as `audio-tf build` "
            f"writes it. Received: {facts}"
        )
    return facts


def open_build(folder):
    """Returns the `Build` of a folder, read once as long as it is the same."""
    return _open_build(folder, (folder / CLIPS).stat().st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _open_build(folder, modified_ns):
    return Build(folder)


def build_of(release):
    """Returns the `Build` whose lists a folder holds, `None` if it is no such.

    Args:
        release: path of the folder that readers of the corpus are given.
    """
    release = pathlib.Path(release)
    if release.name != RELEASE or not is_build(release.parent):
        return None
    return open_build(release.parent)


def find_build(data_dir, dataset=None):
    """Finds the build of a corpus in a folder.

    Args:
        data_dir: path of the build itself, of a folder above it, or of TFDS'
            own folder.
        dataset: str, the name of the layout that reads its lists; `None` for
            any.

    Returns:
        `pathlib.Path` of the newest build that has this layout, if possible as
        its first, or `None` if there is none.
    """
    data_dir = pathlib.Path(data_dir)
    found = []
    for depth in range(4):
        for path in data_dir.glob("/".join(["*"] * depth + [BUILD])):
            if not is_build(path.parent):
                continue
            facts = read_facts(path.parent)
            if dataset is None or dataset in facts["layouts"]:
                version = [int(part) for part in facts["version"].split(".")]
                # ESC-10 of its own comes before the part of ESC-50, and the
                # default configuration before others.
                own = facts["layouts"][0] == dataset
                found.append((own, version, facts["default"], path.parent))
    return max(found)[3] if found else None
