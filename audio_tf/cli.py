"""The command line: `audio-tf classify | export | presets | attentions`."""

import argparse
import json
import sys
import tempfile


def main(argv=None):
    """Runs the command line and returns its exit status."""
    arguments = parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (ValueError, OSError, RuntimeError) as error:
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
    classify.add_argument(
        "--top", type=int, default=5, help="labels per file (default: 5)"
    )
    classify.add_argument(
        "--json", action="store_true", help="one JSON object per file"
    )
    classify.add_argument(
        "--strict", action="store_true", help="stop at the first bad file"
    )
    classify.set_defaults(run=run_classify)

    export = commands.add_parser(
        "export", help="write a SavedModel for TensorFlow Serving"
    )
    export.add_argument("path", metavar="DIR", help="folder of the versions")
    add_model(export)
    export.add_argument(
        "--version", type=int, help="number (default: the next free one)"
    )
    export.set_defaults(run=run_export)

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


def add_model(command):
    command.add_argument(
        "--model",
        required=True,
        metavar="DIR_OR_PRESET",
        help="folder of a preset or of an exported SavedModel, or an "
        "hf://, kaggle:// or gs:// address of a preset",
    )


def load_classifier(name):
    """A classifier from a preset, or from the folder of a SavedModel.

    Raises:
        ValueError: if there is neither, or the model knows no labels.
    """
    from audio_tf.export import ExportedClassifier, saved_model_folder
    from audio_tf.models import AudioBackbone, AudioClassifier
    from audio_tf.models.backbone import find_size

    if saved_model_folder(name) is not None:
        return ExportedClassifier(name)
    if find_size(AudioBackbone, name) is not None:
        raise ValueError(
            f"{name!r} is an architecture without trained weights. Train it, "
            "and pass the preset folder that training writes."
        )
    return AudioClassifier.from_preset(name)


def run_classify(arguments):
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
        scores = data.score_clips(classifier, chunks, verbose=0)
    for file, row in zip(clips.corpus.files, scores, strict=True):
        best = row.argsort()[::-1][: arguments.top]
        ranked = {labels[index]: float(row[index]) for index in best}
        if arguments.json:
            print(json.dumps({"file": str(file), "scores": ranked}))
            continue
        print(file)
        for label, score in ranked.items():
            print(f"  {score:6.3f}  {label}")
    if clips.failures:
        print(data.describe(clips.failures), file=sys.stderr)
    return 1 if clips.failures else 0


def run_export(arguments):
    from audio_tf import models
    from audio_tf.export import export

    classifier = models.AudioClassifier.from_preset(arguments.model)
    print(export(classifier, arguments.path, arguments.version))
    return 0


def run_presets(arguments):
    from audio_tf import models

    for family in models.AudioBackbone.__subclasses__():
        for name in family.sizes:
            count = family.from_preset(name).count_params()
            print(f"{name:40s} {count:>12,} parameters, untrained")
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
        sizes = {"num_heads": heads, **attention.arguments_for(name, length)}
        if getattr(mechanism, "takes_key_dim", True):
            sizes["key_dim"] = dim // heads
        if issubclass(mechanism, attention.RandomSynthesizerAttention):
            sizes["folded"] = not arguments.training
        layer = attention.create(name, **sizes)
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
