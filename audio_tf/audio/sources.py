"""Clips as a user names them: files, folders, bytes or samples."""

import dataclasses
import os
import sys

import numpy as np

from audio_tf.ahead import map_ahead
from audio_tf.audio.audio_files import list_files
from audio_tf.audio.decode import (
    MAX_RATE_HZ,
    MIN_RATE_HZ,
    AudioError,
    load_audio,
    load_samples,
)

ACCEPTED = (
    "a path, a folder, a quoted pattern, the bytes of a file, samples with "
    "their rate as (samples, rate_hz), or a list of these"
)


@dataclasses.dataclass(frozen=True)
class Source:
    """One clip that is to be read.

    Attributes:
        name: path or str, what answers call it.
        content: bytes of the file, or `None` to read the file `name`.
        samples: float array `(samples,)` in place of a file, or `None`.
        rate_hz: int, the rate of the samples, or `None`.
    """

    name: object
    content: bytes | None = None
    samples: np.ndarray | None = None
    rate_hz: int | None = None

    def load(self, sample_rate_hz):
        """Reads the clip as float32 `(samples,)` at a rate.

        Raises:
            AudioError: if it cannot be used.
        """
        if self.samples is None:
            return load_audio(self.name, sample_rate_hz, self.content)
        return load_samples(
            self.name, self.samples, self.rate_hz, sample_rate_hz
        )


def find_sources(given):
    """Finds the clips that a user means.

    Args:
        given: a path of a file or folder, a pattern as `list_files` takes it,
            bytes of a file, a pair of samples, floats of shape `(samples,)`
            and full scale 1, and their rate in Hz; or a list of such.

    Returns:
        Pair of a list of `Source`, and whether one clip was named, which is
        no list, no folder and no pattern.

    Raises:
        TypeError: if it is none of these.
        ValueError: if samples are no floats, have more than one axis or a
            rate that nothing has.
        FileNotFoundError: if a folder holds no audio, or a pattern matches
            none.
    """
    if not isinstance(given, list):
        return sources_of(given, "clip")
    found = []
    for place, each in enumerate(given):
        found += sources_of(each, f"clip {place}")[0]
    return found, False


def sources_of(given, name):
    """Finds the clips of one item; see `find_sources`.

    Args:
        given: the item.
        name: str, what a clip without a file is called.
    """
    if isinstance(given, (str, os.PathLike)):
        files = list_files([given])
        return [Source(file) for file in files], files == [given]
    if isinstance(given, (bytes, bytearray, memoryview)):
        return [Source(name, content=bytes(given))], True
    pair = isinstance(given, tuple) and len(given) == 2
    # Two paths are no samples with a rate, nor is a rate before its samples.
    if pair and not isinstance(given[0], (str, bytes, os.PathLike, int)):
        samples, rate_hz = as_samples(given[0], name), given[1]
        rate_hz = as_rate(rate_hz, name)
        return [Source(name, samples=samples, rate_hz=rate_hz)], True
    hint = ""
    if hasattr(given, "__array__"):
        hint = "; samples need their rate beside them"
    raise TypeError(
        f"A clip must be {ACCEPTED}{hint}. Received: {type(given).__name__}"
    )


def as_array(values):
    """Returns an array, or a tensor of Keras' backend, as a numpy array.

    Torch gives numpy no tensor that is on a GPU, of a gradient or bfloat16.

    Args:
        values: array of any kind.
    """
    # Only who has imported Keras has tensors of its backend.
    keras = sys.modules.get("keras")
    if keras is not None and keras.ops.is_tensor(values):
        values = keras.ops.convert_to_numpy(values)
    values = np.asarray(values)
    # Of none of numpy's own kinds.
    return (
        values.astype("float32") if values.dtype.name == "bfloat16" else values
    )


def as_samples(samples, name):
    """Returns samples as a numpy array, if they are the floats of one channel.

    Args:
        samples: array of any kind.
        name: str, what an error calls it.

    Raises:
        ValueError: if they are not; it says how to make them so.
    """
    samples = as_array(samples)
    if not np.issubdtype(samples.dtype, np.floating):
        hint = ""
        if np.issubdtype(samples.dtype, np.signedinteger):
            full_scale = -int(np.iinfo(samples.dtype).min)
            hint = f", as `samples.astype('float32') / {full_scale}` is"
        raise ValueError(
            f"Samples must be floating numbers of full scale 1{hint}. "
            f"Received: {name} of dtype={samples.dtype}"
        )
    if samples.ndim != 1:
        raise ValueError(
            "Samples must be of shape (samples,), one clip of one channel: "
            "`samples.mean(axis=1)` averages (samples, channels), and several "
            "clips are a list of (samples, rate_hz). "
            f"Received: {name} of shape={samples.shape}"
        )
    return samples


def as_rate(rate_hz, name):
    """Returns a rate as an int.

    Raises:
        ValueError: if it is no whole number from `MIN_RATE_HZ` to
            `MAX_RATE_HZ`.
    """
    number = as_array(rate_hz)
    whole = number.ndim == 0 and number.dtype.kind in "iuf"
    if not whole or not (
        MIN_RATE_HZ <= number <= MAX_RATE_HZ and number == int(number)
    ):
        raise ValueError(
            f"The rate of samples must be whole Hz from {MIN_RATE_HZ} to "
            f"{MAX_RATE_HZ}. Received: {rate_hz!r} for {name}"
        )
    return int(number)


def load_ahead(sources, sample_rate_hz):
    """Decodes clips by threads, a few ahead of what is asked for.

    Memory does not grow with their number.

    Args:
        sources: iterable of `Source`.
        sample_rate_hz: int, the rate wanted.

    Returns:
        Generator of triples of the source, float32 samples `(samples,)`, and
        why there are none, or `None`.
    """

    def decode(source):
        try:
            return source, source.load(sample_rate_hz), None
        except AudioError as error:
            return source, np.zeros(0, "float32"), error.reason

    return map_ahead(decode, sources, os.cpu_count())
