"""Cost and memory of the resampler, on the host and in the graph.

    pip install -e ".[test]"
    python benchmarks/resampling.py

CPU milliseconds of all threads for a second of noise, medians of --repeats
calls in turn, with one thread each for BLAS and TensorFlow: what a decoding
worker pays, whatever else runs beside. scipy is `resample_poly` as it comes,
a filter of 10 crossings where ours has 67.
"""

import argparse
import os
import platform
import statistics
import time
import tracemalloc

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import scipy.signal  # noqa: E402
import soxr  # noqa: E402
import tensorflow as tf  # noqa: E402

from audio_tf.audio import resampling  # noqa: E402
from audio_tf.audio.graph_resampling import resample_in_graph  # noqa: E402

TARGET_HZ = 16_000
RATES_HZ = (44_100, 48_000, 8_000, 44_056, 383_999, 999_983)
# Whose filter scipy would need gigabytes for.
SCIPY_UP_TO_HZ = 48_000


def engines(audio, rate_hz, in_graph):
    """Returns a dict of functions without arguments that resample."""
    tensor = tf.constant(audio)
    found = {
        "host": lambda: resampling.resample(audio, rate_hz, TARGET_HZ),
        "graph": lambda: in_graph(tensor, rate_hz).numpy(),
        "soxr HQ": lambda: soxr.resample(
            audio, rate_hz, TARGET_HZ, quality="HQ"
        ),
    }
    if rate_hz <= SCIPY_UP_TO_HZ:
        divisor = np.gcd(rate_hz, TARGET_HZ)
        up, down = TARGET_HZ // divisor, rate_hz // divisor
        # What it has by default, made once.
        widest = max(up, down)
        taps = scipy.signal.firwin(
            20 * widest + 1, 1 / widest, window=("kaiser", 5.0)
        ).astype("float32")
        found["scipy"] = lambda: scipy.signal.resample_poly(
            audio, up, down, window=taps
        )
    return found


def time_in_turn(functions, repeats):
    """Returns the median CPU milliseconds of each function by name."""
    times = {name: [] for name in functions}
    for run in functions.values():
        run()
        run()
    for _ in range(repeats):
        for name, run in functions.items():
            start = time.process_time()
            run()
            times[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(runs) for name, runs in times.items()}


def peak_mb(audio, rate_hz):
    """Returns the MB that a first call on the host holds, output included."""
    resampling.plan_with_taps.cache_clear()
    tracemalloc.start()
    resampling.resample(audio, rate_hz, TARGET_HZ)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--repeats", type=int, default=31)
    arguments = parser.parse_args(argv)

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    in_graph = tf.function(
        lambda audio, rate_hz: resample_in_graph(audio, rate_hz, TARGET_HZ),
        input_signature=[tf.TensorSpec((None,)), tf.TensorSpec((), tf.int32)],
    )
    print(
        f"{os.cpu_count()} cores, Python {platform.python_version()}, numpy "
        f"{np.__version__}, TensorFlow {tf.__version__}, soxr "
        f"{soxr.__version__}\n"
    )
    print("| Hz | clip | host | graph | scipy | soxr HQ | host's peak |")
    print("|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for rate_hz in RATES_HZ:
        for seconds in arguments.seconds:
            audio = rng.uniform(-0.9, 0.9, seconds * rate_hz).astype("float32")
            times = time_in_turn(
                engines(audio, rate_hz, in_graph), arguments.repeats
            )
            row = [
                f"{times[name] / seconds:.2f}" if name in times else "-"
                for name in ("host", "graph", "scipy", "soxr HQ")
            ]
            peak = f"{peak_mb(audio, rate_hz):.0f} MB"
            print(f"| {rate_hz} | {seconds} s | {' | '.join(row)} | {peak} |")


if __name__ == "__main__":
    main()
