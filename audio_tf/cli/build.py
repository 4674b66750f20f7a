"""Build a corpus that you have downloaded into files that `tfds.load` reads.

    audio-tf build esc --source ESC-50-master
    python -c "import tensorflow_datasets as tfds; tfds.load('esc/esc50')"

The lists of the release, its counts of clips and, where they are published,
the checksums of its archives are checked first. What reads the built files
needs TFDS alone; audio_tf itself takes their folder as --data-dir, in place of
the release's. A build that was stopped goes on where it was; one that is
complete is left alone.
"""

import json
import os
import pathlib

import absl.logging

from audio_tf import builders, console
from audio_tf.cli import flags


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help=f"which corpus: {', '.join(builders.BUILDERS)}; a configuration "
        "may follow, as in esc/esc10",
    )
    parser.add_argument(
        "--source", metavar="DIR", help="folder of the corpus as released"
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="TFDS' folder (default: $TFDS_DATA_DIR or ~/tensorflow_datasets)",
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="build what is there, where clips of the release are not, and "
        "compare no checksums; the built files say so",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave out clips that are missing or cannot be read, and name "
        "them in the built files",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read the built files through TFDS and compare every sample with "
        "the source",
    )
    parser.add_argument(
        "--workers",
        type=flags.positive_int,
        metavar="N",
        help="threads that decode (default: one a core)",
    )
    parser.add_argument(
        "--beam",
        nargs="?",
        const="",
        metavar="FLAGS",
        help="write the files on Apache Beam, with its flags in one word, as "
        "in --beam='--runner=FlinkRunner --parallelism=64'; --source and "
        "--data-dir must be seen by all machines",
    )


def run(arguments):
    """Builds the corpus and returns the exit status."""
    absl.logging.set_verbosity(absl.logging.ERROR)
    with console.quiet_tensorflow():
        builder_class = builders.find(arguments.name.partition("/")[0])
        builder = make_builder(builder_class, arguments)
    folder = pathlib.Path(builder.data_dir)
    there = folder.exists()
    if there and not arguments.verify:
        print(f"{folder} is there already")
    builder.download_and_prepare()
    if arguments.verify:
        for split, count in builder.verify().items():
            print(f"{split}: {count} clips equal to the source")
    return 0 if there else report(builder, folder)


def make_builder(builder_class, arguments):
    """Makes the builder that the flags ask for.

    Raises:
        ValueError: if there is no such configuration, or no --source where
            nothing is built yet.
    """
    config = arguments.name.partition("/")[2] or None
    known = builder_class.builder_configs
    if config is not None and config not in known:
        raise ValueError(
            f"{builder_class.name} has the configurations {sorted(known)}. "
            f"Received: {config!r}"
        )
    options = {"data_dir": arguments.data_dir, "config": config}
    built = builder_class(**options)
    if os.path.exists(built.data_dir) and not arguments.verify:
        return built
    if arguments.source is None:
        raise ValueError(
            f"--source is needed, the folder of what {builder_class.HOMEPAGE} "
            "has, unpacked. Received: none"
        )
    return builder_class(
        source=arguments.source,
        partial=arguments.partial,
        skip_bad=arguments.skip_bad,
        workers=arguments.workers,
        beam_options=None if arguments.beam is None else arguments.beam.split(),
        **options,
    )


def report(builder, folder):
    """Prints what was built, and returns 1 if clips were left out."""
    facts = json.loads((folder / "build.json").read_text("utf-8"))
    for split, info in builder.info.splits.items():
        print(
            f"{split}: {info.num_examples} clips in {info.num_shards} files, "
            f"{info.num_bytes / 2**20:.1f} MiB"
        )
    for name, reason in facts["left_out"].items():
        print(f"left out: {name}: {reason}")
    whole = "complete" if facts["complete"] else "a part of the release"
    archives = ""
    if facts["checksums"]:
        archives = f", {len(facts['checksums'])} archives as published"
    print(f"{folder}: {whole}{archives}")
    return 1 if facts["left_out"] else 0
