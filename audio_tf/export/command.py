"""What `audio-tf export` does with its arguments."""

import dataclasses
import json
import pathlib
import sys

import numpy as np

from audio_tf.export import copies, formats

# Without clips, noise of so many seconds is compared: other lengths than
# those that the converters tried.
NOISE_S = (1.0, 0.31, 0.05)

# What a flag is called where a format calls it otherwise.
FLAGS = {"max_clip_s": "max_clip"}


def run(model, arguments):
    """Writes all formats asked for and reports on them.

    Args:
        model: the `AudioClassifier`.
        arguments: of the command line, after `check`.

    Returns:
        The exit status: 1 if float32 scores differ from the model's.

    Raises:
        OSError: if a file cannot be written; it says which ones were.
        RuntimeError: if a model cannot be converted, or a file does not work.
        ValueError: if the arguments do not fit the model.
    """
    wanted = wanted_formats(arguments)
    for name in wanted:
        formats.check_model(model, name)
    provenance = read_provenance(arguments.model)
    files = {}
    for name in wanted:
        write(model, name, None, arguments, provenance, files)
    quantize = arguments.quantize
    if quantize is not None:
        smaller = copies.quantized(model) if quantize == "int8" else model
        for name in wanted:
            reason = formats.FORMATS[name].unquantizable.get(quantize)
            if reason is None:
                write(smaller, name, quantize, arguments, provenance, files)
                continue
            print(
                f"{name} is not quantized by {quantize}: {reason}",
                file=sys.stderr,
            )
    if not arguments.verify:
        return 0
    return verify(model, files, arguments)


def wanted_formats(arguments):
    return list(dict.fromkeys(arguments.format or ["savedmodel"]))


def check(arguments):
    """Refuses what is out of range, and a flag that would be ignored.

    Raises:
        ImportError: if a converter is not installed.
        ValueError: if an argument is wrong; it names the flag.
    """
    from audio_tf.corpora import CORPORA, layouts

    wanted = wanted_formats(arguments)
    taken = {
        option for name in wanted for option in formats.FORMATS[name].options
    }
    for format in formats.FORMATS.values():
        for option in format.options:
            flag, value = flag_of(option, arguments)
            need(flag, value, f"--format {format.name}", option in taken)
    with_folds = layouts.takers(CORPORA, "folds")
    for flag, value, met, needed in (
        ("--clips", arguments.clips, arguments.verify, "--verify"),
        ("--dataset", arguments.dataset, arguments.verify, "--verify"),
        ("--data-dir", arguments.data_dir, arguments.dataset, "--dataset"),
        (
            "--test-folds",
            arguments.test_folds,
            arguments.dataset in with_folds,
            f"--dataset {' or '.join(with_folds)}",
        ),
    ):
        need(flag, value, needed, met)
    quantize = arguments.quantize
    reasons = [
        formats.FORMATS[name].unquantizable.get(quantize) for name in wanted
    ]
    if quantize is not None and all(reasons):
        raise ValueError(
            f"{wanted[0]} cannot be {quantize}: {reasons[0]}. Received: "
            f"--quantize {quantize} --format {','.join(wanted)}"
        )
    for name in wanted:
        formats.check(name)
        formats.FORMATS[name].check_options(**options_of(name, arguments))


def need(flag, value, needed, met):
    """Raises a `ValueError` if a flag is given without the one it needs."""
    # Not by its truth: 0 was given too.
    given = not (value is None or value is False or value == [])
    if given and not met:
        raise ValueError(
            f"{flag} means nothing without {needed}. Received: "
            + (flag if value is True else f"{flag} {value}")
        )


def flag_of(option, arguments):
    """Flag and value of a format's option."""
    name = FLAGS.get(option, option)
    return f"--{name.replace('_', '-')}", getattr(arguments, name)


def options_of(name, arguments):
    """The options of a format, as its `write` takes them."""
    return {
        option: flag_of(option, arguments)[1]
        for option in formats.FORMATS[name].options
    }


def write(model, name, quantize, arguments, provenance, files):
    """Writes one format, prints its path and enters it in `files`.

    Raises:
        OSError: if it cannot be written; it says which files were.
    """
    format = formats.FORMATS[name]
    key = name if quantize is None else f"{name} {quantize}"
    try:
        files[key] = format.write(
            model,
            format.place(arguments.path, quantize),
            quantize,
            provenance,
            **options_of(name, arguments),
        )
    except OSError as error:
        kept = ", ".join(map(str, files.values())) or "nothing"
        raise OSError(
            f"{key} was not written: {error}. Written before: {kept}"
        ) from error
    print(files[key])


def read_provenance(preset):
    """What training left in a preset's folder, or `None`.

    Raises:
        ValueError: if the file is no JSON.
    """
    path = pathlib.Path(preset, "provenance.json")
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def verify(model, files, arguments):
    from audio_tf.audio import load_audio
    from audio_tf.export.verify import format_rows
    from audio_tf.export.verify import verify as compare

    if arguments.clips:
        waveforms = [
            load_audio(clip, model.sample_rate_hz) for clip in arguments.clips
        ]
        if model.chunk_s is not None:
            size = round(model.chunk_s * model.sample_rate_hz)
            waveforms = [waveform[:size] for waveform in waveforms]
    else:
        rng = np.random.default_rng(0)
        waveforms = [
            0.1 * rng.standard_normal(round(seconds * model.sample_rate_hz))
            for seconds in NOISE_S
        ]
    chunks = None
    if arguments.dataset is not None:
        chunks = labelled_chunks(model, arguments)
    rows = compare(model, files, waveforms, chunks)
    print(format_rows(rows))
    return 0 if all(row.passed for row in rows) else 1


def labelled_chunks(model, arguments):
    """The test split of a corpus, as the model is evaluated on it.

    Raises:
        ValueError: if the corpus has other labels than the model; their order
            does not matter.
    """
    from audio_tf import data
    from audio_tf.runs import provenance
    from audio_tf.runs.corpus_settings import DataSettings

    folds = {}
    if arguments.test_folds is not None:
        # The other splits are not read.
        folds = {"train_folds": [], "val_folds": []}
        folds["test_folds"] = arguments.test_folds
    settings = DataSettings(
        dataset=arguments.dataset, data_dir=arguments.data_dir, **folds
    )
    corpus = settings.load()["test"]
    order = provenance.column_order(
        model.labels, corpus.vocabulary, model.num_classes
    )
    vocabulary = [corpus.vocabulary[row] for row in np.argsort(order)]
    corpus = dataclasses.replace(corpus, vocabulary=vocabulary)
    clips = data.prepare(
        corpus, model.sample_rate_hz, **settings.prepare_arguments()
    )
    return data.Chunks(clips, model.chunk_s, silence_db=model.silence_db)
