"""Writing an `AudioClassifier` as a SavedModel for TensorFlow Serving."""

import json
import math
import numbers
import os
import pathlib

import tensorflow as tf

from audio_tf import files
from audio_tf.export import (
    copies,
    explanation,
    gate,
    signatures,
    streaming,
    warmup,
)
from audio_tf.export.base import check_backend, check_classifier
from audio_tf.export.loading import METADATA, SAVED_MODEL, versions
from audio_tf.ops import checks
from audio_tf.terminal import first_line

# Length of warm-up clips for models that take clips whole.
WARM_UP_S = 1.0
# The longest clip of `serving_audio_bytes`, where nobody says.
MAX_CLIP_S = 600.0
# TensorFlow Serving counts versions in so many bits.
MAX_VERSION = 2**63 - 1


def export(
    model,
    path,
    version=None,
    stream=False,
    max_clip_s=None,
    provenance=None,
    check=True,
    explain=False,
):
    """Writes an `AudioClassifier` as a SavedModel that needs no audio_tf.

    ```python
    classifier = audio_tf.models.AudioClassifier.from_preset("trained")
    audio_tf.export.export(classifier, "exported/dog_or_rain", version=1)
    ```

    Batch and length are dynamic in all signatures, and all floats float32:

    | signature | takes | gives |
    |---|---|---|
    | `serving_default` | `waveform`, `lengths` | `scores` `(batch, classes)` |
    | `embed` | `waveform`, `lengths` | `embedding` `(batch, dim)` |
    | `frames` | `waveform`, `lengths` | `scores` over time, `mask` |
    | `serving_audio_bytes` | `audio_bytes` | `scores`, `valid`, `error` |
    | `stream` | `waveform`, `last`, a state | `scores`, the next state |
    | `explain` | `waveform`, `lengths`, `label` | `weights` of patches |

    `waveform` is `(batch, samples)` at the model's rate and `lengths`, int32
    `(batch,)`, the real samples of each padded clip; a larger number, and a
    negative one, means all of them. `lengths` has a default of `[-1]`: a
    server takes requests without it, and `tf.saved_model.load`, which knows
    no defaults, wants it passed. These signatures take a clip whole.
    `embedding` is what the head makes its scores of: the real frames, pooled
    as the model's `pooling` says. `scores` over time are `(batch, frames,
    classes)`, and `mask`, boolean `(batch, frames)`, is False for frames of
    padding.

    `audio_bytes` are the contents of WAV files, string `(batch,)`: integers
    of 8 to 32 bits, float32 and float64, A-law and mu-law, from 1 kHz to 1
    MHz and of up to 1024 channels, RIFF or RF64; no ADPCM. They are decoded,
    resampled, cut into chunks of the model's `chunk_s` and scored as
    `audio_tf.data.score_clips` does. A clip that cannot be scored has zero
    scores, `valid` False, and in `error` its place in
    `audio_tf.audio.wav.ERRORS`; it leaves the others alone.

    `stream`, if asked for, continues a stream: `streaming.Stream` says how.

    `explain`, if asked for, gives what `AudioClassifier.explain` does by
    integrated gradients: `explanation.ClipExplainer` lists it. `label`, int32
    `(batch,)`, is the place of the label in `labels`, by default -1 for each
    clip's best. It hears a clip as `serving_audio_bytes` does, in chunks, and
    computes `explaining.STEPS` scores of each, with their gradients.

    Args:
        model: an `AudioClassifier`. It is not changed; tables of random
            Synthesizers are folded in the copy that is written.
        path: the folder of the model, which TensorFlow Serving has as
            `base_path`.
        version: int, the version, after which a folder in it is named;
            `None` for the next free number.
        stream: bool, whether to write the signature `stream`.
        max_clip_s: float, the seconds of the longest clip that
            `serving_audio_bytes` scores; `None` for 600, or less where the
            model takes no such clip whole.
        provenance: dict that can be written as JSON, which says how the model
            came to be. It is kept with labels and rate in
            `assets.extra/audio_tf.json`.
        check: bool, whether to refuse what TensorFlow Serving would refuse:
            `gate.problems` lists it. A layer of custom operations needs
            False, and a server that has them.
        explain: bool, whether to write the signature `explain`.

    Returns:
        `pathlib.Path` of the version's folder. It appears whole, so that a
        server that watches `path` never loads half of it.

    Raises:
        FileExistsError: if that version is there already.
        OSError: if it cannot be written, as on a full disk. Nothing of the
            version is left then, and the others stay as they were.
        RuntimeError: if Keras does not run on TensorFlow.
        TypeError: if `model` is something else, such as a preset's name.
        ValueError: if an argument is out of range or does not fit the model,
            as `stream` where a frame looks ahead or `explain` where there
            are no gradients, or `check` finds a problem.
    """
    check_backend()
    check_classifier(model)
    folder = check_write(model, path, version, stream, max_clip_s, explain)
    path = folder.parent
    stored = versions(path)
    max_clip_s = longest_scored_s(model, max_clip_s)

    model = copies.folded(model)
    endpoints = signatures.endpoints(model, max_clip_s)
    if stream:
        endpoints["stream"] = streaming.endpoint(model)
    if explain:
        clips, _ = endpoints["serving_audio_bytes"]
        endpoints["explain"] = explanation.endpoint(clips)
    try:
        # Beside the target, hidden from a server by its name, then renamed.
        with files.scratch(folder) as temporary:
            written = temporary / "version"
            signatures.write(endpoints, model.weights, written)
            if check:
                gate.check(written)
            (written / METADATA).parent.mkdir(exist_ok=True)
            described = {**signatures.metadata(model), "provenance": provenance}
            (written / METADATA).write_text(json.dumps(described, indent=2))
            warmup.write_requests(
                written,
                path.name,
                endpoints,
                model.sample_rate_hz,
                model.chunk_s or min(WARM_UP_S, max_clip_s),
            )
            written.chmod(0o755)
            os.rename(written, folder)
    except (OSError, tf.errors.OpError) as error:
        kept = ", ".join(map(str, sorted(stored))) or "none"
        raise OSError(
            f"{folder} was not written, and nothing of it is left; versions "
            f"that {path} keeps: {kept}. Received: {first_line(error)}"
        ) from error
    return folder


def check_write(
    model, path, version=None, stream=False, max_clip_s=None, explain=False
):
    """Refuses early what `export` cannot write, and finds where it goes.

    That a model has no gradients for `explain` is not known before a trace.

    Args:
        model, path, version, stream, max_clip_s, explain: as `export` takes
            them.

    Returns:
        `pathlib.Path` of the version's folder, which is not there.

    Raises:
        FileExistsError, ValueError: as `export`.
    """
    check_arguments(version, stream, max_clip_s, explain)
    path = pathlib.Path(path)
    check_no_version(path)
    if version is None:
        version = max(versions(path), default=0) + 1
    folder = path / str(version)
    if folder.exists():
        raise FileExistsError(f"{folder} exists already")
    longest_scored_s(model, max_clip_s)
    if stream:
        streaming.Stream(model)
    return folder


def check_no_version(path):
    """Raises a `ValueError` if a model's folder is one of its versions.

    What is written into a version is found by no server.

    Args:
        path: `pathlib.Path` of the model's folder.
    """
    path = path.absolute()
    beside = path.parent
    siblings = [beside / str(number) for number in versions(beside)]
    named = any((one / SAVED_MODEL).is_file() for one in siblings)
    numbered = path.name.isdecimal() and path.name.isascii()
    if (path / SAVED_MODEL).is_file() or (numbered and named):
        raise ValueError(
            "`path` must be the folder that holds a model's versions, and "
            f"`version` says which one is written. Received: path={path}"
        )


def check_arguments(version=None, stream=False, max_clip_s=None, explain=False):
    """Raises a `ValueError` for an argument that no model could take."""
    checks.check_flags(stream=stream, explain=explain)
    # A folder `1.0` or `True` would be found by no server.
    whole = isinstance(version, numbers.Integral) and checks.is_number(version)
    if version is not None and not (whole and 0 <= version <= MAX_VERSION):
        raise ValueError(
            "`version` must be an integer of at least 0, of 63 bits. "
            f"Received: version={version!r}"
        )
    if max_clip_s is not None:
        checks.check_positive(max_clip_s=max_clip_s)


def longest_scored_s(model, max_clip_s):
    """Returns the seconds of the longest clip that is scored from its bytes.

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
