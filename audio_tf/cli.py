"""The command line: `audio-tf classify | query | export | ...`."""

import argparse
import json
import sys
import tempfile


def main(argv=None):
    """Runs the command line and returns its exit status."""
    arguments = parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print(f"audio-tf: {error}", file=sys.stderr)
        return 2


def parser():
    """The argument parser of all commands."""
    top = argparse.ArgumentParser(
        prog="audio-tf", description="Audio classification from the shell."
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    classify = commands.add_parser(
        "classify", help="print the top labels of audio files"
    )
    classify.add_argument("files", nargs="+", metavar="FILE")
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
        help="http://HOST:8501 or grpc://HOST:8500, with "
        "/v1/models/NAME[/versions/N] after it or not",
    )
    query.add_argument("files", nargs="+", metavar="FILE")
    add_output(query)
    query.add_argument(
        "--labels",
        metavar="FILE",
        help="assets.extra/audio_tf.json of the export, or a label per line "
        "(default: print numbers of classes)",
    )
    query.add_argument("--model-name", help="if URL does not say")
    query.add_argument(
        "--signature",
        default="serving_audio_bytes",
        help="one that takes audio_bytes (default: %(default)s)",
    )
    query.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="of one attempt; a batch has twice that with all its attempts "
        "(default: %(default)g)",
    )
    query.add_argument(
        "--retries",
        type=int,
        default=4,
        help="after the first attempt (default: %(default)d)",
    )
    query.add_argument(
        "--batch-size",
        type=positive_int,
        default=8,
        help="files per request (default: %(default)d)",
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
        type=int,
        help="number of the SavedModel (default: the next free one)",
    )
    export.add_argument(
        "--stream",
        action="store_true",
        help="add the signature `stream` of a causal model to the SavedModel",
    )
    export.add_argument(
        "--max-clip",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="longest clip that serving_audio_bytes scores "
        "(default: %(default)g)",
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
    inspect.add_argument("path", metavar="OUT_DIR")
    inspect.add_argument(
        "files", nargs="+", metavar="FILE", help="audio, or a folder of it"
    )
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
        help="that is drawn and projected (default: the last)",
    )
    inspect.add_argument(
        "--clips",
        type=positive_int,
        default=16,
        help="drawn from the files (default: %(default)d); 76 of twelve heads "
        "have the paper's 900 components",
    )
    inspect.add_argument(
        "--seconds",
        type=positive_float,
        help="length of the clips; shorter files are passed over (default: "
        "the longest that the clips have, up to 500 frames)",
    )
    inspect.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of clips, initial weights and t-SNE (default: %(default)d)",
    )
    inspect.add_argument(
        "--json", action="store_true", help="print one JSON object per head"
    )
    inspect.set_defaults(run=run_inspect)

    presets = commands.add_parser(
        "presets", help="list the sizes that models are built in"
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
        "--json", action="store_true", help="one JSON object per attention"
    )
    attentions.set_defaults(run=run_attentions)
    return top


def positive_int(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(
            f"must be a positive integer. Received: {text}"
        )
    return number


def positive_float(text):
    number = float(text)
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(
            f"must be a positive number. Received: {text}"
        )
    return number


def add_formats(command):
    command.add_argument(
        "--format",
        action="extend",
        type=lambda text: text.split(","),
        metavar="FORMAT[,...]",
        help="savedmodel, onnx, litert or openvino (default: savedmodel)",
    )
    command.add_argument(
        "--quantize",
        choices=["int8", "dynamic"],
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
        metavar="LAYOUT",
        help="labelled clips, as training/evaluate.py takes them, whose test "
        "split --verify scores: accuracy before and after",
    )
    command.add_argument("--data-dir", metavar="DIR", help="of --dataset")
    command.add_argument(
        "--test-folds", nargs="+", type=int, metavar="N", help="of ESC"
    )


def add_output(command):
    command.add_argument(
        "--top", type=int, default=5, help="labels per file (default: 5)"
    )
    command.add_argument(
        "--json", action="store_true", help="one JSON object per file"
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


def load_classifier(name):
    """A classifier from a preset, or from what `audio-tf export` wrote.

    Raises:
        ValueError: if there is neither, or the model knows no labels.
    """
    from audio_tf.export import (
        ExportedClassifier,
        runtimes,
        saved_model_folder,
    )
    from audio_tf.models import AudioClassifier, list_sizes

    if name.endswith(tuple(runtimes.RUNTIMES)):
        return runtimes.load(name)
    if saved_model_folder(name) is not None:
        return ExportedClassifier(name)
    if name in list_sizes():
        raise ValueError(
            f"{name!r} is an architecture without trained weights. Train it, "
            "and pass the preset folder that training writes."
        )
    return AudioClassifier.from_preset(name)


def run_classify(arguments):
    import numpy as np

    from audio_tf import data

    classifier = load_classifier(arguments.model)
    labels = classifier.labels
    if labels is None:
        labels = [str(index) for index in range(classifier.num_classes)]
    corpus = data.Corpus(arguments.files, [[] for _ in arguments.files], labels)
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
        if np.isfinite(row).all():
            print_scores(file, row, labels, arguments)
        else:
            failures[str(file)] = "its scores are not finite"
    if failures:
        print(data.describe(failures), file=sys.stderr)
    return 1 if failures else 0


def print_scores(file, row, labels, arguments):
    """Prints the best labels of one file from its scores `(classes,)`."""
    from audio_tf import data

    best = row.argsort()[::-1][: arguments.top]
    ranked = {labels[index]: float(row[index]) for index in best}
    if arguments.json:
        print(json.dumps({"file": str(file), "scores": ranked}), flush=True)
        return
    print(data.printable(file))
    for label, score in ranked.items():
        print(f"  {score:6.3f}  {label}")


def run_query(arguments):
    from audio_tf import client, data

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
    ) as asked:
        for result in asked.query(
            arguments.files, arguments.signature, arguments.batch_size
        ):
            if not result.valid:
                failures[result.file] = result.error
                continue
            names = labels or [str(n) for n in range(len(result.scores))]
            if len(names) != len(result.scores):
                raise ValueError(
                    "the model has another number of classes than --labels. "
                    f"Received: {len(result.scores)} scores and "
                    f"{len(names)} labels"
                )
            print_scores(result.file, result.scores, names, arguments)
    if failures:
        print(data.describe(failures), file=sys.stderr)
    return 1 if failures else 0


def run_export(arguments):
    from audio_tf import models
    from audio_tf.export import command

    classifier = models.AudioClassifier.from_preset(arguments.model)
    return command.run(classifier, arguments)


def run_inspect(arguments):
    from audio_tf.analysis import command

    return command.run(arguments)


def run_presets(arguments):
    from audio_tf import models

    for name, family in models.list_sizes().items():
        takes = "" if family.takes == "waveform" else ", takes features"
        count = family.from_preset(name).count_params()
        print(f"{name:40s} {count:>12,} parameters, untrained{takes}")
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
