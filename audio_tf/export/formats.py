"""An `AudioClassifier` as a file for ONNX Runtime, LiteRT or OpenVINO."""

import importlib
import json
import os
import pathlib
import shutil
import tempfile
import warnings
from typing import Callable, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from audio_tf.export import saved_model
from audio_tf.export.runtimes import load, metadata_file

OPSET = 18
# Float32 scores of any runtime agree with TensorFlow's as far.
TOLERANCE = 1e-5


class Format(NamedTuple):
    """How a format is written.

    Attributes:
        suffix: of the file, or "" for a folder of versions.
        packages: what has to be importable.
        write: function `(folder, path, quantize)` from a SavedModel to it.
    """

    suffix: str
    packages: tuple
    write: Callable


def write_onnx(folder, path, quantize):
    import tf2onnx

    # Held here: the signature alone does not keep its variables alive.
    loaded = tf.saved_model.load(str(folder))
    serve = loaded.signatures["serving_default"]
    signature = [saved_model.WAVEFORM, saved_model.LENGTHS]
    function = tf.function(
        lambda waveform, lengths: serve(waveform=waveform, lengths=lengths),
        input_signature=signature,
    )
    tf2onnx.convert.from_function(
        function,
        input_signature=signature,
        opset=OPSET,
        output_path=str(path),
    )
    if quantize == "dynamic":
        from onnxruntime import quantization

        whole = path.with_suffix(".float32.onnx")
        path.rename(whole)
        quantization.quantize_dynamic(whole, path, per_channel=True)
        whole.unlink()


def write_litert(folder, path, quantize):
    # Not from a concrete function: its variables would be left uninitialised,
    # and every score would be NaN.
    converter = tf.lite.TFLiteConverter.from_saved_model(
        str(folder), signature_keys=["serving_default"]
    )
    if quantize == "dynamic":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    path.write_bytes(converter.convert())


def write_openvino(folder, path, quantize):
    import openvino

    converted = openvino.convert_model(str(folder))
    openvino.save_model(converted, str(path), compress_to_fp16=False)


FORMATS = {
    "savedmodel": Format("", (), None),
    "onnx": Format(".onnx", ("tf2onnx", "onnx", "onnxruntime"), write_onnx),
    "litert": Format(".tflite", ("ai_edge_litert",), write_litert),
    "openvino": Format(".xml", ("openvino",), write_openvino),
}

# (format, attention as `mechanism_of` names it) that cannot be, and why.
UNSUPPORTED = {
    ("openvino", f"folded {name}"): "OpenVINO 2026.4 computes other scores "
    "for some batches, without an error; convert the model before `fold`"
    for name in (
        "random_synthesizer",
        "crafted_synthesizer",
        "raganato_synthesizer",
    )
}

# (format, quantization) likewise, measured with the lower bounds of the extra.
UNSUPPORTED_QUANTIZATION = {
    ("savedmodel", "dynamic"): "it is a conversion of ONNX Runtime and LiteRT",
    ("openvino", "dynamic"): "it is a conversion of ONNX Runtime and LiteRT",
    ("litert", "int8"): "its matrix product takes no plain int8 tensors; "
    "take `dynamic`",
    ("openvino", "int8"): "OpenVINO 2026.4 converts Keras' int8 products and "
    "computes other scores, without an error",
}

QUANTIZATIONS = ("int8", "dynamic")


def convert(model, path, format="savedmodel", quantize=None):
    """Writes a classifier for another runtime, loads it and tries it.

    The file takes `waveform`, float32 `(batch, samples)`, and `lengths`,
    int32 `(batch,)`, the real samples of each clip or -1 for all; batch and
    samples are dynamic. It gives `scores`, float32 `(batch, classes)`.
    Beside it comes a JSON file with labels and rate, as for a SavedModel;
    `audio_tf.export.runtimes.load` reads both. An earlier file is replaced.

    Args:
        model: an `AudioClassifier`; it is not changed.
        path: the file, whose suffix the format adds if it has none, or the
            folder of versions for `"savedmodel"`.
        format: a key of `FORMATS`.
        quantize: `None`; `"int8"`, the model's own dense layers in int8, by
            Keras; or `"dynamic"`, weights in int8 by the runtime's converter.

    Returns:
        `pathlib.Path` of what was written. It appears whole or not at all.

    Raises:
        ImportError: if a converter is not installed.
        RuntimeError: if the file does not load, or its scores differ.
        ValueError: if there is no such format, or it cannot be.
    """
    check(format, quantize, mechanism_of(model))
    path = pathlib.Path(path)
    if quantize == "int8":
        model = quantized(model)
    if format == "savedmodel":
        return saved_model.export(model, path)
    if path.suffix != FORMATS[format].suffix:
        path = path.with_name(path.name + FORMATS[format].suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(
        tempfile.mkdtemp(prefix=".export-", dir=path.parent)
    )
    try:
        folder = temporary / "saved_model"
        write_signature(model, folder)
        target = temporary / path.name
        FORMATS[format].write(folder, target, quantize)
        metadata_file(target).write_text(
            json.dumps(
                {
                    **saved_model.metadata(model),
                    "format": format,
                    "quantize": quantize,
                },
                indent=2,
            )
        )
        shutil.rmtree(folder)
        try_out(model, target, quantize)
        # The file that names the model comes last.
        for file in sorted(temporary.iterdir(), key=lambda f: f == target):
            os.replace(file, path.with_name(file.name))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return path


def check(format, quantize=None, mechanism=None):
    """Raises if a format is unknown, not installed, or cannot be."""
    if format not in FORMATS:
        raise ValueError(
            f"`format` must be one of {list(FORMATS)}. "
            f"Received: format={format!r}"
        )
    if quantize not in (None, *QUANTIZATIONS):
        raise ValueError(
            f"`quantize` must be None or one of {list(QUANTIZATIONS)}. "
            f"Received: quantize={quantize!r}"
        )
    for table, key in (
        (UNSUPPORTED, (format, mechanism)),
        (UNSUPPORTED_QUANTIZATION, (format, quantize)),
    ):
        if key in table:
            raise ValueError(f"{key[0]} cannot be {key[1]}: {table[key]}")
    for package in FORMATS[format].packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise ImportError(
                f"The format {format!r} needs {package}: "
                f"pip install 'audio_tf[formats]' ({error})"
            ) from error


def mechanism_of(model):
    """The name of a model's attention, after "folded" if its table is."""
    name = getattr(model.backbone, "attention", None)
    folded = any(
        getattr(layer, "folded", False) for layer in model._flatten_layers()
    )
    return f"folded {name}" if folded else name


def quantized(model):
    """A copy of the model whose dense layers hold int8."""
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    with warnings.catch_warnings():
        # It warns of each layer that has no weights to quantize.
        warnings.filterwarnings("ignore", ".*`quantize` method")
        copy.quantize("int8")
    return copy


def write_signature(model, folder):
    """A SavedModel with `serving_default` alone, all that converters read.

    Its tables are not folded: see `UNSUPPORTED`.
    """
    endpoint, specs = saved_model.endpoints(model, 1.0)["serving_default"]

    # Without a default, for which OpenVINO would take the input away.
    def serve(waveform, lengths):
        return endpoint(waveform, lengths)

    archive = keras.export.ExportArchive()
    archive.add_endpoint("serving_default", serve, input_signature=specs)
    archive.write_out(str(folder), verbose=False)


def try_out(model, path, quantize):
    """Runs a file at two shapes: converters write broken ones in silence.

    Raises:
        RuntimeError: if it does not run, or if float32 scores differ.
    """
    rng, patch = np.random.default_rng(0), model.backbone.patch_s
    patch = round(patch * model.sample_rate_hz)
    try:
        runtime = load(path)
        for batch, samples in ((2, 5 * patch + 1), (1, 3 * patch)):
            waveform = rng.standard_normal((batch, samples), dtype="float32")
            inputs = {
                "waveform": 0.1 * waveform,
                "lengths": np.array([samples, patch][:batch], "int32"),
            }
            expected = keras.ops.convert_to_numpy(model(inputs, training=False))
            found = runtime(inputs)
            if found.shape != expected.shape or not np.isfinite(found).all():
                raise ValueError(f"scores {found}")
            difference = np.abs(found - expected).max()
            if quantize is None and difference > TOLERANCE:
                raise ValueError(f"scores differ by {difference:.1e}")
    except Exception as error:
        raise RuntimeError(
            f"{path.name} was converted, but does not work: {error}"
        ) from error
