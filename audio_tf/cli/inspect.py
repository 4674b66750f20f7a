"""Draw and sort the attention maps of a checkpoint.

Writes patterns.png (initial maps, drawn anew where not crafted by hand, against
learned ones), kinds.png (diagonal, increasing, decreasing, sparse), heads.png,
projection.png (PCA, then t-SNE) and maps.json, and prints the kind of each
head. Layers and heads count from 1.
"""

import json
import sys

from audio_tf import console
from audio_tf.cli import flags, sources
from audio_tf.cli.output import report


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "path", metavar="OUT_DIR", help="folder that the figures go to"
    )
    flags.add_files(parser)
    parser.add_argument(
        "--model",
        required=True,
        metavar="CHECKPOINT",
        help="folder of a preset, its hf://, kaggle:// or gs:// address, a "
        ".keras file, or the name of a size, which is untrained",
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
        default=16,
        metavar="N",
        help="how many clips are drawn from the files (default: %(default)d); "
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
    files = sources.find_files(arguments.files)
    with console.quiet_tensorflow():
        from audio_tf.analysis import inspection, kinds
    found = inspection.inspect(
        arguments.model,
        files,
        arguments.path,
        arguments.layer,
        arguments.clips,
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
