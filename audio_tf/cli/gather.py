"""Link the training clips of several corpora into one folder.

    audio-tf gather speech fsdd=free-spoken-digit-dataset \\
        arabic_speech_commands=arabic-speech-commands-dataset
    audio-tf pretrain --dataset folder --data-dir speech --out runs/speech

FOLDER/DATASET/ gets a link to each file of the split train. Clips of the other
splits are left out, so that an encoder has heard nothing of what it is tested
on; a folder that has links to such clips is refused. Files that are missing are
named at the end; the exit status is 1 then.
"""

import os
import pathlib

from audio_tf.cli import flags
from audio_tf.cli.output import report


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

    found, wanted, failures = [], {}, {}
    for given in arguments.corpora:
        dataset, equals, data_dir = given.partition("=")
        if not (dataset and equals and data_dir):
            raise ValueError(f"Expected DATASET=DIR. Received: {given!r}")
        files = corpora.load_corpus(dataset, data_dir)["train"].files
        place = pathlib.Path(arguments.folder, dataset)
        found.append((data_dir, files, place))
        resolved = (pathlib.Path(file).resolve() for file in files)
        wanted.setdefault(place, set()).update(resolved)
    for data_dir, _, place in found:
        check_links(wanted[place], data_dir, place)
    for data_dir, files, place in found:
        place.mkdir(parents=True, exist_ok=True)
        missing = {}
        for file in files:
            try:
                link_to(file, data_dir, place)
            except audio.AudioError as error:
                if arguments.strict:
                    raise
                missing[error.path] = error.reason
        if missing and len(missing) == len(files):
            # Then it is the folder that is wrong.
            raise audio.AudioError(*next(iter(missing.items())))
        count = len(files) - len(missing)
        print(f"{place}: {count} clips of the split train")
        failures.update(missing)
    return report(failures)


def root_of(data_dir):
    """Returns the folder that names of links begin in, an absolute path."""
    root = pathlib.Path(data_dir).resolve()
    # Names from a CSV would begin with "..", and so be hidden.
    return root.parent if root.is_file() else root


def check_links(wanted, data_dir, place):
    """Raises a `ValueError` if a link leads to a clip of another split.

    Splits may have changed since the links were made.

    Args:
        wanted: set of the absolute paths of the clips that are to be linked.
        data_dir: path of a corpus that they are of.
        place: `pathlib.Path` of the folder of links, which need not be there.
    """
    root = root_of(data_dir)
    links = [link for link in place.glob("*") if link.is_symlink()]
    targets = {link.name: link.resolve() for link in links}
    others = sorted(
        name
        for name, target in targets.items()
        if target.is_relative_to(root) and target not in wanted
    )
    if others:
        raise ValueError(
            f"{place} has links to clips of {root} that are not in the split "
            "train; remove them, or choose another folder. Received: "
            f"{len(others)} of them, such as {others[0]}"
        )


def link_to(file, data_dir, place):
    """Links a file, under a name that holds the folders it lies in.

    Raises:
        AudioError: if the file is missing, or lies within another.
        FileExistsError: if something else has the name.
    """
    from audio_tf.audio import AudioError

    file, root = pathlib.Path(file).resolve(), root_of(data_dir)
    name = "_".join(pathlib.Path(os.path.relpath(file, root)).parts)
    link = place / name
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
