"""Small layers, inputs and masks that the attention tests share."""

import keras
import naive
import naive_gaussian
import numpy as np
import pytest
from keras import ops

from audio_tf import attention

# Heads of a Gaussian attention cut the features: 33 is 3 times 11.
B, T, F, H, D = 2, 7, 33, 3, 5

# What each mechanism is tested with, beside `num_heads=H` and `key_dim=D`.
SMALL = {
    "grouped_query": {"num_heads": 6, "num_key_value_heads": 2},
    # Distances of one frame, of ranges, and those that are alike.
    "gated_relative": {"num_buckets": 16, "max_distance": 9},
    "sparse_strided": {"stride": 3},
    "sparse_fixed": {"stride": 3, "num_columns": 2},
    **{name: {"num_candidates": 3, "seed": 5} for name in naive.HASHES},
    "dense_synthesizer": {"max_length": 17, "intermediate_dim": 2},
    "dense_synthesizer_per_head": {"max_length": 17, "intermediate_dim": 2},
    "random_synthesizer": {"max_length": 17},
    # Heads 4 and 6 count from the end, heads from 7 are random.
    "crafted_synthesizer": {"max_length": 17, "num_heads": 8, "key_dim": 3},
    "raganato_synthesizer": {"max_length": 17, "num_heads": 8, "key_dim": 3},
    "local_dense_synthesizer": {"context_size": 5},
    "grouped_query_gaussian_adaptive": {
        "num_query_heads": 3,
        "num_key_value_heads": 1,
    },
}

# Whose weights are a table, the same for every clip.
TABLES = ["random_synthesizer", "crafted_synthesizer", "raganato_synthesizer"]

# Entries with further arguments, which keep the contract as well.
FORMS = {
    "gaussian_adaptive/over_features": {"axis": -1},
    "gaussian_adaptive/package": {"variant": "package", "num_gaussians": 2},
    "grouped_query_gaussian_adaptive/narrow": {
        "axis": -1,
        "hidden_dim": 44,
        "num_query_heads": 4,
        "num_key_value_heads": 2,
        "scale_twice": True,
    },
    "bi_skewed_gaussian/over_features": {"axis": -1},
}
CASES = [*attention.ATTENTIONS, *FORMS]

# Whose graph is that of another case but for a formula or a table.
ALIKE = {
    "dense_synthesizer_per_head": "dense_synthesizer",
    "crafted_synthesizer": "random_synthesizer",
    "raganato_synthesizer": "crafted_synthesizer",
    "grouped_query_gaussian_adaptive/narrow": "grouped_query_gaussian_adaptive",
    "bi_skewed_gaussian/over_features": "gaussian_adaptive/over_features",
}
# Beside these, whose class alone is another, and not its graph's shapes.
SIBLINGS = {
    "shared_qk": "full",
    "xbox": "sign_alsh",
    "xbox_qnf": "sign_alsh",
    "simple_lsh": "sign_alsh",
    "simple_alsh": "sign_alsh",
    "skewed_gaussian": "bi_skewed_gaussian",
    **ALIKE,
}
DISTINCT = [name for name in CASES if name not in SIBLINGS]


def alike_are_slow(names, alike=ALIKE):
    """The names as parameters, of which those like another are slow."""
    return [
        pytest.param(name, marks=pytest.mark.slow) if name in alike else name
        for name in names
    ]


REFERENCES = {**naive.ATTENTIONS, **naive_gaussian.ATTENTIONS}

# Those that weight pairs of frames.
MECHANISMS = [
    name
    for name in attention.ATTENTIONS
    if attention.find(name).map_kind == "frames"
]
every = pytest.mark.parametrize("name", MECHANISMS)


def mechanism_of(case):
    return case.split("/")[0]


def reference(case):
    """`(layer, x, mask) -> (y, weights)`, slow and obviously right."""
    return REFERENCES[mechanism_of(case)]


def options(case):
    """What a case is built with, beside `num_heads=H` and `key_dim=D`."""
    return {**SMALL.get(mechanism_of(case), {}), **FORMS.get(case, {})}


def tolerance(case):
    """Layer normalisation and narrow Gaussians enlarge what rounding leaves."""
    return 1e-5 if mechanism_of(case) in naive_gaussian.ATTENTIONS else 2e-6


def fresh(case, /, **kwargs):
    """A layer that is not built."""
    common = {"num_heads": H, "key_dim": D, "causal": False}
    return attention.create(
        mechanism_of(case), **{**common, **options(case), **kwargs}
    )


def make(case, /, **kwargs):
    layer = fresh(case, **kwargs)
    layer.build((None, None, F))
    return layer


def shaken(layer, rng, by=0.5):
    """The layer with noise in its weights, as if it had been trained."""
    for weight in layer.trainable_weights:
        noise = by * rng.standard_normal(weight.shape)
        weight.assign(weight + noise.astype("float32"))
    return layer


def causal_choices(case):
    return [False, True] if fresh(case).supports_causal else [False]


def inputs(rng, length=T, batch=B):
    return rng.standard_normal((batch, length, F)).astype("float32")


def padding(length=T, real=(T, 4)):
    return np.arange(length) < np.array(real)[:, None]


def gaps():
    """Padding before, between and after the real frames."""
    return np.array([[0, 1, 0, 1, 1, 1, 0], [1, 1, 1, 0, 0, 1, 1]], "bool")


def any_padding():
    """A mask of a whole clip, a short one, two with gaps and an empty one."""
    return np.concatenate([padding(), gaps(), padding(real=(0,))])


def silent_and_loud(rng, junk, scale=1.0, real=(4,)):
    """Clips whose padding holds zeros, and the same clips with junk in it.

    Args:
        rng: generator of the clips.
        junk: what the padding holds, each in a clip of its own.
        scale: factor of the real frames.
        real: real frames of the clips with padding, each beside each junk.

    Returns:
        Two arrays `(clips, T, F)` and their mask. The first clip is whole.
    """
    lengths = [T, *(n for n in real for _ in junk)]
    mask = padding(real=lengths)
    silent = scale * inputs(rng, batch=len(lengths)) * mask[..., None]
    loud = silent.copy()
    for clip, value in enumerate(len(real) * list(junk), 1):
        loud[clip, lengths[clip] :] = value
        loud[clip, lengths[clip]] *= np.sign(rng.standard_normal(F))
    return silent, loud, mask


def assert_equals_naive(name, layer, x, mask, atol=None):
    """Output and map at real frames; padded ones may hold anything."""
    atol = atol or tolerance(name)
    y, weights = layer(x, mask=mask, return_attention_scores=True)
    expected, expected_weights = reference(name)(layer, x, mask)
    assert weights.shape == expected_weights.shape
    assert_equal_where_real(y, expected, mask, atol)
    if layer.map_kind == "frames":
        weights = np.swapaxes(weights, 1, 2)
        expected_weights = expected_weights.swapaxes(1, 2)
    assert_equal_where_real(weights, expected_weights, mask, atol)


def assert_equal_where_real(found, expected, mask, atol=2e-6, name=""):
    """Compares `(B, T, ...)` at the frames that the mask says are real."""
    found, expected = ops.convert_to_numpy(found), np.asarray(expected)
    assert found.shape == expected.shape
    real = np.ones(found.shape[:2], "bool") if mask is None else mask
    # Rounding grows with the values.
    np.testing.assert_allclose(
        found[real], expected[real], atol=atol, rtol=2e-6, err_msg=name
    )


def sum_of_squares(y, mask):
    y = ops.cast(y, "float32")
    if mask is not None:
        y = ops.where(mask[..., None], y, 0.0)
    return ops.sum(y**2)


def gradients(layer, x, mask, scale=1.0):
    """Sum of squared outputs at real frames, scaled; its gradients.

    The first is that of `x`, the others those of the trainable weights.
    """
    backend = keras.backend.backend()
    weights = layer.trainable_weights
    if backend == "tensorflow":
        import tensorflow as tf

        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = scale * sum_of_squares(layer(x, mask=mask), mask)
        found = tape.gradient(loss, [x, *(w.value for w in weights)])
    elif backend == "jax":
        import jax

        fixed = [w.value for w in layer.non_trainable_variables]

        def loss_of(x, values):
            y, _ = layer.stateless_call(values, fixed, x, mask=mask)
            return scale * sum_of_squares(y, mask)

        loss, (by_x, by_weights) = jax.jit(jax.value_and_grad(loss_of, (0, 1)))(
            x, [w.value for w in weights]
        )
        found = [by_x, *by_weights]
    else:
        import torch

        x = torch.tensor(x, requires_grad=True)
        loss = scale * sum_of_squares(layer(x, mask=mask), mask)
        # Not `backward`, which would add to what the last call has found.
        found = torch.autograd.grad(
            loss, [x, *(w.value for w in weights)], allow_unused=True
        )
    return loss, [None if g is None else ops.convert_to_numpy(g) for g in found]


def compiled(layer, signature=False, by_xla=True):
    """`(x, mask) -> y` as XLA compiles it, or on TensorFlow a graph alone."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return jax.jit(lambda x, mask: layer(x, mask=mask))
    if backend != "tensorflow":
        pytest.skip("no compiler for this backend")
    import tensorflow as tf

    return tf.function(
        lambda x, mask: layer(x, mask=mask),
        jit_compile=by_xla,
        input_signature=[
            tf.TensorSpec([None, None, F]),
            tf.TensorSpec([None, None], "bool"),
        ]
        if signature
        else None,
    )


def names_of_weights(layer):
    """Paths without the layer's own name."""
    return {weight.path.split("/", 1)[1] for weight in layer.weights}


def build(mechanism, dim, **kwargs):
    """A layer for `dim` features whose projections are the identity."""
    layer = attention.create(mechanism, **{"causal": False, **kwargs})
    layer.build((None, None, dim))
    for part in ("query", "key", "value", "output", "hidden"):
        dense = getattr(layer, f"{part}_dense", None)
        if dense is not None:
            dense.kernel.assign(np.eye(*dense.kernel.shape))
            dense.bias.assign(np.zeros(dense.bias.shape))
    return layer


def weights_of(layer, x, mask=None):
    _, weights = layer(x, mask=mask, return_attention_scores=True)
    return np.asarray(weights)


def picture(weights):
    """Which weights of `(T, T)` are not zero, a row a string."""
    return ["".join(".x"[int(w > 0)] for w in row) for row in weights]
