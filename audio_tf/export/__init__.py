"""Classifiers written for TensorFlow Serving and other runtimes.

TensorFlow is imported when a name is used: the table of formats in
`audio_tf.export.formats` is read without it.
"""

import importlib

# The module that each public name is in.
MODULES = {
    "ExportedClassifier": "loading",
    "export": "writing",
    "load_classifier": "classifiers",
    "saved_model_folder": "loading",
}

__all__ = [
    "ExportedClassifier",
    "export",
    "load_classifier",
    "saved_model_folder",
]


def __getattr__(name):
    if name not in MODULES:
        raise AttributeError(f"{__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)
