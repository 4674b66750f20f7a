"""What tests on JAX call as one program gives what it gives without."""

import keras
import numpy as np
import pytest
from keras import layers
from keras.src.backend import get_keras_mask, set_keras_mask

if keras.backend.backend() != "jax":
    pytest.skip("programs of JAX", allow_module_level=True)
import jax

X = np.arange(1.0, 13.0, dtype="float32").reshape(2, 3, 2)


class Watched(layers.Layer):
    """Twice its inputs; it keeps what it was called with."""

    def call(self, x):
        self.seen = x
        return 2.0 * x


def test_an_outermost_call_is_traced():
    layer = Watched()
    np.testing.assert_array_equal(layer(X), 2.0 * X)
    assert isinstance(layer.seen, jax.core.Tracer)


@pytest.mark.op_by_op
def test_a_marked_test_has_values():
    layer = Watched()
    layer(X)
    np.testing.assert_array_equal(layer.seen, X)


def test_variables_are_written_back():
    layer = layers.Dropout(0.5)
    one, other = layer(X, training=True), layer(X, training=True)
    assert np.any(np.asarray(one) != np.asarray(other))
    norm = layers.BatchNormalization(momentum=0.0)
    norm(X, training=True)
    np.testing.assert_allclose(norm.moving_mean, X.mean((0, 1)), rtol=1e-6)


class SumOfReal(layers.Layer):
    """The sum of what its mask keeps; it keeps the mask."""

    supports_masking = True

    def call(self, x, mask=None):
        self.seen = mask
        return keras.ops.sum(x if mask is None else x * mask[..., None])


def test_masks_come_and_go():
    x = np.where(X < 7.0, 1.0, X).astype("float32")
    np.testing.assert_array_equal(
        get_keras_mask(layers.Masking(1.0)(x)), [[False] * 3, [True] * 3]
    )
    x, layer = keras.ops.convert_to_tensor(X), SumOfReal()
    set_keras_mask(x, np.array([[False] * 3, [True] * 3]))
    assert float(layer(x)) == X[1].sum()
    assert isinstance(layer.seen, jax.core.Tracer)


def test_losses_stay():
    layer = layers.ActivityRegularization(l1=1.0)
    layer(X)
    assert float(layer.losses[0]) > 0.0


class NoneBelowZero(layers.Layer):
    """Its inputs, at which it looks."""

    def call(self, x):
        if np.any(np.asarray(x) < 0.0):
            raise ValueError("There are inputs below zero.")
        return x


def test_what_looks_at_values_may():
    np.testing.assert_array_equal(NoneBelowZero()(X), X)


def test_errors_are_those_of_the_call():
    with pytest.raises(ValueError, match="inputs below zero"):
        NoneBelowZero()(-X)
