"""Charts of runs of training.

Each function returns a `matplotlib.figure.Figure`, and
`audio_tf.analysis.figures.save` writes it.
"""

import numpy as np

from audio_tf.analysis import palette
from audio_tf.analysis.figures import new_figure
from audio_tf.analysis.titles import set_title

# How the curve of a split is drawn.
TRAINING = {"color": palette.BLUE, "marker": "o", "linestyle": "--"}
VALIDATION = {"color": palette.VERMILLION, "marker": "s", "linestyle": "-"}
# Beyond so many epochs, markers would cover the curves.
MOST_MARKED = 40


def draw_learning_curves(
    history,
    figure_name,
    best_epoch=None,
    title="",
    training="training",
    meaning="",
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
        meaning: str, what the figure beside the loss is; its name if empty.
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(10.0, 4.5)
    panels = figure.subplots(1, 2)
    epochs = np.asarray(history["epoch"]) + 1
    for panel, name in zip(panels, ("loss", figure_name), strict=True):
        drawn = []
        for column, label, style in (
            (name, training, TRAINING),
            (f"val_{name}", "validation", VALIDATION),
        ):
            values = np.asarray(history.get(column, []), "float64")
            if not np.isfinite(values).any():
                continue
            if len(epochs) > MOST_MARKED:
                style = {**style, "marker": None}
            panel.plot(
                epochs,
                values,
                label=label,
                markersize=4,
                linewidth=1.6,
                **style,
            )
            drawn.append(values)
            if best_epoch is not None and column.startswith("val_"):
                mark_best(panel, epochs, values, best_epoch)
        if best_epoch is not None:
            panel.axvline(
                best_epoch + 1, color=palette.GREY, linewidth=1, linestyle=":"
            )
        finite = np.concatenate([*drawn, []])
        finite = finite[np.isfinite(finite)]
        if name == "loss" and finite.size and finite.min() > 0:
            if finite.max() > 10 * finite.min():
                panel.set_yscale("log", subs=[2, 5])
                panel.yaxis.set_major_formatter("{x:g}")
                panel.yaxis.set_minor_formatter("{x:g}")
        # Of one epoch there is one tick.
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        panel.set_xlabel("epoch", fontsize=10)
        label = name if name == "loss" else meaning or name
        panel.set_ylabel(label, fontsize=10)
        panel.set_title(name, fontsize=11)
        panel.tick_params(which="both", labelsize=9)
        panel.grid(alpha=0.3)
        if drawn:
            # Within the panel it would cover curves.
            panel.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, -0.16),
                ncols=3,
                fontsize=9,
                columnspacing=1.2,
            )
    set_title(figure, title, fontsize=11)
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
