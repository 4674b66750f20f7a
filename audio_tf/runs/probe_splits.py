"""The utterances and the targets of the tasks of `audio-tf probe`."""

import numpy as np

from audio_tf import data
from audio_tf.analysis import probes
from audio_tf.runs import corpus_records

SPLITS = ("train", "val", "test")


def load_splits(settings):
    """Reads the splits; one that the corpus lacks is drawn from train.

    Args:
        settings: `ProbeSettings`.

    Returns:
        Dict of `SpeechCorpus` by the names in `SPLITS`.

    Raises:
        ValueError: if a split is not there and none of train is to be it, or
            it is there and some of train is to be it.
    """
    corpora = settings.load()
    for split in ("test", "val"):
        share = getattr(settings, f"{split}_share")
        if split in corpora and len(corpora[split]):
            if share and f"{split}_share" in settings.given:
                raise ValueError(
                    f"--{split}-share draws from train where there is no split "
                    f"{split!r}. Received: --{split}-share {share}, "
                    f"{len(corpora[split])} utterances in {split!r}"
                )
            continue
        held = []
        if share:
            rest, held = corpora["train"].hold_out(share, settings.seed)
        if not len(held) or not len(rest):
            raise ValueError(
                f"There is no split {split!r}; --{split}-share draws it from "
                f"train. Received: --{split}-share {share}, "
                f"{len(corpora['train'])} utterances"
            )
        corpora[split], corpora["train"] = held, rest
    return {split: corpora[split] for split in SPLITS}


def listed(settings):
    """Lists the utterances of the splits.

    Args:
        settings: `ProbeSettings`.

    Returns:
        Pair of what `load_splits` returns and its `corpus_record`.
    """
    corpora = load_splits(settings)
    return corpora, corpus_records.make(corpora, settings.file_root())


def phonemes(task):
    """Returns whether a probe learns the labels of frames."""
    return probes.PROBES[task].targets == "frame_labels"


def rows_with_phones(corpus, split):
    """Returns a list of the rows whose frames have labels.

    Args:
        corpus: `SpeechCorpus` of a split.
        split: str, the split's name for the error.

    Raises:
        ValueError: if there is none.
    """
    labels = corpus.frame_labels or []
    rows = [row for row, each in enumerate(labels) if each is not None]
    if not rows:
        raise ValueError(
            f"No utterance of the split {split!r} has phones, see "
            f"--alignment. Received: {len(corpus)} utterances"
        )
    return rows


def with_phones(clips, split):
    """Returns the `Clips` of a split whose frames have labels.

    Args:
        clips: `Clips` of a split.
        split: str, the split's name for the error.

    Raises:
        ValueError: if there is none.
    """
    return clips.select(rows_with_phones(clips.corpus, split))


def check_targets(corpora):
    """Raises the error of tasks of phones or speakers without any targets.

    Args:
        corpora: dict of `SpeechCorpus` by split, as `load_splits` returns it.

    Raises:
        ValueError: if a split has no phones, or no speaker that train has.
    """
    for split, corpus in corpora.items():
        rows_with_phones(corpus, split)
    unseen_speakers(corpora)


def unseen_speakers(corpora):
    """Counts the utterances of speakers that train lacks.

    Args:
        corpora: dict of `SpeechCorpus` by split.

    Returns:
        Dict by split, `val` and `test`, of their number.

    Raises:
        ValueError: if a split has no others: a probe learns the speakers of
            train alone.
    """
    train = corpora["train"].speakers
    unseen = {}
    for split in ("val", "test"):
        speakers = corpora[split].speakers
        unseen[split] = int(np.sum(~np.isin(speakers, train)))
        if unseen[split] == len(speakers):
            raise ValueError(
                f"No speaker of the split {split!r} is in train; splits of "
                "the same speakers are wanted, by lists or by "
                f"--{split}-share. Received: {len(speakers)} utterances"
            )
    return unseen


def task_splits(task, clips, settings, frames=None):
    """Puts together the utterances of a task and its targets.

    Args:
        task: str, a key of `PROBES`.
        clips: dict of `Clips` by split, of samples or of features.
        settings: `ProbeSettings`.
        frames: `Frames` of the features where `clips` are samples.

    Returns:
        Pair of a dict of `Utterances` by split and a dict for the report,
        which counts what was left out or cannot be told.

    Raises:
        ValueError: if targets are missing or do not fit the frames.
    """
    known = clips
    if phonemes(task):
        known = {split: with_phones(clips[split], split) for split in clips}
    utterances = {
        split: data.Utterances(
            each,
            probes.PROBES[task].targets,
            frames,
            settings.buckets,
            settings.by_time,
        )
        for split, each in known.items()
    }
    if phonemes(task):
        left_out = {
            split: len(clips[split]) - len(known[split]) for split in clips
        }
        facts = {"utterances_without_phones": left_out}
    else:
        # They count as wrong, as they are.
        corpora = {split: each.corpus for split, each in clips.items()}
        facts = {"utterances_of_unseen_speakers": unseen_speakers(corpora)}
    return utterances, facts


def num_classes(task, utterances):
    """Returns the number of classes of a task.

    Args:
        task: str, a key of `PROBES`.
        utterances: dict of `Utterances` by split.
    """
    corpora = [each.clips.corpus for each in utterances.values()]
    if not phonemes(task):
        return len(corpora[0].vocabulary)
    if corpora[0].label_names is not None:
        return len(corpora[0].label_names)
    return 1 + max(
        int(labels.max())
        for corpus in corpora
        for labels in corpus.frame_labels
    )
