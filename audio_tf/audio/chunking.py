"""Clips cut into chunks, the same wherever they are scored or trained on.

Section 2 of "Audio Transformers" (arXiv 2105.00335): clips are cut into chunks
of equal length, and shorter clips are repeated to the full length.
"""

import typing

import numpy as np

from audio_tf.ops.checks import check_positive, is_number


def check_chunks(chunk_s, chunk_hop_s, silence_db):
    """Checks what says how clips are cut, before a rate is known.

    Args:
        chunk_s: float, the seconds of a chunk, or `None` for whole clips.
        chunk_hop_s: float, the seconds from chunk to chunk, or `None` for
            chunks side by side.
        silence_db: float, a peak in dB of full scale, or `None` for no such
            level.

    Raises:
        ValueError: if a duration is no positive number, chunks would leave
            gaps, the level is no number of at most 0, or there is more than
            a length that is `None` and clips stay whole.
    """
    if chunk_s is not None:
        check_positive(chunk_s=chunk_s)
    if chunk_hop_s is not None:
        check_positive(chunk_hop_s=chunk_hop_s)
        if chunk_s is None:
            raise ValueError(
                "`chunk_hop_s` applies to chunks, and `chunk_s=None` keeps "
                f"clips whole. Received: chunk_hop_s={chunk_hop_s}"
            )
        if chunk_hop_s > chunk_s:
            raise ValueError(
                "`chunk_hop_s` must be at most `chunk_s`, or samples between "
                f"chunks would be lost. Received: chunk_s={chunk_s}, "
                f"chunk_hop_s={chunk_hop_s}"
            )
    if silence_db is None:
        return
    if not (is_number(silence_db) and silence_db <= 0.0):
        raise ValueError(
            "`silence_db` must be a peak in dB of full scale, at most 0, or "
            f"None to keep all chunks. Received: silence_db={silence_db!r}"
        )
    if chunk_s is None:
        raise ValueError(
            "`silence_db` applies to chunks, and `chunk_s=None` keeps "
            f"clips whole. Received: silence_db={silence_db}"
        )


def chunk_starts(length, size, hop):
    """Returns where the chunks of a clip begin.

    Each chunk begins `hop` samples after the one before. If a rest is left,
    one more chunk ends with the clip, so that every sample is in a chunk and
    no chunk holds silence that the clip has not. A clip of at most `size` is
    one chunk.

    Args:
        length: int, samples of the clip.
        size: int, samples of a chunk.
        hop: int, samples from chunk to chunk.

    Returns:
        Int64 array `(chunks,)` of samples, at least one.
    """
    if length <= size:
        return np.zeros(1, np.int64)
    starts = np.arange(0, length - size + 1, hop, dtype=np.int64)
    if starts[-1] + size < length:
        starts = np.append(starts, length - size)
    return starts


def kept_chunks(peaks, clip_index, silence_db):
    """Tells which chunks are left when the silent ones are left out.

    Args:
        peaks: float array `(chunks,)`, the largest magnitude in each chunk.
        clip_index: int array `(chunks,)`, the index of each chunk's clip.
        silence_db: float, the peak in dB of full scale below which a chunk is
            left out, unless it is the loudest of its clip; `None` keeps all.

    Returns:
        Boolean array `(chunks,)`; at least one of each clip is True.
    """
    if silence_db is None:
        return np.ones(len(peaks), bool)
    threshold = 10.0 ** (silence_db / 20.0)
    loudest = np.zeros(clip_index.max() + 1)
    np.maximum.at(loudest, clip_index, peaks)
    return peaks >= np.minimum(threshold, loudest[clip_index])


class Cutting(typing.NamedTuple):
    """A way to cut clips into the rows that a model scores.

    Attributes:
        size: int, samples of a chunk, or `None` for whole clips.
        hop: int, samples from chunk to chunk, at most `size`; `None` for
            whole clips.
        silence_db: as `kept_chunks` takes it.
    """

    size: int | None
    hop: int | None = None
    silence_db: float | None = None

    @classmethod
    def of(cls, model):
        """Makes that of a model, or of a converter of files.

        Args:
            model: whatever has `sample_rate_hz`, `chunk_s`, `chunk_hop_s` and
                `silence_db`, as `scoring.ClipClassifier` has them.
        """
        if model.chunk_s is None:
            return cls(None)
        size, hop = in_samples(
            model.chunk_s, model.chunk_hop_s, model.sample_rate_hz
        )
        return cls(size, hop, model.silence_db)

    def cut(self, audio):
        """Cuts one clip.

        Args:
            audio: float array `(samples,)`, at least one sample.

        Returns:
            Pair of a float array `(chunks, size)`, or `(1, samples)` of a
            whole clip, and the sample that each begins at, int64 `(chunks,)`.
        """
        if self.size is None:
            return audio[np.newaxis], np.zeros(1, np.int64)
        starts = chunk_starts(len(audio), self.size, self.hop)
        if len(audio) <= self.size:
            return np.resize(audio, (1, self.size)), starts
        chunks = audio[starts[:, np.newaxis] + np.arange(self.size)]
        peaks = np.abs(chunks).max(axis=1)
        of_one = np.zeros(len(starts), np.int64)
        kept = kept_chunks(peaks, of_one, self.silence_db)
        return chunks[kept], starts[kept]


def in_samples(chunk_s, hop_s, sample_rate_hz):
    """Returns the samples of a chunk, and those from chunk to chunk.

    Args:
        chunk_s: float, seconds.
        hop_s: float, seconds, or `None` for chunks side by side.
        sample_rate_hz: int.
    """
    size = round(chunk_s * sample_rate_hz)
    return size, size if hop_s is None else round(hop_s * sample_rate_hz)
