"""Print the top labels of audio files, each file's scores the mean over it.

Files that cannot be used are left out and named at the end; the exit status is
1 then. Nothing is written to disk.
"""

from audio_tf import quiet
from audio_tf.cli import flags, sources
from audio_tf.cli.output import print_scores, report


def add(parser):
    """Adds the flags of the command."""
    flags.add_files(
        parser, f", or {sources.STDIN}, one file's content on standard input"
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="PRESET",
        help="name of a released preset, as audio-tf presets lists them, "
        "folder of a preset or of an exported SavedModel, an exported file, "
        "or an hf://, kaggle:// or gs:// address of a preset",
    )
    flags.add_output(parser)
    flags.add_strict(parser)


def run(arguments):
    """Classifies the files and returns the exit status."""
    named = sources.find_sources(arguments.files)
    with quiet.tensorflow():
        # They load TensorFlow, here where it is quiet.
        import audio_tf.models  # noqa: F401
        from audio_tf.export import classifiers
    classifier = classifiers.load_classifier(arguments.model)
    failures = {}
    for found in classifier.classify_sources(
        named, arguments.top, arguments.strict
    ):
        if "error" in found:
            failures[found["file"]] = found["error"]
        else:
            print_scores(found, arguments.json)
    return report(failures)
