"""Link the training clips of several corpora into one folder.

    audio-tf gather speech fsdd=free-spoken-digit-dataset \\
        arabic_speech_commands=arabic-speech-commands-dataset
    audio-tf pretrain --dataset folder --data-dir speech --out runs/speech

FOLDER/DATASET/ gets a link to each file of the split train, whose name has the
folders that the file lies in. Clips of the other splits are left out, so that
an encoder has heard nothing of what it is tested on; a folder that has links to
such clips is refused, and so are corpora of which one trains on what another
holds out. Files that are missing are named at the end; the exit status is 1
then.
"""

import hashlib
import os
import pathlib

from audio_tf.cli import flags
from audio_tf.cli.output import report
from audio_tf.files import check_folder

# Bytes of a name that most disks take.
LONGEST_NAME = 255


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "folder", metavar="FOLDER", help="where the links are made"
    )
    parser.add_argument(
        "corpora",
        nargs="+",
        metavar="DATASET=DIR",
        help="a layout, as audio-tf train --dataset has it, and its folder",
    )
    flags.add_strict(parser)


def run(arguments):
    """Makes the links and returns the exit status."""
    from audio_tf import audio, corpora

    check_folder("FOLDER", arguments.folder)
    found, wanted, names, failures = [], {}, {}, {}
    for given in arguments.corpora:
        dataset, equals, data_dir = given.partition("=")
        if not (dataset and equals and data_dir):
            raise ValueError(f"Expected DATASET=DIR. Received: {given!r}")
        place, pairs = pathlib.Path(arguments.folder, dataset), []
        splits = corpora.load_corpus(dataset, data_dir)
        held_out = {
            pathlib.Path(file).resolve()
            for split, corpus in splits.items()
            if split != "train"
            for file in corpus.files
        }
        for file in splits["train"].files:
            file = pathlib.Path(file).resolve()
            link = place / name_in(data_dir, file)
            pairs.append((link, file))
            names.setdefault(link, []).append(file)
            wanted.setdefault(place, set()).add(file)
        found.append((data_dir, pairs, place, held_out))
    for data_dir, _, place, held_out in found:
        check_links(wanted[place], held_out, data_dir, place)
        check_beside(arguments.folder, wanted, held_out, data_dir, place)
    links = links_of(names)
    for data_dir, pairs, place, _ in found:
        place.mkdir(parents=True, exist_ok=True)
        missing = {}
        for pair in pairs:
            try:
                link_to(pair[1], links[pair])
            except audio.AudioError as error:
                if arguments.strict:
                    raise
                missing[error.path] = error.reason
        if missing and len(missing) == len(pairs):
            # Then it is the folder that is wrong.
            raise audio.AudioError(*next(iter(missing.items())))
        count = len(pairs) - len(missing)
        print(f"{place}: {count} clips of the split train")
        failures.update(missing)
    return report(failures)


def root_of(data_dir):
    """Returns the folder that names of links begin in, an absolute path."""
    root = pathlib.Path(data_dir).resolve()
    # Names from a CSV would begin with "..", and so be hidden.
    return root.parent if root.is_file() else root


def check_links(wanted, held_out, data_dir, place):
    """Raises a `ValueError` if a link leads to a clip of another split.

    Splits may have changed since the links were made.

    Args:
        wanted: set of the absolute paths of the clips that are to be linked.
        held_out: set of those of the corpus' other splits, which may lie
            elsewhere than its folder, as what a CSV lists or links lead to.
        data_dir: path of a corpus that they are of.
        place: `pathlib.Path` of the folder of links, which need not be there.
    """
    from audio_tf.corpora.corpus import file_identity

    root, held = root_of(data_dir), set(map(file_identity, held_out))
    links = [link for link in place.glob("*") if link.is_symlink()]
    targets = {link.name: link.resolve() for link in links}
    others = sorted(
        name
        for name, target in targets.items()
        if target not in wanted
        and (file_identity(target) in held or target.is_relative_to(root))
    )
    if others:
        raise ValueError(
            f"{place} has links to clips of {root} that are not in the split "
            "train; remove them, or choose another folder. Received: "
            f"{len(others)} of them, such as {others[0]}"
        )


def check_beside(folder, wanted, held_out, data_dir, place):
    """Raises a `ValueError` if a clip of another split is another's to train.

    One corpus may list what is the test of the other, and all folders of links
    are trained on together.

    Args:
        folder: path of the folder of all links.
        wanted: dict by the `pathlib.Path` of a folder of links of the set of
            the absolute paths of the clips that are to be linked.
        held_out: set of the absolute paths of the clips of a corpus' other
            splits.
        data_dir: path of that corpus.
        place: `pathlib.Path` of its folder of links.
    """
    from audio_tf.corpora.corpus import file_identity

    files = {
        file_identity(file): where for where in wanted for file in wanted[where]
    }
    for link in pathlib.Path(folder).glob("*/*"):
        if link.is_symlink() and link.parent != place:
            files.setdefault(file_identity(link.resolve()), link.parent)
    again = sorted(file for file in held_out if file_identity(file) in files)
    if again:
        raise ValueError(
            f"{folder} must have no clip of {data_dir} that is not in its "
            f"split train. Received: {len(again)} of them in "
            f"{files[file_identity(again[0])]}, such as {again[0]}"
        )


def name_in(data_dir, file):
    """Returns the name of a link, which holds the folders a file lies in.

    Of one that is too long the end is taken, behind a checksum of the whole.

    Args:
        data_dir: path of the corpus.
        file: absolute path of the file.
    """
    name = "_".join(
        pathlib.Path(os.path.relpath(file, root_of(data_dir))).parts
    )
    encoded = os.fsencode(name)
    if len(encoded) <= LONGEST_NAME:
        return name
    digest = hashlib.sha1(encoded).hexdigest()[:8]
    # With room for what `links_of` adds; a character that is cut goes.
    end = encoded[2 * (len(digest) + 1) - LONGEST_NAME :]
    return f"{digest}-{end.decode(errors='ignore')}"


def links_of(names):
    """Finds a link of its own for each file.

    `a/b_c.wav` and `a_b/c.wav` have one name, as files of two corpora may. One
    of them has it, that which is linked already or is the first; the names of
    the others have the checksums of their paths, too.

    Args:
        names: dict by path of a link of the list of the files that it could
            be of.

    Returns:
        Dict of the path of the link by pairs of that path and a file.
    """
    links = {}
    for link, files in names.items():
        owner = link.resolve() if link.resolve() in files else files[0]
        for file in files:
            digest = hashlib.sha1(os.fsencode(file)).hexdigest()[:8]
            other = link.with_name(f"{link.stem}-{digest}{link.suffix}")
            links[link, file] = link if file == owner else other
    return links


def link_to(file, link):
    """Links a file.

    Args:
        file: absolute path of the file.
        link: `pathlib.Path` of the link.

    Raises:
        AudioError: if the file is missing, or lies within another.
        FileExistsError: if something else has the name.
    """
    from audio_tf.audio import AudioError

    if link.is_symlink() and link.resolve() == file:
        return
    if not file.is_file():
        raise AudioError(
            file,
            "no file of its own, so nothing to link to; unpack the release",
        )
    if link.exists() or link.is_symlink():
        raise FileExistsError(
            f"{link} is there and is no link to {file}; choose another folder"
        )
    link.symlink_to(file)
