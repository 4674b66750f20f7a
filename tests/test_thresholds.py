"""Thresholds of classes, and F1 at them."""

import fractions

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from audio_tf import thresholds

LABELS = ["a", "b", "c", "d"]


@pytest.fixture
def clips(rng):
    """Targets and scores with ties; no clip has the label c, all have d."""
    targets = rng.integers(0, 2, (31, 4))
    targets[:, 2], targets[:, 3] = 0, 1
    scores = (targets + rng.integers(0, 9, (31, 4))) / 10.0
    return targets, scores


def test_no_other_threshold_has_a_higher_f1(clips):
    """Each score of a clip is tried, and the highest of the best is taken."""
    targets, scores = clips
    found = thresholds.calibrate(targets, scores, LABELS)
    assert list(found) == LABELS and found["c"] is None
    for column in (0, 1, 3):
        f1 = {
            float(each): sklearn_metrics.f1_score(
                targets[:, column], scores[:, column] >= each
            )
            for each in scores[:, column]
        }
        best = max(f1.values())
        expected = max(each for each in f1 if f1[each] > best - 1e-12)
        assert found[LABELS[column]] == expected
        assert expected in scores[:, column]


def test_f1_at_thresholds_of_other_clips(clips, rng):
    targets, scores = clips
    given = {"a": 0.5, "b": 2.0, "c": None, "d": 0.3}
    found = thresholds.evaluate(targets, scores, given)
    assert found["classes_without_threshold"] == ["c"]
    assert list(found["per_class"]) == ["a", "b", "d"]
    a, b, d = (found["per_class"][label] for label in "abd")
    said = scores[:, 0] >= 0.5
    both = np.sum(said & (targets[:, 0] == 1))
    assert a["precision"] == pytest.approx(both / said.sum())
    assert a["recall"] == pytest.approx(both / targets[:, 0].sum())
    # Nobody reaches 2.0: every clip with the label is missed.
    assert b == {"threshold": 2.0, "precision": 0, "recall": 0, "f1": 0}
    assert found["f1_macro"] == pytest.approx((a["f1"] + d["f1"]) / 3)
    hits = both + np.sum(scores[:, 3] >= 0.3)
    claimed = said.sum() + np.sum(scores[:, 3] >= 0.3)
    wanted = targets[:, [0, 1, 3]].sum()
    assert found["f1_micro"] == pytest.approx(2 * hits / (claimed + wanted))


def test_classes_that_are_nowhere_do_not_count(clips):
    targets, scores = clips
    targets = np.zeros_like(targets)
    found = thresholds.evaluate(targets, scores, dict.fromkeys(LABELS, 2.0))
    assert found["f1_macro"] is None and found["f1_micro"] == 0.0
    # One clip is said to have the first label, and that is wrong.
    scores[3, 0] = 2.5
    found = thresholds.evaluate(targets, scores, dict.fromkeys(LABELS, 2.0))
    assert found["f1_macro"] == 0.0
    nothing = thresholds.evaluate(targets, scores, dict.fromkeys(LABELS))
    assert nothing["f1_macro"] is None and nothing["per_class"] == {}


def test_clips_and_classes_that_are_not_scored_are_refused(clips):
    """A bad file has NaN of `predict`, below which no score would lie."""
    targets, scores = clips
    given = dict.fromkeys(LABELS, 0.5)
    for call in (
        lambda *clips, labels=LABELS: thresholds.calibrate(*clips, labels),
        lambda *clips, labels=LABELS: thresholds.evaluate(
            *clips, {label: given[label] for label in labels}
        ),
    ):
        with pytest.raises(ValueError, match="3 labels, 4 classes"):
            call(targets, scores, labels=LABELS[:3])
        with pytest.raises(ValueError, match="must be 0 or 1"):
            call(targets / 2, scores)
        bad = scores.copy()
        bad[7] = np.nan
        with pytest.raises(ValueError, match="`scores` must be finite"):
            call(targets, bad)


def test_classes_of_one_label_are_refused(clips):
    """A dict would keep the threshold of one of them."""
    with pytest.raises(ValueError, match="4 labels, 3 different"):
        thresholds.calibrate(*clips, [*LABELS[:3], LABELS[0]])


def test_of_thresholds_as_good_the_highest_is_exactly_that():
    """F1 of 0.5 and of 0.1 is 2/3 each, but for rounding."""
    targets = [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0]
    tenths = [8, 3, 1, 5, 8, 9, 5, 1, 9, 8, 4, 5, 0, 5, 2, 6, 2]
    found = thresholds.calibrate(
        np.array(targets)[:, None], np.array(tenths)[:, None] / 10, ["a"]
    )
    assert found == {"a": 0.5}


def test_thresholds_are_the_best_by_fractions(rng):
    for _ in range(50):
        targets = rng.integers(0, 2, 17)
        targets[0] = 1
        scores = rng.integers(0, 9, 17)
        f1 = {
            int(each): fractions.Fraction(
                2 * int(targets[scores >= each].sum()),
                int((scores >= each).sum() + targets.sum()),
            )
            for each in scores
        }
        best = max(each for each in f1 if f1[each] == max(f1.values()))
        found = thresholds.calibrate(targets[:, None], scores[:, None], ["a"])
        assert found == {"a": best}
