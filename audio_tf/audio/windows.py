"""Recordings of any length as windows of some seconds, with their times.

A recording is read, resampled and handed on piece by piece: memory does not
grow with its length, but for the bytes of a file that `containers.inspect`
mends.
"""

import math
import os
import typing

import numpy as np

from audio_tf.audio.decode import (
    at_rate,
    check_rate,
    open_audio,
    read_blocks,
    read_opened,
)
from audio_tf.audio.resampling import REACH, resample


class Window(typing.NamedTuple):
    """A piece of a recording.

    Attributes:
        start_s: float, the second of the recording that it begins at.
        end_s: float, the second that it ends at.
        audio: float32 array `(samples,)`, full scale 1.
    """

    start_s: float
    end_s: float
    audio: np.ndarray


def read_windows(path, sample_rate_hz, window_s=None, content=None):
    """Reads a file, a long one as windows.

    A file of at most `window_s` is one window, the samples of which are those
    of `load_audio`. Of a longer one, each window begins where the one before
    has ended; the last has the same length and ends with the recording. Their
    samples are those of the whole recording at the new rate.

    Args:
        path: path of the file.
        sample_rate_hz: int, the rate wanted.
        window_s: float, seconds of a window, or `None` for whole files.
        content: bytes of the file, or `None` to read it.

    Yields:
        `Window`, at least one.

    Raises:
        AudioError: as `load_audio`. A recording that is cut off is found out
            at its end, after its windows: they must not be used then.
    """
    path = os.fspath(path)
    with open_audio(path, content) as (file, complete):
        # To open a clip costs as much as to read it: once must do.
        if window_s is None or file.frames <= window_s * file.samplerate:
            found = read_opened(path, file, complete)
        else:
            found = None
            check_rate(path, file.samplerate)
            size = max(1, round(window_s * sample_rate_hz))
            # Not by the file's promise: its blocks end where its samples do.
            blocks = read_blocks(path, file, complete, math.inf)
            for start, audio in cut_stream(
                blocks, file.samplerate, sample_rate_hz, size
            ):
                end = (start + len(audio)) / sample_rate_hz
                yield Window(start / sample_rate_hz, end, audio)
    if found is not None:
        audio = at_rate(path, *found, sample_rate_hz)
        yield Window(0.0, len(audio) / sample_rate_hz, audio)


def cut_stream(blocks, rate_hz, sample_rate_hz, size):
    """Resamples blocks of samples, and cuts them into windows.

    Args:
        blocks: iterable of float32 arrays `(samples,)`.
        rate_hz: int, their rate.
        sample_rate_hz: int, the rate wanted.
        size: int, samples of a window at that rate.

    Yields:
        Pair of the sample that a window begins at, and float32 `(size,)`.
        What is shorter than one window is one, of fewer samples.
    """
    stream = Stream(blocks, rate_hz, sample_rate_hz)
    start = 0
    while True:
        end = stream.length_up_to(start + size)
        if end <= start:
            return
        # Where a rest is left, the last window ends with the recording.
        start = start if end - start == size else max(0, end - size)
        yield start, stream.between(start, end)
        start = end


class Stream:
    """A recording at another rate, of which some windows are held.

    Args:
        blocks: iterable of float32 arrays `(samples,)`.
        rate_hz: int, their rate.
        sample_rate_hz: int, the rate wanted.
    """

    def __init__(self, blocks, rate_hz, sample_rate_hz):
        self.blocks = iter(blocks)
        self.rates = rate_hz, sample_rate_hz
        divisor = math.gcd(rate_hz, sample_rate_hz)
        self.up, self.down = sample_rate_hz // divisor, rate_hz // divisor
        # What the filter reaches, and what rounding may take of it.
        self.margin = REACH * max(self.up, self.down) // self.up + 3
        self.held, self.first, self.ended = np.zeros(0, "float32"), 0, False

    def length_up_to(self, end):
        """Returns `end`, or where the recording ends if that is earlier."""
        self.fill(end * self.down // self.up + self.margin)
        if not self.ended:
            return end
        there = self.first + len(self.held)
        return min(end, -(-there * self.up // self.down))

    def fill(self, end):
        """Reads on until the sample `end` of the file is held."""
        pieces, count = [self.held], self.first + len(self.held)
        while count < end and not self.ended:
            block = next(self.blocks, None)
            self.ended = block is None
            if block is not None:
                pieces.append(block)
                count += len(block)
        self.held = np.concatenate(pieces)

    def between(self, start, end):
        """Returns the samples from `start` to `end` at the new rate.

        Nothing before the `start` of the call before may be asked for again.
        """
        # A part that begins at a multiple of `down` has outputs of the whole.
        begin = start * self.down // self.up - self.margin
        begin = max(0, begin // self.down * self.down)
        stop = end * self.down // self.up + self.margin
        part = self.held[begin - self.first : stop - self.first]
        out = resample(part, *self.rates)
        skipped = begin // self.down * self.up
        out = out[start - skipped : end - skipped]
        self.held, self.first = self.held[begin - self.first :], begin
        return out
