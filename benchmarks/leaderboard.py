"""Draws a leaderboard anew from its CSV, beside other baselines if asked.

    audio-tf baseline ... --report baseline.json
    python benchmarks/leaderboard.py benchmarks/leaderboard.csv \\
        --title "spoken commands" --baseline baseline.json

Rows of attentions stay as `audio-tf compare` has written them. Those of
baselines become the report's, in the CSV too.
"""

import argparse
import csv
import json
import pathlib

from audio_tf.analysis import figures, row_charts
from audio_tf.runs import leaderboard


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("csv", type=pathlib.Path, help="leaderboard.csv")
    parser.add_argument("--title", required=True, help="of the picture")
    parser.add_argument("--baseline", help="report of audio-tf baseline")
    arguments = parser.parse_args()
    if arguments.baseline is not None:
        report = json.loads(pathlib.Path(arguments.baseline).read_text())
        replace_baselines(arguments.csv, leaderboard.baseline_rows(report))
    table = leaderboard.read(arguments.csv)
    figures.save(
        row_charts.draw_tradeoff(
            [row for row in table if "causal" in row],
            [row for row in table if "causal" not in row],
            arguments.title,
        ),
        arguments.csv.with_suffix(".png"),
    )


def replace_baselines(path, baselines):
    """Replaces the rows of baselines in a CSV, and leaves all others alone."""
    with open(path, newline="", encoding="utf-8") as file:
        kept = [row for row in csv.DictReader(file) if row["causal"]]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, leaderboard.COLUMNS)
        writer.writeheader()
        writer.writerows(kept + baselines)


if __name__ == "__main__":
    main()
