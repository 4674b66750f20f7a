"""Every attention against `full`: time and peak memory, as ratios in one run.

    python benchmarks/attention.py                       # the whole table
    python benchmarks/attention.py --lengths 500 --mechanisms full xbox
    python benchmarks/attention.py --lengths 16000 --no-training \\
        --mechanisms sparse_strided xbox                 # a long recording
    python benchmarks/attention.py --forms               # is `full` fair?

The model is the papers' encoder: 768 wide, 12 heads, a feed-forward of 3072
with GELU, one layer applied six times, post-norm, with a padding mask as every
model of this library passes one; a clip at a time for inference, up to four
clips, 4000 frames at most, for training. `sublayer` is the attention alone,
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
FORMS = ("full", "keras.layers.MultiHeadAttention", "einsum", "matmul")
# Figures of a case, and what they are called.
KEYS = {
    "sublayer_s": "attention alone, inference",
    "encoder_s": "encoder, inference",
    "training_s": "encoder, training step",
    "training_mib": "encoder, peak memory of training",
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
            lambda: step(x, mask).numpy(), case["budget_s"], least=3
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


def measure_forms(case):
    """Full attention written in four ways, interleaved in this process."""
    import keras
    import tensorflow as tf

    from audio_tf import attention

    length, size = case["length"], DIM // HEADS
    x, mask = clips(1, length)
    ours = attention.create("full", num_heads=HEADS, key_dim=size)
    ours.build(x.shape)
    keras_mha = keras.layers.MultiHeadAttention(HEADS, size)
    keras_mha.build(x.shape, x.shape)
    kernels = [
        tf.Variable(tf.random.normal((DIM, DIM), stddev=0.03, seed=index))
        for index in range(4)
    ]
    biases = [tf.Variable(tf.zeros(DIM)) for _ in range(4)]
    far = tf.where(mask, 0.0, -1e9)[:, tf.newaxis, tf.newaxis, :]

    def by_einsum():
        query, key, value = (
            tf.einsum(
                "btf,fhd->bthd", x, tf.reshape(kernel, (DIM, HEADS, size))
            )
            + tf.reshape(bias, (HEADS, size))
            for kernel, bias in zip(kernels[:3], biases, strict=False)
        )
        scores = tf.einsum("bthd,bshd->bhts", query * size**-0.5, key)
        weights = tf.nn.softmax(scores + far)
        mixed = tf.einsum("bhts,bshd->bthd", weights, value)
        kernel = tf.reshape(kernels[3], (HEADS, size, DIM))
        return tf.einsum("bthd,hdf->btf", mixed, kernel) + biases[3]

    def by_matmul():
        query, key, value = (
            tf.transpose(
                tf.reshape(
                    tf.matmul(x, kernel) + bias, (-1, length, HEADS, size)
                ),
                (0, 2, 1, 3),
            )
            for kernel, bias in zip(kernels[:3], biases, strict=False)
        )
        scores = tf.matmul(query * size**-0.5, key, transpose_b=True)
        mixed = tf.matmul(tf.nn.softmax(scores + far), value)
        mixed = tf.reshape(tf.transpose(mixed, (0, 2, 1, 3)), (-1, length, DIM))
        return tf.matmul(mixed, kernels[3]) + biases[3]

    forms = {
        "full": (lambda: ours(x, mask=mask), ours.trainable_variables),
        "keras.layers.MultiHeadAttention": (
            lambda: keras_mha(x, x, attention_mask=mask[:, tf.newaxis]),
            keras_mha.trainable_variables,
        ),
        "einsum": (by_einsum, kernels + biases),
        "matmul": (by_matmul, kernels + biases),
    }
    runs = {}
    for name, (form, variables) in forms.items():
        variables = [getattr(v, "value", v) for v in variables]
        if name in ("einsum", "matmul"):
            variables = kernels + biases

        def gradient(form=form, variables=variables):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(form()))
            gradients = tape.gradient(loss, variables)
            return tf.add_n([tf.reduce_sum(part) for part in gradients])

        for kind, function in (("inference", form), ("gradient", gradient)):
            compiled = tf.function(function, jit_compile=case["xla"])
            compiled(), compiled()
            runs[name, kind] = compiled
    taken = {key: [] for key in runs}
    for _ in range(case["repeats"]):
        for key, run in runs.items():
            begin = time.perf_counter()
            tf.nest.flatten(run())[0].numpy()
            taken[key].append(time.perf_counter() - begin)
    return [
        {"form": name, "kind": kind, "s": statistics.median(values)}
        for (name, kind), values in taken.items()
    ]


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
    from audio_tf import attention

    out = pathlib.Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(out)
    known = {json.dumps(row["case"], sort_keys=True) for row in rows}
    for round_index in range(arguments.rounds):
        for length in arguments.lengths:
            names = arguments.mechanisms or list(attention.ATTENTIONS)
            turn = round_index * (len(names) // arguments.rounds + 1)
            for mechanism in (
                names[turn % len(names) :] + names[: turn % len(names)]
            ):
                case = {
                    "mechanism": mechanism,
                    "length": length,
                    "round": round_index,
                    "training": arguments.training,
                    "batch": min(4, max(1, 4000 // length)),
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


def run_forms(lengths):
    print("| frames | XLA | kind | " + " | ".join(FORMS) + " | full / best |")
    print("|---|---|---|" + "---|" * (len(FORMS) + 1))
    for length in lengths:
        for xla in (False, True):
            case = {"length": length, "xla": xla, "repeats": 31}
            if length > 1000:
                case["repeats"] = 9
            found = run_case(case)
            for kind in ("inference", "gradient"):
                ms = {
                    row["form"]: 1000 * row["s"]
                    for row in found
                    if row["kind"] == kind
                }
                best = min(ms[form] for form in FORMS[1:])
                cells = [f"{ms[form]:.1f} ms" for form in FORMS]
                print(
                    f"| {length} | {'yes' if xla else 'no'} | {kind} | "
                    + " | ".join(cells)
                    + f" | {ms['full'] / best:.2f} |",
                    flush=True,
                )


def ratios(rows, key):
    """Median over rounds of each mechanism's ratio to `full`."""
    values = {
        (
            row["case"]["mechanism"],
            row["case"]["length"],
            row["case"]["round"],
        ): row[key]
        for row in rows
        if key in row
    }
    found = {}
    for (mechanism, length, turn), value in values.items():
        base = values.get(("full", length, turn))
        if base:
            found.setdefault((mechanism, length), []).append(value / base)
    return {case: statistics.median(of) for case, of in found.items()}


def report(rows):
    """The tables of RESULTS.md, from the rows of a run."""
    lengths = sorted({row["case"]["length"] for row in rows})
    names = list(dict.fromkeys(row["case"]["mechanism"] for row in rows))
    lines = []
    for key, title in KEYS.items():
        found = ratios(rows, key)
        if not found:
            continue
        absolute = {
            row["case"]["length"]: row[key]
            for row in rows
            if key in row and row["case"]["mechanism"] == "full"
        }
        unit, scale = ("s", 1) if key.endswith("_s") else ("MiB", 1)
        extra = ["paper, 500"] if key == "encoder_s" else []
        extra += ["multiply-adds, 500"] if key == "encoder_s" else []
        head = [title, *map(str, lengths), *extra]
        lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        first = [f"{absolute[n] * scale:.3g} {unit}" for n in lengths]
        lines.append(
            "| " + " | ".join(["full, itself", *first, *[""] * len(extra)])
        )
        lines[-1] += " |"
        for name in names:
            if name == "full":
                continue
            cells = [
                f"{found[name, n]:.2f}" if (name, n) in found else "-"
                for n in lengths
            ]
            if extra:
                paper = PAPER_S.get(name)
                cells.append(f"{paper / PAPER_S['full']:.2f}" if paper else "-")
                model = ratios(rows, "multiply_adds").get((name, 500))
                cells.append(f"{model:.2f}" if model else "-")
            lines.append("| " + " | ".join([name, *cells]) + " |")
        lines.append("")
    failed = [row for row in rows if "failed" in row]
    lines += [f"{row['case']}: {row['failed']}" for row in failed]
    return "\n".join(lines)


def plot(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lengths = sorted({row["case"]["length"] for row in rows})
    names = list(dict.fromkeys(row["case"]["mechanism"] for row in rows))
    keys = [key for key in KEYS if ratios(rows, key)]
    figure, panels = pyplot.subplots(
        1, len(keys), figsize=(4.2 * len(keys), 5.5), squeeze=False
    )
    styles = ["-", "--", ":"]
    for panel, key in zip(panels[0], keys, strict=True):
        found = ratios(rows, key)
        for index, name in enumerate(names):
            points = [
                (n, found[name, n]) for n in lengths if (name, n) in found
            ]
            panel.plot(
                *zip(*points, strict=True),
                styles[index // 10 % 3],
                color=f"C{index % 10}",
                marker=".",
                label=name,
            )
        panel.set(xscale="log", xlabel="frames", title=KEYS[key], ylim=0)
        panel.set_xticks(lengths, [str(n) for n in lengths], minor=False)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("ratio to full attention")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(),
        loc="lower center",
        ncols=5,
        fontsize=8,
    )
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    figure.savefig(path, dpi=120)


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
    parser.add_argument("--plot", help="PNG of the ratios over the length")
    parser.add_argument("--forms", action="store_true")
    arguments = parser.parse_args()
    if arguments.case:
        case = json.loads(arguments.case)
        found = measure_forms(case) if "repeats" in case else measure(case)
        print(json.dumps(found))
        return
    if arguments.forms:
        run_forms(arguments.lengths)
        return
    rows = run_all(arguments)
    print(report(rows))
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
