"""Classifiers out of Keras: the base of all that `formats.load` gives."""

import json
import os
import pathlib

import numpy as np
import tqdm

from audio_tf.audio.scoring import ClipClassifier
from audio_tf.ops.checks import check_choice, check_sizes

MAX_LENGTH = 2**31 - 1


def metadata_file(path):
    """Returns the path of the JSON beside a file: `model.onnx.json`."""
    return path.with_name(path.name + ".json")


def read_metadata(path):
    """Reads what is written beside an exported classifier.

    Args:
        path: `pathlib.Path` of the JSON file.

    Raises:
        ValueError: if it is damaged; it names the file.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def as_batch(inputs):
    """Checks what an exported classifier is called with.

    Args:
        inputs: as `StoredClassifier` is called with.

    Returns:
        Pair of a float32 array `(batch, samples)` and of an int32 array
        `(batch,)`, the real samples of each clip or -1 for all.

    Raises:
        ValueError: if samples are no floating numbers or have other axes,
            lengths are no integers or of another batch, or there is more.
    """
    if not isinstance(inputs, dict):
        inputs = {"waveform": inputs}
    if "waveform" not in inputs or set(inputs) - {"waveform", "lengths"}:
        raise ValueError(
            "Inputs must be a waveform, or a dict of `waveform` and, "
            f"optionally, `lengths`. Received: keys={sorted(map(str, inputs))}"
        )
    waveform, lengths = np.asarray(inputs["waveform"]), inputs.get("lengths")
    if waveform.dtype.kind != "f":
        raise ValueError(
            "`waveform` must be floating numbers; integer samples have to be "
            f"divided by their full scale first. Received: {waveform.dtype}"
        )
    if waveform.ndim != 2:
        raise ValueError(
            "`waveform` must be of shape (batch, samples). "
            f"Received: shape={waveform.shape}"
        )
    lengths = np.asarray(-1 if lengths is None else lengths)
    if lengths.dtype.kind not in "iu":
        raise ValueError(
            "`lengths` must be integers, the real samples of each clip. "
            f"Received: {lengths.dtype}"
        )
    batch = waveform.shape[:1]
    if lengths.shape not in ((), (1,), batch):
        raise ValueError(
            "There must be one of `lengths` for each clip. "
            f"Received: shape={lengths.shape}, {batch[0]} clips"
        )
    # Integers of any size; a cast alone would wrap larger ones around.
    lengths = lengths.astype("float64").clip(-1, MAX_LENGTH)
    lengths = np.broadcast_to(lengths, batch)
    return (
        np.ascontiguousarray(waveform, "float32"),
        np.ascontiguousarray(lengths, "int32"),
    )


class StoredClassifier(ClipClassifier):
    """A classifier that was exported, for `audio_tf.data.score_clips`.

    Args:
        metadata: dict that `signatures.metadata` has made.

    Attributes:
        metadata: dict, as it was given.
        signatures: functions by the names under which a server offers them;
            only a SavedModel has any. The other attributes are as in
            `ClipClassifier`.
    """

    signatures = {}

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
            inputs: floating waveform `(batch, samples)`, or a dict of it as
                `waveform` and of `lengths`, integers `(batch,)`, the real
                samples of each clip or -1 for all.

        Returns:
            Float32 scores `(batch, classes)`.

        Raises:
            ValueError: if the inputs are others.
        """
        raise NotImplementedError  # abstract

    def score_batch(self, inputs):
        return np.asarray(self(inputs))

    def predict(self, x, batch_size=None, verbose="auto"):
        """Scores clips batch by batch.

        Args:
            x: all clips, as the classifier is called with; or an iterable of
                such batches, as a `tf.data.Dataset` is one, of which each is
                alone or in a tuple before its targets.
            batch_size: int, the clips of one call, 32 for `None`; an iterable
                has batches of its own.
            verbose: 0 for no bar of the progress, 1 for one, and `"auto"` for
                one on a terminal.

        Returns:
            Float32 scores `(clips, classes)`.

        Raises:
            ValueError: if there are no clips, an iterable is given with a
                `batch_size`, or a batch is as no call takes it.
        """
        check_choice("verbose", verbose, ["auto", 0, 1])
        if isinstance(x, dict) or hasattr(x, "__array__"):
            size = 32 if batch_size is None else batch_size
            check_sizes(batch_size=size)
            batches = in_batches(*as_batch(x), size)
        elif batch_size is None:
            batches = x
        else:
            raise ValueError(
                "`batch_size` is of clips in one array; an iterable has "
                f"batches. Received: batch_size={batch_size}"
            )
        shown = {"auto": None, 0: True, 1: False}
        scores = [
            self(batch[0] if isinstance(batch, tuple) else batch)
            for batch in tqdm.tqdm(
                batches, unit=" batches", disable=shown[verbose]
            )
        ]
        if not scores:
            raise ValueError("`x` must have clips. Received: none")
        return np.concatenate(scores)


def in_batches(waveform, lengths, batch_size):
    """Returns a list of batches, as a `StoredClassifier` is called with."""
    return [
        {
            "waveform": waveform[first : first + batch_size],
            "lengths": lengths[first : first + batch_size],
        }
        for first in range(0, len(waveform), batch_size)
    ]


class RuntimeClassifier(StoredClassifier):
    """A classifier in a runtime; a subclass has `open` and `run`.

    Args:
        path: the file that `formats.convert` has written.
        num_threads: int, the threads of one call; `None` for one a core.

    Raises:
        FileNotFoundError: if the file, or the JSON beside it, is not there.
        ImportError: if the runtime is not installed.
        ValueError: if the JSON is damaged.
    """

    def __init__(self, path, num_threads=None):
        path = pathlib.Path(path)
        for file in (path, metadata_file(path)):
            if not file.is_file():
                raise FileNotFoundError(f"{file}: no such file")
        super().__init__(read_metadata(metadata_file(path)))
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
        waveform, lengths = as_batch(inputs)
        if not len(waveform):
            # LiteRT fails on none.
            return np.zeros((0, self.num_classes), "float32")
        if not waveform.shape[1]:
            # Some runtimes compute nothing from no samples, or fail.
            waveform = np.zeros((len(waveform), 1), "float32")
            lengths = np.zeros_like(lengths)
        return self.run(waveform, lengths)
