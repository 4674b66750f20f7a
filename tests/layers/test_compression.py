"""Learned compression and pooling against loops in float64."""

import keras
import naive
import numpy as np
import pytest

from audio_tf import layers
from audio_tf.layers import compression

B, T, F = 3, 11, 8
REAL = (T, 5, 0)

COMPRESSIONS = {
    "log": lambda **k: layers.LogCompression(1e-4, 0.5, **k),
    "pcen": lambda **k: layers.PCEN(0.3, 0.9, 1.5, 0.7, 1e-3, **k),
}
POOLINGS = {
    "statistics": lambda **k: layers.StatisticsPooling(**k),
    "statistics_mean": lambda **k: layers.StatisticsPooling(False, **k),
    "attention": lambda **k: layers.AttentionPooling(2, 5, **k),
    "attention_mean": lambda **k: layers.AttentionPooling(
        4, 3, include_deviation=False, **k
    ),
}
EVERY = {**COMPRESSIONS, **POOLINGS}


def energies(rng, length=T):
    return rng.gamma(0.3, 2.0, (B, length, F)).astype("float32")


def moved(layer, shape, rng):
    """Builds the layer and moves its weights from where they begin."""
    layer.build(shape)
    layer.set_weights(
        [w + 0.2 * rng.standard_normal(w.shape) for w in layer.get_weights()]
    )
    return layer


@pytest.mark.parametrize("name", EVERY)
def test_promises_of_every_layer(name, rng):
    """Configuration, padding, NaN in it, specs, half precision, gradients."""
    layer = EVERY[name]()
    assert naive.missing_from_config(layer) == []
    revived = type(layer).from_config(layer.get_config())
    assert revived.get_config() == layer.get_config()

    x, mask = energies(rng), np.arange(T) < np.array(REAL)[:, None]
    x[~mask] = np.nan
    moved(layer, x.shape, rng)
    together = np.asarray(layer(x, mask=mask))
    assert np.isfinite(together).all()
    for clip, length in enumerate(REAL[:2]):
        alone = np.asarray(layer(x[clip : clip + 1, :length]))[0]
        same = together[clip] if alone.ndim == 1 else together[clip, :length]
        np.testing.assert_allclose(same, alone, rtol=2e-5, atol=2e-5)
    assert (together[2] == 0).all()

    for shape in ((None, None, F), x.shape):
        spec = layer(keras.KerasTensor(shape)).shape
        assert spec[1:] == (together.shape if shape[0] else spec)[1:]
        assert len(spec) == together.ndim and spec[-1] == together.shape[-1]

    half = EVERY[name](dtype="mixed_float16")
    half.build(x.shape)
    half.set_weights(layer.get_weights())
    y = half(x, mask=mask)
    assert keras.backend.standardize_dtype(y.dtype) == "float16"
    np.testing.assert_allclose(
        np.asarray(keras.ops.cast(y, "float32")), together, rtol=6e-3, atol=6e-3
    )


def gradients(layer, x, mask):
    """Of the sum of squares, by the inputs and by each weight."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(layer(x, mask=mask) ** 2)
        return tape.gradient(total, [x, *layer.trainable_variables])
    if keras.backend.backend() == "torch":
        import torch

        x = torch.tensor(x, requires_grad=True)
        total = (layer(x, mask=mask) ** 2).sum()
        weights = [weight.value for weight in layer.trainable_variables]
        return torch.autograd.grad(total, [x, *weights])
    jax = pytest.importorskip("jax")

    def total(x, weights):
        return (layer.stateless_call(weights, [], x, mask=mask)[0] ** 2).sum()

    weights = [weight.value for weight in layer.trainable_variables]
    by_inputs, by_weights = jax.jit(jax.grad(total, (0, 1)))(x, weights)
    return [by_inputs, *by_weights]


@pytest.mark.parametrize("name", EVERY)
def test_gradients_are_finite_where_there_is_nothing(name, rng):
    """Silence, a single frame, a clip without any, and NaN behind.

    TensorFlow takes the slope of a root at 0 for 0, JAX for infinite.
    """
    x, mask = energies(rng), np.arange(T) < np.array([T, 1, 0])[:, None]
    x[0] = 0.0
    x[~mask] = np.nan
    layer = EVERY[name]()
    layer.build(x.shape)
    for gradient in gradients(layer, x, mask):
        assert np.isfinite(np.asarray(gradient)).all()


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="tf.function"
)
@pytest.mark.parametrize("name", EVERY)
def test_one_graph_takes_all_lengths(name, rng):
    tf = pytest.importorskip("tensorflow")
    layer = EVERY[name]()
    layer.build((None, None, F))
    signature = tf.TensorSpec((None, None, F), "float32")
    graph = tf.function(layer, input_signature=[signature])
    for length in (2, 64, 131):
        x = energies(rng, length)
        np.testing.assert_allclose(
            graph(x).numpy(), np.asarray(layer(x)), rtol=1e-5, atol=1e-5
        )


def test_log_begins_as_log_mel(rng):
    x = 0.1 * rng.standard_normal((2, 1_601)).astype("float32")
    spectrum = layers.LogMel(
        num_mel_bins=F, fft_length=512, window_s=0.025, floor=1e-6
    )
    found = layers.LogCompression(1e-6)(np.exp(np.asarray(spectrum(x))) - 1e-6)
    np.testing.assert_allclose(
        np.asarray(found), np.asarray(spectrum(x)), rtol=1e-4, atol=1e-3
    )


def test_log_is_its_formula(rng):
    layer, x = COMPRESSIONS["log"](), energies(rng)
    moved(layer, x.shape, rng)
    log_floor, slope = layer.get_weights()
    expected = slope * np.log(x + np.exp(log_floor))
    np.testing.assert_allclose(np.asarray(layer(x)), expected, atol=1e-5)
    assert (np.asarray(layer(-x)) == np.asarray(layer(0.0 * x))).all()


def logit(rate):
    return np.log(rate / (1.0 - rate)).astype("float32")


@pytest.mark.parametrize("length", [1, 63, 64, 65, 200])
def test_smoothing_is_the_recurrence(length, rng):
    x = energies(rng, length)
    rate = np.linspace(0.01, 0.99, F)
    level, expected = x[:, 0].astype("float64"), []
    for t in range(length):
        level = (1.0 - rate) * level + rate * x[:, t]
        expected.append(level)
    found = compression.smooth(keras.ops.convert_to_tensor(x), logit(rate))
    np.testing.assert_allclose(
        np.asarray(found), np.stack(expected, axis=1), rtol=2e-5, atol=1e-6
    )


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_a_batch_without_any_frame_stays_one(name):
    found = COMPRESSIONS[name]()(np.zeros((B, 0, F), "float32"))
    assert tuple(found.shape) == (B, 0, F)


def test_smoothing_of_six_minutes_stays_finite():
    x = np.ones((1, 36_000, 1), "float32")
    for rate in (1e-4, 0.9999):
        found = compression.smooth(
            keras.ops.convert_to_tensor(x), logit(np.array([rate]))
        )
        np.testing.assert_allclose(np.asarray(found), 1.0, atol=1e-3)


def test_pcen_stays_finite_however_far_smoothing_is_learned(rng):
    """From a logit of 17 on it rounds to 1, where the level is the energy."""
    layer, x = COMPRESSIONS["pcen"](), energies(rng, 70)
    layer.build(x.shape)
    _, log_gain, log_bias, log_power = layer.get_weights()
    learned = np.array([-200, -90, -20, 8, 16.5, 17, 30, 200], "float32")
    layer.logit_smoothing.assign(learned)
    gain, bias, power = map(np.exp, (log_gain, log_bias, log_power))
    level = np.where(learned > 10, x, x[:, :1])  # (B, T, F)
    expected = (x / (1e-3 + level) ** gain + bias) ** power - bias**power
    known = abs(learned) > 10
    found = np.asarray(layer(x))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(
        found[..., known], expected[..., known], rtol=1e-3, atol=1e-4
    )
    for gradient in gradients(layer, x, None):
        assert np.isfinite(np.asarray(gradient)).all()


def test_pcen_is_the_papers_equations(rng):
    layer, x = COMPRESSIONS["pcen"](), energies(rng, 150)
    moved(layer, x.shape, rng)
    logit, log_gain, log_bias, log_power = (
        w.astype("float64") for w in layer.get_weights()
    )
    s = 1.0 / (1.0 + np.exp(-logit))
    gain, bias, power = np.exp(log_gain), np.exp(log_bias), np.exp(log_power)
    found, level = np.asarray(layer(x)), x[:, 0].astype("float64")
    for t in range(x.shape[1]):
        level = (1.0 - s) * level + s * x[:, t]
        expected = (
            x[:, t] / (1e-3 + level) ** gain + bias
        ) ** power - bias**power
        np.testing.assert_allclose(found[:, t], expected, rtol=1e-3, atol=1e-5)


def test_pcen_looks_at_no_later_frame(rng):
    layer, x = COMPRESSIONS["pcen"](), energies(rng, 130)
    before = np.asarray(layer(x))
    for frame in (1, 64, 100):
        later = x.copy()
        later[:, frame:] += 7.0
        after = np.asarray(layer(later))
        np.testing.assert_array_equal(after[:, :frame], before[:, :frame])
        assert (after[:, frame] != before[:, frame]).all()


def test_statistics_are_numpys(rng):
    x, real = rng.standard_normal((B, T, F)).astype("float32"), (T, 5, 1)
    # A level far above the deviation must not drown it.
    x += 100.0
    mask = np.arange(T) < np.array(real)[:, None]
    found = np.asarray(layers.StatisticsPooling()(x, mask=mask))
    for clip, length in enumerate(real):
        frames = x[clip, :length].astype("float64")
        expected = np.concatenate([frames.mean(axis=0), frames.std(axis=0)])
        np.testing.assert_allclose(found[clip], expected, rtol=1e-4, atol=1e-4)


def test_attention_pooling_is_a_loop_over_heads(rng):
    x, heads = rng.standard_normal((B, T, F)).astype("float32"), 2
    mask = np.arange(T) < np.array([T, 5, 1])[:, None]
    layer = moved(layers.AttentionPooling(heads, 5), x.shape, rng)
    found = np.asarray(layer(x, mask=mask))
    share = F // heads
    for clip in range(B):
        frames = x[clip, mask[clip]].astype("float64")
        hidden = np.tanh(naive.dense(layer.hidden_dense, frames))
        scores = naive.dense(layer.score_dense, hidden)
        for head in range(heads):
            weights = naive.softmax(scores[:, head])[:, None]
            own = slice(head * share, (head + 1) * share)
            mean = (weights * frames[:, own]).sum(axis=0)
            variance = (weights * (frames[:, own] - mean) ** 2).sum(axis=0)
            np.testing.assert_allclose(found[clip, own], mean, atol=1e-5)
            np.testing.assert_allclose(
                found[clip, F:][own], np.sqrt(variance), atol=1e-4
            )


def test_arguments_out_of_range_are_named():
    for make, name in [
        (lambda: layers.LogCompression(0.0), "floor"),
        (lambda: layers.PCEN(smoothing=1.0), "smoothing"),
        (lambda: layers.PCEN(power=0.0), "power"),
        (lambda: layers.AttentionPooling(0), "num_heads"),
        (lambda: layers.AttentionPooling(3).build((1, 2, 8)), "num_heads"),
    ]:
        with pytest.raises(ValueError, match=name):
            make()
    with pytest.raises(TypeError, match="did you mean 'smoothing'"):
        layers.PCEN(smooth=0.1)
