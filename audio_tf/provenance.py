"""How a model came to be, kept beside its weights."""

import dataclasses
import datetime
import hashlib
import os
import pathlib
import platform
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
    return {
        "command": " ".join(["python", *sys.argv]),
        "settings": dataclasses.asdict(settings),
        "versions": {
            "audio_tf": __version__,
            "keras": keras.__version__,
            "backend": keras.backend.backend(),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "cores": os.cpu_count(),
        "date": datetime.date.today().isoformat(),
    }


def corpus_facts(corpus):
    """Number and checksum of the files that a model was trained on."""
    listing = hashlib.sha256()
    for file, labels in zip(corpus.files, corpus.labels, strict=True):
        file = pathlib.Path(file)
        listing.update(f"{file.name} {file.stat().st_size} {labels}".encode())
    return {
        "train_files": len(corpus),
        "train_files_sha256": listing.hexdigest(),
    }


def weights_sha256(weights):
    """Checksum of the values, shapes and dtypes of weights, in their order."""
    digest = hashlib.sha256()
    for weight in weights:
        value = np.asarray(weight)
        digest.update(f"{value.dtype} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
