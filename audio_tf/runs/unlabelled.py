"""Clips without labels, which the teachers of a training alone judge."""

import os

import numpy as np

from audio_tf import data
from audio_tf.audio.audio_files import list_files
from audio_tf.corpora import Corpus
from audio_tf.runs import provenance
from audio_tf.runs.train_settings import SOFTMAX_LOSS

# Their name, beside those of splits.
UNLABELLED = "unlabelled"


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
    if not one_label or loss != SOFTMAX_LOSS:
        clips = (
            "one label a clip"
            if one_label
            else "clips of several labels or none"
        )
        raise ValueError(
            "--unlabelled needs a corpus of one label a clip, and --loss "
            f"{SOFTMAX_LOSS}. Received: {clips}, loss={loss!r}"
        )
    found = list(dict.fromkeys(map(str, list_files(settings.unlabelled))))
    for file in found:
        if provenance.size_of(file) == provenance.MISSING:
            raise FileNotFoundError(f"{file}: no such file or folder")
    labels = [[] for _ in found]
    return {UNLABELLED: Corpus(found, labels, corpus.vocabulary)}


def roots(corpora):
    """Returns the folders that names of files without labels are relative to.

    Args:
        corpora: dict of `Corpus` by split, maybe with `UNLABELLED`.

    Returns:
        List of the path of the folder that all of them are below, empty if
        there are none.
    """
    if UNLABELLED not in corpora:
        return []
    files = map(os.path.abspath, corpora[UNLABELLED].files)
    return [os.path.commonpath([*map(os.path.dirname, files)])]


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


def same_audio(settings, chunks):
    """Finds clips that are in two splits.

    Args:
        settings: `TrainSettings`.
        chunks: dict of `Chunks` by split, where clips of `train` may be
            without labels.

    Returns:
        List of `leaks.Leak`. That a clip without a label is one of those with
        labels is no leak.

    Raises:
        ValueError: if a clip without a label is one that is scored, unless
            `other_splits` allows it.
    """
    clips = {split: each.clips for split, each in chunks.items()}
    if settings.unlabelled:
        train, rows = clips["train"], known(settings, chunks)
        clips["train"] = train.select(np.flatnonzero(rows))
        clips[UNLABELLED] = train.select(np.flatnonzero(~rows))
    found = []
    for leak in data.same_audio(clips):
        if UNLABELLED in leak.splits:
            if "train" in leak.splits:
                continue
            if not settings.other_splits:
                raise ValueError(
                    "--unlabelled must not hold clips that are scored; "
                    "--other-splits allows that, and stands in the result. "
                    f"Received: {leak}"
                )
        found.append(leak)
    return found
