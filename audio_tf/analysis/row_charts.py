"""Charts with a row for each attention, which panels beside each other share.

Names stand once, at the left, so that twenty of them are read without a legend
and no point covers another one. Each function returns a
`matplotlib.figure.Figure`, and `audio_tf.analysis.figures.save` writes it.
"""

from audio_tf.analysis import palette
from audio_tf.analysis.figures import new_figure
from audio_tf.analysis.titles import set_title
from audio_tf.terminal import printable

# What attentions cost, by the key of a row: the title of the panel, the label
# of its axis and the unit.
AXES = {
    "inference_ratio": (
        "inference",
        "time of inference\n(full attention = 1)",
        1,
    ),
    "training_ratio": (
        "training",
        "time of training\n(full attention = 1)",
        1,
    ),
    "multiply_adds": (
        "multiplications",
        "multiply-adds, attentions\nalone (millions)",
        1e6,
    ),
    "paper_cost": (
        "theory",
        "Theoretical Time of arXiv\n2006.05174 (thousands)",
        1e3,
    ),
}
BASELINE_LINES = ("--", ":", "-.")
ROW_INCHES, LANE_INCHES = 0.21, 0.085
# A larger range than this is drawn by its logarithm.
WIDEST_RANGE = 6
TICKS = [step * 10.0**power for power in range(-3, 10) for step in (1, 2, 5)]


def draw_tradeoff(rows, baselines, title):
    """Draws what attentions reach, and beside it what they cost.

    There is a row of panels for each causality. Its first panel has the
    figure, the best attention on top, and there is one more for each of
    `AXES` that a row has. A filled mark is of an attention that none surpasses
    at less cost.

    Args:
        rows: list of dicts with `attention`, `causal`, `figure`, `mean`, the
            ends `low` and `high` of its interval, and keys of `AXES`; a row
            may lack its interval and some of these, or have `None` there.
        baselines: list of dicts with `attention` and `mean`, drawn as lines.
        title: str, the title of the figure.
    """
    groups = {}
    for row in sorted(rows, key=lambda row: -row["mean"]):
        groups.setdefault(row["causal"], []).append(row)
    costs = [
        key for key in AXES if any(row.get(key) is not None for row in rows)
    ]
    sizes = [len(group) for group in groups.values()]
    figure = new_figure(
        4.6 + 2.1 * len(costs), ROW_INCHES * sum(sizes) + 1.1 * len(sizes) + 1.3
    )
    panels = figure.subplots(
        len(groups),
        1 + len(costs),
        squeeze=False,
        height_ratios=[size + 1 for size in sizes],
        width_ratios=[1.3] + [1.0] * len(costs),
    )
    for line, (causal, group) in zip(panels, groups.items(), strict=True):
        kind = {"yes": ", causal", "no": ", not causal"}.get(causal, "")
        draw_reached(line[0], group, baselines)
        line[0].set_title(group[0]["figure"] + kind, fontsize=10)
        for panel, key in zip(line[1:], costs, strict=True):
            what, label, unit = AXES[key]
            draw_cost(panel, group, key, unit)
            panel.set_xlabel(label, fontsize=9)
            panel.set_title(what, fontsize=10)
    handles = {}
    for panel in panels.flat:
        found = zip(*panel.get_legend_handles_labels(), strict=True)
        handles.update({name: handle for handle, name in found})
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=3,
        fontsize=9,
    )
    set_title(figure, title, fontsize=11)
    return figure


def draw_reached(panel, rows, baselines):
    """Draws the figures of attentions with their intervals, and their names.

    Args:
        panel: matplotlib `Axes`.
        rows: list of dicts, as `draw_tradeoff` takes them, the best first.
        baselines: list of dicts, as `draw_tradeoff` takes them.
    """
    panel.plot(
        [row["mean"] for row in rows],
        range(len(rows)),
        "o",
        color=palette.BLUE,
        markersize=5.5,
        label="mean over the seeds",
    )
    known = [row for row in rows if row.get("low") is not None]
    panel.hlines(
        [rows.index(row) for row in known],
        [row["low"] for row in known],
        [row["high"] for row in known],
        color=palette.SKY,
        linewidth=2.2,
        zorder=1.5,
        label="its 95 % interval",
    )
    for row, style in zip(baselines, BASELINE_LINES, strict=False):
        panel.axvline(
            row["mean"],
            color=palette.VERMILLION,
            linewidth=1.3,
            linestyle=style,
            label=f"{row['attention']} {row['mean']:.3f}",
        )
    set_rows(panel, len(rows), 1)
    panel.set_yticks(
        range(len(rows)),
        [f"{printable(row['attention'])}  {row['mean']:.3f}" for row in rows],
        parse_math=False,
    )
    for row, label in zip(rows, panel.get_yticklabels(), strict=True):
        if row["attention"] == "full":
            label.set_weight("bold")
    panel.set_xlabel(rows[0]["figure"], fontsize=9)


def draw_cost(panel, rows, key, unit):
    """Draws what attentions cost, and marks those that none surpasses.

    Args:
        panel: matplotlib `Axes`.
        rows: list of dicts, as `draw_tradeoff` takes them, the best first.
        key: str, the key of the cost.
        unit: float, what one unit of the axis is.
    """
    known = [
        (place, row[key] / unit)
        for place, row in enumerate(rows)
        if row.get(key) is not None
    ]
    front, others = [], []
    for place, cost in known:
        # Of equal means, which few clips give, none surpasses the other.
        surpassed = any(
            least <= cost and rows[better]["mean"] > rows[place]["mean"]
            for better, least in known
        )
        (others if surpassed else front).append((place, cost))
    for points, fill, label in (
        (front, palette.GREEN, "none is better at less cost"),
        (others, "none", "another is better at no more cost"),
    ):
        if points:
            places, costs = zip(*points, strict=True)
            panel.plot(
                costs,
                places,
                "D",
                markersize=5.5,
                markerfacecolor=fill,
                markeredgecolor=palette.GREEN,
                markeredgewidth=1.2,
                label=label,
            )
    for place, cost in known:
        if rows[place]["attention"] == "full":
            draw_full(panel, cost)
    set_rows(panel, len(rows), 1)
    set_costs(panel, [cost for _, cost in known])


def draw_full(panel, place):
    """Draws the line of full attention, which the others are held against."""
    panel.axvline(
        place,
        color=palette.GREY,
        linewidth=1.0,
        linestyle="--",
        label="full attention",
        zorder=1,
    )


def set_rows(panel, count, lanes):
    """Sets the vertical axis of a panel to rows, the first one on top.

    Args:
        panel: matplotlib `Axes`.
        count: int, how many rows there are; they are at 0, 1, ...
        lanes: int, points of a row above each other.
    """
    # Every other row is shaded, to be followed from panel to panel.
    for place in range(0, count, 2):
        panel.axhspan(place - 0.5, place + 0.5, color="0.94", zorder=0)
    panel.set_ylim(count - 0.5, -0.5)
    panel.set_yticks([])
    panel.tick_params(labelsize=9 if lanes == 1 else 10, length=2)
    panel.grid(axis="x", alpha=0.4)
    panel.set_axisbelow(True)


def set_costs(panel, costs):
    """Sets the horizontal axis of a panel to costs, by logarithm if need be.

    Args:
        panel: matplotlib `Axes`.
        costs: list of floats that are drawn.
    """
    from matplotlib.ticker import MaxNLocator

    panel.margins(x=0.08)
    if costs and max(costs) > WIDEST_RANGE * min(costs) > 0:
        panel.set_xscale("log")
        low, high = panel.get_xlim()
        ticks = [tick for tick in TICKS if low <= tick <= high]
        # Labels of more would touch.
        ticks = ticks[:: -(-len(ticks) // 5)]
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.set_xticks([], minor=True)
    else:
        panel.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))


def draw_lengths(measures, names, title):
    """Draws ratios to full attention at several lengths.

    A row has a point for each length, the shortest on top.

    Args:
        measures: dict by title of a panel of dicts by pair of an attention
            and a length, in frames, of a ratio. A pair may be missing.
        names: list of str, the attentions in their order.
        title: str, the title of the figure.
    """
    lengths = sorted({length for of in measures.values() for _, length in of})
    rows = ROW_INCHES / 2 + LANE_INCHES * len(lengths)
    figure = new_figure(
        2.9 + 2.1 * len(measures), rows * max(len(names), 4) + 1.7
    )
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    marks = palette.ordered(len(lengths))
    for panel, (what, ratios) in zip(panels, measures.items(), strict=True):
        draw_full(panel, 1.0)
        for lane, (length, (colour, marker)) in enumerate(
            zip(lengths, marks, strict=True)
        ):
            points = [
                (ratios[name, length], place)
                for place, name in enumerate(names)
                if (name, length) in ratios
            ]
            shift = 0.76 * ((lane + 0.5) / len(lengths) - 0.5)
            panel.plot(
                [ratio for ratio, _ in points],
                [place + shift for _, place in points],
                linestyle="none",
                color=colour,
                marker=marker,
                markersize=4,
                label=f"{length} frames",
            )
        set_rows(panel, len(names), len(lengths))
        set_costs(panel, list(ratios.values()))
        panel.set_title(what, fontsize=11)
        panel.set_xlabel("ratio to full attention", fontsize=10)
    panels[0].set_yticks(range(len(names)), names, parse_math=False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=6, fontsize=10
    )
    set_title(figure, title, fontsize=12)
    return figure
