"""The command line: `audio-tf classify | query | export | ...`."""

import argparse
import json
import math
import os
import sys
import tempfile

import numpy as np

from audio_tf.console import (
    READER_GONE,
    Parser,
    drop_output,
    print_error,
    show_any_name,
)
from audio_tf.export.classifiers import load_classifier
from audio_tf.ops.checks import closest
from audio_tf.terminal import printable, printable_lines
from audio_tf.version import __version__

MAX_SEED = 2**32 - 1  # Of numpy and scikit-learn.
MAX_VERSION = 2**63 - 1  # Of TensorFlow Serving.


def main(argv=None):
    """Runs the command line.

    Args:
        argv: list of str; that of the process if `None`.

    Returns:
        The exit status: 0, 1 if something was left out or differs, 2 if
        nothing could be done.
    """
    show_any_name()
    argv = sys.argv[1:] if argv is None else list(map(str, argv))
    top, commands = parser()
    if argv and not argv[0].startswith("-") and argv[0] not in commands:
        top.error(f"no command {argv[0]!r}{closest(argv[0], commands)}")
    arguments = top.parse_args(argv)
    try:
        status = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        drop_output()
        return READER_GONE
    except (Exception, KeyboardInterrupt) as error:
        if "debug" in arguments:
            raise
        flags = vars(arguments)
        return print_error(f"{top.prog} {argv[0]}", error, flags=flags)[1]


def parser():
    """The argument parser of all commands, and a dict of theirs by name."""
    top = Parser(
        prog="audio-tf", description="Audio classification from the shell."
    )
    top.add_argument(
        "--version", action="version", version=f"audio_tf {__version__}"
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    classify = commands.add_parser(
        "classify", help="print the top labels of audio files"
    )
    add_files(classify)
    add_model(classify)
    add_output(classify)
    classify.add_argument(
        "--strict", action="store_true", help="stop at the first bad file"
    )
    classify.set_defaults(run=run_classify)

    query = commands.add_parser(
        "query", help="classify by a server, TensorFlow Serving's REST or gRPC"
    )
    query.add_argument(
        "url",
        metavar="URL",
        help="http://[USER:PASSWORD@]HOST:8501 or grpc://HOST:8500, with "
        "/v1/models/NAME[/versions/N] after it or not",
    )
    add_files(query)
    add_output(query)
    query.add_argument(
        "--labels",
        metavar="FILE",
        help="assets.extra/audio_tf.json of the export, or a label per line "
        "(default: print numbers of classes)",
    )
    query.add_argument(
        "--model-name",
        metavar="NAME",
        help="name of the model, if URL does not say (default: audio_tf)",
    )
    query.add_argument(
        "--signature",
        default="serving_audio_bytes",
        metavar="NAME",
        help="signature that takes audio_bytes (default: %(default)s)",
    )
    query.add_argument(
        "--timeout",
        type=positive_float,
        default=60.0,
        metavar="SECONDS",
        help="how long one attempt may take; all attempts of a batch may take "
        "twice as long (default: %(default)g)",
    )
    query.add_argument(
        "--retries",
        type=whole,
        default=4,
        metavar="N",
        help="attempts after the first, where the reason may pass "
        "(default: %(default)d)",
    )
    query.add_argument(
        "--batch-size",
        type=positive_int,
        default=8,
        metavar="N",
        help="files in one request (default: %(default)d)",
    )
    query.set_defaults(run=run_query)

    export = commands.add_parser(
        "export", help="write a SavedModel or a file for another runtime"
    )
    export.add_argument(
        "path",
        metavar="DIR",
        help="folder of a SavedModel's versions and of model.onnx, ...",
    )
    add_preset(export)
    export.add_argument(
        "--version",
        type=version_number,
        metavar="N",
        help="number of the SavedModel (default: the next free one)",
    )
    export.add_argument(
        "--stream",
        action="store_true",
        help="add the signature `stream` of a causal model to the SavedModel",
    )
    export.add_argument(
        "--max-clip",
        type=positive_float,
        metavar="SECONDS",
        help="longest clip that serving_audio_bytes scores (default: 600, or "
        "what the model takes whole)",
    )
    add_formats(export)
    export.set_defaults(run=run_export)

    inspect = commands.add_parser(
        "inspect",
        help="draw and sort the attention maps of a checkpoint",
        description="Writes patterns.png (initial maps, drawn anew where not "
        "crafted by hand, against learned ones), kinds.png (diagonal, "
        "increasing, decreasing, sparse), heads.png, projection.png (PCA, "
        "then t-SNE) and maps.json, and prints the kind of each head. Layers "
        "and heads count from 1.",
    )
    inspect.add_argument(
        "path", metavar="OUT_DIR", help="folder that the figures go to"
    )
    add_files(inspect)
    inspect.add_argument(
        "--model",
        required=True,
        metavar="CHECKPOINT",
        help="folder of a preset, its hf://, kaggle:// or gs:// address, a "
        ".keras file, or the name of a size, which is untrained",
    )
    inspect.add_argument(
        "--layer",
        type=positive_int,
        metavar="N",
        help="layer whose maps are drawn and projected (default: the last)",
    )
    inspect.add_argument(
        "--clips",
        type=positive_int,
        default=16,
        metavar="N",
        help="how many clips are drawn from the files (default: %(default)d); "
        "76 of twelve heads have the paper's 900 components",
    )
    inspect.add_argument(
        "--seconds",
        type=positive_float,
        help="length of the clips; shorter files are passed over (default: "
        "the longest that the clips have, up to 500 frames)",
    )
    inspect.add_argument(
        "--seed",
        type=whole,
        default=0,
        metavar="N",
        help="seed of clips, initial weights and t-SNE (default: %(default)d)",
    )
    inspect.add_argument(
        "--json", action="store_true", help="print one JSON object per head"
    )
    inspect.set_defaults(run=run_inspect)

    presets = commands.add_parser(
        "presets",
        help="list the sizes that models are built in",
        description="Sizes by name, each with its parameters, whether it takes "
        "waveforms or features, and whether no output depends on later sound.",
    )
    presets.set_defaults(run=run_presets)

    attentions = commands.add_parser(
        "attentions",
        help="list the attentions and what they cost",
        description="Attentions by name, their complexity in length L, width "
        "D, C candidates or c frames of context; whether they can be causal; "
        "and for one clip in one layer, without the feed-forward: "
        "multiply-adds in billions (training: with the backward pass), MB of "
        "attention weights, and both relative to full attention.",
    )
    for name, size, meaning in (
        ("--length", 1000, "frames"),
        ("--dim", 768, "features of a frame"),
        ("--num-heads", 12, "heads"),
    ):
        attentions.add_argument(
            name,
            type=positive_int,
            default=size,
            help=f"{meaning} (default: {size})",
        )
    attentions.add_argument(
        "--training", action="store_true", help="count the backward pass too"
    )
    attentions.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object per attention",
    )
    attentions.set_defaults(run=run_attentions)
    return top, commands.choices


def checked(kind, text, fits, wanted):
    """`kind(text)` if that `fits`, or an error that says what is `wanted`."""
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if not fits(number):
        raise argparse.ArgumentTypeError(f"must be {wanted}. Received: {text}")
    return number


def positive_int(text):
    """A flag's number that is at least 1."""
    return checked(int, text, lambda n: n >= 1, "a positive integer")


def whole(text):
    """A flag's number that is at least 0: a count, or a seed."""
    wanted = f"an integer from 0 to {MAX_SEED}"
    return checked(int, text, lambda n: 0 <= n <= MAX_SEED, wanted)


def version_number(text):
    """A flag's number of a SavedModel's version."""
    wanted = "an integer, at least 0"
    return checked(int, text, lambda n: 0 <= n <= MAX_VERSION, wanted)


def positive_float(text):
    """A flag's number above 0, and finite."""
    return checked(float, text, lambda n: 0.0 < n < math.inf, "positive")


def one_of(names):
    """A function that takes a name of a table, and names the nearest."""

    def known(text):
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"must be one of {', '.join(names)}{closest(text, names)}. "
                f"Received: {text!r}"
            )
        return text

    return known


def add_files(command):
    """Adds the files that a command reads."""
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="audio, or a folder of it"
    )


def add_formats(command):
    """Adds what is written beside a SavedModel, and how it is compared."""
    from audio_tf.corpora import CORPORA
    from audio_tf.export import formats

    command.add_argument(
        "--format",
        action="extend",
        type=lambda text: [
            one_of(formats.FORMATS)(name) for name in text.split(",")
        ],
        metavar="FORMAT[,...]",
        help=f"{', '.join(formats.FORMATS)} (default: savedmodel)",
    )
    command.add_argument(
        "--quantize",
        type=one_of(formats.QUANTIZATIONS),
        metavar=f"{{{','.join(formats.QUANTIZATIONS)}}}",
        help="write quantized files beside, where the format can: dense "
        "layers in int8 by Keras, or weights by the runtime's converter",
    )
    command.add_argument(
        "--verify",
        action="store_true",
        help="report parity, size and latency of what was written; exit "
        "with 1 if float32 scores differ from the model's",
    )
    command.add_argument(
        "--clips",
        nargs="+",
        default=[],
        metavar="FILE",
        help="sound that --verify compares on (default: noise)",
    )
    command.add_argument(
        "--dataset",
        type=one_of(CORPORA),
        metavar="LAYOUT",
        help="labelled clips, as training/evaluate.py takes them, whose test "
        "split --verify scores, to say accuracy before and after: "
        f"{', '.join(CORPORA)}",
    )
    command.add_argument(
        "--data-dir", metavar="DIR", help="folder of --dataset"
    )
    command.add_argument(
        "--test-folds",
        nargs="+",
        type=positive_int,
        metavar="N",
        help="folds that are the test, of --dataset esc10 or esc50",
    )


def add_output(command):
    command.add_argument(
        "--top",
        type=positive_int,
        default=5,
        help="labels for each file (default: 5)",
        metavar="N",
    )
    command.add_argument(
        "--json", action="store_true", help="print one JSON object per file"
    )


def add_preset(command):
    command.add_argument(
        "--model",
        required=True,
        metavar="PRESET",
        help="folder of a preset, or its hf://, kaggle:// or gs:// address",
    )


def add_model(command):
    command.add_argument(
        "--model",
        required=True,
        metavar="DIR_OR_PRESET",
        help="folder of a preset or of an exported SavedModel, an exported "
        "file, or an hf://, kaggle:// or gs:// address of a preset",
    )


def find_files(paths):
    """Files as they are given, and those in folders, each once.

    Says on the standard error how many were given twice.

    Raises:
        FileNotFoundError: if a folder holds no audio.
    """
    from audio_tf.corpora import list_files

    files = list_files(paths)
    once = {}
    for file in files:
        once.setdefault(os.path.abspath(file), file)
    if len(once) < len(files):
        more = len(files) - len(once)
        print(f"{more} files were given twice, taken once", file=sys.stderr)
    return list(once.values())


def run_classify(arguments):
    from audio_tf import data
    from audio_tf.corpora import Corpus

    files = find_files(arguments.files)
    classifier = load_classifier(arguments.model)
    labels = classifier.labels
    if labels is None:
        labels = [str(index) for index in range(classifier.num_classes)]
    corpus = Corpus(files, [[] for _ in files], labels)
    with tempfile.TemporaryDirectory() as cache_dir:
        clips = data.prepare(
            corpus,
            classifier.sample_rate_hz,
            cache_dir,
            strict=arguments.strict,
            progress=sys.stderr.isatty(),
        )
        chunks = data.Chunks(
            clips, classifier.chunk_s, silence_db=classifier.silence_db
        )
        scores = data.score_clips(
            classifier, chunks, verbose=0, strict=arguments.strict
        )
    failures = dict(clips.failures)
    for file, row in zip(clips.corpus.files, scores, strict=True):
        if not np.isfinite(row).all():
            failures[str(file)] = "its scores are not finite"
            continue
        print_scores(file, row, labels, arguments)
    return report(failures)


def report(failures):
    """Prints what was left out, and returns the exit status."""
    from audio_tf import data

    if failures:
        print(printable_lines(data.describe(failures)), file=sys.stderr)
    return 1 if failures else 0


def print_scores(file, row, labels, arguments):
    """Prints the best labels of one file from its scores `(classes,)`."""
    best = row.argsort()[::-1][: arguments.top]
    ranked = {labels[index]: float(row[index]) for index in best}
    if arguments.json:
        found = {"file": str(file), "scores": ranked}
        print(json.dumps(found, allow_nan=False), flush=True)
        return
    print(printable(file))
    for label, score in ranked.items():
        print(f"  {score:6.3f}  {printable(label)}")


def run_query(arguments):
    from audio_tf import client

    files = find_files(arguments.files)
    labels, errors = None, None
    if arguments.labels:
        labels, errors = client.read_labels(arguments.labels)
    failures = {}
    with client.Client(
        arguments.url,
        arguments.model_name,
        timeout_s=arguments.timeout,
        retries=arguments.retries,
        errors=errors,
        num_classes=labels and len(labels),
    ) as asked:
        for result in asked.query(
            files, arguments.signature, arguments.batch_size
        ):
            if not result.valid:
                failures[result.file] = result.error
                continue
            names = labels or [str(n) for n in range(len(result.scores))]
            print_scores(result.file, result.scores, names, arguments)
    return report(failures)


def run_export(arguments):
    from audio_tf.export import command

    command.check(arguments)
    return command.run(load_trained(arguments.model), arguments)


def load_trained(name):
    """An `AudioClassifier` from a preset, to be written in another format.

    Raises:
        ValueError: if `name` is an architecture, an export, or nothing.
    """
    from audio_tf.models import AudioClassifier

    classifier = load_classifier(name)
    if not isinstance(classifier, AudioClassifier):
        raise ValueError(
            "--model must be a preset: an exported model is not exported "
            f"again. Received: --model {name}"
        )
    return classifier


def run_inspect(arguments):
    from audio_tf.analysis import command

    return command.run(arguments)


def run_presets(arguments):
    from audio_tf import models

    for name, family in models.list_sizes().items():
        backbone = family.from_preset(name)
        print(
            f"{name:40s} {backbone.count_params():>12,} parameters, untrained, "
            f"takes {backbone.takes}, "
            f"{'causal' if backbone.causal else 'not causal'}"
        )
    return 0


def run_attentions(arguments):
    from audio_tf import attention

    heads, dim, length = arguments.num_heads, arguments.dim, arguments.length
    if dim % heads:
        raise ValueError(
            "--num-heads must divide --dim. "
            f"Received: --num-heads {heads} --dim {dim}"
        )
    full = None
    if not arguments.json:
        print(
            f"{'name':32s} {'complexity':14s} {'causal':6s} "
            f"{'GMAC':>9s} {'/full':>6s} {'MB':>9s} {'/full':>6s}"
        )
    for name, mechanism in attention.ATTENTIONS.items():
        own = {"folded": not arguments.training} if mechanism.foldable else {}
        layer = attention.create(
            name,
            num_heads=heads,
            key_dim=dim // heads,
            causal=False,
            max_length=length,
            **own,
        )
        cost = layer.cost(length, dim, arguments.training)
        full = full or cost
        ratios = [ours / base for ours, base in zip(cost, full, strict=True)]
        if arguments.json:
            row = {
                "name": name,
                "complexity": mechanism.complexity,
                "causal": mechanism.supports_causal,
                **cost._asdict(),
            }
            print(json.dumps(row))
            continue
        print(
            f"{name:32s} {mechanism.complexity:14s} "
            f"{'yes' if mechanism.supports_causal else 'no':6s} "
            f"{cost.multiply_adds / 1e9:9.3f} {ratios[0]:6.2f} "
            f"{cost.weight_bytes / 1e6:9.2f} {ratios[1]:6.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
