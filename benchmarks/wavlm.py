"""WavLM beside that of `transformers`: time and memory of the same input.

    make test-peers  # the environment that has both
    .venv-peers/bin/python benchmarks/wavlm.py --seconds 5 --batch 1

Both have the same random weights, converted as a published checkpoint is.
Each way to compute has a process of its own and they take turns, so that what
else the machine does meets all alike; medians, the ratio to `transformers` of
each turn, and each process' largest memory. Outputs are compared first. One
JSON object a line.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import resource
import statistics
import tempfile
import time

import numpy as np

SIZES = {
    "base": {"feat_extract_norm": "group"},
    "large": {
        "feat_extract_norm": "layer",
        "do_stable_layer_norm": True,
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
}
# How far outputs of unit variance may be apart.
TOLERANCE = 1e-3


def write_checkpoint(size, folder):
    """Writes random weights as `transformers` publishes them."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.WavLMConfig(
        conv_kernel=[10, 3, 3, 3, 3, 2, 2], **SIZES[size]
    )
    transformers.WavLMModel(config).save_pretrained(folder)


def torch_model(folder, threads):
    """`transformers`' own, eager, as its users run it."""
    import torch
    import transformers

    torch.set_num_threads(threads)
    model = transformers.WavLMModel.from_pretrained(folder).eval()

    def run(x):
        with torch.inference_mode():
            return model(torch.tensor(x)).last_hidden_state.numpy()

    return run


def keras_model(folder, threads, jit_compile):
    """Ours as one graph of TensorFlow, through XLA or not."""
    import tensorflow as tf

    from audio_tf.models import AudioBackbone

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    model = AudioBackbone.from_preset(str(folder), normalize_waveform=False)
    graph = tf.function(
        lambda x: model(x, training=False)["sequence_output"],
        jit_compile=jit_compile,
    )
    return lambda x: graph(tf.constant(x)).numpy()


WAYS = {
    "transformers": torch_model,
    "graph": lambda folder, threads: keras_model(folder, threads, False),
    "xla": lambda folder, threads: keras_model(folder, threads, True),
}


def serve(way, folder, x, threads, pipe):
    """Computes the input each time that it is asked to, in a process."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    run = WAYS[way](folder, threads)
    pipe.send(run(x))
    while pipe.recv():
        start = time.perf_counter()
        run(x)
        pipe.send(time.perf_counter() - start)
    pipe.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    x = np.random.default_rng(0).uniform(
        -0.5, 0.5, (arguments.batch, round(16_000 * arguments.seconds))
    )
    x = x.astype("float32")
    context, pipes, outputs = multiprocessing.get_context("spawn"), {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        writer = context.Process(
            target=write_checkpoint, args=(arguments.size, folder)
        )
        writer.start()
        writer.join()
        for way in WAYS:
            pipes[way], theirs = context.Pipe()
            context.Process(
                target=serve,
                args=(way, folder, x, arguments.threads, theirs),
                daemon=True,
            ).start()
            outputs[way] = pipes[way].recv()
        for way in WAYS:
            apart = np.abs(outputs[way] - outputs["transformers"]).max()
            if apart > TOLERANCE:
                raise SystemExit(f"{way} computes something else: {apart:.1e}")
        times = {way: [] for way in WAYS}
        for turn in range(arguments.turns):
            for way in WAYS:
                pipes[way].send(True)
                times[way].append(pipes[way].recv())
        for way in WAYS:
            pipes[way].send(False)
            ratios = [
                own / other
                for own, other in zip(
                    times[way], times["transformers"], strict=True
                )
            ]
            row = {
                "way": way,
                **vars(arguments),
                "median_ms": 1e3 * statistics.median(times[way]),
                "ratio": statistics.median(ratios),
                "peak_mb": pipes[way].recv(),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
