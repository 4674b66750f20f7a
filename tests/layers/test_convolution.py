"""Convolutions over time and bands against loops over every output."""

import keras
import naive
import numpy as np
import pytest
from attention_cases import gradients

from audio_tf import layers

B, T, F, C = 2, 11, 7, 3
REAL = (T, 4)

LAYERS = {
    "convolution": lambda: layers.Convolution(5, strides=2, use_bias=True),
    "block": lambda: layers.ConvolutionBlock(5, 2, use_bias=True),
    "stem": lambda: layers.ConvolutionBlock(
        5, 1, 5, 2, pool_size=(3, 3), pool_strides=(2, 2)
    ),
    "tall": lambda: layers.ConvolutionBlock(5, pool_size=(2, 5)),
    "bands": lambda: layers.BandPooling(include_max=True),
    "relu": lambda: layers.NormalizedReLU(),
    "dense": lambda: layers.DenselyConnectedBlock(2, 2),
    "transition": lambda: layers.DenseTransition(5),
}
every = pytest.mark.parametrize("name", LAYERS)


def images(rng):
    """Clips whose padding holds what must not be seen, and their mask."""
    x = rng.standard_normal((B, T, F, C)).astype("float32")
    for clip, real in enumerate(REAL):
        x[clip, real:] = np.nan
    return x, np.arange(T) < np.array(REAL)[:, None]


def moved(layer, shape, rng):
    """A built layer, whose weights are not what they were at first."""
    layer.build(shape)
    for weight in layer.weights:
        drawn = rng.uniform(0.3, 1.2, weight.shape)
        positive = "variance" in weight.path or "gamma" in weight.path
        weight.assign(drawn if positive else drawn - 0.7)
    return layer


def product(x, layer):
    """One clip `(time, bands, channels)` under a `Conv2D`, zeros around it."""
    (size, _), (stride, _) = layer.kernel_size, layer.strides
    kernel = np.asarray(layer.kernel)
    rows, columns = (-(-count // stride) for count in x.shape[:2])
    y = np.zeros((rows, columns, layer.filters))
    for t in range(rows):
        for f in range(columns):
            for i in range(size):
                for j in range(size):
                    row = t * stride + i - size // 2
                    column = f * stride + j - size // 2
                    if 0 <= row < x.shape[0] and 0 <= column < x.shape[1]:
                        y[t, f] += x[row, column] @ kernel[i, j]
    return y + np.asarray(layer.bias) if layer.use_bias else y


def normalised(y, norm):
    mean, variance = np.asarray(norm.moving_mean), norm.moving_variance
    y = (y - mean) / np.sqrt(np.asarray(variance) + 1e-5)
    return y * np.asarray(norm.gamma) + np.asarray(norm.beta)


def convolved(x, layer, positive=True):
    y = normalised(product(x, layer.convolution), layer.norm)
    return np.maximum(y, 0) if positive else y


def means(x):
    """Means over 2 x 2 of one clip; the last may be over one frame."""
    rows, columns = -(-x.shape[0] // 2), x.shape[1] // 2
    return np.array(
        [
            [
                x[2 * t : 2 * t + 2, 2 * f : 2 * f + 2].mean(axis=(0, 1))
                for f in range(columns)
            ]
            for t in range(rows)
        ]
    )


def pooled(x, size, stride, centred):
    """Maxima of one clip; every frame is in one, but not every band."""
    first = [1, 1] if centred else [0, 0]
    rows = -(-x.shape[0] // stride[0])
    inside = x.shape[1] + 2 * first[1]
    columns = (inside - size[1]) // stride[1] + 1
    y = np.zeros((rows, columns, x.shape[2]))
    for t in range(rows):
        for f in range(columns):
            top = max(t * stride[0] - first[0], 0)
            left = max(f * stride[1] - first[1], 0)
            window = x[
                top : t * stride[0] - first[0] + size[0],
                left : f * stride[1] - first[1] + size[1],
            ]
            y[t, f] = window.max(axis=(0, 1))
    return y


def expected(name, layer, x):
    """What a layer makes of one clip."""
    if name == "bands":
        return np.concatenate([x.max(axis=1), x.mean(axis=1)], axis=-1)
    if name == "convolution":
        return convolved(x, layer)
    if name == "relu":
        return np.maximum(normalised(x, layer.norm), 0)
    if name == "transition":
        y = np.maximum(normalised(x, layer.norm.norm), 0)
        return means(product(y, layer.convolution))
    if name == "dense":
        for norm, narrow, wide in zip(
            layer.norms, layer.narrow, layer.wide, strict=True
        ):
            y = convolved(np.maximum(normalised(x, norm.norm), 0), narrow)
            x = np.concatenate([x, product(y, wide)], axis=-1)
        return x
    for each in layer.convolutions:
        x = convolved(x, each)
    return pooled(x, layer.pool_size, layer.pool_strides, name == "stem")


@every
def test_it_is_a_loop_over_real_frames(name, rng):
    """Of a padded clip too, whatever its padding holds."""
    x, mask = images(rng)
    layer = moved(LAYERS[name](), x.shape, rng)
    found = keras.ops.convert_to_numpy(layer(x, mask=mask))
    real = keras.ops.convert_to_numpy(layer.compute_mask(x, mask))
    for clip, length in enumerate(REAL):
        wanted = expected(name, layer, x[clip, :length])
        assert real[clip].sum() == len(wanted)
        np.testing.assert_allclose(
            found[clip][real[clip]], wanted, rtol=1e-5, atol=2e-5
        )
    alone = layer(x[:1])
    np.testing.assert_allclose(alone[0], found[0], atol=1e-6)


class AsFrames(keras.layers.Layer):
    """A built layer whose bands and channels come out as a frame's features."""

    def __init__(self, layer, **kwargs):
        super().__init__()
        self.supports_masking = True
        self.layer, self.built, self.kwargs = layer, True, kwargs

    def call(self, inputs, mask=None):
        x = self.layer(inputs, mask=mask, **self.kwargs)
        return keras.ops.reshape(x, (*x.shape[:2], -1))


class KerasNormalizedReLU(layers.NormalizedReLU):
    """What is compared with: Keras' own normalisation, with a mask."""

    def __init__(self):
        super().__init__()
        self.norm = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)

    def call(self, inputs, mask=None, training=None):
        mask = None if mask is None else keras.ops.expand_dims(mask, -1)
        return keras.ops.relu(self.norm(inputs, training=training, mask=mask))


@pytest.mark.parametrize("name", ["relu", "dense"])
def test_padding_moves_no_gradient(name, rng):
    """Nor makes one NaN, where what normalises comes before a convolution."""
    x, mask = images(rng)
    layer = AsFrames(moved(LAYERS[name](), x.shape, rng))
    silent = np.where(mask[:, :, None, None], x, np.float32(0.0))
    _, expected = gradients(layer, silent, mask)
    _, found = gradients(layer, x, mask)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


@every
def test_shapes_and_config(name, rng):
    layer = LAYERS[name]()
    assert naive.missing_from_config(layer) == []
    revived = type(layer).from_config(layer.get_config())
    assert revived.get_config() == layer.get_config()
    found = tuple(layer(images(rng)[0]).shape)
    assert layer(keras.KerasTensor((B, T, F, C))).shape == found
    dynamic = layer(keras.KerasTensor((None, None, F, C))).shape
    assert dynamic == (None, None, *found[2:])


@pytest.mark.parametrize("name", sorted({*LAYERS} - {"bands", "relu"}))
def test_integers_are_convolved_as_floats(name, rng):
    x = rng.integers(-5, 6, images(rng)[0].shape)
    layer = LAYERS[name]()
    expected = layer(x.astype("float32"))
    np.testing.assert_array_equal(*map(np.asarray, (layer(x), expected)))


def test_training_normalises_by_real_frames(rng):
    """Their mean is 0 then, and a tenth of it is remembered."""
    x, mask = images(rng)
    layer = layers.Convolution(5, activation="linear")
    y = keras.ops.convert_to_numpy(layer(x, mask=mask, training=True))
    np.testing.assert_allclose(y[mask].mean(axis=(0, 1)), 0.0, atol=1e-5)
    np.testing.assert_allclose(y[mask].std(axis=(0, 1)), 1.0, atol=1e-3)
    kernel = layer.convolution.kernel
    raw = keras.ops.conv(np.where(np.isnan(x), 0.0, x), kernel, padding="same")
    mean = keras.ops.convert_to_numpy(raw)[mask].mean(axis=(0, 1))
    np.testing.assert_allclose(layer.norm.moving_mean, 0.1 * mean, atol=1e-6)


@pytest.mark.parametrize("padded", [False, True])
def test_normalisation_is_that_of_keras(padded, rng):
    x, mask = images(rng)
    x = 3.0 + np.where(mask[..., None, None], x, np.float32(0.0))
    mine, reference = (
        moved(each, x.shape, np.random.default_rng(7))
        for each in (layers.NormalizedReLU(), KerasNormalizedReLU())
    )
    found, expected = (
        gradients(AsFrames(each, training=True), x, mask if padded else None)
        for each in (mine, reference)
    )
    for one, other in zip(found[1], expected[1], strict=True):
        assert np.abs(other).max() > 0.1
        np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(other).max())
    mine(x, mask=mask, training=True)
    reference(x, mask=mask, training=True)
    for one, other in zip(
        mine.norm.get_weights(), reference.norm.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def by_batch(x, mask, norm):
    """Normalises by numpy, and says what mean and variance it has seen."""
    real = x[mask]
    mean, variance = real.mean(axis=(0, 1)), real.var(axis=(0, 1))
    y = (x - mean) / np.sqrt(variance + 1e-5) * np.asarray(norm.gamma)
    return np.maximum(y + np.asarray(norm.beta), 0.0), mean, variance


def test_units_of_a_block_see_the_statistics_of_the_batch(rng):
    x, mask = images(rng)
    layer = moved(layers.DenselyConnectedBlock(3, 2), x.shape, rng)
    before = [norm.norm.get_weights()[2:] for norm in layer.norms]
    found = keras.ops.convert_to_numpy(layer(x, mask=mask, training=True))
    for index, (norm, narrow, wide) in enumerate(
        zip(layer.norms, layer.narrow, layer.wide, strict=True)
    ):
        y, *moments = by_batch(x, mask, norm.norm)
        for old, new, now in zip(
            before[index], moments, norm.norm.get_weights()[2:], strict=True
        ):
            np.testing.assert_allclose(now, 0.9 * old + 0.1 * new, atol=1e-5)
        inner = np.full((B, T, F, 8), np.nan)
        added = np.full((B, T, F, 2), np.nan)
        for clip, real in enumerate(REAL):
            inner[clip, :real] = product(y[clip, :real], narrow.convolution)
        inner, *_ = by_batch(inner, mask, narrow.norm)
        for clip, real in enumerate(REAL):
            added[clip, :real] = product(inner[clip, :real], wide)
        x = np.concatenate([x, added], axis=-1)
    np.testing.assert_allclose(found[mask], x[mask], atol=1e-4)


def test_half_precision_keeps_the_digits_of_the_statistics(rng):
    """Of 300 with a deviation of 1, whose mean float16 knows to 0.25."""
    x = (300.0 + rng.standard_normal((4, T, F, C))).astype("float16")
    expected = layers.NormalizedReLU()(x.astype("float32"), training=True)
    block = layers.DenselyConnectedBlock(1, 2, dtype="mixed_float16")
    norm = layers.NormalizedReLU(dtype="mixed_float16")
    found = norm(x, training=True)
    assert keras.backend.standardize_dtype(found.dtype) == "float16"
    np.testing.assert_allclose(found, expected, atol=2e-3)
    block(x, training=True)
    for moving in (norm.norm.moving_mean, block.norms[0].norm.moving_mean):
        np.testing.assert_allclose(
            moving, 0.1 * x.astype("float64").mean(axis=(0, 1, 2)), rtol=1e-5
        )


@pytest.mark.parametrize("name", ["convolution", "relu", "dense"])
def test_frozen_normalisation_is_by_what_it_has_learned(name, rng):
    x, mask = images(rng)
    layer = moved(LAYERS[name](), x.shape, rng)
    expected = keras.ops.convert_to_numpy(layer(x, mask=mask, training=False))
    layer.trainable = False
    before = layer.get_weights()
    found = keras.ops.convert_to_numpy(layer(x, mask=mask, training=True))
    real = keras.ops.convert_to_numpy(layer.compute_mask(x, mask))
    np.testing.assert_array_equal(found[real], expected[real])
    for one, other in zip(before, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["convolution", "relu", "dense"])
def test_a_batch_without_a_real_frame_is_finite(name, rng):
    x, mask = images(rng)
    layer = LAYERS[name]()
    layer(np.full_like(x, np.nan), mask=mask & False, training=True)
    assert all(np.isfinite(each).all() for each in layer.get_weights())


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="must be odd.*kernel_size=4"):
        layers.Convolution(3, 4)
    for strides in ((3, 2), (2, 4)):
        with pytest.raises(ValueError, match="`pool_strides` .*above `pool_s"):
            layers.ConvolutionBlock(3, pool_size=(2, 2), pool_strides=strides)
    with pytest.raises(ValueError, match="Too few bands.*Received: 4 bands"):
        layers.ConvolutionBlock(3, pool_size=(2, 5)).build((None, None, 4, 1))
    with pytest.raises(ValueError, match="Too few bands.*Received: 1 bands"):
        layers.DenseTransition(3).build((None, None, 1, 4))
