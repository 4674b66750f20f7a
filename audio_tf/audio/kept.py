"""Decoded clips that stay in memory while a model is trained on them."""

import dataclasses
import threading

from audio_tf.audio.decode import AudioError
from audio_tf.audio.scoring import too_long
from audio_tf.audio.sources import Source

# Of decoded audio: 4.6 hours at 16 kHz.
KEPT_BYTES = 2**30


class KeptAudio:
    """Clips that were decoded, kept in memory up to a limit.

    What comes after the limit is reached is decoded at each reading. Several
    threads may read at once, also while, and after, clips are dropped.

    Args:
        limit_bytes: int, the bytes of samples that are kept at most.
        longest: int, the samples of the longest clip that can be used, `None`
            for any.
    """

    def __init__(self, limit_bytes=KEPT_BYTES, longest=None):
        self.left_bytes = limit_bytes
        self.longest = longest
        self.clips = {}
        self.lock = threading.Lock()

    def source(self, name):
        """Returns the `KeptSource` of a file by its name."""
        return KeptSource(name, kept=self)

    def load(self, source, sample_rate_hz):
        """Returns the samples of a source, which must not be written to.

        Args:
            source: `audio_tf.audio.sources.Source` of a file.
            sample_rate_hz: int, the rate wanted.

        Raises:
            AudioError: if it cannot be used, at each reading.
        """
        key = source.name, sample_rate_hz
        samples = self.clips.get(key)
        if samples is None:
            samples = Source.load(source, sample_rate_hz)
            if self.longest is not None and len(samples) > self.longest:
                raise AudioError(
                    source.name, too_long(self.longest, sample_rate_hz)
                )
            samples.flags.writeable = False
            self.keep(key, samples)
        return samples

    def keep(self, key, samples):
        """Keeps samples, unless they are kept already or there is no room."""
        with self.lock:
            if key not in self.clips and samples.nbytes <= self.left_bytes:
                self.left_bytes -= samples.nbytes
                self.clips[key] = samples

    def drop(self):
        """Drops all clips; none is kept from then on."""
        with self.lock:
            self.left_bytes = -1
            self.clips.clear()


@dataclasses.dataclass(frozen=True)
class KeptSource(Source):
    """A file whose samples are decoded once, while there is room for them.

    Attributes:
        kept: the `KeptAudio` that they are kept in.
    """

    kept: KeptAudio = dataclasses.field(kw_only=True)

    def load(self, sample_rate_hz):
        """Reads the clip as `Source.load` does."""
        return self.kept.load(self, sample_rate_hz)
