"""The log-mel patches of convolutional models."""

import naive
import numpy as np
import pytest
from keras import ops

from audio_tf import layers

RATE_HZ = 1_100


def small(**kwargs):
    return layers.MelPatches(7, sample_rate_hz=RATE_HZ, **kwargs)


def test_a_second_is_the_papers_patch():
    spec, frames = layers.MelPatches().compute_output_spec(
        np.zeros((3, 22_050), "float32")
    )
    assert spec.shape == (3, 101, 96) and frames.shape == (3,)
    assert layers.MelPatches().frame_size == 220


def test_it_is_log_mel_above_silence(rng):
    """Of the real samples alone: behind them, and in silence, it is 0."""
    x = 0.1 * rng.standard_normal((3, 131)).astype("float32")
    x[2] = 0.0
    lengths = np.array([131, 59, 131], "int32")
    padded = x.copy()
    padded[1, 59:] = np.nan
    found, frames = small()(padded, lengths)
    found = ops.convert_to_numpy(found)
    np.testing.assert_array_equal(frames, [12, 6, 12])
    for clip, length in ((0, 131), (1, 59)):
        plain = layers.LogMel(
            7,
            sample_rate_hz=RATE_HZ,
            window_s=0.03,
            hop_s=0.01,
            fft_length=64,
            floor=1e-6,
        )
        energies = np.exp(np.asarray(plain(x[clip : clip + 1, :length]))[0])
        decades = np.log(energies / 1e-6)
        count = int(frames[clip])
        np.testing.assert_allclose(
            found[clip, :count], 0.3 * decades, atol=1e-4
        )
    assert not found[1, 6:].any() and found[0].min() >= 0.0
    np.testing.assert_allclose(found[2], 0.0, atol=1e-5)


def test_features_are_augmented_in_training(rng):
    hide = layers.TimeMasking(12, num_masks=1, fill=0.0, seed=1)
    layer = small(augmentation=[hide])
    assert naive.missing_from_config(layer) == []
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    x = 0.1 * rng.standard_normal((8, 131)).astype("float32")
    kept, _ = layer(x)
    changed, _ = layer(x, training=True)
    kept, changed = map(ops.convert_to_numpy, (kept, changed))
    hidden = (changed == 0.0).all(axis=2)
    assert hidden.any() and not hidden.all()
    np.testing.assert_array_equal(changed[~hidden], kept[~hidden])
    with pytest.raises(ValueError, match="augments the spectrum"):
        small(augmentation=[layers.VocalTractPerturbation()])
