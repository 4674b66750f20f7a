"""Figures over batches of training, against those of whole splits."""

import keras
import numpy as np
import pytest

from audio_tf import metrics
from audio_tf.batch_metrics import BatchAveragePrecision

CLIPS, CLASSES, LEVELS = 53, 7, 11


def quantized_case(rng):
    """Targets, and scores on as many levels as the figure tells apart."""
    targets = (rng.random((CLIPS, CLASSES)) < 0.3).astype("float32")
    targets[:, 4] = 0.0
    # Within a level, away from the thresholds.
    scores = (rng.integers(0, LEVELS - 1, targets.shape) + 0.5) / (LEVELS - 1)
    return targets, scores.astype("float32")


def counted(targets, scores, batch=10):
    figure = BatchAveragePrecision(CLASSES, num_thresholds=LEVELS)
    for start in range(0, CLIPS, batch):
        figure.update_state(
            targets[start : start + batch], scores[start : start + batch]
        )
    return float(figure.result())


def test_average_precision_over_batches_is_that_of_the_split(rng):
    """scikit-learn's, on scores of as many levels; an empty class is none."""
    targets, scores = quantized_case(rng)
    expected = metrics.evaluate(targets, scores, "abcdefg")["mAP"]
    assert counted(targets, scores) == pytest.approx(expected, abs=1e-6)
    assert counted(np.zeros_like(targets), scores) == 0.0


def test_no_score_is_below_the_first_level(rng):
    targets, scores = quantized_case(rng)
    lowest = np.where(scores < 1 / (LEVELS - 1), np.float32(0.0), scores)
    lowest[::2] = scores[::2]
    assert (lowest != scores).any()
    assert counted(targets, lowest) == counted(targets, scores)


@pytest.mark.costly
def test_a_share_of_a_label_is_a_positive(rng):
    targets, scores = quantized_case(rng)
    mixed = targets * rng.uniform(0.1, 0.9, targets.shape).astype("float32")
    assert counted(mixed, scores) == counted(targets, scores)


def test_a_figure_comes_back_from_its_config():
    figure = BatchAveragePrecision(CLASSES, LEVELS, name="other")
    config = keras.metrics.serialize(figure)
    again = keras.metrics.deserialize(config)
    assert type(again) is BatchAveragePrecision and again.name == "other"
    assert again.get_config() == figure.get_config()
