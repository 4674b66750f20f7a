"""Workers of one machine take what they do next, each thing once.

Beam's local runner deals all shards out before the first is scored, and then
waits for the worker whose share takes longest. Here a worker takes a shard
when it has ended one.
"""

import contextlib
import dataclasses
import os
import shutil
import tempfile
import time

from audio_tf import files
from audio_tf.archives import lists, places
from audio_tf.archives.planning import Todo

# Between two looks at what another worker lists.
LOOK_S = 0.1
CLAIMS = ".claims-"


def claims_in(out):
    """Makes the folder of a run's `Turns.claims`.

    It removes those that killed runs have left: a worker that outlived one
    takes no shard any more.

    Args:
        out: str, the folder of the results, which no other run works in.

    Returns:
        Context of its path.
    """
    if places.is_remote(out):
        return tempfile.TemporaryDirectory(prefix="audio_tf_")
    for name in os.listdir(out):
        if name.startswith(CLAIMS):
            shutil.rmtree(os.path.join(out, name), ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=CLAIMS, dir=out)


@dataclasses.dataclass(frozen=True)
class Turns:
    """The work that is left, as whoever runs the pipeline has found it.

    Attributes:
        out: str, the folder of the results.
        claims: str, a folder on this machine, empty when a run begins, in
            which workers say what they have taken.
        todo: `planning.Todo`.
    """

    out: str
    claims: str
    todo: Todo

    def take(self, count):
        """Yields the names of shards as long as there are any for a worker.

        Archives are listed first, and by one worker at a time; the others
        score what is known meanwhile. A packed archive is best read from its
        beginning to its end, so that it is one worker's until nothing else is
        left.

        Args:
            count: function of a str, called with `"archives"` for each that
                is listed here.
        """
        known, unlisted = list(self.todo.shards), list(self.todo.unlisted)
        reading = None
        while True:
            for part in list(unlisted):
                found = self.listed(part, count)
                if found is not None:
                    unlisted.remove(part)
                    known += found.shards
            shard = self.taken(known, reading)
            if shard is not None:
                reading = shard.place[0]
                yield shard.name
            elif unlisted:
                time.sleep(LOOK_S)
            else:
                return

    def listed(self, part, count):
        """Lists an archive, unless another worker does.

        Args:
            part: `lists.Part`.
            count: function, see `take`.

        Returns:
            `lists.Listing`, or `None` if another worker is at it.
        """
        # A lock ends with its process, which may be killed.
        with open(os.path.join(self.claims, f"{part.name}.lock"), "w") as file:
            # Of files without locks another may list it, too, and comes to
            # the same.
            if not files.take_lock(file):
                return None
            there = places.names_in(places.join(self.out, lists.LISTS))
            if f"{part.name}.parquet" in there:
                return lists.read_list(self.out, part.name)
            count("archives")
            return lists.list_archive(self.out, part)

    def taken(self, known, reading):
        """Takes a shard.

        Args:
            known: list of `lists.Shard`, of which those are removed that are
                taken.
            reading: str, the part of the shard that was scored before, or
                `None`.

        Returns:
            `lists.Shard`, or `None` if none is left.
        """
        claimed = set(os.listdir(self.claims))
        begun = {name.partition("-")[0] for name in claimed}
        known[:] = [each for each in known if each.name not in claimed]

        def rank(shard):
            part = shard.place[0]
            if part not in self.todo.packed:
                return 2, *lists.by_size(shard)
            if part == reading:
                return 0, shard.name
            return 3 if part in begun else 1, shard.name

        for shard in sorted(known, key=rank):
            known.remove(shard)
            if self.claim(shard.name):
                return shard
        return None

    def claim(self, name):
        """Returns whether a name was not taken before, and takes it."""
        with contextlib.suppress(FileExistsError):
            with open(os.path.join(self.claims, name), "x"):
                return True
        return False
