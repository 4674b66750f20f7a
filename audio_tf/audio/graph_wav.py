"""WAV decoded in a graph of TensorFlow's core ops, for TensorFlow Serving.

Files of 8 to 32-bit integers, floats, A-law and mu-law, EXTENSIBLE or not,
streamed or not, RIFF or RF64, are read as `decode.read_audio` reads them. A
file that cannot be used gives an error code, never an exception, which would
fail the batch it is in. The bytes may come from anybody: no number in them is
trusted.
"""

import typing

import numpy as np
import tensorflow as tf

from audio_tf.audio.containers import MAX_CHUNKS, STREAMING_SIZES, WIDE_SIZES
from audio_tf.audio.decode import MAX_PEAK, MAX_RATE_HZ, MIN_RATE_HZ
from audio_tf.audio.wav import (
    A_LAW,
    EXTENSIBLE,
    FLOAT,
    MU_LAW,
    PCM,
    WavError,
)

MAX_CHANNELS = 1024  # libsndfile's.

# Behind the two bytes of the tag, the same in each EXTENSIBLE subformat.
SUBFORMAT = bytes.fromhex("000000001000800000aa00389b71")


class Layout(typing.NamedTuple):
    """The places of the chunks in a WAV file.

    Attributes:
        is_wave: bool scalar, whether it begins as a WAV file.
        is_wide: bool scalar, whether sizes are of 64 bits, as in RF64.
        fmt: int64 scalar, the start of the fmt chunk's content, -1 if there is
            none.
        data: int64 scalar, as `fmt`, of the data chunk.
        promised: int64 scalar, the size that the data chunk claims.
    """

    is_wave: tf.Tensor
    is_wide: tf.Tensor
    fmt: tf.Tensor
    data: tf.Tensor
    promised: tf.Tensor


class Format(typing.NamedTuple):
    """The format of samples, by a fmt chunk that is not to be trusted.

    Attributes:
        channels: int64 scalar.
        rate_hz: int64 scalar.
        sample_bytes: int64 scalar, bytes of a sample.
        matches: bool `(decoders,)`, which of `DECODERS` is that of the samples.
        supported: bool scalar, whether there is one, and the rest makes sense.
    """

    channels: tf.Tensor
    rate_hz: tf.Tensor
    sample_bytes: tf.Tensor
    matches: tf.Tensor
    supported: tf.Tensor


@tf.autograph.experimental.do_not_convert
def decode_wav(contents):
    """Decodes the bytes of a WAV file.

    Args:
        contents: string scalar.

    Returns:
        Triple of float32 samples `(samples,)`, full scale 1 and channels
        averaged, the rate in Hz and a code of `wav.ERRORS`, both int32 scalars.
        With an error there are no samples and the rate is 0. `TOO_LONG` is
        left to the caller.
    """
    layout = find_layout(contents)
    form = read_format(contents, layout)
    frame_bytes = tf.maximum(form.channels * form.sample_bytes, 1)
    available, cut_off = available_bytes(contents, layout)
    frames = available // frame_bytes
    # In the order in which `read_audio` looks for them.
    error = first_error(
        {
            WavError.NOT_WAVE: ~layout.is_wave,
            WavError.NO_CHUNKS: (layout.fmt <= 0) | (layout.data <= 0),
            WavError.ENCODING: ~form.supported,
            WavError.CUT_OFF: cut_off,
            WavError.RATE: (form.rate_hz < MIN_RATE_HZ)
            | (form.rate_hz > MAX_RATE_HZ),
            WavError.NO_SAMPLES: frames <= 0,
        }
    )
    frames = tf.where(error == 0, frames, 0)
    start = tf.maximum(layout.data, 0)
    raw = tf.strings.substr(contents, start, frames * frame_bytes)
    audio = tf.switch_case(
        tf.argmax(form.matches, output_type=tf.int32),
        [lambda decode=decode: decode(raw) for decode in DECODERS.values()],
    )
    # Before channels are averaged, since their sum may be infinite.
    finite = tf.reduce_all(tf.math.is_finite(audio))
    loud = tf.reduce_any(tf.abs(audio) > MAX_PEAK)
    error = tf.where(loud, WavError.OVERFLOW, error)
    error = tf.where(finite, error, WavError.NOT_FINITE)
    audio = mean_of_channels(audio, frames, form.channels)
    good = error == WavError.NONE
    return (
        tf.ensure_shape(audio, (None,))[: tf.where(good, frames, 0)],
        tf.cast(tf.where(good, form.rate_hz, 0), tf.int32),
        error,
    )


def find_layout(contents):
    """Returns the `Layout` of a file, a string scalar."""
    size = tf.strings.length(contents)
    magic = words(contents, 0, 3, tf.int32)
    # The first chunk of RF64 has the sizes that 32 bits do not hold.
    place = tf.minimum(WIDE_SIZES, size)
    is_wide = words(contents, place, 1, tf.int32)[0] == number(b"ds64")
    is_wide &= magic[0] == number(b"RF64")
    wide = words(contents, tf.minimum(place + 16, size), 1, tf.int64)[0]
    is_wave = is_wide | (magic[0] == number(b"RIFF"))
    is_wave &= magic[2] == number(b"WAVE")
    fmt, data, promised = find_chunks(contents, tf.where(is_wave, size, 0))
    promised = tf.where(is_wide, wide, promised)
    return Layout(is_wave, is_wide, fmt, data, promised)


def read_format(contents, layout):
    """Returns the `Format` of a file; of one without chunks it means nothing.

    Args:
        contents: string scalar.
        layout: its `Layout`.
    """
    # From the size of the chunk on; `fmt` is -1 where there is none.
    header = words(contents, tf.maximum(layout.fmt - 4, 0), 22, tf.uint16)
    header = tf.cast(header, tf.int64)
    fmt_size, tag, channels, rate_hz, align, bits = (
        header[0] + header[1] * 2**16,
        header[2],
        header[3],
        header[4] + header[5] * 2**16,
        header[8],
        header[9],
    )
    extensible = tag == EXTENSIBLE
    # As ALSA's arecord and Cool Edit wrote; libsndfile has to guess, too.
    ambiguous = (tag == PCM) & (bits == 24) & (align == 4 * channels)
    subformat = tf.reduce_all(header[15:] == np.frombuffer(SUBFORMAT, "<u2"))
    tag = tf.where(extensible & subformat, header[14], tag)
    # Not all writers say 8 of these two, which have nothing else.
    law = (tag == A_LAW) | (tag == MU_LAW)
    sample_bytes = tf.where(~law, (bits + 7) // 8, 1)
    matches = tf.reduce_all(
        tf.constant(list(DECODERS), tf.int64) == [tag, sample_bytes], axis=1
    )
    # WavPack and Ogg put their magic where the samples should be.
    packed = words(contents, tf.maximum(layout.data, 0), 1, tf.int32)[0]
    supported = (
        tf.reduce_any(matches)
        & (fmt_size >= 16 + 24 * tf.cast(extensible, tf.int64))
        & (channels > 0)
        & (channels <= MAX_CHANNELS)
        & ~ambiguous
        & (packed != number(b"wvpk"))
        & (packed != number(b"OggS"))
    )
    return Format(channels, rate_hz, sample_bytes, matches, supported)


def available_bytes(contents, layout):
    """Counts the bytes of samples that a file has.

    Args:
        contents: string scalar.
        layout: its `Layout`.

    Returns:
        Pair of the bytes, an int64 scalar, and whether the file promises more
        than it has, a bool scalar.
    """
    size = tf.strings.length(contents)
    promised, is_wide = layout.promised, layout.is_wide
    there = tf.cast(size, tf.int64) - layout.data
    streamed = tf.reduce_any(
        promised == tf.constant(sorted(STREAMING_SIZES), tf.int64)
    )
    streamed &= ~is_wide
    available = tf.cond(
        (promised == 0) & ~is_wide,
        lambda: tf.where(~is_chunks(contents, size, layout.data), there, 0),
        lambda: tf.minimum(promised, there),
    )
    return available, (promised > there) & ~streamed


def mean_of_channels(audio, frames, channels):
    """Averages the channels of samples `(frames * channels,)` of a file."""
    return tf.cond(
        channels == 1,
        lambda: audio,
        lambda: tf.reduce_mean(
            tf.reshape(audio, tf.stack([frames, tf.maximum(channels, 1)])), 1
        ),
    )


def number(name):
    """Returns four bytes as the integer that `words` reads them as."""
    return int.from_bytes(name, "little")


def words(contents, place, count, dtype):
    """Returns `count` integers from `place` on, 0 behind the file's end."""
    num_bytes = count * dtype.size
    return tf.io.decode_raw(
        tf.strings.substr(contents, place, num_bytes),
        dtype,
        fixed_length=num_bytes,
    )


def chunk_head(contents, place):
    """Returns the name of a chunk, int32, and its content's size, int64."""
    name, content = tf.unstack(words(contents, place, 2, tf.int32))
    return name, tf.cast(content, tf.int64) % 2**32


def find_chunks(contents, size):
    """Looks for the first fmt chunk and the first data chunk.

    Args:
        contents: string scalar.
        size: int32 scalar, bytes of `contents` to look at.

    Returns:
        Triple of int64 scalars: the start of the fmt chunk's content, the
        start of the data chunk's, and the size that the latter claims. A start
        is -1 if there is no such chunk.
    """
    size = tf.cast(size, tf.int64)
    none = tf.constant(-1, tf.int64)

    def next_chunk(place, fmt, data, promised):
        name, content = chunk_head(contents, place)
        start = place + 8
        fmt = tf.where((name == number(b"fmt ")) & (fmt < 0), start, fmt)
        is_data = name == number(b"data")
        data = tf.where(is_data, start, data)
        promised = tf.where(is_data, content, promised)
        # Anything else is no chunk: the header is broken.
        printable = tf.strings.regex_full_match(
            tf.strings.substr(contents, place, 4), "[ -~]{4}"
        )
        place = tf.where(printable, start + content + content % 2, size)
        return place, fmt, data, promised

    _, fmt, data, promised = tf.while_loop(
        lambda place, fmt, data, promised: (data < 0) & (place + 8 <= size),
        next_chunk,
        [tf.constant(12, tf.int64), none, none, none],
        maximum_iterations=MAX_CHUNKS,
        parallel_iterations=1,
    )
    return fmt, data, promised


def is_chunks(contents, size, place):
    """Returns whether there are chunks from `place` to the end of the file.

    More than `MAX_CHUNKS` are not counted and are taken for chunks, too.
    """
    size = tf.cast(size, tf.int64)

    def next_chunk(place, stop):
        name, content = chunk_head(contents, place)
        end = place + 8 + content
        ascii_only = tf.bitwise.bitwise_and(name, ASCII_MASK) == 0
        empty = (name == 0) & (content == 0)
        return (
            tf.where(empty, size, end + content % 2),
            tf.where(ascii_only & ~empty, end, stop),
        )

    place, stop = tf.while_loop(
        lambda place, stop: place + 8 <= size,
        next_chunk,
        [tf.where(place < 0, size, place), tf.constant(-1, tf.int64)],
        maximum_iterations=MAX_CHUNKS,
        parallel_iterations=1,
    )
    return (place + 8 <= size) | ((stop >= size - 1) & (stop <= size))


# The upper bit of each of four bytes.
ASCII_MASK = np.int32(-0x7F7F7F80)


def first_error(checks):
    """Returns the first code whose check, a boolean scalar, is true; else 0."""
    codes = tf.constant([*checks, WavError.NONE], tf.int32)
    failed = tf.stack([*checks.values(), tf.constant(True)])
    return codes[tf.argmax(failed)]


def decode_unsigned_8(raw):
    """Decodes unsigned 8-bit samples to float32, full scale 1."""
    return (tf.cast(tf.io.decode_raw(raw, tf.uint8), tf.float32) - 128) / 2**7


def decode_16(raw):
    """Decodes 16-bit samples to float32, full scale 1."""
    return tf.cast(tf.io.decode_raw(raw, tf.int16), tf.float32) / 2**15


def decode_24(raw):
    """Decodes 24-bit samples to float32, full scale 1."""
    triples = tf.reshape(tf.io.decode_raw(raw, tf.uint8), (-1, 3))
    integers = tf.bitcast(tf.pad(triples, [[0, 0], [1, 0]]), tf.int32)
    return tf.cast(integers, tf.float32) / 2**31


def decode_32(raw):
    """Decodes 32-bit integer samples to float32, full scale 1."""
    return tf.cast(tf.io.decode_raw(raw, tf.int32), tf.float32) / 2**31


def decode_float_32(raw):
    """Decodes float32 samples."""
    return tf.io.decode_raw(raw, tf.float32)


def decode_float_64(raw):
    """Decodes float64 samples to float32."""
    return tf.cast(tf.io.decode_raw(raw, tf.float64), tf.float32)


def decode_a_law(raw):
    """Decodes A-law samples to float32, full scale 1."""
    codes = tf.cast(tf.io.decode_raw(raw, tf.uint8), tf.int32)
    return tf.gather(a_law_table(), codes)


def decode_mu_law(raw):
    """Decodes mu-law samples to float32, full scale 1."""
    codes = tf.cast(tf.io.decode_raw(raw, tf.uint8), tf.int32)
    return tf.gather(mu_law_table(), codes)


def a_law_table():
    """Returns the value of each byte of G.711 A-law, float32 `(256,)`."""
    code = np.arange(256) ^ 0x55
    mantissa, exponent = (code & 15) * 16, code >> 4 & 7
    size = np.where(
        exponent == 0,
        mantissa + 8,
        (mantissa + 264) << np.maximum(exponent - 1, 0),
    )
    return (np.where(code & 128, size, -size) / 2**15).astype("float32")


def mu_law_table():
    """Returns the value of each byte of G.711 mu-law, float32 `(256,)`."""
    code = np.arange(256) ^ 0xFF
    size = (((code & 15) * 8 + 132) << (code >> 4 & 7)) - 132
    return (np.where(code & 128, -size, size) / 2**15).astype("float32")


# By format tag and bytes of a sample.
DECODERS = {
    (PCM, 1): decode_unsigned_8,
    (PCM, 2): decode_16,
    (PCM, 3): decode_24,
    (PCM, 4): decode_32,
    (FLOAT, 4): decode_float_32,
    (FLOAT, 8): decode_float_64,
    (A_LAW, 1): decode_a_law,
    (MU_LAW, 1): decode_mu_law,
}
