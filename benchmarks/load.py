"""Latency of a server against load, until it breaks.

    python benchmarks/load.py http://localhost:8501 --out load.jsonl
    python benchmarks/load.py --rows load.jsonl --plot load.png

Requests come at times of their own, as those of many users do, and latency
counts from the time at which each was due. The clip is a second of noise, or
the given WAV file. What is right is what the server answers at first, alone.
The stand-in's figures are of `python -m serving.fire curves` (docs/serve.md).
"""

import argparse
import io
import json
import pathlib

import numpy as np
import soundfile

from audio_tf import console
from audio_tf.cli.flags import positive_float
from audio_tf.client import ServerError, load, load_figures

FIGURES = ("p50_s", "p90_s", "p99_s")


def main(argv=None):
    """Measures a server or reads rows, by flags; errors are one line."""
    parser = console.Parser(
        prog="load.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", nargs="?", help="http://... or grpc://...")
    parser.add_argument("--name", help="of the curve (default: the URL)")
    parser.add_argument("--clip", help="WAV file (default: a second of noise)")
    parser.add_argument(
        "--seconds", type=positive_float, default=20.0, help="of a load"
    )
    parser.add_argument(
        "--first", type=positive_float, default=10.0, help="per second"
    )
    parser.add_argument("--factor", type=positive_float, default=1.5)
    parser.add_argument(
        "--limit", type=positive_float, default=1.0, help="p99, seconds"
    )
    parser.add_argument("--timeout", type=positive_float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="file that rows are appended to")
    parser.add_argument("--rows", nargs="+", default=[], help="files of rows")
    parser.add_argument("--plot", help="picture of the rows")
    arguments = parser.parse_args(argv)
    if bool(arguments.url) == bool(arguments.rows):
        parser.error("give a URL to measure, or --rows")
    with console.errors_in_one_line(argv, prog=parser.prog):
        run(arguments)


def run(arguments):
    """Does what the flags ask for."""
    if arguments.url:
        rows = list(measured(arguments))
        if arguments.out:
            with open(arguments.out, "a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        rows = [
            json.loads(line)
            for path in arguments.rows
            for line in pathlib.Path(path).read_text().splitlines()
        ]
    print("\n".join(table(rows)))
    if arguments.plot:
        draw(rows, arguments.plot, arguments.limit)


def connected(url, clip, timeout_s):
    """Returns a `load.Sender`, which has asked the server once.

    Args:
        url: str.
        clip: bytes.
        timeout_s: float.

    Raises:
        ValueError: if the URL is none, or no server answers there.
    """
    try:
        return load.Sender(url, [clip], retries=0, timeout_s=timeout_s)
    except (ValueError, ServerError) as error:
        raise ValueError(
            f"URL must be that of a server that answers: {error}"
        ) from error


def measured(arguments):
    """Yields a row of each load."""
    rng = np.random.default_rng(arguments.seed)
    if arguments.clip:
        clip = pathlib.Path(arguments.clip).read_bytes()
    else:
        file = io.BytesIO()
        noise = rng.uniform(-0.5, 0.5, 16_000)
        soundfile.write(file, noise, 16_000, format="WAV")
        clip = file.getvalue()
    with connected(arguments.url, clip, arguments.timeout) as send:

        def measure(rate_per_s, seconds=arguments.seconds):
            due = load.poisson(rate_per_s, seconds, rng)
            return load_figures.figures(send.send_at(due, 512), seconds)

        # Threads, connections and graphs of the first batches.
        measure(arguments.first, min(5.0, arguments.seconds))
        for rate_per_s, found, held in load_figures.until_it_breaks(
            measure, arguments.first, arguments.limit, arguments.factor
        ):
            name = arguments.name or send.url
            row = load_figures.row(name, rate_per_s, found, held=held)
            print(json.dumps(row), flush=True)
            yield row


def table(rows):
    """Yields the lines of a table in Markdown."""
    yield (
        "| server | offered/s | good/s | p50 ms | p90 ms | p99 ms | "
        "p99 of good ms | refused | failed | wrong |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: (row["name"], row["rate_per_s"])):
        cells = [row["name"], f"{row['offered_per_s']:.1f}"]
        cells.append(f"{row['good_per_s']:.1f}")
        for key in (*FIGURES, "good_p99_s"):
            # Infinite: so many had no good answer at all.
            cells.append("-" if row[key] is None else f"{1e3 * row[key]:.0f}")
        cells += [str(row[key]) for key in ("refused", "failed", "wrong")]
        yield "| " + " | ".join(cells) + " |"


def draw(rows, path, limit_s):
    """Draws p50 and p99 of each server against its load."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    from audio_tf.analysis import palette

    names = list(dict.fromkeys(row["name"] for row in rows))
    columns = min(2, len(names))
    lines = -(-len(names) // columns)
    figure, panels = pyplot.subplots(
        lines,
        columns,
        figsize=(5.2 * columns, 2.6 * lines + 0.6),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for panel in panels.flat[len(names) :]:
        panel.remove()
    top_s = max(
        row[key] for row in rows for key in FIGURES if row[key] is not None
    )
    for name, panel in zip(names, panels.flat, strict=False):
        own = sorted(
            (row for row in rows if row["name"] == name),
            key=lambda row: row["rate_per_s"],
        )
        for number, (key, text) in enumerate(
            (("p50_s", "half within"), ("p99_s", "99 of 100 within"))
        ):
            colour, marker = palette.mark(number)
            found = [row for row in own if row[key] is not None]
            panel.plot(
                [row["offered_per_s"] for row in found],
                [row[key] for row in found],
                marker=marker,
                markersize=4,
                color=colour,
                label=text,
            )
            lost = [row["offered_per_s"] for row in own if row[key] is None]
            # At the upper edge: later than any that was measured.
            panel.plot(
                lost,
                [2.0 * max(top_s, limit_s)] * len(lost),
                linestyle="none",
                marker="^",
                markersize=6,
                color=colour,
                markerfacecolor="none",
                label=f"{text.removesuffix(' within')}: not all answered",
            )
        panel.axhline(
            limit_s, color=palette.GREY, linewidth=0.8, linestyle="--"
        )
        held = [row["offered_per_s"] for row in own if row["held"]]
        best = f"holds {max(held):.0f}/s" if held else "holds none of these"
        panel.set_title(f"{name}: {best}", fontsize=9)
        panel.set_yscale("log")
        panel.grid(alpha=0.3)
    figure.supxlabel("requests a second that were due", fontsize=9)
    figure.supylabel("seconds from when a request was due", fontsize=9)
    handles, texts = panels.flat[0].get_legend_handles_labels()
    figure.legend(
        handles, texts, loc="outside upper center", ncols=2, fontsize=8
    )
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
