"""The formats that a classifier can be exported to, by name."""

import pathlib

from audio_tf.export.base import (
    QUANTIZATIONS,
    check_backend,
    check_classifier,
)
from audio_tf.export.litert import LiteRT
from audio_tf.export.onnx import ONNX
from audio_tf.export.openvino import OpenVINO
from audio_tf.export.saved_model import SavedModel
from audio_tf.ops.checks import check_sizes, closest

# To add a format, write a subclass of `base.Format` and enter it here.
FORMATS = {
    format.name: format
    for format in (SavedModel(), ONNX(), LiteRT(), OpenVINO())
}


def convert(model, path, format="savedmodel", quantize=None, provenance=None):
    """Writes a classifier for another runtime, loads it and tries it.

    The file takes `waveform`, float32 `(batch, samples)`, and `lengths`,
    int32 `(batch,)`, the real samples of each clip or -1 for all; batch and
    samples are dynamic. It gives `scores`, float32 `(batch, classes)`.
    A JSON file beside it holds labels and rate, as it does for a SavedModel;
    `load` reads both. Earlier files of these names are replaced.

    Args:
        model: an `AudioClassifier`; it is not changed.
        path: the file, whose suffix the format adds if it has none, or the
            folder of versions for `"savedmodel"`.
        format: a key of `FORMATS`.
        quantize: `"int8"` for dense layers in int8, which Keras quantizes;
            `"dynamic"` for weights in int8, which the runtime's converter
            quantizes; `None` for float32.
        provenance: dict that JSON can hold, which says how the model came to
            be.

    Returns:
        `pathlib.Path` of what was written. It appears whole or not at all.

    Raises:
        ImportError: if a converter is not installed.
        RuntimeError: if the model cannot be converted, or the file does not
            load, or its scores differ.
        TypeError: if `model` is something else, such as a preset's name.
        ValueError: if there is no such format, or it cannot hold this model
            or this quantization.
    """
    check(format, quantize)
    check_model(model, format)
    if quantize == "int8":
        from audio_tf.export import copies

        model = copies.quantized(model)
    return FORMATS[format].write(model, path, quantize, provenance)


def check(format, quantize=None):
    """Raises an error if a format cannot be written.

    Raises:
        ImportError: if a package of the format is not installed.
        RuntimeError: if Keras does not run on TensorFlow.
        ValueError: if there is no such format, or it cannot be quantized in
            this way.
    """
    if format not in FORMATS:
        raise ValueError(
            f"`format` must be one of {list(FORMATS)}"
            f"{closest(format, FORMATS)}. Received: format={format!r}"
        )
    if quantize not in (None, *QUANTIZATIONS):
        raise ValueError(
            f"`quantize` must be None or one of {list(QUANTIZATIONS)}"
            f"{closest(quantize, QUANTIZATIONS)}. "
            f"Received: quantize={quantize!r}"
        )
    reason = FORMATS[format].unquantizable.get(quantize)
    if reason is not None:
        raise ValueError(f"{format} cannot be {quantize}: {reason}")
    check_backend()
    FORMATS[format].check_installed()


def check_model(model, format):
    """Raises an error if something cannot be converted to a format.

    Raises:
        TypeError: if it is no `AudioClassifier`.
        ValueError: if the format cannot hold it.
    """
    check_classifier(model)
    reason = FORMATS[format].refusal(model)
    if reason is not None:
        raise ValueError(
            f"This model cannot be converted to {format}: {reason}"
        )


def format_of(path):
    """Returns the `Format` of an exported file or folder, by its suffix.

    Raises:
        ValueError: if no format has that suffix.
    """
    path = pathlib.Path(path)
    suffix = "" if path.is_dir() else path.suffix
    for format in FORMATS.values():
        if format.suffix == suffix:
            return format
    suffixes = [format.suffix for format in FORMATS.values() if format.suffix]
    raise ValueError(
        f"A model's file must end with one of {suffixes}. Received: {path.name}"
    )


def load(path, num_threads=None):
    """Opens the folder of a SavedModel, or the file of another format.

    Args:
        path: the file or folder that `convert` or `writing.export` has
            written.
        num_threads: int, the threads of one call; `None` for one a core, and
            for a SavedModel, whose threads TensorFlow sets.

    Returns:
        A `runtimes.StoredClassifier`.

    Raises:
        FileNotFoundError: if it is not there, or was not written by audio_tf.
        ValueError: if no format has that suffix, or `num_threads` does not
            fit.
    """
    if num_threads is not None:
        check_sizes(num_threads=num_threads)
    return format_of(path).open(path, num_threads)
