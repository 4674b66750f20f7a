"""Classifiers out of Keras: the base of all that `formats.load` gives."""

import json
import os
import pathlib

import numpy as np

from audio_tf.audio.scoring import ClipClassifier


def metadata_file(path):
    """Returns the path of the JSON beside a file: `model.onnx.json`."""
    return path.with_name(path.name + ".json")


class StoredClassifier(ClipClassifier):
    """A classifier that was exported, for `audio_tf.data.score_clips`.

    Args:
        metadata: dict that `signatures.metadata` has made.

    Attributes:
        metadata: dict, as it was given. The other attributes are as in
            `ClipClassifier`.
    """

    def __init__(self, metadata):
        self.metadata = metadata
        self.labels = metadata["labels"]
        self.num_classes = metadata["num_classes"]
        self.sample_rate_hz = metadata["sample_rate_hz"]
        self.chunk_s = metadata["chunk_s"]
        # Exports from before there was one have none.
        self.chunk_hop_s = metadata.get("chunk_hop_s")
        self.max_samples = metadata.get("max_samples")
        self.silence_db = metadata["silence_db"]

    def __call__(self, inputs):
        """Scores clips.

        Args:
            inputs: float32 waveform `(batch, samples)`, or a dict of it as
                `waveform` and of `lengths`, int32 `(batch,)`, the real samples
                of each clip or -1 for all.

        Returns:
            Float32 scores `(batch, classes)`.
        """
        raise NotImplementedError  # abstract

    def score_batch(self, inputs):
        return np.asarray(self(inputs))

    def predict(self, dataset, verbose="auto"):
        """Returns the scores of all batches of a dataset.

        The arguments are as those of `keras.Model.predict`.
        """
        del verbose
        return np.concatenate([self(inputs) for inputs, _ in dataset])


class RuntimeClassifier(StoredClassifier):
    """A classifier in a runtime; a subclass has `open` and `run`.

    Args:
        path: the file that `formats.convert` has written.
        num_threads: int, the threads of one call; `None` for one a core.

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
        """Opens the file in the runtime."""
        raise NotImplementedError  # abstract

    def run(self, waveform, lengths):
        """Scores a NumPy waveform and lengths: float32 `(batch, classes)`."""
        raise NotImplementedError  # abstract

    def __call__(self, inputs):
        if not isinstance(inputs, dict):
            inputs = {"waveform": inputs, "lengths": None}
        waveform = np.ascontiguousarray(inputs["waveform"], "float32")
        lengths = inputs["lengths"]
        if lengths is None:
            lengths = np.full(len(waveform), -1)
        return self.run(waveform, np.ascontiguousarray(lengths, "int32"))
