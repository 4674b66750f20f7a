"""Times steps of pre-training over processes of one machine.

    KERAS_BACKEND=jax python benchmarks/hosts.py --hosts 1 2 4

Each host is a process that computes with one thread, on random features in
batches of the same size for all: efficiency is the time of one host over
that of `n`, divided by `n`. Where there are fewer cores than processes they
share them, so that at most cores / n is to be had; and gloo on loopback is no
network.
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BATCH, FRAMES, DIM = 32, 200, 80


def host(index, count, port, steps, out):
    """Trains on this host, and writes the seconds of each step."""
    import keras
    import numpy as np

    from audio_tf import models
    from audio_tf.runs import distribution, hosts

    if count > 1:
        hosts.connect(f"127.0.0.1:{port}", count, index, out)
    keras.utils.set_random_seed(0)
    with distribution.scope("data_parallel"):
        backbone = models.AudioAlbertBackbone(
            num_layers=3,
            num_heads=4,
            key_dim=32,
            hidden_dim=128,
            intermediate_dims=(512,),
            feature_dim=DIM,
        )
        model = models.MaskedAcousticModel(backbone)
        rng = np.random.default_rng(index)
        x = rng.normal(size=(BATCH // count, FRAMES, DIM)).astype("float32")
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            model.train_on_batch({"features": x, "lengths": lengths(x)}, x)
            seconds.append(time.perf_counter() - start)
        if count > 1:
            hosts.part()
    if index == 0:
        pathlib.Path(out).write_text(json.dumps(seconds))


def lengths(x):
    """Returns the lengths of features without padding, int32 `(batch,)`."""
    import numpy as np

    return np.full(len(x), x.shape[1], "int32")


def seconds_of(count, steps):
    """Returns the median seconds of a step over so many hosts."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "seconds.json")
        command = [sys.executable, __file__, "--steps", str(steps)]
        processes = [
            subprocess.Popen(
                [*command, "--host", *map(str, (index, count, port)), out],
                env={
                    **os.environ,
                    "XLA_FLAGS": flags,
                    "OMP_NUM_THREADS": "1",
                },
            )
            for index in range(count)
        ]
        if any([each.wait() for each in processes]):
            raise SystemExit(f"{count} hosts failed")
        # The first steps compile.
        return statistics.median(json.loads(out.read_text())[2:])


def main():
    """Prints a row for each number of hosts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--host", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.host:
        *numbers, out = arguments.host
        index, count, port = map(int, numbers)
        host(index, count, port, arguments.steps, out)
        return
    print(f"batch {BATCH} x {FRAMES} frames, {os.cpu_count()} cores")
    print("| hosts | s a step | rows a second | efficiency |")
    print("|---|---|---|---|")
    first = None
    for count in arguments.hosts:
        taken = seconds_of(count, arguments.steps)
        first = first or taken * count
        print(
            f"| {count} | {taken:.3f} | {BATCH / taken:.1f} | "
            f"{first / taken / count:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
