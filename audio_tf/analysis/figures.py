"""Drawings of attention maps, of kinds of heads and of hidden states.

Each function returns a `matplotlib.figure.Figure`, and `save` writes it.

Maps are drawn after the figures of arXiv 2006.05174. In every map the query
runs down and the key to the right, both in frames. Colours go from zero to the
full scale of each panel, by the square root of the weight, since the weights
of a stripe are small beside the weights of a diagonal.
"""

import pathlib

import numpy as np

from audio_tf import files
from audio_tf.analysis import fonts, palette
from audio_tf.analysis.kinds import KINDS
from audio_tf.analysis.titles import set_title

# Columns of a figure of heads; more would be too small on a page.
COLUMNS = 6
# Points along a side of a panel. There are fewer than pixels, or the thin
# diagonal of a large map would vanish.
PANEL_SIZE = 160
SMALL_PANEL_SIZE = 100


def new_figure(width, height):
    """Creates an empty figure.

    Args:
        width: float, inches.
        height: float, inches.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib: pip install 'audio_tf[analysis]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def save(figure, path):
    """Writes a figure, whole or not at all.

    Args:
        figure: the figure.
        path: the file, whose suffix names the format.
    """
    with files.whole_file(path) as new, fonts.boxes_said_once():
        figure.savefig(new, dpi=120)


def pixels(figure):
    """Draws a figure into memory.

    Args:
        figure: the figure.

    Returns:
        Uint8 array `(height, width, 3)`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def save_anew(drawn, folder, names):
    """Writes figures into a folder, which is made if need be.

    Args:
        drawn: dict of figures by file name.
        folder: path.
        names: file names that go first if they are there: a figure of an
            earlier run would belong to another model.

    Returns:
        The folder as a `pathlib.Path`.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).unlink(missing_ok=True)
    for name, figure in drawn.items():
        save(figure, folder / name)
    return folder


def shrink(weights, size):
    """Shrinks a map by keeping the largest weight of each block.

    Args:
        weights: floating array `(frames, frames)`.
        size: int, the largest number of blocks along a side.

    Returns:
        Array `(blocks, blocks)`. The last blocks may cover fewer frames.
    """
    starts = np.arange(0, len(weights), -(-len(weights) // size))
    rows = np.maximum.reduceat(weights, starts, axis=0)
    return np.maximum.reduceat(rows, starts, axis=1)


def full_scale(weights):
    """Returns the median over the queries of their largest weight.

    By the largest weight of all, the first queries of a causal map, which see
    few keys, would leave the others dark.
    """
    peaks = np.max(weights, axis=1)
    return float(np.median(peaks[peaks > 0.0])) if np.any(peaks) else 1.0


def draw_map(panel, weights, size=PANEL_SIZE):
    """Draws one map with its full scale below.

    Args:
        panel: matplotlib `Axes`.
        weights: floating array `(frames, frames)`.
        size: int, the largest number of points along a side.

    Returns:
        The matplotlib image, from which `add_scale` draws the colours.
    """
    from matplotlib.colors import PowerNorm

    frames, scale = len(weights), full_scale(weights)
    image = panel.imshow(
        shrink(weights, size) / scale,
        norm=PowerNorm(0.5, 0.0, 1.0, clip=True),
        cmap=palette.WEIGHTS,
        extent=(0, frames, frames, 0),
        interpolation="nearest",
    )
    panel.set_xticks([0, frames])
    panel.set_yticks([0, frames])
    panel.tick_params(labelsize=7, length=2)
    panel.set_xlabel(f"full scale {scale:.2g}", fontsize=7, labelpad=1)
    return image


def add_scale(figure, image, panels):
    """Adds the bar of colours to a figure, for the maps in `panels`."""
    bar = figure.colorbar(image, ax=panels, fraction=0.03, pad=0.01)
    bar.set_ticks([0.0, 0.25, 1.0], labels=["0", "1/4", "full"], fontsize=7)
    bar.set_label(
        "weight; full scale is the median query's largest", fontsize=8
    )


def draw_patterns(initial, learned, title, names=("initial", "learned")):
    """Draws each head's initial map above its learned one, as Figure 2 does.

    Args:
        initial: floating array `(heads, frames, frames)`.
        learned: floating array `(heads, frames, frames)`.
        title: str, the title of the figure.
        names: pair of str, the names of the two rows.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> initial = np.stack([np.eye(12), np.eye(12, k=1)])
        >>> figure = analysis.draw_patterns(initial, 0.5 * initial, "Patterns")
        >>> figure.savefig("patterns.png")
    """
    heads = len(learned)
    columns = min(heads, COLUMNS)
    bands = -(-heads // columns)
    figure = new_figure(max(1.35 * columns + 1.2, 5.0), 3.5 * bands + 0.7)
    panels = figure.subplots(2 * bands, columns, squeeze=False)
    for panel in panels.flat:
        panel.set_axis_off()
    for head in range(heads):
        band, column = divmod(head, columns)
        for row, maps in enumerate((initial, learned)):
            panel = panels[2 * band + row, column]
            panel.set_axis_on()
            image = draw_map(panel, maps[head], SMALL_PANEL_SIZE)
            if column == 0:
                panel.set_ylabel(f"{names[row]}\nquery", fontsize=8)
            else:
                panel.set_yticks([])
        panels[2 * band, column].set_title(f"head {head + 1}", fontsize=9)
    set_title(figure, title)
    figure.supxlabel("key (frames)", fontsize=8)
    add_scale(figure, image, panels)
    return figure


def draw_kinds(examples, title):
    """Draws an example of each kind of map, as Figure 4 does.

    Args:
        examples: dict from a kind to a pair of a map, floating array
            `(frames, frames)`, and its caption. A kind may be missing.
        title: str, the title of the figure.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> examples = {"diagonal": (np.eye(12), "layer 1, head 2")}
        >>> figure = analysis.draw_kinds(examples, "Kinds of maps")
        >>> figure.savefig("kinds.png")
    """
    figure = new_figure(2.4 * len(KINDS) + 1.0, 3.6)
    panels = figure.subplots(1, len(KINDS))
    image = None
    for panel, kind in zip(panels, KINDS, strict=True):
        panel.set_title(kind, fontsize=11)
        if kind not in examples:
            panel.set_box_aspect(1)
            panel.set_xticks([])
            panel.set_yticks([])
            panel.text(0.5, 0.5, "none found", ha="center", va="center")
            continue
        weights, caption = examples[kind]
        image = draw_map(panel, weights)
        panel.set_title(f"{kind}\n{caption}", fontsize=9)
    panels[0].set_ylabel("query (frames)", fontsize=8)
    set_title(figure, title)
    figure.supxlabel("key (frames)", fontsize=8)
    if image is not None:
        add_scale(figure, image, panels)
    return figure


def draw_projection(projection, heads, title, names=None):
    """Draws maps as points in the plane, coloured by head, as Figure 6 does.

    Args:
        projection: `Projection`.
        heads: integers `(maps,)`, the head of each map, counted from 0.
        title: str, the first line of the title.
        names: list of str, what the legend adds to each head, or `None`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> maps = np.random.default_rng(0).random((8, 5, 5))
        >>> projection = analysis.project(maps, components=4)
        >>> figure = analysis.draw_projection(projection, [0, 1] * 4, "Heads")
        >>> figure.savefig("projection.png")
    """
    heads = np.asarray(heads)
    count = int(heads.max()) + 1
    figure = new_figure(7.5, 5.6)
    panel = figure.subplots()
    for head in range(count):
        name = f"head {head + 1}"
        if names is not None:
            name += f", {names[head]}"
        colour, marker = palette.mark(head)
        panel.scatter(
            *projection.points[heads == head].T,
            s=30,
            color=colour,
            marker=marker,
            linewidths=0.4,
            edgecolors="black",
            label=name,
        )
    panel.set_aspect("equal", adjustable="datalim")
    panel.set_xlabel("t-SNE, first dimension (no unit)", fontsize=9)
    panel.set_ylabel("t-SNE, second dimension (no unit)", fontsize=9)
    panel.tick_params(labelsize=8)
    panel.grid(alpha=0.3)
    panel.legend(
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=9,
        ncols=-(-count // 24),
    )
    explained = 100.0 * float(projection.explained.sum())
    set_title(
        figure,
        f"{title}\n{len(heads)} maps, {projection.distinct} of them "
        f"different; PCA to {projection.components} of "
        f"{projection.wanted} components, {explained:.1f} % of the variance;\n"
        f"t-SNE of perplexity {projection.perplexity:.3g}",
        fontsize=9,
    )
    return figure


def draw_heads(maps, titles, title):
    """Draws the maps of all heads of a layer beside each other.

    Args:
        maps: floating array `(heads, frames, frames)`.
        titles: list of str, the title of each head.
        title: str, the title of the figure.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> maps = np.stack([np.eye(12), np.full((12, 12), 1 / 12)])
        >>> figure = analysis.draw_heads(maps, ["diagonal", "even"], "Layer 1")
        >>> figure.savefig("heads.png")
    """
    heads = len(maps)
    columns = min(heads, 4 if heads <= 12 else 6)
    rows = -(-heads // columns)
    figure = new_figure(2.4 * columns + 1.2, 2.75 * rows + 0.8)
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.flat[heads:]:
        panel.set_axis_off()
    for panel, weights, name in zip(panels.flat, maps, titles, strict=False):
        image = draw_map(panel, weights)
        panel.set_title(name, fontsize=8)
    for row in panels:
        row[0].set_ylabel("query (frames)", fontsize=8)
    set_title(figure, title)
    figure.supxlabel("key (frames)", fontsize=8)
    add_scale(figure, image, panels)
    return figure


def draw_importance(importance, layers, title):
    """Draws the Importance Factor of each feature of each layer.

    Args:
        importance: floating array `(layers, dim)` in [0, 1].
        layers: list of int, the numbers of the layers in the encoder.
        title: str, the title of the figure.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> importance = np.random.default_rng(0).random((3, 16))
        >>> figure = analysis.draw_importance(importance, [1, 2, 3], "Layers")
        >>> figure.savefig("importance.png")
    """
    figure = new_figure(9.0, max(0.22 * len(layers) + 1.6, 2.8))
    panel = figure.subplots()
    image = panel.imshow(
        importance,
        vmin=0.0,
        vmax=1.0,
        cmap=palette.WEIGHTS,
        aspect="auto",
        interpolation="nearest",
    )
    panel.set_yticks(range(len(layers)), list(map(str, layers)))
    panel.tick_params(labelsize=8)
    panel.set_xlabel("feature", fontsize=9)
    panel.set_ylabel("layer of the encoder", fontsize=9)
    bar = figure.colorbar(image, ax=panel, fraction=0.03, pad=0.01)
    bar.ax.tick_params(labelsize=8)
    bar.set_label("Importance Factor", fontsize=8)
    set_title(figure, title)
    return figure


def draw_contributions(shares, layers, title):
    """Draws the share of each layer in all attention weights.

    Args:
        shares: floating array `(layers,)`, in percent.
        layers: list of int, the numbers of the layers in the encoder.
        title: str, the title of the figure.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis
        >>> shares = np.array([10.0, 60.0, 30.0])
        >>> figure = analysis.draw_contributions(shares, [1, 2, 3], "Layers")
        >>> figure.savefig("contributions.png")
    """
    figure = new_figure(max(0.34 * len(layers) + 1.6, 5.0), 3.8)
    panel = figure.subplots()
    places = np.arange(len(layers))
    # No bars, whose lengths would mean nothing: shares differ by little, and a
    # scale from zero would hide it.
    panel.plot(
        places,
        shares,
        "o-",
        color=palette.BLUE,
        markersize=5,
        linewidth=0.8,
        label="of the layer",
    )
    panel.axhline(
        100.0 / len(layers),
        color=palette.BLACK,
        linewidth=0.8,
        linestyle="--",
        label="equal shares",
    )
    panel.set_xticks(places, list(map(str, layers)), fontsize=8)
    panel.tick_params(axis="y", labelsize=8)
    panel.grid(alpha=0.3)
    panel.set_xlabel("layer of the encoder", fontsize=9)
    panel.set_ylabel("share of the weights (%)", fontsize=9)
    # Within the panel it would cover points.
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    set_title(figure, title)
    return figure
