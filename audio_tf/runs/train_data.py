"""The clips of a training, decoded and cut into chunks."""

import dataclasses
import functools

import numpy as np

from audio_tf import data, metrics
from audio_tf.data.shares import WHOLE
from audio_tf.runs import beside, corpus_records, hosts, noise, unlabelled
from audio_tf.runs.settings import flag
from audio_tf.terminal import first_quoted


@dataclasses.dataclass(frozen=True)
class TrainClips:
    """The decoded clips of a training, and what is beside them.

    Attributes:
        chunks: dict of `Chunks` by split; those without labels are in `train`.
        sides: dict of `Clips` by split and by name of `beside.BESIDE`, which
            may have no audio in common where some of it is scored.
        learned_from: list of the `Clips` that change weights.
        failures: dict of the reason by path of each file that was left out.
        bank: float32 array of recordings of noise, or `None`.
    """

    chunks: dict
    sides: dict
    learned_from: list
    failures: dict
    bank: np.ndarray | None = None


def with_beside(settings, corpora):
    """Lists all that a training decodes: a corpus, and what is beside it.

    Args:
        settings: `TrainSettings`.
        corpora: dict of `Corpus` by split.

    Returns:
        Dict of `Corpus` by split and by name of `beside.BESIDE`, as far as
        such clips are asked for.
    """
    return {
        **corpora,
        **unlabelled.listed(settings, corpora["train"]),
        **noise.listed(settings, corpora["train"]),
    }


def listed(settings, corpora, out=None):
    """Lists what is beside a corpus with its splits, and notes all files.

    Args:
        settings: `TrainSettings`.
        corpora: dict of `Corpus` by split.
        out: folder of the run, which may not be there yet. One that goes on
            has its clips in the order in which it began, or it would draw
            others; `None` where no run goes on.

    Returns:
        Pair of the dict that `with_beside` returns, and of the
        `corpus_record` of it.
    """
    corpora = with_beside(settings, corpora)
    places = settings.file_root(), beside.roots(corpora)
    if out is not None:
        corpora = corpus_records.in_first_order(out, corpora, *places)
    return corpora, corpus_records.make(corpora, *places)


def decode(settings, name, corpus, classifier, share):
    """Decodes the clips of a split, or of what is beside the corpus.

    Args:
        settings: `TrainSettings`.
        name: str, the name that is shown.
        corpus: `Corpus`.
        classifier: `AudioClassifier`, whose rate they are for.
        share: `Share` of this host.

    Returns:
        `Clips`.
    """
    prepare = functools.partial(
        data.prepare,
        sample_rate_hz=classifier.sample_rate_hz,
        name=name,
        **settings.prepare_arguments(),
    )
    return hosts.prepared(prepare, corpus, share)


def decode_all(settings, corpora, classifier, share):
    """Decodes all that a training hears.

    Args:
        settings: `TrainSettings`.
        corpora: dict of `Corpus` as `with_beside` returns it.
        classifier: `AudioClassifier`, whose rate and chunks they are made for.
        share: `Share` of this host.

    Returns:
        `TrainClips`.

    Raises:
        ValueError: as `load_chunks`, or if what could be decoded of `train`
            teaches nothing.
    """
    corpora = dict(corpora)
    recordings = corpora.pop(beside.NOISE, None)
    chunks, failures = load_chunks(
        settings, unlabelled.joined(corpora), classifier, share
    )
    sides = unlabelled.clips_of(settings, chunks)
    # The files of a class may all be bad.
    sides["train"].check_teaches()
    own = chunks["train"].clips
    if recordings is None:
        return TrainClips(chunks, sides, [own], failures)
    noises = decode(settings, beside.NOISE, recordings, classifier, share)
    return TrainClips(
        chunks,
        {**sides, beside.NOISE: noises},
        [own, noises],
        failures | noises.failures,
        noise.read_bank(noises),
    )


def load_chunks(settings, corpora, classifier, share=WHOLE):
    """Decodes the clips of all splits and cuts them into chunks.

    Args:
        settings: `TrainSettings`.
        corpora: dict of `Corpus` by split.
        classifier: `AudioClassifier`, whose rate and chunks they are made for.
        share: `Share` of this host.

    Returns:
        Pair of a dict of `Chunks` by split, without empty splits, and a dict
        of the reason by path of each file that was left out.

    Raises:
        ValueError: if a figure is monitored and there is no validation split,
            or that split cannot tell epochs apart by it.
    """
    chunks, failures = {}, {}
    for split, corpus in corpora.items():
        if not len(corpus):
            print(f"{split}: no clips")
            continue
        decoded = decode(settings, split, corpus, classifier, share)
        chunks[split] = data.Chunks.for_model(decoded, classifier)
        clips = chunks[split].clips
        failures |= clips.failures
        print(
            f"{split}: {len(clips)} clips, {len(chunks[split])} chunks, "
            f"{chunks[split].silent} silent ones left out"
        )
    tell_of_missing(chunks["train"])
    check_monitor(settings, chunks)
    needed = {"monitor", "patience"} & settings.given
    if settings.schedule == "plateau":
        needed.add("schedule")
    for name in sorted(needed):
        if "val" not in chunks:
            raise ValueError(
                f"{flag(name)} needs a validation split. Received: "
                f"{getattr(settings, name)}, splits {list(chunks)}"
            )
    return chunks, failures


def tell_of_missing(chunks):
    """Prints which labels no clip of training has, since none is learned.

    Args:
        chunks: `Chunks` of training.
    """
    labels = chunks.clips.corpus.vocabulary
    missing = [
        label
        for label, there in zip(labels, chunks.targets.any(axis=0), strict=True)
        if not there
    ]
    if missing:
        print(
            f"train: no clip has {first_quoted(missing)}, which a model "
            f"of {len(labels)} labels cannot learn so"
        )


def check_monitor(settings, chunks):
    """Checks that the figure of the best epoch depends on what a model says.

    Mean average precision is 1 where each label is in all clips or in none,
    as in a validation split of one clip: the first epoch would be the best.

    Args:
        settings: `TrainSettings`.
        chunks: dict of `Chunks` by split.

    Raises:
        ValueError: if it does not.
    """
    metric = metrics.METRICS.get(settings.monitor.removeprefix("val_"))
    if metric is None or "val" not in chunks:
        return
    targets = chunks["val"].targets.astype("int64")
    right, wrong = targets.astype("float64"), 1.0 - targets
    if metric.extended(targets, right) == metric.extended(targets, wrong):
        labels = chunks["val"].clips.corpus.vocabulary
        found = [labels[column] for column in targets.any(axis=0).nonzero()[0]]
        raise ValueError(
            f"--monitor {settings.monitor} must tell epochs apart, and on this "
            "validation split it is the same whatever a model answers; "
            f"--monitor val_loss is not. Received: {len(targets)} clips, "
            f"labelled {first_quoted(found)}"
        )
