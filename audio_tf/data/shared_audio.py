"""Clips of two splits that sound the same, sample for sample."""

import collections
import hashlib

from audio_tf.corpora import leaks


def same_audio(clips):
    """Finds clips of two splits whose decoded samples are equal.

    ```python
    clips = {
        split: prepare(corpus, 16_000, cache_dir)
        for split, corpus in read_folders("sounds").items()
    }
    leaks = same_audio(clips)
    ```

    Lengths and checksums are known of every entry of the cache. Samples are
    read of those clips alone that agree in both, to be sure. A clip that is
    digital silence, or empty, is the same as no other.

    Args:
        clips: dict of `Clips` of samples by split, of one rate and decoder.

    Returns:
        List of `corpora.leaks.Leak` of the kind `"audio"`.

    Raises:
        ValueError: if rates differ: no clip would be like another.
    """
    rates = {split: each.sample_rate_hz for split, each in clips.items()}
    if len(set(rates.values())) > 1:
        raise ValueError(
            f"Clips of all splits must have one rate. Received: {rates}"
        )
    marks = {split: each.marks.tolist() for split, each in clips.items()}
    splits_of = collections.Counter(
        mark for each in marks.values() for mark in set(each)
    )
    keys = {
        split: [
            digest(clips[split].read(row)) if splits_of[mark] > 1 else None
            for row, mark in enumerate(each)
        ]
        for split, each in marks.items()
    }
    corpora = {split: each.corpus for split, each in clips.items()}
    return leaks.of_keys("audio", corpora, keys)


def digest(samples):
    """Returns a checksum that no two sounds share, `None` of silence.

    Args:
        samples: float32 array `(samples,)`.
    """
    return hashlib.sha256(samples).hexdigest() if samples.any() else None
