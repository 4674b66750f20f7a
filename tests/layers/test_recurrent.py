"""Gated recurrent units against a loop over the frames of each clip."""

import keras
import naive
import numpy as np

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
