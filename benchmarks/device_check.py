"""Does an accelerator compute what the processor does? On JAX, in one run.

    KERAS_BACKEND=jax python benchmarks/device_check.py
    KERAS_BACKEND=jax JAX_DEFAULT_MATMUL_PRECISION=highest python ...

Every attention, causal where it can be and not, at two clips of 300 frames with
padding, 64 wide: output and gradients of a loss, on the first device of JAX and
on the processor, `||theirs - ours|| / ||theirs||` with the processor as theirs.
Every released classifier: the largest difference of its scores of four sounds,
and how many keep their first label; every released encoder: as the attentions.
Flash attention in bfloat16, on an odd number of frames too, is held against the
map in float32 on the processor, which bfloat16 alone puts 0.01 or so apart.
Without the second line's variable the matrix units of a GPU round float32 to
TF32, and where an attention hashes, frames may change their bucket. It takes
minutes, for all is compiled for both. TensorFlow is not needed.
"""

import argparse
import os

os.environ.setdefault("KERAS_BACKEND", "jax")

FRAMES, DIM, HEADS = 300, 64, 4


def apart(ours, theirs):
    """Returns the norm of a difference of trees by that of the second."""
    import jax
    import numpy as np

    flat = [
        np.concatenate(
            [
                np.ravel(leaf).astype(np.float64)
                for leaf in jax.tree.leaves(tree)
            ]
        )
        for tree in (ours, theirs)
    ]
    return np.linalg.norm(flat[0] - flat[1]) / np.linalg.norm(flat[1])


def on_both(function, arguments):
    """Returns what a function gives on the first device and the processor."""
    import jax

    run = jax.jit(function)
    return [
        jax.device_get(run(*jax.device_put(arguments, device)))
        for device in (jax.devices()[0], jax.devices("cpu")[0])
    ]


def stateless(model):
    """Returns a function of variables and arguments, and the variables."""
    variables = (
        [v.value for v in model.trainable_variables],
        [v.value for v in model.non_trainable_variables],
    )

    def call(trainable, others, *arguments, **named):
        return model.stateless_call(
            trainable, others, *arguments, training=False, **named
        )[0]

    return call, variables


def make_case(name, causal, dtype="float32", frames=FRAMES):
    """Builds an attention, from one seed, of clips of `frames` and fewer.

    Returns:
        A function of weights, other variables, clips and mask to gradients of
        a loss and the output, and these arguments of it.
    """
    import jax
    import keras
    from jax import numpy as jnp

    from audio_tf import attention

    keras.utils.set_random_seed(0)
    layer = attention.create(
        name,
        num_heads=HEADS,
        key_dim=DIM // HEADS,
        causal=causal,
        max_length=frames,
        dtype=dtype,
    )
    x = keras.random.normal((2, frames, DIM))
    mask = jnp.arange(frames) < jnp.array([[frames], [frames - 61]])
    layer.build(x.shape)
    call, (trainable, others) = stateless(layer)

    def both(trainable, others, x, mask):
        def loss(trainable, x):
            found = call(trainable, others, x, mask=mask).astype("float32")
            return jnp.mean(jnp.square(found)), found

        return jax.grad(loss, argnums=(0, 1), has_aux=True)(trainable, x)

    return both, (trainable, others, x, mask)


def show(title, found, expected):
    """Prints how far pairs of gradients and an output are apart."""
    (gradients, found), (their_gradients, theirs) = found, expected
    print(
        f"{title} output {apart(found, theirs):.1e} gradients "
        f"{apart(gradients, their_gradients):.1e}",
        flush=True,
    )


def check_attention(name, causal):
    title = f"{name:32} {'causal' if causal else '':7}"
    show(title, *on_both(*make_case(name, causal)))


def check_flash(name, causal, frames):
    import jax
    from jax import numpy as jnp

    from audio_tf import compat

    found = []
    for dtype, device in (
        ("mixed_bfloat16", jax.devices()[0]),
        ("float32", jax.devices("cpu")[0]),
    ):
        function, arguments = make_case(name, causal, dtype, frames)
        arguments = jax.device_put(arguments, device)
        found.append(jax.device_get(jax.jit(function)(*arguments)))
    query = jnp.zeros((2, HEADS, frames, DIM // HEADS), "bfloat16")
    flash = compat.has_flash_attention(query, query, query)
    show(
        f"{name:14} {'causal' if causal else '':7} {frames} frames, "
        f"{'flash' if flash else 'no flash here'}:",
        *found,
    )


def check_model(name, model):
    import numpy as np

    from audio_tf import models

    rng = np.random.default_rng(0)
    seconds = 2 * model.sample_rate_hz
    loud = np.array([[0.5], [0.1], [0.01], [0.3]])
    waveform = (loud * rng.standard_normal((4, seconds))).astype("float32")
    tone = np.sin(np.arange(seconds) * np.arange(1, 5)[:, None] / 9)
    inputs = {
        "waveform": (waveform + 0.3 * tone).astype("float32"),
        "lengths": np.array([seconds, seconds - 1, 12_345, 8_000], "int32"),
    }
    call, (trainable, others) = stateless(model)
    ours, theirs = on_both(call, (trainable, others, inputs))
    text = f"{name:40} {apart(ours, theirs):.1e}"
    if isinstance(model, models.AudioClassifier):
        same = np.argmax(ours, -1) == np.argmax(theirs, -1)
        text += (
            f", largest difference {np.abs(ours - theirs).max():.1e}, "
            f"{same.sum()} of {same.size} first labels the same"
        )
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args()

    import jax
    import keras

    from audio_tf import attention, models

    if keras.backend.backend() != "jax":
        parser.error("this is of JAX: KERAS_BACKEND=jax")
    print(jax.devices()[0].device_kind, "jax", jax.__version__)
    for kind in (models.AudioClassifier, models.SpeechEncoder):
        for name in kind.presets:
            check_model(name, kind.from_preset(name))
    for name in attention.ATTENTIONS:
        if attention.find(name).takes_flash_attention:
            for causal in (False, True):
                for frames in (FRAMES, FRAMES - 1):
                    check_flash(name, causal, frames)
    for name in attention.ATTENTIONS:
        for causal in (False, True):
            if not causal or attention.find(name).supports_causal:
                check_attention(name, causal)


if __name__ == "__main__":
    main()
