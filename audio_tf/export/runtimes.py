"""Classifiers out of Keras: the base of all that `formats.load` gives."""

import json
import os
import pathlib

import numpy as np


def metadata_file(path):
    """Returns the path of a file's JSON, `model.onnx.json` for `model.onnx`."""
    return path.with_name(path.name + ".json")


class StoredClassifier:
    """A classifier out of Keras, as `audio_tf.data.score_clips` takes it.

    Args:
        metadata: dict as `saved_model.metadata` makes it.

    Attributes:
        labels: names of the classes, or `None`.
        num_classes: int.
        sample_rate_hz: int, the rate of the waveform.
        chunk_s: float or `None`, seconds that long clips are cut into.
        silence_db: float or `None`, peak below which chunks are left out.
        metadata: the dict.
    """

    def __init__(self, metadata):
        self.metadata = metadata
        self.labels = metadata["labels"]
        self.num_classes = metadata["num_classes"]
        self.sample_rate_hz = metadata["sample_rate_hz"]
        self.chunk_s = metadata["chunk_s"]
        self.silence_db = metadata["silence_db"]

    def __call__(self, inputs):
        """Scores `(batch, classes)` of a waveform, or dict with lengths."""
        raise NotImplementedError  # abstract

    def predict(self, dataset, verbose="auto"):
        """Scores all batches of a dataset, as `keras.Model.predict` does."""
        del verbose
        return np.concatenate([self(inputs) for inputs, _ in dataset])


class RuntimeClassifier(StoredClassifier):
    """Base of the classifiers by runtime. `run` is left to the subclass.

    Args:
        path: file written by `formats.convert`.
        num_threads: int or `None`, threads of one call; all cores if `None`.

    Raises:
        FileNotFoundError: if the file, or the JSON beside it, is not there.
        ImportError: if the runtime is not installed.
    """

    def __init__(self, path, num_threads=None):
        path = pathlib.Path(path)
        for file in (path, metadata_file(path)):
            if not file.is_file():
                raise FileNotFoundError(f"{file}: no such file")
        super().__init__(json.loads(metadata_file(path).read_text()))
        try:
            self.open(path, num_threads or os.cpu_count())
        except ImportError as error:
            raise ImportError(
                f"{path.name} needs its runtime: "
                f"pip install 'audio_tf[formats]' ({error})"
            ) from error

    def open(self, path, num_threads):
        """Loads the file into its runtime."""
        raise NotImplementedError  # abstract

    def run(self, waveform, lengths):
        """Scores, float32 `(batch, classes)`, of numpy arrays."""
        raise NotImplementedError  # abstract

    def __call__(self, inputs):
        if not isinstance(inputs, dict):
            inputs = {"waveform": inputs, "lengths": None}
        waveform = np.ascontiguousarray(inputs["waveform"], "float32")
        lengths = inputs["lengths"]
        if lengths is None:
            lengths = np.full(len(waveform), -1)
        return self.run(waveform, np.ascontiguousarray(lengths, "int32"))
