"""Score archives of any size into Parquet files, on Apache Beam.

    audio-tf score sounds/ --model audio_transformer_esc10 --out scores
    audio-tf score 'gs://bucket/*.tar' clips.csv --model gs://bucket/preset \\
        --out gs://bucket/scores --runner DataflowRunner --beam='--region=...'

Each clip has a row of its best labels, each long recording one for every
window. Clips that cannot be used are named in DIR/failed.csv; the exit status
is 1 then. Run again, the command does what is missing, also after a kill.
docs/score.md tells of the files, and of Flink, Spark and Dataflow.
"""

import logging
import sys

from audio_tf import console, pipelines
from audio_tf.cli import flags
from audio_tf.terminal import printable

# Lines of failures that are printed; the file has them all.
SHOWN = 5


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="folder, audio file, tar or zip archive, CSV or Parquet manifest, "
        "or a quoted pattern of such; also gs:// and s3://",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="PRESET",
        help="preset or exported model, as audio-tf classify takes it",
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="folder of the scores; all machines must see it",
    )
    parser.add_argument(
        "--window-s",
        type=flags.positive_float,
        metavar="SECONDS",
        help="longer recordings become windows of so many seconds "
        "(default: 60)",
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="one row a recording, however long it is",
    )
    parser.add_argument(
        "--top",
        type=flags.positive_int,
        metavar="N",
        help="labels of each row (default: 5)",
    )
    parser.add_argument(
        "--all-scores",
        action="store_true",
        help="the scores of all labels in their order, in place of the top",
    )
    parser.add_argument(
        "--embeddings", action="store_true", help="a column of embeddings, too"
    )
    flags.add_labels(parser, " of a model that knows none")
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="column of the manifests that has the paths (default: file)",
    )
    parser.add_argument(
        "--retry-failed",
        action="store_true",
        help="score anew the shards, and whole archives, in which clips have "
        "failed",
    )
    parser.add_argument(
        "--workers",
        type=flags.positive_int,
        metavar="N",
        help="processes on this machine (default: one a core)",
    )
    parser.add_argument(
        "--runner",
        metavar="NAME",
        help="a runner of Beam, such as FlinkRunner (default: this machine)",
    )
    parser.add_argument(
        "--beam",
        default="",
        metavar="FLAGS",
        help="further flags of Beam in one word, as in "
        "--beam='--flink_master=host:8081 --parallelism=64'",
    )


def run(arguments):
    """Scores the sources and returns the exit status."""
    from audio_tf.archives import places, scoring

    check(arguments)
    # Beam warns of what it could not import, too.
    logging.getLogger().setLevel(logging.ERROR)
    places.need_beam()
    result = scoring.score(
        arguments.sources,
        arguments.model,
        arguments.out,
        window_s=None if arguments.whole else arguments.window_s or 60.0,
        top=None if arguments.all_scores else arguments.top or 5,
        embeddings=arguments.embeddings,
        labels=arguments.labels and named(arguments.labels),
        column=arguments.column or "file",
        retry_failed=arguments.retry_failed,
        runner=arguments.runner,
        options=pipelines.split_options(arguments.beam),
        workers=arguments.workers,
    )
    tell(result, arguments.out)
    return console.LEFT_OUT if result.failed else 0


def named(path):
    """Returns the names of classes of a file, which must have them.

    Raises:
        ValueError: if it is the description of a model that knows none.
    """
    from audio_tf import client

    labels, _ = client.read_labels(path)
    if labels is None:
        raise ValueError(
            "--labels must be a file that names classes. "
            f"Received: {path}, whose labels are null"
        )
    return labels


def check(arguments):
    """Checks that no flag says what another one does, or counts for nothing.

    Raises:
        ValueError: if one does.
    """
    from audio_tf.archives import listing

    if arguments.all_scores and arguments.top is not None:
        raise ValueError(
            "--all-scores and --top exclude each other. "
            f"Received: --all-scores --top {arguments.top}"
        )
    if arguments.whole and arguments.window_s is not None:
        raise ValueError(
            "--whole and --window-s exclude each other. "
            f"Received: --whole --window-s {arguments.window_s}"
        )
    flags.need(
        "--column",
        arguments.column,
        "a CSV or Parquet manifest",
        any(map(listing.is_manifest, arguments.sources)),
    )
    flags.need(
        "--workers",
        arguments.workers,
        "the runner of this machine, without --runner",
        arguments.runner is None,
    )


def tell(result, out):
    """Prints how much was scored, and some of what was not.

    Args:
        result: `scoring.Result`.
        out: str, the folder of the results.
    """
    print(f"{printable(out)}: {result.rows} rows", end="")
    print(f", {len(result.failed)} failed", end="" if result.counters else "\n")
    if result.counters:
        counted = ", ".join(
            f"{number} {name}" for name, number in result.counters.items()
        )
        print(f"; this run: {counted}")
    for name, reason in result.failed[:SHOWN]:
        print(f"  {printable(name)}: {printable(reason)}", file=sys.stderr)
    if len(result.failed) > SHOWN:
        more = len(result.failed) - SHOWN
        print(f"  and {more} more, in failed.csv", file=sys.stderr)
    for name in result.forgotten[:SHOWN]:
        print(f"  {printable(name)}: no source any more, forgotten")
    if len(result.forgotten) > SHOWN:
        print(f"  and {len(result.forgotten) - SHOWN} more forgotten")
