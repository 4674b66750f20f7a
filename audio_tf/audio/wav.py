"""The formats of WAV files, and the errors that one may have.

Servers give these codes to clients, which need no TensorFlow to read them.
"""

import enum

from audio_tf.audio.decode import MAX_RATE_HZ, MIN_RATE_HZ

# The tags of the formats that a graph decodes. Of the last, the bytes of a
# sample may hold fewer bits, in the upper ones.
PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE


class WavError(enum.IntEnum):
    """Codes of what is wrong with a file; clients see them, so they stay."""

    NONE = 0
    NOT_WAVE = 1
    NO_CHUNKS = 2
    ENCODING = 3
    RATE = 4
    NO_SAMPLES = 5
    NOT_FINITE = 6
    CUT_OFF = 7
    TOO_LONG = 8
    OVERFLOW = 9


ERRORS = {
    WavError.NONE: "",
    WavError.NOT_WAVE: "not a WAV file, RIFF or RF64",
    WavError.NO_CHUNKS: "no fmt chunk and data chunk behind it",
    WavError.ENCODING: "an encoding that is none of integers of 8 to 32 bits, "
    "float, A-law and mu-law, such as ADPCM, or too many channels",
    WavError.RATE: f"a rate not from {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz",
    WavError.NO_SAMPLES: "holds no samples",
    WavError.NOT_FINITE: "samples are NaN or infinite",
    WavError.CUT_OFF: "cut off",
    WavError.TOO_LONG: "longer than the server takes",
    WavError.OVERFLOW: "samples so large that scores are not finite",
}
