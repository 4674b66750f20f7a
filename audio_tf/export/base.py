"""The base classes of the formats that a classifier is exported to."""

import importlib
import json
import os
import pathlib
import shutil

import numpy as np

from audio_tf import files
from audio_tf.export.runtimes import metadata_file
from audio_tf.terminal import first_line

# Ways to make a file smaller. By `int8`, Keras quantizes the model's dense
# layers; by `dynamic`, the converter of the runtime quantizes the weights.
QUANTIZATIONS = ("int8", "dynamic")
# How far float32 scores of a runtime may be from those of TensorFlow.
TOLERANCE = 1e-5


def check_backend():
    """Raises a `RuntimeError` if Keras does not run on TensorFlow."""
    import keras

    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            "Exports are written by TensorFlow: set KERAS_BACKEND=tensorflow, "
            "which loads presets of other backends too. "
            f"Received: backend={backend!r}"
        )


def check_classifier(model):
    """Raises a `TypeError` if what is to be written is no `AudioClassifier`."""
    from audio_tf.models import AudioClassifier

    if not isinstance(model, AudioClassifier):
        raise TypeError(
            "`model` must be an AudioClassifier, as "
            "`AudioClassifier.from_preset` makes it of a preset's name. "
            f"Received: model of type {type(model).__name__}"
        )


class Format:
    """A way to keep a classifier where there is no Keras.

    A subclass states what it can do in class attributes, and has `write` and
    `open`. Its module imports converters and runtimes when they are used, so
    that the table of formats can be read without them.

    Attributes:
        name: str, the key of the format in `formats.FORMATS`.
        suffix: str, the suffix of its file, or `""` if it writes a folder.
        packages: tuple of str, the packages that `write` imports.
        options: tuple of str, the names of the arguments that `write` has
            beyond those of all formats.
        unquantizable: dict of str, for each quantization that this format
            cannot have the reason why.
    """

    name = ""
    suffix = ""
    packages = ()
    options = ()
    unquantizable = {}

    def place(self, folder, quantize=None):
        """Returns the path of this format in the folder of an export."""
        raise NotImplementedError  # abstract

    def write(self, model, path, quantize=None, provenance=None):
        """Writes a classifier, whole or not at all, and returns the path.

        Args:
            model: an `AudioClassifier`, whose layers are in int8 already if
                `quantize` is `"int8"`.
            path: path of the file, whose suffix is added if it is missing, or
                of the folder.
            quantize: one of `QUANTIZATIONS`, or `None` for float32.
            provenance: dict that JSON can hold, which is kept beside the
                model.
        """
        raise NotImplementedError  # abstract

    def open(self, path, num_threads=None):
        """Returns a `runtimes.StoredClassifier` of what `write` has written."""
        raise NotImplementedError  # abstract

    def files(self, path):
        """Returns the paths of all files that `write` has written to `path`."""
        raise NotImplementedError  # abstract

    def check_options(self):
        """Raises a `ValueError` if one of the `options` is out of range."""

    def check_write(self, model, path, **options):
        """Raises the error of a `write` that would be refused, before others.

        Args:
            model, path, **options: as `write` takes them.

        Raises:
            FileExistsError: if what must not be replaced is there.
            ValueError: if one of the `options` does not fit the model.
        """

    def refusal(self, model):
        """Returns why a model cannot be converted, or `None` if it can be."""
        del model
        return None

    def check_installed(self):
        """Raises an `ImportError` that names a package that is missing."""
        for package in self.packages:
            try:
                importlib.import_module(package)
            except ImportError as error:
                raise ImportError(
                    f"The format {self.name!r} needs {package}: "
                    f"pip install 'audio_tf[formats]' ({error})"
                ) from error


class FileFormat(Format):
    """A format of one file, which is converted from a SavedModel.

    A subclass has `convert`.

    Attributes:
        runtime: subclass of `runtimes.RuntimeClassifier` that opens the file.
    """

    runtime = None

    def convert(self, folder, path, quantize):
        """Converts the SavedModel in `folder` to the file `path`.

        The SavedModel has the signature `serving_default` alone, and its
        inputs have no defaults.
        """
        raise NotImplementedError  # abstract

    def place(self, folder, quantize=None):
        stem = "model" if quantize is None else f"model_{quantize}"
        return pathlib.Path(folder, stem + self.suffix)

    def open(self, path, num_threads=None):
        return self.runtime(path, num_threads)

    def files(self, path):
        return [pathlib.Path(path)]

    def write(self, model, path, quantize=None, provenance=None):
        from audio_tf.export import signatures

        path = pathlib.Path(path)
        if path.suffix != self.suffix:
            path = path.with_name(path.name + self.suffix)
        with files.scratch(path) as temporary:
            folder = temporary / "saved_model"
            signatures.write_scores(model, folder)
            target = temporary / path.name
            self.convert_or_name(folder, target, quantize)
            metadata_file(target).write_text(
                json.dumps(
                    {
                        **signatures.metadata(model),
                        "format": self.name,
                        "quantize": quantize,
                        "provenance": provenance,
                    },
                    indent=2,
                )
            )
            shutil.rmtree(folder)
            self.try_out(model, target, quantize)
            # Stopped between two of them, it must leave no file that names
            # the labels or weights of another: that file goes first, and the
            # new one comes last.
            path.unlink(missing_ok=True)
            for file in sorted(
                temporary.iterdir(), key=lambda file: file == target
            ):
                os.replace(file, path.with_name(file.name))
        return path

    def convert_or_name(self, folder, path, quantize):
        """Converts, and names the format in any error of the converter."""
        try:
            self.convert(folder, path, quantize)
        except OSError:
            raise
        except Exception as error:
            raise RuntimeError(
                f"{self.name} does not convert this model. Received: "
                f"{type(error).__name__}: {first_line(error)}"
            ) from error

    def try_out(self, model, path, quantize):
        """Runs a new file at two shapes, as some that are written do not run.

        Raises:
            RuntimeError: if the file does not run, or its scores differ from
                those of the model although it is not quantized.
        """
        from keras import ops

        rng, size = np.random.default_rng(0), model.backbone.frame_size
        try:
            runtime = self.open(path)
            for batch, samples in ((2, 5 * size + 1), (1, 3 * size)):
                waveform = rng.standard_normal(
                    (batch, samples), dtype="float32"
                )
                inputs = {
                    "waveform": 0.1 * waveform,
                    "lengths": np.array([samples, size][:batch], "int32"),
                }
                expected = ops.convert_to_numpy(model(inputs, training=False))
                found = runtime(inputs)
                if (
                    found.shape != expected.shape
                    or not np.isfinite(found).all()
                ):
                    raise ValueError(f"scores {found}")
                difference = np.abs(found - expected).max()
                if quantize is None and difference > TOLERANCE:
                    raise ValueError(f"scores differ by {difference:.1e}")
        except Exception as error:
            raise RuntimeError(
                f"{path.name} was converted, but does not work: "
                f"{first_line(error)}"
            ) from error
