"""WAV files of many kinds, and files that only look like some, from a seed."""

import io
import struct

import numpy as np
import soundfile

SUBTYPES = ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"]
SUBTYPES += ["ULAW", "ALAW"]
RATES_HZ = [8_000, 11_025, 16_000, 22_050, 44_100, 48_000]
STREAMED = 0xFFFFFFFF  # The size that a writer to a pipe leaves.


def good(rng):
    """Content of a WAV file of 0.02 to 6 seconds."""
    rate_hz = int(rng.choice(RATES_HZ))
    seconds = 0.02 * 300 ** rng.uniform()
    audio = rng.uniform(
        -0.5, 0.5, (max(1, round(seconds * rate_hz)), rng.integers(1, 4))
    )
    file = io.BytesIO()
    soundfile.write(
        file,
        audio,
        rate_hz,
        str(rng.choice(SUBTYPES)),
        format=str(rng.choice(["WAV", "WAVEX"])),
    )
    content = bytearray(file.getvalue())
    if rng.uniform() < 0.1:
        put(content, data(content) - 4, STREAMED)
    return bytes(content)


def data(content):
    """Where the samples begin."""
    return content.index(b"data") + 8


def put(content, place, value):
    struct.pack_into("<I", content, place, value)


def plain(rng):
    """A file of 16 bits that the functions below spoil."""
    file = io.BytesIO()
    audio = rng.uniform(-0.5, 0.5, rng.integers(2_000, 20_000))
    soundfile.write(file, audio, 16_000, "PCM_16", format="WAV")
    return bytearray(file.getvalue())


def empty(rng):
    return b""


def garbage(rng):
    return rng.bytes(rng.integers(1, 5_000))


def garbage_in_riff(rng):
    return b"RIFF" + rng.bytes(4) + b"WAVE" + rng.bytes(200)


def cut(rng):
    content = plain(rng)
    return bytes(content[: rng.integers(60, len(content) - 100)])


def cut_in_header(rng):
    return bytes(plain(rng)[: rng.integers(1, 44)])


def too_large(rng):
    """Promises a gigabyte."""
    content = plain(rng)
    put(content, data(content) - 4, 2**30 + 2)
    return bytes(content)


def no_samples(rng):
    content = plain(rng)[:44]
    put(content, 40, 0)
    return bytes(content)


def no_rate(rng):
    content = plain(rng)
    put(content, 24, 0)
    return bytes(content)


def fast(rng):
    """Says 4 GHz: a filter to resample that would fill the memory."""
    content = plain(rng)
    put(content, 24, 0xF0000001)
    return bytes(content)


def no_channels(rng):
    content = plain(rng)
    struct.pack_into("<H", content, 22, 0)
    return bytes(content)


def unknown_format(rng):
    content = plain(rng)
    struct.pack_into("<H", content, 20, 0x0055)
    return bytes(content)


def not_finite(rng):
    audio = rng.uniform(-0.5, 0.5, 3_000)
    audio[rng.integers(3_000)] = rng.choice([np.nan, np.inf, -np.inf])
    file = io.BytesIO()
    soundfile.write(file, audio, 16_000, "FLOAT", format="WAV")
    return file.getvalue()


def flac(rng):
    file = io.BytesIO()
    soundfile.write(file, rng.uniform(-0.5, 0.5, 3_000), 16_000, format="FLAC")
    return file.getvalue()


BAD = [
    empty,
    garbage,
    garbage_in_riff,
    cut,
    cut_in_header,
    too_large,
    no_samples,
    no_rate,
    fast,
    no_channels,
    unknown_format,
    not_finite,
    flac,
]
