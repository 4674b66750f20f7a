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
    frames_of = reference(model)
    return {
        name: float(difference(model, engine, frames_of, waveforms, batch))
        for name, difference in SIGNATURES.items()
        if name in engine.signatures
    }


def tolerance(model):
    """Returns how far signatures of a model may be from what it gives."""
    layers = compat.layers_within(model)
    if any(layer.quantization_mode for layer in layers):
        # The least rounding may become a step of 8 bits.
        return max(TOLERANCES.values())
    dtypes = {"float32", *(layer.compute_dtype for layer in layers)}
    return max(TOLERANCES[dtype] for dtype in dtypes & {*TOLERANCES})


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


def of_embeddings(model, engine, frames_of, waveforms, batch):
    """Compares what the head makes its scores of."""
    del model, waveforms
    expected = frames_of(batch)[0]
    found = engine.embed(batch).numpy()
    return apart(found, expected) / max(1.0, np.abs(expected).max())


def of_frames(model, engine, frames_of, waveforms, batch):
    """Compares scores of real frames, and which frames are real."""
    del model, waveforms
    _, expected, real = frames_of(batch)
    found, mask = (each.numpy() for each in engine.frames(batch))
    if mask.shape != real.shape or (mask != real).any():
        return np.inf
    return apart(found[real], expected[real])


def of_files(model, engine, frames_of, waveforms, batch):
    """Compares scores of files, but for those too long for the export."""
    del frames_of, batch
    files = [as_wav(each, model.sample_rate_hz) for each in waveforms]
    found = engine.score_bytes(files)
    found = {name: each.numpy() for name, each in found.items()}
    apart_by = [0.0]
    for row, answer in enumerate(model.classify(files, top=None)):
        if found["error"][row] == wav.WavError.TOO_LONG:
            continue
        if found["valid"][row] != ("scores" in answer):
            return np.inf
        if found["valid"][row]:
            expected = [answer["scores"][name] for name in model.label_names]
            apart_by.append(apart(found["scores"][row], expected))
    return np.max(apart_by)


def of_streams(model, engine, frames_of, waveforms, batch):
    """Compares a clip in pieces with the frames of the whole."""
    del model, batch
    clip = np.asarray(waveforms[0], "float32")[np.newaxis]
    lengths = np.array([clip.shape[1]], "int32")
    expected = frames_of({"waveform": clip, "lengths": lengths})[1]
    stream, places = engine.stream(), [round(c * lengths[0]) for c in CUTS]
    pieces = [
        stream(clip[:, begin:end], last=end == places[-1]).numpy()
        for begin, end in zip(places, places[1:])
    ]
    return apart(np.concatenate(pieces, 1), expected)


SIGNATURES = {
    "embed": of_embeddings,
    "frames": of_frames,
    "serving_audio_bytes": of_files,
    "stream": of_streams,
}


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
