"""Every attention against `full`: time and peak memory, as ratios in one run.

    python benchmarks/attention.py                       # the whole table
    python benchmarks/attention.py --lengths 500 --mechanisms full xbox
    python benchmarks/attention.py --lengths 16000 --alone \\
        --parts encoder --mechanisms shared_qk xbox      # a long recording
    python benchmarks/attention.py --forms               # is `full` fair?

The model is the papers' encoder: 768 wide, 12 heads, a feed-forward of 3072
with GELU, one layer applied six times, post-norm, with a padding mask as every
model of this library passes one; a clip at a time for inference, up to four
clips, 4000 frames at most, for training. `sublayer` is the attention alone,
with its projections. A training step is forward, backward and Adam, without
dropout.

Each case runs in a process of its own, so that peaks are true: first the
mechanism alone, for the peak, then in turn with `full`, for the times: a ratio
is the median over pairs of calls, and a table has the median of the rounds.
Peak memory is what the training step adds to the resident size of the process
before the model is built. Random Synthesizers are folded for inference, as
they are deployed. Results go to --out as JSON lines, from which a stopped run goes on.
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
PARTS = ("sublayer", "encoder", "training")
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


def in_turn(runs, budget_s, least):
    """Seconds of functions that are called in turn, after one call each."""
    for run in runs.values():
        run()
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
    """One mechanism at one length, in turn with `full`, in this process."""
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
            compare(part, runs)
    result["peak_mib"] = peak_mib() - before
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
                    "parts": arguments.parts,
                    "against_full": not arguments.alone,
                    "batch": min(4, max(1, 4000 // length)),
                    "xla": arguments.xla,
                    "budget_s": arguments.budget_s,
                    "repeats": arguments.repeats,
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
            case = {"forms": True, "length": length, "xla": xla, "repeats": 31}
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
    """The cost model's ratios of multiply-adds, for the times."""
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


def report(rows):
    """The tables of RESULTS.md: ratios, and in brackets the cost model's."""
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
        itself = [
            statistics.median(
                row[key]
                for row in rows
                if key in row
                and row["case"]["mechanism"] == "full"
                and row["case"]["length"] == length
            )
            for length in lengths
        ]
        unit = "MiB" if key.endswith("_mib") else "s"
        table.append(
            ["`full`, itself", *(f"{value:.3g} {unit}" for value in itself)]
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
    parser.add_argument("--plot", help="PNG of the ratios over the length")
    parser.add_argument(
        "--report", action="store_true", help="of --out, without measuring"
    )
    parser.add_argument(
        "--forms", action="store_true", help="full attention in four forms"
    )
    arguments = parser.parse_args()
    if arguments.case:
        case = json.loads(arguments.case)
        found = measure_forms(case) if "forms" in case else measure(case)
        print(json.dumps(found))
        return
    if arguments.forms:
        run_forms(arguments.lengths)
        return
    if arguments.report:
        rows = read_rows(pathlib.Path(arguments.out))
    else:
        rows = run_all(arguments)
    print(report(rows))
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
