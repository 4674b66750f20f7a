"""Targets of clips that do not fit the loss of a classifier."""

import keras
import numpy as np
import pytest
import tiny

from audio_tf.models import AudioClassifier

LABELS = ["dog", "rain", "siren"]
WAVEFORM = np.random.default_rng(3).normal(0.0, 0.1, (3, 700)).astype("float32")
FILES = ["a.wav", "b.wav", "c.wav"]  # They are not opened.
LOSSES = [
    "categorical_crossentropy",
    keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
    keras.losses.CategoricalFocalCrossentropy(),
]


def classifier(loss):
    model = AudioClassifier(
        tiny.backbone(), labels=LABELS, chunk_s=None, activation="softmax"
    )
    model.compile("sgd", loss)
    return model


@pytest.mark.parametrize("loss", LOSSES)
def test_clips_of_several_labels_or_none_are_refused(loss):
    model = classifier(loss)
    one = ["dog", "rain", "siren"]
    for wrong, count in ((["dog", "siren"], 2), ([], 0)):
        names = [["dog"], wrong, ["rain"]]
        message = f"binary_crossentropy.*Received: {count} labels for clip 1"
        numbers = np.array(
            [[label in row for label in LABELS] for row in names]
        )
        for given in (
            lambda: model.fit(FILES, names),
            lambda: model.fit(WAVEFORM, names),
            lambda: model.fit(WAVEFORM, numbers.astype("int32")),
            lambda: model.fit(WAVEFORM, one, validation_data=(FILES, names)),
            lambda: model.fit(WAVEFORM, one, validation_data=(WAVEFORM, names)),
            lambda: model.evaluate(WAVEFORM, names),
            lambda: model.train_on_batch(WAVEFORM, names),
        ):
            with pytest.raises(ValueError, match=message):
                given()


@pytest.mark.parametrize("loss", LOSSES)
def test_shares_are_taken_as_they_are(loss):
    """Those of smoothed and mixed labels, and of others' scores."""
    shares = np.array([[0.5, 0.5, 0.0], [0.1, 0.7, 0.2], [0.9, 0.0, 0.0]])
    model = classifier(loss)
    model.fit(WAVEFORM, shares.astype("float32"), verbose=0)
    model.fit(WAVEFORM, LABELS, verbose=0)


@pytest.mark.parametrize("loss", ["binary_crossentropy", None])
def test_other_losses_take_clips_of_several_labels(loss):
    model = classifier(loss or (lambda y, scores: (y - scores) ** 2))
    names = [["dog", "siren"], [], ["rain"]]
    model.fit(WAVEFORM, names, verbose=0)
