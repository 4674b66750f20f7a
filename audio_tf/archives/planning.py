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
import typing

from audio_tf.archives import lists, members, places, tables
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


class Planned(typing.NamedTuple):
    """A file that is planned.

    Attributes:
        clip: `Clip`.
        shard: str, the name of the shard that it is in.
    """

    clip: Clip
    shard: str


def shard_path(out, shard):
    """Returns the path of the scores of a shard, by its name."""
    return places.join(out, SCORES, f"{shard}.parquet")


class Plan:
    """The plan of a folder of results; `extending` makes it fit the sources.

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
        saved: set of the names of the parts that were there already.
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
        self.saved = {part.name for part in self.parts}

    def save(self):
        """Writes the plan, whole or not at all.

        A run that was killed before it did may have listed files by a name
        that is a new archive's now: that list is removed.
        """
        new = {
            f"{part.name}.parquet"
            for part in self.parts
            if part.archive and part.name not in self.saved
        }
        folder = places.join(self.out, lists.LISTS)
        places.remove(
            places.join(folder, name)
            for name in places.names_in(folder)
            if name in new
        )
        content = {
            "parts": [part._asdict() for part in self.parts],
            "stale": sorted(self.stale),
            "dropped": self.dropped,
            "forgotten": self.forgotten,
            "moved": self.moved,
        }
        text = json.dumps(content, indent=1)
        places.write(places.join(self.out, PLAN), text.encode())

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

    def drop(self, part):
        """Says that a `Part` is out of date as a whole."""
        self.parts.remove(part)
        self.dropped.append(part.name)

    def outdate(self, shards):
        """Says that shards, a set of names, are out of date.

        What is forgotten of them need not be known any more.
        """
        self.stale |= shards
        self.forgotten = {
            shard: names
            for shard, names in self.forgotten.items()
            if shard not in self.stale
        }

    def archives(self):
        """Returns the planned archives, list of `Clip`."""
        return [part.clip for part in self.parts if part.archive]

    def known_files(self):
        """Returns the files that are planned.

        Returns:
            Dict of `Planned` by identity, the path from whatever folder.
        """
        known = {}
        for part in self.parts:
            if part.archive is None:
                for shard, clips in lists.read_part(self.out, part.name):
                    if shard not in self.stale:
                        left_out = self.forgotten.get(shard, ())
                        for clip in clips:
                            if clip.name not in left_out:
                                known[clip.identity] = Planned(clip, shard)
        return known

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
