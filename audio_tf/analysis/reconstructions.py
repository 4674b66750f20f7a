"""Drawings of how a masked acoustic model fills in the frames that it lacks.

Each function returns a `matplotlib.figure.Figure`, and
`audio_tf.analysis.figures.save` writes it.
"""

import numpy as np

from audio_tf.analysis import palette
from audio_tf.analysis.figures import new_figure

# The height of the strip that marks masked frames, as a share of a panel's.
STRIP = 0.06


def spans(chosen, hop_s):
    """Finds the runs of spectra that are chosen.

    Args:
        chosen: boolean array `(spectra,)`.
        hop_s: float, seconds from one spectrum to the next.

    Returns:
        List of pairs of a beginning and a length, in seconds.
    """
    edges = np.diff(np.concatenate([[0], chosen.astype(int), [0]]))
    begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return [
        (begin * hop_s, (end - begin) * hop_s)
        for begin, end in zip(begins, ends, strict=True)
    ]


def draw_reconstruction(
    features, masked_features, reconstruction, masked, hop_s, title, target=None
):
    """Draws a clip, what a model was given of it, and what it made of that.

    Features run upwards and time to the right. A strip above a panel marks the
    frames that count in the loss. The panels of features have one scale of
    colours, the 1st to the 99th percentile of the clip, and target and
    reconstruction have that of the target.

    Args:
        features: floating array `(spectra, dim)`, the clip.
        masked_features: floating array `(spectra, dim)`, with masked frames.
        reconstruction: floating array `(spectra, target_dim)`.
        masked: boolean array `(spectra,)`, the spectra of masked frames.
        hop_s: float, seconds from one spectrum to the next.
        title: str, the title of the figure.
        target: floating array `(spectra, target_dim)`, or `None` if the
            features are the target.
    """
    wanted = features if target is None else target
    panels = [
        ("features", features, features),
        ("what the model is given", masked_features, features),
    ]
    if target is not None:
        panels.append(("target", target, target))
    panels.append(("what the model fills in", reconstruction, wanted))
    figure = new_figure(9.0, 1.75 * len(panels) + 0.9)
    axes = figure.subplots(len(panels), 1, sharex=True)
    for panel, (name, values, scale) in zip(axes, panels, strict=True):
        low, high = np.percentile(scale, (1, 99))
        image = panel.imshow(
            np.transpose(values),
            vmin=low,
            vmax=max(high, low + 1e-6),
            cmap=palette.SEQUENTIAL,
            origin="lower",
            aspect="auto",
            interpolation="nearest",
            extent=(0.0, len(values) * hop_s, 0, np.shape(values)[1]),
        )
        panel.broken_barh(
            spans(masked, hop_s),
            (1.02, STRIP),
            transform=panel.get_xaxis_transform(),
            color=palette.VERMILLION,
            linewidth=0,
            clip_on=False,
            label="masked frames",
        )
        panel.set_ylabel("feature", fontsize=9)
        panel.set_title(name, fontsize=10, pad=10)
        panel.tick_params(labelsize=8)
        bar = figure.colorbar(image, ax=panel, fraction=0.03, pad=0.01)
        bar.ax.tick_params(labelsize=8)
        bar.set_label("value", fontsize=9)
    axes[-1].set_xlabel("time (s)", fontsize=9)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", fontsize=9)
    figure.suptitle(title, fontsize=11, parse_math=False)
    return figure
