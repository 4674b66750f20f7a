"""What `audio-tf export` does with its arguments."""

import json
import pathlib

import numpy as np

from audio_tf.export import formats
from audio_tf.export.saved_model import export

# Without clips, noise of so many seconds is compared: other lengths than
# those that the converters tried.
NOISE_S = (1.0, 0.31, 0.05)


def run(model, arguments):
    """Writes all formats asked for and reports on them.

    Returns:
        The exit status: 1 if float32 scores differ from the model's.
    """
    wanted = arguments.format or ["savedmodel"]
    mechanism = formats.mechanism_of(model)
    for name in wanted:
        # All before the first is written.
        formats.check(name, None, mechanism)
    files = {}
    for name in wanted:
        files[name] = write(model, name, arguments)
        print(files[name])
    for name in wanted if arguments.quantize else []:
        reason = formats.UNSUPPORTED_QUANTIZATION.get(
            (name, arguments.quantize)
        )
        if reason is not None:
            print(f"{name} is not quantized by {arguments.quantize}: {reason}")
            continue
        key = f"{name} {arguments.quantize}"
        files[key] = write(model, name, arguments, arguments.quantize)
        print(files[key])
    if not arguments.verify:
        return 0
    return verify(model, files, arguments)


def write(model, name, arguments, quantize=None):
    """One format in the folder, under a name of its own."""
    folder = pathlib.Path(arguments.path)
    if name == "savedmodel":
        if quantize is None:
            return export(
                model,
                folder,
                arguments.version,
                stream=arguments.stream,
                max_clip_s=arguments.max_clip,
                provenance=read_provenance(arguments.model),
            )
        # Not a version of the same model: a server would take the newest.
        return formats.convert(model, folder / quantize, name, quantize)
    stem = "model" if quantize is None else f"model_{quantize}"
    return formats.convert(model, folder / stem, name, quantize)


def read_provenance(preset):
    """What training left in a preset's folder, or `None`."""
    path = pathlib.Path(preset, "provenance.json")
    return json.loads(path.read_text()) if path.is_file() else None


def verify(model, files, arguments):
    from audio_tf import data
    from audio_tf.export.verify import format_rows
    from audio_tf.export.verify import verify as compare

    if arguments.clips:
        waveforms = [
            data.load_audio(clip, model.sample_rate_hz)
            for clip in arguments.clips
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
        ValueError: if its labels are not the model's, in their order.
    """
    from audio_tf import data
    from audio_tf.settings import DataSettings

    settings = DataSettings(
        dataset=arguments.dataset, data_dir=arguments.data_dir
    )
    if arguments.test_folds is not None:
        settings.test_folds = arguments.test_folds
        settings.val_folds = []
    corpus = settings.load()["test"]
    if model.labels is not None and model.labels != corpus.vocabulary:
        raise ValueError(
            "The model's labels are not the corpus' labels in their order. "
            f"Received: {len(model.labels)} and {len(corpus.vocabulary)}"
        )
    clips = data.prepare(
        corpus, model.sample_rate_hz, **settings.prepare_arguments()
    )
    return data.Chunks(clips, model.chunk_s, silence_db=model.silence_db)
