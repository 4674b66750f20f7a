"""Every attention against `full`: time and peak memory, as ratios in one run.

    python benchmarks/attention.py                       # the whole table
    python benchmarks/attention.py --lengths 500 --mechanisms full xbox
    python benchmarks/attention.py --lengths 16000 --alone \\
        --parts encoder --mechanisms shared_qk xbox      # a long recording
    python benchmarks/attention_report.py runs/attention.jsonl

The model is the papers' encoder: 768 wide, 12 heads, a feed-forward of 3072
with GELU, one layer applied six times, post-norm, with a padding mask as every
model of this library passes one; a clip at a time for inference, up to four
clips, 4000 frames at most, for training. `sublayer` is the attention alone,
with its projections. A training step is forward, backward and Adam, without
dropout.

Each case runs in a process of its own, so that peaks are true, a fork of this
one, which has imported TensorFlow and computed nothing: first the mechanism
alone, for the peak, then in turn with `full`, for the times: a ratio is the
median over pairs of calls, and a table has the median of the rounds.
Peak memory is what the training step adds to the resident size of the process
before the model is built. Random Synthesizers are folded for inference, as
they are deployed. Results go to --out as JSON lines, from which a stopped run
goes on; what failed is tried again. A case may take nine tenths of the memory
that is free when it begins: one that does not fit fails alone, and its parts
are then measured one by one.
"""

import argparse
import gc
import json
import multiprocessing
import os
import pathlib
import resource
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

DIM, HEADS, FEED_FORWARD, LAYERS = 768, 12, 3072, 6
LENGTHS = (250, 500, 1000, 2000, 4000)
PARTS = ("sublayer", "encoder", "training")


def encoder(mechanism, length):
    """Builds the block that the encoder applies six times."""
    from audio_tf.layers import TransformerBlock

    return TransformerBlock(
        num_heads=HEADS,
        key_dim=DIM // HEADS,
        intermediate_dims=(FEED_FORWARD,),
        attention=mechanism,
        made_for_frames=length,
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


def in_turn(runs, budget_s, least):
    """Returns the seconds of functions called in turn."""
    taken = {name: [] for name in runs}
    begin, repeats = time.perf_counter(), 0
    while repeats < least or time.perf_counter() - begin < budget_s:
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - start)
        repeats += 1
    return taken


def resident_mib():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def limit_memory():
    """Makes allocations fail rather than bring the machine down."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    limit = int(0.9 * 1024 * sizes["MemAvailable"])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def training_step(block, x, mask, xla):
    import keras
    import tensorflow as tf

    optimizer = keras.optimizers.Adam(1e-5)
    optimizer.build(block.trainable_variables)

    @tf.function(jit_compile=xla)
    def step(x, mask):
        with tf.GradientTape() as tape:
            y = encode(block, x, mask, training=True)
            loss = tf.reduce_mean(tf.square(y))
        variables = block.trainable_variables
        gradients = tape.gradient(loss, [v.value for v in variables])
        optimizer.apply(gradients, variables)
        return loss

    return lambda: step(x, mask).numpy()


def inference(block, part, x, mask, xla):
    import tensorflow as tf

    @tf.function(jit_compile=xla)
    def infer(x, mask):
        if part == "sublayer":
            return block.attention(x, mask=mask)
        return encode(block, x, mask)

    return lambda: infer(x, mask)[0, 0, 0].numpy()


def measure(case):
    """Measures a mechanism and `full` at one length, in turn and here."""
    import tensorflow as tf

    from audio_tf import attention

    mechanism, length, xla = case["mechanism"], case["length"], case["xla"]
    x, mask = clips(case["batch"], length)
    tf.matmul(x, x, transpose_a=True)
    before = resident_mib()
    blocks = {"it": encoder(mechanism, length)}
    blocks["it"].build(x.shape)
    result = {
        "before_mib": before,
        "multiply_adds": cost_of(blocks["it"], length).multiply_adds,
    }

    def compare(part, runs):
        taken = in_turn(runs, case["budget_s"], case["repeats"])
        result[f"{part}_s"] = statistics.median(taken["it"])
        if "full" in taken:
            result[f"{part}_ratio"] = statistics.median(
                ours / full
                for ours, full in zip(taken["it"], taken["full"], strict=True)
            )

    steps = {}
    if "training" in case["parts"]:
        steps["it"] = training_step(blocks["it"], x, mask, xla)
        steps["it"](), steps["it"]()
        result["training_mib"] = peak_mib() - before
    if case["against_full"]:
        blocks["full"] = encoder("full", length)
        blocks["full"].build(x.shape)
        if steps:
            steps["full"] = training_step(blocks["full"], x, mask, xla)
            steps["full"]()
    if steps:
        compare("training", steps)
    del steps
    gc.collect()
    if isinstance(blocks["it"].attention, attention.RandomSynthesizerAttention):
        blocks["it"].attention.fold()
    x, mask = clips(1, length)
    for part in ("sublayer", "encoder"):
        if part in case["parts"]:
            runs = {
                name: inference(block, part, x, mask, xla)
                for name, block in blocks.items()
            }
            for run in runs.values():
                run()
            compare(part, runs)
    result["peak_mib"] = peak_mib() - before
    return result


def cost_of(block, length):
    """Returns what the cost model counts for one block in inference."""
    cost = block.attention.cost(length, DIM)
    return cost._replace(
        multiply_adds=cost.multiply_adds + 2 * length * DIM * FEED_FORWARD
    )


def run_case(case):
    """Runs `measure` in a fork of this process."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    process = fork.Process(target=measure_there, args=[case, there])
    process.start()
    there.close()
    try:
        row = here.recv()
    except EOFError:
        row = None
    process.join()
    return row or {"failed": f"exit {process.exitcode}"}


def measure_there(case, pipe):
    limit_memory()
    try:
        pipe.send(measure(case))
    except Exception as error:
        pipe.send({"failed": f"{type(error).__name__}: {error}"[:200]})


def run_parts(case):
    """Runs a case; if that fails, each of its parts alone."""
    row = run_case(case)
    if "failed" not in row or len(case["parts"]) == 1:
        return row
    rows = {part: run_case({**case, "parts": [part]}) for part in case["parts"]}
    failed = [
        f"{part}: {row['failed']}"
        for part, row in rows.items()
        if "failed" in row
    ]
    found = {
        name: value for row in rows.values() for name, value in row.items()
    }
    if failed:
        found["failed"] = "; ".join(failed)
    return found


def run_all(arguments):
    from audio_tf import attention
    from audio_tf.ops.checks import check_choice

    for mechanism in arguments.mechanisms or ():
        check_choice("mechanisms", mechanism, attention.ATTENTIONS)
    out = pathlib.Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(out)
    known = {key(row["case"]) for row in rows if "failed" not in row}
    cases = [
        case
        for case in cases_of(arguments, list(attention.ATTENTIONS))
        if key(case) not in known
    ]
    for number, case in enumerate(cases, 1):
        start = time.monotonic()
        row = {"case": case, **run_parts(case)}
        with out.open("a") as file:
            print(json.dumps(row), file=file)
        took = time.monotonic() - start
        print(f"{number} of {len(cases)}, {took:.0f} s: {row}", flush=True)


def key(case):
    """Returns a case as text, which is equal for equal cases."""
    return json.dumps(case, sort_keys=True)


def cases_of(arguments, names):
    """Lists the cases that are asked for, the shortest clips first.

    Args:
        arguments: namespace of the flags.
        names: list of str, the attentions if none are asked for.
    """
    found, names = [], arguments.mechanisms or names
    for round_index in range(arguments.rounds):
        for length in arguments.lengths:
            turn = round_index * (len(names) // arguments.rounds + 1)
            turn %= len(names)
            for mechanism in names[turn:] + names[:turn]:
                found.append(
                    {
                        "mechanism": mechanism,
                        "length": length,
                        "round": round_index,
                        "parts": list(arguments.parts),
                        "against_full": not arguments.alone,
                        "batch": min(4, max(1, 4000 // length)),
                        "xla": arguments.xla,
                        "budget_s": arguments.budget_s,
                        "repeats": arguments.repeats,
                    }
                )
    return found


def read_rows(out):
    """Reads the rows of a file, of each case the last one."""
    if not out.exists():
        return []
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return list({key(row["case"]): row for row in rows}.values())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--mechanisms", nargs="+")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--budget-s", type=float, default=3.0, help="for one figure's calls"
    )
    parser.add_argument("--repeats", type=int, default=3, help="calls at least")
    parser.add_argument("--xla", action="store_true")
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument(
        "--alone",
        action="store_true",
        help="without `full` in turn, which may not fit",
    )
    parser.add_argument("--out", default="runs/attention.jsonl")
    arguments = parser.parse_args()
    run_all(arguments)


if __name__ == "__main__":
    main()
