"""What is particular to Gaussian attentions: formulas, axes, statistics.

The contract of every attention, which they keep, is in test_attention.py.
"""

import functools

import attention_cases
import hypothesis
import keras
import naive_gaussian
import numpy as np
import pytest
from hypothesis import strategies
from keras import ops

from audio_tf.attention.gaussian import (
    BiSkewedGaussianAttention,
    SkewedGaussianAttention,
)
from audio_tf.attention.gaussian_adaptive import (
    GaussianAdaptiveAttention,
    GroupedQueryGaussianAdaptiveAttention,
)

BACKEND = keras.backend.backend()
B, H, E = 2, 3, 44
# Layer normalisation enlarges what rounding leaves.
CLOSE = 1e-5
# Heads divide the features, or the positions: the other two are primes.
SIZES = {-1: (7, 15), 1: (21, 13)}

PACKAGE = {"variant": "package", "num_gaussians": 2}
QUERIES = {"num_query_heads": 4, "hidden_dim": E}
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

BY_POSITION = [n for n, (_, kw) in CASES.items() if kw.get("head_axis") == 1]
OVER_TIME = [name for name in CASES if name not in BY_POSITION]


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
    return attention_cases.gradients(layer, x, mask)[1]


@pytest.mark.parametrize("name", BY_POSITION)
def test_heads_of_positions_keep_the_contract(name, rng, tmp_path):
    """Of a fixed length, so not in the tests of the contract."""
    layer = make(name)
    x, mask = inputs(rng, layer), padding(layer)
    values = naive_gaussian.values_of(layer)
    for real in (None, mask):
        found = layer(x, mask=real, return_attention_scores=True)
        wanted = expected(layer, values, x, real)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(numpy(one), other, atol=1e-5, rtol=1e-4)
            assert np.abs(other).max() > 0.05
    x[1, 4:] = 0.0
    silent, slopes = layer(x, mask=mask), gradients(layer, x, mask)
    for junk in (1e30, np.nan):
        x[1, 4:] = junk
        np.testing.assert_array_equal(numpy(layer(x, mask=mask)), numpy(silent))
        for one, other in zip(slopes, gradients(layer, x, mask), strict=True):
            np.testing.assert_array_equal(one, other)
    x[1, 4:] = 0.0
    for at in [(0, 1, 2), (1, 3, 5)]:
        step = np.zeros(x.shape)
        step[at] = 1e-5
        up, down = (
            (expected(layer, values, moved, mask)[0] ** 2).sum()
            for moved in (x + step, x - step)
        )
        np.testing.assert_allclose(
            slopes[0][at], (up - down) / 2e-5, rtol=2e-3, atol=5e-4
        )
    for weight, slope in zip(layer.trainable_weights, slopes[1:], strict=True):
        if not weight.path.endswith("key/bias"):
            assert np.abs(slope).max() > 1e-6, weight.path
    config = make(name, dropout=0.25).get_config()
    assert type(layer).from_config(config).get_config() == config
    spec = layer(keras.KerasTensor((None, *x.shape[1:])))
    assert tuple(spec.shape) == (None, *numpy(silent).shape[1:])
    model_input = keras.Input(size(layer))
    model = keras.Model(model_input, layer(model_input))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for batch in (1, 3):
        data = inputs(rng, layer, batch)
        np.testing.assert_allclose(
            numpy(loaded.predict_on_batch(data)), numpy(layer(data)), atol=CLOSE
        )


@pytest.mark.parametrize("name", CASES)
def test_padded_frames_are_zero(name, rng):
    layer = make(name)
    x = inputs(rng, layer)
    outputs = layer(x, mask=padding(layer), return_attention_scores=True)
    for output in outputs:
        assert np.all(numpy(output)[1, 4:] == 0.0)
        assert np.any(numpy(output)[1, :4] != 0.0)


@pytest.mark.parametrize("name", OVER_TIME)
def test_one_frame_has_finite_gradients(name, rng):
    """Of one frame over time, the variance is zero."""
    layer = make(name)
    x = inputs(rng, layer, length=1)
    assert np.all(np.isfinite(numpy(layer(x))))
    assert all(np.all(np.isfinite(g)) for g in gradients(layer, x))


def test_a_stream_needs_statistics_of_one_frame(rng):
    """And a length that may grow: heads of positions have a fixed one."""
    layer = make("paper_over_features", causal=True)
    x = inputs(rng, layer)
    np.testing.assert_array_equal(
        numpy(layer.call_last(x, 3)), numpy(layer(x))[:, -3:]
    )
    fixed = make("paper_over_features_by_position", causal=True)
    with pytest.raises(ValueError, match="built for 21 positions"):
        fixed.call_last(inputs(rng, fixed, length=42), 1)


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
    layer = GroupedQueryGaussianAdaptiveAttention(
        8, hidden_dim=512, head_axis=1
    )
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


@pytest.mark.parametrize("name", CASES)
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


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"variant": "pypi"}, "`variant` must be one of .'paper', 'package'"),
        ({"num_gaussians": 2}, "`num_gaussians` must be 1 with"),
        ({"num_gaussians": 0}, "`num_gaussians` must be a positive"),
        ({"num_query_heads": 0}, "`num_query_heads` must be a positive"),
        ({"hidden_dim": 0}, "`hidden_dim` must be a positive"),
        ({"num_key_value_heads": -1}, "`num_key_value_heads` must be a pos"),
        ({"num_key_value_heads": 3}, "must divide the query heads"),
        ({"hidden_dim": 43}, "query heads must divide `hidden_dim`"),
        ({"axis": 0}, "`axis` must be 1 .positions. or -1"),
        ({"head_axis": 2}, "`head_axis` must be 1 .positions. or -1"),
    ],
)
def test_bad_arguments_of_one_layer(wrong, named):
    with pytest.raises(ValueError, match=f"{named}.*Received"):
        make("grouped_query", **wrong)


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
    with pytest.raises(ValueError, match="must divide `hidden_dim`.*Received"):
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
@pytest.mark.costly
@hypothesis.settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=10 if BACKEND == "jax" else 40,
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
