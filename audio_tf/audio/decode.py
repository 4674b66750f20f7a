"""From a file to float32 mono samples at the rate wanted, on the host."""

import contextlib
import io
import os

import numpy as np
import soundfile

from audio_tf.audio import containers, packed
from audio_tf.audio.resampling import check_hz, resample

# Integers of 32 bits that were stored as floats, without being scaled, are
# still let through. The square of anything larger, which spectra and power
# take, or a sum of such squares, leaves float32.
MAX_PEAK = 2.0**31

# A file of a few bytes may promise or unpack to any number of samples. These
# are 18 hours at 16 kHz, and 4 GiB.
MAX_SAMPLES = 2**30
READ_AT_ONCE = 2**22  # Values, of all channels.

# No recorder is slower or faster. A lying header would have a second become
# hours.
MIN_RATE_HZ = 1_000
MAX_RATE_HZ = 1_000_000


class AudioError(ValueError):
    """A file that cannot be used as audio; the message names it and says why.

    Args:
        path: path of the file.
        reason: str, what is wrong with the file.

    Examples:
        >>> from audio_tf import audio
        >>> try:
        ...     audio.load_audio("missing.wav", 16_000)
        ... except audio.AudioError as error:
        ...     print("missing.wav" in str(error))
        True
    """

    def __init__(self, path, reason):
        # The path of an unset variable is to be seen, too.
        super().__init__(f"{str(path) or repr('')}: {reason}")
        self.path = str(path)
        self.reason = reason

    def __reduce__(self):
        # An exception is pickled by its message, of which none is made again:
        # a pool of processes would break at the first bad file.
        return type(self), (self.path, self.reason)


class TooLongError(AudioError):
    """A file that has more samples than are asked for."""


def read_audio(path, content=None, max_samples=None):
    """Reads a WAV, FLAC, OGG or MP3 file of any depth through soundfile.

    Integer samples are scaled to full scale 1 and channels are averaged. A
    bad file is an error that names it; nothing of it is returned.

    Args:
        path: path of the file, which may lie within another, see `packed`.
        content: bytes of the file, or `None` to read it. With them, `path` is
            a name for messages alone.
        max_samples: int, how many samples there may be at most, or `None` for
            `MAX_SAMPLES`.

    Returns:
        Pair of float32 samples `(samples,)`, full scale 1, and the file's own
        rate in Hz, an int.

    Raises:
        AudioError: if the file is missing, empty, not audio, cut off, longer
            than `max_samples`, or has no samples, or samples that are not
            finite or beyond `MAX_PEAK`.

    Examples:
        >>> import soundfile
        >>> from audio_tf import audio
        >>> soundfile.write("stereo.wav", [[0.5, -0.5]] * 8_000, 8_000)
        >>> samples, rate_hz = audio.read_audio("stereo.wav")
        >>> samples.shape, rate_hz
        ((8000,), 8000)
    """
    path = os.fspath(path)
    with open_audio(path, content) as (file, complete):
        return read_opened(path, file, complete, max_samples)


def read_opened(path, file, complete, max_samples=None):
    """Reads a whole file that `open_audio` has opened.

    Args:
        path: str, path of the file, for messages.
        file: `soundfile.SoundFile`.
        complete: bool, whether all that the file promises is there.
        max_samples: int or `None`, see `read_audio`.

    Returns:
        Pair of samples and rate, as `read_audio` returns it.

    Raises:
        AudioError: as `read_audio`.
    """
    rate_hz = file.samplerate
    if max_samples is None:
        max_samples = MAX_SAMPLES
    pieces = list(read_blocks(path, file, complete, max_samples))
    audio = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    check_rate(path, rate_hz)
    if not len(audio):
        raise AudioError(path, "holds no samples")
    return audio, rate_hz


@contextlib.contextmanager
def open_audio(path, content=None):
    """Opens a file as `read_audio` reads it.

    Args:
        path: str, path of the file.
        content: bytes of the file, or `None`; see `read_audio`.

    Yields:
        Pair of the open `soundfile.SoundFile` and a bool, whether all that the
        file promises is there; `read_blocks` takes both.

    Raises:
        AudioError: if the file is missing, empty or not audio, also while the
            block reads it.
    """
    try:
        if content is None and not os.path.lexists(path):
            content = read_packed(path)
        if content is None:
            check_file(path)
            opened = open(path, "rb")
        elif content:
            opened = io.BytesIO(content)
        else:
            raise AudioError(path, "empty file")
        with opened:
            complete, mended = containers.inspect(opened)
            with open_sound(mended or opened, path) as file:
                yield file, complete
    except soundfile.LibsndfileError as error:
        # Its own text has the path again, or the name of an object.
        found = error.error_string
        if found.startswith("File does not exist"):
            # What it says of an MP3 file that is there and has no frame.
            found = "No audio found in it."
        if found.startswith("Internal psf_fseek"):
            found += " As of a FLAC that was written to a pipe, and does not "
            found += "say how long it is; `ffmpeg -i` makes one that does"
        raise AudioError(path, f"not readable as audio ({found})") from error
    except containers.ContainerError as error:
        raise AudioError(path, str(error)) from error
    except (RuntimeError, OSError) as error:
        raise AudioError(path, f"not readable as audio ({error})") from error


def open_sound(file, path):
    """Opens a file as sound, by its name only where nothing else tells.

    Of a name libsndfile takes what it does not see in the file: that any bytes
    called `.vox` or `.gsm` are sound, and that an MP3 is none if a file of its
    name behind `._` lies beside it, as macOS puts one on disks of other
    systems. With a name that ends in `.raw`, soundfile asks for a rate.

    Args:
        file: the file, open for reading bytes.
        path: str, its path, which tells nothing of bytes in memory.

    Returns:
        `soundfile.SoundFile`, to be closed before `file`.

    Raises:
        soundfile.LibsndfileError: if it is no sound.
    """
    if isinstance(file, io.BytesIO):
        file.seek(0)
        return soundfile.SoundFile(file)
    # The file may have moved within its buffer alone.
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    try:
        return soundfile.SoundFile(file.fileno(), closefd=False)
    except soundfile.LibsndfileError:
        # Recorded from a stream, an MP3 begins amid a frame, and is searched
        # for the next one by that name alone.
        if not os.fsencode(path).lower().endswith(b".mp3"):
            raise
        return soundfile.SoundFile(os.fsencode(path))


def check_rate(path, rate_hz):
    """Raises an `AudioError` unless there is a recorder of that rate."""
    if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise AudioError(path, f"a rate of {rate_hz} Hz")


def read_packed(path):
    """Returns the bytes of a file within another, or `None` if it is none.

    Raises:
        AudioError: if what it is in is damaged.
    """
    try:
        found = packed.find(path)
        return found and found.read()
    except packed.PackError as error:
        raise AudioError(path, str(error)) from error


def check_file(path):
    """Raises an `AudioError` unless there is a file that is not empty."""
    if os.path.isdir(path):
        raise AudioError(path, "a folder, not a file")
    if not os.path.isfile(path):
        there = os.path.exists(path)
        raise AudioError(
            path, "not a regular file" if there else "no such file"
        )
    if os.path.getsize(path) == 0:
        raise AudioError(path, "empty file")


def read_blocks(path, file, complete, max_samples):
    """Reads the samples of an open file and averages its channels.

    It reads some at a time: memory grows with what is there, and never with
    what a header promises.

    Args:
        path: path of the file, for messages.
        file: `soundfile.SoundFile`.
        complete: bool, whether all that the file promises is there.
        max_samples: int, how many there may be.

    Yields:
        Float32 arrays `(samples,)`, one at least.

    Raises:
        AudioError: if there are too many, or some are not finite or too
            large; or, after the last, if the file was cut off.
    """
    block = max(1, READ_AT_ONCE // file.channels)
    size, count = block, 0
    # A file without samples gives one empty block.
    while size == block and (count < file.frames or not count):
        audio = file.read(block, dtype="float32", always_2d=True)
        size = len(audio)
        count += size
        if count > max_samples:
            raise TooLongError(path, f"longer than {max_samples} samples")
        # Before channels are averaged, since their sum may be infinite.
        check_samples(path, audio)
        # The mean of one channel takes as long as some decoders.
        mono = file.channels == 1
        yield audio[:, 0] if mono else audio.mean(axis=1, dtype="float32")
    if count < file.frames or not complete:
        raise AudioError(path, f"cut off after {count} samples")


def check_samples(path, audio):
    """Raises an `AudioError` unless samples are finite and within `MAX_PEAK`.

    Args:
        path: path of the file, for the message.
        audio: float array of any shape.
    """
    # As a number of Python: `MAX_PEAK` is beyond float16.
    peak = float(max(audio.max(initial=0.0), -audio.min(initial=0.0)))
    if peak <= MAX_PEAK:  # False for NaN, too.
        return
    bad = np.count_nonzero(~np.isfinite(audio))
    if bad:
        raise AudioError(path, f"{bad} samples are NaN or infinite")
    raise AudioError(
        path,
        "samples so large that scores are not finite "
        f"(a peak of {peak:.3g}, the most is {MAX_PEAK:.3g})",
    )


def load_audio(path, sample_rate_hz, content=None):
    """Reads a file and resamples it; see `read_audio` and `resample`.

    Args:
        path: path of the file.
        sample_rate_hz: int, the rate wanted.
        content: bytes of the file, or `None` to read it; see `read_audio`.

    Returns:
        Float32 array `(samples,)`, mono, full scale 1.

    Raises:
        AudioError: as `read_audio`, or if there would be more than
            `MAX_SAMPLES` at the new rate.
        ValueError: if the rate is no whole number of Hz.

    Examples:
        >>> import soundfile
        >>> from audio_tf import audio
        >>> soundfile.write("stereo.wav", [[0.5, -0.5]] * 8_000, 8_000)
        >>> samples = audio.load_audio("stereo.wav", 16_000)
        >>> samples.shape, float(abs(samples).max())
        ((16000,), 0.0)
    """
    check_hz(sample_rate_hz=sample_rate_hz)
    return at_rate(path, *read_audio(path, content), sample_rate_hz)


def load_samples(name, samples, rate_hz, sample_rate_hz):
    """Resamples samples in memory, checked as those of a file are.

    Args:
        name: str, what messages call them.
        samples: float array `(samples,)`, full scale 1.
        rate_hz: int, their rate.
        sample_rate_hz: int, the rate wanted.

    Returns:
        Float32 array `(samples,)`.

    Raises:
        AudioError: if there are none or too many, or some are not finite or
            beyond `MAX_PEAK`.
    """
    if not len(samples):
        raise AudioError(name, "holds no samples")
    check_samples(name, samples)
    return at_rate(name, samples.astype("float32"), rate_hz, sample_rate_hz)


def at_rate(path, audio, rate_hz, sample_rate_hz):
    """Resamples what was read, if it is not too long at the new rate."""
    if len(audio) * sample_rate_hz > MAX_SAMPLES * rate_hz:
        raise AudioError(
            path, f"longer than {MAX_SAMPLES} samples at {sample_rate_hz} Hz"
        )
    return resample(audio, rate_hz, sample_rate_hz)
