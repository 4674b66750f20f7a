"""Shards of the cache filled ahead of training, piece by piece, by anybody.

What is in which shard depends on the clips alone, and is written down first. A
shard is written whole or not at all: whoever fills a set again, after a kill
or on other machines, writes the shards that are missing, with the same bytes.
"""

import dataclasses
import hashlib
import io
import json
import math
import os
import pathlib
import typing

import numpy as np

from audio_tf import files
from audio_tf.ahead import map_ahead
from audio_tf.audio import decode, packed
from audio_tf.data import feature_cache, shards
from audio_tf.data.cache import AudioCache, source_size
from audio_tf.data.clips import Clips
from audio_tf.data.decoding import decode_files
from audio_tf.data.frame_labels import Frames

# To be raised when sets of the same clips are to be other sets.
VERSION = 1
# A shard ends after so many bytes, or a part of a small corpus, so that
# several workers have some.
BYTES, LEAST_BYTES, SHARDS = 2**28, 2**22, 16


@dataclasses.dataclass(frozen=True)
class Shard:
    """A shard that is planned.

    Attributes:
        folder: `pathlib.Path` of its set.
        name: str.
        place: int, the byte of the plan at which its line begins.
        clips: int, how many.
        size: int, bytes, about.
    """

    folder: pathlib.Path
    name: str
    place: int
    clips: int
    size: int

    def items(self):
        """Returns the line of the plan, a list."""
        with open(self.folder / shards.PLAN, "rb") as file:
            file.seek(self.place)
            return json.loads(file.readline())

    def note(self):
        """Returns the `shards.Note`, `None` if it is to be written."""
        return shards.read_note(self.folder / f"{self.name}.json")


def plan(folder, items, shard_bytes=None):
    """Says which clips are in which shard, but for those that are in others.

    A set that is not finished is gone on with if it would be planned as it is
    again; else what it holds is left there, and the rest is a set of its own.

    Args:
        folder: `pathlib.Path`, the folder of the sets.
        items: list of triples of the name of an entry, the bytes that it will
            have, about, and what a worker has to know, fit for JSON.
        shard_bytes: int, bytes of a shard, or `None` for a part of the whole.

    Returns:
        List of `Shard`, of one set; empty if all is in shards of others.
    """
    ended, begun = set(), {}
    for each in shards.sets_in(folder):
        there = set()
        for note in shards.read_notes(each).values():
            there |= {row.entry for row in note.rows} | {*note.failures}
        if (each / shards.WHOLE).is_file():
            ended |= there
        else:
            begun[each] = there
    for own in [*begun, None]:
        # What was in shards when that set was planned, if it is this one.
        there = ended.union(*(begun[each] for each in begun if each != own))
        left = [each for each in items if each[0] not in there]
        name, size = set_of(left, shard_bytes)
        if own is None or own.name == name:
            return arrange(folder / name, left, size) if left else []


def set_of(items, shard_bytes=None):
    """Returns the name of the set of some items, and the bytes of its shards.

    Args:
        items, shard_bytes: see `plan`.
    """
    total = sum(size for _, size, _ in items)
    if shard_bytes is None:
        part = max(LEAST_BYTES, math.ceil(total / SHARDS))
        shard_bytes = min(BYTES, part)
    mark = [VERSION, shard_bytes, [name for name, _, _ in items]]
    digest = hashlib.sha256(json.dumps(mark).encode()).hexdigest()
    return digest[:16], shard_bytes


def arrange(folder, items, shard_bytes):
    """Says which clips are in which shard of a set, and writes it down.

    Args:
        folder: `pathlib.Path` of the set.
        items: list, see `plan`; not empty.
        shard_bytes: int.

    Returns:
        List of `Shard`.
    """
    groups, size = [], math.inf
    for _, more, item in items:
        if size + more > shard_bytes:
            groups.append([[], 0])
            size = 0
        groups[-1][0].append(item)
        size += more
        groups[-1][1] = size
    found, lines, place = [], [], 0
    for number, (group, size) in enumerate(groups):
        found.append(Shard(folder, f"{number:05d}", place, len(group), size))
        lines.append(json.dumps(group) + "\n")
        place += len(lines[-1])
    text, path = "".join(lines), folder / shards.PLAN
    # Shards of samples that features are of may be others than before.
    if not path.is_file() or path.read_text("ascii") != text:
        folder.mkdir(parents=True, exist_ok=True)
        with files.whole_file(path, shared=True) as new:
            new.write_text(text, "ascii")
    return found


def finish(planned):
    """Says that a set is whole, and removes what killed workers have left.

    Args:
        planned: list of all `Shard` of the set, each of them written.
    """
    folder = planned[0].folder
    kept = {shard.note().file for shard in planned}
    kept |= {f"{shard.name}.json" for shard in planned} | {shards.PLAN}
    for path in folder.iterdir():
        if path.name not in kept:
            path.unlink(missing_ok=True)
    (folder / shards.WHOLE).touch()


def audio_items(cache, sources, beside=lambda samples: 0):
    """Lists audio files for a `plan`.

    Args:
        cache: `AudioCache`.
        sources: list of paths of files.
        beside: function of the samples of clips, an int array, to the bytes
            that each needs beside its samples.

    Returns:
        Pair of the list of items, and a dict of the reason by the path of
        each file that has none.
    """
    rate_hz = int(cache.directory.name.partition("-")[0])

    def look(source):
        try:
            return cache.entry(source).name, samples_of(source, rate_hz), None
        except FileNotFoundError:
            return None, 0, "no such file"
        except (OSError, ValueError) as error:
            return None, 0, str(error)

    items, failures = [], {}
    looked = map_ahead(look, sources, 2 * (os.cpu_count() or 1))
    for source, (name, samples, reason) in zip(sources, looked, strict=True):
        if reason is not None:
            failures[str(source)] = reason
            continue
        items.append((name, samples, os.path.abspath(source)))
    extra = np.broadcast_to(
        beside(np.array([size for _, size, _ in items], np.int64)), len(items)
    )
    items = [
        (name, 4 * size + int(more), item)
        for (name, size, item), more in zip(items, extra, strict=True)
    ]
    return items, failures


def samples_of(source, rate_hz):
    """Returns how many samples a file has at a rate, 0 if it does not say.

    A FLAC that was written to a pipe claims 2^63 - 1, for which no disk has
    room.
    """
    try:
        if os.path.isfile(source):
            file = open(source, "rb")
        else:
            file = io.BytesIO(packed.read_bytes(source))
        with file, decode.open_sound(file, source) as found:
            samples = math.ceil(found.frames * rate_hz / found.samplerate)
            return samples if samples <= decode.MAX_SAMPLES else 0
    except (OSError, ValueError, RuntimeError):
        return 0  # Whoever decodes it says why.


def write_audio(shard, cache_dir, sample_rate_hz, decoder):
    """Decodes the clips of a shard into it.

    Args:
        shard: `Shard` of `audio_items`.
        cache_dir: folder of the cache.
        sample_rate_hz: int.
        decoder: str, a key of `DECODERS`.
    """
    if shard.note() is not None:
        return
    cache = AudioCache(cache_dir, sample_rate_hz, decoder)
    sources, entries, failures = [], [], {}
    for source in shard.items():
        try:
            entries.append(cache.entry(source))
            sources.append(source)
        except (OSError, ValueError) as error:
            failures[source] = source, str(error)

    def records():
        missing = set(range(len(sources)))
        for row, audio, error in decode_files(sources, sample_rate_hz, decoder):
            missing.remove(row)
            name = entries[row].name
            if error:
                failures[name] = sources[row], error
                continue
            try:
                digest = shards.digest_of(sources[row])
                same = cache.entry(sources[row]) == entries[row]
            except (OSError, packed.PackError) as error:
                failures[name] = sources[row], str(error)
                continue
            if same:
                yield name, digest, audio
            else:
                failures[name] = sources[row], "it changed as it was read"
        for row in missing:
            reason = f"not decoded by {decoder}"
            failures[entries[row].name] = sources[row], reason

    shards.write(shard.folder, shard.name, records(), failures)


def feature_items(samples, cache, features, keep=lambda seconds: True):
    """Lists what is in shards of samples for a `plan` of features.

    Args:
        samples: dict of `shards.Found` by the path of the entry.
        cache: `feature_cache.FeatureCache`.
        features: as `cache_features` takes it.
        keep: function of the seconds of a clip to whether it has features.

    Returns:
        List of items.
    """
    lengths = np.array([each.row.length for each in samples.values()])
    frames = Frames.of(features).lengths(lengths) if len(lengths) else ()
    return [
        (
            cache.entry_of(entry).name,
            4 * features.dim * int(count),
            [os.fspath(entry), os.fspath(found.shard), found.row],
        )
        for (entry, found), count in zip(samples.items(), frames, strict=True)
        if keep(found.row.length / features.sample_rate_hz)
    ]


def write_features(shard, features, sample_rate_hz):
    """Computes the features of the clips of a shard into it.

    Args:
        shard: `Shard` of `feature_items`.
        features: as `cache_features` takes it.
        sample_rate_hz: int.
    """
    if shard.note() is not None:
        return
    found = {
        pathlib.Path(entry): shards.Found(pathlib.Path(path), shards.Row(*row))
        for entry, path, row in shard.items()
    }
    clips = clips_of(found, sample_rate_hz)

    def records():
        for row, x in feature_cache.computed(clips, features):
            entry = clips.entries[row]
            yield entry.name, found[entry].row.digest, x

    shards.write(shard.folder, shard.name, records(), {})


class Unlabelled(typing.NamedTuple):
    """Files of which nothing is known.

    Attributes:
        files: list of paths.
    """

    files: list

    def targets(self):
        """Returns zeros, float32 `(files, 0)`."""
        return np.zeros((len(self.files), 0), np.float32)


def clips_of(found, sample_rate_hz):
    """Returns what is in shards as `Clips`.

    Args:
        found: dict of `shards.Found` by the path of the entry.
        sample_rate_hz: int.
    """
    rows = [each.row for each in found.values()]
    return Clips(
        Unlabelled(list(found)),
        list(found),
        np.array([row.length for row in rows], np.int64),
        sample_rate_hz,
        {},
        np.array([source_size(entry) for entry in found], np.int64),
        np.array([row.checksum for row in rows], np.uint32),
        in_shards=found,
    )
