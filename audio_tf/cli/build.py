"""Build a corpus that you have downloaded into files that `tfds.load` reads.

    audio-tf build esc --source ESC-50-master
    python -c "import tensorflow_datasets as tfds; tfds.load('esc/esc50')"

The lists of the release, its counts of clips and, where they are published,
the checksums of its archives are checked first. What reads the built files
needs TFDS alone; audio_tf itself takes their folder as --data-dir, in place of
the release's. A build that was stopped goes on where it was; one that is
complete is left alone. One that is a part of the release, or lacks clips, is
left alone where --partial or --skip-bad allows that, and is an error else.
"""

import os
import pathlib

import absl.logging

from audio_tf import builders, files, pipelines, quiet
from audio_tf.cli import flags
from audio_tf.terminal import first_names, printable


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
    flags.need(
        "--workers",
        arguments.workers,
        "threads of this process, without --beam",
        arguments.beam is None,
    )
    if arguments.data_dir == "":
        # TFDS would take the working folder.
        files.check_folder("--data-dir", arguments.data_dir)
    with quiet.tensorflow():
        builder_class = builders.find(arguments.name.partition("/")[0])
        builder = make_builder(builder_class, arguments)
    folder = pathlib.Path(builder.data_dir)
    there = folder.exists()
    if there:
        facts = check_build(builder, arguments)
        print(f"{folder} is there already")
    else:
        files.check_folder("--data-dir", folder)
    builder.download_and_prepare()
    if arguments.verify:
        for split, count in builder.verify().items():
            print(f"{split}: {count} clips equal to the source")
    if not there:
        return report(builder, folder)
    if facts["complete"]:
        return 0
    return report_facts(facts, folder)


def make_builder(builder_class, arguments):
    """Makes the builder that the flags ask for.

    Raises:
        ValueError: if there is no such configuration, no folder of the name
            that --source gives, or no --source where it is needed.
    """
    config = arguments.name.partition("/")[2] or None
    known = builder_class.builder_configs
    if config is not None and config not in known:
        raise ValueError(
            f"{builder_class.name} has the configurations {sorted(known)}. "
            f"Received: {config!r}"
        )
    if arguments.source is not None and not os.path.isdir(arguments.source):
        raise ValueError(
            "--source must be a folder that is there. "
            f"Received: {arguments.source}"
        )
    options = {"data_dir": arguments.data_dir, "config": config}
    built = builder_class(**options)
    there = os.path.exists(built.data_dir)
    if arguments.source is None:
        if there and not arguments.verify:
            return built
        raise ValueError(
            f"--source is needed, the folder of what {builder_class.HOMEPAGE} "
            "has, unpacked. Received: none"
        )
    if there and read_facts(built.data_dir)["complete"]:
        # Of a whole release nothing but --verify looks at the source.
        if not arguments.verify:
            return built
    return builder_class(
        source=arguments.source,
        partial=arguments.partial,
        skip_bad=arguments.skip_bad,
        workers=arguments.workers,
        beam_options=None
        if arguments.beam is None
        else pipelines.split_options(arguments.beam),
        **options,
    )


def read_facts(folder):
    """Returns what a build says of itself, a dict.

    Raises:
        ValueError: if the folder is none of our builds.
    """
    from audio_tf.audio import packed

    path = pathlib.Path(folder) / packed.BUILD
    if not path.is_file():
        raise ValueError(
            f"{folder} must be a build of `audio-tf build`, or not be there; "
            "remove it, or give another --data-dir. Received: a folder "
            f"without {packed.BUILD}"
        )
    return packed.read_facts(path.parent)


def check_build(builder, arguments):
    """Checks that the build that is there is one that the flags allow.

    Args:
        builder: `AudioBuilder`, with a source if that is to be compared.
        arguments: those of the command line.

    Returns:
        Dict of what the build says of itself.

    Raises:
        ValueError: if it is a part of the release or lacks clips, and the
            flags do not allow that, or if a part is not of what the source
            lists.
    """
    from audio_tf.audio import packed
    from audio_tf.builders import verifying

    folder = builder.data_dir
    facts = read_facts(folder)
    if facts["complete"]:
        return facts
    clips = len(packed.open_build(pathlib.Path(folder)).rows)
    anew = "or remove that folder to build it anew"
    # Older builds do not say which of the two it is.
    if facts.get("part", True) and not arguments.partial:
        raise ValueError(
            f"{folder} must be the whole release, unless --partial is given; "
            f"give it to keep what is there, {anew}. Received: a build of "
            f"{clips} clips, a part of the release"
        )
    if facts["left_out"] and not arguments.skip_bad:
        raise ValueError(
            f"{folder} must have every clip that is listed, unless --skip-bad "
            f"is given; give it to keep what is there, {anew}. Received: "
            f"a build of {clips} clips without {len(facts['left_out'])} that "
            f"were left out, {first_names(facts['left_out'])}"
        )
    if builder.source is not None and not arguments.verify:
        verifying.check_listed(builder)
    return facts


def report(builder, folder):
    """Prints what was built, and returns 1 if clips were left out."""
    for split, info in builder.info.splits.items():
        print(
            f"{split}: {info.num_examples} clips in {info.num_shards} files, "
            f"{info.num_bytes / 2**20:.1f} MiB"
        )
    return report_facts(read_facts(folder), folder)


def report_facts(facts, folder):
    """Prints what a build says of itself, and returns 1 if it lacks clips.

    A clip that is there and lacks a label, as one of speech its phones, is
    counted and no fault of the build.
    """
    for name, reason in facts["left_out"].items():
        print(f"left out: {printable(name)}: {printable(reason)}")
    # Builds of before have no report.
    for what, found in facts.get("report", {}).items():
        names = first_names(found["first"], found["count"])
        print(f"{found['count']} {what}: {names}")
    whole = "complete" if facts["complete"] else "a part of the release"
    archives = ""
    if facts["checksums"]:
        archives = f", {len(facts['checksums'])} archives as published"
    print(f"{folder}: {whole}{archives}")
    return 1 if facts["left_out"] else 0
