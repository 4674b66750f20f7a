"""The table of a comparison of attentions: as CSV, as text, as a picture."""

import csv
import json

from audio_tf import files
from audio_tf.runs import rows

COLUMNS = (
    "attention",
    "causal",
    "figure",
    "mean",
    "low",
    "high",
    "seeds",
    "parameters",
    "multiply_adds",
    "paper_cost",
    "inference_s",
    "inference_ratio",
    "training_s",
    "training_ratio",
    "peak_mib",
)
TEXTS = ("attention", "causal", "figure")


def figure_of(reports):
    """Returns which figure of reports counts, and its values.

    Args:
        reports: list of dicts of figures by name.

    Returns:
        Pair of `"accuracy"`, or `"mAP"` where that is undefined, and a list of
        floats, or of `None` where no clip has a label.
    """
    name = "accuracy"
    if any(report[name] is None for report in reports):
        name = "mAP"
    return name, [report[name] for report in reports]


def baseline_rows(report):
    """Returns the rows of baselines.

    Args:
        report: dict that `audio-tf baseline` has written as JSON.

    Returns:
        List of dicts by `COLUMNS`, empty where no clip has a label.
    """
    found = []
    for name, figures in report["figures"].items():
        figure = "accuracy" if "accuracy" in figures else "mAP"
        if figure not in figures:
            continue
        values = figures[figure]["values"]
        mean, low, high = rows.interval(values)
        found.append(
            {
                "attention": f"baseline: {name}",
                "figure": figure,
                "mean": mean,
                "low": low,
                "high": high,
                "seeds": len(values),
            }
        )
    return found


def read(path):
    """Reads what `write` has written.

    Args:
        path: path of the CSV file.

    Returns:
        List of dicts by `COLUMNS`, without what a row has not.
    """
    with open(path, newline="", encoding="utf-8") as file:
        return [
            {
                name: value if name in TEXTS else json.loads(value)
                for name, value in row.items()
                if value
            }
            for row in csv.DictReader(file)
        ]


def write(path, table):
    """Writes a table as CSV.

    Args:
        path: path of the file.
        table: list of dicts by `COLUMNS`.
    """
    with (
        files.whole_file(path) as new,
        open(new, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(table)


def draw(path, table, title):
    """Draws the rows whose time is known, if it can.

    Args:
        path: path of the picture.
        table: list of dicts by `COLUMNS`.
        title: str.
    """
    from audio_tf.analysis import figures, row_charts
    from audio_tf.runs import showing

    timed = [row for row in table if "inference_ratio" in row]
    baselines = [row for row in table if "causal" not in row]
    if timed and showing.can_draw():
        figures.save(row_charts.draw_tradeoff(timed, baselines, title), path)


def format_table(table):
    """Returns the table as text, a line for each row."""
    lines = [
        f"{'attention':34} causal {'mean':>7} {'low':>7} {'high':>7} seeds "
        f"{'params':>9} {'MMAC':>8} {'infer':>6} {'train':>6} {'MiB':>7}"
    ]

    def cell(row, name, width, form):
        value = row.get(name)
        text = "-" if value is None else format(value, form)
        return f"{text:>{width}}"

    for row in table:
        adds = row.get("multiply_adds")
        million = {"adds": None if adds is None else adds / 1e6}
        lines.append(
            f"{row['attention']:34} {row.get('causal', '-'):6} "
            + " ".join(
                [
                    *(cell(row, name, 7, ".4f") for name in COLUMNS[3:6]),
                    cell(row, "seeds", 5, "d"),
                    cell(row, "parameters", 9, "d"),
                    cell(million, "adds", 8, ".2f"),
                    cell(row, "inference_ratio", 6, ".2f"),
                    cell(row, "training_ratio", 6, ".2f"),
                    cell(row, "peak_mib", 7, ".0f"),
                ]
            )
        )
    return "\n".join(lines)
