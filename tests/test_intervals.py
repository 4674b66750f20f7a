"""Intervals of figures, over clips or over the sources of clips."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn_metrics

from audio_tf import intervals, metrics
from audio_tf.corpora import Corpus


def corpus(sources, kind="speaker"):
    files = [f"{row}.wav" for row in range(len(sources))]
    labels = [["a"]] * len(files)
    kind = kind if any(sources) else None
    return Corpus(files, labels, ["a"], sources=sources, source_kind=kind)


def test_units_are_sources_where_they_are_known():
    kind, unit = intervals.units(corpus(["jo", "ann", "jo", None, None]))
    assert kind == "speaker"
    assert unit[0] == unit[2] and len(set(unit)) == 4
    assert sorted(set(unit)) == list(range(4))
    # One speaker cannot be drawn anew, nor can nobody.
    for sources in (["jo", "jo", None], [None] * 3):
        kind, unit = intervals.units(corpus(sources))
        assert kind == "clip" and unit.tolist() == [0, 1, 2]
    # A source may be called what a clip is called here.
    assert len(set(intervals.units(corpus(["0", "clip 0", None]))[1])) == 3


@pytest.mark.parametrize("name", ["mAP", "accuracy"])
def test_weights_repeat_clips(name, rng):
    """Against the figure itself, of clips that are there several times."""
    clips, classes = 23, 4
    weights = rng.integers(0, 4, (29, clips))
    weights[0] = 0
    weights[0, 5] = 3
    targets = np.eye(classes, dtype=np.int64)[rng.integers(0, 3, clips)]
    if name == "mAP":
        targets |= rng.integers(0, 2, (clips, classes))
        targets[:, 3] = 0
        targets[7] = 0
    # With ties.
    scores = rng.integers(0, 7, (clips, classes)) / 7.0
    metric = metrics.METRICS[name]
    expected = [
        metric.figure(targets[rows], scores[rows])
        for each in weights
        for rows in [np.repeat(np.arange(clips), each)]
    ]
    found = metric.weighted(targets, scores, weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    # No clip with a label, so no figure: never 0.
    nothing = np.zeros_like(targets)
    assert np.isnan(metric.weighted(nothing, scores, weights)).all()


def test_weights_may_be_fractions(rng):
    """Against scikit-learn's weights of samples; most sums are below 1."""
    targets = rng.integers(0, 2, (23, 4))
    # With ties.
    scores = rng.integers(0, 7, targets.shape) / 7.0
    weights = rng.uniform(0.0, 0.1, (5, len(targets)))
    weights[1] *= weights[1] > 0.05
    expected = [
        np.mean(
            [
                sklearn_metrics.average_precision_score(
                    truth, score, sample_weight=each
                )
                for truth, score in zip(targets.T, scores.T, strict=True)
            ]
        )
        for each in weights
    ]
    found = metrics.METRICS["mAP"].weighted(targets, scores, weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_bootstrap_of_clips_is_near_that_of_a_share(rng):
    targets = np.eye(2, dtype=np.int64)[rng.integers(0, 2, 400)]
    scores = np.where(rng.uniform(size=(400, 1)) < 0.8, targets, 1 - targets)
    metric = metrics.METRICS["accuracy"]
    share = metric.figure(targets, scores)
    low, high = intervals.bootstrap(metric, targets, scores)
    assert low < share < high
    right = stats.binomtest(round(400 * share), 400)
    np.testing.assert_allclose(
        (low, high), right.proportion_ci(method="wilson"), atol=0.015
    )
    # The same clips ten times over are no more clips.
    again = intervals.bootstrap(
        metric,
        np.tile(targets, (10, 1)),
        np.tile(scores, (10, 1)),
        np.tile(np.arange(400), 10),
    )
    np.testing.assert_allclose(again, (low, high), atol=1e-12)
    slow = metrics.Metric(metric.figure, "max", "")
    np.testing.assert_allclose(
        intervals.bootstrap(slow, targets, scores), (low, high), atol=0.03
    )
    assert (
        intervals.bootstrap(
            metrics.Metric(lambda *_: None, "max", ""), targets, scores
        )
        is None
    )


def test_a_share_that_never_varies_has_an_interval():
    targets = np.eye(2, dtype=np.int64)[[0, 1] * 10]
    metric = metrics.METRICS["accuracy"]
    for scores, share in ((targets, 1.0), (1 - targets, 0.0)):
        for unit, count in ((None, 20), (np.arange(20) // 5, 4)):
            right = stats.binomtest(round(count * share), count)
            expected = right.proportion_ci(method="wilson")
            found = intervals.bootstrap(metric, targets, scores, unit)
            np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", ["mAP", "lwlrap"])
def test_what_is_no_share_and_never_varies_has_none(name):
    """As if no other clip could be wrong; one that is gives it a width."""
    targets = np.eye(3, dtype=np.int64)[[0, 1, 2] * 7]
    scores = targets / 3.0
    metric = metrics.METRICS[name]
    assert metric.figure(targets, scores) == pytest.approx(1.0)
    assert intervals.bootstrap(metric, targets, scores) is None
    scores[4] = 0.5, -0.1, 0.2
    low, high = intervals.bootstrap(metric, targets, scores)
    assert low < metric.figure(targets, scores) < high <= 1.0


def test_one_clip_has_no_interval_but_of_a_share():
    targets, scores = np.array([[1, 0]]), np.array([[0.9, 0.2]])
    for name in metrics.METRICS:
        found = intervals.bootstrap(metrics.METRICS[name], targets, scores)
        if name == "accuracy":
            assert found == intervals.wilson(1.0, 1)
        else:
            assert found is None


def test_units_that_are_alike_have_no_interval_of_no_width():
    """All draws have their share, and would be as sure of any other unit's."""
    metric, unit = metrics.METRICS["accuracy"], np.zeros(4, int)
    targets = np.eye(2, dtype=np.int64)[[0, 1, 0, 1]]
    scores = np.eye(2)[[0, 1, 1, 0]]
    assert intervals.bootstrap(metric, targets, scores, unit) is None
    found = intervals.bootstrap(metric, targets, targets, unit)
    assert found == intervals.wilson(1.0, 1)
    # Each draw of two units of which half is right is a half.
    rows, unit = [0, 3, 0, 3], unit + [0, 0, 1, 1]
    assert (
        intervals.bootstrap(metric, targets[rows], scores[rows], unit) is None
    )
    # Clips alone differ.
    low, high = intervals.bootstrap(metric, targets[rows], scores[rows])
    assert low < 0.5 < high


def test_an_end_next_to_an_infinite_draw_is_infinite():
    """Between a number and infinity nothing is said to be measured."""

    def interval(below, above):
        values = [-np.inf] * below + [*range(200 - below - above)]
        values = iter(values + [np.inf] * above)
        drawn = []

        def figure(targets, scores):
            drawn.append(next(values))
            return drawn[-1] if np.isfinite(drawn[-1]) else None

        metric = metrics.Metric(
            figure, "max", "", infinite=lambda *_: drawn[-1]
        )
        targets = np.eye(2, dtype=np.int64)
        return intervals.bootstrap(metric, targets, targets + 0.0)

    # The ends of 200 sorted draws are at places 4.975 and 194.025.
    assert interval(4, 4) == pytest.approx((0.975, 190.025))
    assert interval(4, 5) == (pytest.approx(0.975), np.inf)
    assert interval(5, 4) == (-np.inf, pytest.approx(189.025))


@pytest.mark.costly
def test_draws_whose_figure_is_infinite_count():
    """The ends of d' are those of the area below ROC, of which it is told."""
    targets = np.eye(2, dtype=np.int64)[[0, 1] * 12]
    # One clip in 24 is wrong, and in every third draw it is not.
    scores = targets.astype("float64")
    scores[0] = -1.0, 2.0
    area, found = (
        intervals.bootstrap(metrics.METRICS[name], targets, scores)
        for name in ("roc_auc", "d_prime")
    )
    assert 0.5 < area[0] < area[1] == 1.0
    expected = np.sqrt(2) * stats.norm.ppf(area)
    assert found[1] == expected[1] == np.inf
    assert found[0] == pytest.approx(expected[0], abs=0.05)
    metric = metrics.METRICS["d_prime"]
    # Where all draws are, nothing is known of other clips.
    for scores in (targets, 1 - targets):
        assert intervals.bootstrap(metric, targets, scores) is None


def test_draws_are_whole_sources(monkeypatch):
    """In blocks as in one, each draw has as many sources as there are."""
    unit = np.array([2, 0, 0, 1, 2, 2])
    whole = np.concatenate(list(intervals.draw_weights(unit, 17)))
    monkeypatch.setattr(intervals, "BLOCK", 6 * 5)
    blocks = list(intervals.draw_weights(unit, 17))
    assert [len(block) for block in blocks] == [5, 5, 5, 2]
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    np.testing.assert_array_equal(whole[:, 0], whole[:, 5])
    firsts = whole[:, [1, 3, 0]]
    assert (firsts.sum(axis=1) == 3).all() and len(np.unique(firsts)) > 2


def test_a_mean_over_few_speakers_spreads_as_their_means_do(rng):
    values = rng.random(40)
    low, high = intervals.bootstrap_mean(values)
    error = values.std() / np.sqrt(len(values))
    np.testing.assert_allclose(
        (low, high),
        values.mean() + error * np.array([-1.96, 1.96]),
        atol=0.3 * error,
    )
    # Of two, a quarter of the draws is one of them alone.
    assert intervals.bootstrap_mean([0.25, 0.75]) == (0.25, 0.75)
    # All draws of these are the same, and say nothing of other units.
    for share in (0.0, 1.0):
        assert intervals.bootstrap_mean([share] * 3) == intervals.wilson(
            share, 3
        )
    # Nor do these, which are the same but for rounding.
    assert intervals.bootstrap_mean([0.7, 0.7, np.nextafter(0.7, 1)]) is None
    with pytest.raises(ValueError, match="Received: 1"):
        intervals.bootstrap_mean([0.5])
