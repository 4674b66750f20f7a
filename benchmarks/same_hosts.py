"""Training over hosts against one: the same losses, resumed, and one lost.

    python benchmarks/same_hosts.py DATA/fsdd --work runs/hosts
    python benchmarks/same_hosts.py DATA/fsdd --work runs/hosts --only train

Hosts are processes of `audio-tf pretrain` and `audio-tf train` with JAX on the
loopback of this machine. It prints the largest relative difference of the
losses of ten steps, of `train` their mean and that of the validation after
them, from those of one host; that of a run which goes on over other numbers of
hosts; and the seconds from the kill of a host until the other has ended.
"""

import argparse
import csv
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

SPREAD = ("--distribution", "data_parallel")
ENCODER = {
    "num_layers": 2,
    "num_heads": 4,
    "key_dim": 16,
    "hidden_dim": 64,
    "intermediate_dims": [128],
}
PRETRAIN = [
    *("pretrain", "--dataset", "fsdd", "--features", "s3prl"),
    *("--sample-rate-hz", "8000", "--target", "input", "--masking", "s3prl"),
    *("--feature-cache", "--batch-size", "8", "--buckets", "1"),
    *("--model-kwargs", json.dumps(ENCODER), "--save-every", "1"),
]
TRAIN = [
    *("train", "--dataset", "fsdd", "--epochs", "1", "--no-test"),
    *("--mixing", "mixup", "--batch-size", "240"),  # Ten steps.
]
WAIT_S = 1_200
KINDS = ("pretrain", "resume", "train", "lost")


def start(command, out, count):
    """Starts so many hosts of a command; returns a list of `Popen`."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    processes = []
    for index in range(count):
        here = ["--out", out]
        if count > 1:
            here += ["--job-addresses", f"127.0.0.1:{port}"]
            here += ["--num-processes", count, "--process-id", index]
        words = [sys.executable, "-m", "audio_tf.cli", *command, *SPREAD, *here]
        processes.append(
            subprocess.Popen(
                list(map(str, words)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "KERAS_BACKEND": "jax"},
            )
        )
    return processes


def finish(processes):
    """Waits for hosts; one that has failed ends this, too."""
    for each in processes:
        error = each.communicate(timeout=WAIT_S)[1]
        if each.returncode:
            raise SystemExit(error[-3_000:])


def figures(out):
    """Reads a history: a list of dicts of floats."""
    path = pathlib.Path(out, "history.csv")
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return [
            {
                name: float(value)
                for name, value in row.items()
                if value and "loss" in name
            }
            for row in csv.DictReader(file)
        ]


def difference(out, reference):
    """Compares two histories.

    Returns:
        Pair of the number of losses, and the largest relative difference.
    """
    pairs = [
        (row[name], other[name])
        for row, other in zip(figures(out), figures(reference), strict=True)
        for name in other
    ]
    if len({other for _, other in pairs}) < 2:
        raise SystemExit(f"{reference}: losses that are all the same")
    return len(pairs), max(abs(one / other - 1) for one, other in pairs)


def wait_for(out, rows):
    """Waits until a history has so many rows."""
    ends = time.monotonic() + WAIT_S
    while len(figures(out)) < rows:
        if time.monotonic() > ends:
            raise SystemExit(f"{out}: no {rows} rows in {WAIT_S} s")
        time.sleep(0.2)


def compare(name, command, work):
    """Runs a command over one, two and four hosts, and compares them."""
    for count in (1, 2, 4):
        out = work / f"{name}_{count}"
        finish(start(command, out, count))
        if count > 1:
            number, worst = difference(out, work / f"{name}_1")
            print(
                f"{name}, {count} hosts against one: {number} losses, "
                f"{worst:.1e} apart at most",
                flush=True,
            )


def resume(command, work):
    """Kills a run over two hosts, goes on over one, and ends over four."""
    out = work / "resumed"
    for count, rows in ((2, 3), (1, 6), (4, None)):
        again = [command[0], "--resume"]
        processes = start(again if count != 2 else command, out, count)
        if rows is None:
            finish(processes)
            break
        wait_for(out, rows)
        for each in processes:
            each.kill()
            each.communicate()
    number, worst = difference(out, work / "pretrain_1")
    print(
        f"pretrain over 2, 1 and 4 hosts, killed between, against one: "
        f"{number} losses, {worst:.1e} apart at most",
        flush=True,
    )


def lose(command, work):
    """Kills one of two hosts, and waits for the end of the other."""
    for lost in (0, 1):
        out = work / f"lost_{lost}"
        processes = start([*command, "--steps", "9000"], out, 2)
        wait_for(out, 2)
        processes[lost].send_signal(signal.SIGKILL)
        begin = time.monotonic()
        other = processes[1 - lost]
        error = other.communicate(timeout=WAIT_S)[1]
        seconds = time.monotonic() - begin
        processes[lost].communicate()
        (line,) = [each for each in error.splitlines() if "lost" in each]
        print(
            f"host {lost} of 2 killed: the other has ended after "
            f"{seconds:.0f} s with {other.returncode}: {line}",
            flush=True,
        )


def main():
    """Runs what is asked for, in an empty folder."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data_dir", help="FSDD, as released")
    parser.add_argument("--work", required=True, help="folder to work in")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=KINDS,
        default=KINDS,
        help="resume is compared with pretrain of the same folder",
    )
    arguments = parser.parse_args()
    work = pathlib.Path(arguments.work)
    given = ["--data-dir", arguments.data_dir, "--cache-dir", work / "cache"]
    pretrain = [*PRETRAIN, *given]
    steps = ["--steps", "10", "--picture-every", "10"]
    if "pretrain" in arguments.only:
        clear(work, "pretrain_*")
        compare("pretrain", [*pretrain, *steps], work)
    if "resume" in arguments.only:
        clear(work, "resumed")
        resume([*pretrain, *steps], work)
    if "train" in arguments.only:
        clear(work, "train_*")
        compare("train", [*TRAIN, *given], work)
    if "lost" in arguments.only:
        clear(work, "lost_*")
        lose(pretrain, work)


def clear(work, pattern):
    """Removes what runs before have left."""
    for each in work.glob(pattern):
        shutil.rmtree(each)


if __name__ == "__main__":
    main()
