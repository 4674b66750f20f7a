"""Drawings of what `AudioClassifier.explain` has found."""

import numpy as np

from audio_tf.analysis.figures import new_figure
from audio_tf.terminal import printable

# From purple to orange by white, which the colour-blind tell apart.
COLOURS = "PuOr_r"
FLOOR_DB = -80.0
WINDOW_S = 0.032
MOST_TICKS = 9
# As many columns as a picture has pixels for, up to twice as many. Of more,
# which are drawn would be left to chance.
COLUMNS = 650
# Frames of a spectrogram that are in memory at a time.
FRAMES = 4096
# Characters of a file's path and of a label that a title has room for.
LONGEST_PATH, LONGEST_LABEL = 80, 50


def draw_explanation(found, samples=None, sample_rate_hz=None):
    """Draws the weights of a clip's patches over time and frequency.

    ```python
    found = classifier.explain("dog.wav", "dog_bark")
    samples = audio_tf.audio.load_audio("dog.wav", 16_000)
    figure = audio_tf.analysis.draw_explanation(found, samples, 16_000)
    figure.savefig("why.png")
    ```

    Below them stand their sums over the bands, and on the right those over
    time. Bands are drawn with equal heights. Of a long clip, weights of patches
    side by side are added up, and of levels the highest are drawn.

    Args:
        found: dict as `AudioClassifier.explain` returns it for a good clip.
        samples: float array `(samples,)`, the clip, whose spectrogram is
            drawn above the weights, or `None` for the weights alone.
        sample_rate_hz: int, its rate.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the clip could not be explained, or there are samples
            without their rate.
    """
    if "error" in found:
        raise ValueError(
            "Only an explained clip can be drawn. "
            f"Received: {found['file']}: {found['error']}"
        )
    if (samples is None) != (sample_rate_hz is None):
        raise ValueError(
            "`samples` and `sample_rate_hz` belong together. "
            f"Received: sample_rate_hz={sample_rate_hz}"
        )
    has_sound = samples is not None
    heights = [2.0, 2.0, 1.0] if has_sound else [2.0, 1.0]
    figure = new_figure(9.0, 1.4 * sum(heights) + 0.8)
    axes = figure.subplots(
        len(heights),
        2,
        squeeze=False,
        sharex="col",
        height_ratios=heights,
        width_ratios=[5.0, 1.0],
    )
    figure.suptitle(title_of(found), fontsize=10, parse_math=False)
    if has_sound:
        draw_spectrogram(axes[0, 0], samples, sample_rate_hz)
        axes[0, 1].set_axis_off()
    draw_weights(figure, axes[-2], axes[-1, 0], found)
    axes[-1, 1].set_axis_off()
    return figure


def title_of(found):
    """Returns the title of a drawing, in two lines that have room in it.

    Args:
        found: as `draw_explanation` takes it.
    """
    path = printable(found["file"])
    if len(path) > LONGEST_PATH:
        # Its end tells a file from the others.
        path = "..." + path[-LONGEST_PATH:]
    label = printable(found["label"], LONGEST_LABEL)
    return (
        f"{path}\n{label}: score {found['score']:.3f}, "
        f"silence {found['silence_score']:.3f}"
    )


def draw_weights(figure, row, below, found):
    """Draws weights, and their sums on the right and below.

    Args:
        figure: the figure, which gets a colour bar.
        row: pair of axes, of the weights and of the sums over time.
        below: axes of the sums over bands.
        found: as `draw_explanation` takes it.
    """
    weights, time_s, count = added_up(found["weights"], found["time_s"])
    hz = found["frequency_hz"]
    bands = np.arange(len(hz))
    # Where one patch is alone, the others would all be white.
    most = max(np.quantile(np.abs(weights), 0.99), 1e-12)
    plane, right = row
    mesh = plane.pcolormesh(
        time_s, bands, weights.T, cmap=COLOURS, vmin=-most, vmax=most
    )
    ticks = bands[:: -(-len(bands) // MOST_TICKS)]
    plane.set_yticks(ticks, [f"{hz[tick]:.0f}" for tick in ticks])
    plane.set_ylabel("frequency in Hz")
    name = found["method"].replace("_", " ")
    plane.set_title(
        f"{name}: orange speaks for the label, purple against it", fontsize=9
    )
    bar = figure.colorbar(mesh, ax=right, extend="both")
    bar.set_label(
        f"weight of {'a patch' if count == 1 else f'{count} patches'}"
    )
    right.barh(
        bands[:-1] + 0.5, weights.sum(axis=0), 0.9, color=signs(weights, 0)
    )
    right.set_ylim(0, bands[-1])
    right.set_yticks([])
    right.set_title("by band", fontsize=9)
    right.axvline(0.0, color="black", linewidth=0.5)
    right.tick_params(labelbottom=True, labelsize=7)
    right.locator_params(axis="x", nbins=3)
    middle = (time_s[1:] + time_s[:-1]) / 2
    below.bar(
        middle,
        weights.sum(axis=1),
        0.9 * np.diff(time_s),
        color=signs(weights, 1),
    )
    below.axhline(0.0, color="black", linewidth=0.5)
    below.set_ylabel("weight")
    below.set_xlabel("time in seconds")
    below.set_xlim(time_s[0], time_s[-1])


def added_up(weights, time_s):
    """Adds up the weights of patches side by side, where there are too many.

    Args:
        weights: float array `(patches, bands)`.
        time_s: float array `(patches + 1,)`, where patches begin and end.

    Returns:
        Triple of both arrays, shorter, and of how many patches a column has.
    """
    count = max(1, len(weights) // COLUMNS)
    starts = np.arange(0, len(weights), count)
    ends = np.append(np.asarray(time_s)[starts], time_s[-1])
    return np.add.reduceat(weights, starts, axis=0), ends, count


def signs(weights, axis):
    """Returns the colours of sums of weights, by their signs."""
    return np.where(weights.sum(axis=axis) < 0, "#5e3c99", "#e66101")


def draw_spectrogram(axes, samples, sample_rate_hz):
    """Draws the levels of a clip over time and frequency, in dB.

    Args:
        axes: the axes.
        samples: float array `(samples,)`.
        sample_rate_hz: int.
    """
    size = max(8, round(WINDOW_S * sample_rate_hz))
    padded = np.pad(np.asarray(samples, "float64"), size // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)
    frames = frames[:: size // 4]
    count = max(1, len(frames) // COLUMNS)
    columns = []
    # Whole columns at a time.
    block = count * max(1, FRAMES // count)
    for start in range(0, len(frames), block):
        some = frames[start : start + block] * np.hanning(size)
        power = np.abs(np.fft.rfft(some)) ** 2
        starts = np.arange(0, len(some), count)
        columns.append(np.maximum.reduceat(power, starts))
    power = np.concatenate(columns)
    level_db = 10 * np.log10(power / max(power.max(), 1e-30) + 1e-12)
    # The last column may have fewer frames.
    wide = len(power) * count / len(frames)
    axes.imshow(
        level_db.T,
        origin="lower",
        aspect="auto",
        cmap="gray_r",
        vmin=FLOOR_DB,
        vmax=0.0,
        extent=(
            0.0,
            wide * len(samples) / sample_rate_hz,
            0.0,
            sample_rate_hz / 2000,
        ),
    )
    axes.set_ylabel("frequency in kHz")
    axes.set_title(f"the sound, {FLOOR_DB:.0f} to 0 dB of its peak", fontsize=9)
