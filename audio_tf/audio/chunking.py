"""Clips cut into chunks, the same wherever they are scored or trained on.

Section 2 of "Audio Transformers" (arXiv 2105.00335): clips are cut into chunks
of equal length, and shorter clips are repeated to the full length.
"""

import numpy as np

from audio_tf.ops.checks import check_positive, is_number


def check_chunks(chunk_s, silence_db):
    """Checks the length of chunks, and the level below which one is silent.

    Args:
        chunk_s: float, the seconds of a chunk, or `None` for whole clips.
        silence_db: float, a peak in dB of full scale, or `None` for no such
            level.

    Raises:
        ValueError: if the length is no positive number, the level no number
            of at most 0, or there is a level and clips stay whole.
    """
    if chunk_s is not None:
        check_positive(chunk_s=chunk_s)
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


def cut(audio, size, silence_db=None):
    """Cuts one clip into the chunks that are scored.

    Args:
        audio: float array `(samples,)`, at least one sample.
        size: int, samples of a chunk.
        silence_db: as `kept_chunks` takes it.

    Returns:
        Pair of a float array `(chunks, size)` and the sample that each begins
        at, int64 `(chunks,)`.
    """
    starts = chunk_starts(len(audio), size, size)
    if len(audio) <= size:
        return np.resize(audio, (1, size)), starts
    chunks = audio[starts[:, np.newaxis] + np.arange(size)]
    peaks = np.abs(chunks).max(axis=1)
    kept = kept_chunks(peaks, np.zeros(len(starts), np.int64), silence_db)
    return chunks[kept], starts[kept]
