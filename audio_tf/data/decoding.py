"""Audio files to samples, many at once, through tf.data."""

import os

import numpy as np
import tensorflow as tf

from audio_tf.audio.decoders import DECODERS
from audio_tf.ops.checks import closest


def decode_dataset(files, sample_rate_hz, decoder="soundfile"):
    """Decodes and resamples files in parallel, and keeps their order.

    Args:
        files: list of paths.
        sample_rate_hz: int, the rate wanted.
        decoder: str, a key of `DECODERS`; `"tfio"` needs the extra `tfio`.

    Returns:
        `tf.data.Dataset` of `(row, audio, error)`: the index in `files`,
        int64; float32 samples `(samples,)`; and a string that says why a file
        has none, empty if it has. A bad file never stops the others: of
        soundfile's it is an element with its error, of tensorflow-io's it is
        left out.

    Raises:
        ValueError: if there is no such decoder.
        ImportError: if the decoder's package is not installed.

    Examples:
        >>> import soundfile
        >>> from audio_tf import data
        >>> soundfile.write("a.wav", [0.5] * 8_000, 8_000)
        >>> for row, audio, error in data.decode_dataset(["a.wav"], 16_000):
        ...     print(int(row), audio.shape, error.numpy())
        0 (16000,) b''
    """
    if decoder not in DECODERS:
        raise ValueError(
            f"`decoder` must be one of {list(DECODERS)}"
            f"{closest(decoder, DECODERS)}. Received: decoder={decoder!r}"
        )
    chosen = DECODERS[decoder]

    @tf.autograph.experimental.do_not_convert
    def load(row, path):
        audio, error = chosen.load(path, sample_rate_hz)
        audio = tf.ensure_shape(audio, (None,))
        return row, audio, tf.ensure_shape(error, ())

    paths = [os.fsencode(file) for file in files]
    dataset = tf.data.Dataset.from_tensor_slices(
        (np.arange(len(paths)), tf.constant(paths, tf.string))
    )
    dataset = dataset.map(load, tf.data.AUTOTUNE)
    if chosen.raises:
        dataset = dataset.ignore_errors()
    return dataset.prefetch(tf.data.AUTOTUNE)
