"""Rebuild the tables of the papers on a corpus of your own.

    python training/reproduce.py ssl \\
        --pretrain-config training/configs/librispeech_ssl.py \\
        --probe-config training/configs/librispeech_probe.py \\
        --data-dir LibriSpeech --out runs/table2

`ssl` is Table 2 of "Input-independent Attention Weights Are Expressive
Enough" (arXiv 2006.05174): an Audio ALBERT is pre-trained with each attention,
frozen, and probed for speakers and phones. Each row is two commands, which are
printed. Rows that are finished are kept: the same command goes on where it
stopped. --out gets table2.md, table2.json and a folder for each row.
"""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SCRIPTS = pathlib.Path(__file__).resolve().parent
TASKS = ("speaker", "frame_speaker", "phoneme_1hidden", "phoneme_2hidden")

# The paper's row, its accuracies in the order of TASKS, and its Table 1's
# seconds of inference.
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
}
# The features are those of this row's model.
BASELINE = "full"


def run(script, *flags):
    """Runs a script of this folder, and prints how.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    command = ["python", str(SCRIPTS / script), *map(str, flags)]
    print("$", shlex.join(command), flush=True)
    subprocess.run([sys.executable, *command[1:]], check=True)


def resumed(out):
    """The flag that goes on with a run, if there is one."""
    return ["--resume"] if (out / "config.json").is_file() else []


def pretrain(attention, seed, arguments):
    """Pre-trains a row, unless that is done, and returns its preset."""
    out = arguments.out / attention / f"pretrain_{seed}"
    preset = out / "preset"
    # It is what the script writes last.
    if not (preset / "provenance.json").is_file():
        run(
            "pretrain.py",
            *("--config", arguments.pretrain_config),
            *("--attention", attention, "--seed", seed),
            *common(arguments),
            *("--out", out, *resumed(out)),
        )
    return preset


def probe(attention, seed, arguments):
    """Probes a row, unless that is done, and returns the report."""
    out = arguments.out / attention / f"probe_{seed}"
    report = out / "probes.json"
    if not finished(report):
        flags = []
        if attention == "features":
            preset = pretrain(BASELINE, seed, arguments)
            flags = ["--layer", "features"]
        else:
            preset = pretrain(attention, seed, arguments)
        run(
            "probe.py",
            *("--config", arguments.probe_config, "--model", preset, *flags),
            *("--tasks", *TASKS, "--seed", seed),
            *common(arguments),
            *("--out", out, *resumed(out)),
        )
    return json.loads(report.read_text())["tasks"]


def common(arguments):
    """Flags that both scripts take."""
    flags = ["--data-dir", arguments.data_dir]
    if arguments.cache_dir is not None:
        flags += ["--cache-dir", arguments.cache_dir]
    return flags


def finished(report):
    """Whether a report of probes has all tasks."""
    if not report.is_file():
        return False
    return set(TASKS) <= set(json.loads(report.read_text())["tasks"])


def inference_s(attentions, arguments):
    """Seconds of inference per clip of Table 1's 500 steps, by attention.

    The models are of `--time-model`'s size with random weights, on which time
    does not depend; tables are folded. They take turns, so that what else the
    machine does meets them alike, and the median of the turns counts.
    """
    file = arguments.out / "inference.json"
    asked = {
        "model": arguments.time_model,
        "length": arguments.time_length,
        "repeats": arguments.repeats,
    }
    if file.is_file():
        kept = json.loads(file.read_text())
        if kept["asked"] == asked and set(attentions) <= set(kept["seconds"]):
            return kept["seconds"]

    import numpy as np

    from audio_tf import attention, models

    length = arguments.time_length
    built = {}
    for name in attentions:
        model = models.AudioAlbertBackbone.from_preset(
            arguments.time_model,
            attention=name,
            attention_kwargs=attention.arguments_for(name, length),
        )
        attention.fold(model)
        built[name] = model
    clip = np.random.default_rng(0).normal(size=(1, length, model.feature_dim))
    clip = clip.astype("float32")
    seconds = {name: [] for name in attentions}
    for turn in range(arguments.repeats + 1):
        for name, model in built.items():
            start = time.perf_counter()
            model.predict_on_batch(clip)
            # The first call compiles.
            if turn:
                seconds[name].append(time.perf_counter() - start)
    seconds = {name: statistics.median(each) for name, each in seconds.items()}
    file.write_text(json.dumps({"asked": asked, "seconds": seconds}, indent=2))
    return seconds


def row_facts(name, reports, seconds):
    """Measured figures of a row: means over seeds, and each seed's."""
    accuracies = {
        task: [report[task]["test_accuracy"] for report in reports]
        for task in TASKS
    }
    means = {task: statistics.fmean(accuracies[task]) for task in TASKS}
    label, paper, paper_s = TABLE_2[name]
    return {
        "row": label,
        "test_accuracy": means,
        "average": statistics.fmean(means.values()),
        "by_seed": accuracies,
        "inference_s": seconds.get(name),
        "paper": dict(zip(TASKS, paper, strict=True)),
        "paper_average": statistics.fmean(paper),
        "paper_inference_s": paper_s,
    }


def format_table(rows):
    """A Markdown table, measured figures before the paper's.

    Args:
        rows: dict of `row_facts` by attention.
    """
    lines = [
        "| attention | " + " | ".join(TASKS) + " | average | inference |",
        "|---|" + "---|" * (len(TASKS) + 2),
    ]
    baseline = rows.get(BASELINE, {})
    for name, row in rows.items():
        cells = [
            f"{row['test_accuracy'][task]:.4f} ({row['paper'][task]:.4f})"
            for task in TASKS
        ]
        cells.append(f"{row['average']:.4f} ({row['paper_average']:.4f})")
        time_cell = "-"
        if row["inference_s"] and baseline.get("inference_s"):
            ours = row["inference_s"] / baseline["inference_s"]
            paper = row["paper_inference_s"] / baseline["paper_inference_s"]
            time_cell = f"{ours:.2f} ({paper:.2f})"
        lines.append(
            f"| {row['row']} `{name}` | " + " | ".join([*cells, time_cell])
        )
        lines[-1] += " |"
    return "\n".join(lines)


def reproduce_ssl(arguments):
    rows, failed = {}, []
    chosen = [name for name in TABLE_2 if name in arguments.rows]
    timed = [name for name in chosen if name != "features"]
    seconds = {}
    if timed and arguments.repeats:
        seconds = inference_s(timed, arguments)
    for name in chosen:
        try:
            reports = [probe(name, seed, arguments) for seed in arguments.seeds]
        except subprocess.CalledProcessError as error:
            # Hours of other rows must not be lost with this one.
            failed.append(f"{name}: {shlex.join(map(str, error.cmd))}")
            continue
        rows[name] = row_facts(name, reports, seconds)
        table = format_table(rows)
        (arguments.out / "table2.md").write_text(table + "\n")
        (arguments.out / "table2.json").write_text(json.dumps(rows, indent=2))
    if rows:
        print("\nmeasured (paper); inference relative to full attention")
        print(table)
    if failed:
        print(f"\n{len(failed)} rows failed:", *failed, sep="\n  ")
    return 1 if failed else 0


def parser():
    top = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(required=True, metavar="table")
    ssl = commands.add_parser("ssl", help="Table 2 of arXiv 2006.05174")
    ssl.set_defaults(run=reproduce_ssl)
    for name, meaning in (
        ("--pretrain-config", "settings of training/pretrain.py"),
        ("--probe-config", "settings of training/probe.py"),
        ("--data-dir", "folder of the corpus"),
    ):
        ssl.add_argument(name, required=True, help=meaning)
    ssl.add_argument("--cache-dir", help="folder of decoded audio, features")
    ssl.add_argument(
        "--rows",
        nargs="+",
        choices=list(TABLE_2),
        default=list(TABLE_2),
        metavar="ATTENTION",
        help="rows of the table (default: all)",
    )
    ssl.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        default=[0],
        metavar="N",
        help="seeds whose mean counts (default: 0)",
    )
    ssl.add_argument(
        "--time-model",
        default="audio_albert_6",
        help="size whose inference is timed (default: %(default)s)",
    )
    ssl.add_argument(
        "--time-length",
        type=int,
        default=500,
        metavar="STEPS",
        help="length of the clip (default: %(default)d, as Table 1)",
    )
    ssl.add_argument(
        "--repeats",
        type=int,
        default=7,
        help="turns of each model, 0 for none (default: %(default)d)",
    )
    ssl.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path("runs/table2"),
        help="folder of all runs (default: %(default)s)",
    )
    return top


def check_same_run(arguments):
    """Raises a `SystemExit` if --out has rows of another setting."""
    asked = {
        "pretrain_config": pathlib.Path(arguments.pretrain_config).read_text(),
        "probe_config": pathlib.Path(arguments.probe_config).read_text(),
        "data_dir": arguments.data_dir,
    }
    file = arguments.out / "config.json"
    if file.is_file() and json.loads(file.read_text()) != asked:
        sys.exit(
            f"{arguments.out} holds rows of other configs or data; choose "
            "another --out"
        )
    file.write_text(json.dumps(asked, indent=2))


def main(argv=None):
    arguments = parser().parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    check_same_run(arguments)
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
