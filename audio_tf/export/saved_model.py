"""Writing an `AudioClassifier` as a SavedModel for TensorFlow Serving."""

import contextlib
import json
import math
import os
import pathlib
import tempfile

import keras
import tensorflow as tf

from audio_tf.audio import RESAMPLER, graph_wav
from audio_tf.export import audio_bytes, copies, gate, streaming, warmup
from audio_tf.export.loading import METADATA, versions
from audio_tf.terminal import first_line
from audio_tf.version import __version__

# Length of warm-up clips for models that take clips whole.
WARM_UP_S = 1.0
# The longest clip of `serving_audio_bytes`, where nobody says.
MAX_CLIP_S = 600.0
# TensorFlow Serving counts versions in so many bits.
MAX_VERSION = 2**63 - 1

WAVEFORM = tf.TensorSpec((None, None), tf.float32, name="waveform")
LENGTHS = tf.TensorSpec((None,), tf.int32, name="lengths")
AUDIO_BYTES = tf.TensorSpec((None,), tf.string, name="audio_bytes")


def export(
    model,
    path,
    version=None,
    stream=False,
    max_clip_s=None,
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
    `(batch,)`, the real samples of each padded clip; a larger number, and a
    negative one, means all of them. `lengths` has a default of `[-1]`: a
    server takes requests without it, and `tf.saved_model.load`, which knows
    no defaults, wants it passed. These signatures take a clip whole.
    `embedding` is the mean of the real frames; `mask`, boolean `(batch,
    frames)`, is False for frames of padding.

    `audio_bytes` are the contents of WAV files, string `(batch,)`: integers
    of 8 to 32 bits, float32 and float64, A-law and mu-law, any rate and
    number of channels. They are decoded, resampled, cut into windows of the
    model's `chunk_s` and scored as `audio_tf.data.score_clips` does. A clip
    that cannot be scored has zero scores, `valid` False, and in `error` its
    place in `audio_tf.audio.graph_wav.ERRORS`; it leaves the others alone.

    `stream`, if asked for, continues a stream: `StreamingClassifier` says how.

    Args:
        model: an `AudioClassifier`. It is not changed; tables of random
            Synthesizers are folded in the copy that is written.
        path: the model's folder, as TensorFlow Serving's `base_path`.
        version: int, the folder in it; the next free number if `None`.
        stream: bool, whether to write the signature `stream`.
        max_clip_s: float, seconds of the longest clip that
            `serving_audio_bytes` scores; `None` is 600, or less where the
            model takes no such clip whole.
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
        OSError: if it cannot be written, as on a full disk. Nothing of the
            version is left then, and the others stay as they were.
        RuntimeError: if Keras does not run on TensorFlow.
        ValueError: if an argument is out of range or does not fit the model,
            as `stream` where a frame looks ahead, or `check` finds a problem.
    """
    check_arguments(version, stream, max_clip_s)
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            "A SavedModel is written by TensorFlow: set "
            "KERAS_BACKEND=tensorflow. "
            f"Received: backend={keras.backend.backend()!r}"
        )
    path = pathlib.Path(path)
    stored = versions(path)
    if version is None:
        version = max(stored, default=0) + 1
    folder = path / str(version)
    if folder.exists():
        raise FileExistsError(f"{folder} exists already")
    max_clip_s = longest_scored_s(model, max_clip_s)

    model = copies.folded(model)
    archive = keras.export.ExportArchive()
    # No `track(model)`: it would write every weight twice.
    signatures = endpoints(model, max_clip_s)
    if stream:
        signatures["stream"] = streaming.endpoint(model)
    for name, (function, specs) in signatures.items():
        archive.add_endpoint(name, function, input_signature=specs)
    is_new = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        # Beside the target, hidden from a server by its name, then renamed.
        with tempfile.TemporaryDirectory(
            prefix=".export-", dir=path, ignore_cleanup_errors=True
        ) as temporary:
            written = pathlib.Path(temporary, "version")
            archive.write_out(str(written), verbose=False)
            if check:
                gate.check(written)
            (written / METADATA).parent.mkdir(exist_ok=True)
            described = {**metadata(model), "provenance": provenance}
            (written / METADATA).write_text(json.dumps(described, indent=2))
            warmup.write_requests(
                written,
                path.name,
                signatures,
                model.sample_rate_hz,
                model.chunk_s or WARM_UP_S,
            )
            written.chmod(0o755)
            os.rename(written, folder)
    except (OSError, tf.errors.OpError) as error:
        kept = ", ".join(map(str, sorted(stored))) or "none"
        raise OSError(
            f"{folder} was not written, and nothing of it is left; versions "
            f"that {path} keeps: {kept}. Received: {first_line(error)}"
        ) from error
    finally:
        # Empty if nothing was written, and then as if never made.
        if is_new and not folder.exists():
            with contextlib.suppress(OSError):
                path.rmdir()
    return folder


def check_arguments(version=None, stream=False, max_clip_s=None):
    """Raises a `ValueError` for an argument that no model could take."""
    del stream
    if version is not None and not 0 <= version <= MAX_VERSION:
        raise ValueError(
            "`version` must be an integer of at least 0, of 63 bits. "
            f"Received: version={version}"
        )
    if max_clip_s is not None and not 0.0 < max_clip_s:
        raise ValueError(
            "`max_clip_s` must be a positive number of seconds. "
            f"Received: max_clip_s={max_clip_s}"
        )


def longest_scored_s(model, max_clip_s):
    """Returns the seconds of the longest clip of `serving_audio_bytes`.

    Raises:
        ValueError: if the model does not take clips of `max_clip_s` whole.
    """
    longest_s = math.inf
    if model.chunk_s is None and model.backbone.max_samples is not None:
        longest_s = model.backbone.max_samples / model.sample_rate_hz
    if max_clip_s is None:
        return min(MAX_CLIP_S, longest_s)
    if max_clip_s > longest_s:
        raise ValueError(
            f"The model takes clips of at most {longest_s:g} s whole. "
            f"Received: max_clip_s={max_clip_s:g}"
        )
    return max_clip_s


def write_scores(model, folder):
    """Writes a SavedModel of `serving_default` alone, which converters read.

    Its tables are not folded: `openvino.OpenVINO.refusal` says why.
    """
    endpoint, specs = endpoints(model, 1.0)["serving_default"]

    # Without a default, for which OpenVINO would take the input away.
    def serve(waveform, lengths):
        return endpoint(waveform, lengths)

    archive = keras.export.ExportArchive()
    archive.add_endpoint("serving_default", serve, input_signature=specs)
    archive.write_out(str(folder), verbose=False)


def endpoints(model, max_clip_s):
    """Returns function and input specs of each signature by its name."""

    # One function that all signatures call: its graph is written once.
    @tf.function(input_signature=[WAVEFORM, LENGTHS], autograph=False)
    def run_backbone(waveform, lengths):
        inputs = {"waveform": waveform, "lengths": lengths}
        features = model.backbone(inputs, training=False)
        return features["sequence_output"], features["frame_mask"]

    def run(waveform, lengths):
        samples = tf.shape(waveform)[1]
        # A client may send any number: beyond the clip, it would overflow.
        lengths = tf.where(lengths < 0, samples, tf.minimum(lengths, samples))
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
        max_clip_s,
    )
    return {
        "serving_default": (serve, [WAVEFORM, LENGTHS]),
        "serving_audio_bytes": (clips, [AUDIO_BYTES]),
        "embed": (embed, [WAVEFORM, LENGTHS]),
        "frames": (frames, [WAVEFORM, LENGTHS]),
    }


def metadata(model):
    """Returns what a client has to know of a model, as JSON can hold it."""
    return {
        "labels": model.labels,
        "num_classes": model.num_classes,
        "sample_rate_hz": model.sample_rate_hz,
        "chunk_s": model.chunk_s,
        "silence_db": model.silence_db,
        "resampler": RESAMPLER,
        "errors": [graph_wav.ERRORS[error] for error in graph_wav.WavError],
        "audio_tf": __version__,
    }
