"""The signatures of an exported classifier, and what is written beside them."""

import tensorflow as tf

from audio_tf.audio import RESAMPLER, wav
from audio_tf.audio.chunking import Cutting
from audio_tf.export import audio_bytes
from audio_tf.version import __version__

WAVEFORM = tf.TensorSpec((None, None), tf.float32, name="waveform")
LENGTHS = tf.TensorSpec((None,), tf.int32, name="lengths")
AUDIO_BYTES = tf.TensorSpec((None,), tf.string, name="audio_bytes")


def endpoints(model, max_clip_s):
    """Returns a pair of function and input specs for each signature by name.

    Args:
        model: an `AudioClassifier`.
        max_clip_s: float, the seconds of the longest clip that
            `serving_audio_bytes` scores.
    """

    # One function that all signatures call: its graph is written once.
    @tf.function(input_signature=[WAVEFORM, LENGTHS], autograph=False)
    def run_backbone(waveform, lengths):
        inputs = {"waveform": waveform, "lengths": lengths}
        features = model.frame_model(inputs, training=False)
        return features["sequence_output"], features["frame_mask"]

    def run(waveform, lengths):
        return run_backbone(waveform, real_lengths(waveform, lengths))

    def score(waveform, lengths):
        return tf.cast(model.score_clips(*run(waveform, lengths)), tf.float32)

    def serve(waveform, lengths=tf.constant([-1], tf.int32)):
        return {"scores": score(waveform, lengths)}

    def embed(waveform, lengths=tf.constant([-1], tf.int32)):
        frames, mask = run(waveform, lengths)
        embedding = model.pooler(frames, mask=mask)
        return {"embedding": tf.cast(embedding, tf.float32)}

    def frames(waveform, lengths=tf.constant([-1], tf.int32)):
        frames, mask = run(waveform, lengths)
        return {"scores": model.score_frames(frames), "mask": mask}

    clips = audio_bytes.ClipScorer(
        score,
        model.num_classes,
        model.sample_rate_hz,
        Cutting.of(model),
        max_clip_s,
    )
    return {
        "serving_default": (serve, [WAVEFORM, LENGTHS]),
        "serving_audio_bytes": (clips, [AUDIO_BYTES]),
        "embed": (embed, [WAVEFORM, LENGTHS]),
        "frames": (frames, [WAVEFORM, LENGTHS]),
    }


def real_lengths(waveform, lengths):
    """Returns the samples of each clip, from what a client says they are.

    Args:
        waveform: float32 `(batch, samples)`.
        lengths: int32 `(batch,)` or `(1,)`. A negative number, and one beyond
            the clip, which would overflow, means all samples.

    Returns:
        Int32 `(batch,)`.
    """
    samples = tf.shape(waveform)[1]
    lengths = tf.where(lengths < 0, samples, tf.minimum(lengths, samples))
    return tf.broadcast_to(lengths, tf.shape(waveform)[:1])


def metadata(model):
    """Returns a dict for JSON of all that a client has to know of a model."""
    return {
        "labels": model.labels,
        "num_classes": model.num_classes,
        "sample_rate_hz": model.sample_rate_hz,
        "chunk_s": model.chunk_s,
        "chunk_hop_s": model.chunk_hop_s,
        "silence_db": model.silence_db,
        "max_samples": model.max_samples,
        "resampler": RESAMPLER,
        "errors": [wav.ERRORS[error] for error in wav.WavError],
        "audio_tf": __version__,
    }


def write_scores(model, folder):
    """Writes a SavedModel with `serving_default` alone, for converters.

    Tables of attention are not folded: `openvino.OpenVINO.refusal` says why.
    """
    endpoint, specs = endpoints(model, 1.0)["serving_default"]

    # Without a default, for which OpenVINO would take the input away.
    def serve(waveform, lengths):
        return endpoint(waveform, lengths)

    write({"serving_default": (serve, specs)}, model.weights, folder)


def write(endpoints, weights, folder):
    """Writes functions and the variables they read as a SavedModel.

    `keras.export.ExportArchive` needs no list of variables, but traces every
    function twice to find them. Weights that nothing reads stay away, as what
    stands for masked frames in training, or a layer behind the last one that
    is decoded.

    Args:
        endpoints: dict, by name of the signature, of pairs of a function and
            its list of `tf.TensorSpec`. Defaults of arguments are written.
        weights: list of `keras.Variable`, at least all that functions read.
        folder: path to write to.
    """
    graphs = {
        name: tf.function(function, input_signature=specs, autograph=False)
        for name, (function, specs) in endpoints.items()
    }
    read = {
        id(variable)
        for graph in graphs.values()
        for variable in graph.get_concrete_function().variables
    }
    root = tf.Module()
    root.weights = [
        weight.value for weight in weights if id(weight.value) in read
    ]
    tf.saved_model.save(root, str(folder), signatures=graphs)
