"""Gated recurrent units against a loop over the frames of each clip."""

import keras
import naive
import numpy as np
import pytest

from audio_tf import layers

B, T, F, C, UNITS = 2, 7, 3, 2, 5


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def states_of(x, cell):
    """States of a cell after each frame of `(time, features)`."""
    kernel, recurrent = (
        np.asarray(cell.kernel),
        np.asarray(cell.recurrent_kernel),
    )
    bias, state, states = np.asarray(cell.bias), np.zeros(UNITS), []
    for frame in x:
        into = np.split(frame @ kernel + bias[0], 3)
        back = np.split(state @ recurrent + bias[1], 3)
        update, reset = (sigmoid(into[i] + back[i]) for i in range(2))
        new = np.tanh(into[2] + reset * back[2])
        state = update * state + (1.0 - update) * new
        states.append(state)
    return np.array(states)


def test_it_is_a_loop_in_both_directions(rng):
    x = rng.standard_normal((B, T, F, C)).astype("float32")
    real = (T, 4)
    mask = np.arange(T) < np.array(real)[:, None]
    x[~mask] = np.nan
    layer = layers.BidirectionalGRU(UNITS)
    found = keras.ops.convert_to_numpy(layer(x, mask=mask))
    assert found.shape == (B, T, 2 * UNITS)
    both = layer.recurrence
    for clip, length in enumerate(real):
        frames = x[clip, :length].reshape(length, F * C)
        forwards = states_of(frames, both.forward_layer.cell)
        backwards = states_of(frames[::-1], both.backward_layer.cell)[::-1]
        wanted = np.concatenate([forwards, backwards], axis=1)
        np.testing.assert_allclose(found[clip, :length], wanted, atol=1e-5)


def test_shapes_and_config():
    layer = layers.BidirectionalGRU(UNITS)
    assert naive.missing_from_config(layer) == []
    revived = type(layer).from_config(layer.get_config())
    assert revived.get_config() == layer.get_config()
    shape = layer(keras.KerasTensor((None, None, F, C))).shape
    assert shape == (None, None, 2 * UNITS)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_of_half_precision_begin_orthogonal(dtype, rng):
    """TensorFlow has no decomposition of bfloat16, and failed."""
    layer = layers.BidirectionalGRU(UNITS, dtype=dtype)
    x = rng.standard_normal((B, T, F, C)).astype("float32")
    assert keras.backend.standardize_dtype(layer(x).dtype) == dtype
    both = layer.recurrence
    for one in (both.forward_layer, both.backward_layer):
        kernel = keras.ops.cast(one.cell.recurrent_kernel, "float32")
        kernel = keras.ops.convert_to_numpy(kernel)
        np.testing.assert_allclose(kernel @ kernel.T, np.eye(UNITS), atol=0.02)


def test_weights_begin_as_those_of_keras():
    keras.utils.set_random_seed(5)
    layer = layers.BidirectionalGRU(UNITS)
    layer.build((None, None, F, C))
    found = layer.get_weights()
    keras.utils.set_random_seed(5)
    expected = keras.layers.Bidirectional(keras.layers.GRU(UNITS))
    expected.build((None, None, F * C))
    for one, other in zip(found, expected.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
