"""Weights of classes in `fit`, by label and by number."""

import keras
import numpy as np
import pytest
import tiny

from audio_tf.models import AudioClassifier
from audio_tf.models.class_weights import weights_by_class

LABELS = ["dog", "rain", "siren"]
WAVEFORM = np.random.default_rng(3).normal(0.0, 0.1, (5, 700)).astype("float32")
NAMES = ["dog", "rain", "siren", "siren", "dog"]


@pytest.fixture(scope="module")
def classifier():
    model = AudioClassifier(tiny.backbone(), labels=LABELS, chunk_s=None)
    model.compile(keras.optimizers.SGD(0.0), "binary_crossentropy")
    return model


def loss_of(classifier, **weights):
    history = classifier.fit(WAVEFORM, NAMES, verbose=0, **weights)
    return history.history["loss"][0]


@pytest.mark.costly
def test_clips_have_the_weights_of_their_labels(classifier):
    by_clip = np.array([4.0, 1.0, 0.5, 0.5, 4.0])
    expected = loss_of(classifier, sample_weight=by_clip)
    for given in ({"dog": 4.0, "siren": 0.5}, {0: 4, 2: np.float32(0.5)}):
        found = loss_of(classifier, class_weight=given)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        batch = classifier.train_on_batch(WAVEFORM, NAMES, class_weight=given)
        np.testing.assert_allclose(float(batch), expected, rtol=1e-5)


def test_a_class_that_is_left_out_has_the_weight_one():
    # Keras' table for tf.data ends with the highest number that is given.
    found = weights_by_class({"rain": 2}, LABELS, 3)
    assert found == {0: 1.0, 1: 2.0, 2: 1.0}
    assert weights_by_class({np.int64(1): 2}, None, 2) == {0: 1.0, 1: 2.0}


def test_of_one_class_its_clips_and_the_others_have_weights():
    """Keras' number of a clip is its target, 1 where it is of the class."""
    model = AudioClassifier(tiny.backbone(), labels=["dog"], chunk_s=None)
    model.compile(keras.optimizers.SGD(0.0), "binary_crossentropy")
    tiny.eager(model)
    targets = np.array([[1], [0], [0], [1], [0]], "float32")
    for given, weights in (
        ({"dog": 4.0}, [4.0, 1.0, 1.0, 4.0, 1.0]),
        ({1: 4.0, 0: 0.5}, [4.0, 0.5, 0.5, 4.0, 0.5]),
    ):
        expected, found = (
            model.fit(WAVEFORM, targets, verbose=0, **each).history["loss"]
            for each in (
                {"sample_weight": np.array(weights)},
                {"class_weight": given},
            )
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        batch = model.train_on_batch(WAVEFORM, targets, class_weight=given)
        np.testing.assert_allclose(float(batch), expected[0], rtol=1e-5)
    with pytest.raises(ValueError, match="from 0 to 1 or labels"):
        model.fit(WAVEFORM, targets, class_weight={2: 1.0})


@pytest.mark.parametrize(
    "given, message",
    [
        ("balanced", "must be a dict.*Received: class_weight='balanced'"),
        ([1.0, 2.0, 3.0], "must be a dict"),
        ({"rian": 1.0}, "did you mean 'rain'. Received: class 'rian'"),
        ({3: 1.0}, "from 0 to 2 or labels.*Received: class 3"),
        ({-1: 1.0}, "Received: class -1"),
        ({"rain": 1.0, 1: 2.0}, "a class once"),
        ({"rain": None}, "`class_weight` must be a number of at least 0"),
    ],
)
def test_wrong_weights_are_named(classifier, given, message):
    with pytest.raises(ValueError, match=message):
        loss_of(classifier, class_weight=given)


@pytest.mark.parametrize(
    "targets", [[["dog", "siren"]] + [["rain"]] * 4, [[]] + [["rain"]] * 4]
)
def test_clips_of_several_labels_are_refused(classifier, targets):
    # Keras gives them the weight of their first label alone.
    message = r"one label each.*`sample_weight`.*of clip 0"
    with pytest.raises(ValueError, match=message):
        classifier.fit(WAVEFORM, targets, class_weight={0: 2.0}, verbose=0)
    with pytest.raises(ValueError, match=message):
        classifier.train_on_batch(WAVEFORM, targets, class_weight={0: 2.0})


@pytest.mark.costly
def test_files_of_several_labels_are_refused(classifier):
    files = ["a.wav", "b.wav"]  # They are not opened.
    with pytest.raises(ValueError, match="one label each"):
        classifier.fit(files, [["dog"], ["dog", "rain"]], class_weight={0: 2})
    # Ids of classes have one class each.
    classifier.compile("sgd", "sparse_categorical_crossentropy")
    classifier.fit(WAVEFORM, np.arange(5) % 3, class_weight={0: 2}, verbose=0)
