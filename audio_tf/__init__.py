"""End-to-end audio classification in Keras 3: waveform in, labels out.

Public modules are imported when they are first used: `import audio_tf` takes
no time, and no TensorFlow. As soon as Keras is imported, before or after, it
knows layers, models and optimizers of this package, so that
`keras.saving.load_model` can load them.
"""

import importlib

from audio_tf.registration import RegisterAfterImport
from audio_tf.version import __version__

__all__ = [
    "__version__",
    "analysis",
    "attention",
    "audio",
    "client",
    "corpora",
    "data",
    "export",
    "layers",
    "memory",
    "metrics",
    "models",
    "optimizers",
]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__():
    return sorted({*globals(), *__all__})


RegisterAfterImport(
    "keras",
    # They import Keras before they are whole, and models need them.
    before=["keras_hub", "tensorflow"],
    package=__name__,
    modules=[
        f"{__name__}.{name}"
        for name in ("models", "optimizers", "batch_metrics")
    ],
).install()
