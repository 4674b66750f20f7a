"""Clips to records of a TFRecord file, with their samples as they are."""

import io
import typing
import zlib

import numpy as np
import soundfile

from audio_tf.audio import packed
from audio_tf.audio.decode import AudioError, read_audio

# Subtypes of soundfile whose samples 16 bits hold.
SIXTEEN_BITS = {"PCM_16", "PCM_S8", "PCM_U8"}


class AudioFormat(typing.NamedTuple):
    """The rate and type of samples that a corpus is stored with.

    Attributes:
        sample_rate_hz: int.
        dtype: str, `"int16"` for files of one channel with 16 bits, which are
            kept as they are; `"float32"` for all others, of which the
            channels are averaged.
    """

    sample_rate_hz: int
    dtype: str


class Encoded(typing.NamedTuple):
    """A clip as a record.

    Attributes:
        record: bytes of the `tf.train.Example`.
        place: int, the byte in it where the samples begin.
        size: int, the bytes of the samples.
        checksum: int, CRC-32 of these.
    """

    record: bytes
    place: int
    size: int
    checksum: int


def detect_format(clip):
    """Returns the `AudioFormat` of a corpus by one of its clips.

    Raises:
        AudioError: if the clip is not audio.
    """
    try:
        content = packed.read_bytes(clip.file)
        found = soundfile.info(io.BytesIO(content))
    except (OSError, packed.PackError, soundfile.LibsndfileError) as error:
        raise AudioError(clip.file, f"not readable ({error})") from error
    as_it_is = found.subtype in SIXTEEN_BITS and found.channels == 1
    return AudioFormat(found.samplerate, "int16" if as_it_is else "float32")


def read_samples(file, audio_format):
    """Reads a clip as a corpus of this format stores it.

    Args:
        file: path of the clip.
        audio_format: `AudioFormat`.

    Returns:
        Array `(samples,)` of that dtype.

    Raises:
        AudioError: if the clip cannot be read, or has another rate or more
            than 16 bits.
    """
    samples, rate_hz = read_audio(file)
    if rate_hz != audio_format.sample_rate_hz:
        raise AudioError(
            file,
            f"the corpus is at {audio_format.sample_rate_hz} Hz, this clip at "
            f"{rate_hz} Hz",
        )
    if audio_format.dtype == "float32":
        return samples
    whole = np.rint(samples * 2.0**15)
    if not np.array_equal(whole, samples * 2.0**15) or whole.max() >= 2**15:
        raise AudioError(
            file, "more than 16 bits or one channel, unlike the first clip"
        )
    return whole.astype("int16")


def encode(clip, audio_format, features):
    """Returns a clip as an `Encoded` record.

    Args:
        clip: `Clip`.
        audio_format: `AudioFormat`.
        features: TFDS' `FeaturesDict`, with `audio` and `file` and those of
            the clip.

    Raises:
        AudioError: if the clip cannot be read.
    """
    import tensorflow as tf

    samples = read_samples(clip.file, audio_format)
    raw = samples.astype(samples.dtype.newbyteorder("<")).tobytes()
    # TFDS' `Audio` takes arrays as they are to be stored.
    record = features.serialize_example(
        {"audio": np.array(raw, object), "file": clip.name, **clip.features}
    )
    # Each process has its own order of what is in a map, unless it is sorted.
    example = tf.train.Example.FromString(record)
    record = example.SerializeToString(deterministic=True)
    return Encoded(record, record.index(raw), len(raw), zlib.crc32(raw))
