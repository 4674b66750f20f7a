"""The decoders by name: functions of files to samples, many at once.

Their names are known without TensorFlow, which a decoder imports when it is
called.
"""

import os

import numpy as np

from audio_tf.ahead import map_ahead
from audio_tf.audio import decode


def by_soundfile(files, sample_rate_hz):
    """Decodes files by `audio.load_audio`, as many at once as there are cores.

    Threads do it without a `tf.data` graph: `tf.numpy_function` takes longer
    to hand over the samples of a short clip than libsndfile to decode them.

    Args:
        files: list of paths.
        sample_rate_hz: int, the rate wanted.

    Yields:
        Triples in the order of the files: the index in `files`, float32
        samples `(samples,)`, mono at that rate, and a str that says why there
        are none, empty if there are.
    """

    def load(file):
        try:
            return decode.load_audio(file, sample_rate_hz), ""
        except decode.AudioError as error:
            return np.zeros(0, "float32"), error.reason

    loaded = map_ahead(load, map(os.fspath, files), os.cpu_count() or 1)
    for row, (audio, reason) in enumerate(loaded):
        yield row, audio, reason


def by_tfio(files, sample_rate_hz):
    """Decodes files by tensorflow-io's ops; see `by_soundfile`, `by_graph`.

    Raises:
        ImportError: if the extra `tfio` is not installed.
    """
    from audio_tf.audio import graph_tfio

    return by_graph(graph_tfio.load, files, sample_rate_hz)


def by_graph(load, files, sample_rate_hz):
    """Decodes files by TensorFlow's ops, of which a bad file is an error.

    Args:
        load: function of a path, a string scalar tensor, and of the rate
            wanted, to a tensor of samples.
        files, sample_rate_hz: as `by_soundfile` takes them.

    Returns:
        Iterator of what `by_soundfile` yields; bad files are left out.
    """
    import tensorflow as tf

    @tf.autograph.experimental.do_not_convert
    def load_row(row, path):
        return row, tf.ensure_shape(load(path, sample_rate_hz), (None,))

    paths = tf.constant([os.fsencode(file) for file in files], tf.string)
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(len(files)), paths))
    dataset = dataset.map(load_row, tf.data.AUTOTUNE).ignore_errors()
    loaded = dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator()
    return ((int(row), audio, "") for row, audio in loaded)


DECODERS = {"soundfile": by_soundfile, "tfio": by_tfio}
