"""Scores of clips, from those of their chunks."""

import numpy as np


def clip_scores(scores, clip_index, num_clips):
    """Averages the scores of each clip over its chunks.

    Args:
        scores: array `(chunks, classes)`, finite.
        clip_index: integer array `(chunks,)`, the clip of each chunk, in any
            order.
        num_clips: int, the number of clips.

    Returns:
        Float64 array `(num_clips, classes)`.

    Raises:
        ValueError: if a shape or a value is not as above, or a clip has no
            chunk.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import metrics
        >>> scores = np.array([[0.5, 0.0], [1.0, 0.5], [0.25, 0.25]])
        >>> chunk_of = np.array([0, 0, 1])
        >>> metrics.clip_scores(scores, chunk_of, num_clips=2).tolist()
        [[0.75, 0.25], [0.25, 0.25]]
    """
    scores = validated_scores(scores)
    clip_index = np.asarray(clip_index)
    if clip_index.shape != scores.shape[:1]:
        raise ValueError(
            "`clip_index` must hold one clip for each row of `scores`. "
            f"Received: clip_index.shape={clip_index.shape}, "
            f"scores.shape={scores.shape}"
        )
    if not np.issubdtype(clip_index.dtype, np.integer):
        raise ValueError(
            "`clip_index` must hold integers. "
            f"Received: clip_index.dtype={clip_index.dtype}"
        )
    if clip_index.min() < 0 or clip_index.max() >= num_clips:
        raise ValueError(
            "`clip_index` must be in [0, num_clips). Received: "
            f"clip_index from {clip_index.min()} to {clip_index.max()}, "
            f"num_clips={num_clips}"
        )
    num_chunks = np.bincount(clip_index, minlength=num_clips)
    empty = np.flatnonzero(num_chunks == 0)
    if empty.size:
        raise ValueError(
            f"{empty.size} clips have no chunk, the first is {empty[0]}. "
            f"Received: num_clips={num_clips}, chunks={len(scores)}"
        )
    total = np.zeros((num_clips, scores.shape[1]))
    np.add.at(total, clip_index, scores)
    return total / num_chunks[:, None]


def validated_scores(scores):
    """Returns scores as float64 `(clips, classes)`.

    Raises:
        ValueError: if they have another shape, or are not all finite.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or not scores.size:
        raise ValueError(
            "`scores` must be of rank 2 and not empty. "
            f"Received: scores.shape={scores.shape}"
        )
    finite = np.isfinite(scores)
    if not finite.all():
        raise ValueError(
            "`scores` must be finite. Received: "
            f"{np.sum(~finite)} other values, the first is "
            f"{scores[~finite][0]}"
        )
    return scores
