"""Clips without labels, which the teachers of a training alone judge."""

import numpy as np

from audio_tf.corpora import Corpus
from audio_tf.models.targets import takes_shares
from audio_tf.runs import beside
from audio_tf.runs.beside import UNLABELLED
from audio_tf.runs.train_settings import LOSSES


def listed(settings, corpus):
    """Lists the clips that the teachers alone judge.

    Args:
        settings: `TrainSettings`.
        corpus: `Corpus` of the training split.

    Returns:
        Dict of a `Corpus` whose clips have no labels by the name
        `UNLABELLED`; empty if no such clips are asked for.

    Raises:
        FileNotFoundError: if there is no such file or folder, a folder holds
            no audio, or a pattern matches none.
        ValueError: if a clip of the corpus has several labels or none, or
            scores are no softmax: to have no label says something then.
    """
    if not settings.unlabelled:
        return {}
    one_label = corpus.has_one_label()
    loss = settings.loss_name(one_label)
    if not one_label or not takes_shares(loss):
        clips = (
            "one label a clip"
            if one_label
            else "clips of several labels or none"
        )
        raise ValueError(
            "--unlabelled needs a corpus of one label a clip, and --loss "
            f"{' or '.join(filter(takes_shares, LOSSES))}. "
            f"Received: {clips}, loss={loss!r}"
        )
    return {UNLABELLED: beside.listed(settings.unlabelled, corpus.vocabulary)}


def joined(corpora):
    """Puts the clips without labels behind those that are trained on.

    Args:
        corpora: dict of `Corpus` by split, maybe with `UNLABELLED`.

    Returns:
        Dict of `Corpus` by split, without `UNLABELLED`.
    """
    corpora = dict(corpora)
    more = corpora.pop(UNLABELLED, None)
    if more is not None:
        train = corpora["train"]
        corpora["train"] = Corpus(
            [*train.files, *more.files],
            [*train.labels, *more.labels],
            train.vocabulary,
        )
    return corpora


def known(settings, chunks):
    """Tells which clips that are trained on have labels.

    Args:
        settings: `TrainSettings`.
        chunks: dict of `Chunks` by split.

    Returns:
        Bool array `(clips,)`. A clip of none of the labels is told to be one
        where no others are asked for.
    """
    targets = chunks["train"].targets
    return targets.any(axis=1) | (not settings.unlabelled)


def clips_of(settings, chunks):
    """Returns the clips of each split, with those without labels apart.

    Args:
        settings: `TrainSettings`.
        chunks: dict of `Chunks` by split, where clips of `train` may be
            without labels.

    Returns:
        Dict of `Clips` by split, with `UNLABELLED` where it is asked for.
    """
    clips = {split: each.clips for split, each in chunks.items()}
    if settings.unlabelled:
        train, rows = clips["train"], known(settings, chunks)
        clips["train"] = train.select(np.flatnonzero(rows))
        clips[UNLABELLED] = train.select(np.flatnonzero(~rows))
    return clips
