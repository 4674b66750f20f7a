"""Every attention against `full`: time and peak memory, as ratios in one run.

    python benchmarks/attention.py                       # the whole table
    python benchmarks/attention.py --lengths 500 --mechanisms full xbox
    python benchmarks/attention.py --lengths 16000 --no-training \\
        --mechanisms sparse_strided xbox                 # a long recording
    python benchmarks/attention.py --forms               # is `full` fair?

The model is the papers' encoder: 768 wide, 12 heads, a feed-forward of 3072
with GELU, one layer applied six times, post-norm, batch 1, with a padding mask
as every model of this library passes one. `sublayer` is the attention alone,
with its projections. A training step is forward, backward and Adam, without
dropout.

Each case runs in a process of its own, so that peaks are true. A round goes
over all mechanisms, each round in another order; a figure is the median of a
process's calls, a ratio that of two figures of one round, and the table has
the median of the rounds. Peak memory is what the training step adds to the
resident size of the process before the model is built. Random Synthesizers
are folded for inference, as they are deployed. Results go to --out as JSON
lines, from which a stopped run goes on.
"""

import argparse
import gc
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

DIM, HEADS, FEED_FORWARD, LAYERS = 768, 12, 3072, 6
LENGTHS = (250, 500, 1000, 2000, 4000)
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


def encoder(mechanism, length):
    """The layer that is applied six times."""
    from audio_tf import attention
    from audio_tf.layers import TransformerBlock

    return TransformerBlock(
        num_heads=HEADS,
        key_dim=DIM // HEADS,
        feed_forward_dims=(FEED_FORWARD,),
        attention=mechanism,
        attention_kwargs=attention.arguments_for(mechanism, length),
        activation="gelu",
    )


def encode(block, x, mask, training=False):
    for _ in range(LAYERS):
        x = block(x, mask=mask, training=training)
    return x


def clips(batch, length):
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal((batch, length, DIM)), tf.float32)
    return x, tf.ones((batch, length), "bool")


def median_s(run, budget_s, least=3):
    """Median seconds of a call, after one that traces and one that warms."""
    run()
    taken = []
    begin = time.perf_counter()
    run()
    once = time.perf_counter() - begin
    for _ in range(max(least, min(50, int(budget_s / once)))):
        begin = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def resident_mib():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(case):
    """One mechanism at one length, in this process."""
    import keras
    import tensorflow as tf

    from audio_tf import attention

    mechanism, length = case["mechanism"], case["length"]
    x, mask = clips(case["batch"], length)
    tf.matmul(x, x, transpose_a=True)
    before = resident_mib()
    block = encoder(mechanism, length)
    block.build(x.shape)
    result = {"before_mib": before}
    if case["training"]:
        optimizer = keras.optimizers.Adam(1e-5)
        optimizer.build(block.trainable_variables)

        @tf.function(jit_compile=case["xla"])
        def step(x, mask):
            with tf.GradientTape() as tape:
                y = encode(block, x, mask, training=True)
                loss = tf.reduce_mean(tf.square(y))
            variables = block.trainable_variables
            gradients = tape.gradient(loss, [v.value for v in variables])
            optimizer.apply(gradients, variables)
            return loss

        result["training_s"] = median_s(
            lambda: step(x, mask).numpy(), case["budget_s"], least=2
        )
        result["training_mib"] = peak_mib() - before
        del optimizer, step
        gc.collect()
    x, mask = clips(1, length)
    if isinstance(block.attention, attention.RandomSynthesizerAttention):
        block.attention.fold()

    @tf.function(jit_compile=case["xla"])
    def infer(x, mask):
        return encode(block, x, mask)

    @tf.function(jit_compile=case["xla"])
    def attend(x, mask):
        return block.attention(x, mask=mask)

    for name, function in (("sublayer_s", attend), ("encoder_s", infer)):
        result[name] = median_s(
            lambda function=function: function(x, mask)[0, 0, 0].numpy(),
            case["budget_s"],
        )
    result["peak_mib"] = peak_mib() - before
    result["multiply_adds"] = cost_of(block, length).multiply_adds
    return result


def cost_of(block, length):
    """The cost model's count for one layer of the encoder, inference."""
    cost = block.attention.cost(length, DIM)
    return cost._replace(
        multiply_adds=cost.multiply_adds + 2 * length * DIM * FEED_FORWARD
    )


def run_case(case):
    """`measure` in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--case", json.dumps(case)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        return {"failed": f"exit {done.returncode}: {' '.join(last)}"}
    return json.loads(done.stdout.splitlines()[-1])


def run_all(arguments):
    out = pathlib.Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(out)
    known = {json.dumps(row["case"], sort_keys=True) for row in rows}
    for round_index in range(arguments.rounds):
        for length in arguments.lengths:
            names = arguments.mechanisms
            turn = round_index * (len(names) // arguments.rounds + 1)
            for mechanism in (
                names[turn % len(names) :] + names[: turn % len(names)]
            ):
                case = {
                    "mechanism": mechanism,
                    "length": length,
                    "round": round_index,
                    "training": arguments.training,
                    "xla": arguments.xla,
                    "budget_s": arguments.budget_s,
                }
                if json.dumps(case, sort_keys=True) in known:
                    continue
                row = {"case": case, **run_case(case)}
                with out.open("a") as file:
                    print(json.dumps(row), file=file)
                print(json.dumps(row), file=sys.stderr, flush=True)
    return read_rows(out)


def read_rows(out):
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--mechanisms", nargs="+")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--budget-s", type=float, default=3.0)
    parser.add_argument("--xla", action="store_true")
    parser.add_argument(
        "--training", action=argparse.BooleanOptionalAction, default=True
    )
    parser.add_argument("--out", default="runs/attention.jsonl")
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(json.loads(arguments.case))))
        return
    run_all(arguments)


if __name__ == "__main__":
    main()
