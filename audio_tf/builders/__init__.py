"""Corpora to files that `tfds.load` reads, without our code or any other's.

`BUILDERS` names the builders; TFDS is imported when one is asked for. To add
one, write a subclass of `base.AudioBuilder` in a file of its own and a line
here, and a folder in `datasets/` for its README, citation and tags.
"""

import importlib

from audio_tf.ops.checks import closest

# The class of each, as its module in this package and its name.
BUILDERS = {
    "fsd50k": ("fsd50k", "Fsd50k"),
    "esc": ("esc", "Esc"),
    "fsdd": ("fsdd", "Fsdd"),
    "arabic_speech_commands": (
        "arabic_speech_commands",
        "ArabicSpeechCommands",
    ),
    "librispeech_phones": ("librispeech_phones", "LibrispeechPhones"),
    "iemocap": ("iemocap", "Iemocap"),
}


def find(name):
    """Returns the class of a builder by its name.

    Raises:
        ValueError: if there is none; it names the nearest.
        ImportError: if TFDS is not installed.
    """
    if name not in BUILDERS:
        raise ValueError(
            f"A builder must be one of {sorted(BUILDERS)}"
            f"{closest(name, BUILDERS)}. Received: {name!r}"
        )
    module, cls = BUILDERS[name]
    try:
        importlib.import_module("tensorflow_datasets")
    except ImportError as error:
        raise ImportError(
            f"This needs TFDS: pip install tensorflow-datasets ({error})"
        ) from error
    return getattr(importlib.import_module(f"{__name__}.{module}"), cls)
