"""What each front end says that it has learned."""

import math

import keras
import numpy as np
import pytest

from audio_tf import layers
from audio_tf.layers import convolutional_frontend, filters, mel_frontend

RATE_HZ = 8_000


def built(layer, rng):
    """The layer with weights that are all different."""
    layer.build((None, None))
    for weight in layer.trainable_weights:
        weight.assign(rng.uniform(0.1, 0.9, weight.shape))
    return layer


@pytest.mark.parametrize(
    "make",
    [
        layers.WaveformFrontend,
        layers.MelFrontend,
        convolutional_frontend.ConvolutionalFrontend,
        layers.Spectrogram,
        layers.SpeechFeatures,
    ],
)
def test_samples_that_are_integers_are_refused(make):
    """They had been taken for sound 32,768 times as loud as full scale."""
    clip = np.zeros((1, 1_600), "int16")
    with pytest.raises(ValueError, match="divided by their full scale"):
        make()(clip)


def test_filters_of_samples_are_the_units_of_the_dense_layer(rng):
    layer = built(layers.WaveformFrontend(5, 3, 0.001, RATE_HZ), rng)
    learned = layer.learned()
    assert learned.filters.weights.shape == (5, 8, 1)
    assert learned.filters.hop_size == 1
    assert learned.bands_hz is None and not learned.curves
    clip = rng.standard_normal(8)
    expected = [
        sum(clip[n] * unit[n, 0] for n in range(8))
        for unit in learned.filters.weights
    ] + np.asarray(layer.filter_dense.bias)
    found = layer.filter_dense(clip[None].astype("float32"))
    np.testing.assert_allclose(found[0], np.maximum(expected, 0), atol=1e-5)


def test_filters_of_a_convolution_are_its_channels(rng):
    layer = convolutional_frontend.ConvolutionalFrontend(
        4, channels=(7, 5), kernels=(3, 2), strides=(2, 2)
    )
    found = built(layer, rng).learned().filters
    kernel = np.asarray(layer.convolutions[0].kernel)
    assert found.weights.shape == (7, 3, 1)
    for channel, place in ((0, 0), (6, 2), (3, 1)):
        assert found.weights[channel, place, 0] == kernel[place, 0, channel]


def test_filters_of_bands_stand_as_windows_are_stacked(rng):
    """A frame's units from the bands, with the weights as they are said."""
    layer = built(
        layers.MelFrontend(
            5, num_mel_bins=7, stack_size=3, sample_rate_hz=RATE_HZ
        ),
        rng,
    )
    learned = layer.learned()
    weights = learned.filters.weights
    assert weights.shape == (5, 3, 7) and learned.filters.hop_size == 80
    clip = rng.uniform(-0.5, 0.5, (1, 3 * 80)).astype("float32")
    bands = np.asarray(layer.bands(clip, None, False))[0]
    expected = [
        sum(bands[t, f] * unit[t, f] for t in range(3) for f in range(7))
        for unit in weights
    ] + np.asarray(layer.embedding_dense.bias)
    np.testing.assert_allclose(layer(clip)[0, 0], expected, rtol=1e-4)


@pytest.mark.parametrize("compression", ["log", "pcen"])
def test_curves_are_what_is_learned_for_each_band(compression):
    layer = mel_frontend.MelBands(
        7, sample_rate_hz=RATE_HZ, compression=compression
    )
    layer.build((None, None))
    learned = layer.learned()
    assert learned.filters is None
    # The triangles that the bands are, evenly spaced from 0 to 4 kHz in mel.
    top = 2595 * math.log10(1 + 4_000 / 700)
    middles = [700 * (10 ** (top * n / 8 / 2595) - 1) for n in range(1, 8)]
    np.testing.assert_allclose(learned.bands_hz, middles)
    expected = {
        "log": {"floor (dB)": -60.0, "slope": 0.3},
        "pcen": {"smoothing": 0.025, "gain": 0.98, "bias": 2.0, "power": 0.5},
    }[compression]
    assert list(learned.curves) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(learned.curves[name], [value] * 7, rtol=1e-5)


def test_front_ends_that_learn_nothing_say_so():
    for layer in (layers.MelPatches(), layers.SpeechFeatures()):
        assert isinstance(layer, filters.Frontend)
        assert layer.learned() is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.WaveformFrontend(8, 4),
        lambda: layers.MelFrontend(4),
        lambda: convolutional_frontend.ConvolutionalFrontend(4, (4,) * 7),
        layers.MelPatches,
        layers.SpeechFeatures,
        layers.LogMel,
        lambda: layers.FrameMask(400),
    ],
)
def test_a_waveform_of_other_axes_is_named(make, rng):
    """One clip alone, and a channel, as decoders of audio give them."""
    clip = rng.standard_normal(900).astype("float32")
    for wrong in (clip, clip[None, :, None]):
        said = f"'waveform'.*expected ndim=2, found ndim={wrong.ndim}"
        with pytest.raises(ValueError, match=said):
            make()(wrong)


def test_a_waveform_of_integers_is_normalised_to_no_integers(rng):
    samples = rng.integers(-3_000, 3_000, (2, 400), dtype="int16")
    layer = convolutional_frontend.ConvolutionalFrontend(
        5, (7, 7), (10, 3), (5, 2), normalize_waveform=True
    )
    expected = layer(samples.astype("float32"))
    np.testing.assert_array_equal(*map(np.asarray, (layer(samples), expected)))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_waveform_is_normalised_before_it_is_rounded(policy, rng):
    """A faint sound on top of a constant, of which rounding leaves little."""
    sound = rng.standard_normal((2, 400)).astype("float32")
    half, full = (
        convolutional_frontend.ConvolutionalFrontend(
            hidden_dim=5,
            channels=(7, 7),
            kernels=(10, 3),
            strides=(5, 2),
            normalize_waveform=True,
            dtype=dtype,
        )
        for dtype in (policy, "float32")
    )
    for layer in (half, full):
        layer.build((None, None))
    half.set_weights(full.get_weights())
    found, expected = (
        keras.ops.convert_to_numpy(
            keras.ops.cast(layer(0.5 + 1e-3 * sound), "float32")
        )
        for layer in (half, full)
    )
    assert keras.backend.standardize_dtype(half(sound).dtype) == policy[6:]
    error = np.sqrt(np.mean((found - expected) ** 2))
    assert error < 0.03 * expected.std()
