"""Arguments of the wrong kind are refused by every public layer, by name."""

import inspect

import keras
import numpy as np
import pytest

from audio_tf import attention, layers
from audio_tf.layers import activations
from audio_tf.ops import checks
from audio_tf.ops.layer import Layer

# What some classes have no default of.
NEEDED = {"num_heads": 2, "key_dim": 4, "filters": 4, "frame_size": 4}
# Of Keras, or of what anything may be that Keras looks up by it.
OF_KERAS = {"activation", "kernel_initializer"}
# By the class of a default: what no argument of that class may be.
WRONG = {
    bool: ["no", 1],
    int: ["4", 2.5, True],
    float: ["much", np.nan, np.inf, True],
    str: ["nonsense", (3,)],
}


def public(module):
    """The public layers of a module that can be made, by their names."""
    found = {name: getattr(module, name) for name in module.__all__}
    bases = (attention.Attention, attention.SelfAttention)
    return {
        name: each
        for name, each in found.items()
        if inspect.isclass(each) and each not in bases
    }


CLASSES = {**public(layers), **public(attention)}


@pytest.mark.parametrize("name", CLASSES)
def test_arguments_of_the_wrong_kind_are_named(name):
    """A text for a flag would be True, and a number for a text an index."""
    made = CLASSES[name]
    needed = {
        each.name: NEEDED[each.name]
        for each in checks.declared(made, last=Layer)
        if each.default is inspect.Parameter.empty
    }
    defaults = {**needed, **checks.defaults_of(made, last=Layer)}
    for argument in defaults.keys() - OF_KERAS:
        for wrong in WRONG.get(type(defaults[argument]), []):
            with pytest.raises(ValueError, match=rf"\b{argument}\b"):
                made(**{**needed, argument: wrong})


def features(**options):
    return layers.SpeechFeatures(options=options)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: layers.TransformerBlock(made_for_frames=0), "made_for_frames"),
        (lambda: layers.FrameMask(4, window_size=0), "window_size"),
        (lambda: layers.MFCC(41, num_mel_bins=40), "num_coefficients"),
        (lambda: layers.LogMel(max_frequency_hz="8000"), "max_frequency_hz"),
        (lambda: layers.TimeMasking(fill=None), "fill"),
        (lambda: layers.MultiScaleAverage("8"), "max_window"),
        (lambda: layers.MultiScaleAverage(windows=4), "windows"),
        (lambda: layers.MultiScaleAverage(windows=[4], shares=0.5), "shares"),
        (lambda: layers.FrameMasking(evaluation_seed=0.5), "evaluation_seed"),
        (lambda: features(spectrogram="log_mell"), "spectrogram"),
        (lambda: features(normalize="no"), "normalize"),
        (lambda: features(level_db=np.nan), "level_db"),
    ],
)
def test_an_argument_is_named_as_the_class_has_it(make, named):
    with pytest.raises(ValueError, match=f"`{named}` must"):
        make()


def test_a_convolution_has_the_gelu_that_converts():
    layer = layers.Convolution(4, activation="gelu")
    assert layer.activation is activations.gelu
    assert layer.get_config()["activation"] == "gelu"
    again = layers.Convolution.from_config(layer.get_config())
    assert again.activation is activations.gelu
    assert keras.activations.get("gelu") is not activations.gelu
