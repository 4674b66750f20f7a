"""Tables and a plot of the measurements of benchmarks/attention.py.

    python benchmarks/attention_report.py runs/attention.jsonl
    python benchmarks/attention_report.py runs/attention.jsonl --plot ratios.png

A cell is the ratio to `full`; in brackets the cost model's ratio of
multiply-adds; beside it that of the practical times in Table 1 of
arXiv 2006.05174.
"""

import argparse
import pathlib
import statistics

from attention import DIM, FEED_FORWARD, HEADS, read_rows

# Seconds per 1000 batches at 500 frames: Table 1 of arXiv 2006.05174.
PAPER_S = {
    "full": 146.8,
    "shared_qk": 143.4,
    "sparse_strided": 143.4,
    "sparse_fixed": 143.4,
    "sign_alsh": 268.9,
    "xbox": 235.5,
    "xbox_qnf": 240.2,
    "simple_lsh": 236.2,
    "simple_alsh": 235.7,
    "dense_synthesizer": 111.0,
    "dense_synthesizer_per_head": 130.5,
    "random_synthesizer": 116.8,
    "crafted_synthesizer": 116.8,
}
# Figures of a case, and what they are called.
KEYS = {
    "sublayer_s": "attention alone, inference",
    "encoder_s": "encoder, inference",
    "training_s": "encoder, training step",
    "training_mib": "encoder, peak memory of training",
}


def read_alike(files):
    """Reads the rows of files, of which there are medians over rounds.

    Args:
        files: list of `pathlib.Path`, each as benchmarks/attention.py makes it.

    Raises:
        ValueError: if some were compiled by XLA and others were not.
    """
    rows = [row for file in files for row in read_rows(file)]
    if len({row["case"].get("xla", False) for row in rows}) > 1:
        raise ValueError(
            "Rows with --xla and rows without are of two tables. Received: "
            f"both in {', '.join(map(str, files))}"
        )
    return rows


def ratios(rows, key):
    """Returns the median over rounds of each mechanism's ratio to `full`."""
    bases = {
        (row["case"]["length"], row["case"]["round"]): row[key]
        for row in rows
        if key in row and row["case"]["mechanism"] == "full"
    }
    found = {}
    for row in rows:
        mechanism, length = row["case"]["mechanism"], row["case"]["length"]
        ratio = row.get(key.replace("_s", "_ratio"))
        if key.endswith("_mib") and key in row:
            base = bases.get((length, row["case"]["round"]))
            ratio = row[key] / base if base else None
        if ratio:
            found.setdefault((mechanism, length), []).append(ratio)
    return {case: statistics.median(of) for case, of in found.items()}


def model_ratios(rows, key):
    """Returns the cost model's ratios of multiply-adds, beside the times."""
    counts = {
        (row["case"]["mechanism"], row["case"]["length"]): row["multiply_adds"]
        for row in rows
        if "multiply_adds" in row
    }
    if key == "sublayer_s":
        counts = {
            (mechanism, length): count - 2 * length * DIM * FEED_FORWARD
            for (mechanism, length), count in counts.items()
        }
    return {
        (mechanism, length): count / counts["full", length]
        for (mechanism, length), count in counts.items()
        if key.endswith("_s") and ("full", length) in counts
    }


def of_full(rows, key, length):
    """Returns the text of what `full` itself takes at a length.

    It is a dash where only others were measured, beside which it ran.
    """
    taken = [
        row[key]
        for row in rows
        if key in row
        and row["case"]["mechanism"] == "full"
        and row["case"]["length"] == length
    ]
    unit = "MiB" if key.endswith("_mib") else "s"
    return f"{statistics.median(taken):.3g} {unit}" if taken else "-"


def report(rows):
    """Returns the tables of RESULTS.md; the cost model's ratios in brackets."""
    names = list(dict.fromkeys(row["case"]["mechanism"] for row in rows))
    lines = []
    for key, title in KEYS.items():
        found, model = ratios(rows, key), model_ratios(rows, key)
        if not found:
            continue
        lengths = sorted({length for _, length in found})
        paper = key == "encoder_s"
        head = [title, *(f"L={length}" for length in lengths)]
        table = [head + ["paper, L=500"] * paper]
        table.append(
            ["`full`, itself", *(of_full(rows, key, each) for each in lengths)]
            + [f"{PAPER_S['full'] / 1000:.3g} s"] * paper
        )
        for name in names:
            cells = [f"`{name}`"]
            for length in lengths:
                cell = "-"
                if (name, length) in found:
                    cell = f"{found[name, length]:.2f}"
                if (name, length) in model:
                    cell += f" ({model[name, length]:.2f})"
                cells.append(cell)
            if paper:
                known = name in PAPER_S
                ratio = PAPER_S.get(name, 0) / PAPER_S["full"]
                cells.append(f"{ratio:.2f}" if known else "-")
            table.append(cells)
        table.insert(1, ["---"] * len(table[0]))
        lines += ["| " + " | ".join(cells) + " |" for cells in table] + [""]
    lines += [
        f"{row['case']}: {row['failed']}" for row in rows if "failed" in row
    ]
    return "\n".join(lines)


def draw(rows):
    """Draws the ratios at all lengths, a panel for each of `KEYS`.

    Args:
        rows: list of dicts, as benchmarks/attention.py writes them.

    Returns:
        The matplotlib figure.
    """
    from audio_tf.analysis import row_charts

    measures = {}
    for key, title in KEYS.items():
        found = ratios(rows, key)
        if found:
            measures[title.replace(", ", ",\n")] = found
    names = list(dict.fromkeys(row["case"]["mechanism"] for row in rows))
    return row_charts.draw_lengths(
        measures,
        names,
        f"Time and memory against full attention, {DIM} wide, {HEADS} heads",
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--plot", help="PNG of the ratios over the length")
    arguments = parser.parse_args()
    try:
        rows = read_alike(arguments.files)
    except ValueError as error:
        parser.error(str(error))
    print(report(rows))
    if arguments.plot:
        from audio_tf.analysis import figures

        figures.save(draw(rows), arguments.plot)


if __name__ == "__main__":
    main()
