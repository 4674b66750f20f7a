"""Drawings of what front ends have learned; see `filters`.

They are drawn after Figures 3 and 4 of "Audio Transformers" (arXiv
2105.00335). Of a trained model what is before and what is after training
stand side by side, or lie over each other where it is the same filter.
"""

import numpy as np

from audio_tf.analysis import filters, palette
from audio_tf.analysis.figures import new_figure
from audio_tf.analysis.titles import set_title
from audio_tf.layers.frontend import hz_from_mel, mel_from_hz

# Lighter than the other, dashed, and told apart by the colour-blind.
BEFORE = {"color": palette.ORANGE, "linestyle": "--", "linewidth": 1.6}
AFTER = {"color": palette.BLUE, "linestyle": "-", "linewidth": 1.6}
MEL = {"color": palette.BLACK, "linestyle": ":", "linewidth": 1.8}
# Of the bandwidths, by the line of a state.
MARKERS = {"--": "s", "-": "o"}
# dB below the peak of a filter that are drawn.
RANGE_DB = 30.0
# Columns and rows of a panel of responses, fewer than it has pixels.
MOST_FILTERS, MOST_FREQUENCIES = 512, 400
EXAMPLE_COLUMNS = 4


def styles(states):
    """Returns how each state is drawn: the last one, or only one, as after."""
    return [BEFORE, AFTER][-len(states) :]


def add_legend(figure, handles, names, ncols=2, **options):
    """Adds a legend below the panels, whose names are drawn as they are.

    Args:
        figure: matplotlib `Figure`.
        handles: list of what is explained.
        names: list of str; a state may have that of its folder.
        ncols: int, columns.
        **options: further arguments of `Figure.legend`.
    """
    legend = figure.legend(
        handles,
        names,
        loc="outside lower center",
        ncols=ncols,
        fontsize=9,
        **options,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def set_frequencies(panel, sample_rate_hz, in_mel):
    """Sets the vertical axis of a panel to frequencies in kHz.

    Args:
        panel: matplotlib `Axes`.
        sample_rate_hz: int, the rate of the waveform.
        in_mel: bool, whether to space the axis evenly in mel, as bands are.
    """
    if in_mel:
        panel.set_yscale(
            "function",
            functions=(
                lambda khz: mel_from_hz(1000.0 * np.maximum(khz, 0.0)),
                lambda mel: hz_from_mel(mel) / 1000.0,
            ),
        )
        ticks = [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
        top_khz = sample_rate_hz / 2000.0
        panel.set_yticks([each for each in ticks if each <= top_khz])
        panel.yaxis.set_major_formatter("{x:g}")
    panel.set_ylim(0.0, sample_rate_hz / 2000.0)


def draw_responses(states, sample_rate_hz, of_bands, title):
    """Draws the responses of sorted filters, and their centres and widths.

    Args:
        states: dict by name of `filters.Responses` of a model, before and
            after training, or of one state alone.
        sample_rate_hz: int, the rate of the waveform.
        of_bands: bool, whether the filters are of mel bands, not of samples.
        title: str, the title of the figure.

    Returns:
        matplotlib `Figure`.
    """
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.ticker import LogFormatter

    rows, columns = {1: (1, 3), 2: (2, 2)}[len(states)]
    figure = new_figure(5.2 * columns + 0.8, 4.0 * rows + 0.8)
    panels = figure.subplots(rows, columns).flatten()
    top_khz = sample_rate_hz / 2000.0
    for panel, (name, found) in zip(panels, states.items(), strict=False):
        image = draw_sorted(panel, found, name)
        draw_mel(panel, len(found.order), sample_rate_hz, "white")
        set_frequencies(panel, sample_rate_hz, of_bands)
        panel.set_ylabel("frequency (kHz)", fontsize=9)
    unit = "root mean square weight" if of_bands else "magnitude response"
    bar = figure.colorbar(
        image, ax=list(panels[: len(states)]), fraction=0.04, pad=0.02
    )
    bar.set_label(f"{unit} (dB below its filter's peak)", fontsize=9)
    bar.ax.tick_params(labelsize=8)

    centres, widths = panels[-2:]
    for (name, found), style in zip(
        states.items(), styles(states), strict=True
    ):
        count = len(found.order)
        places = np.arange(1, count + 1) / count
        sorted_khz = found.centres_hz[found.order] / 1000.0
        centres.plot(places, sorted_khz, label=name, **style)
        widths.plot(
            found.centres_hz / 1000.0,
            found.bandwidths_hz,
            linestyle="none",
            marker=MARKERS[style["linestyle"]],
            markersize=4,
            markerfacecolor="none",
            markeredgecolor=style["color"],
            label=name,
        )
    spaced = filters.mel_spaced(256, sample_rate_hz) / 1000.0
    centres.plot(
        np.arange(1, 257) / 256, spaced, label="evenly spaced in mel", **MEL
    )
    centres.set_xlabel("share of the filters", fontsize=9)
    centres.set_ylabel("centre frequency (kHz)", fontsize=9)
    set_frequencies(centres, sample_rate_hz, of_bands)
    centres.set_title("sorted centre frequencies", fontsize=10)
    widths.set_xlabel("centre frequency (kHz)", fontsize=9)
    widths.set_ylabel("bandwidth at -3 dB (Hz)", fontsize=9)
    widths.set_yscale("log")
    widths.yaxis.set_major_formatter("{x:g}")
    widths.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    widths.set_xlim(0.0, top_khz)
    widths.set_title("bandwidths", fontsize=10)
    for panel in panels:
        panel.tick_params(which="both", labelsize=8)
    for panel in (centres, widths):
        panel.grid(alpha=0.3)
    lines, names = centres.get_legend_handles_labels()
    points, _ = widths.get_legend_handles_labels()
    # A state's line and its mark lie over each other.
    handles = [*zip(lines, points, strict=False), *lines[len(points) :]]
    add_legend(
        figure,
        handles,
        names,
        ncols=3,
        handler_map={tuple: HandlerTuple(ndivide=1)},
    )
    set_title(figure, title, fontsize=11)
    return figure


def draw_sorted(panel, found, name):
    """Draws the responses of all filters as an image, sorted by centre.

    Args:
        panel: matplotlib `Axes`.
        found: `filters.Responses`.
        name: str, the title of the panel.

    Returns:
        The matplotlib image, which the bar of colours is of.
    """
    magnitudes = found.magnitudes[found.order]
    peaks = np.maximum(magnitudes.max(axis=1, keepdims=True), 1e-30)
    count, frequencies = magnitudes.shape
    rows = np.unique(np.linspace(0, count - 1, MOST_FILTERS).astype(int))
    columns = np.unique(
        np.linspace(0, frequencies - 1, MOST_FREQUENCIES).astype(int)
    )
    shares = (magnitudes / peaks)[np.ix_(rows, columns)]
    image = panel.pcolormesh(
        rows + 1,
        found.frequencies_hz[columns] / 1000.0,
        20.0 * np.log10(np.maximum(shares, 1e-6)).T,
        vmin=-RANGE_DB,
        vmax=0.0,
        cmap=palette.SEQUENTIAL,
        shading="nearest",
        rasterized=True,
    )
    panel.set_xlabel("filter, sorted by centre frequency", fontsize=9)
    panel.set_title(name, fontsize=10, parse_math=False)
    return image


def draw_mel(panel, count, sample_rate_hz, colour):
    """Lays the centres of filters that are evenly spaced in mel over a panel.

    Args:
        panel: matplotlib `Axes` with filters, counted from 1, to the right.
        count: int, how many filters there are.
        sample_rate_hz: int, the rate of the waveform.
        colour: the colour of the line.
    """
    from matplotlib.patheffects import Normal, Stroke

    (line,) = panel.plot(
        np.arange(1, count + 1),
        filters.mel_spaced(count, sample_rate_hz) / 1000.0,
        **{**MEL, "color": colour, "linewidth": 2.4},
    )
    line.set_path_effects([Stroke(linewidth=4.4, foreground="black"), Normal()])


def draw_examples(states, chosen, responses, sample_rate_hz, title):
    """Draws filters over time: of samples as curves, of bands as images.

    Args:
        states: dict by name of `layers.filters.Filters`, before and after
            training if both have the same filters in the same places, else
            after alone.
        chosen: list of ints, indices of the filters.
        responses: `filters.Responses` of the last state.
        sample_rate_hz: int, the rate of the waveform.
        title: str, the title of the figure.

    Returns:
        matplotlib `Figure`.
    """
    of_bands = next(iter(states.values())).bands_hz is not None
    draw = draw_band_weights if of_bands else draw_sample_weights
    across = len(states) if of_bands else 1
    columns = min(EXAMPLE_COLUMNS, len(chosen)) * across
    rows = -(-len(chosen) * across // columns)
    figure = new_figure(
        (2.1 if across > 1 else 3.2) * columns + 1.0, 2.5 * rows + 1.1
    )
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.flat[len(chosen) * across :]:
        panel.set_axis_off()
    for place, index in enumerate(chosen):
        own = panels.flat[place * across : (place + 1) * across]
        centre = responses.centres_hz[index]
        draw(own, states, index, sample_rate_hz)
        own[0].set_title(f"filter {index + 1}, {centre:.0f} Hz", fontsize=9)
        if across > 1:
            own[0].set_title(f"filter {index + 1}, {centre:.0f} Hz\nbefore")
            own[1].set_title("\nafter")
        for panel in own:
            panel.tick_params(labelsize=7)
            panel.title.set_fontsize(9)
            if of_bands:
                set_frequencies(panel, sample_rate_hz, True)
    for panel in panels[-1]:
        panel.set_xlabel("time (ms)", fontsize=9)
    if of_bands:
        figure.supylabel("frequency (kHz)", fontsize=9)
        bar = figure.colorbar(
            panels.flat[0].collections[0], ax=panels, fraction=0.02, pad=0.01
        )
        bar.set_ticks([-1.0, 0.0, 1.0], labels=["-1", "0", "1"], fontsize=8)
        bar.set_label("weight / largest weight of the filter", fontsize=9)
    else:
        figure.supylabel("weight of a sample", fontsize=9)
        handles, names = panels.flat[0].get_legend_handles_labels()
        add_legend(figure, handles, names)
    set_title(figure, title, fontsize=11)
    return figure


def draw_sample_weights(panels, states, index, sample_rate_hz):
    """Draws a filter of samples as curves, the states over each other."""
    for (name, found), style in zip(
        states.items(), styles(states), strict=True
    ):
        weights = found.weights[index, :, 0]
        times = np.arange(len(weights)) * found.hop_size / sample_rate_hz
        panels[0].plot(
            1000.0 * times, weights, label=name, **{**style, "linewidth": 1.1}
        )
    panels[0].grid(alpha=0.3)


def draw_band_weights(panels, states, index, sample_rate_hz):
    """Draws a filter of bands as images, the states beside each other."""
    largest = max(
        np.abs(found.weights[index]).max() for found in states.values()
    )
    for panel, found in zip(panels, states.values(), strict=True):
        weights = found.weights[index]
        times = np.arange(len(weights)) * found.hop_size / sample_rate_hz
        panel.pcolormesh(
            1000.0 * times,
            found.bands_hz / 1000.0,
            weights.T / max(largest, 1e-30),
            vmin=-1.0,
            vmax=1.0,
            cmap=palette.DIVERGING,
            shading="nearest",
            rasterized=True,
        )
        panel.set_xticks(1000.0 * times[:: max(1, len(times) // 4)])


def draw_curves(states, bands_hz, title):
    """Draws what is learned for each band, over the frequency of the bands.

    Args:
        states: dict by name of dicts by name of float arrays `(bands,)`.
        bands_hz: float array `(bands,)`, their middles in Hz.
        title: str, the title of the figure.

    Returns:
        matplotlib `Figure`.
    """
    curves = list(next(iter(states.values())))
    figure = new_figure(4.4 * len(curves), 4.0)
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for panel, curve in zip(panels, curves, strict=True):
        for (name, found), style in zip(
            states.items(), styles(states), strict=True
        ):
            panel.plot(bands_hz / 1000.0, found[curve], label=name, **style)
        panel.set_title(curve.split(" (")[0], fontsize=10)
        panel.set_ylabel(curve, fontsize=9)
        panel.set_xlabel("middle of the mel band (kHz)", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.grid(alpha=0.3)
    handles, names = panels[0].get_legend_handles_labels()
    add_legend(figure, handles, names)
    set_title(figure, title, fontsize=11)
    return figure
