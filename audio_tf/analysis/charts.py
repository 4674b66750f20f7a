"""Charts of runs of training, and of what they reach at what cost.

Each function returns a `matplotlib.figure.Figure`, and
`audio_tf.analysis.figures.save` writes it.
"""

import numpy as np

from audio_tf.analysis.figures import MARKERS, distinct_colours, new_figure
from audio_tf.terminal import printable

TRAINING_COLOUR, VALIDATION_COLOUR = "tab:blue", "tab:orange"
# What attentions cost, by the key of a row: the title of the panel, the label
# of its axis and the unit.
AXES = {
    "inference_ratio": (
        "inference",
        "time of inference, full attention = 1",
        1,
    ),
    "training_ratio": ("training", "time of training, full attention = 1", 1),
    "multiply_adds": (
        "multiplications",
        "multiplications of the attentions for one input (millions)",
        1e6,
    ),
    "paper_cost": (
        "theory",
        "Theoretical Time of arXiv 2006.05174 (millions of numbers formed)",
        1e6,
    ),
}


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


def draw_tradeoff(rows, baselines, title):
    """Draws what attentions reach against what they cost.

    There are panels for each causality, one for each of `AXES` that rows
    have. Names stand beside the panel, so that none covers another one, with
    the marks of their points and lines to them. A name has one mark in all
    panels.

    Args:
        rows: list of dicts with `attention`, `causal`, `figure`, `mean`, the
            ends `low` and `high` of its interval, which may be `None`, and
            keys of `AXES`, of which a row may lack some.
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
    shown = [
        (key, causal, [row for row in group if row.get(key) is not None])
        for causal, group in groups.items()
        for key in AXES
    ]
    shown = [each for each in shown if each[2]]
    columns = min(len(shown), 2)
    lines = -(-len(shown) // columns)
    height = max(0.21 * max(map(len, groups.values())) + 1.2, 3.6)
    figure = new_figure(7.5 * columns, height * lines + 0.5)
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    for panel, (key, causal, group) in zip(panels, shown, strict=False):
        what, label, unit = AXES[key]
        points = [{**row, "cost": row[key] / unit} for row in group]
        draw_points(panel, points, marks)
        panel.set_xlabel(label, fontsize=9)
        if causal is not None:
            what += f", {'causal' if causal == 'yes' else 'not causal'}"
        panel.set_title(what, fontsize=10)
        for row, style in zip(baselines, ("--", ":", "-."), strict=False):
            panel.axhline(
                row["mean"],
                color="grey",
                linewidth=1.0,
                linestyle=style,
                label=f"{row['attention']} {row['mean']:.3f}",
            )
        label_points(panel, points, marks)
    if baselines:
        # Within a panel it would cover points.
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, names, loc="outside lower center", ncols=3, fontsize=8
        )
    figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def draw_points(panel, rows, marks):
    """Draws points with their intervals.

    Args:
        panel: matplotlib `Axes`.
        rows: list of dicts, as `draw_tradeoff` takes them, with their `cost`.
        marks: dict by attention of a pair of a colour and a marker.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for row in rows:
        colour, marker = marks[row["attention"]]
        if row["low"] is not None:
            panel.plot(
                [row["cost"]] * 2,
                [row["low"], row["high"]],
                color=colour,
                linewidth=1.0,
                alpha=0.5,
            )
        panel.plot(row["cost"], row["mean"], **point_style(colour, marker))
    costs = [row["cost"] for row in rows]
    # What costs nothing has no logarithm.
    if max(costs) > 4 * min(costs) > 0:
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


def label_points(panel, rows, marks):
    """Writes the names of points to the right of their panel, one each line.

    Args:
        panel: matplotlib `Axes`, whose limits are settled here.
        rows: list of dicts, as `draw_tradeoff` takes them, with their `cost`.
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
            xy=(row["cost"], row["mean"]),
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
