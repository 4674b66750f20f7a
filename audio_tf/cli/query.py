"""Classify audio files by a server: TensorFlow Serving's REST or gRPC.

Any file that can be decoded here is sent as WAV. Files that get no scores are
named at the end; the exit status is 1 then.
"""

from audio_tf import quiet
from audio_tf.cli import flags, sources
from audio_tf.cli.output import print_scores, report
from audio_tf.ops.answers import answer


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "url",
        metavar="URL",
        help="http://[USER:PASSWORD@]HOST:8501 or grpc://HOST:8500, with "
        "/v1/models/NAME[/versions/N or /labels/LABEL] after it or not",
    )
    flags.add_files(
        parser, f", or {sources.STDIN}, one file's content on standard input"
    )
    flags.add_output(parser)
    flags.add_labels(parser, ", whose numbers are printed without")
    parser.add_argument(
        "--model-name",
        metavar="NAME",
        help="name of the model, if URL does not say (default: audio_tf)",
    )
    parser.add_argument(
        "--signature",
        default="serving_audio_bytes",
        metavar="NAME",
        help="signature that takes audio_bytes (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=flags.positive_float,
        default=60.0,
        metavar="SECONDS",
        help="how long one attempt may take; all attempts of a batch may take "
        "twice as long (default: %(default)g)",
    )
    parser.add_argument(
        "--retries",
        type=flags.whole,
        default=4,
        metavar="N",
        help="attempts after the first, where the reason may pass "
        "(default: %(default)d)",
    )
    parser.add_argument(
        "--batch-size",
        type=flags.positive_int,
        default=8,
        metavar="N",
        help="files in one request (default: %(default)d)",
    )


def run(arguments):
    """Asks the server and returns the exit status."""
    from audio_tf import client
    from audio_tf.client.labels import check_version

    files = sources.find_files(arguments.files)
    labels, errors = None, None
    if arguments.labels:
        labels, errors = client.read_labels(arguments.labels)
    with quiet.tensorflow():
        # It loads TensorFlow for gRPC, here where it is quiet.
        asked = client.Client(
            arguments.url,
            arguments.model_name,
            timeout_s=arguments.timeout,
            retries=arguments.retries,
            errors=errors,
            num_classes=labels and len(labels),
        )
    if arguments.labels:
        check_version(arguments.labels, asked.version)
    failures = {}
    with asked:
        for result in asked.query(
            files,
            arguments.signature,
            arguments.batch_size,
            sources.read_stdin(files),
        ):
            if not result.valid:
                failures[result.file] = result.error
                continue
            names = labels or [str(n) for n in range(len(result.scores))]
            print_scores(
                answer(result.file, result.scores, names, arguments.top),
                arguments.json,
            )
    return report(failures)
