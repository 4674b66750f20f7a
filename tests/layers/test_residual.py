"""`ResidualBlock` against convolutions written out in NumPy."""

import numpy as np
import pytest
from keras import ops

from audio_tf import layers


def convolved(x, convolution, stride):
    """One clip `(time, bands, channels)`, output by output."""
    kernel = np.asarray(convolution.convolution.kernel)
    size = len(kernel)
    around = size // 2
    padded = np.pad(x, [(around, around), (around, around), (0, 0)])
    times, bands = range(0, x.shape[0], stride), range(0, x.shape[1], stride)
    return np.stack(
        [
            np.stack(
                [
                    np.einsum("tfc,tfcd", padded[t:, f:][:size, :size], kernel)
                    for f in bands
                ]
            )
            for t in times
        ]
    )


def normalized(x, norm):
    scale = np.asarray(norm.gamma) / np.sqrt(
        np.asarray(norm.moving_variance) + norm.epsilon
    )
    return (x - np.asarray(norm.moving_mean)) * scale + np.asarray(norm.beta)


@pytest.mark.parametrize("filters, strides", [(3, 1), (5, 1), (3, 2), (4, 2)])
def test_residual_block_equals_its_convolutions(filters, strides, rng):
    layer = layers.ResidualBlock(filters, strides)
    layer.build((None, None, 6, 3))
    for weight in layer.weights:
        weight.assign(rng.uniform(0.3, 1.0, weight.shape))
    x = rng.standard_normal((2, 7, 6, 3)).astype("float32")
    x[1, 4:] = np.nan  # padding
    mask = np.arange(7) < np.array([[7], [4]])
    found = ops.convert_to_numpy(layer(x, mask=mask))
    for row, real in enumerate((7, 4)):
        clip = x[row, :real]
        y = normalized(convolved(clip, layer.first, strides), layer.first.norm)
        y = np.maximum(y, 0.0)
        y = normalized(convolved(y, layer.second, 1), layer.second.norm)
        if strides == 1 and filters == 3:
            assert layer.shortcut is None
        else:
            clip = normalized(
                convolved(clip, layer.shortcut, strides), layer.shortcut.norm
            )
        expected = np.maximum(y + clip, 0.0)
        after = np.asarray(layer.compute_mask(x, mask))
        assert after[row].sum() == len(expected)
        np.testing.assert_allclose(
            found[row, : len(expected)], expected, rtol=1e-4, atol=1e-4
        )


def test_integers_are_added_as_floats(rng):
    x = rng.integers(-5, 6, (2, 7, 6, 3))
    layer = layers.ResidualBlock(filters=3)
    expected = layer(x.astype("float32"))
    np.testing.assert_array_equal(*map(np.asarray, (layer(x), expected)))
