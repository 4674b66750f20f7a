"""Chunks to the scores of the clips that they are of."""

import numpy as np

from audio_tf.data.shares import WHOLE
from audio_tf.ops.clip_scores import clip_scores


def score_clips(
    model, chunks, batch_size=64, verbose="auto", strict=True, share=WHOLE
):
    """Scores each clip by the mean over its chunks.

    Args:
        model: a Keras model that scores waveforms.
        chunks: `Chunks`.
        batch_size: int.
        verbose: as `predict` of the model takes it.
        strict: bool. If False, a clip with a score that is not finite has NaN
            for all its scores, and leaves the others alone.
        share: `Share`, what this host reads; the model must return the scores
            of all hosts.

    Returns:
        Float64 array `(clips, classes)`.

    Raises:
        ValueError: if `strict` and a score is not finite; it names the file.

    Examples:
        >>> import keras
        >>> import soundfile
        >>> from audio_tf import corpora, data
        >>> soundfile.write("a.wav", [0.5] * 20_000, 8_000)
        >>> corpus = corpora.Corpus(["a.wav"], [["dog"]], ["dog", "rain"])
        >>> clips = data.prepare(corpus, 8_000, "cache", progress=False)
        >>> inputs = keras.Input((8_000,))
        >>> model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
        >>> data.score_clips(model, data.Chunks(clips), verbose=0).shape
        (1, 2)
    """
    scores = model.predict(
        chunks.dataset(batch_size, share=share), verbose=verbose
    )
    order = chunks.scoring_order(batch_size, share)
    scores, clips = scores[order >= 0], chunks.clip_index[order[order >= 0]]
    finite = np.isfinite(scores).all(axis=1)
    bad = np.unique(clips[~finite])
    if strict and bad.size:
        raise ValueError(
            f"Scores of {bad.size} of {len(chunks.clips)} clips are not "
            "finite. Received: "
            f"{scores[~finite][0]} for {chunks.clips.corpus.files[bad[0]]}"
        )
    scores = np.where(finite[:, None], scores, 0.0)
    means = clip_scores(scores, clips, len(chunks.clips))
    means[bad] = np.nan
    return means
