"""Is `full` a fair baseline? Full attention in four forms, in one run.

    python benchmarks/attention_forms.py

768 wide, 12 heads, one clip, with a padding mask: inference, and the gradients
of all weights; with and without XLA; medians of calls in turn.
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from attention import DIM, HEADS, clips  # noqa: E402

FORMS = ("full", "keras.layers.MultiHeadAttention", "einsum", "matmul")


def measure(length, xla, repeats):
    """Returns the median seconds of each form; they are called in turn."""
    import keras
    import tensorflow as tf

    from audio_tf import attention

    size = DIM // HEADS
    x, mask = clips(1, length)
    ours = attention.create("full", num_heads=HEADS, key_dim=size, causal=False)
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
        "full": (
            lambda: ours(x, mask=mask),
            [weight.value for weight in ours.trainable_variables],
        ),
        "keras.layers.MultiHeadAttention": (
            lambda: keras_mha(x, x, attention_mask=mask[:, tf.newaxis]),
            [weight.value for weight in keras_mha.trainable_variables],
        ),
        "einsum": (by_einsum, kernels + biases),
        "matmul": (by_matmul, kernels + biases),
    }
    runs = {}
    for name, (form, variables) in forms.items():

        def gradient(form=form, variables=variables):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(form()))
            gradients = tape.gradient(loss, variables)
            return tf.add_n([tf.reduce_sum(part) for part in gradients])

        for kind, function in (("inference", form), ("gradient", gradient)):
            compiled = tf.function(function, jit_compile=xla)
            compiled(), compiled()
            runs[name, kind] = compiled
    taken = {key: [] for key in runs}
    for _ in range(repeats):
        for key, run in runs.items():
            begin = time.perf_counter()
            tf.nest.flatten(run())[0].numpy()
            taken[key].append(time.perf_counter() - begin)
    return {key: statistics.median(values) for key, values in taken.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[500, 1000, 2000]
    )
    parser.add_argument("--repeats", type=int, default=21)
    arguments = parser.parse_args()
    print("| frames | XLA | kind | " + " | ".join(FORMS) + " | full / best |")
    print("|---|---|---|" + "---|" * (len(FORMS) + 1))
    for length in arguments.lengths:
        for xla in (False, True):
            found = measure(length, xla, arguments.repeats)
            for kind in ("inference", "gradient"):
                ms = [1000 * found[form, kind] for form in FORMS]
                cells = [f"{value:.1f} ms" for value in ms]
                print(
                    f"| {length} | {'yes' if xla else 'no'} | {kind} | "
                    + " | ".join(cells)
                    + f" | {ms[0] / min(ms[1:]):.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
