"""Charts of classes: which is taken for which, and the figures of each.

Each function returns a `matplotlib.figure.Figure`, and
`audio_tf.analysis.figures.save` writes it.
"""

import numpy as np

from audio_tf.analysis import palette
from audio_tf.analysis.figures import new_figure
from audio_tf.analysis.titles import set_title
from audio_tf.terminal import printable

# Characters of a label, which must leave room for what it is a label of.
LONGEST_LABEL = 24
# Classes of a confusion matrix up to which its cells hold their counts.
MOST_COUNTED = 15
# Classes of a confusion matrix, and of a column of bars.
MOST_CONFUSED = 60
MOST_BARS = 50
# Classes that have bars; a picture of thousands is wider than may be written.
MOST_CLASSES = 600


def short(label):
    """Returns a label on one line that is not too long, fit to be drawn."""
    return printable(label, LONGEST_LABEL)


def draw_confusion(counts, labels, title):
    """Draws which class each class is taken for, as shares of its clips.

    Of many classes, the ones with most errors are drawn.

    Args:
        counts: int array `(classes, classes)`, `counts[true, predicted]`.
        labels: list of str, the names of the classes.
        title: str, the title of the figure.
    """
    from matplotlib.colors import PowerNorm

    counts = np.asarray(counts)
    clips = counts.sum(axis=1)
    kept = np.arange(len(counts))
    if len(counts) > MOST_CONFUSED:
        diagonal = counts.diagonal()
        wrong = clips + counts.sum(axis=0) - 2 * diagonal
        kept = np.sort(np.argsort(-wrong, kind="stable")[:MOST_CONFUSED])
        title += (
            f"\nthe {MOST_CONFUSED} of {len(counts)} classes with most errors"
        )
    shares = (counts / np.maximum(clips, 1)[:, None])[np.ix_(kept, kept)]
    size, few = len(kept), len(kept) <= MOST_COUNTED
    cell = 0.5 if few else 0.21
    font = 9 if few else 7.5
    names = [short(labels[row]) for row in kept]
    room = 0.065 * font / 7.5 * max(map(len, names))
    side = max(cell * size, 3.0)
    figure = new_figure(side + room + 2.4, side + room + 1.4)
    panel = figure.subplots()
    image = panel.imshow(
        shares,
        # The square root shows the errors of classes that are mostly right.
        norm=PowerNorm(0.5, 0.0, 1.0),
        cmap=palette.COUNTS,
        interpolation="nearest",
        # Cells are nearly square by the size of the figure; the layout of
        # panels that must be square cuts the outer labels off.
        aspect="auto",
    )
    ticks = np.arange(size)
    panel.set_xticks(ticks, names, rotation=90, fontsize=font, parse_math=False)
    panel.set_yticks(
        ticks,
        [f"{name} ({clips[row]})" for name, row in zip(names, kept)],
        fontsize=font,
        parse_math=False,
    )
    panel.set_xticks(ticks[1:] - 0.5, minor=True)
    panel.set_yticks(ticks[1:] - 0.5, minor=True)
    panel.grid(which="minor", color="0.88", linewidth=0.5)
    panel.tick_params(which="minor", length=0)
    panel.set_xlabel("predicted", fontsize=10)
    panel.set_ylabel("true (clips)", fontsize=10)
    if few:
        for (row, column), share in np.ndenumerate(shares):
            count = counts[kept[row], kept[column]]
            if count:
                panel.text(
                    column,
                    row,
                    str(count),
                    ha="center",
                    va="center",
                    fontsize=9,
                    color="white" if share > 0.35 else "black",
                )
    bar = figure.colorbar(image, ax=panel, fraction=0.03, pad=0.02)
    bar.set_ticks([0.0, 0.05, 0.25, 0.5, 1.0])
    bar.ax.tick_params(labelsize=8)
    bar.set_label("share of the clips of the true class", fontsize=8)
    set_title(figure, title)
    return figure


def draw_classes(figures, labels, clips, title):
    """Draws figures of each class as bars and dots, the best class first.

    Of more than `MOST_CLASSES`, the best and the worst are drawn.

    Args:
        figures: dict by name of a float array `(classes,)`; the first is drawn
            as bars and sorts the classes, a second one as dots. NaN is
            undefined, and such classes come last.
        labels: list of str, the names of the classes.
        clips: int array `(classes,)`, clips with each label.
        title: str, the title of the figure.
    """
    (bar_name, bars), *dots = figures.items()
    order = np.argsort(-np.nan_to_num(bars, nan=-1.0), kind="stable")
    if len(order) > MOST_CLASSES:
        title += (
            f"\nthe best and the worst {MOST_CLASSES // 2} of "
            f"{len(order)} classes"
        )
        order = best_and_worst(order, np.count_nonzero(np.isfinite(bars)))
    columns = -(-len(order) // MOST_BARS)
    rows = -(-len(order) // columns)
    figure = new_figure(5.2 * columns, 0.19 * rows + 1.6)
    panels = figure.subplots(1, columns, squeeze=False)[0]
    for panel, start in zip(panels, range(0, len(order), rows), strict=False):
        shown = order[start : start + rows]
        places = np.arange(len(shown))
        panel.barh(
            places,
            np.nan_to_num(bars[shown]),
            height=0.72,
            color=palette.BLUE,
            alpha=0.75,
            label=bar_name,
        )
        for name, values in dots:
            panel.plot(
                values[shown],
                places,
                "D",
                markersize=3.5,
                color="black",
                label=name,
                # A dot at 1 stands on the frame.
                clip_on=False,
                zorder=3,
            )
        panel.set_yticks(
            places,
            [f"{short(labels[each])} ({clips[each]})" for each in shown],
            fontsize=7.5,
            parse_math=False,
        )
        # Columns of few and of many bars have bars of one height.
        panel.set_ylim(rows - 0.4, -0.6)
        panel.set_xlim(0.0, 1.0)
        panel.set_xlabel(" and ".join(figures), fontsize=9)
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(axis="x", alpha=0.3)
        mean = np.nanmean(bars) if np.isfinite(bars).any() else np.nan
        if np.isfinite(mean):
            panel.axvline(
                mean,
                color=palette.VERMILLION,
                linewidth=1.2,
                linestyle="--",
                label=f"mean {bar_name} {mean:.3f}",
            )
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=3, fontsize=8
    )
    set_title(figure, title)
    return figure


def best_and_worst(order, known):
    """Selects classes from both ends of an order.

    Args:
        order: int array `(classes,)`, more than `MOST_CLASSES` of them, those
            whose figure is undefined last.
        known: int, how many have a figure.

    Returns:
        Int array of up to `MOST_CLASSES` of them, in the same order.
    """
    half = MOST_CLASSES // 2
    worst = np.arange(max(known - half, 0), known)
    return order[np.union1d(np.arange(half), worst)]
