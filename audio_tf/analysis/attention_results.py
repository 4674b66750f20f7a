"""Tables of `audio-tf compare` and `reproduce ssl`, and their attentions."""

import csv
import json
import math
import pathlib
import statistics

# Columns of leaderboard.csv that are needed, and what each cell is.
NEEDED = {"attention": str, "figure": str, "mean": float}
NUMBERS = (
    "low",
    "high",
    "inference_ratio",
    "training_ratio",
    "multiply_adds",
    "paper_cost",
)
# What Figures 4 of 2020 and 5 of 2021 of arXiv 2006.05174 show of Table 2.
TASK = "speaker"


def read_results(path):
    """Reads a table of what attentions reached.

    Args:
        path: `leaderboard.csv` of `audio-tf compare`, or `table2.json` of
            `audio-tf reproduce ssl`, of which the speaker of an utterance
            counts, as in the paper's figures.

    Returns:
        Pair of lists of dicts as `row_charts.draw_tradeoff` takes them: the
        rows of attentions, and those of baselines.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no such table; it names what is wrong.
    """
    path = pathlib.Path(path)
    if path.suffix == ".json":
        rows = read_table(path)
    elif path.suffix == ".csv":
        rows = read_leaderboard(path)
    else:
        raise ValueError(
            "Results must be leaderboard.csv of audio-tf compare or "
            f"table2.json of audio-tf reproduce ssl. Received: {path}"
        )
    attentions = [row for row in rows if not row.pop("baseline")]
    if not attentions:
        raise ValueError(f"{path}: there is no row of an attention")
    return attentions, [row for row in rows if "causal" not in row]


def read_leaderboard(path):
    """Reads the rows of `leaderboard.csv`; see `read_results`."""
    found = []
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        lacking = [c for c in NEEDED if c not in (reader.fieldnames or ())]
        if lacking:
            raise ValueError(
                f"{path}: the column {lacking[0]!r} is missing. "
                f"Received: {reader.fieldnames}"
            )
        for row in reader:
            number = f"{path}, line {reader.line_num}"
            cells = {
                "attention": row["attention"],
                "figure": row["figure"],
                "mean": to_number(row["mean"], number, "mean"),
                "baseline": not row.get("causal"),
            }
            if not cells["baseline"]:
                cells["causal"] = row["causal"]
            for name in NUMBERS:
                text = row.get(name)
                cells[name] = to_number(text, number, name) if text else None
            found.append(cells)
    return found


def to_number(text, where, name):
    """Converts a cell to a finite float.

    Args:
        text: str, the cell.
        where: str, the file and the line.
        name: str, the column.
    """
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where}: {name} is no number. Received: {text!r}")
    return number


def read_table(path):
    """Reads the rows of `table2.json`; see `read_results`."""
    table = json.loads(path.read_text("utf-8"))
    try:
        seconds = {name: row["inference_s"] for name, row in table.items()}
        full_s = seconds.get("full")
        found = []
        for name, row in table.items():
            mean = statistics.fmean(row["by_seed"][TASK])
            cells = {
                "attention": name,
                "figure": "accuracy, speaker of the utterance",
                "mean": mean,
                "low": None,
                "high": None,
                "baseline": name == "features",
            }
            if not cells["baseline"]:
                cells["causal"] = {True: "yes", False: "no"}[row["causal"]]
            if full_s and seconds[name]:
                cells["inference_ratio"] = seconds[name] / full_s
            found.append(cells)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: no table of audio-tf reproduce ssl ({error!r})"
        ) from error
    return found
