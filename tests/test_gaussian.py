"""Gaussian attentions: the contract of the others, and their formulas."""

import functools

import hypothesis
import keras
import naive
import naive_gaussian
import numpy as np
import pytest
from hypothesis import strategies
from keras import ops

from audio_tf.attention.gaussian import (
    BiSkewedGaussianAttention,
    SkewedGaussianAttention,
    moments,
)
from audio_tf.attention.gaussian_adaptive import (
    GaussianAdaptiveAttention,
    GroupedQueryGaussianAdaptiveAttention,
)
from audio_tf.layers import TransformerBlock

BACKEND = keras.backend.backend()
B, H, E = 2, 3, 44
# Layer normalisation enlarges what rounding leaves.
CLOSE = 1e-5
# Heads divide the features, or the positions: the other two are primes.
SIZES = {-1: (7, 15), 1: (21, 13)}

PACKAGE = {"variant": "package", "num_gaussians": 2}
QUERIES = {"num_query_heads": 4, "embed_dim": E}
CASES = {
    "paper": (GaussianAdaptiveAttention, {}),
    "paper_over_features": (GaussianAdaptiveAttention, {"axis": -1}),
    "paper_experiment": (GaussianAdaptiveAttention, {"head_axis": 1}),
    "paper_over_features_by_position": (
        GaussianAdaptiveAttention,
        {"axis": -1, "head_axis": 1},
    ),
    "package": (GaussianAdaptiveAttention, PACKAGE),
    "package_over_features": (
        GaussianAdaptiveAttention,
        {**PACKAGE, "axis": -1, "epsilon": 0.1},
    ),
    "package_by_position": (
        GaussianAdaptiveAttention,
        {**PACKAGE, "head_axis": 1},
    ),
    "grouped_query": (GroupedQueryGaussianAdaptiveAttention, QUERIES),
    "grouped_query_experiment": (
        GroupedQueryGaussianAdaptiveAttention,
        {**QUERIES, "head_axis": 1, "scale_twice": True},
    ),
    "grouped_query_causal": (
        GroupedQueryGaussianAdaptiveAttention,
        {**QUERIES, "axis": -1, "causal": True, "use_bias": False},
    ),
    "skewed": (SkewedGaussianAttention, {}),
    "skewed_by_position": (SkewedGaussianAttention, {"head_axis": 1}),
    "bi_skewed": (BiSkewedGaussianAttention, {}),
    "bi_skewed_over_features": (BiSkewedGaussianAttention, {"axis": -1}),
}

every = pytest.mark.parametrize("name", CASES)
over_time = pytest.mark.parametrize(
    "name", [n for n, (_, kw) in CASES.items() if kw.get("head_axis") != 1]
)


def make(name, perturbed=True, **kwargs):
    """A built layer whose weights are not at their start."""
    cls, given = CASES[name]
    layer = cls(H, **{**given, **kwargs})
    length, dim = SIZES[layer.head_axis]
    layer.build((None, length if layer.head_axis == 1 else None, dim))
    if perturbed:
        rng = np.random.default_rng(11)
        for weight in layer.weights:
            value = np.asarray(weight)
            factor = rng.uniform(0.7, 1.3, value.shape)
            weight.assign(value * factor + rng.uniform(-0.3, 0.3, value.shape))
    return layer


def size(layer):
    return SIZES[layer.head_axis]


def inputs(rng, layer, batch=B, length=None):
    frames, dim = size(layer)
    x = rng.standard_normal((batch, length or frames, dim)) + 0.5
    return x.astype("float32")


def padding(layer, real=None):
    """One full clip, one whose last head, if any, is empty."""
    length = size(layer)[0]
    return np.arange(length) < np.array(real or (length, 4))[:, None]


def expected(layer, values, x, mask=None):
    entry = {
        SkewedGaussianAttention: naive_gaussian.skewed,
        BiSkewedGaussianAttention: naive_gaussian.bi_skewed,
    }.get(type(layer))
    if entry is None:
        entry = getattr(naive_gaussian, layer.variant)
    reference = naive_gaussian.gaussian_attention
    if isinstance(layer, GroupedQueryGaussianAdaptiveAttention):
        reference = naive_gaussian.grouped_query
    return reference(entry, layer, values, x, mask)


def numpy(x):
    return ops.convert_to_numpy(x)


def gradients(layer, x, mask=None):
    """Of the sum of squared outputs, by input and trainable weight."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, mask=mask)
            loss = tf.reduce_sum(tf.cast(y, "float32") ** 2)
        variables = [w.value for w in layer.trainable_weights]
        found = tape.gradient(loss, [x, *variables])
    elif BACKEND == "jax":
        import jax

        def loss(x, weights):
            fixed = [w.value for w in layer.non_trainable_variables]
            y, _ = layer.stateless_call(weights, fixed, x, mask=mask)
            return (y.astype("float32") ** 2).sum()

        weights = [w.value for w in layer.trainable_weights]
        slopes = jax.jit(jax.grad(loss, argnums=(0, 1)))
        x_found, found = slopes(x, weights)
        found = [x_found, *found]
    else:
        import torch

        x = torch.tensor(x, requires_grad=True)
        (layer(x, mask=mask).float() ** 2).sum().backward()
        found = [x.grad, *(w.value.grad for w in layer.trainable_weights)]
    return [numpy(g) for g in found]


@every
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(name, masked, rng):
    layer = make(name)
    x, mask = inputs(rng, layer), padding(layer) if masked else None
    y, weights = layer(x, mask=mask, return_attention_scores=True)
    values = naive_gaussian.values_of(layer)
    for found, wanted in zip(
        (y, weights), expected(layer, values, x, mask), strict=True
    ):
        np.testing.assert_allclose(numpy(found), wanted, atol=5e-6, rtol=2e-5)
        assert np.abs(wanted).max() > 0.05


@every
def test_gradients_equal_naive_differences(name, rng):
    """Against central differences of the naive reference in float64."""
    layer = make(name)
    x, mask = inputs(rng, layer), padding(layer)
    found = gradients(layer, x, mask)
    values = naive_gaussian.values_of(layer)
    paths = [w.path.split("/", 1)[1] for w in layer.trainable_weights]
    arrays = {"x": x.astype("float64"), **values}

    def loss(arrays):
        y, _ = expected(layer, arrays, arrays["x"], mask)
        return (y**2).sum()

    for path, gradient in zip(["x", *paths], found, strict=True):
        # One of the entries that matter, and one of any.
        largest = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        for at in (largest, tuple(rng.integers(0, gradient.shape))):
            step = np.zeros(gradient.shape)
            step[at] = 1e-5
            up = loss({**arrays, path: arrays[path] + step})
            down = loss({**arrays, path: arrays[path] - step})
            slope = (up - down) / 2e-5
            np.testing.assert_allclose(
                gradient[at], slope, rtol=2e-3, atol=5e-4, err_msg=path
            )


@every
def test_every_weight_has_a_gradient(name, rng):
    # At the start too: a weight must be able to leave it.
    for perturbed in (False, True):
        layer = make(name, perturbed)
        x = inputs(rng, layer)
        found = gradients(layer, x, padding(layer))
        weights = layer.trainable_weights
        for weight, gradient in zip(weights, found[1:], strict=True):
            # A key bias adds the same score to all keys.
            if not weight.path.endswith("key/bias"):
                assert np.abs(gradient).max() > 1e-6, weight.path


@over_time
def test_padding_changes_nothing(name, rng):
    layer = make(name)
    x = inputs(rng, layer)
    alone = layer(x[1:, :4], return_attention_scores=True)
    for junk in (1e3, np.inf, np.nan):
        x[1, 4:] = junk
        padded = layer(x, mask=padding(layer), return_attention_scores=True)
        for one, other in zip(alone, padded, strict=True):
            other = numpy(other)[1]
            np.testing.assert_allclose(other[:4], numpy(one)[0], atol=CLOSE)
            assert np.all(other[4:] == 0.0)
        found = gradients(layer, x, padding(layer))
        assert all(np.all(np.isfinite(g)) for g in found)


@every
def test_padding_is_not_seen(name, rng):
    layer = make(name)
    x, mask = inputs(rng, layer), padding(layer)
    before = layer(x, mask=mask, return_attention_scores=True)
    x[1, 4:] = np.nan
    after = layer(x, mask=mask, return_attention_scores=True)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(numpy(one), numpy(other))
        assert np.all(numpy(other)[1, 4:] == 0.0)


@every
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_empty_clip_is_zero_with_finite_gradients(name, dtype, rng):
    layer = make(name, dtype=dtype)
    x = 30.0 * inputs(rng, layer)
    mask = padding(layer, (size(layer)[0], 0))
    outputs = layer(x, mask=mask, return_attention_scores=True)
    for y in outputs:
        y = numpy(ops.cast(y, "float32"))
        assert np.all(y[1] == 0.0) and np.any(y[0] != 0.0)
    found = gradients(layer, x, mask)
    assert all(np.all(np.isfinite(g)) for g in found)
    assert np.all(found[0][1] == 0.0)


@over_time
def test_one_frame_has_finite_gradients(name, rng):
    """Of one frame over time, the variance is zero."""
    layer = make(name)
    x = inputs(rng, layer, length=1)
    assert np.all(np.isfinite(numpy(layer(x))))
    assert all(np.all(np.isfinite(g)) for g in gradients(layer, x))


@pytest.mark.parametrize("name", ["paper", "package", "bi_skewed"])
def test_far_from_zero_nothing_cancels(name, rng):
    """The square of 10,000 leaves a variance of 1 no digit in float32."""
    layer = make(name)
    if name == "bi_skewed":
        # Its mean moves by a share of itself, here far out of sight.
        for shift, _, _ in layer.skewed:
            shift.assign(np.zeros(shift.shape))
    x = inputs(rng, layer) + np.float32(1e4)
    _, weights = layer(x, return_attention_scores=True)
    values = naive_gaussian.values_of(layer)
    centred = x.astype("float64") - 1e4
    if name == "bi_skewed":
        values["mean_shift_0"] = values["mean_shift_1"] = (
            0.0 * values["mean_shift_0"]
        )
    _, wanted = expected(layer, values, centred)
    np.testing.assert_allclose(numpy(weights), wanted, atol=3e-2)


def test_constant_features_keep_their_value():
    """A variance of zero is no division by zero; at the mean, G is 1."""
    layer = GaussianAdaptiveAttention(H)
    x = np.full((B, 7, 15), 3.0, "float32")
    np.testing.assert_array_equal(numpy(layer(x)), x)


@every
def test_causal_needs_statistics_of_one_frame(name, rng):
    cls, kwargs = CASES[name]
    if kwargs.get("axis", 1) == 1:
        with pytest.raises(
            ValueError, match="mixes all frames and cannot be causal.*Received"
        ):
            make(name, causal=True)
        return
    layer = make(name, causal=True)
    assert layer.supports_causal
    x = inputs(rng, layer)
    before = numpy(layer(x))
    x[:, 4:] += 1.0
    after = numpy(layer(x))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert np.abs(before[:, 4:] - after[:, 4:]).max() > 0.0


def test_grouped_query_without_causal_sees_the_future(rng):
    layer = make("grouped_query_causal", causal=False)
    x = inputs(rng, layer)
    before = numpy(layer(x))
    x[:, 4:] += 1.0
    assert np.abs(before - numpy(layer(x)))[:, :4].max() > 1e-3


@every
def test_symbolic_and_eager_specs_agree(name, rng):
    layer = make(name)
    x = inputs(rng, layer)
    found = layer(x, return_attention_scores=True)
    batches = {tuple(x.shape), (None, *x.shape[1:])}
    for shape in batches:
        symbolic = keras.KerasTensor(shape)
        specs = layer(symbolic, return_attention_scores=True)
        for spec, value in zip(specs, found, strict=True):
            assert spec.shape == (shape[0], *value.shape[1:])
        assert layer(symbolic).shape == specs[0].shape
    if layer.head_axis != 1:
        spec = layer(keras.KerasTensor((None, None, x.shape[-1])))
        assert spec.shape == (None, None, found[0].shape[-1])


@over_time
def test_dynamic_batch_and_length_in_a_graph(name, rng):
    layer = make(name)
    x = keras.Input((None, size(layer)[1]))
    mask = keras.Input((None,), dtype="bool")
    model = keras.Model([x, mask], layer(x, mask=mask))
    for batch, length in ((1, 1), (3, 5), (2, 11)):
        data = inputs(rng, layer, batch, length)
        real = np.arange(length) < length - np.arange(batch)[:, None]
        np.testing.assert_allclose(
            model.predict([data, real], verbose=0),
            numpy(layer(data, mask=real)),
            atol=CLOSE,
        )


@every
def test_dynamic_batch_in_a_graph(name, rng):
    layer = make(name)
    x = keras.Input(size(layer))
    model = keras.Model(x, layer(x))
    for batch in (1, 3):
        data = inputs(rng, layer, batch)
        np.testing.assert_allclose(
            model.predict(data, verbose=0), numpy(layer(data)), atol=CLOSE
        )


@every
def test_compiled_equals_eager(name, rng):
    layer = make(name)
    x, mask = inputs(rng, layer), padding(layer)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        compiled = tf.function(layer, jit_compile=True)
    elif BACKEND == "jax":
        import jax

        compiled = jax.jit(lambda x, mask: layer(x, mask=mask))
    else:
        pytest.skip("no compiler for this backend")
    np.testing.assert_allclose(
        numpy(compiled(x, mask=mask)), numpy(layer(x, mask=mask)), atol=CLOSE
    )


@every
def test_config_is_complete(name):
    layer = make(name, dropout=0.25)
    assert naive.missing_from_config(layer) == []
    config = layer.get_config()
    revived = type(layer).from_config(config)
    assert revived.get_config() == config
    for key, value in CASES[name][1].items():
        assert config[key] == value
    assert config["dropout"] == 0.25 and config["num_heads"] == H


@every
def test_saved_and_loaded(name, rng, tmp_path):
    layer = make(name, dropout=0.1)
    length, dim = size(layer)
    x = keras.Input((length if layer.head_axis == 1 else None, dim))
    model = keras.Model(x, layer(x))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    data = inputs(rng, layer)
    np.testing.assert_array_equal(
        loaded.predict(data, verbose=0), model.predict(data, verbose=0)
    )


@every
def test_exported_with_dynamic_shapes(name, rng, tmp_path):
    if BACKEND != "tensorflow":
        pytest.skip("SavedModels are TensorFlow's")
    import tensorflow as tf

    layer = make(name)
    length, dim = size(layer)
    fixed = layer.head_axis == 1
    x = keras.Input((length if fixed else None, dim))
    model = keras.Model(x, layer(x))
    model.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(tmp_path / "served")
    for batch, length in ((1, length), (3, length if fixed else 11)):
        data = inputs(rng, layer, batch, length)
        np.testing.assert_allclose(served.serve(data), layer(data), atol=CLOSE)


@every
def test_one_step_of_training_moves_weights(name, rng):
    layer = make(name, perturbed=False)
    x = keras.Input(size(layer))
    model = keras.Model(x, layer(x))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    data = inputs(rng, layer)
    target = np.zeros(model.predict(data, verbose=0).shape)
    before = model.get_weights()
    model.fit(data, target, verbose=0)
    paths = [w.path for w in model.weights]
    for path, old, new in zip(paths, before, model.get_weights(), strict=True):
        if not path.endswith("key/bias"):
            assert np.abs(new - old).max() > 0.0, path


@every
def test_dropout_acts_in_training_only(name, rng):
    layer = make(name, dropout=0.5)
    x = inputs(rng, layer)
    plain, plain_weights = layer(x, return_attention_scores=True)
    np.testing.assert_array_equal(numpy(plain), numpy(layer(x, training=False)))
    trained, weights = layer(x, training=True, return_attention_scores=True)
    assert np.abs(numpy(plain) - numpy(trained)).max() > 1e-2
    np.testing.assert_array_equal(numpy(plain_weights), numpy(weights))


def test_dropout_keeps_the_mean_of_the_map():
    layer = GaussianAdaptiveAttention(1, dropout=0.5)
    x = np.ones((B, 997, 1), "float32")
    y = numpy(layer(x, training=True))
    assert set(np.unique(y)) == {0.0, 2.0}
    assert abs(y.mean() - 1.0) < 0.1


def test_dropout_reaches_the_softmax(rng):
    """With every Gaussian at 1, what is dropped is in the second part."""
    layer = make("grouped_query", dropout=0.5)
    x = rng.standard_normal((B, 7, E)).astype("float32")
    plain = numpy(layer.attend_in_groups(ops.convert_to_tensor(x), None, False))
    again = numpy(layer.attend_in_groups(ops.convert_to_tensor(x), None, True))
    assert np.abs(plain - again).max() > 1e-2


@every
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_close(name, dtype, rng):
    layer = make(name)
    half = make(name, dtype=f"mixed_{dtype}")
    half.set_weights(layer.get_weights())
    # What half precision can hold, or the inputs alone would differ.
    x = numpy(ops.cast(ops.cast(inputs(rng, layer), dtype), "float32"))
    mask = padding(layer)
    y = half(x, mask=mask)
    assert keras.backend.standardize_dtype(y.dtype) == dtype
    wanted = numpy(layer(x, mask=mask))
    step = {"float16": 2e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(
        numpy(ops.cast(y, "float32")), wanted, atol=step * wanted.max()
    )


@pytest.mark.parametrize("name", ["paper", "package", "skewed", "bi_skewed"])
def test_half_precision_has_float32_statistics(name, rng):
    """Squares of 1000 are beyond float16, a sum of 4099 loses small terms."""
    layer, half = make(name), make(name, dtype="mixed_float16")
    x = rng.standard_normal((1, 4099, 15)) * 200.0 + 1000.0
    x = x.astype("float16").astype("float32")
    for own in (layer, half):
        # Each weight as float16 cannot have it.
        own.set_weights([np.full(w.shape, 1.0001) for w in own.weights])
    outputs = [
        numpy(ops.cast(own(x, return_attention_scores=True)[1], "float32"))
        for own in (layer, half)
    ]
    scale = outputs[0].max()
    np.testing.assert_allclose(
        outputs[0] / scale, outputs[1] / scale, atol=6e-4
    )


def test_weights_stay_in_float32_under_half_precision():
    """Float16 would round 1.0004 to 1."""
    layer = GaussianAdaptiveAttention(1, dtype="mixed_float16")
    x = np.full((1, 7, 5), 8.0, "float32")
    layer.build(x.shape)
    layer.mean_offset.assign(np.full((1, 5), 1.0004))
    layer.scaled_variance.assign(np.full((1, 5), 8e3))
    wanted = 8.0 * np.exp(-(1.0004**2) / 1e-5 / (2 * 8e3))
    found = numpy(ops.cast(layer(x), "float32"))
    np.testing.assert_allclose(found, wanted, rtol=1.5e-3)


@pytest.mark.parametrize(
    "cls", [GaussianAdaptiveAttention, SkewedGaussianAttention]
)
@pytest.mark.parametrize("width", [0.0, -1.0])
def test_width_that_vanished_is_finite(cls, width, rng):
    layer = cls(H)
    layer.build((None, None, 15))
    for weight in layer.weights:
        if "offset" not in weight.path and "shift" not in weight.path:
            weight.assign(np.full(weight.shape, width))
    x = inputs(rng, layer)
    y, weights = layer(x, return_attention_scores=True)
    assert np.all(numpy(weights) <= 1.0) and np.all(np.isfinite(numpy(y)))
    assert all(np.all(np.isfinite(g)) for g in gradients(layer, x))


@pytest.mark.parametrize("width", [0.0, 1e-3, 30.0])
def test_package_is_finite_at_any_width(width, rng):
    layer = GaussianAdaptiveAttention(
        H,
        variant="package",
        num_gaussians=31,
        width_initializer=keras.initializers.Constant(width),
    )
    x = inputs(rng, layer)
    x[0, :, 0] = 0.0  # at the mean, where the product is largest
    layer.build(x.shape)
    y, weights = layer(x, return_attention_scores=True)
    assert np.all(np.isfinite(numpy(y))) and np.all(numpy(weights) >= 0.0)
    if width < 1.0:
        np.testing.assert_allclose(numpy(weights)[0, :, 0], 1 / 7, atol=1e-6)
    assert all(np.all(np.isfinite(g)) for g in gradients(layer, x))


def test_package_sums_to_one_over_real_frames(rng):
    layer = make("package")
    x, mask = inputs(rng, layer), padding(layer)
    _, weights = layer(x, mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(numpy(weights).sum(axis=1), 1.0, atol=1e-6)


def test_package_widths_start_log_normal():
    layer = GaussianAdaptiveAttention(7, variant="package", num_gaussians=499)
    layer.build((None, None, 7))
    logs = np.log(numpy(layer.gaussian_width.value))
    assert logs.shape == (7, 499)
    assert abs(logs.mean()) < 0.1 and abs(logs.std() - 1.0) < 0.1
    assert layer.epsilon == 1e-8
    assert np.all(numpy(layer.mean_offset.value) == 0.0)


def test_paper_starts_at_its_values():
    layer = GaussianAdaptiveAttention(3)
    layer.build((None, None, 15))
    assert np.all(numpy(layer.mean_offset.value) == 0.0)
    assert np.all(numpy(layer.scaled_variance.value) == 2.0)
    assert layer.epsilon == 1e-5


@pytest.mark.parametrize("axes", [(1, -1), (1, 1), (-1, -1), (-1, 1)])
def test_skewed_starts_as_gaussian_adaptive(axes, rng):
    axis, head_axis = axes
    kwargs = {"axis": axis, "head_axis": head_axis}
    one, other = (
        SkewedGaussianAttention(H, **kwargs),
        GaussianAdaptiveAttention(H, **kwargs),
    )
    x = inputs(rng, one)
    np.testing.assert_allclose(numpy(one(x)), numpy(other(x)), atol=1e-6)


def test_bi_skewed_starts_as_mirror_images(rng):
    """Together even, yet not alike: their gradients differ."""
    layer = BiSkewedGaussianAttention(H)
    x = inputs(rng, layer)
    _, weights = layer(x, return_attention_scores=True)
    _, mirrored = layer(-x, return_attention_scores=True)
    np.testing.assert_allclose(numpy(weights), numpy(mirrored), atol=1e-6)
    _, *found = gradients(layer, x)
    for one, other in zip(found[:3], found[3:], strict=True):
        assert np.abs(one - other).max() > 1e-3


def test_gaussian_context_transformer_is_an_argument(rng):
    """Equation 5, with nothing to train."""
    layer = GaussianAdaptiveAttention(
        1, width_initializer="ones", epsilon=1e-12, trainable=False
    )
    x = inputs(rng, layer)
    variance = x.var(axis=1, keepdims=True)
    wanted = np.exp(
        -((x - x.mean(axis=1, keepdims=True)) ** 2) / (2 * variance)
    )
    _, weights = layer(x, return_attention_scores=True)
    np.testing.assert_allclose(numpy(weights), wanted, atol=CLOSE)
    assert layer.trainable_weights == []


def test_heads_of_features_change_nothing_in_the_paper_form(rng):
    """Every feature has its own mean, offset and width anyway."""
    x = rng.standard_normal((B, 7, 15)).astype("float32")
    one, many = GaussianAdaptiveAttention(1), GaussianAdaptiveAttention(5)
    one.build(x.shape)
    many.build(x.shape)
    for mine, theirs in zip(one.weights, many.weights, strict=True):
        value = rng.uniform(0.5, 1.5, theirs.shape)
        theirs.assign(value)
        mine.assign(value.reshape(mine.shape))
    np.testing.assert_array_equal(numpy(one(x)), numpy(many(x)))


@pytest.mark.parametrize(
    ("shape", "heads", "count"),
    [
        ((None, 24, 1024), 8, 16_384),
        ((None, 40, 5120), 8, 81_920),
        ((None, 24, 1024), 1, 2_048),
        ((None, 40, 5120), 1, 10_240),
    ],
)
def test_counts_of_table_1(shape, heads, count):
    layer = GaussianAdaptiveAttention(heads, head_axis=1)
    layer.build(shape)
    assert layer.count_params() == count
    if heads == 1:
        layer = GaussianAdaptiveAttention(heads)
        layer.build(shape)
        assert layer.count_params() == count


@pytest.mark.parametrize(
    ("shape", "count", "grouped"),
    [
        ((None, 24, 1024), 1_001_472, 985_088),
        ((None, 40, 5120), 3_164_160, 3_082_240),
    ],
)
def test_counts_of_table_1_with_grouped_queries(shape, count, grouped):
    layer = GroupedQueryGaussianAdaptiveAttention(8, embed_dim=512, head_axis=1)
    layer.build(shape)
    assert layer.count_params() == count
    gaussian = layer.mean_offset.shape[0] * layer.mean_offset.shape[1] * 2
    assert count - gaussian == grouped
    assert layer.compute_output_spec(keras.KerasTensor(shape)).shape == (
        *shape[:2],
        512,
    )


def test_other_counts():
    counts = {
        (SkewedGaussianAttention, -1): 3 * 15,
        (BiSkewedGaussianAttention, -1): 6 * 15,
        (SkewedGaussianAttention, 1): 3 * H * 13,
        (GaussianAdaptiveAttention, -1): 2 * 15,
    }
    for (cls, head_axis), count in counts.items():
        layer = cls(H, head_axis=head_axis)
        layer.build((None, *SIZES[head_axis]))
        assert layer.count_params() == count
    layer = GaussianAdaptiveAttention(H, **PACKAGE)
    layer.build((None, None, 15))
    assert layer.count_params() == 2 * 2 * H


@every
def test_cost_counts_products(name):
    layer = make(name)
    length, dim = size(layer)
    dense = [
        w
        for w in layer.trainable_weights
        if w.path.endswith("kernel") and len(w.shape) == 2
    ]
    products = sum(length * w.shape[0] * w.shape[1] for w in dense)
    weights = length * dim * (2 if name.startswith("bi_") else 1)
    if dense:
        # Two key and value heads of 11: scores, and their mixture.
        products += 2 * (length * length * 2 * 11)
        weights += 2 * length**2
    assert layer.cost(length, dim) == (products, 4 * weights)
    training = layer.cost(length, dim, training=True)
    assert training == (3 * products, 4 * weights)
    assert layer.complexity.startswith("O(L")


@every
@pytest.mark.parametrize(
    "wrong",
    [
        {"num_heads": 0},
        {"num_heads": 2.0},
        {"axis": 0},
        {"axis": "time"},
        {"head_axis": 2},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"epsilon": 0.0},
        {"epsilon": float("nan")},
    ],
)
def test_bad_arguments_are_named(name, wrong):
    cls, kwargs = CASES[name]
    argument = list(wrong)[0]
    with pytest.raises(ValueError, match=f"`{argument}`.*Received"):
        cls(**{"num_heads": H, **kwargs, "causal": False, **wrong})


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"variant": "pypi"}, "`variant` must be one of .'package', 'paper'"),
        ({"num_gaussians": 2}, "`num_gaussians` must be 1 with"),
        ({"num_gaussians": 0}, "`num_gaussians` must be a positive"),
        ({"num_query_heads": 0}, "`num_query_heads` must be a positive"),
        ({"embed_dim": 0}, "`embed_dim` must be a positive"),
        ({"num_key_value_heads": -1}, "`num_key_value_heads` must be a pos"),
        ({"num_key_value_heads": 3}, "must divide the query heads"),
        ({"embed_dim": 43}, "query heads must divide `embed_dim`"),
    ],
)
def test_bad_arguments_of_one_layer(wrong, named):
    with pytest.raises(ValueError, match=f"{named}.*Received"):
        make("grouped_query", **wrong)


def test_key_dim_is_not_an_argument():
    for cls in {cls for cls, _ in CASES.values()}:
        assert cls.takes_key_dim is False
        with pytest.raises((TypeError, ValueError), match="key_dim"):
            cls(num_heads=H, key_dim=5)


@pytest.mark.parametrize("cls", sorted({c for c, _ in CASES.values()}, key=str))
def test_in_a_transformer(cls, rng):
    """The block passes no `key_dim`, and gets the Gaussian map."""
    block = TransformerBlock(4, 5, (7,), attention=cls, dropout=0.1)
    x = rng.standard_normal((B, 7, 12)).astype("float32")
    alone = block(x[1:, :3])
    x[1, 3:] = 1e3
    mask = np.arange(7) < np.array([7, 3])[:, None]
    y, weights = block(x, mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(numpy(y)[1:, :3], numpy(alone), atol=CLOSE)
    assert tuple(weights.shape) == tuple(y.shape) == x.shape
    spec = block(keras.KerasTensor((None, None, 12)))
    assert spec.shape == (None, None, 12)
    config = block.get_config()
    revived = TransformerBlock.from_config(config)
    assert type(revived.attention) is cls and revived.get_config() == config
    with pytest.raises(ValueError, match="cannot be causal"):
        TransformerBlock(4, 5, attention=cls, causal=True)


def test_heads_must_divide_what_is_cut():
    paper = functools.partial(GaussianAdaptiveAttention, H)
    with pytest.raises(
        ValueError, match="`num_heads` must divide.*num_heads=3"
    ):
        paper().build((None, None, 13))
    with pytest.raises(
        ValueError, match="`num_heads` must divide.*num_heads=3"
    ):
        paper(head_axis=1).build((None, 7, 13))
    with pytest.raises(ValueError, match="known length.*Received"):
        paper(head_axis=1).build((None, None, 13))
    with pytest.raises(ValueError, match="batch, time, dim.*Received"):
        paper().build((None, 15))
    grouped = GroupedQueryGaussianAdaptiveAttention(H, num_key_value_heads=1)
    grouped.build((None, None, 15))
    with pytest.raises(ValueError, match="must divide `embed_dim`.*Received"):
        GroupedQueryGaussianAdaptiveAttention(3, num_query_heads=2).build(
            (None, None, 15)
        )


def test_length_of_heads_of_positions_is_fixed(rng):
    layer = make("paper_experiment")
    x = inputs(rng, layer, length=42)
    for given in (x, keras.KerasTensor((None, 42, 13))):
        with pytest.raises(ValueError, match="built for 21 positions"):
            layer(given)
    if BACKEND != "tensorflow":
        return
    import tensorflow as tf

    unknown = tf.function(
        layer, input_signature=[tf.TensorSpec((None, None, 13))]
    )
    np.testing.assert_allclose(unknown(x[:, :21]), layer(x[:, :21]), atol=CLOSE)
    # Not silently as twice the batch.
    with pytest.raises(tf.errors.InvalidArgumentError):
        unknown(x)


# JAX compiles every operation anew for every shape.
@hypothesis.settings(
    deadline=None, database=None, max_examples=10 if BACKEND == "jax" else 60
)
@hypothesis.given(
    strategies.lists(strategies.integers(0, 9), min_size=1, max_size=3),
    strategies.sampled_from([1, 2, 4]),
    strategies.sampled_from([(1, -1), (1, 1), (-1, -1), (-1, 1)]),
    strategies.sampled_from(["paper", "package", "skewed", "bi_skewed"]),
    strategies.integers(0, 2**31),
)
def test_any_lengths_heads_and_masks(lengths, heads, axes, kind, seed):
    """Equal to the naive reference; only real frames count, wherever."""
    axis, head_axis = axes
    rng = np.random.default_rng(seed)
    cls, kwargs = CASES[kind]
    layer = cls(heads, **{**kwargs, "axis": axis, "head_axis": head_axis})
    length = 12 if head_axis == 1 else max(*lengths, 1)
    x = rng.standard_normal((len(lengths), length, 8)).astype("float32")
    mask = rng.permuted(np.arange(length) < np.array(lengths)[:, None], axis=1)
    # With one frame, unbiased variances are defined here alone.
    if kind == "package" and axis == 1:
        part = length // heads if head_axis == 1 else length
        counts = mask.reshape(len(lengths), -1, part).sum(axis=-1)
        hypothesis.assume(not np.any(counts == 1))
    y, weights = layer(x, mask=mask, return_attention_scores=True)
    values = naive_gaussian.values_of(layer)
    wanted, wanted_weights = expected(layer, values, x, mask)
    np.testing.assert_allclose(
        numpy(weights), wanted_weights, atol=1e-5, rtol=1e-3
    )
    np.testing.assert_allclose(numpy(y), wanted, atol=2e-5, rtol=1e-3)
    if kind != "package":
        assert np.all(numpy(weights) <= 1.0)


def test_moments_of_nothing_are_zero():
    x = np.zeros((B, 7, 5), "float32")
    mask = np.zeros((B, 7, 1), bool)
    for unbiased in (False, True):
        for value in moments(ops.convert_to_tensor(x), 1, mask, unbiased):
            assert np.all(numpy(value) == 0.0)
