"""Write a preset as a SavedModel or as a file for another runtime.

A SavedModel is a folder of numbered versions, as TensorFlow Serving takes it.
"""

import sys

from audio_tf import console, files, quiet
from audio_tf.cli import flags
from audio_tf.corpora import layouts
from audio_tf.corpora.tables import CORPORA
from audio_tf.export import formats

# What a flag is called where a format calls it otherwise.
FLAGS = {"max_clip_s": "max_clip"}


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "path",
        metavar="DIR",
        help="folder of a SavedModel's versions and of model.onnx, ...",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="PRESET",
        help="name of a released preset, folder of a preset, or its hf://, "
        "kaggle:// or gs:// address",
    )
    parser.add_argument(
        "--version",
        type=flags.version_number,
        metavar="N",
        help="number of the SavedModel (default: the next free one)",
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="add the signature `stream` to the SavedModel, of a causal model "
        "that hears the waveform itself",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="add the signature `explain`, which says why a clip has its "
        "label, to the SavedModel",
    )
    parser.add_argument(
        "--max-clip",
        type=flags.positive_float,
        metavar="SECONDS",
        help="longest clip that serving_audio_bytes scores (default: 600, or "
        "what the model takes whole)",
    )
    known = flags.one_of(formats.FORMATS)
    parser.add_argument(
        "--format",
        action="extend",
        type=lambda text: list(map(known, text.split(","))),
        metavar="FORMAT[,...]",
        help=f"{', '.join(formats.FORMATS)} (default: savedmodel)",
    )
    parser.add_argument(
        "--quantize",
        type=flags.one_of(formats.QUANTIZATIONS),
        metavar=f"{{{','.join(formats.QUANTIZATIONS)}}}",
        help="write quantized files beside, where the format can: dense "
        "layers in int8 by Keras, or weights by the runtime's converter",
    )
    add_verification(parser)


def add_verification(parser):
    """Adds how what is written is compared with the model."""
    parser.add_argument(
        "--verify",
        action="store_true",
        help="report parity, size and latency of what was written, by all of "
        "its signatures; exit with 1 if one that is not quantized differs from "
        "the model",
    )
    parser.add_argument(
        "--clips",
        nargs="+",
        default=[],
        metavar="FILE",
        help="sound that --verify compares on (default: noise)",
    )
    parser.add_argument(
        "--dataset",
        type=flags.one_of(CORPORA),
        metavar="LAYOUT",
        help="labelled clips, as audio-tf evaluate takes them, whose test "
        "split --verify scores, to say accuracy before and after: "
        f"{', '.join(CORPORA)}",
    )
    parser.add_argument("--data-dir", metavar="DIR", help="folder of --dataset")
    parser.add_argument(
        "--test-folds",
        nargs="+",
        type=flags.positive_int,
        metavar="N",
        help="folds that are the test, for --dataset "
        + ", ".join(layouts.takers(CORPORA, "folds")),
    )
    parser.add_argument(
        "--other-splits",
        action="store_true",
        help="allow another test than the official one of --dataset, and one "
        "with clips that the model was trained on",
    )


def run(arguments):
    """Writes the formats asked for and returns the exit status."""
    names, options = chosen_formats(arguments)
    files.check_folder("DIR", arguments.path)
    with quiet.tensorflow():
        for name in names:
            formats.check(name)
            formats.FORMATS[name].check_options(**options[name])
        from audio_tf.export import classifiers, several
        from audio_tf.runs import heard
    model = classifiers.load_trained(arguments.model)
    # Before what takes minutes: a file may not be there.
    sounds = read_sounds(model, arguments) if arguments.verify else None
    quantize = arguments.quantize
    for name in names if quantize else []:
        reason = formats.FORMATS[name].unquantizable.get(quantize)
        if reason is not None:
            print(
                f"{name} is not quantized by {quantize}: {reason}",
                file=sys.stderr,
            )
    written = {}
    for name, path in several.write(
        model,
        arguments.path,
        {name: options[name] for name in names},
        quantize,
        heard.noted(
            classifiers.read_provenance(arguments.model), arguments.model
        ),
    ):
        written[name] = path
        print(path, flush=True)
    return verify(model, written, *sounds) if arguments.verify else 0


def read_sounds(model, arguments):
    """Reads what the model and its exports are compared on.

    Returns:
        Pair of float arrays `(samples,)` and of `audio_tf.data.Chunks` of
        labelled clips, or `None` where there is no --dataset.
    """
    from audio_tf.export import verify
    from audio_tf.runs import evaluate

    chunks = None
    if arguments.dataset is not None:
        chunks = evaluate.labelled_chunks(
            model,
            arguments.model,
            arguments.dataset,
            arguments.data_dir,
            arguments.test_folds,
            arguments.other_splits,
        )
    waveforms = (
        verify.read_waveforms(model, arguments.clips)
        if arguments.clips
        else verify.noise(model.sample_rate_hz)
    )
    return waveforms, chunks


def verify(model, written, waveforms, chunks):
    """Prints how what was written compares, and returns the exit status."""
    from audio_tf.export import verify

    rows = verify.verify(model, written, waveforms, chunks)
    print(verify.format_rows(rows))
    return 0 if all(row.passed for row in rows) else console.LEFT_OUT


def chosen_formats(arguments):
    """Returns the formats that are wanted, if no flag would be ignored.

    Args:
        arguments: of the command line.

    Returns:
        Pair of a list of names, and of a dict by every format of the dict of
        its options.

    Raises:
        ValueError: if a flag means nothing beside the others; it names both.
    """
    names = list(dict.fromkeys(arguments.format or ["savedmodel"]))
    options = {
        name: options_of(format, arguments)
        for name, format in formats.FORMATS.items()
    }
    taken = {option for name in names for option in options[name]}
    for name, values in options.items():
        for option, value in values.items():
            flag = "--" + FLAGS.get(option, option).replace("_", "-")
            flags.need(flag, value, f"--format {name}", option in taken)
    with_folds = layouts.takers(CORPORA, "folds")
    for flag, value, met, needed in (
        ("--clips", arguments.clips, arguments.verify, "--verify"),
        ("--dataset", arguments.dataset, arguments.verify, "--verify"),
        ("--data-dir", arguments.data_dir, arguments.dataset, "--dataset"),
        (
            "--other-splits",
            arguments.other_splits,
            arguments.dataset,
            "--dataset",
        ),
        (
            "--test-folds",
            arguments.test_folds,
            arguments.dataset in with_folds,
            f"--dataset {' or '.join(with_folds)}",
        ),
    ):
        flags.need(flag, value, needed, met)
    quantize = arguments.quantize
    reasons = [
        formats.FORMATS[name].unquantizable.get(quantize) for name in names
    ]
    if quantize is not None and all(reasons):
        raise ValueError(
            f"{names[0]} cannot be {quantize}: {reasons[0]}. Received: "
            f"--quantize {quantize} --format {','.join(names)}"
        )
    return names, options


def options_of(format, arguments):
    """Picks the options of a format, as its `write` takes them."""
    given = vars(arguments)
    return {
        option: given[FLAGS.get(option, option)] for option in format.options
    }
