"""Results: figures with intervals, and the facts that they depend on.

A result is the JSON file of a split. Beside the figures it says how clips were
scored, how far the figures may be from those of other clips, which splits and
files they are of, what is on both sides of the splits, and which code and seed
made them.
"""

import numpy as np

from audio_tf import intervals, metrics, thresholds
from audio_tf.runs import corpus_records, provenance

# Figures whose intervals every result has.
WITH_INTERVAL = ("accuracy", "mAP")


def figures(split, chunks, scores, labels, calibrated=None):
    """Computes all figures of a split for its result.

    Args:
        split: str, its name.
        chunks: `Chunks` of the split, its targets in the order of the scores.
        scores: array `(clips, classes)`, the scores of clips.
        labels: list of str, the labels in the order of the scores.
        calibrated: dict by label of thresholds that validation clips have
            been taken for, or `None` if there are none.

    Returns:
        Dict ready for JSON: as `metrics.evaluate` returns it, and `split`,
        `scored`, `intervals` and, with thresholds, `at_thresholds`.
    """
    targets = chunks.targets
    found = {
        **metrics.evaluate(targets, scores, labels),
        "split": split,
        "scored": how_scored(chunks),
        "intervals": intervals_of(
            WITH_INTERVAL, targets, scores, chunks.clips.corpus
        ),
    }
    if calibrated is not None:
        ordered = {label: calibrated[label] for label in labels}
        found["at_thresholds"] = thresholds.evaluate(targets, scores, ordered)
    return found


def how_scored(chunks):
    """Describes what has a score, a clip or a chunk, and how it came to it.

    Args:
        chunks: `Chunks` that were scored.

    Returns:
        Dict for JSON.
    """
    facts = {"unit": "clips", "chunks": len(chunks)}
    if chunks.size is None:
        return {**facts, "how": "whole clips", "chunk_s": None}
    return {
        **facts,
        "how": "the mean over the scores of a clip's chunks",
        "chunk_s": chunks.size / chunks.clips.sample_rate_hz,
        "chunk_hop_s": chunks.hop / chunks.clips.sample_rate_hz,
        "silent_chunks_left_out": chunks.silent,
    }


def intervals_of(names, targets, scores, corpus):
    """Computes the intervals of figures.

    Args:
        names: iterable of keys of `metrics.METRICS`.
        targets: array of 0 and 1 `(clips, classes)`.
        scores: array `(clips, classes)`.
        corpus: `Corpus` of the clips.

    Returns:
        Dict for JSON: a pair by name, of the figures that there are, the
        `level`, and the `unit` that is drawn anew and how many `units` there
        are.
    """
    targets = np.asarray(targets, "int64")
    scores = np.asarray(scores, "float64")
    kind, unit = intervals.units(corpus)
    found = {
        "level": intervals.LEVEL,
        "unit": kind,
        "units": int(unit.max()) + 1,
    }
    for name in names:
        interval = intervals.bootstrap(
            metrics.METRICS[name], targets, scores, unit
        )
        if interval is not None:
            found[name] = list(interval)
    return found


def format_figures(found):
    """Returns the figures of a result as text: a table, and what it is of.

    Args:
        found: dict that `figures` has returned.
    """
    lines = [metrics.format_report(found)]
    lines += format_intervals(found["intervals"], found)
    at = found.get("at_thresholds")
    if at is not None and at["f1_macro"] is not None:
        lines.append(
            f"F1 at the thresholds of validation: macro {at['f1_macro']:.4f}, "
            f"micro {at['f1_micro']:.4f}"
        )
    return "\n".join(lines)


def deviation(values):
    """Computes the standard deviation of a figure over seeds.

    It describes these seeds, and divides by their number, not by one less: for
    what further seeds would reach, `rows.interval` has Student's interval.

    Args:
        values: list of floats, one a seed.
    """
    return float(np.std(values))


def format_mean(mean, deviation, count):
    """Returns a mean over seeds as text, with its spread where there is one.

    Args:
        mean: float.
        deviation: float, that of the seeds.
        count: int, how many seeds; one has no spread.
    """
    spread = f" +- {deviation:.4f}" if count > 1 else ""
    return f"{mean:.4f}{spread}"


def format_intervals(found, figures):
    """Returns the intervals of a result as lines of text.

    Args:
        found: dict that `intervals_of` has returned.
        figures: dict by name of the figures that they are of, of which there
            may be others.
    """
    lines = []
    for name in WITH_INTERVAL:
        if figures.get(name) is None:
            continue
        of = f"{found['units']} {found['unit']}s"
        if name in found:
            low, high = found[name]
            told = f"{found['level']:.0%} interval [{low:.4f}, {high:.4f}]"
            lines.append(f"{name}: {told} over {of}")
        else:
            lines.append(
                f"{name}: no interval, as it is the same in all draws of {of}"
            )
    return lines


def facts(settings, record, found, others=()):
    """Describes what the figures of a run are of.

    Args:
        settings: `DataSettings` of a script.
        record: `corpus_records.make` of all splits that were read.
        found: list of `leaks.Leak`, what is on both sides of the splits.
        others: folders of clips beside the corpus', see
            `corpus_records.name_below`.

    Returns:
        Dict ready for JSON: `splits`, whether they are the official ones,
        `leaks`, `corpus`, the number and the checksum of the files of each
        split, `build`, which build they were read of and whether that is
        complete, `dataset`, `seed`, `None` where nothing is drawn by one, and
        `code`.
    """
    return {
        "dataset": settings.dataset,
        "seed": settings.seed,
        "splits": settings.split_facts(),
        "leaks": leak_facts(settings, found, others),
        "corpus": corpus_records.summary(record),
        "build": settings.build_facts(),
        "code": provenance.code_facts(),
    }


def leak_facts(settings, found, others=()):
    """Describes what is on both sides of the splits.

    Args:
        settings, found, others: as `facts` takes them.

    Returns:
        List of dicts for JSON.
    """
    root = settings.file_root()
    return [
        {
            "kind": leak.kind,
            "splits": list(leak.splits),
            "shared": leak.shared,
            "clips": leak.clips,
            "files": [
                corpus_records.name_below(root, file, others)
                for file in leak.files
            ],
        }
        for leak in found
    ]
