"""Clips to TFRecord files: each written whole or not at all, in any order.

Which clip is in which file depends on the clips alone. A file is a piece of
work that any process or machine may do, and that is done once: a build that
was killed goes on with the files that are missing.
"""

import argparse
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import secrets
import shutil
import tempfile
import typing

import numpy as np

from audio_tf import files, pipelines
from audio_tf.ahead import map_ahead
from audio_tf.audio.decode import AudioError
from audio_tf.builders.records import AudioFormat, encode

# What `tfds.load` reads best is 64 MiB and more.
SHARD_BYTES = 2**26

# The bytes of a record of TFRecord before and after its content: length and
# checksum of the length, and the checksum of the content.
HEAD, TAIL = 12, 4

# What TFDS' settings say of downloads, where there are none.
OF_DOWNLOADS = (
    "extract_dir",
    "manual_dir",
    "override_max_simultaneous_downloads",
    "try_download_gcs",
    "verify_ssl",
)


@dataclasses.dataclass(frozen=True)
class Shard:
    """A file of records, to be written.

    Attributes:
        split: str.
        name: str, the name of the file.
        clips: tuple of `Clip`, in their order in the file.
    """

    split: str
    name: str
    clips: tuple


def check_download_config(config):
    """Raises a `ValueError` if TFDS is to build otherwise than is done here.

    Args:
        config: `tfds.download.DownloadConfig`.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name not in OF_DOWNLOADS and value != field.default:
            raise ValueError(
                f"`download_config.{field.name}` counts for nothing here: "
                "`shard_bytes`, `workers` and `beam_options` of the builder "
                "say how it builds, and it builds all of its release. "
                f"Received: {field.name}={value!r}"
            )


def plan(splits, found, growth, name_of, shard_bytes=SHARD_BYTES):
    """Says which clip goes into which file.

    Clips are in the order of a hash of their names, so that those of one
    label do not stand together, and whoever plans the same clips has the same
    files.

    Args:
        splits: dict by split of lists of `Clip`.
        found: dict by name of the size and the time of change of each clip's
            file.
        growth: float, bytes of a record by bytes of its clip's file.
        name_of: function of the split, the number of the file and their count
            to the file's name.
        shard_bytes: int, bytes of a file, about.

    Returns:
        List of `Shard`.
    """
    shards = []
    for split, clips in splits.items():
        ordered = sorted(clips, key=lambda clip: hashed(clip.name))
        total = growth * sum(found[clip.name][0] for clip in clips)
        count = min(max(1, math.ceil(total / shard_bytes)), len(clips))
        for index, rows in enumerate(np.array_split(range(len(clips)), count)):
            chosen = tuple(ordered[row] for row in rows)
            shards.append(Shard(split, name_of(split, index, count), chosen))
    return shards


def hashed(name):
    """Returns the SHA-256 of a name, hexadecimal."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


def write_shard(shard, folder, encoded, skip_bad=False):
    """Writes a file of records and beside it what is in it.

    Args:
        shard: `Shard`.
        folder: `pathlib.Path` that both are written to.
        encoded: iterable of pairs of a `Clip` of the shard and its `Encoded`,
            or the `AudioError` that says why it has none.
        skip_bad: bool, whether clips that cannot be read are left out.

    Raises:
        AudioError: if a clip cannot be read, unless `skip_bad`.
    """
    import tensorflow as tf

    rows, failures, place = [], {}, 0
    # Two machines may write one file at once; the first whole one stays.
    path = folder / f".{shard.name}.{secrets.token_hex(8)}"
    try:
        with tf.io.TFRecordWriter(os.fspath(path)) as writer:
            for clip, each in encoded:
                if isinstance(each, AudioError):
                    if not skip_bad:
                        raise each
                    failures[clip.name] = each.reason
                    continue
                writer.write(each.record)
                begin = place + HEAD + each.place
                rows.append([clip.name, begin, each.size, each.checksum])
                place += HEAD + len(each.record) + TAIL
        os.replace(path, folder / shard.name)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    note = {"rows": rows, "failures": failures, "bytes": place}
    # The note is last: a file with a note is whole.
    path.write_text(json.dumps(note), "utf-8")
    os.replace(path, note_of(shard, folder))


def note_of(shard, folder):
    """Returns the path of what `write_shard` writes beside a file."""
    return folder / f"{shard.name}.json"


def read_note(shard, folder, skip_bad=True):
    """Returns what is in a file, if it was written whole, else `None`.

    Args:
        shard: `Shard`.
        folder: `pathlib.Path` of the file.
        skip_bad: bool, whether clips may be left out; if not, a file that was
            written without one is to be written again.

    Returns:
        Dict of `rows`, lists of a clip's name, first byte, bytes and CRC-32
        of its samples; `failures`, reasons by the names of the clips that were
        left out; and `bytes`, the size of the file.
    """
    try:
        note = json.loads(note_of(shard, folder).read_text("utf-8"))
        there = (folder / shard.name).stat().st_size
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    # The build that was stopped may have had another flag.
    lacks = note["failures"] and not skip_bad
    return note if there == note["bytes"] and not lacks else None


def encode_ahead(clips, encode_one, workers):
    """Encodes clips by threads, a few ahead of what is asked for, in order.

    Memory does not grow with their number.

    Args:
        clips: list of `Clip`.
        encode_one: function of a `Clip` to its `Encoded`.
        workers: int, how many threads.

    Returns:
        Generator of pairs of a `Clip` and its `Encoded`, or its `AudioError`.
    """

    def attempt(clip):
        try:
            return clip, encode_one(clip)
        except AudioError as error:
            return clip, error

    return map_ahead(attempt, clips, workers)


def write_missing(shards, folder, encode_one, workers, skip_bad, bar):
    """Writes the files that are not there yet, by all cores.

    Args:
        shards: list of `Shard`.
        folder: `pathlib.Path`.
        encode_one: function of a `Clip` to its `Encoded`.
        workers: int, how many threads.
        skip_bad: bool, see `write_shard`.
        bar: progress bar of tqdm, that counts clips.
    """
    for shard in shards:
        if read_note(shard, folder, skip_bad) is not None:
            bar.update(len(shard.clips))
            continue

        def counted(encoded):
            for each in encoded:
                yield each
                bar.update()

        encoded = encode_ahead(shard.clips, encode_one, workers)
        write_shard(shard, folder, counted(encoded), skip_bad)


class ShardTask(typing.NamedTuple):
    """The writing of one file, with everything that a machine needs for it.

    Attributes:
        shard: `Shard`; its clips' paths must be those of that machine.
        folder: str, where the file goes and TFDS' features are described, seen
            by all machines.
        audio_format: `AudioFormat`.
        skip_bad: bool, see `write_shard`.
    """

    shard: Shard
    folder: str
    audio_format: AudioFormat
    skip_bad: bool

    def run(self):
        """Writes the file and returns its name."""
        features = features_of(self.folder)
        write_shard(
            self.shard,
            pathlib.Path(self.folder),
            ((clip, self.attempt(clip, features)) for clip in self.shard.clips),
            self.skip_bad,
        )
        return self.shard.name

    def attempt(self, clip, features):
        """Returns the `Encoded` of a clip, or its `AudioError`."""
        try:
            return encode(clip, self.audio_format, features)
        except AudioError as error:
            return error


def features_of(folder):
    """Returns TFDS' features, as `save_config` described them in a folder."""
    import tensorflow_datasets as tfds

    return tfds.features.FeatureConnector.from_config(folder)


def describe_features(features):
    """Returns a text that tells TFDS' features from others, labels included."""
    with tempfile.TemporaryDirectory() as folder:
        features.save_config(folder)
        written = sorted(pathlib.Path(folder).iterdir())
        return "".join(f"{each.name}{each.read_text()}" for each in written)


def write_by_beam(tasks, options):
    """Writes files on Apache Beam.

    Args:
        tasks: list of `ShardTask`.
        options: list of str, Beam's own flags, for example
            `["--runner=FlinkRunner"]`.

    Raises:
        ImportError: if Beam is not installed.
        OSError: if no job service answers where the flags say.
        RuntimeError: if the pipeline has ended without having written all.
        ValueError: if Beam's runner of this machine knows no such flag.
    """
    pipelines.need(["apache_beam"])
    parser = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, exit_on_error=False
    )
    parser.add_argument("--runner")
    named, flags = parser.parse_known_args(options)
    if named.runner is not None:
        flags = pipelines.remote_options(named.runner, flags)
    pipelines.check_options(flags, local=named.runner is None)
    pipelines.run(run_task, tasks, flags)


def run_task(task):
    """Does a `ShardTask`; a function of a module, which Beam can send."""
    return ShardTask(*task).run()


def fingerprint(shards, found, audio_format, features):
    """Returns a checksum of all that says what the files hold.

    Files of another fingerprint are none of this build.

    Args:
        shards: list of `Shard`.
        found: dict by name of the size and the time of change of each clip's
            file.
        audio_format: `AudioFormat`.
        features: str, see `describe_features`.
    """
    digest = hashlib.sha256(f"{audio_format}{features}".encode())
    for shard in shards:
        for clip in shard.clips:
            facts = [shard.name, clip.name, *found[clip.name], clip.features]
            digest.update(json.dumps(facts, default=np.ndarray.tolist).encode())
    return digest.hexdigest()


def keep_or_clear(folder, mark):
    """Makes a folder for the files of a build, without those of another.

    Args:
        folder: `pathlib.Path`.
        mark: str, the `fingerprint` of the build.
    """
    path = folder / "fingerprint"
    if path.is_file() and path.read_text("utf-8") == mark:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files.write_text(path, mark)
