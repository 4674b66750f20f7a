"""Link the training clips of several corpora into one folder.

    audio-tf gather speech fsdd=free-spoken-digit-dataset \\
        arabic_speech_commands=arabic-speech-commands-dataset
    audio-tf pretrain --dataset folder --data-dir speech --out runs/speech

FOLDER/DATASET/ gets a link to each file of the split train. Clips of the other
splits are left out, so that an encoder has heard nothing of what it is tested
on. Files that are missing are named at the end; the exit status is 1 then.
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

    failures = {}
    for given in arguments.corpora:
        dataset, equals, data_dir = given.partition("=")
        if not (dataset and equals and data_dir):
            raise ValueError(f"Expected DATASET=DIR. Received: {given!r}")
        files = corpora.load_corpus(dataset, data_dir)["train"].files
        place = pathlib.Path(arguments.folder, dataset)
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


def link_to(file, data_dir, place):
    """Links a file, under a name that holds the folders it lies in.

    Raises:
        AudioError: if the file is missing, or lies within another.
        FileExistsError: if something else has the name.
    """
    from audio_tf.audio import AudioError

    file = pathlib.Path(file).resolve()
    root = pathlib.Path(data_dir).resolve()
    if root.is_file():
        # Names from a CSV would begin with "..", and so be hidden.
        root = root.parent
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
