"""GELU by the error function: exact, and saved under its usual name."""

import math

import keras
import numpy as np

from audio_tf import layers
from audio_tf.layers import activations


def test_gelu_is_exact():
    x = np.linspace(-12.0, 12.0, 2_001)
    expected = [0.5 * v * math.erfc(-v / math.sqrt(2.0)) for v in x]
    found = activations.gelu(keras.ops.convert_to_tensor(x, "float32"))
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_layers_take_the_form_that_converts():
    for name in ("gelu", keras.activations.gelu, activations.gelu):
        layer = layers.FeedForward((3,), activation=name)
        assert layer.activation is activations.gelu
        config = layer.get_config()
        assert config["activation"] == "gelu"
        again = layers.FeedForward.from_config(config)
        assert again.activation is activations.gelu
    assert activations.get("relu") is keras.activations.relu


def test_gelu_is_registered():
    config = keras.activations.serialize(activations.gelu)
    assert keras.activations.get(config) is activations.gelu
