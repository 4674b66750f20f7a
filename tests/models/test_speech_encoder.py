"""Features and encoder as one backbone of waveforms."""

import keras
import numpy as np
import pytest
import tiny

from audio_tf import layers, models
from audio_tf.layers.augment_spectrogram import SpectrogramAugmentation

RATE_HZ = 1_100


def features(**options):
    options = {"num_mel_bins": 7, "fft_length": 64, "stack_size": 2, **options}
    return layers.SpeechFeatures("s3prl", RATE_HZ, options)


def albert(**kwargs):
    return models.AudioAlbertBackbone(
        **{
            "num_layers": 2,
            "num_heads": 3,
            "key_dim": 5,
            "hidden_dim": 12,
            "intermediate_dims": (11,),
            "feature_dim": 14,
            "initializer_range": 0.5,
            **kwargs,
        }
    )


@pytest.fixture
def clips(rng):
    return 0.1 * rng.standard_normal((3, 701)).astype("float32")


def test_it_is_features_then_encoder(clips):
    encoder, own = albert(), features()
    both = models.SpeechEncoder(encoder, own)
    lengths = np.array([701, 401, 173], "int32")
    outputs = both({"waveform": clips, "lengths": lengths})
    x, real = own(clips, lengths, return_lengths=True)
    parts = encoder({"features": x, "lengths": real})
    for name in ("sequence_output", "frame_mask"):
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(outputs[name]),
            keras.ops.convert_to_numpy(parts[name]),
            atol=1e-6,
        )
    assert both.sample_rate_hz == RATE_HZ


@keras.saving.register_keras_serializable("tests")
class Negated(SpectrogramAugmentation):
    def augment(self, inputs, lengths):
        return -inputs


def test_features_are_augmented_before_the_encoder(clips):
    encoder, own = albert(), features()
    both = models.SpeechEncoder(encoder, own, augmentation=[Negated()])
    lengths = np.array([701, 401, 173], "int32")
    inputs = {"waveform": clips, "lengths": lengths}
    x, real = own(clips, lengths, return_lengths=True)
    for training, sign in ((True, -1.0), (False, 1.0)):
        found = both(inputs, training=training)["sequence_output"]
        expected = encoder({"features": sign * x, "lengths": real})
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(found),
            keras.ops.convert_to_numpy(expected["sequence_output"]),
            atol=1e-5,
        )
    tract = layers.VocalTractPerturbation()
    with pytest.raises(ValueError, match="augments the spectrum"):
        models.SpeechEncoder(encoder, own, augmentation=[tract])


@pytest.mark.parametrize("weighted_sum", [False, True])
@pytest.mark.op_by_op
def test_hidden_states_are_those_of_the_encoder(weighted_sum, clips):
    encoder = albert(return_hidden_states=True)
    both = models.SpeechEncoder(encoder, features(), weighted_sum)
    inputs = {
        "waveform": clips,
        "lengths": np.array([701, 401, 173], "int32"),
    }
    for given in (inputs, {"waveform": clips}, clips):
        expected = both(given)
        found = both.hidden_states(given)
        assert len(found) == 3
        for index, (states, mask) in enumerate(found):
            np.testing.assert_array_equal(
                keras.ops.convert_to_numpy(mask),
                keras.ops.convert_to_numpy(expected["frame_mask"]),
            )
            np.testing.assert_allclose(
                keras.ops.convert_to_numpy(states),
                keras.ops.convert_to_numpy(expected["hidden_states"])[:, index],
                atol=1e-6,
            )
    with pytest.raises(ValueError, match="Received: keys="):
        both.hidden_states({"features": clips})


@pytest.mark.parametrize("weighted_sum", [False, True])
def test_a_preset_brings_features_and_weights_back(
    weighted_sum, clips, tmp_path
):
    both = models.SpeechEncoder(
        albert(return_hidden_states=weighted_sum), features(), weighted_sum
    )
    if weighted_sum:
        both.mixture.layer_weights.assign([3.0, -1.0, 0.5])
    both.save_to_preset(str(tmp_path / "preset"))
    again = models.AudioBackbone.from_preset(str(tmp_path / "preset"))
    assert isinstance(again, models.SpeechEncoder)
    assert again.features.get_config() == both.features.get_config()
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(again(clips)["sequence_output"]),
        keras.ops.convert_to_numpy(both(clips)["sequence_output"]),
    )
    if weighted_sum:
        states = keras.ops.convert_to_numpy(both(clips)["hidden_states"])
        weights = np.exp([3.0, -1.0, 0.5]) / np.exp([3.0, -1.0, 0.5]).sum()
        mixed = sum(w * states[:, i] for i, w in enumerate(weights))
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(both(clips)["sequence_output"]),
            mixed,
            atol=1e-5,
        )


def test_frozen_under_a_classifier_that_learns(clips):
    both = models.SpeechEncoder(albert(), features(), trainable=False)
    classifier = models.AudioClassifier(both, labels=["a", "b"])
    before = [keras.ops.convert_to_numpy(w) for w in both.weights]
    head = classifier.get_weights()[-1].copy()
    tiny.eager(classifier).fit(clips, np.eye(2)[[0, 1, 0]], verbose=0)
    for one, other in zip(before, both.weights, strict=True):
        np.testing.assert_array_equal(one, keras.ops.convert_to_numpy(other))
    assert np.abs(classifier.get_weights()[-1] - head).max() > 0
    free = models.SpeechEncoder(albert(), features())
    assert len(free.trainable_weights) == len(both.weights)


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="Received: 7 features"):
        models.SpeechEncoder(albert(), features(stack_size=1))
    with pytest.raises(ValueError, match="return_hidden_states=False"):
        models.SpeechEncoder(albert(), features(), weighted_sum=True)
    with pytest.raises(ValueError, match="be a SpeechFeatures, .*MelFrontend"):
        models.SpeechEncoder(albert(), layers.MelFrontend())
