"""The decoders by name, as a tf.data graph calls them.

Their names are known without TensorFlow, which a decoder imports when it is
called.
"""

import dataclasses
import os
import typing

import numpy as np

from audio_tf.audio import decode


@dataclasses.dataclass(frozen=True)
class Decoder:
    """One way to decode a file within a `tf.data` graph.

    Attributes:
        load: function of a path, a string scalar tensor, and of the rate
            wanted in Hz, an int. It returns a pair of tensors: float32 samples
            `(samples,)`, mono at that rate, and a string scalar that says why
            there are none, empty if there are.
        raises: bool, whether a bad file is an error of the graph instead.
    """

    load: typing.Callable
    raises: bool


def load_by_soundfile(path, sample_rate_hz):
    """Loads one file by `audio.load_audio`; see `Decoder`."""

    import tensorflow as tf

    def load(path):
        try:
            return decode.load_audio(os.fsdecode(path), sample_rate_hz), b""
        except decode.AudioError as error:
            return np.zeros(0, "float32"), os.fsencode(error.reason)

    return tf.numpy_function(
        load, [path], (tf.float32, tf.string), stateful=False
    )


def load_by_tfio(path, sample_rate_hz):
    """Loads one file by tensorflow-io's ops; see `Decoder`."""
    from audio_tf.audio import graph_tfio

    return graph_tfio.load(path, sample_rate_hz)


DECODERS = {
    "soundfile": Decoder(load_by_soundfile, raises=False),
    "tfio": Decoder(load_by_tfio, raises=True),
}
