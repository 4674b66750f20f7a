"""Files as the WAV that a server reads, in batches of bounded size."""

import io
import os
import pathlib
import struct
import typing

MAX_BATCH_BYTES = 2**25  # A few clips of minutes must not fill the memory.

# WAV formats that the signature reads: integer, float, A-law and mu-law. They
# stand here again: to read them where they are would load what decodes audio.
INTEGER, EXTENSIBLE = 1, 0xFFFE
SERVED_FORMATS = {INTEGER, 3, 6, 7}
# What stands behind the format in the extensible header of one of these.
SUBFORMAT = bytes.fromhex("000000001000800000aa00389b71")
HEAD_BYTES = 2**16  # Of a WAV file, in which its format must be.


class Clip(typing.NamedTuple):
    """A clip to send: its `content`, or the `error` why there is none."""

    file: str
    content: bytes | None
    error: str | None


def batches(files, batch_size, contents):
    """Yields lists of `Clip` that are bounded in number and in bytes.

    A clip of more bytes than a list may have is alone in its list.

    Args:
        files: iterable of paths, or of the bytes of files that are sent as
            they are.
        batch_size: int, the clips of a list at most.
        contents: dict by path, a str, of the bytes of files that were read
            already.
    """
    batch, size = [], 0
    for number, file in enumerate(files, 1):
        if isinstance(file, bytes):
            clip = Clip(f"clip {number}", file, None)
        else:
            name = os.fspath(file)
            clip = Clip(name, *read_wav(file, contents.get(name)))
        clip_size = len(clip.content or b"")
        # Before it is too large: a proxy refuses what is, with all its clips.
        if batch and size + clip_size > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(clip)
        size += clip_size
        if len(batch) == batch_size or size >= MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def read_wav(path, content=None):
    """Reads a file as WAV.

    Args:
        path: path of the file.
        content: bytes of the file, of any format, or `None` to read it.

    Returns:
        Pair of the bytes of a WAV file and `None`, or of `None` and an error
        text.
    """
    path = pathlib.Path(path)
    try:
        if content is not None:
            if is_served(content[:HEAD_BYTES]):
                return content, None
        elif path.is_file():
            with path.open("rb") as file:
                if is_served(file.read(HEAD_BYTES)):
                    file.seek(0)
                    return file.read(), None
    except OSError as error:
        return None, str(error)
    # A file that is sent as it is needs no decoder.
    import soundfile

    from audio_tf.audio import AudioError, read_audio

    try:
        audio, rate_hz = read_audio(path, content)
    except AudioError as error:
        return None, error.reason
    except OSError as error:
        return None, str(error)
    wav = io.BytesIO()
    soundfile.write(wav, audio, rate_hz, format="WAV", subtype="FLOAT")
    return wav.getvalue(), None


def is_served(head):
    """Tells whether the server can read a file of these first bytes."""
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return False
    place = head.find(b"fmt ", 12)
    if place < 0:
        return True  # It is broken, and the server says how.
    content = head[place + 8 : place + 48].ljust(40, b"\0")
    tag, channels, _, _, align, bits = struct.unpack_from("<HHIIHH", content)
    if tag == EXTENSIBLE:
        inner = int.from_bytes(content[24:26], "little")
        return inner in SERVED_FORMATS and content[26:] == SUBFORMAT
    # A decoder guesses from the samples which of the bytes they are in.
    padded = tag == INTEGER and bits == 24 and align == 4 * channels
    return tag in SERVED_FORMATS and not padded
