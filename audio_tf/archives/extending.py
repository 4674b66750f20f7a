"""A plan is made to fit its sources, each time that a run begins.

What is new comes into a part of its own. A shard of which something has
changed is out of date: its other clips are planned anew, or their scores are
moved where the files are gone. An archive is planned anew as a whole.
"""

import os
import typing

from audio_tf.archives import listing, lists, members, places
from audio_tf.archives.lists import Clip


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


class Given(typing.NamedTuple):
    """The files and archives that the sources of a run hold.

    Attributes:
        files: dict by identity of `Clip`, of single files.
        archives: dict by identity of `Clip`, each for a whole archive.
        sources: set of the sources themselves, see `listing.Found`.
    """

    files: dict
    archives: dict
    sources: set


def extend(plan, found, ended=NOTHING, retry_failed=False, base=None):
    """Plans what is new or has changed, and what is to be tried again.

    What has scores and is not there any more keeps them. What has failed
    and is not found any more is forgotten if it was given by mistake, see
    `is_mistake`, and an archive if nothing in it has scores.

    Args:
        plan: `planning.Plan`, which is changed and written.
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
    given = sort_found(found, os.getcwd() if base is None else base)
    known = plan.known_files()
    new = {
        where: clip
        for where, clip in given.files.items()
        if where not in known or has_changed(known[where].clip, clip)
    }
    lists.check_names(
        plan.out,
        [*plan.archives(), *(each.clip for each in known.values())],
        [*new.values(), *given.archives.values()],
    )
    plan.add_files([*new.values()])
    failed = failed_files(known, ended.failed)
    retried = {known[where].shard for where in new if where in known}
    mistakes = forget_mistakes(plan, given, failed)
    if retry_failed:
        retried |= failures_left(plan, ended.failed)
    settled = new.keys() | mistakes.keys()
    rest = {
        where: each
        for where, each in known.items()
        if each.shard in retried and where not in settled
    }
    scored = {
        where
        for where, each in rest.items()
        if each.shard in ended.rows and where not in failed
    }
    renew_shards(plan, rest, scored - present(given))
    plan.outdate(retried & {each.shard for each in known.values()})
    parts = {name.partition("-")[0] for name in retried}
    useless = renew_archives(plan, given.archives, parts, ended)
    plan.save()
    return [each.clip.name for each in mistakes.values()] + useless


def sort_found(found, base):
    """Tells files from archives.

    Args:
        found: iterable of `listing.Found`.
        base: str, the folder that paths are relative to.

    Returns:
        `Given`.
    """
    given = Given({}, {}, set())
    for each in found:
        clip = Clip(
            each.path,
            size=each.size,
            version=each.version,
            base=base,
            source=each.source,
        )
        is_archive = members.is_archive(each.path)
        kind = given.archives if is_archive else given.files
        kind[clip.identity] = clip
        given.sources.add(each.source)
    return given


def present(given):
    """Returns the set of the identities of files that can be read again.

    Args:
        given: `Given`.
    """
    return {
        where
        for where, clip in given.files.items()
        if clip.version is not None or places.is_remote(where)
    }


def has_changed(known, found):
    """Returns whether a file is not what was planned.

    Of one that is not there, or behind a manifest that does not say, nothing
    is known: it has not changed.

    Args:
        known: `Clip` of a file, or `Part` of an archive.
        found: `Clip`, as it is now.
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
        where: each
        for where, each in known.items()
        if each.clip.name in names.get(each.shard, ())
    }


def forget_mistakes(plan, given, failed):
    """Forgets files that failed, are not found, and were given by mistake.

    Args:
        plan: `planning.Plan`.
        given: `Given`.
        failed: dict as `failed_files` returns it.

    Returns:
        Dict like `failed` of what is forgotten.
    """
    mistakes = {
        where: each
        for where, each in failed.items()
        if where not in given.files and is_mistake(each.clip, given.sources)
    }
    for clip, shard in mistakes.values():
        plan.forgotten.setdefault(shard, []).append(clip.name)
    return mistakes


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


def failures_left(plan, failed):
    """Returns the names of shards and parts with failures to try again.

    Args:
        plan: `planning.Plan`.
        failed: dict as of `Ended`.
    """
    return {
        name
        for name, pairs in failed.items()
        if {each for each, _ in pairs}.difference(plan.forgotten.get(name, ()))
    }


def renew_shards(plan, rest, moved):
    """Plans the clips anew that shards out of date have beside what changed.

    Args:
        plan: `planning.Plan`.
        rest: dict of these clips, like that of `Plan.known_files`.
        moved: set of the identities of those whose scores stay.
    """
    again, kept = {}, {}
    for where, (clip, shard) in rest.items():
        if where in moved:
            kept.setdefault(shard, []).append(clip)
        else:
            again.setdefault(clip.base, []).append(clip)
    for clips in again.values():
        plan.add_files(clips)
    for shard, clips in kept.items():
        plan.moved[shard] = plan.add_files(clips).name


def renew_archives(plan, archives, retried, ended):
    """Plans archives that are new, have changed or are to be tried again.

    Args:
        plan: `planning.Plan`.
        archives: dict by identity of `Clip`, those that are given.
        retried: set of the names of parts in which something is tried again.
        ended: `Ended`.

    Returns:
        List of the names of those that are forgotten.
    """
    useless, forgotten = useless_archives(plan, ended), []
    new = dict(archives)
    for part in [each for each in plan.parts if each.archive]:
        where = part.clip.identity
        now = new.pop(where, None)
        if now is None and part.name in useless:
            plan.drop(part)
            forgotten.append(part.clip.name)
        elif (now is not None and has_changed(part, now)) or (
            part.name in retried
            and (part.name in useless or places.exists(where))
        ):
            plan.drop(part)
            now = part if now is None else now
            plan.add(part.archive, now.version, part.base, now.size)
    for clip in new.values():
        plan.add(clip.path, clip.version, clip.base, clip.size)
    return forgotten


def useless_archives(plan, ended):
    """Returns the names of archives' parts that have failures alone.

    Args:
        plan: `planning.Plan`.
        ended: `Ended`.
    """
    return {
        part
        for part, found in plan.listings().items()
        if found is not None
        and (found.failed or found.shards)
        and all(ended.rows.get(each.name) == 0 for each in found.shards)
    }
