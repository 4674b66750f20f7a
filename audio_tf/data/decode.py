"""From a file to float32 mono samples at the model's rate."""

import functools
import math
import os
import re

import numpy as np
import scipy.signal
import soundfile

# Another resampler moves the metrics, so the name is part of the provenance
# of a model and of the key of cached audio.
RESAMPLER = "scipy.signal.resample_poly, Kaiser 5.0"

# What a writer that cannot seek back leaves as the size of the WAV data.
STREAMING_SIZES = {0, 0x7FFFFFFF, 0x7FFFF000, 0xFFFFFFFF, 0xFFFFF000}


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
        with soundfile.SoundFile(path) as file:
            promised, log = file.frames, file.extra_info
            rate_hz = file.samplerate
            audio = file.read(dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise AudioError(path, f"not readable as audio ({error})") from error
    if len(audio) < promised or wav_is_cut_off(log):
        raise AudioError(path, f"cut off after {len(audio)} samples")
    return check_audio(path, audio.mean(axis=1, dtype="float32")), rate_hz


def wav_is_cut_off(log):
    """Whether libsndfile's log tells of less WAV data than the header says."""
    found = re.search(r"^data : (\d+) \(should be (\d+)\)", log, re.MULTILINE)
    if found is None:
        return False
    promised, there = int(found[1]), int(found[2])
    return promised > there and promised not in STREAMING_SIZES


def check_audio(path, audio):
    """Returns `audio` if it has samples, all finite; else an `AudioError`."""
    if not len(audio):
        raise AudioError(path, "holds no samples")
    bad = np.count_nonzero(~np.isfinite(audio))
    if bad:
        raise AudioError(path, f"{bad} samples are NaN or infinite")
    return audio


@functools.lru_cache(maxsize=64)
def resampling_filter(up, down):
    """The low-pass FIR that `scipy.signal.resample_poly` has by default."""
    widest = max(up, down)
    taps = scipy.signal.firwin(
        20 * widest + 1, 1.0 / widest, window=("kaiser", 5.0)
    )
    return taps.astype("float32")


def resample(audio, rate_hz, target_rate_hz):
    """Changes the rate by a polyphase filter, the one resampler we have.

    Args:
        audio: float32 array `(samples,)`.
        rate_hz: int, its rate.
        target_rate_hz: int, the rate wanted.

    Returns:
        Float32 array `(ceil(samples * target_rate_hz / rate_hz),)`.
    """
    if rate_hz == target_rate_hz:
        return audio
    divisor = math.gcd(rate_hz, target_rate_hz)
    up, down = target_rate_hz // divisor, rate_hz // divisor
    return scipy.signal.resample_poly(
        audio, up, down, window=resampling_filter(up, down)
    ).astype("float32", copy=False)


def load_audio(path, sample_rate_hz):
    """Reads a file and resamples it; see `read_audio` and `resample`."""
    audio, rate_hz = read_audio(path)
    return resample(audio, rate_hz, sample_rate_hz)
