"""Writing an `AudioClassifier` as a SavedModel for TensorFlow Serving."""

import json
import os
import pathlib
import shutil
import tempfile

import keras
import tensorflow as tf

from audio_tf.export.loading import METADATA, versions
from audio_tf.version import __version__


def export(model, path, version=None):
    """Writes an `AudioClassifier` as a SavedModel that needs no audio_tf.

    The signature `serving_default` takes `waveform`, float32
    `(batch, samples)`, and `lengths`, int32 `(batch,)`, the real samples of
    each padded clip; both dimensions are dynamic. `lengths` has a default of
    `[-1]`, all samples: a server takes requests without it, and
    `tf.saved_model.load`, which knows no defaults, wants it passed. It gives
    `scores`, float32 `(batch, classes)`.

    Args:
        model: an `AudioClassifier`.
        path: the model's folder, as TensorFlow Serving's `base_path`.
        version: int, the folder in it; the next free number if `None`.

    Returns:
        `pathlib.Path` of the version's folder. It appears whole, so that a
        server that watches `path` never loads half of it.

    Raises:
        FileExistsError: if that version is there already.
        RuntimeError: if Keras does not run on TensorFlow.
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

    def serve(waveform, lengths=tf.constant([-1], tf.int32)):
        samples = tf.shape(waveform)[1]
        lengths = tf.where(lengths < 0, samples, lengths)
        lengths = tf.broadcast_to(lengths, tf.shape(waveform)[:1])
        scores = model(
            {"waveform": waveform, "lengths": lengths}, training=False
        )
        return {"scores": tf.cast(scores, tf.float32)}

    archive = keras.export.ExportArchive()
    # No `track(model)`: it would write every weight twice.
    archive.add_endpoint(
        "serving_default",
        serve,
        input_signature=[
            tf.TensorSpec((None, None), tf.float32, name="waveform"),
            tf.TensorSpec((None,), tf.int32, name="lengths"),
        ],
    )
    metadata = {
        "labels": model.labels,
        "num_classes": model.num_classes,
        "sample_rate_hz": model.sample_rate_hz,
        "chunk_s": model.chunk_s,
        "silence_db": model.silence_db,
        "audio_tf": __version__,
    }
    # Beside the target, hidden from a server by its name, then renamed.
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=".export-", dir=path))
    try:
        archive.write_out(str(temporary), verbose=False)
        (temporary / METADATA).parent.mkdir(exist_ok=True)
        (temporary / METADATA).write_text(json.dumps(metadata, indent=2))
        temporary.chmod(0o755)
        os.rename(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return folder
