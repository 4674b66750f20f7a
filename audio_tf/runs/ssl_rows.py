"""The rows of Table 2 of "Input-independent Attention Weights ...".

arXiv 2006.05174: the figures of the paper beside those that were measured.
"""

import statistics

TASKS = ("speaker", "frame_speaker", "phoneme_1hidden", "phoneme_2hidden")

# By attention the name of the paper's row, its accuracies in the order of
# TASKS, and the seconds of inference in its Table 1, of 1,000 batches, while
# ours are of one clip; `None` where the paper has no such row. "SYN. (Ours)"
# is a row of the paper's first version, "Hand-crafted Attention is All You
# Need?" of 2020, whose section 2.4.3 takes the patterns of Raganato et al.
# (arXiv 2002.10260). It has no seconds, and prints the accuracies that the
# later version prints for other patterns.
TABLE_2 = {
    "features": ("Baseline (Mel)", (0.0060, 0.0033, 0.5246, 0.5768), None),
    "full": ("Baseline (QK)", (0.9926, 0.9824, 0.6460, 0.6887), 146.8),
    "shared_qk": ("Baseline (Q)", (0.9898, 0.9622, 0.5893, 0.6345), 143.4),
    "sparse_strided": (
        "Sparse (Strided)",
        (0.9786, 0.9039, 0.6048, 0.6450),
        143.4,
    ),
    "sparse_fixed": ("Sparse (Fixed)", (0.9597, 0.7960, 0.6069, 0.6846), 143.4),
    "sign_alsh": ("Sign-ALSH", (0.9716, 0.8237, 0.5863, 0.6393), 268.9),
    "xbox": ("XBOX", (0.9639, 0.7994, 0.5860, 0.6262), 235.5),
    "xbox_qnf": ("XBOX (QNF)", (0.9667, 0.7958, 0.5819, 0.6241), 240.2),
    "simple_lsh": ("Simple LSH", (0.9628, 0.7370, 0.5771, 0.6189), 236.2),
    "simple_alsh": ("Simple ALSH", (0.9678, 0.7999, 0.5783, 0.6214), 235.7),
    "dense_synthesizer": (
        "SYN. (Dense)",
        (0.9660, 0.9027, 0.6180, 0.6287),
        111.0,
    ),
    "dense_synthesizer_per_head": (
        "SYN. (Dense+M)",
        (0.9509, 0.9135, 0.6073, 0.6471),
        130.5,
    ),
    "random_synthesizer": (
        "SYN. (Random)",
        (0.9803, 0.8868, 0.5820, 0.6237),
        116.8,
    ),
    "crafted_synthesizer": ("Ours", (0.9842, 0.9855, 0.6157, 0.6492), 116.8),
    "raganato_synthesizer": (
        "SYN. (Ours), 2020",
        (0.9842, 0.9855, 0.6157, 0.6492),
        None,
    ),
    "local_dense_synthesizer": (
        "LDSA, not in the table",
        (None, None, None, None),
        None,
    ),
    "hybrid_local": (
        "LDSA and QK in turn, not in the table",
        (None, None, None, None),
        None,
    ),
}
# The attention whose time is 1.
BASELINE = "full"


def row_facts(name, reports, seconds):
    """Returns a dict of a row's figures: means over seeds, and each seed's.

    Args:
        name: a key of `TABLE_2`.
        reports: list of the reports of probes, one a seed; empty for a row
            that was not run, whose figures are `None`.
        seconds: dict of the seconds of inference by attention.
    """
    accuracies = {
        task: [report["tasks"][task]["test_accuracy"] for report in reports]
        for task in TASKS
    }
    means, average, model = dict.fromkeys(TASKS), None, None
    if reports:
        means = {task: statistics.fmean(accuracies[task]) for task in TASKS}
        average = statistics.fmean(means.values())
        model = reports[0]["model"]
    label, paper, paper_s = TABLE_2[name]
    return {
        "row": label,
        "causal": model and model["causal"],
        "test_accuracy": means,
        "average": average,
        "by_seed": accuracies,
        "inference_s": seconds.get(name),
        "paper": dict(zip(TASKS, paper, strict=True)),
        "paper_average": None if None in paper else statistics.fmean(paper),
        "paper_inference_s": paper_s,
    }


CAUSAL_CELLS = {None: "-", True: "yes", False: "no"}


def beside(measured, paper, form=".4f"):
    """Returns a cell of a figure and, if there is one, the paper's."""
    text = "not run" if measured is None else format(measured, form)
    return text if paper is None else f"{text} ({paper:{form}})"


def format_table(table, full_s):
    """Returns a Markdown table with the paper's figures in parentheses.

    It has every row of `TABLE_2`: one that was not measured says so, and each
    other one of how many seeds it is the mean, as rows may be at several.

    Args:
        table: dict of `row_facts` by attention.
        full_s: float, the seconds of inference of `BASELINE`, whose row need
            not be there yet; `None` if they were not measured.
    """
    lines = [
        f"| attention | causal | seeds | {' | '.join(TASKS)} | average "
        "| inference |",
        "|---|" + "---|" * (len(TASKS) + 4),
    ]
    for name in TABLE_2:
        row = table.get(name) or row_facts(name, [], {})
        seeds = len(row["by_seed"][TASKS[0]])
        cells = [f"{row['row']} `{name}`", CAUSAL_CELLS[row["causal"]]]
        cells.append(str(seeds or "-"))
        cells += [
            beside(row["test_accuracy"][task], row["paper"][task])
            for task in TASKS
        ]
        cells.append(beside(row["average"], row["paper_average"]))
        time_cell = "-"
        if row["inference_s"] and full_s:
            ours = row["inference_s"] / full_s
            paper = row["paper_inference_s"]
            if paper is not None:
                paper /= TABLE_2[BASELINE][2]
            time_cell = beside(ours, paper, ".2f")
        lines.append(f"| {' | '.join([*cells, time_cell])} |")
    return "\n".join(lines)
