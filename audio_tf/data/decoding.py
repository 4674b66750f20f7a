"""Audio files to samples, many at once."""

from audio_tf.audio.decoders import DECODERS
from audio_tf.ops.checks import closest


def decode_files(files, sample_rate_hz, decoder="soundfile"):
    """Decodes and resamples files in parallel, and keeps their order.

    Memory does not grow with the number of files: a few are decoded ahead of
    what is asked for.

    Args:
        files: list of paths.
        sample_rate_hz: int, the rate wanted.
        decoder: str, a key of `DECODERS`; `"tfio"` needs the extra `tfio`.

    Returns:
        Iterator of `(row, audio, error)`: the index in `files`, an int;
        float32 samples `(samples,)`; and a str that says why a file has none,
        empty if it has. A bad file never stops the others: of soundfile's it
        is an element with its error, of tensorflow-io's it is left out.

    Raises:
        ValueError: if there is no such decoder.
        ImportError: if the decoder's package is not installed.

    Examples:
        >>> import soundfile
        >>> from audio_tf import data
        >>> soundfile.write("a.wav", [0.5] * 8_000, 8_000)
        >>> for row, audio, error in data.decode_files(["a.wav"], 16_000):
        ...     print(row, audio.shape, repr(error))
        0 (16000,) ''
    """
    if decoder not in DECODERS:
        raise ValueError(
            f"`decoder` must be one of {list(DECODERS)}"
            f"{closest(decoder, DECODERS)}. Received: decoder={decoder!r}"
        )
    return DECODERS[decoder](files, sample_rate_hz)
