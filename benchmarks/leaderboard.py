"""Draws a leaderboard anew from its CSV, beside other baselines if asked.

    audio-tf baseline ... --report baseline.json
    python benchmarks/leaderboard.py benchmarks/leaderboard.csv \\
        --title "spoken commands" --baseline baseline.json

Rows of attentions stay as `audio-tf compare` has written them. Those of
baselines become the report's, in the CSV too.
"""

import argparse
import json
import pathlib

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
    table = leaderboard.read(arguments.csv)
    if arguments.baseline is not None:
        report = json.loads(pathlib.Path(arguments.baseline).read_text())
        attentions = [row for row in table if "causal" in row]
        table = attentions + leaderboard.baseline_rows(report)
        leaderboard.write(arguments.csv, table)
    picture = arguments.csv.with_suffix(".png")
    leaderboard.draw(picture, table, arguments.title)


if __name__ == "__main__":
    main()
