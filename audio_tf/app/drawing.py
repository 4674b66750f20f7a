"""Answers as HTML: bars of labels, and a clip with its labels over time.

Every name, label and message is escaped: files and presets come from anywhere.
"""

import html
import io

import numpy as np
import soundfile

from audio_tf.analysis import palette
from audio_tf.app import pictures
from audio_tf.terminal import printable

LANES = 5  # Labels that are shown.


def channels(colour):
    """Returns red, green and blue of a colour of the palette, 0 to 255."""
    return tuple(bytes.fromhex(colour[1:]))


# Those of the palette that show on white and on black.
COLOURS = [
    channels(colour)
    for colour in (
        palette.SKY,
        palette.ORANGE,
        palette.GREEN,
        palette.PURPLE,
        palette.VERMILLION,
    )
]
RAISES, LOWERS = channels(palette.VERMILLION), channels(palette.BLUE)
LEADS = 0.5  # The score from which the leading label colours the waveform.
MAX_PLAYED_S = 60
TICKS_HZ = (500, 1_000, 2_000, 4_000, 8_000, 16_000)
TICKS = 8
STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300)


def safe(text):
    """Returns a text that is nothing but text within HTML.

    Gradio's own templates read braces and dollar signs.
    """
    text = html.escape(printable(text))
    for sign in "{}$`":
        text = text.replace(sign, f"&#{ord(sign)};")
    return text


def css_colour(number):
    """Returns the colour of a lane by its number, for CSS."""
    return "rgb({} {} {})".format(*COLOURS[number % len(COLOURS)])


def problem(name, reason):
    """Draws why a file has no answer, in the words of the command line.

    Args:
        name: str, the file.
        reason: str.
    """
    return (
        f'<p class="atf-problem" role="alert">{safe(name)}: {safe(reason)}</p>'
    )


def heard(clip, answer):
    """Draws the name and the length of a clip, and something to play it.

    Args:
        clip: `answering.Clip` without an error.
        answer: `answering.Answer` with scores; its samples are played.
    """
    samples = answer.samples[: MAX_PLAYED_S * answer.rate_hz]
    # Full scale is 1, but files of floats may go beyond.
    peak = max(1.0, float(np.abs(samples).max()))
    file = io.BytesIO()
    soundfile.write(
        file, samples / peak, answer.rate_hz, "PCM_16", format="WAV"
    )
    source = pictures.address("audio/wav", file.getvalue())
    part = ""
    if clip.seconds > MAX_PLAYED_S:
        part = f", the first {MAX_PLAYED_S} s can be played"
    return (
        f'<div class="atf-heard"><p role="status">'
        f"<strong>{safe(clip.name)}</strong> "
        f"<span>{clip.seconds:.2f} s, {clip.rate_hz} Hz{part}</span></p>"
        f'<audio controls data-seconds="{clip.seconds}" '
        f'aria-label="Play the sound" src="{source}"></audio></div>'
    )


def bars(scores):
    """Draws labels with their scores.

    Args:
        scores: dict of floats by label, the highest first.
    """
    rows = []
    for number, (label, score) in enumerate(scores.items()):
        width = 100.0 * min(max(score, 0.0), 1.0)
        rows.append(
            f'<li><span class="atf-label">{safe(label)}</span>'
            f'<span class="atf-score">{score:.3f}</span>'
            f'<span class="atf-track"><span style="width:{width:.2f}%;'
            f'background:{css_colour(number)}"></span></span></li>'
        )
    return f'<ol class="atf-bars">{"".join(rows)}</ol>'


def lane(name, picture, kind="", more=""):
    """Draws one row of a figure: a name on the left, a picture over time.

    Args:
        name: str, which is escaped.
        picture: str, HTML.
        kind: str, a class for CSS.
        more: str, HTML in place of the name.
    """
    return (
        f'<div class="atf-name {kind}">{more or safe(name)}</div>'
        f'<div class="atf-plot {kind}">{picture}</div>'
    )


def waveform(samples, leading=()):
    """Draws a waveform, and behind it which label leads.

    Args:
        samples: float array `(samples,)`.
        leading: list of triples of the share of the width at which a label
            begins to lead, that at which it ends, and the number of its lane.

    Returns:
        An SVG element.
    """
    lowest, highest = pictures.envelope(samples)
    loudest = max(1e-9, np.abs(samples).max(initial=0.0))
    width = len(lowest)
    upper = 50.0 - 48.0 * highest / loudest
    # A line of no height would not be seen.
    lower = np.maximum(50.0 - 48.0 * lowest / loudest, upper + 0.6)
    points = [f"{x} {y:.1f}" for x, y in enumerate(upper)]
    points += [f"{x} {y:.1f}" for x, y in enumerate(lower)][::-1]
    marks = "".join(
        f'<rect x="{begin * width:.2f}" y="0" height="100" '
        f'width="{(end - begin) * width:.2f}" fill="{css_colour(number)}"/>'
        for begin, end, number in leading
    )
    return (
        f'<svg viewBox="0 0 {width} 100" preserveAspectRatio="none" '
        f'aria-hidden="true"><g opacity="0.35">{marks}</g>'
        f'<path d="M{" L".join(points)}Z"/></svg>'
    )


def runs_of(leads):
    """Returns the runs of equal numbers as triples of begin, end and number.

    Args:
        leads: integer array `(columns,)`; negative where nothing leads.

    Returns:
        List of triples as `waveform` takes them.
    """
    edges = np.flatnonzero(np.diff(leads)) + 1
    edges = [0, *edges.tolist(), len(leads)]
    return [
        (begin / len(leads), end / len(leads), int(leads[begin]))
        for begin, end in zip(edges, edges[1:])
        if leads[begin] >= 0
    ]


def image(pixels, kind=""):
    """Returns an image that fills its row.

    Args:
        pixels: as `pictures.png_address` takes them.
        kind: str, a class for CSS.
    """
    source = pictures.png_address(pixels)
    return f'<img alt="" class="{kind}" src="{source}">'


def time_axis(seconds):
    """Draws the seconds below a figure."""
    steps = [step for step in STEPS_S if seconds / step <= TICKS]
    step = (steps or STEPS_S[-1:])[0]
    ticks = np.arange(0.0, seconds * 0.97, step)
    return "".join(
        f'<span style="left:{100 * tick / seconds:.2f}%">{tick:g}</span>'
        for tick in ticks
    )


def frequency_axis(rate_hz):
    """Draws the frequencies beside a log-mel picture, in kHz."""
    ticks = [tick for tick in TICKS_HZ if tick < 0.4 * rate_hz]
    return "".join(
        f'<span style="bottom:{100 * pictures.height_of(tick, rate_hz):.1f}%">'
        f"{tick / 1000:g}</span>"
        for tick in ticks
    )


def figure(clip, answer):
    """Draws a clip over time: its labels, its waveform, its log-mel spectrum.

    Args:
        clip: `answering.Clip` without an error.
        answer: `answering.Answer` with scores.
    """
    shown = list(answer.found["scores"])[:LANES]
    order = [answer.labels.index(label) for label in shown]
    spread = pictures.over_time(answer.spans_s, answer.frames, clip.seconds)
    scores = np.nan_to_num(spread[:, order])
    leads = np.where(scores.max(axis=1) >= LEADS, scores.argmax(axis=1), -1)
    rows = [
        lane(
            label,
            image(
                pictures.veil(scores[None, :, number], COLOURS[number]),
                "atf-pixels",
            ),
            "atf-lane",
        )
        for number, label in enumerate(shown)
    ]
    decibel = pictures.log_mel(answer.samples, answer.rate_hz)
    spectrum = pictures.colours(1.0 - decibel / pictures.FLOOR_DB)
    rows += [
        lane("waveform", waveform(answer.samples, runs_of(leads)), "atf-wave"),
        lane(
            "log-mel",
            image(spectrum),
            "atf-mel",
            f"log-mel, kHz{frequency_axis(answer.rate_hz)}",
        ),
        lane("seconds", time_axis(clip.seconds), "atf-axis"),
    ]
    said = ", ".join(
        f"{safe(label)} up to {scores[:, number].max():.2f}"
        for number, label in enumerate(shown)
    )
    return (
        f'<div class="atf-figure" role="img" aria-label="Labels over '
        f"{clip.seconds:.1f} seconds, with the waveform and the log-mel "
        f'spectrum: {said}">{"".join(rows)}</div>'
    )


def card(clip, answer, title, purpose=""):
    """Draws the whole answer of one model.

    Args:
        clip: `answering.Clip`.
        answer: `answering.Answer`.
        title: str, the model.
        purpose: str, what it is for.
    """
    if answer.error is not None:
        return refused(clip, answer.error, title)
    best = dict(list(answer.found["scores"].items())[:LANES])
    return (
        f'<section class="atf-card" aria-label="{safe(title)}">'
        f"<h2>{safe(title)}</h2><p>{safe(purpose)}</p>"
        f"{bars(best)}{figure(clip, answer)}</section>"
    )


def refused(clip, reason, title):
    """Draws why one model, of several perhaps, has no answer.

    Args:
        clip: `answering.Clip`.
        reason: str.
        title: str, the model.
    """
    return (
        f'<section class="atf-card" aria-label="{safe(title)}">'
        f"<h2>{safe(title)}</h2>{problem(clip.name, reason)}</section>"
    )


def whole(clip, answers, texts, purposes={}):
    """Draws a clip, what each model says of it, and texts to copy.

    A model that refuses the clip leaves the answer of the other one alone.

    Args:
        clip: `answering.Clip` without an error.
        answers: dict of `answering.Answer` by model.
        texts: dict of texts by what they are.
        purposes: dict of what models are for, of those that it is known of.
    """
    cards = [
        card(clip, answer, model, purposes.get(model, ""))
        for model, answer in answers.items()
    ]
    copied = [
        f'<figure class="atf-text"><figcaption>{safe(title)}'
        '<button type="button" class="atf-copy">Copy</button></figcaption>'
        f"<pre><code>{safe_lines(text)}</code></pre></figure>"
        for title, text in texts.items()
    ]
    scored = [each for each in answers.values() if each.error is None]
    beside = f'<div class="atf-cards">{"".join(cards)}</div>'
    if not scored:
        return beside
    return (
        f"{heard(clip, scored[0])}{beside}"
        f'<details class="atf-texts"><summary>JSON and curl</summary>'
        f"{''.join(copied)}</details>"
    )


def safe_lines(text):
    """Returns lines that are nothing but text within HTML."""
    return "\n".join(safe(line) for line in text.split("\n"))


def explained(clip, found, title):
    """Draws what the answer of one model rests on.

    Args:
        clip: `answering.Clip` without an error.
        found: dict as `answering.Models.explain` returns it.
        title: str, the model.
    """
    if "error" in found:
        return refused(clip, found["error"], title)
    weights = found["weights"].T[::-1]  # The highest band first.
    most = max(float(np.abs(weights).max()), 1e-12)
    pixels = pictures.veil(np.abs(weights) / most, RAISES)
    pixels[weights < 0.0, :3] = LOWERS
    edges_hz = found["frequency_hz"]
    marks = "".join(
        f'<span style="bottom:{100 * number / (len(edges_hz) - 1):.1f}%">'
        f"{edges_hz[number] / 1000:.2g}</span>"
        for number in range(1, len(edges_hz) - 1, max(1, len(edges_hz) // 5))
    )
    rows = [
        lane("waveform", waveform(clip.samples), "atf-wave"),
        lane("", image(pixels, "atf-pixels"), "atf-mel", f"kHz{marks}"),
        lane("seconds", time_axis(clip.seconds), "atf-axis"),
    ]
    label = safe(found["label"])
    return (
        f'<section class="atf-card atf-why" aria-label="{safe(title)}: why">'
        f"<h2>{safe(title)}: what <em>{label}</em> rests on</h2><p>"
        f"Score {found['score']:.3f}, of silence {found['silence_score']:.3f}. "
        '<span class="atf-raises">Orange</span> patches raise the score, '
        '<span class="atf-lowers">blue</span> ones lower it, the stronger the '
        f"more.</p>"
        f'<div class="atf-figure" role="img" aria-label="Weights of patches of '
        f'time and frequency for {label}">{"".join(rows)}</div></section>'
    )
