"""From a file to float32 mono samples at the model's rate."""

import io
import os

import numpy as np
import soundfile

from audio_tf.data.resampling import RESAMPLER as RESAMPLER
from audio_tf.data.resampling import resample
from audio_tf.data.resampling import resampling_filter as resampling_filter

# What a writer that cannot seek back leaves as the size of the WAV data.
STREAMING_SIZES = {
    0,
    0x7FFFFFFF,
    0x7FFFF000,
    0x80000000,
    0xFFFFFFFF,
    0xFFFFF000,
}

# No recorder is slower or faster. A lying header would have a second become
# hours, or ask for a filter of gigabytes.
MIN_RATE_HZ = 1_000
MAX_RATE_HZ = 1_000_000


class AudioError(ValueError):
    """A file that cannot be used as audio; the message names it and says why.

    Args:
        path: the file.
        reason: what is wrong with it.
    """

    def __init__(self, path, reason):
        super().__init__(f"{path}: {reason}")
        self.path = str(path)
        self.reason = reason


def read_audio(path):
    """Reads a WAV, FLAC, OGG or MP3 file of any depth through soundfile.

    Integer samples are scaled to full scale 1 and channels are averaged.

    Args:
        path: path of the file.

    Returns:
        Pair of float32 samples `(samples,)` and the file's rate in Hz.

    Raises:
        AudioError: if the file is missing, empty, not audio, cut off, or has
            no samples or non-finite ones.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise AudioError(path, "no such file")
    if os.path.getsize(path) == 0:
        raise AudioError(path, "empty file")
    try:
        complete, content = inspect_container(path)
        with soundfile.SoundFile(content or os.fsencode(path)) as file:
            promised, rate_hz = file.frames, file.samplerate
            audio = file.read(dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise AudioError(path, f"not readable as audio ({error})") from error
    if len(audio) < promised or not complete:
        raise AudioError(path, f"cut off after {len(audio)} samples")
    if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise AudioError(path, f"a rate of {rate_hz} Hz")
    return check_audio(path, audio.mean(axis=1, dtype="float32")), rate_hz


def inspect_container(path):
    """Looks for what libsndfile passes over in WAV and Ogg files.

    It reads as much of a cut file as is there, and nothing of a WAV whose
    writer left the size of the data at 0.

    Returns:
        Pair of whether the file is complete, and the content to read in
        place of the file, or `None` for the file itself.
    """
    with open(path, "rb") as file:
        magic = file.read(4)
        if magic == b"OggS":
            return ogg_has_its_end(file), None
        if magic != b"RIFF":
            return True, None
        data = find_wav_data(file)
        if data is None:
            return True, None
        start, promised, there = data
        if promised == 0 and there > 0 and not is_chunks(file, start):
            file.seek(0)
            content = bytearray(file.read())
            content[start - 4 : start] = b"\xff" * 4
            return True, io.BytesIO(content)
    return promised <= there or promised in STREAMING_SIZES, None


def ogg_has_its_end(file):
    """Whether the last page of an Ogg file is marked as the last."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 2**17))  # A page has at most 64 KiB.
    tail = file.read()
    page = tail[tail.rfind(b"OggS") :]
    if len(page) < 27 or not page[5] & 4:
        return False
    sizes = page[27 : 27 + page[26]]
    return len(sizes) == page[26] and len(page) >= 27 + len(sizes) + sum(sizes)


def wav_chunks(file, place):
    """Yields name, start and size of RIFF chunks from `place` on."""
    while True:
        file.seek(place)
        head = file.read(8)
        if len(head) < 8 or not any(head):
            return
        size = int.from_bytes(head[4:], "little")
        yield head[:4], place + 8, size
        place += 8 + size + size % 2


def find_wav_data(file):
    """Start, promised and actual bytes of the data chunk, or `None`."""
    end = file.seek(0, os.SEEK_END)
    for name, start, size in wav_chunks(file, 12):
        if name == b"data":
            return start, size, end - start
    return None


def is_chunks(file, place):
    """Whether the bytes from `place` on are RIFF chunks to the end."""
    end = file.seek(0, os.SEEK_END)
    stops = [
        start + size
        for name, start, size in wav_chunks(file, place)
        if name.isascii()
    ]
    return bool(stops) and end - 1 <= stops[-1] <= end


def check_audio(path, audio):
    """Returns `audio` if it has samples, all finite; else an `AudioError`."""
    if not len(audio):
        raise AudioError(path, "holds no samples")
    bad = np.count_nonzero(~np.isfinite(audio))
    if bad:
        raise AudioError(path, f"{bad} samples are NaN or infinite")
    return audio


def load_audio(path, sample_rate_hz):
    """Reads a file and resamples it; see `read_audio` and `resample`."""
    audio, rate_hz = read_audio(path)
    return resample(audio, rate_hz, sample_rate_hz)
