"""Clips that are too short, or too long, left out and named."""

import dataclasses

import numpy as np

from audio_tf.audio.scoring import longest_clip, too_long


def limit_lengths(clips, min_s=0.0, max_s=np.inf):
    """Leaves out clips that are too short or too long, and names them.

    Args:
        clips: `Clips`.
        min_s: float, the shortest duration in seconds that is kept.
        max_s: float, the longest.

    Returns:
        `Clips`; those left out are in its failures.

    Raises:
        ValueError: if none is left, or the limits are not in order.

    Examples:
        >>> import soundfile
        >>> from audio_tf import corpora, data
        >>> soundfile.write("short.wav", [0.5] * 800, 8_000)
        >>> soundfile.write("long.wav", [0.5] * 8_000, 8_000)
        >>> files = ["short.wav", "long.wav"]
        >>> corpus = corpora.Corpus(files, [["dog"], ["dog"]], ["dog"])
        >>> clips = data.prepare(corpus, 8_000, "cache", progress=False)
        >>> data.limit_lengths(clips, min_s=0.5).lengths.tolist()
        [8000]
    """
    if not 0 <= min_s <= max_s:
        raise ValueError(
            "`min_s` must be at least 0 and at most `max_s`. "
            f"Received: min_s={min_s}, max_s={max_s}"
        )
    seconds = clips.lengths / clips.length_rate_hz
    kept = np.flatnonzero((seconds >= min_s) & (seconds <= max_s))
    if not len(kept):
        raise ValueError(
            f"None of {len(clips)} clips has {min_s} s to {max_s} s. Received: "
            f"{seconds.min():.2f} s to {seconds.max():.2f} s"
        )
    return keep_clips(
        clips,
        kept,
        lambda row: f"{seconds[row]:.2f} s, not within {min_s} s to {max_s} s",
    )


def limit_to_model(clips, model):
    """Leaves out clips that a model of whole clips cannot take.

    Args:
        clips: `Clips` at the rate of the model.
        model: `audio_tf.audio.scoring.ClipClassifier`.

    Returns:
        `Clips`; those left out are in its failures.

    Raises:
        ValueError: if the clips are of another rate, or none is left.
    """
    if clips.sample_rate_hz != model.sample_rate_hz:
        raise ValueError(
            f"A model at {model.sample_rate_hz} Hz takes no other clips. "
            f"Received: clips at {clips.sample_rate_hz} Hz"
        )
    longest = longest_clip(model)
    if longest is None:
        return clips
    reason = too_long(longest, clips.sample_rate_hz)
    kept = np.flatnonzero(clips.lengths <= longest)
    if not len(kept):
        raise ValueError(
            f"None of {len(clips)} clips can be used: each is {reason}"
        )
    return keep_clips(clips, kept, lambda row: reason)


def keep_clips(clips, kept, reason):
    """Leaves out all clips but some, and names them.

    Args:
        clips: `Clips`.
        kept: int array, the indices of those that stay.
        reason: function of the index of a clip that is left out to a str.

    Returns:
        `Clips`.
    """
    failures = dict(clips.failures)
    for row in np.setdiff1d(np.arange(len(clips)), kept):
        failures[str(clips.corpus.files[row])] = reason(row)
    return dataclasses.replace(clips.select(kept), failures=failures)
