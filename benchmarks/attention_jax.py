"""Every attention against `full` on one device of JAX, as ratios in one run.

    KERAS_BACKEND=jax python benchmarks/attention_jax.py --out runs/jax.jsonl
    ... --lengths 2000 --dtypes float32 --mechanisms full xbox

Attention alone, with its projections, 768 wide and 12 heads, with a padding
mask: inference, and `gradient`, which is forward and backward to all weights
and the input. A batch has as many clips as make 32,000 frames. Each case is
compiled whole and called in turn with `full`; a figure is the median over
turns, of calls that are enqueued together and waited for once, as a device
works. Two rows are not ours, `keras.layers.MultiHeadAttention` as it is and
with its `flash_attention`. What does not fit or does not run has its error as
a row. TensorFlow is not needed. Rows go to --out as they are found, from which
a stopped run goes on; what failed is tried again. --limit-s ends it in time.
"""

import argparse
import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import statistics
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

from attention import DIM, HEADS, read_rows  # noqa: E402

FRAMES = 32_000
LENGTHS = (2000, 8000, 500)
DTYPES = ("mixed_bfloat16", "float32")
KINDS = ("inference", "gradient")
PLACE = ("length", "dtype", "kind")
KERAS = "keras.layers.MultiHeadAttention"
PLAIN = "full, without flash"


def create(name, length, dtype, kind):
    """Returns a built layer and a function of `x` and `mask` to its arguments.

    Random Synthesizers are folded for inference, as they are deployed.
    """
    import keras
    from jax import numpy as jnp

    from audio_tf import attention

    size, shape = DIM // HEADS, (max(1, FRAMES // length), length, DIM)
    if name == KERAS:
        layer = keras.layers.MultiHeadAttention(HEADS, size, dtype=dtype)
        layer.build(shape, shape)

        def arguments(x, mask):
            # cuDNN takes a mask of all pairs alone, and without one of these
            # Keras does without flash.
            pairs = jnp.broadcast_to(mask[:, None], (*mask.shape, length))
            return (x, x), {"attention_mask": pairs}

        return layer, arguments
    options = {}
    if name == PLAIN:
        name, options = "full", {"flash_attention": False}
    layer = attention.create(
        name,
        **options,
        num_heads=HEADS,
        key_dim=size,
        causal=False,
        max_length=length,
        dtype=dtype,
    )
    layer.build(shape)
    if kind == "inference" and layer.foldable:
        layer.fold()
    return layer, lambda x, mask: ((x,), {"mask": mask})


def compiled(name, length, dtype, kind, x, mask):
    """Returns a function of nothing that enqueues the case once, and bytes.

    They are what the program needs beside its inputs and outputs.
    """
    import jax
    from jax import numpy as jnp

    layer, arguments = create(name, length, dtype, kind)
    trainable = [v.value for v in layer.trainable_variables]
    others = [v.value for v in layer.non_trainable_variables]

    def forward(trainable, others, x, mask):
        positional, named = arguments(x, mask)
        training = kind == "gradient"
        found, _ = layer.stateless_call(
            trainable, others, *positional, training=training, **named
        )
        return found

    def loss(trainable, x, others, mask):
        found = forward(trainable, others, x, mask).astype("float32")
        return jnp.mean(jnp.square(found))

    if kind == "inference":
        function, values = forward, (trainable, others, x, mask)
    else:
        function = jax.grad(loss, argnums=(0, 1))
        values = (trainable, x, others, mask)
    program = jax.jit(function).lower(*values).compile()
    spare = program.memory_analysis().temp_size_in_bytes
    return functools.partial(program, *values), spare


def seconds(run, calls):
    """Returns the seconds of a call, of several that are waited for once."""
    import jax

    start = time.perf_counter()
    for _ in range(calls):
        found = run()
    jax.block_until_ready(found)
    return (time.perf_counter() - start) / calls


def turns(run, full, budget_s):
    """Returns medians of the seconds of both and of their ratio."""
    for each in (run, full):
        seconds(each, 2)
    calls = max(1, round(0.02 / max(seconds(run, 2), seconds(full, 2))))
    taken, begin = [], time.perf_counter()
    while len(taken) < 5 or time.perf_counter() - begin < budget_s:
        taken.append((seconds(run, calls), seconds(full, calls)))
    return {
        "seconds": statistics.median(pair[0] for pair in taken),
        "full_seconds": statistics.median(pair[1] for pair in taken),
        "ratio": statistics.median(ours / full for ours, full in taken),
        "turns": len(taken),
        "calls": calls,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--mechanisms", nargs="+")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument(
        "--budget-s", type=float, default=0.3, help="for one case's turns"
    )
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="that compile"
    )
    parser.add_argument(
        "--limit-s", type=float, help="begin no other length or dtype after it"
    )
    parser.add_argument("--out", default="runs/attention_jax.jsonl")
    options = parser.parse_args()

    import keras

    from audio_tf import attention
    from audio_tf.ops.checks import check_choice

    if keras.backend.backend() != "jax":
        parser.error("this measures JAX: KERAS_BACKEND=jax")
    names = [*attention.ATTENTIONS, PLAIN, KERAS]
    for name in options.mechanisms or ():
        check_choice("mechanisms", name, names)
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    known = [row["case"] for row in read_rows(out) if "failed" not in row]
    begin = time.monotonic()
    for place in itertools.product(
        options.lengths, options.dtypes, options.kinds
    ):
        cases = [
            {"mechanism": name, **dict(zip(PLACE, place, strict=True))}
            for name in options.mechanisms or names
        ]
        cases = [case for case in cases if case not in known]
        if options.limit_s and time.monotonic() - begin > options.limit_s:
            print("out of time")
            break
        if cases:
            measure(cases, options, out)


def measure(cases, options, out):
    """Measures the cases of one place and writes a row of each.

    All are compiled before any is timed, since XLA tries kernels meanwhile.
    """
    import jax
    import keras
    from jax import numpy as jnp

    place = [cases[0][name] for name in PLACE]
    length, dtype, _ = place
    dtype = keras.dtype_policies.get(dtype).compute_dtype
    x = keras.random.normal((max(1, FRAMES // length), length, DIM), seed=0)
    x = x.astype(dtype)
    mask = jnp.ones(x.shape[:2], bool).at[:, -7:].set(False)

    def compile_one(name):
        start = time.monotonic()
        try:
            run, spare = compiled(name, *place, x, mask)
        except Exception as error:  # it is a row, and the others go on
            return error, {}
        compile_s = time.monotonic() - start
        return run, {"compile_s": compile_s, "spare_mib": spare / 2**20}

    names = ["full", *(case["mechanism"] for case in cases)]
    with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
        programs = list(pool.map(compile_one, names))
    full = programs.pop(0)[0]
    for case, (run, row) in zip(cases, programs, strict=True):
        row["device"] = jax.devices()[0].device_kind
        try:
            for program in (run, full):
                if isinstance(program, Exception):
                    raise program
            row |= turns(run, full, options.budget_s)
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {error}"[:300]
        with out.open("a") as file:
            print(json.dumps({"case": case, **row}), file=file)
        brief = row.get("failed")
        if brief is None:
            brief = f"{row['ratio']:.2f} {row['seconds']:.2e} s"
            brief += f" {row['spare_mib']:.0f} MiB"
        print(*case.values(), brief, flush=True)


if __name__ == "__main__":
    main()
