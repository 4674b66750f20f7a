"""Sound as a sum of patches, each of a piece of time and a band of frequency.

A clip is cut on the waveform, so that the patches mean the same for every
model, whatever its front end makes of them: a mask over the bins of a Fourier
transform cuts bands that add up to the clip exactly, and slopes of a few
milliseconds cut them in time without a click.
"""

import dataclasses

import numpy as np

from audio_tf.layers import mel
from audio_tf.ops.checks import check_positive, check_sizes

PATCH_S = 0.1
BANDS = 16
# A cut without a slope would be heard in every band.
SLOPE_S = 0.01


def band_edges(sample_rate_hz, bands):
    """Returns the edges of bands of equal width in mel, in Hz.

    Args:
        sample_rate_hz: int; the last band ends at half of it.
        bands: int.

    Returns:
        Float array `(bands + 1,)` that begins with 0.
    """
    to_mel, to_hz = mel.slaney_mel_from_hz, mel.hz_from_slaney_mel
    top = to_mel(np.float64(sample_rate_hz / 2))
    edges = to_hz(np.linspace(0.0, top, bands + 1))
    edges[[0, -1]] = 0.0, sample_rate_hz / 2
    return edges


def time_edges(samples, size):
    """Cuts a clip into patches of equal length, as near `size` as they can be.

    Args:
        samples: int, length of the clip, at least 1.
        size: float, the samples of a patch that are asked for.

    Returns:
        Int64 array `(patches + 1,)` from 0 to `samples`.
    """
    count = min(samples, max(1, round(samples / size)))
    return np.round(np.linspace(0, samples, count + 1)).astype(np.int64)


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A chunk that a model is given at once, and the patches it is made of.

    Attributes:
        audio: float32 array `(samples,)`.
        patch: int64 array `(samples,)`, the patch of time of each sample.
    """

    audio: np.ndarray
    patch: np.ndarray


class SoundPatches:
    """The patches of one clip, and the chunks that a model hears of it.

    Args:
        audio: float32 array `(samples,)`, at least one sample.
        sample_rate_hz: int.
        cutting: `audio.chunking.Cutting` of the model.
        patch_s: float, about the seconds of a patch.
        bands: int, the bands of frequency.

    Attributes:
        time_s: float array `(times + 1,)`, the edges in seconds.
        frequency_hz: float array `(bands + 1,)`, the edges in Hz.
        chunks: list of `Chunk`. Of a clip that is shorter than a chunk, and
            so repeated, a patch is heard several times.
    """

    def __init__(
        self,
        audio,
        sample_rate_hz,
        cutting,
        patch_s=PATCH_S,
        bands=BANDS,
    ):
        check_positive(patch_s=patch_s)
        check_sizes(bands=bands)
        edges = time_edges(len(audio), patch_s * sample_rate_hz)
        self.sample_rate_hz = sample_rate_hz
        self.time_s = edges / sample_rate_hz
        self.frequency_hz = band_edges(sample_rate_hz, bands)
        self.chunks = []
        for piece, start in zip(*cutting.cut(audio), strict=True):
            place = (start + np.arange(len(piece))) % len(audio)
            patch = np.searchsorted(edges, place, side="right") - 1
            self.chunks.append(Chunk(piece.astype("float32"), patch))

    @property
    def shape(self):
        """The number of patches of time, and of bands."""
        return len(self.time_s) - 1, len(self.frequency_hz) - 1

    def bands_of(self, audio):
        """Yields the part of some samples that is in each band.

        Args:
            audio: float array `(samples,)`.

        Yields:
            Float64 array `(samples,)` for each band. They add up to `audio`.
        """
        spectrum = np.fft.rfft(audio)
        hz = np.fft.rfftfreq(len(audio), 1 / self.sample_rate_hz)
        band = np.searchsorted(self.frequency_hz, hz, side="right") - 1
        band = np.minimum(band, self.shape[1] - 1)
        for number in range(self.shape[1]):
            part = np.where(band == number, spectrum, 0.0)
            yield np.fft.irfft(part, len(audio))

    def sum_by_patch(self, chunk, values):
        """Adds up what each sample has, patch of time by patch of time.

        Args:
            chunk: `Chunk`.
            values: float array `(samples,)`.

        Returns:
            Float64 array `(times,)`.
        """
        return np.bincount(chunk.patch, values, minlength=self.shape[0])

    def slopes(self, chunk, gains):
        """Returns gains of patches as gains of samples, with slopes between.

        Args:
            chunk: `Chunk`.
            gains: float array `(..., times)`.

        Returns:
            Float64 array `(..., samples)`.
        """
        half = round(SLOPE_S * self.sample_rate_hz / 2)
        size = 2 * half + 1
        # A mean over `size` samples, as a difference of sums.
        edges = [(0, 0)] * (gains.ndim - 1) + [(half + 1, half)]
        total = np.pad(gains[..., chunk.patch], edges, mode="edge")
        total = np.cumsum(total, axis=-1, dtype="float64")
        return (total[..., size:] - total[..., :-size]) / size

    def mixer(self, chunk):
        """Returns a function that puts a chunk together from quieter patches.

        It takes gains, a float array `(rows, times, bands)`: 1 for a patch
        that stays, 0 for one that is taken out. It returns a chunk for each
        row, a float32 array `(rows, samples)`.

        Args:
            chunk: `Chunk`.
        """
        bands = np.stack(list(self.bands_of(chunk.audio)))

        def mix(gains):
            # One row after the other: long clips have many samples and times.
            rows = [
                (bands * self.slopes(chunk, each.T)).sum(0) for each in gains
            ]
            return np.stack(rows).astype("float32")

        return mix
