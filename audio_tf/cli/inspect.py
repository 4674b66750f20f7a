"""Draw what a checkpoint has learned: its attention maps and its front end.

Of the maps on audio files, writes patterns.png (initial maps, drawn anew where
not crafted by hand, against learned ones), kinds.png (diagonal, increasing,
decreasing, sparse), heads.png, projection.png (PCA, then t-SNE) and maps.json,
and prints the kind of each head. Layers and heads count from 1. Of the front
end, writes filters.png (the filters of the first learned layer, sorted by
frequency, and the mel scale), filters_in_time.png, compression.png (what is
learned for each mel band), before and after training, and frontend.json.
"""

import argparse
import json
import sys

from audio_tf import files, quiet
from audio_tf.cli import flags, sources
from audio_tf.cli.output import report
from audio_tf.terminal import printable

PARTS = ("maps", "frontend")
CLIPS = 16


class Only(argparse.Action):
    """The flag that chooses a part; `const` is the action of the files.

    Files that might be left out would be taken as left out wherever a flag
    stands before them. So they are needed, until this flag says otherwise.
    """

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)
        if values == "frontend":
            self.const.nargs, self.const.required = "*", False


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "path", metavar="OUT_DIR", help="folder that the figures go to"
    )
    files = flags.add_files(parser, "; none with --only frontend")
    parser.add_argument(
        "--model",
        required=True,
        metavar="CHECKPOINT",
        help="name of a released preset, folder of a preset, its hf://, "
        "kaggle:// or gs:// address, a .keras file, or the name of a size, "
        "which is untrained",
    )
    parser.add_argument(
        "--only",
        choices=PARTS,
        action=Only,
        const=files,
        help="draw the attention maps alone, or the front end alone, which "
        "needs no files",
    )
    parser.add_argument(
        "--before",
        metavar="CHECKPOINT",
        help="the model that training began with, whose front end is drawn "
        "as before training (default: an untrained one like it)",
    )
    parser.add_argument(
        "--layer",
        type=flags.positive_int,
        metavar="N",
        help="layer whose maps are drawn and projected (default: the last)",
    )
    parser.add_argument(
        "--clips",
        type=flags.positive_int,
        metavar="N",
        help=f"how many clips are drawn from the files (default: {CLIPS}); "
        "76 of twelve heads have the paper's 900 components",
    )
    parser.add_argument(
        "--seconds",
        type=flags.positive_float,
        help="length of the clips; shorter files are passed over (default: "
        "the longest that the clips have, up to 500 frames)",
    )
    parser.add_argument(
        "--seed",
        type=flags.whole,
        default=0,
        metavar="N",
        help="seed of clips, initial weights and t-SNE (default: %(default)d)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per head"
    )


def run(arguments):
    """Inspects the checkpoint and returns the exit status."""
    files.check_folder("OUT_DIR", arguments.path)
    if arguments.only == "frontend":
        return run_frontend(arguments)
    flags.need(
        "--before", arguments.before, "a front end", arguments.only is None
    )
    status = run_maps(arguments, sources.find_files(arguments.files))
    if arguments.only is None:
        run_frontend(arguments, alone=False)
    return status


def run_frontend(arguments, alone=True):
    """Draws the front end and returns the exit status.

    Args:
        arguments: the flags.
        alone: bool, whether nothing else is drawn: then a flag of the maps is
            an error, and so is a front end that has learned nothing.
    """
    if alone:
        for flag, value in (
            ("FILE", arguments.files),
            ("--layer", arguments.layer),
            ("--clips", arguments.clips),
            ("--seconds", arguments.seconds),
            ("--json", arguments.json),
        ):
            flags.need(flag, value, "attention maps", False)
    with quiet.tensorflow():
        from audio_tf.analysis import frontends
    try:
        written = frontends.inspect_frontend(
            arguments.model, arguments.path, arguments.before, arguments.seed
        )
    except frontends.NothingLearned as error:
        if alone or arguments.before is not None:
            raise
        print(f"No filters.png: {printable(error)}", file=sys.stderr)
        return 0
    if not arguments.json:
        print(f"The front end, in {arguments.path}: {', '.join(written)}")
    return 0


def run_maps(arguments, files):
    """Draws the attention maps and returns the exit status.

    Args:
        arguments: the flags.
        files: list of paths of audio files.
    """
    with quiet.tensorflow():
        from audio_tf.analysis import inspection, kinds
    found = inspection.inspect(
        arguments.model,
        files,
        arguments.path,
        arguments.layer,
        arguments.clips or CLIPS,
        arguments.seconds,
        arguments.seed,
    )
    print_rows(found.rows, arguments.json)
    if not arguments.json:
        print(f"{found.clips}, in {arguments.path}: {', '.join(found.written)}")
    if found.reason is not None:
        print(f"No projection.png: {found.reason}", file=sys.stderr)
    if min(row["frames"] for row in found.rows) < kinds.MIN_FRAMES:
        print(
            f"Maps of fewer than {kinds.MIN_FRAMES} frames are not sorted; "
            "--seconds takes longer clips.",
            file=sys.stderr,
        )
    return report(found.failures)


def print_rows(rows, as_json):
    """Prints a line for each head.

    Args:
        rows: list of dicts, as `Inspection` has them.
        as_json: bool, whether to print lines of JSON.
    """
    from audio_tf.analysis import kinds

    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    print(
        f"{'layer':>5s} {'head':>4s} {'kind':12s} {'of clips':>8s} "
        f"{'offset':>6s} " + " ".join(f"{name:>8s}" for name in kinds.FIGURES)
    )
    for row in rows:
        offset = f"{row['offset']:+d}" if row["kind"] == "diagonal" else "-"
        print(
            f"{row['layer']:5d} {row['head']:4d} {row['kind']:12s} "
            f"{row['agreement']:8.0%} {offset:>6s} "
            + " ".join(f"{row[name]:8.2f}" for name in kinds.FIGURES)
            + (" near uniform" if row["uniform"] else "")
        )
