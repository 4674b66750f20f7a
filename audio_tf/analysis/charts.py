"""Charts of runs of training, of what they reach, and of what it costs.

Each function returns a `matplotlib.figure.Figure`, and
`audio_tf.analysis.figures.save` writes it.
"""

import numpy as np

from audio_tf.analysis.figures import MARKERS, distinct_colours, new_figure
from audio_tf.terminal import printable

TRAINING_COLOUR, VALIDATION_COLOUR = "tab:blue", "tab:orange"
# Characters of a label, which must leave room for what it is a label of.
LONGEST_LABEL = 24
# Classes of a confusion matrix up to which its cells hold their counts.
MOST_COUNTED = 15
# Classes of a confusion matrix, and of a column of bars.
MOST_CONFUSED = 60
MOST_BARS = 50


def draw_learning_curves(
    history, figure_name, best_epoch=None, title="", training="training"
):
    """Draws loss and a figure of both splits over the epochs.

    Args:
        history: dict by column of `history.csv` of floats, one an epoch, NaN
            for an empty cell; `epoch` is counted from 0.
        figure_name: str, the figure beside the loss; the validation's columns
            have `val_` before the name.
        best_epoch: int, the epoch to mark, counted from 0, or `None`.
        title: str, the title of the figure.
        training: str, what the curves of training are called.
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(10.0, 4.2)
    panels = figure.subplots(1, 2)
    epochs = np.asarray(history["epoch"]) + 1
    for panel, name in zip(panels, ("loss", figure_name), strict=True):
        drawn = []
        for column, label, colour in (
            (name, training, TRAINING_COLOUR),
            (f"val_{name}", "validation", VALIDATION_COLOUR),
        ):
            values = np.asarray(history.get(column, []), "float64")
            if not np.isfinite(values).any():
                continue
            # Dots show a run of one epoch, and are too many in a long one.
            marker = "o" if len(epochs) <= 40 else None
            panel.plot(
                epochs,
                values,
                color=colour,
                label=label,
                marker=marker,
                markersize=3,
                linewidth=1.4,
            )
            drawn.append(values)
            if best_epoch is not None and column.startswith("val_"):
                mark_best(panel, epochs, values, best_epoch)
        if best_epoch is not None:
            panel.axvline(
                best_epoch + 1, color="grey", linewidth=0.8, linestyle=":"
            )
        finite = np.concatenate([*drawn, []])
        finite = finite[np.isfinite(finite)]
        if name == "loss" and finite.size and finite.min() > 0:
            if finite.max() > 10 * finite.min():
                panel.set_yscale("log")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_xlabel("epoch", fontsize=9)
        panel.set_title(name, fontsize=10)
        panel.tick_params(labelsize=8)
        panel.grid(alpha=0.3)
        if drawn:
            panel.legend(fontsize=8)
    figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def mark_best(panel, epochs, values, best_epoch):
    """Marks the best epoch of a curve with a ring, and writes its figure.

    Args:
        panel: matplotlib `Axes`.
        epochs: int array `(epochs,)`, counted from 1.
        values: float array `(epochs,)`.
        best_epoch: int, counted from 0.
    """
    (places,) = np.nonzero(epochs == best_epoch + 1)
    for place in places:
        panel.plot(
            epochs[place],
            values[place],
            marker="o",
            markersize=9,
            markerfacecolor="none",
            markeredgecolor="black",
            linestyle="none",
            label=f"best epoch, {best_epoch + 1}: {values[place]:.4g}",
        )


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
        cmap="Blues",
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
    panel.set_title(title, fontsize=10, parse_math=False)
    return figure


def draw_classes(figures, labels, clips, title):
    """Draws figures of each class as bars and dots, the best class first.

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
            color=TRAINING_COLOUR,
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
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(axis="x", alpha=0.3)
        mean = np.nanmean(bars) if np.isfinite(bars).any() else np.nan
        if np.isfinite(mean):
            panel.axvline(
                mean,
                color=VALIDATION_COLOUR,
                linewidth=1.2,
                linestyle="--",
                label=f"mean {bar_name} {mean:.3f}",
            )
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=3, fontsize=8
    )
    figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def draw_tradeoff(rows, baselines, title):
    """Draws what attentions reach against the time that they take.

    There is a line of panels for each causality, of inference to the left and
    of training to the right. Names stand beside the panel, so that none
    covers another one, with the marks of their points and lines to them. A
    name has one mark in all panels.

    Args:
        rows: list of dicts with `attention`, `causal`, `figure`, `mean`, the
            ends `low` and `high` of its interval, which may be `None`, and
            `inference_ratio` and `training_ratio`.
        baselines: list of dicts with `attention` and `mean`, drawn as lines.
        title: str, the title of the figure.
    """
    groups, marks = {}, {}
    names = list(dict.fromkeys(row["attention"] for row in rows))
    colours = distinct_colours(len(names))
    for number, name in enumerate(names):
        marks[name] = (colours[number], MARKERS[number % len(MARKERS)])
    for row in rows:
        groups.setdefault(row["causal"], []).append(row)
    height = max(0.21 * max(map(len, groups.values())) + 1.2, 3.6)
    figure = new_figure(15.0, height * len(groups) + 0.5)
    panels = figure.subplots(len(groups), 2, squeeze=False)
    for line, (causal, group) in zip(panels, groups.items(), strict=True):
        for panel, what in zip(line, ("inference", "training"), strict=True):
            draw_points(panel, group, f"{what}_ratio", marks)
            panel.set_xlabel(f"time of {what}, full attention = 1", fontsize=9)
            panel.set_title(
                f"{what}, {'causal' if causal == 'yes' else 'not causal'}",
                fontsize=10,
            )
            for row, style in zip(baselines, ("--", ":", "-."), strict=False):
                panel.axhline(
                    row["mean"],
                    color="grey",
                    linewidth=1.0,
                    linestyle=style,
                    label=f"{row['attention']} {row['mean']:.3f}",
                )
            if baselines:
                panel.legend(fontsize=8, loc="best")
            label_points(panel, group, f"{what}_ratio", marks)
    figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def draw_points(panel, rows, time, marks):
    """Draws points with their intervals.

    Args:
        panel: matplotlib `Axes`.
        rows: list of dicts, as `draw_tradeoff` takes them.
        time: str, the key of the time.
        marks: dict by attention of a pair of a colour and a marker.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for row in rows:
        colour, marker = marks[row["attention"]]
        if row["low"] is not None:
            panel.plot(
                [row[time]] * 2,
                [row["low"], row["high"]],
                color=colour,
                linewidth=1.0,
                alpha=0.5,
            )
        panel.plot(row[time], row["mean"], **point_style(colour, marker))
    times = [row[time] for row in rows]
    if max(times) > 4 * min(times):
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter(FuncFormatter("{:g}".format))
    else:
        panel.xaxis.set_major_locator(MaxNLocator(6))
    panel.margins(x=0.08, y=0.06)
    panel.set_ylabel(rows[0]["figure"], fontsize=9)
    panel.tick_params(labelsize=8)
    panel.grid(alpha=0.3)


def point_style(colour, marker):
    """Returns a dict of matplotlib's arguments for a point."""
    return {
        "color": colour,
        "marker": marker,
        "markersize": 6.5,
        "markeredgecolor": "black",
        "markeredgewidth": 0.4,
        "linestyle": "none",
    }


def label_points(panel, rows, time, marks):
    """Writes the names of points to the right of their panel, one each line.

    Args:
        panel: matplotlib `Axes`, whose limits are settled here.
        rows: list of dicts, as `draw_tradeoff` takes them.
        time: str, the key of the time.
        marks: dict by attention of a pair of a colour and a marker.
    """
    low, high = panel.get_ylim()
    panel.set_ylim(low, high)
    rows = sorted(rows, key=lambda row: row["mean"])
    places = [(row["mean"] - low) / (high - low) for row in rows]
    for row, place in zip(rows, spread(places), strict=True):
        colour, marker = marks[row["attention"]]
        panel.plot(
            1.05,
            place,
            **point_style(colour, marker),
            transform=panel.transAxes,
            clip_on=False,
        )
        panel.annotate(
            "",
            xy=(row[time], row["mean"]),
            xytext=(1.05, place),
            textcoords="axes fraction",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.7,
                "shrinkA": 4,
                "shrinkB": 4,
            },
        )
        panel.text(
            1.07,
            place,
            f"{row['mean']:.3f}  {printable(row['attention'])}",
            transform=panel.transAxes,
            fontsize=8,
            va="center",
            weight="bold" if row["attention"] == "full" else "normal",
            parse_math=False,
        )


def spread(places):
    """Moves places on a line apart, each as little as may be.

    Args:
        places: list of floats in [0, 1], ascending.

    Returns:
        Array of floats in [0, 1] in the same order; neighbours are at least
        as far apart as even ones would be, or 1/16.
    """
    from sklearn.isotonic import isotonic_regression

    gap = min(1.0 / max(len(places) - 1, 1), 1 / 16)
    room = gap * np.arange(len(places))
    # Places less their room must only not descend.
    moved = isotonic_regression(np.asarray(places) - room)
    return np.clip(moved, 0.0, 1.0 - room[-1]) + room
