"""Files decoded in a TensorFlow graph by tensorflow-io, the extra `tfio`.

FLAC, OGG Vorbis and MP3 are decoded by tensorflow-io; WAV by TensorFlow's own
ops, since `tfio.audio.decode_wav` reads 32-bit integers as floats and some
files as empty, without an error. No op tells the rate of encoded bytes: it
is read from the headers. A bad file raises when the graph runs.
"""

import tensorflow as tf

from audio_tf.audio import decode, graph_wav, wav

try:
    import tensorflow_io as tfio
except ImportError as error:
    raise ImportError(
        "decoder='tfio' needs tensorflow-io: pip install 'audio_tf[tfio]'"
    ) from error


def load(path, sample_rate_hz):
    """Reads and resamples one file in the graph.

    Args:
        path: string scalar.
        sample_rate_hz: int, the rate wanted.

    Returns:
        Float32 samples `(samples,)`; a bad file raises when the graph runs.
    """
    audio, rate_hz = decode_bytes(tf.io.read_file(path))
    return tf.numpy_function(
        lambda audio, rate_hz: decode.resample(
            audio, int(rate_hz), sample_rate_hz
        ),
        [audio, rate_hz],
        tf.float32,
        stateful=False,
    )


@tf.autograph.experimental.do_not_convert
def decode_bytes(contents):
    """Decodes the bytes of a WAV, FLAC, OGG Vorbis or MP3 file.

    Args:
        contents: string scalar.

    Returns:
        Pair of float32 samples `(samples,)`, full scale 1 and channels
        averaged, and the rate in Hz, an int32 scalar.
    """
    magic = tf.strings.substr(contents, 0, 4)
    kind = tf.reduce_sum(
        tf.cast(magic == [b"RIFF", b"fLaC", b"OggS"], tf.int32) * [1, 2, 3]
    )
    with tf.control_dependencies(
        [require(tf.strings.length(contents) >= 48, "too short for a header")]
    ):
        kind = tf.identity(kind)
    audio, rate_hz = tf.switch_case(
        kind,
        [
            lambda: decode_mp3(contents),
            lambda: decode_wav(contents),
            lambda: decode_flac(contents),
            lambda: decode_ogg(contents),
        ],
    )
    audio = tf.reduce_mean(tf.ensure_shape(audio, (None, None)), axis=1)
    # False for NaN, too.
    usable = tf.reduce_all(tf.abs(audio) <= decode.MAX_PEAK)
    usable &= tf.size(audio) > 0
    usual = (rate_hz >= decode.MIN_RATE_HZ) & (rate_hz <= decode.MAX_RATE_HZ)
    with tf.control_dependencies(
        [
            require(usable, "no samples, or NaN, infinite or too large"),
            require(usual, wav.ERRORS[wav.WavError.RATE]),
        ]
    ):
        return tf.identity(audio), tf.ensure_shape(rate_hz, ())


def require(condition, message):
    """Returns an operation that fails with the message unless it holds."""
    return tf.debugging.Assert(condition, [message])


def bits_of(value, shift, count):
    """Returns `count` bits of integers from bit `shift` on, by arithmetic."""
    return value // 2**shift % 2**count


def little_endian(data, start, count):
    """Returns the unsigned int64 of `count` bytes from `start` on."""
    powers = tf.constant([256**power for power in range(count)], tf.int64)
    return tf.reduce_sum(
        tf.cast(data[start : start + count], tf.int64) * powers
    )


def decode_wav(contents):
    """Decodes WAV by `graph_wav.decode_wav`, whose error code it raises."""
    audio, rate_hz, error = graph_wav.decode_wav(contents)
    reason = tf.gather(list(wav.ERRORS.values()), error)
    with tf.control_dependencies([require(error == 0, reason)]):
        return audio[:, None], tf.identity(rate_hz)


def decode_flac(contents):
    """Decodes FLAC of 8, 16 or 24 bits, whose first block is STREAMINFO."""
    head = tf.io.decode_raw(tf.strings.substr(contents, 0, 42), tf.uint8)
    head = tf.cast(head, tf.int64)
    rate_hz = head[18] * 2**12 + head[19] * 2**4 + bits_of(head[20], 4, 4)
    bits = bits_of(head[20], 0, 1) * 16 + bits_of(head[21], 4, 4) + 1
    total = bits_of(head[21], 0, 4) * 2**32 + tf.reduce_sum(
        head[22:26] * [2**24, 2**16, 2**8, 1]
    )
    known = ((bits == 8) | (bits == 16) | (bits == 24)) & (total > 0)
    with tf.control_dependencies(
        [require(known, "FLAC of unknown depth or length")]
    ):
        # Cut off at the border of a frame, the op would never return: half
        # the header of a frame behind the end makes that an error.
        contents = tf.strings.join([contents, bytes(64) + b"\xff\xf8"])

    def samples(dtype):
        audio = tfio.audio.decode_flac(contents, dtype=dtype)
        return tf.cast(audio, tf.float32)

    audio = tf.switch_case(
        tf.cast(bits // 8 - 1, tf.int32),
        [
            lambda: (samples(tf.uint8) - 128.0) / 2.0**7,
            lambda: samples(tf.int16) / 2.0**15,
            lambda: samples(tf.int32) / 2.0**31,
        ],
    )
    return audio, tf.cast(rate_hz, tf.int32)


def decode_ogg(contents):
    """Decodes OGG Vorbis, whose first page begins with its header."""
    head = tf.io.decode_raw(tf.strings.substr(contents, 0, 512), tf.uint8)
    packet = 27 + tf.cast(head[26], tf.int32)
    vorbis = tf.strings.substr(contents, packet, 7) == b"\x01vorbis"
    with tf.control_dependencies([require(vorbis, "OGG that is not Vorbis")]):
        rate_hz = little_endian(head, packet + 12, 4)
    return tfio.audio.decode_vorbis(contents), tf.cast(rate_hz, tf.int32)


def decode_mp3(contents):
    """Decodes MP3, at the rate of the first header whose successor agrees."""
    head = tf.io.decode_raw(tf.strings.substr(contents, 0, 65536), tf.uint8)
    head = tf.cast(head, tf.int32)
    first, second, third = head[:-2], head[1:-1], head[2:]
    version, rate_index = bits_of(second, 3, 2), bits_of(third, 2, 2)
    bit_rate_index = bits_of(third, 4, 4)
    header = (
        (first == 255)
        & (bits_of(second, 5, 3) == 7)
        & (bits_of(second, 1, 2) == 1)
        & (version != 1)
        & (bit_rate_index % 15 > 0)
        & (rate_index < 3)
    )
    rates_hz = tf.gather([44100, 48000, 32000, 4], rate_index)
    rates_hz //= tf.gather([4, 1, 2, 1], version)
    mpeg_1 = [
        0,
        32,
        40,
        48,
        56,
        64,
        80,
        96,
        112,
        128,
        160,
        192,
        224,
        256,
        320,
        0,
    ]
    mpeg_2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0]
    frame_bytes = tf.where(
        version == 3,
        144_000 * tf.gather(mpeg_1, bit_rate_index),
        72_000 * tf.gather(mpeg_2, bit_rate_index),
    )
    frame_bytes = frame_bytes // rates_hz + bits_of(third, 1, 1)
    following = tf.range(tf.size(first)) + frame_bytes
    inside = following < tf.size(first)
    following = tf.where(inside, following, 0)
    agrees = (
        (tf.gather(first, following) == 255)
        & (tf.gather(second, following) // 2 == second // 2)
        & (tf.gather(rate_index, following) == rate_index)
    )
    header &= agrees | ~inside
    with tf.control_dependencies(
        [require(tf.reduce_any(header), "not WAV, FLAC, OGG or MP3")]
    ):
        rate_hz = rates_hz[tf.argmax(header)]
    return tfio.audio.decode_mp3(contents), rate_hz
