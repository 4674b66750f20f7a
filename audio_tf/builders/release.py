"""A corpus as its authors released it, and its checks before it is built."""

import contextlib
import dataclasses
import hashlib
import pathlib

from tqdm.auto import tqdm

from audio_tf.audio import packed
from audio_tf.audio.audio_files import audio_below
from audio_tf.corpora.lists import check_utf8
from audio_tf.terminal import first_names

BLOCK = 2**22  # Bytes that are read at a time for a checksum.


class ReleaseError(ValueError):
    """A release that is not as it was published; the message says where."""


@dataclasses.dataclass(frozen=True)
class Clip:
    """One clip of a release.

    Attributes:
        file: path of its audio, which may be packed, see `audio.packed`.
        name: str, that path within the release, with `/` between folders.
        features: dict of all that TFDS' example has beside audio and name.
    """

    file: pathlib.Path
    name: str
    features: dict


@dataclasses.dataclass(frozen=True)
class Release:
    """The clips and lists found in the folder of a release.

    Attributes:
        source: `pathlib.Path` of the folder.
        splits: dict by split of lists of `Clip`.
        features: dict of TFDS' features by the name of each of `Clip`.
        lists: paths within the release of the text files that readers of
            audio_tf need beside the audio.
        folders: paths within the release of the folders whose audio must all
            be listed.
        report: dict of lists of names by a text that says what did not fit
            when the lists were read, or what clips lack that are built
            nonetheless. A build counts them.
    """

    source: pathlib.Path
    splits: dict
    features: dict
    lists: list = dataclasses.field(default_factory=list)
    folders: list = dataclasses.field(default_factory=list)
    report: dict = dataclasses.field(default_factory=dict)

    def clips(self):
        """Returns the clips of all splits, a list."""
        return [clip for clips in self.splits.values() for clip in clips]


def make_clips(source, files, features):
    """Makes a list of `Clip` from files and an iterable of their features.

    Args:
        source: `pathlib.Path` of the release.
        files: list of paths in it.
        features: list of dicts, one for each.

    Raises:
        ValueError: if the name of a clip is not UTF-8, as all text of TFDS is.
    """
    clips = [
        Clip(file, pathlib.Path(file).relative_to(source).as_posix(), each)
        for file, each in zip(files, features, strict=True)
    ]
    for clip in clips:
        check_utf8(f"{source}: the name of a clip", clip.name)
    return clips


def check_files(release, skip_bad):
    """Finds clips that are listed and not there, or there and not listed.

    Args:
        release: `Release`.
        skip_bad: bool, whether clips that are not there are left out.

    Returns:
        Pair of a dict by name of the size in bytes and the time of change of
        each clip's file, and a dict of reasons by the names of those that
        are left out.

    Raises:
        ReleaseError: if clips are not there, unless `skip_bad`, or if audio
            is in no list. It counts them and names the first.
    """
    found, missing = {}, {}
    for clip in release.clips():
        try:
            found[clip.name] = packed.status(clip.file)
        except FileNotFoundError:
            missing[clip.name] = "no such file"
        except packed.LeftOutError as error:
            missing[clip.name] = str(error)
    if missing and not skip_bad:
        raise ReleaseError(
            f"{release.source}: {len(missing)} of "
            f"{len(missing) + len(found)} clips are listed and not there; "
            f"--skip-bad leaves them out. Received: {first_names(missing)}"
        )
    listed = {clip.name for clip in release.clips()}
    there = []
    for folder in release.folders:
        # All that is listed in one that is not there is left out.
        with contextlib.suppress(FileNotFoundError):
            there += [
                file.relative_to(release.source).as_posix()
                for file in audio_below(release.source / folder)
            ]
    others = sorted(set(there) - listed)
    if others:
        raise ReleaseError(
            f"{release.source}: {len(others)} audio files are in no list. "
            f"Received: {first_names(others)}"
        )
    return found, missing


def check_unchanged(source, found):
    """Checks that nothing of a release has changed since it was looked at.

    Records would be of other files than the lists beside them.

    Args:
        source: `pathlib.Path` of the release.
        found: dict of the size and the time of change by the path within the
            release of each file.

    Raises:
        ReleaseError: if a file has changed, or is gone; it names the first.
    """
    changed = []
    for name, status in found.items():
        try:
            now = packed.status(source / name)
        except FileNotFoundError:
            now = None
        if now != status:
            changed.append(name)
    if changed:
        raise ReleaseError(
            f"{source}: {len(changed)} files have changed while the release "
            f"was built; build it again. Received: {first_names(changed)}"
        )


def check_counts(release, published, partial):
    """Compares the clips of each split with the published counts.

    Args:
        release: `Release`.
        published: dict of the count by split.
        partial: bool, whether there may be fewer.

    Returns:
        Bool, whether all is there.

    Raises:
        ReleaseError: if there are more, or fewer and not `partial`.
    """
    found = {split: len(clips) for split, clips in release.splits.items()}
    for split, count in found.items():
        wanted = published.get(split, 0)
        if count > wanted:
            raise ReleaseError(
                f"{release.source}: the split {split} must have {wanted} "
                f"clips, as published. Received: {count}"
            )
    counts = {split: found.get(split, 0) for split in published}
    complete = counts == published
    if not complete and not partial:
        raise ReleaseError(
            f"{release.source}: the published counts are {published}; "
            f"--partial builds a part of the release. Received: {counts}"
        )
    return complete


def check_sums(source, published, progress=True):
    """Compares the files that have a published checksum with it.

    Args:
        source: `pathlib.Path` of the release.
        published: dict of the MD5 by the name of a file in that folder.
        progress: bool, whether to show a progress bar.

    Returns:
        List of the names of the files that were there and are as published.

    Raises:
        ReleaseError: if one is not; it names the file.
    """
    there = [name for name in published if (source / name).is_file()]
    total = sum((source / name).stat().st_size for name in there)
    with tqdm(
        desc="checksums",
        total=total,
        unit="B",
        unit_scale=True,
        disable=None if progress and total else True,
    ) as bar:
        for name in there:
            digest = hashlib.md5(usedforsecurity=False)
            with open(source / name, "rb") as file:
                while block := file.read(BLOCK):
                    digest.update(block)
                    bar.update(len(block))
            if digest.hexdigest() != published[name]:
                raise ReleaseError(
                    f"{source / name}: cut off, damaged or another version: "
                    f"its MD5 must be {published[name]}. "
                    f"Received: {digest.hexdigest()}"
                )
    return there
