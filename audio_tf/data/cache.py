"""Decoded audio on disk, so that each file is decoded once."""

import hashlib
import os
import pathlib

import numpy as np

from audio_tf.data.decode import RESAMPLER


def default_cache_dir():
    """`$AUDIO_TF_CACHE`, or `audio_tf` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("AUDIO_TF_CACHE") or os.path.join(base, "audio_tf")


class AudioCache:
    """Float32 samples of audio files, decoded and resampled.

    An entry is a file of raw little-endian float32, named by the path of its
    source and by the source's size and time of change: a changed source is a
    miss, and its old entry is removed when the new one is written. Entries
    appear whole or not at all, so several processes may share a cache.

    Args:
        directory: folder of the cache; made if missing.
        sample_rate_hz: int, the rate that entries have.
        decoder: name of the decoder that makes them.
    """

    def __init__(self, directory, sample_rate_hz, decoder="soundfile"):
        settings = f"{sample_rate_hz} {decoder} {RESAMPLER}"
        digest = hashlib.sha1(settings.encode()).hexdigest()[:8]
        self.directory = pathlib.Path(directory) / f"{sample_rate_hz}-{digest}"
        self.directory.mkdir(parents=True, exist_ok=True)

    def entry(self, source):
        """Where the samples of `source`, as it is now, are or would be.

        Raises:
            FileNotFoundError: if there is no such source.
        """
        source = os.path.abspath(source)
        status = os.stat(source)
        name = hashlib.sha1(os.fsencode(source)).hexdigest()
        version = f"{status.st_size:x}-{status.st_mtime_ns:x}"
        return self.directory / name[:2] / f"{name}-{version}.f32"

    def put(self, source, audio, entry=None):
        """Stores the samples of a source.

        Args:
            source: path of the file.
            audio: float32 array `(samples,)`.
            entry: what `entry(source)` was before the source was read, so
                that one that changes meanwhile is a miss; as it is now if
                `None`.

        Returns:
            Path of the entry.
        """
        entry = entry or self.entry(source)
        entry.parent.mkdir(parents=True, exist_ok=True)
        partial = entry.with_suffix(f".{os.getpid()}.partial")
        try:
            np.ascontiguousarray(audio, dtype="<f4").tofile(partial)
            os.replace(partial, entry)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        for stale in entry.parent.glob(f"{entry.name[:40]}-*.f32"):
            if stale != entry:
                stale.unlink(missing_ok=True)
        return entry


def entry_length(entry):
    """Samples in an entry."""
    return os.path.getsize(entry) // 4


def read_entry(entry, start=0, count=-1):
    """Reads `count` samples of an entry from `start`; all if -1."""
    return np.fromfile(entry, dtype="<f4", count=count, offset=4 * start)
