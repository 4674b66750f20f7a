"""SavedModels for TensorFlow Serving, and their use without Keras."""

import json
import os
import pathlib
import shutil
import tempfile

import keras
import numpy as np
import tensorflow as tf

from audio_tf.version import __version__

METADATA = pathlib.Path("assets.extra", "audio_tf.json")


def export(model, path, version=None):
    """Writes an `AudioClassifier` as a SavedModel that needs no audio_tf.

    The signature `serving_default` takes `waveform`, float32
    `(batch, samples)`, and `lengths`, int32 `(batch,)`, the real samples of
    each padded clip; both dimensions are dynamic. `lengths` has a default of
    `[-1]`, all samples: a server takes requests without it, and
    `tf.saved_model.load`, which knows no defaults, wants it passed. It gives
    `scores`, float32 `(batch, classes)`.

    Args:
        model: an `AudioClassifier`.
        path: the model's folder, as TensorFlow Serving's `base_path`.
        version: int, the folder in it; the next free number if `None`.

    Returns:
        `pathlib.Path` of the version's folder. It appears whole, so that a
        server that watches `path` never loads half of it.

    Raises:
        FileExistsError: if that version is there already.
        RuntimeError: if Keras does not run on TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "A SavedModel is written by TensorFlow: set "
            "KERAS_BACKEND=tensorflow. "
            f"Received: backend={keras.backend.backend()!r}"
        )
    path = pathlib.Path(path)
    path.mkdir(parents=True, exist_ok=True)
    if version is None:
        version = max(versions(path), default=0) + 1
    folder = path / str(version)
    if folder.exists():
        raise FileExistsError(f"{folder} exists already")

    def serve(waveform, lengths=tf.constant([-1], tf.int32)):
        samples = tf.shape(waveform)[1]
        lengths = tf.where(lengths < 0, samples, lengths)
        lengths = tf.broadcast_to(lengths, tf.shape(waveform)[:1])
        scores = model(
            {"waveform": waveform, "lengths": lengths}, training=False
        )
        return {"scores": tf.cast(scores, tf.float32)}

    archive = keras.export.ExportArchive()
    # No `track(model)`: it would write every weight twice.
    archive.add_endpoint(
        "serving_default",
        serve,
        input_signature=[
            tf.TensorSpec((None, None), tf.float32, name="waveform"),
            tf.TensorSpec((None,), tf.int32, name="lengths"),
        ],
    )
    metadata = {
        "labels": model.labels,
        "num_classes": model.num_classes,
        "sample_rate_hz": model.sample_rate_hz,
        "chunk_s": model.chunk_s,
        "silence_db": model.silence_db,
        "audio_tf": __version__,
    }
    # Beside the target, hidden from a server by its name, then renamed.
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=".export-", dir=path))
    try:
        archive.write_out(str(temporary), verbose=False)
        (temporary / METADATA).parent.mkdir(exist_ok=True)
        (temporary / METADATA).write_text(json.dumps(metadata, indent=2))
        temporary.chmod(0o755)
        os.rename(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return folder


def versions(path):
    """Numbers of the versions in a model's folder."""
    return [int(entry.name) for entry in path.iterdir() if entry.name.isdigit()]


def saved_model_folder(path):
    """The folder with `saved_model.pb`: `path` or its highest version.

    Returns:
        `pathlib.Path`, or `None` if there is none.
    """
    path = pathlib.Path(path)
    if (path / "saved_model.pb").is_file():
        return path
    if not path.is_dir() or not versions(path):
        return None
    newest = path / str(max(versions(path)))
    return newest if (newest / "saved_model.pb").is_file() else None


class ExportedClassifier:
    """A SavedModel written by `export`, loaded for scoring.

    Args:
        path: the model's folder or that of one version.

    Attributes:
        labels: names of the classes, or `None`.
        num_classes: int.
        sample_rate_hz: int, the rate of the waveform.
        chunk_s: float or `None`, seconds that long clips are cut into.
        silence_db: float or `None`, peak below which chunks are left out.

    Raises:
        FileNotFoundError: if there is no SavedModel or it is not of `export`.
    """

    def __init__(self, path):
        folder = saved_model_folder(path)
        if folder is None or not (folder / METADATA).is_file():
            raise FileNotFoundError(
                f"{path}: no SavedModel with {METADATA} there"
            )
        metadata = json.loads((folder / METADATA).read_text())
        self.labels = metadata["labels"]
        self.num_classes = metadata["num_classes"]
        self.sample_rate_hz = metadata["sample_rate_hz"]
        self.chunk_s = metadata["chunk_s"]
        self.silence_db = metadata["silence_db"]
        self._module = tf.saved_model.load(str(folder))
        self._serve = self._module.signatures["serving_default"]

    def __call__(self, inputs):
        """Scores `(batch, classes)` of a waveform, or dict with lengths."""
        if not isinstance(inputs, dict):
            inputs = {"waveform": inputs, "lengths": [-1]}
        return self._serve(
            waveform=tf.convert_to_tensor(inputs["waveform"], tf.float32),
            lengths=tf.convert_to_tensor(inputs["lengths"], tf.int32),
        )["scores"]

    def predict(self, dataset, verbose="auto"):
        """Scores of all batches of a dataset, as `keras.Model.predict`."""
        del verbose
        return np.concatenate([self(inputs) for inputs, _ in dataset])
