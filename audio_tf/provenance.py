"""How a model came to be, kept beside its weights."""

import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import sys

import keras
import numpy as np

from audio_tf.version import __version__


def run_facts(settings):
    """What a run was asked for, and where it ran.

    Args:
        settings: the dataclass of a script.

    Returns:
        Dict that JSON can hold.
    """
    backend = keras.backend.backend()
    return {
        "command": shlex.join(["python", *sys.argv]),
        "settings": dataclasses.asdict(settings),
        "versions": {
            "audio_tf": __version__,
            "keras": keras.__version__,
            "backend": backend,
            backend: importlib.metadata.version(backend),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "cores": os.cpu_count(),
        "date": datetime.date.today().isoformat(),
    }


def corpus_facts(corpora):
    """What a model was trained and tested on.

    Args:
        corpora: dict of `Corpus` by split.

    Returns:
        Dict by split of the number of `files` and a `sha256` over their names
        and sizes and what they are labelled with.
    """
    return {
        split: {"files": len(corpus), "sha256": listing_sha256(corpus)}
        for split, corpus in corpora.items()
    }


def listing_sha256(corpus):
    listing = hashlib.sha256()
    frame_labels = getattr(corpus, "frame_labels", None)
    for row, file in enumerate(map(pathlib.Path, corpus.files)):
        size = file.stat().st_size
        listing.update(f"{file.name} {size} {corpus.labels[row]}\n".encode())
        if frame_labels and frame_labels[row] is not None:
            labels = np.asarray(frame_labels[row], "<i4")
            listing.update(labels.tobytes())
    return listing.hexdigest()


def weights_sha256(weights):
    """Checksum of the values, shapes and dtypes of weights, in their order."""
    digest = hashlib.sha256()
    for weight in weights:
        value = np.asarray(weight)
        digest.update(f"{value.dtype} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def write_json(path, content):
    """Writes a file, whole or not at all."""
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(json.dumps(content, indent=2))
    os.replace(temporary, path)
