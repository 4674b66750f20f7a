"""The plan: clips in shards, written down before any is scored.

In the folder of the results are

    plan.json       the parts of the plan, and the shards that are out of date
    plan/0000.parquet       the clips of a part, a row group for each shard
    scores/0000-00000.parquet       what a shard has come to

A part is the files that one run has found new, or one archive, whose members
are listed by a worker. A shard's name and its clips never change: what has to
be scored anew comes into a new part, and the shards that it was in are out of
date and removed. Scores of files that are no longer there are moved into a new
part before, since nobody could compute them again.
"""

import json
import os
import typing

from audio_tf.archives import listing, lists, members, places, tables
from audio_tf.archives.lists import Clip, Part

PLAN, SCORES = "plan.json", "scores"


class Todo(typing.NamedTuple):
    """The part of a plan that is to be done.

    Attributes:
        shards: list of the `lists.Shard` that have no file, the largest first.
        unlisted: list of the `lists.Part` of archives that are not listed.
        packed: set of the names of parts whose archive can be read from its
            beginning alone.
    """

    shards: list
    unlisted: list
    packed: set


class Ended(typing.NamedTuple):
    """The content of the files of scores, and what failed.

    Attributes:
        rows: dict by the names of shards that are done of their rows.
        failed: dict by the names of shards, and of parts for archives, of
            lists of pairs of a name and a reason.
    """

    rows: dict
    failed: dict


NOTHING = Ended({}, {})


def shard_path(out, shard):
    """Returns the path of the scores of a shard, by its name."""
    return places.join(out, SCORES, f"{shard}.parquet")


class Plan:
    """The plan of a folder of results; `extend` makes it fit the sources.

    Args:
        out: str, the folder.

    Attributes:
        parts: list of `Part` that are up to date.
        stale: set of the names of shards that are out of date.
        dropped: list of the names of parts that are out of date as a whole.
        forgotten: dict by the names of shards of lists of the names of clips
            in them that have failed and are not wanted any more.
        moved: dict by the names of shards that are out of date of the name of
            the part that has those of their clips whose scores stay.
    """

    def __init__(self, out):
        self.out = out
        try:
            known = json.loads(places.read(places.join(out, PLAN)))
        except FileNotFoundError:
            known = {"parts": [], "stale": [], "dropped": []}
        self.parts = [Part(**part) for part in known["parts"]]
        self.stale = set(known["stale"])
        self.dropped = known["dropped"]
        self.forgotten = known.get("forgotten", {})
        self.moved = known.get("moved", {})

    def save(self):
        """Writes the plan, whole or not at all."""
        content = {
            "parts": [part._asdict() for part in self.parts],
            "stale": sorted(self.stale),
            "dropped": self.dropped,
            "forgotten": self.forgotten,
            "moved": self.moved,
        }
        text = json.dumps(content, indent=1)
        places.write(places.join(self.out, PLAN), text.encode())

    def extend(self, found, ended=NOTHING, retry_failed=False, base=None):
        """Plans what is new or has changed, and what is to be tried again.

        What has scores and is not there any more keeps them. What has failed
        and is not found any more is forgotten if it was given by mistake, see
        `is_mistake`, and an archive if nothing in it has scores.

        Args:
            found: iterable of `listing.Found`.
            ended: `Ended`, of what is planned already.
            retry_failed: bool, whether shards and archives in which something
                has failed are scored anew.
            base: str, the folder that paths are relative to, or `None` for
                that of this process.

        Returns:
            List of the names that are forgotten.

        Raises:
            ValueError: as `lists.check_names`.
        """
        base = os.getcwd() if base is None else base
        retried, archives, new, sources = set(), {}, {}, set()
        known, there = self.known_files(), set()
        failed = failed_files(known, ended.failed)
        failures = dict(failed)
        for each in found:
            sources.add(each.source)
            where = Clip(each.path, base=base).identity
            failures.pop(where, None)
            if members.is_archive(each.path):
                archives[where] = each
                continue
            clip, shard = known.get(where, (None, None))
            if each.version is not None or places.is_remote(where):
                there.add(where)
            if clip is None or has_changed(clip, each):
                new[where] = each
                retried |= {shard} - {None}
        clips = [
            Clip(
                each.path,
                size=each.size,
                version=each.version,
                base=base,
                source=each.source,
            )
            for each in new.values()
        ]
        archived = [
            Clip(part.archive, base=part.base)
            for part in self.parts
            if part.archive
        ]
        lists.check_names(
            self.out,
            [*archived, *(clip for clip, _ in known.values())],
            [
                *clips,
                *(Clip(each.path, base=base) for each in archives.values()),
            ],
        )
        self.add_files(clips)
        forgotten = []
        for where, (clip, shard) in failures.items():
            if is_mistake(clip, sources):
                self.forgotten.setdefault(shard, []).append(clip.name)
                forgotten.append(clip.name)
                del known[where]
        if retry_failed:
            retried |= {
                name
                for name, pairs in ended.failed.items()
                if {each for each, _ in pairs}.difference(
                    self.forgotten.get(name, ())
                )
            }
        # The other clips of shards that are scored anew.
        rest, kept = {}, {}
        for where, (clip, shard) in known.items():
            if shard in retried and where not in new:
                scored = shard in ended.rows and where not in failed
                if scored and where not in there:
                    kept.setdefault(shard, []).append(clip)
                else:
                    rest.setdefault(clip.base, []).append(clip)
        for each in rest.values():
            self.add_files(each)
        for shard, each in kept.items():
            self.moved[shard] = self.add_files(each).name
        self.stale |= {name for name in retried if "-" in name}
        self.forgotten = {
            shard: names
            for shard, names in self.forgotten.items()
            if shard not in self.stale
        }
        retried |= {name.partition("-")[0] for name in retried}
        useless = self.useless_archives(ended)
        for part in [each for each in self.parts if each.archive]:
            where = Clip(part.archive, base=part.base).identity
            seen = archives.pop(where, None)
            if seen is None and part.name in useless:
                self.parts.remove(part)
                self.dropped.append(part.name)
                forgotten.append(Clip(part.archive).name)
            elif (seen is not None and has_changed(part, seen)) or (
                part.name in retried
                and (part.name in useless or places.exists(where))
            ):
                self.parts.remove(part)
                self.dropped.append(part.name)
                now = part if seen is None else seen
                self.add(part.archive, now.version, part.base, now.size)
        for each in archives.values():
            self.add(each.path, each.version, base, each.size)
        self.save()
        return forgotten

    def add_files(self, clips):
        """Adds a part for files, if there are any, and returns it."""
        if not clips:
            return None
        part = self.add()
        lists.write_list(self.out, part.name, clips)
        return part

    def add(self, archive=None, version=None, base="", size=None):
        """Adds a `Part` under a name that none has had, and returns it."""
        names = [part.name for part in self.parts] + self.dropped
        name = f"{max(map(int, names), default=-1) + 1:04d}"
        self.parts.append(Part(name, archive, version, base, size))
        return self.parts[-1]

    def known_files(self):
        """Returns the files that are planned.

        Returns:
            Dict by path, from whatever folder, of pairs of `Clip` and the
            name of its shard.
        """
        known = {}
        for part in self.parts:
            if part.archive is None:
                for shard, clips in lists.read_part(self.out, part.name):
                    if shard not in self.stale:
                        left_out = self.forgotten.get(shard, ())
                        for clip in clips:
                            if clip.name not in left_out:
                                known[clip.identity] = clip, shard
        return known

    def useless_archives(self, ended):
        """Returns the names of archives' parts that have failures alone."""
        return {
            part
            for part, found in self.listings().items()
            if found is not None
            and (found.failed or found.shards)
            and all(ended.rows.get(each.name) == 0 for each in found.shards)
        }

    def listings(self):
        """Returns the `Listing` of each part, by name.

        It is `None` where an archive is not listed yet. Shards that are out
        of date are left out.
        """
        there = places.names_in(places.join(self.out, lists.LISTS))
        listings = {}
        for part in self.parts:
            found = None
            if f"{part.name}.parquet" in there:
                found = lists.read_list(self.out, part.name)
                found = found._replace(
                    shards=[
                        shard
                        for shard in found.shards
                        if shard.name not in self.stale
                    ]
                )
            listings[part.name] = found
        return listings

    def clear(self):
        """Removes what is out of date, and what killed processes have left.

        Scores that stay are moved before, also those of a killed run.
        """
        names = places.names_in(places.join(self.out, SCORES))
        for shard, part in self.moved.items():
            if f"{shard}.parquet" in names:
                self.move(shard, part, names)
        old = [
            name
            for name in names
            if name.startswith(".")
            or name.removesuffix(".parquet") in self.stale
            or name.partition("-")[0] in self.dropped
        ]
        places.remove(places.join(self.out, SCORES, name) for name in old)

    def move(self, shard, part, names):
        """Writes the scores of a part from those of a shard, once.

        A process that outlived its run may have written the shard again, when
        its files were gone.

        Args:
            shard: str, the name of a shard that is out of date.
            part: str, the name of the part that has some of its clips.
            names: list of str, the files of scores that are there.
        """
        old = shard_path(self.out, shard)
        for name, clips in lists.read_part(self.out, part):
            if name not in self.stale and f"{name}.parquet" not in names:
                found = tables.pick(old, {clip.name for clip in clips})
                tables.write(shard_path(self.out, name), found)

    def done(self):
        """Returns the names of the shards that are scored, a set."""
        names = places.names_in(places.join(self.out, SCORES))
        return {
            name.removesuffix(".parquet")
            for name in names
            if not name.startswith(".")
        }

    def todo(self):
        """Returns what is to be done, a `Todo`."""
        done, shards, unlisted = self.done(), [], []
        listings = self.listings()
        for part in self.parts:
            if listings[part.name] is None:
                unlisted.append(part)
            else:
                shards += [
                    shard
                    for shard in listings[part.name].shards
                    if shard.name not in done
                ]
        packed = {
            part.name
            for part in self.parts
            if part.archive and members.is_packed(part.archive)
        }
        return Todo(lists.largest_first(shards), unlisted, packed)


def has_changed(known, found):
    """Returns whether a file is not what was planned.

    Of one that is not there, or behind a manifest that does not say, nothing
    is known: it has not changed.

    Args:
        known: `Clip` of a file, or `Part` of an archive.
        found: `listing.Found`.
    """
    if found.version is None:
        return False
    # Copies and archives that are unpacked keep a time.
    sizes = {known.size, found.size} - {None}
    return known.version != found.version or len(sizes) > 1


def failed_files(known, failed):
    """Returns those of some planned files that have failed.

    Args:
        known: dict as of `Plan.known_files`.
        failed: dict as of `Ended`.

    Returns:
        Dict like `known`.
    """
    names = {
        shard: {name for name, _ in pairs} for shard, pairs in failed.items()
    }
    return {
        where: (clip, shard)
        for where, (clip, shard) in known.items()
        if clip.name in names.get(shard, ())
    }


def is_mistake(clip, sources):
    """Returns whether a file that failed, and is not found, was a mistake.

    It was if it was a source itself, if the folder, the pattern or the manifest
    that had it is given again, or if it is not there.

    Args:
        clip: `Clip`.
        sources: set of the sources of this run, see `listing.Found`.
    """
    where = clip.identity
    if clip.source is not None and clip.source in {where, *sources}:
        return True
    if places.is_remote(where):
        return False
    return listing.local_version(where) == (None, None)
