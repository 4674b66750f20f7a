"""Writing an `AudioClassifier` as a SavedModel for TensorFlow Serving."""

import json
import math
import os
import pathlib
import shutil
import tempfile

import keras
import tensorflow as tf

from audio_tf import attention
from audio_tf.data import RESAMPLER, wav
from audio_tf.export import audio_bytes, gate, streaming, warmup
from audio_tf.export.loading import METADATA, versions
from audio_tf.version import __version__

# Length of warm-up clips for models that take clips whole.
WARM_UP_S = 1.0

WAVEFORM = tf.TensorSpec((None, None), tf.float32, name="waveform")
LENGTHS = tf.TensorSpec((None,), tf.int32, name="lengths")
AUDIO_BYTES = tf.TensorSpec((None,), tf.string, name="audio_bytes")


def export(
    model,
    path,
    version=None,
    stream=False,
    max_clip_s=600.0,
    provenance=None,
    check=True,
):
    """Writes an `AudioClassifier` as a SavedModel that needs no audio_tf.

    Batch and length are dynamic in all signatures, and all floats float32:

    | signature | takes | gives |
    |---|---|---|
    | `serving_default` | `waveform`, `lengths` | `scores` `(batch, classes)` |
    | `embed` | the same | `embedding` `(batch, dim)` |
    | `frames` | the same | `scores` `(batch, frames, classes)`, `mask` |
    | `serving_audio_bytes` | `audio_bytes` | `scores`, `valid`, `error` |
    | `stream` | `waveform`, `last`, a state | `scores`, the next state |

    `waveform` is `(batch, samples)` at the model's rate and `lengths`, int32
    `(batch,)`, the real samples of each padded clip. `lengths` has a default
    of `[-1]`, all samples: a server takes requests without it, and
    `tf.saved_model.load`, which knows no defaults, wants it passed. These
    signatures take a clip whole. `embedding` is the mean of the real frames;
    `mask`, boolean `(batch, frames)`, is False for frames of padding.

    `audio_bytes` are the contents of WAV files, string `(batch,)`: integers
    of 8 to 32 bits, float32 and float64, A-law and mu-law, any rate and
    number of channels. They are decoded, resampled, cut into windows of the
    model's `chunk_s` and scored as `audio_tf.data.score_clips` does. A clip
    that cannot be scored has zero scores, `valid` False, and in `error` its
    place in `audio_tf.data.wav.ERRORS`; it leaves the others alone.

    `stream`, if asked for, continues a stream: `StreamingClassifier` says how.

    Args:
        model: an `AudioClassifier`. It is not changed; tables of random
            Synthesizers are folded in the copy that is written.
        path: the model's folder, as TensorFlow Serving's `base_path`.
        version: int, the folder in it; the next free number if `None`.
        stream: bool, whether to write the signature `stream`.
        max_clip_s: float, seconds of the longest clip that
            `serving_audio_bytes` scores.
        provenance: dict that can be written as JSON, how the model came to
            be; kept with labels and rate in `assets.extra/audio_tf.json`.
        check: bool, whether to refuse what TensorFlow Serving would refuse:
            `gate.problems` lists it. A layer of custom operations needs
            False, and a server that has them.

    Returns:
        `pathlib.Path` of the version's folder. It appears whole, so that a
        server that watches `path` never loads half of it.

    Raises:
        FileExistsError: if that version is there already.
        RuntimeError: if Keras does not run on TensorFlow.
        ValueError: if `stream` is asked of a model that looks ahead, or
            `check` finds a problem.
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

    model = folded(model)
    archive = keras.export.ExportArchive()
    # No `track(model)`: it would write every weight twice.
    signatures = endpoints(model, max_clip_s)
    if stream:
        signatures["stream"] = streaming.endpoint(model)
    for name, (function, specs) in signatures.items():
        archive.add_endpoint(name, function, input_signature=specs)
    # Beside the target, hidden from a server by its name, then renamed.
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=".export-", dir=path))
    try:
        archive.write_out(str(temporary), verbose=False)
        if check:
            gate.check(temporary)
        (temporary / METADATA).parent.mkdir(exist_ok=True)
        described = {**metadata(model), "provenance": provenance}
        (temporary / METADATA).write_text(json.dumps(described, indent=2))
        warmup.write_requests(
            temporary,
            path.name,
            signatures,
            model.sample_rate_hz,
            model.chunk_s or WARM_UP_S,
        )
        temporary.chmod(0o755)
        os.rename(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return folder


def folded(model):
    """The model, or a copy in which tables are constants if it has any."""
    if not any(
        isinstance(layer, attention.RandomSynthesizerAttention)
        and not layer.folded
        for layer in model._flatten_layers()
    ):
        return model
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    attention.fold(copy)
    return copy


def endpoints(model, max_clip_s):
    """Function and input specs of each signature by its name."""

    # One function that all signatures call: its graph is written once.
    @tf.function(input_signature=[WAVEFORM, LENGTHS], autograph=False)
    def run_backbone(waveform, lengths):
        inputs = {"waveform": waveform, "lengths": lengths}
        features = model.backbone(inputs, training=False)
        return features["sequence_output"], features["frame_mask"]

    def run(waveform, lengths):
        samples = tf.shape(waveform)[1]
        lengths = tf.where(lengths < 0, samples, lengths)
        lengths = tf.broadcast_to(lengths, tf.shape(waveform)[:1])
        return run_backbone(waveform, lengths)

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
        model.chunk_s,
        model.silence_db,
        min(max_clip_s, longest_clip_s(model)),
    )
    return {
        "serving_default": (serve, [WAVEFORM, LENGTHS]),
        "serving_audio_bytes": (clips, [AUDIO_BYTES]),
        "embed": (embed, [WAVEFORM, LENGTHS]),
        "frames": (frames, [WAVEFORM, LENGTHS]),
    }


def longest_clip_s(model):
    """Seconds that a model takes whole, by the tables of its attentions."""
    if model.chunk_s is not None:
        return math.inf
    tables = [
        getattr(getattr(layer, "attention", None), "max_length", None)
        for layer in model.backbone.layers
    ]
    frames = min((t for t in tables if t is not None), default=math.inf)
    return frames * model.backbone.patch_s


def metadata(model):
    """What a client has to know of a model, as JSON can hold it."""
    return {
        "labels": model.labels,
        "num_classes": model.num_classes,
        "sample_rate_hz": model.sample_rate_hz,
        "chunk_s": model.chunk_s,
        "silence_db": model.silence_db,
        "resampler": RESAMPLER,
        "errors": [wav.ERRORS[error] for error in wav.WavError],
        "audio_tf": __version__,
    }
