"""The card of a released model: what it is for, and what was measured."""

import numpy as np

from audio_tf import metrics

# Classes of which the whole confusion matrix is still readable.
MOST_CLASSES = 12
# Pairs of labels, or single labels, that are listed.
LISTED = 15

LABELS_ALONE = (
    "It knows its labels alone: every clip gets a score for each, whatever is "
    "to be heard. "
)
LIMITS = (
    "It was measured on clips recorded as those of the corpus; "
    "other rooms, microphones and speakers were not tried. It is not meant for "
    "decisions about people."
)
CHOSEN = (
    "The epoch that was kept is the best on this very split: clips that had no "
    "part in the choice may score lower."
)
ELSEWHERE = (
    "The name is known once `audio_tf.models.register_released` was given the "
    "folder that the folder of this card is in; the path of this one will do, "
    "too."
)


def table(titles, rows):
    """Returns a table in Markdown.

    Args:
        titles: list of str.
        rows: list of lists of str.
    """
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(text):
    """Returns a text that does not end its cell of a table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def confusions(targets, scores, labels):
    """Describes which labels are taken for which.

    Args:
        targets: array of 0 and 1 `(clips, classes)`, one label a clip.
        scores: array `(clips, classes)`.
        labels: list of str.

    Returns:
        Markdown: the confusion matrix, or the most confused pairs where there
        are many labels.
    """
    counts = metrics.confusion(targets, scores)
    if len(labels) <= MOST_CLASSES:
        rows = [
            [label, *map(str, row)]
            for label, row in zip(labels, counts, strict=True)
        ]
        return "Clips by label (rows) and best score (columns):\n\n" + table(
            ["", *labels], rows
        )
    wrong = counts * (1 - np.eye(len(labels), dtype=np.int64))
    order = np.argsort(-wrong, axis=None, kind="stable")[:LISTED]
    rows = [
        [labels[true], labels[best], f"{wrong[true, best]}", f"{total}"]
        for true, best in zip(*np.unravel_index(order, wrong.shape))
        if wrong[true, best] > 0
        for total in [counts[true].sum()]
    ]
    if not rows:
        return "No clip's best score is of another label than its own."
    return (
        f"{wrong.sum()} of {counts.sum()} clips have another label's score "
        "highest. The most confused:\n\n"
        + table(["label", "taken for", "clips", "of"], rows)
    )


def hardest(report):
    """Describes which labels are found worst.

    Args:
        report: dict that `metrics.evaluate` has returned.

    Returns:
        Markdown: the labels of the lowest average precision.
    """
    found = [
        (row["average_precision"], label, row["positives"])
        for label, row in report["per_class"].items()
        if row["positives"]
    ]
    rows = [
        [label, f"{precision:.3f}", str(positives)]
        for precision, label, positives in sorted(found)[:LISTED]
    ]
    return "The labels that are found worst:\n\n" + table(
        ["label", "average precision", "clips"], rows
    )


def with_interval(value, interval):
    """Returns a text of a figure and its interval, which may be missing."""
    if interval is None:
        return f"{value:.4f}"
    low, high = interval
    return f"{value:.4f} [{low:.4f}, {high:.4f}]"


def write(
    name, facts, figures, limits, kept, origin, latency=None, registered=True
):
    """Writes the card of a released model.

    Args:
        name: str, the preset's name.
        facts: dict of the fields of `released.Released` that it is made from.
        figures: `release_figures.Figures`.
        limits: str, or `None` for what holds for all.
        kept: str, which epoch was kept, or `""`.
        origin: dict, how the model was trained.
        latency: `release_latency.Latency`, or `None` of an encoder.
        registered: bool, whether the preset is in the package's own folder, in
            which every program finds it by its name.

    Returns:
        The card in Markdown.
    """
    parts = [
        *described(name, facts, figures.labels, limits, registered),
        "## Trained on",
        table(["what", "is"], training_rows(facts, kept, origin)),
        "The weights are licensed as audio_tf is, Apache-2.0.",
        f"## Measured, split `{facts['split']}`",
        *measured(figures, facts["metric"].name),
        *([] if latency is None else timed(latency)),
    ]
    return "\n\n".join(parts) + "\n"


def described(name, facts, labels, limits, registered):
    """Returns the parts of a card that say what the model is.

    Args:
        labels: list of str, or `None` of an encoder.
        name, facts, limits, registered: as `write` takes them.
    """
    model = facts["model"].split(">")[-1]
    if not limits:
        limits = LIMITS if labels is None else LABELS_ALONE + LIMITS
    parts = [
        # The head that hubs read.
        "---\nlibrary_name: keras-hub\nlicense: apache-2.0\n"
        "tags: [audio_tf, audio]\n---",
        f"# {name}",
        facts["description"],
        "```python\n"
        f"from audio_tf.models import {model}\n\n"
        f'model = {model}.from_preset("{name}")\n'
        "```",
        *([] if registered else [ELSEWHERE]),
        f"**Limits.** {limits}",
    ]
    if labels is not None:
        parts.append(f"**Labels** ({len(labels)}): {', '.join(labels)}.")
    return parts


def training_rows(facts, kept, origin):
    """Returns the rows of a card on how the model was trained.

    Args:
        facts, kept, origin: as `write` takes them.
    """
    splits = ", ".join(
        f"{split} {found['files']} files (sha256 {found['sha256'][:12]})"
        for split, found in origin["corpus"].items()
    )
    versions = ", ".join(
        f"{package} {version}"
        for package, version in origin["versions"].items()
    )
    # What was trained before there were teachers does not name any.
    teachers = origin.get("teachers", ())
    return [
        ["corpus", facts["corpus"]],
        ["licence of the corpus", facts["licence"]],
        ["files by split", splits],
        *split_rows(origin),
        ["seed", facts["seed"]],
        ["command", f"`{facts['command']}`"],
        *(["teacher", teacher_name(each)] for each in teachers),
        *([["weights", f"of {kept}"]] if kept else []),
        ["parameters", f"{facts['parameters']:,}"],
        ["versions", versions],
        ["date", origin["date"]],
    ]


def measured(figures, counts):
    """Returns the parts of a card on its figures and those of a baseline.

    Args:
        figures: `release_figures.Figures`.
        counts: str, the name of the figure that counts.
    """
    return [
        *([CHOSEN] if figures.chosen else []),
        figures.meaning,
        table(
            ["figure", "value"],
            [
                [what, with_interval(value, interval)]
                for what, value, interval in figures.table
            ],
        ),
        f"The baseline, {counts} of the same clips:",
        table(
            ["baseline", counts],
            [[what, f"{value:.4f}"] for what, value in figures.baseline],
        ),
        figures.details,
    ]


def timed(latency):
    """Returns the parts of a card on how long the model takes.

    Args:
        latency: `release_latency.Latency`.
    """
    return [
        f"Time of a clip of {latency.clip_s:g} s alone, median of calls, "
        f"{latency.machine}:",
        table(
            ["runtime", "ms"],
            [[what, f"{ms:.2f}"] for what, ms in latency.medians_ms],
        ),
    ]


def split_rows(origin):
    """Returns the rows of a card on whose splits they are.

    Args:
        origin: dict, how the model was trained. What was trained before
            splits were looked at says nothing of them.
    """
    if "splits" not in origin:
        return []
    facts = origin["splits"]
    text = {
        True: f"the official ones: {facts['protocol']}",
        False: f"not the official ones: {facts['departure']}",
        None: "the corpus has no official ones",
    }[facts["official"]]
    rows = [["splits", text]]
    for leak in origin["leaks"]:
        one, two = leak["splits"]
        rows.append(
            [
                f"in both {one} and {two}",
                f"{leak['shared']} of the kind {leak['kind']}, {leak['clips']} "
                f"clips of {two}",
            ]
        )
    return rows


def teacher_name(facts):
    """Returns a text of a teacher: its preset, and the sum of its weights.

    Args:
        facts: dict of `preset` and `weights_sha256`.
    """
    return f"{facts['preset']} (sha256 {facts['weights_sha256'][:12]})"
