"""The contract that every attention of the table keeps."""

import keras
import naive
import numpy as np
import pytest
from keras import ops

from audio_tf import attention
from audio_tf.attention import masks

B, T, F, H, D = 2, 7, 13, 3, 5

NAIVE = {"full": naive.full_attention}

every = pytest.mark.parametrize("name", attention.ATTENTIONS)


def make(mechanism, /, **kwargs):
    kwargs = {"num_heads": H, "key_dim": D, **kwargs}
    layer = attention.create(mechanism, **kwargs)
    layer.build((None, None, F))
    return layer


def causal_choices(name):
    return [False, True] if attention.find(name).supports_causal else [False]


def inputs(rng, length=T, batch=B):
    return rng.standard_normal((batch, length, F)).astype("float32")


def padding(length=T, real=(T, 4)):
    return np.arange(length) < np.array(real)[:, None]


def gradients(layer, x, mask):
    """Of the sum of squared outputs at real frames, by weight."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("gradients are taken by TensorFlow's tape")
    import tensorflow as tf

    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(layer(x, mask=mask), "float32")
        if mask is not None:
            y = tf.where(mask[..., None], y, 0.0)
        loss = tf.reduce_sum(y**2)
    variables = [w.value for w in layer.trainable_weights]
    return loss, tape.gradient(loss, [x, *variables])


def test_every_mechanism_has_a_naive_reference():
    assert set(NAIVE) == set(attention.ATTENTIONS)


@every
@pytest.mark.parametrize("masked", [False, True])
def test_equals_naive(name, masked, rng):
    for causal in causal_choices(name):
        layer, x = make(name, causal=causal), inputs(rng)
        mask = padding() if masked else None
        y, weights = layer(x, mask=mask, return_attention_scores=True)
        expected, expected_weights = NAIVE[name](layer, x, mask)
        np.testing.assert_allclose(y, expected, atol=2e-6)
        np.testing.assert_allclose(weights, expected_weights, atol=1e-6)


@every
def test_gradients_equal_naive_differences(name, rng):
    """Against central differences of the naive reference in float64."""
    for causal in causal_choices(name):
        layer, x, mask = make(name, causal=causal), inputs(rng), padding()
        _, found = gradients(layer, x, mask)

        def loss(x):
            return (NAIVE[name](layer, x, mask)[0][mask] ** 2).sum()

        for _ in range(5):
            at = tuple(rng.integers(0, n) for n in x.shape)
            step = np.zeros(x.shape)
            step[at] = 1e-5
            slope = (loss(x + step) - loss(x - step)) / 2e-5
            np.testing.assert_allclose(
                found[0].numpy()[at], slope, rtol=2e-3, atol=2e-4
            )


@every
def test_every_weight_has_a_gradient(name, rng):
    layer, x = make(name), inputs(rng)
    _, found = gradients(layer, x, padding())
    weights = layer.trainable_weights
    for weight, gradient in zip(weights, found[1:], strict=True):
        # A key bias adds the same score to all keys: softmax cannot see it.
        if weight.path.endswith("key/bias"):
            continue
        assert np.abs(gradient.numpy()).max() > 1e-6, weight.path


@every
def test_padding_changes_nothing(name, rng):
    layer, x = make(name), inputs(rng)
    alone = layer(x[1:, :4])
    x[1, 4:] = 1e3
    padded = layer(x, mask=padding())
    np.testing.assert_allclose(padded[1:, :4], alone, atol=2e-6)


@every
def test_empty_clip_attends_to_nothing(name, rng):
    layer, x = make(name), inputs(rng)
    _, weights = layer(
        x, mask=padding(real=(T, 0)), return_attention_scores=True
    )
    assert np.all(np.asarray(weights)[1] == 0.0)
    assert np.any(np.asarray(weights)[0] != 0.0)


@every
def test_causal_sees_no_future(name, rng):
    if not attention.find(name).supports_causal:
        with pytest.raises(ValueError, match="causal"):
            make(name, causal=True)
        return
    layer, x = make(name, causal=True), inputs(rng)
    before = np.asarray(layer(x))
    x[:, 4:] += 1.0
    after = np.asarray(layer(x))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert np.abs(before[:, 4:] - after[:, 4:]).min() > 0.0


@every
def test_weight_map_gives_the_output(name, rng):
    layer, x = make(name), inputs(rng)
    y, weights = layer(x, return_attention_scores=True)
    value = naive.dense(layer.value_dense, x).reshape(B, T, H, D)
    mixed = np.einsum("bhts,bshd->bthd", weights, value).reshape(B, T, H * D)
    np.testing.assert_allclose(
        y, naive.dense(layer.output_dense, mixed), atol=2e-6
    )


@every
def test_symbolic_and_eager_specs_agree(name, rng):
    layer = make(name)
    for shape in ((None, None, F), (B, T, F)):
        symbolic = keras.KerasTensor(shape)
        y, weights = layer(symbolic, return_attention_scores=True)
        assert y.shape == shape
        assert weights.shape == (shape[0], H, shape[1], shape[1])
    y, weights = layer(inputs(rng), return_attention_scores=True)
    assert tuple(y.shape) == (B, T, F)
    assert tuple(weights.shape) == (B, H, T, T)


@every
def test_dynamic_length_in_a_graph(name, rng):
    layer = make(name)
    x = keras.Input((None, F))
    model = keras.Model(x, layer(x))
    for length in (1, 5, 11):
        data = inputs(rng, length)
        np.testing.assert_allclose(
            model.predict(data, verbose=0), layer(data), atol=2e-6
        )


@every
def test_compiled_equals_eager(name, rng):
    layer, x, mask = make(name), inputs(rng), padding()
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        compiled = tf.function(layer, jit_compile=True)
    elif keras.backend.backend() == "jax":
        import jax

        compiled = jax.jit(lambda x, mask: layer(x, mask=mask))
    else:
        pytest.skip("no compiler for this backend")
    np.testing.assert_allclose(
        compiled(x, mask=mask), layer(x, mask=mask), atol=2e-6
    )


@every
def test_config_is_complete(name):
    layer = make(
        name,
        dropout=0.25,
        use_bias=False,
        causal=causal_choices(name)[-1],
        kernel_initializer="he_normal",
    )
    assert naive.missing_from_config(layer) == []
    config = layer.get_config()
    revived = type(layer).from_config(config)
    assert revived.get_config() == config
    assert config["dropout"] == 0.25 and config["use_bias"] is False


@every
def test_dropout_acts_in_training_only(name, rng):
    layer, x = make(name, dropout=0.5), inputs(rng)
    plain = np.asarray(layer(x, training=False))
    np.testing.assert_array_equal(plain, layer(x, training=False))
    assert np.abs(plain - np.asarray(layer(x, training=True))).max() > 1e-3


@every
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_close(name, dtype, rng):
    layer = make(name)
    half = make(name, dtype=f"mixed_{dtype}")
    half.set_weights(layer.get_weights())
    x = inputs(rng)
    y = half(x, mask=padding())
    assert keras.backend.standardize_dtype(y.dtype) == dtype
    atol = {"float16": 4e-3, "bfloat16": 4e-2}[dtype]
    np.testing.assert_allclose(
        ops.cast(y, "float32"), layer(x, mask=padding()), atol=atol
    )


@every
def test_half_precision_gradients_are_finite(name, rng):
    layer, x = make(name, dtype="mixed_float16"), 30.0 * inputs(rng)
    loss, found = gradients(layer, x, padding(real=(T, 0)))
    assert np.isfinite(loss)
    for gradient in found:
        assert np.all(np.isfinite(gradient.numpy()))


@every
def test_one_step_of_training_moves_weights(name, rng):
    x = keras.Input((None, F))
    model = keras.Model(x, make(name)(x))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    before = model.get_weights()
    data = inputs(rng)
    model.fit(data, np.zeros_like(data), verbose=0)
    paths = [w.path for w in model.weights]
    for path, old, new in zip(paths, before, model.get_weights(), strict=True):
        if not path.endswith("key/bias"):
            assert np.abs(new - old).max() > 0.0, path


@every
def test_saved_and_loaded(name, rng, tmp_path):
    x = keras.Input((None, F))
    model = keras.Model(x, make(name, dropout=0.1)(x))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    data = inputs(rng)
    np.testing.assert_array_equal(
        loaded.predict(data, verbose=0), model.predict(data, verbose=0)
    )


@every
@pytest.mark.parametrize(
    "wrong",
    [
        {"num_heads": 0},
        {"key_dim": -1},
        {"num_heads": 2.0},
        {"dropout": 1.0},
        {"dropout": -0.1},
    ],
)
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


def test_softmax_sums_in_float32():
    """A float16 sum of 4096 equal terms stops at 2048 times one of them."""
    scores = ops.zeros((1, 4099), "float16")
    weights = attention.functional.masked_softmax(scores)
    assert keras.backend.standardize_dtype(weights.dtype) == "float16"
    np.testing.assert_allclose(
        np.asarray(weights, np.float64).sum(), 1.0, atol=1e-3
    )


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
