"""List the folders of the cache, clear them, or limit them.

    audio-tf cache list
    audio-tf cache clear features-1f0c6d2b7a9e4c35
    audio-tf cache clear --features
    audio-tf cache limit 50GB

The cache has decoded audio, a folder for each rate and decoder, and features
and embeddings, a folder for each encoder and its settings, as entries and as
shards of audio-tf prepare; and corpora that are made here. All of it is made
again when it is wanted. `limit` removes the entries and shards that were used
longest ago, until no more than that is left, and no corpus. Remove nothing
while a run uses it.
"""

import os
import sys

from audio_tf import files, quiet
from audio_tf.ops.checks import closest


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument("action", choices=["list", "clear", "limit"])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="folders to be cleared; of limit the size, such as 50GB",
    )
    parser.add_argument(
        "--features",
        action="store_true",
        help="clear all folders of features, and keep decoded audio",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="clear all folders but corpora, which are cleared by name",
    )
    parser.add_argument(
        "--cache-dir",
        metavar="DIR",
        help="folder of the cache (default: $AUDIO_TF_CACHE, or audio_tf in "
        "the user's cache)",
    )


def run(arguments):
    """Lists or clears folders, and returns the exit status."""
    with quiet.tensorflow():
        from audio_tf.data import cache, folders
    directory = arguments.cache_dir or cache.default_cache_dir()
    if arguments.cache_dir is not None and not os.path.isdir(directory):
        raise ValueError(
            f"--cache-dir must be a folder that is there. Received: {directory}"
        )
    if arguments.action == "limit":
        return run_limit(arguments, folders, directory)
    found = {each.name: each for each in folders.folders(directory)}
    ways = [arguments.names, arguments.features, arguments.all]
    received = (
        f"Received: names={arguments.names}, features={arguments.features}, "
        f"all={arguments.all}"
    )
    if arguments.action == "list":
        if any(ways):
            raise ValueError(
                f"`list` takes no names, --features or --all. {received}"
            )
        print_folders(directory, found.values())
        return 0
    if sum(map(bool, ways)) != 1:
        raise ValueError(
            "What is cleared must be said once: names, --features or --all. "
            f"{received}"
        )
    names = arguments.names
    if not names:
        names = [
            name
            for name, each in found.items()
            if each.kind == "features"
            or (arguments.all and each.kind != "corpus")
        ]
    for name in names:
        if name not in found:
            raise ValueError(
                f"{directory} has no folder {name!r} of the cache"
                f"{closest(name, found)}. Received: {name}"
            )
    for name in names:
        found[name].clear()
        print(f"cleared {name}: {described_size(found[name])}")
    if not names:
        print("nothing to clear", file=sys.stderr)
    return 0


def run_limit(arguments, folders, directory):
    """Removes what was used longest ago, and returns the exit status.

    Args:
        arguments: the flags.
        folders: the module `audio_tf.data.folders`.
        directory: path of the cache.
    """
    if arguments.features or arguments.all or len(arguments.names) != 1:
        raise ValueError(
            "`limit` takes one size, such as 50GB, and no other flag. "
            f"Received: names={arguments.names}, "
            f"features={arguments.features}, all={arguments.all}"
        )
    found = folders.limit(directory, files.parse_size(arguments.names[0]))
    print(
        f"removed {found.files} entries and shards, "
        f"{found.size_bytes / 1e6:.1f} MB; "
        f"{found.left_bytes / 1e6:.1f} MB are left"
    )
    return 0


def described_size(folder):
    """Returns a text of the entries of a `folders.Folder` and their size."""
    return f"{folder.entries} entries, {folder.size_bytes / 1e6:.1f} MB"


def print_folders(directory, folders):
    """Prints a line for each folder, then the total.

    Args:
        directory: path of the cache.
        folders: iterable of `folders.Folder`.
    """
    total = 0
    for each in folders:
        total += each.size_bytes
        shards = f", {each.in_shards:,} in shards" if each.in_shards else ""
        print(
            f"{each.name:26s} {each.entries:>8,} entries "
            f"{each.size_bytes / 1e6:>10.1f} MB  {each.about}{shards}"
        )
    print(f"{directory}: {total / 1e6:.1f} MB")
