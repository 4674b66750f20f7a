"""The command line: `audio-tf classify | export | presets`."""

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
    return top


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


if __name__ == "__main__":
    sys.exit(main())
