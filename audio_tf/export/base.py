"""Base of every format of an exported classifier, and of `FORMATS`."""

import importlib
import json
import os
import pathlib
import shutil
import tempfile

import numpy as np

from audio_tf.export.runtimes import metadata_file
from audio_tf.terminal import first_line

# Ways to make a file smaller. `int8` are the model's own dense layers, by
# Keras; `dynamic` are weights in int8, by the runtime's converter.
QUANTIZATIONS = ("int8", "dynamic")
# Float32 scores of any runtime agree with TensorFlow's as far.
TOLERANCE = 1e-5


class Format:
    """A way to keep a classifier where there is no Keras.

    A subclass states what it can do in class attributes, and has `write` and
    `open`. Its module imports converters and runtimes when they are used, so
    that the table of formats can be read without them.

    Attributes:
        name: str, its key in `formats.FORMATS`.
        suffix: str, that of its file, or "" if it writes a folder.
        packages: tuple of str, what has to be importable to write it.
        options: tuple of str, what `write` takes beyond the arguments that
            all formats have.
        unquantizable: dict by quantization of the reason, a str, why a model
            cannot be quantized so in this format.
    """

    name = ""
    suffix = ""
    packages = ()
    options = ()
    unquantizable = {}

    def place(self, folder, quantize=None):
        """Returns the place of this format in the folder of an export."""
        raise NotImplementedError  # abstract

    def write(self, model, path, quantize=None, provenance=None):
        """Writes a classifier whole or not at all, and returns where to.

        Args:
            model: an `AudioClassifier`, already in int8 if it should be.
            path: a file, whose suffix is added if it is missing, or a folder.
            quantize: one of `QUANTIZATIONS`, or `None`.
            provenance: dict that JSON can hold, kept beside the model.
        """
        raise NotImplementedError  # abstract

    def open(self, path, num_threads=None):
        """Opens what `write` has written, as a `runtimes.StoredClassifier`."""
        raise NotImplementedError  # abstract

    def files(self, path):
        """Lists the paths of all files that `write` has written to `path`."""
        raise NotImplementedError  # abstract

    def check_options(self):
        """Raises a `ValueError` if one of the `options` is out of range."""

    def refusal(self, model):
        """Returns why this model cannot be converted, or `None` if it can."""
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

    A subclass has `runtime`, a subclass of `runtimes.RuntimeClassifier`, and
    `convert`.
    """

    runtime = None

    def convert(self, folder, path, quantize):
        """Converts the SavedModel in `folder` to the file `path`.

        It has the signature `serving_default` alone, with no default inputs.
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
        from audio_tf.export import saved_model

        path = pathlib.Path(path)
        if path.suffix != self.suffix:
            path = path.with_name(path.name + self.suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = pathlib.Path(
            tempfile.mkdtemp(prefix=".export-", dir=path.parent)
        )
        try:
            folder = temporary / "saved_model"
            saved_model.write_scores(model, folder)
            target = temporary / path.name
            self.convert_or_name(folder, target, quantize)
            metadata_file(target).write_text(
                json.dumps(
                    {
                        **saved_model.metadata(model),
                        "format": self.name,
                        "quantize": quantize,
                        "provenance": provenance,
                    },
                    indent=2,
                )
            )
            shutil.rmtree(folder)
            self.try_out(model, target, quantize)
            # The file that names the model comes last.
            for file in sorted(
                temporary.iterdir(), key=lambda file: file == target
            ):
                os.replace(file, path.with_name(file.name))
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return path

    def convert_or_name(self, folder, path, quantize):
        """Converts, and names the format in what a converter raises."""
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
        """Runs a file at two shapes: converters write broken ones in silence.

        Raises:
            RuntimeError: if it does not run, or if float32 scores differ.
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
