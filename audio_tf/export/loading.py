"""SavedModels written by `export`, found and loaded without Keras."""

import json
import pathlib

import numpy as np
import tensorflow as tf

# The folder `assets.extra` is TensorFlow Serving's own for warm-up records.
METADATA = pathlib.Path("assets.extra", "audio_tf.json")


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
