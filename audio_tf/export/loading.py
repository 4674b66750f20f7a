"""SavedModels written by `export`, found and loaded without Keras."""

import pathlib

import numpy as np
import tensorflow as tf

from audio_tf.export.runtimes import (
    StoredClassifier,
    as_batch,
    read_metadata,
)
from audio_tf.ops.checks import closest
from audio_tf.terminal import first_line

# The folder `assets.extra` is TensorFlow Serving's own for warm-up records.
METADATA = pathlib.Path("assets.extra", "audio_tf.json")
# The file by which a server knows a version.
SAVED_MODEL = "saved_model.pb"
# What TensorFlow raises for one that was cut off, which may not name it.
UNREADABLE = (ValueError, IndexError, OSError, tf.errors.OpError)


def versions(path):
    """Returns the numbers of the versions in a model's folder.

    There are none if the folder is missing.
    """
    if not path.is_dir():
        return []
    # `isdigit` is true of digits that `int` and a server do not take.
    names = [entry.name for entry in path.iterdir()]
    return [int(name) for name in names if name.isdecimal() and name.isascii()]


def saved_model_folder(path):
    """Finds the folder with `saved_model.pb`: `path` or its highest version.

    ```python
    folder = audio_tf.export.saved_model_folder("exported/dog_or_rain")
    model = tf.saved_model.load(str(folder))
    ```

    Returns:
        `pathlib.Path`, or `None` if no folder has the file.
    """
    path = pathlib.Path(path)
    if (path / SAVED_MODEL).is_file():
        return path
    if not versions(path):
        return None
    newest = path / str(max(versions(path)))
    return newest if (newest / SAVED_MODEL).is_file() else None


class ExportedClassifier(StoredClassifier):
    """A SavedModel written by `export`, loaded for scoring.

    ```python
    classifier = audio_tf.export.ExportedClassifier("exported/dog_or_rain")
    classifier.classify("dog.wav")["scores"]
    ```

    Args:
        path: the folder of the model or of one version.

    Attributes:
        signatures: dict of the functions of the SavedModel by name. The
            other attributes are as in `StoredClassifier`.

    Raises:
        FileNotFoundError: if there is no SavedModel, or `export` has not
            written it.
        ValueError: if it, or what lies beside it, is damaged; it names the
            folder or the file.
    """

    embeds = True

    def __init__(self, path):
        folder = saved_model_folder(path)
        if folder is None or not (folder / METADATA).is_file():
            raise FileNotFoundError(
                f"{path}: no SavedModel with {METADATA} there"
            )
        super().__init__(read_metadata(folder / METADATA))
        try:
            self._module = tf.saved_model.load(str(folder))
        except UNREADABLE as error:
            raise ValueError(
                f"{folder} cannot be loaded, as where it was not copied as a "
                f"whole: {type(error).__name__}: {first_line(error)}"
            ) from error
        self.signatures = self._module.signatures

    def __call__(self, inputs):
        return self.run("serving_default", inputs)["scores"]

    def embed(self, inputs):
        """Returns what the head makes its scores of, `(batch, dim)`.

        It is the real frames of each clip, pooled as the model pools them.

        Args:
            inputs: as those of a call.
        """
        return self.run("embed", inputs)["embedding"]

    def score_and_embed_batch(self, inputs):
        return np.asarray(self(inputs)), np.asarray(self.embed(inputs))

    def frames(self, inputs):
        """Returns scores `(batch, frames, classes)` and a mask of the frames.

        Args:
            inputs: as those of a call.
        """
        outputs = self.run("frames", inputs)
        return outputs["scores"], outputs["mask"]

    def explain(self, inputs, label=None):
        """Weighs the patches of clips by what they say for a label.

        Args:
            inputs: as those of a call.
            label: str, the label that is explained, or a list of the label
                of each clip; `None` for each clip's best.

        Returns:
            Dict of the outputs of the signature `explain`, as
            `explanation.ClipExplainer` lists them.

        Raises:
            ValueError: if the model was exported without `explain=True`,
                there is no such label, or there are not as many as clips.
        """
        self.check_signature("explain", "Explanations need a model")
        names = self.label_names
        numbers = [-1]
        if label is not None:
            numbers = []
            for name in [label] if isinstance(label, str) else label:
                if name not in names:
                    raise ValueError(
                        f"`label` must be one of {names}{closest(name, names)}."
                        f" Received: label={name!r}"
                    )
                numbers.append(names.index(name))
        clips = len(as_batch(inputs)[0])
        if len(numbers) not in (1, clips):
            raise ValueError(
                "There must be one `label`, or one for each clip. "
                f"Received: {len(numbers)} labels, {clips} clips"
            )
        return self.run("explain", inputs, label=tf.constant(numbers, tf.int32))

    def check_signature(self, name, needs):
        """Raises a `ValueError` if an optional signature was not exported.

        Args:
            name: str, the signature and the argument of `export`.
            needs: str, who needs what model.
        """
        if name not in self.signatures:
            raise ValueError(
                f"{needs} exported with {name}=True. "
                f"Received: signatures={sorted(self.signatures)}"
            )

    def run(self, signature, inputs, **more):
        """Runs a signature that takes a waveform.

        Args:
            signature: str, its name.
            inputs: as those of a call.
            **more: tensors, its further inputs by name.

        Returns:
            Dict of its outputs by name.
        """
        waveform, lengths = as_batch(inputs)
        return self.signatures[signature](
            waveform=tf.constant(waveform),
            lengths=tf.constant(lengths),
            **more,
        )

    def score_bytes(self, contents):
        """Scores WAV files from their contents.

        Args:
            contents: list of bytes.

        Returns:
            Dict of `scores`, `valid` and `error`, as the signature
            `serving_audio_bytes` gives them.

        Raises:
            TypeError: if it is the content of one file.
        """
        # TensorFlow would make as many copies of it as it has bytes.
        if isinstance(contents, (str, bytes, bytearray, memoryview)):
            raise TypeError(
                "`contents` must be of several files, as in [content]. "
                f"Received: contents={type(contents).__name__}"
            )
        return self.signatures["serving_audio_bytes"](
            audio_bytes=tf.constant(contents, tf.string, (len(contents),))
        )

    def stream(self):
        """Begins a stream and returns a function that scores its pieces.

        ```python
        stream = classifier.stream()
        for samples in microphone:  # float32 (batch, any number)
            scores = stream(samples)  # (batch, new frames, classes)
        scores = stream(samples, last=True)
        ```

        The function keeps the state of the stream. After the last piece, the
        next one begins a new stream. All samples of a piece are real.

        Raises:
            ValueError: if the model was exported without `stream=True`.
        """
        self.check_signature("stream", "Streams need a causal model")
        state = tf.zeros((1, 0))

        def score(waveform, last=False):
            nonlocal state
            waveform, lengths = as_batch(waveform)
            ends = np.asarray(last)
            if ends.dtype != bool or ends.ndim:
                raise ValueError(
                    "`last` must be True or False, for all rows of a piece. "
                    f"Received: last={last!r}"
                )
            padded = (lengths >= 0) & (lengths < waveform.shape[1])
            if padded.any():
                raise ValueError(
                    "All samples of a piece must be real, and `lengths` be "
                    f"left out. Received: lengths={lengths.tolist()} of "
                    f"{waveform.shape[1]} samples"
                )
            begun, batch = state.shape[0], len(waveform)
            if state.shape[1] and begun != batch:
                raise ValueError(
                    "All pieces of a stream must have the batch of the first. "
                    f"Received: {batch} rows after {begun}"
                )
            outputs = self.signatures["stream"](
                waveform=tf.constant(waveform),
                last=tf.constant([last]),
                state=state,
            )
            state = tf.zeros((1, 0)) if last else outputs["state"]
            return outputs["scores"]

        return score
