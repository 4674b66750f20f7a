"""Rebuild the tables of the papers on a corpus of your own.

    python training/reproduce.py ssl \\
        --pretrain-config training/configs/librispeech_ssl.py \\
        --probe-config training/configs/librispeech_probe.py \\
        --alignment converted_aligned_phones.txt \\
        --train-list train_split.txt --test-list test_split.txt \\
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
import runpy
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
# Of training/probe.py.
PROBE_FLAGS = ("alignment", "train_list", "val_list", "test_list")
# What times are relative to.
BASELINE = "full"
# What the mel baseline has to be told, where the others know it of the model.
FEATURE_SETTINGS = ("features", "features_options", "sample_rate_hz")


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
    if not pretrained(out / "preset"):
        run(
            "pretrain.py",
            *("--config", arguments.pretrain_config),
            *("--attention", attention, "--seed", seed),
            *common(arguments),
            *("--out", out, *resumed(out)),
        )
    return out / "preset"


def pretrained(preset):
    """Whether a preset is that of the last step."""
    file = preset / "provenance.json"
    if not file.is_file():
        return False
    facts = json.loads(file.read_text())
    return facts["steps_done"] == facts["steps"]


def probe(attention, seed, arguments):
    """Probes a row, unless that is done."""
    out = arguments.out / attention / f"probe_{seed}"
    if finished(out):
        return
    if attention == "features":
        config = read_config(arguments.pretrain_config)
        flags = []
        for name in FEATURE_SETTINGS:
            if name in config:
                value = config[name]
                if isinstance(value, dict):
                    value = json.dumps(value)
                flags += [f"--{name.replace('_', '-')}", value]
    else:
        flags = ["--model", pretrain(attention, seed, arguments)]
    for name in PROBE_FLAGS:
        value = getattr(arguments, name)
        if value is not None:
            flags += [f"--{name.replace('_', '-')}", value]
    run(
        "probe.py",
        *("--config", arguments.probe_config, *flags),
        *("--tasks", *TASKS, "--seed", seed),
        *common(arguments),
        *("--out", out, *resumed(out)),
    )


def common(arguments):
    """Flags that both scripts take."""
    flags = ["--data-dir", arguments.data_dir]
    if arguments.cache_dir is not None:
        flags += ["--cache-dir", arguments.cache_dir]
    return flags


def finished(out):
    """Whether the report of probes has all tasks."""
    return set(TASKS) <= set(read_tasks(out))


def read_tasks(out):
    """Dict of the reports by task of a folder of probes."""
    file = out / "probes.json"
    return json.loads(file.read_text())["tasks"] if file.is_file() else {}


def read_config(path):
    """The dict of a config; the scripts check it."""
    return runpy.run_path(str(path))["get_config"]()


def inference_s(arguments):
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
    if not file.is_file() or json.loads(file.read_text())["asked"] != asked:
        # Memory of an accelerator must be free for the rows.
        subprocess.run(
            [sys.executable, __file__, "time", str(file), json.dumps(asked)],
            check=True,
        )
    return json.loads(file.read_text())["seconds"]


def time_inference(arguments):
    """Writes the file of `inference_s`, in a process of its own."""
    import numpy as np

    from audio_tf import attention, models, provenance

    asked = json.loads(arguments.asked)
    length, built = asked["length"], {}
    for name in TABLE_2:
        if name == "features":
            continue
        built[name] = models.AudioAlbertBackbone.from_preset(
            asked["model"],
            attention=name,
            made_for_frames=length,
        )
        attention.fold(built[name])
    dim = built[BASELINE].feature_dim
    clip = np.random.default_rng(0).normal(size=(1, length, dim))
    clip = clip.astype("float32")
    seconds = {name: [] for name in built}
    for turn in range(asked["repeats"] + 1):
        for name, model in built.items():
            start = time.perf_counter()
            model.predict_on_batch(clip)
            # The first call compiles.
            if turn:
                seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    provenance.write_json(arguments.file, {"asked": asked, "seconds": medians})
    return 0


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


def write_table(arguments, seconds):
    """Writes and returns the table of all rows that have finished seeds."""
    rows = {}
    for name in TABLE_2:
        reports = [
            read_tasks(out)
            for out in (
                arguments.out / name / f"probe_{seed}"
                for seed in arguments.seeds
            )
            if finished(out)
        ]
        if reports:
            rows[name] = row_facts(name, reports, seconds)
    table = format_table(rows)
    (arguments.out / "table2.md").write_text(table + "\n")
    (arguments.out / "table2.json").write_text(json.dumps(rows, indent=2))
    return table


def reproduce_ssl(arguments):
    seconds = inference_s(arguments) if arguments.repeats else {}
    failed = []
    for name in TABLE_2:
        if name not in arguments.rows:
            continue
        for seed in arguments.seeds:
            try:
                probe(name, seed, arguments)
            except subprocess.CalledProcessError as error:
                # Hours of other rows must not be lost with this one.
                failed.append(shlex.join(map(str, error.cmd)))
            table = write_table(arguments, seconds)
    print("\nmeasured (paper); inference relative to full attention")
    print(table)
    if failed:
        print(f"\n{len(failed)} runs failed:", *failed, sep="\n  ")
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
    for name in PROBE_FLAGS:
        ssl.add_argument(
            f"--{name.replace('_', '-')}", help="as training/probe.py takes it"
        )
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
    timing = commands.add_parser("time", help=argparse.SUPPRESS)
    timing.add_argument("file")
    timing.add_argument("asked")
    timing.set_defaults(run=time_inference)
    return top


def check_same_run(arguments):
    """Raises a `SystemExit` if --out has rows of another setting."""
    asked = {
        "pretrain_config": read_config(arguments.pretrain_config),
        "probe_config": read_config(arguments.probe_config),
        "data_dir": str(pathlib.Path(arguments.data_dir).resolve()),
        **{name: getattr(arguments, name) for name in PROBE_FLAGS},
    }
    # As it comes out of the file.
    asked = json.loads(json.dumps(asked))
    file = arguments.out / "config.json"
    if file.is_file() and json.loads(file.read_text()) != asked:
        sys.exit(
            f"{arguments.out} holds rows of other configs or data; choose "
            "another --out"
        )
    file.write_text(json.dumps(asked, indent=2))


def main(argv=None):
    arguments = parser().parse_args(argv)
    if arguments.run is reproduce_ssl:
        arguments.out.mkdir(parents=True, exist_ok=True)
        check_same_run(arguments)
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
