"""The contract that every attention over time of the table keeps."""

import keras
import naive
import numpy as np
import pytest
from attention_cases import (
    MECHANISMS,
    SMALL,
    TABLES,
    B,
    D,
    F,
    H,
    T,
    assert_equal_where_real,
    assert_equals_naive,
    causal_choices,
    compiled,
    every,
    gaps,
    gradients,
    inputs,
    make,
    padding,
    shaken,
)
from keras import ops

from audio_tf import attention
from audio_tf.attention import masks

WITH_LENGTH = [
    name for name in MECHANISMS if "max_length" in SMALL.get(name, {})
]


def test_every_mechanism_has_a_naive_reference():
    assert set(naive.ATTENTIONS) == set(MECHANISMS)


@every
@pytest.mark.parametrize(
    "mask", [None, padding(), gaps()], ids=["all", "padding", "gaps"]
)
def test_equals_naive(name, mask, rng):
    for causal in causal_choices(name):
        layer = make(name, causal=causal)
        assert_equals_naive(name, layer, inputs(rng), mask)


@every
def test_gradients_equal_naive_differences(name, rng):
    """Against central differences of the naive reference in float64."""
    for causal in causal_choices(name):
        layer = shaken(make(name, causal=causal), rng, 0.1)
        x, mask = inputs(rng), padding()
        _, found = gradients(layer, x, mask)

        def loss(x):
            return (naive.ATTENTIONS[name](layer, x, mask)[0][mask] ** 2).sum()

        def check(gradient, slope):
            np.testing.assert_allclose(gradient, slope, rtol=2e-3, atol=1e-3)

        for _ in range(5):
            at = tuple(rng.integers(0, n) for n in x.shape)
            step = np.zeros(x.shape)
            step[at] = 1e-5
            slope = (loss(x + step) - loss(x - step)) / 2e-5
            check(found[0][at], slope)
        for weight, gradient in zip(
            layer.trainable_weights, found[1:], strict=True
        ):
            # Where the gradient is largest: most of a table is never used.
            at = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
            before, at_steps, steps = np.asarray(weight).copy(), [], []
            for sign in (1, -1):
                moved = before.copy()
                moved[at] += sign * 2.0**-10
                steps.append(float(moved[at]))
                weight.assign(moved)
                at_steps.append(loss(x))
            weight.assign(before)
            slope = (at_steps[0] - at_steps[1]) / (steps[0] - steps[1])
            check(gradient[at], slope)


@every
def test_every_weight_has_a_gradient(name, rng):
    layer, x = make(name), inputs(rng)
    _, found = gradients(layer, x, padding())
    weights = layer.trainable_weights
    for weight, gradient in zip(weights, found[1:], strict=True):
        # A key bias adds the same score to all keys: softmax cannot see it.
        if weight.path.endswith("key/bias"):
            continue
        assert np.abs(gradient).max() > 1e-6, weight.path


@every
def test_padding_changes_nothing(name, rng):
    for causal in causal_choices(name):
        layer, x = make(name, causal=causal), inputs(rng)
        alone = layer(x[1:, :4])
        for huge in (1e3, -1e3):
            x[1, 4:] = huge
            padded = layer(x, mask=padding())
            np.testing.assert_allclose(padded[1:, :4], alone, atol=2e-6)
            x[1, 4:] = huge * rng.standard_normal((T - 4, F))
            padded = layer(x, mask=padding())
            np.testing.assert_allclose(padded[1:, :4], alone, atol=2e-6)


@every
def test_a_clip_does_not_see_the_others(name, rng):
    layer, x = make(name), inputs(rng, batch=3)
    mask = padding(real=(T, 4, 6))
    together = np.asarray(layer(x, mask=mask))
    for b in range(3):
        np.testing.assert_allclose(
            layer(x[b : b + 1], mask=mask[b : b + 1]),
            together[b : b + 1],
            atol=2e-6,
        )


@every
def test_empty_clip_attends_to_nothing(name, rng):
    for causal in causal_choices(name):
        layer, x = make(name, causal=causal), inputs(rng)
        layer.output_dense.bias.assign(rng.standard_normal(F))
        y, weights = layer(
            x, mask=padding(real=(T, 0)), return_attention_scores=True
        )
        assert np.all(np.asarray(weights)[1] == 0.0)
        assert np.any(np.asarray(weights)[0] != 0.0)
        bias = np.broadcast_to(layer.output_dense.bias, (T, F))
        np.testing.assert_array_equal(np.asarray(y)[1], bias)


@every
def test_causal_sees_no_future(name, rng):
    if not attention.find(name).supports_causal:
        with pytest.raises(ValueError, match="causal"):
            make(name, causal=True)
        return
    layer, x = make(name, causal=True), inputs(rng)
    before, weights = layer(x, return_attention_scores=True)
    assert np.all(np.triu(weights, 1) == 0.0)
    x[:, 4:] += 1.0
    before, after = np.asarray(before), np.asarray(layer(x))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert np.abs(before[:, 4:] - after[:, 4:]).min() > 0.0


@every
def test_weight_map_gives_the_output(name, rng):
    layer, x = make(name), inputs(rng)
    for mask in (None, padding()):
        y, weights = layer(x, mask=mask, return_attention_scores=True)
        np.testing.assert_array_equal(y, layer(x, mask=mask))
        value_heads = layer.value_dense.units // layer.key_dim
        expected = naive.mixed(layer, x, np.asarray(weights), value_heads)
        np.testing.assert_allclose(y, expected, atol=3e-6)


@every
def test_symbolic_and_eager_specs_agree(name, rng):
    for dtype in ("float32", "mixed_bfloat16"):
        layer = make(name, dtype=dtype)
        heads = layer.num_heads
        eager = layer(inputs(rng), return_attention_scores=True)
        for shape in ((None, None, F), (B, T, F)):
            symbolic = keras.KerasTensor(shape)
            y, weights = layer(symbolic, return_attention_scores=True)
            assert y.shape == layer(symbolic).shape == shape
            assert weights.shape == (shape[0], heads, shape[1], shape[1])
            for spec, tensor in zip((y, weights), eager, strict=True):
                dtype = keras.backend.standardize_dtype(tensor.dtype)
                assert spec.dtype == dtype == layer.compute_dtype
        y, weights = eager
        assert tuple(y.shape) == (B, T, F)
        assert tuple(weights.shape) == (B, heads, T, T)


@every
def test_dynamic_length_in_a_graph(name, rng):
    layer = make(name, causal=causal_choices(name)[-1])
    x = keras.Input((None, F))
    real = keras.Input((None,), dtype="bool")
    model = keras.Model([x, real], layer(x, mask=real))
    for length in (1, 3, 5, 11, 17):
        data = inputs(rng, length)
        mask = padding(length, (length, (length + 1) // 2))
        expected, _ = naive.ATTENTIONS[name](layer, data, mask)
        found = model.predict_on_batch([data, mask])
        assert_equal_where_real(found, expected, mask)


@every
def test_compiled_equals_eager(name, rng):
    for causal in causal_choices(name):
        layer, x = make(name, causal=causal), inputs(rng)
        np.testing.assert_allclose(
            compiled(layer)(x, padding()), layer(x, mask=padding()), atol=2e-6
        )


@every
def test_compiled_takes_any_batch_and_length(name, rng):
    layer = make(name)
    function = compiled(layer, signature=True)
    for length, real in ((T, (T, 4)), (11, (11,)), (1, (1, 0, 1))):
        x, mask = inputs(rng, length, len(real)), padding(length, real)
        expected, _ = naive.ATTENTIONS[name](layer, x, mask)
        assert_equal_where_real(function(x, mask), expected, mask)


@every
def test_config_is_complete(name):
    arguments = {
        "dropout": 0.25,
        "use_bias": False,
        "causal": causal_choices(name)[-1],
        "kernel_initializer": "he_normal",
    }
    layer = make(name, **arguments)
    assert naive.missing_from_config(layer) == []
    config = layer.get_config()
    revived = type(layer).from_config(config)
    assert type(revived) is type(layer)
    assert revived.get_config() == config
    del arguments["kernel_initializer"]
    for argument, value in {**SMALL.get(name, {}), **arguments}.items():
        assert config[argument] == getattr(revived, argument) == value


@every
def test_no_bias_means_none(name, rng):
    layer = make(name, use_bias=False)
    assert not any("bias" in weight.path for weight in layer.weights)
    assert_equals_naive(name, layer, inputs(rng), padding())


@every
def test_kernel_initializer_reaches_every_projection(name):
    layer = make(name, kernel_initializer="ones")
    kernels = [w for w in layer.weights if w.path.endswith("/kernel")]
    assert len(kernels) >= 2
    for kernel in kernels:
        assert np.all(np.asarray(kernel) == 1.0), kernel.path


@every
def test_dropout_acts_in_training_only(name, rng):
    layer, x = make(name, dropout=0.5), inputs(rng)
    plain, weights = layer(x, training=False, return_attention_scores=True)
    np.testing.assert_array_equal(plain, layer(x, training=False))
    np.testing.assert_array_equal(plain, layer(x))
    dropped, same = layer(x, training=True, return_attention_scores=True)
    assert np.abs(np.asarray(plain) - np.asarray(dropped)).max() > 1e-3
    np.testing.assert_array_equal(weights, same)


@every
def test_dropout_keeps_the_mean(name, rng):
    """Over many copies of one clip, each with weights dropped of its own.

    Where one table serves all clips of a batch, so does what is dropped.
    """
    layer, x = make(name, dropout=0.3), inputs(rng, batch=1)
    if name in TABLES:
        dropped = [layer(x, training=True)[0] for _ in range(61)]
    else:
        dropped = layer(np.repeat(x, 997, axis=0), training=True)
    dropped = np.asarray(dropped)
    error = dropped.std(axis=0) / np.sqrt(len(dropped))
    assert error.min() > 1e-4
    difference = np.abs(dropped.mean(axis=0) - layer(x)[0])
    assert np.all(difference < 5.0 * error)


@every
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_close(name, dtype, rng):
    layer = make(name)
    half = make(name, dtype=f"mixed_{dtype}")
    half.set_weights(layer.get_weights())
    x, mask = inputs(rng), padding()
    x[1, 4:] = 1e3
    y = half(x, mask=mask)
    assert keras.backend.standardize_dtype(y.dtype) == dtype
    atol = {"float16": 4e-3, "bfloat16": 4e-2}[dtype]
    assert_equal_where_real(
        ops.cast(y, "float32"), layer(x, mask=mask), mask, atol
    )


@every
def test_half_precision_gradients_are_finite(name, rng):
    layer, x = make(name, dtype="mixed_float16"), 30.0 * inputs(rng)
    # So that no gradient is rightly beyond float16.
    loss, found = gradients(layer, x, padding(real=(T, 0)), scale=0.01)
    assert np.isfinite(loss)
    for gradient in found:
        assert np.all(np.isfinite(gradient))


@every
def test_one_step_of_training_moves_weights(name, rng):
    x = keras.Input((None, F))
    model = keras.Model(x, make(name)(x))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    before = model.get_weights()
    trainable = {w.path for w in model.trainable_weights}
    data = inputs(rng)
    model.fit(data, np.zeros_like(data), verbose=0)
    paths = [w.path for w in model.weights]
    for path, old, new in zip(paths, before, model.get_weights(), strict=True):
        moved = np.abs(new - old).max() > 0.0
        if not path.endswith("key/bias"):
            assert moved == (path in trainable), path


@every
def test_saved_and_loaded(name, rng, tmp_path):
    x = keras.Input((None, F))
    model = keras.Model(x, shaken(make(name, dropout=0.1), rng)(x))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    data = inputs(rng)
    np.testing.assert_array_equal(
        loaded.predict_on_batch(data), model.predict_on_batch(data)
    )


@every
def test_exported_with_any_batch_and_length(name, rng, tmp_path):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("a SavedModel is TensorFlow's")
    import tensorflow as tf

    x = keras.Input((None, F))
    model = keras.Model(x, make(name)(x))
    model.export(tmp_path / "saved", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "saved")
    for batch, length in ((1, 5), (3, 11)):
        data = inputs(rng, length, batch)
        np.testing.assert_allclose(loaded.serve(data), model(data), atol=2e-6)


@every
def test_names_of_weights_are_distinct(name):
    paths = [weight.path for weight in make(name).weights]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("name", WITH_LENGTH)
def test_longer_than_max_length_is_refused(name, rng):
    layer = make(name)
    assert layer(inputs(rng, 17)).shape == (B, 17, F)
    message = "max_length=17.*Received: .*18"
    with pytest.raises(ValueError, match=message):
        layer(inputs(rng, 18))
    with pytest.raises(ValueError, match=message):
        layer(keras.KerasTensor((None, 18, F)))
    fresh = attention.create(name, num_heads=H, key_dim=D, **{"max_length": 17})
    with pytest.raises(ValueError, match=message):
        fresh.build((None, 18, F))


BAD = [
    {"num_heads": 0},
    {"key_dim": -1},
    {"num_heads": 2.0},
    {"dropout": 1.0},
    {"dropout": -0.1},
]


@every
@pytest.mark.parametrize("wrong", BAD)
def test_bad_arguments_are_named(name, wrong):
    with pytest.raises(ValueError, match=f"{list(wrong)[0]}.*Received"):
        make(name, **wrong)


def test_unknown_arguments_raise():
    with pytest.raises((TypeError, ValueError), match="window"):
        make("full", window=3)


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="'full'.*Received: .*'fulll'"):
        attention.create("fulll", num_heads=1, key_dim=1)


def test_keras_name_is_free():
    assert make("full", name="mine").name == "mine"


def test_softmax_is_rounded_once(rng):
    """To half precision, from float32 at least: to half a unit, 2^-11."""
    scores = 3.0 * rng.standard_normal((7, 41))
    scores = scores.astype("float16")
    weights = attention.functional.softmax_weights(
        ops.convert_to_tensor(scores)
    )
    assert keras.backend.standardize_dtype(weights.dtype) == "float16"
    expected = np.exp(scores.astype("float64"))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.asarray(weights, np.float64), expected, rtol=2.0**-11, atol=1e-7
    )


def test_softmax_sums_in_float32():
    """A float16 sum of 4096 equal terms stops at 2048 times one of them."""
    scores = ops.zeros((1, 4099), "float16")
    weights = attention.functional.softmax_weights(scores)
    np.testing.assert_allclose(
        np.asarray(weights, np.float64).sum(), 1.0, atol=1e-3
    )


def test_a_row_without_keys_mixes_to_zero():
    mask = np.array([[True, False, True], [False] * 3])
    mixed = attention.functional.mix(
        ops.zeros((2, 3)), ops.convert_to_tensor([[2.0], [64.0], [4.0]]), mask
    )
    np.testing.assert_array_equal(mixed, [[3.0], [0.0]])


def test_the_mask_of_keras_is_taken_and_passed_on(rng):
    x = inputs(rng)
    x[1, 4:] = 0.0
    layer = make("full")
    masked = keras.layers.Masking()(x)
    y = layer(masked)
    np.testing.assert_array_equal(y, layer(x, mask=padding()))
    np.testing.assert_array_equal(y._keras_mask, padding())


def test_masks_combine():
    real = np.array([[True, True, False]])
    np.testing.assert_array_equal(
        masks.combine(None, real, masks.causal(3)),
        [[True, False, False], [True, True, False], [True, True, False]],
    )
    assert masks.combine(None, None) is None


def test_mask_from_lengths():
    np.testing.assert_array_equal(
        masks.from_lengths(np.array([0, 2, 5]), 3),
        [[False] * 3, [True, True, False], [True] * 3],
    )
