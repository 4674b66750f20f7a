"""`MelFrontend` against windows cut one by one, librosa's mel and NumPy."""

import keras
import numpy as np
import pytest
import scipy.signal
from keras import ops

from audio_tf import layers
from audio_tf.layers import mel, mel_frontend

RATE_HZ = 1_100
SIZES = {
    "hidden_dim": 5,
    "num_mel_bins": 7,
    "window_s": 0.03,
    "hop_s": 0.01,
    "stack_size": 2,
    "sample_rate_hz": RATE_HZ,
}
HOP, WINDOW, FFT = 11, 33, 64
KERNEL = np.random.default_rng(5).standard_normal((14, 5)).astype("float32")


def built(**kwargs):
    layer = layers.MelFrontend(**{**SIZES, **kwargs})
    layer.build((None, None))
    layer.embedding_dense.kernel.assign(KERNEL)
    return layer


def naive_bands(clip, subtract_mean=True):
    """Mel bands of one clip by NumPy alone, window after window."""
    hops = -(-len(clip) // HOP)
    padded = np.concatenate([np.zeros(WINDOW - HOP), clip, np.zeros(HOP)])
    window = scipy.signal.get_window("hann", WINDOW, fftbins=True)
    power = np.stack(
        [
            np.abs(np.fft.rfft(padded[i * HOP :][:WINDOW] * window, FFT)) ** 2
            for i in range(hops)
        ]
    )
    triangles = mel.filters(7, FFT, RATE_HZ, "htk", None, 0.0, RATE_HZ / 2)
    bands = 0.3 * np.log(power @ triangles / WINDOW + 1e-6)
    if subtract_mean:
        bands = bands - bands.mean(axis=0)
    if hops % 2:
        bands = np.concatenate([bands, np.zeros((1, 7))])
    return bands


def naive(clip, subtract_mean=True):
    """Frames of one clip, two windows each."""
    return naive_bands(clip, subtract_mean).reshape(-1, 14) @ KERNEL


@pytest.mark.parametrize("subtract_mean", [True, False])
def test_frames_equal_windows_cut_one_by_one(subtract_mean, rng):
    layer = built(subtract_mean=subtract_mean)
    lengths = np.array([131, 57, 3, 0], "int32")
    x = rng.standard_normal((4, 131)).astype("float32")
    padded = x.copy()
    for clip, length in zip(padded, lengths, strict=True):
        clip[length:] = np.nan
    found = ops.convert_to_numpy(layer(padded, lengths))
    assert found.shape == layer.compute_output_spec(x).shape == (4, 6, 5)
    for clip, frames, length in zip(x, found, lengths, strict=True):
        expected = naive(clip[:length], subtract_mean) if length else []
        count = len(expected)
        assert count == -(-length // layer.frame_size)
        if count:
            np.testing.assert_allclose(frames[:count], expected, atol=2e-4)
        # Zeros behind the clip, which the bias alone would move.
        np.testing.assert_array_equal(frames[count:], 0.0)


def test_bands_come_without_an_embedding(rng):
    sizes = {name: value for name, value in SIZES.items() if name[0] != "h"}
    layer = mel_frontend.MelBands(hop_s=0.01, **sizes)
    x = rng.standard_normal((2, 57)).astype("float32")
    found = ops.convert_to_numpy(layer(x, np.array([57, 25], "int32")))
    assert found.shape == (2, 6, 7)
    np.testing.assert_allclose(found[0], naive_bands(x[0]), atol=1e-4)
    np.testing.assert_allclose(found[1, :4], naive_bands(x[1, :25]), atol=1e-4)
    assert (found[1, 4:] == 0).all()
    again = mel_frontend.MelBands.from_config(layer.get_config())
    np.testing.assert_array_equal(again(x), layer(x))
    spec = layer.compute_output_spec(keras.KerasTensor((2, 57)))
    assert spec.shape == (2, 6, 7)


def test_later_samples_move_no_earlier_frame(rng):
    layer = built(subtract_mean=False)
    assert layer.causal and not built().causal
    x = rng.standard_normal((1, 132)).astype("float32")
    moved = x.copy()
    moved[:, 66:] += 1.0
    before, after = (
        ops.convert_to_numpy(layer(each))[0] for each in (x, moved)
    )
    same = np.isclose(before, after, atol=1e-6).all(axis=1)
    np.testing.assert_array_equal(same, [True] * 3 + [False] * 3)


@pytest.mark.parametrize("compression", ["log", "pcen"])
def test_all_weights_are_trained_and_saved(compression, rng, tmp_path):
    layer = built(compression=compression)
    # The bands, and kernel and bias of the dense layer.
    assert len(layer.trainable_weights) == {"log": 4, "pcen": 6}[compression]
    x = rng.standard_normal((2, 90)).astype("float32")
    model = keras.Sequential([keras.Input((None,)), layer])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        *(ops.convert_to_numpy(each(x)) for each in (model, again))
    )


@pytest.mark.parametrize("compression", ["log", "pcen"])
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_policy_for_all_layers_leaves_bands_in_float32(
    policy, compression, rng
):
    """Half precision would lose quiet bands, and sums over long clips."""
    layer = built(compression=compression)
    x = rng.standard_normal((2, 131)).astype("float32")
    expected = layer.bands(x, None, training=False)
    keras.mixed_precision.set_global_policy(policy)
    half = built(compression=compression)
    found = half.bands(x, None, training=False)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    np.testing.assert_array_equal(
        ops.convert_to_numpy(found), ops.convert_to_numpy(expected)
    )
    frames = half(x)
    assert keras.backend.standardize_dtype(frames.dtype) == policy[6:]


def test_augmentation_is_of_training_alone(rng):
    """Spectra are changed before the bands, features behind the mean."""
    x = rng.standard_normal((2, 131)).astype("float32")
    plain = ops.convert_to_numpy(built()(x))
    hidden = layers.BandMasking(num_masks=40, max_bands=7, fill=0.0, seed=1)
    for augmentation in (
        layers.VocalTractPerturbation((0.8, 0.81), seed=1),
        hidden,
    ):
        layer = built(augmentation=[augmentation])
        again = layers.MelFrontend.from_config(layer.get_config())
        assert type(again.augmentation[0]) is type(augmentation)
        np.testing.assert_array_equal(ops.convert_to_numpy(layer(x)), plain)
        trained = ops.convert_to_numpy(layer(x, training=True))
        assert np.abs(trained - plain).max() > 0.01
    # All bands of each clip are hidden: what is left is the bias, 0.
    np.testing.assert_array_equal(trained, 0.0)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"compression": "logg"}, "did you mean 'log'"),
        ({"hop_s": 0.05}, "at most `window_s`"),
        ({"stack_size": 0}, "`stack_size` must be a positive"),
        ({"num_mel_bins": 200}, "more mel bands than"),
        ({"subtract_mean": 1}, "must be True or False"),
        (
            {"augmentation": [layers.RandomGain()]},
            "RandomGain augments the waveform",
        ),
    ],
)
def test_what_does_not_fit_is_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        layers.MelFrontend(**{**SIZES, **kwargs})
