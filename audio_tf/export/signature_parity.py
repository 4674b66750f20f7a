"""Parity of the signatures beside the scores with what the model gives."""

import io

import numpy as np
import soundfile
import tensorflow as tf

from audio_tf import compat
from audio_tf.audio import wav
from audio_tf.export.base import TOLERANCE

# How far they may be, by the least precise dtype that the model computes in:
# a clip and its chunks are in other batches than in the model.
TOLERANCES = {"float32": TOLERANCE, "float16": 2e-3, "bfloat16": 2e-2}
# Where the clip of a stream is cut into pieces, as shares of it.
CUTS = (0.0, 0.1, 0.45, 1.0)


def differences(model, engine, waveforms, batch):
    """Compares each signature that is neither of scores nor of reasons.

    Args:
        model: the `AudioClassifier`.
        engine: `loading.ExportedClassifier` that was written from it.
        waveforms: float arrays `(samples,)` at the model's rate.
        batch: dict of them all as one padded batch.

    Returns:
        Dict by signature of the largest difference, a float: of scores, and of
        embeddings by the largest number in them. It is infinite where other
        frames are real or other clips are scored.
    """
    pair = Pair(model, engine, waveforms, batch)
    by_signature = {
        "embed": pair.of_embeddings,
        "frames": pair.of_frames,
        "serving_audio_bytes": pair.of_files,
        "stream": pair.of_streams,
    }
    return {
        name: float(difference())
        for name, difference in by_signature.items()
        if name in engine.signatures
    }


def tolerance(model):
    """Returns how far signatures of a model may be from what it gives."""
    if any(each.quantization_mode for each in compat.layers_within(model)):
        # The least rounding may become a step of 8 bits.
        return max(TOLERANCES.values())
    return loosest(model, TOLERANCES)


def loosest(model, tolerances):
    """Returns the tolerance of the least precise dtype of a model.

    Args:
        model: the `AudioClassifier`.
        tolerances: dict by dtype of a float; that of float32 counts always.
    """
    dtypes = {layer.compute_dtype for layer in compat.layers_within(model)}
    return max(
        tolerances[dtype] for dtype in {"float32", *dtypes} & {*tolerances}
    )


class Pair:
    """A model and its export, which say something of the same clips.

    Args:
        model, engine, waveforms, batch: as `differences` takes them.
    """

    def __init__(self, model, engine, waveforms, batch):
        self.model = model
        self.engine = engine
        self.waveforms = waveforms
        self.batch = batch
        self.frames_of = reference(model)

    def of_embeddings(self):
        """Compares what the head makes its scores of."""
        expected = self.frames_of(self.batch)[0]
        found = self.engine.embed(self.batch).numpy()
        return apart(found, expected) / max(1.0, np.abs(expected).max())

    def of_frames(self):
        """Compares scores of real frames, and which frames are real."""
        _, expected, real = self.frames_of(self.batch)
        found, mask = (each.numpy() for each in self.engine.frames(self.batch))
        if mask.shape != real.shape or (mask != real).any():
            return np.inf
        return apart(found[real], expected[real])

    def of_files(self):
        """Compares scores of files, but for those too long for the export."""
        model = self.model
        files = [as_wav(each, model.sample_rate_hz) for each in self.waveforms]
        found = self.engine.score_bytes(files)
        found = {name: each.numpy() for name, each in found.items()}
        apart_by = [0.0]
        for row, answer in enumerate(model.classify(files, top=None)):
            if found["error"][row] == wav.WavError.TOO_LONG:
                continue
            if found["valid"][row] != ("scores" in answer):
                return np.inf
            if found["valid"][row]:
                scores = answer["scores"]
                expected = [scores[name] for name in model.label_names]
                apart_by.append(apart(found["scores"][row], expected))
        return np.max(apart_by)

    def of_streams(self):
        """Compares a clip in pieces with the frames of the whole."""
        clip = np.asarray(self.waveforms[0], "float32")[np.newaxis]
        lengths = np.array([clip.shape[1]], "int32")
        expected = self.frames_of({"waveform": clip, "lengths": lengths})[1]
        stream = self.engine.stream()
        places = [round(cut * lengths[0]) for cut in CUTS]
        pieces = [
            stream(clip[:, begin:end], last=end == places[-1]).numpy()
            for begin, end in zip(places, places[1:])
        ]
        return apart(np.concatenate(pieces, 1), expected)


def reference(model):
    """Makes the graph of what a model says of clips and of their frames.

    Args:
        model: the `AudioClassifier`.

    Returns:
        Function of a dict of a waveform and its lengths to arrays: embeddings
        `(batch, dim)`, scores `(batch, frames, classes)` and the mask of real
        frames `(batch, frames)`.
    """

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None), tf.float32),
            tf.TensorSpec((None,), tf.int32),
        ]
    )
    def run(waveform, lengths):
        inputs = {"waveform": waveform, "lengths": lengths}
        found = model.frame_model(inputs, training=False)
        frames, mask = found["sequence_output"], found["frame_mask"]
        embedding = tf.cast(model.pooler(frames, mask=mask), tf.float32)
        return embedding, model.score_frames(frames), mask

    def frames_of(inputs):
        found = run(inputs["waveform"], inputs["lengths"])
        return [each.numpy() for each in found]

    return frames_of


def apart(found, expected):
    """Returns the largest difference of two arrays, infinite of two shapes."""
    if np.shape(found) != np.shape(expected):
        return np.inf
    # A NaN stays one: `max` of Python would lose it.
    return np.max(np.abs(np.subtract(found, expected)), initial=0.0)


def as_wav(waveform, rate_hz):
    """Returns the bytes of a WAV file of float32 samples."""
    file = io.BytesIO()
    samples = np.asarray(waveform, "float32")
    soundfile.write(file, samples, rate_hz, "FLOAT", format="WAV")
    return file.getvalue()
