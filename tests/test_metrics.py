"""Every figure against a loop, ties and undefined cases included."""

import json
import math
import statistics

import numpy as np
import pytest

from audio_tf import metrics

CLIPS, CLASSES = 53, 7


def random_case(seed, tied):
    """Targets with some clips without a label, and scores."""
    rng = np.random.default_rng(seed)
    targets = (rng.random((CLIPS, CLASSES)) < 0.25).astype(int)
    scores = targets * 0.4 + rng.random((CLIPS, CLASSES))
    return targets, np.round(scores, 1) if tied else scores


def naive_average_precision(targets, scores):
    """Sum of precision times the step of recall, threshold by threshold."""
    area, recall_before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        found = [t for t, s in zip(targets, scores) if s >= threshold]
        recall = sum(found) / sum(targets)
        area += (recall - recall_before) * sum(found) / len(found)
        recall_before = recall
    return area


def naive_mean(figure, targets, scores):
    """Mean of the figure of the classes for which it is defined."""
    values = [figure(t, s) for t, s in zip(targets.T, scores.T)]
    return statistics.fmean(v for v in values if v is not None)


def naive_roc_auc(targets, scores):
    """Share of pairs of a positive and a negative that are in order."""
    wins = [
        1.0 if high > low else 0.5 if high == low else 0.0
        for t, high in zip(targets, scores)
        for u, low in zip(targets, scores)
        if t and not u
    ]
    return statistics.fmean(wins) if wins else None


def naive_pr_auc(targets, scores):
    """Trapezoids between the points (recall, precision), from (0, 1)."""
    area, before = 0.0, (0.0, 1.0)
    for threshold in sorted(set(scores), reverse=True):
        found = [t for t, s in zip(targets, scores) if s >= threshold]
        point = sum(found) / sum(targets), sum(found) / len(found)
        area += (point[0] - before[0]) * (point[1] + before[1]) / 2
        before = point
    return area


def naive_lwlrap(targets, scores):
    """DCASE 2019 task 2: classes one after the other, best score first.

    Its list of classes is an ascending sort read backwards: of equal scores,
    the class that came last comes first.
    """
    hits = []
    for clip_targets, clip_scores in zip(targets, scores):
        ranking = []
        for index, score in enumerate(clip_scores):
            place = 0
            while place < len(ranking) and clip_scores[ranking[place]] > score:
                place += 1
            ranking.insert(place, index)
        seen = 0
        for rank, index in enumerate(ranking, start=1):
            if clip_targets[index]:
                seen += 1
                hits.append(seen / rank)
    return statistics.fmean(hits)


def naive_accuracy(targets, scores):
    """Share of clips whose highest score is that of their label."""
    hits = [
        list(t)[max(range(len(s)), key=list(s).__getitem__)]
        for t, s in zip(targets, scores)
    ]
    return statistics.fmean(hits)


def naive_d_prime(targets, scores):
    area = naive_mean(naive_roc_auc, targets, scores)
    return math.sqrt(2.0) * statistics.NormalDist().inv_cdf(area)


REFERENCES = {
    "mAP": lambda t, s: naive_mean(naive_average_precision, t, s),
    "d_prime": naive_d_prime,
    "roc_auc": lambda t, s: naive_mean(naive_roc_auc, t, s),
    "lwlrap": naive_lwlrap,
    "pr_auc_micro": lambda t, s: naive_pr_auc(t.ravel(), s.ravel()),
    "pr_auc_macro": lambda t, s: naive_mean(naive_pr_auc, t, s),
    "accuracy": naive_accuracy,
}


# Class "a" ranks + - + -, class "b" ranks - + + -, class "c" has no positive.
TARGETS = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]]
SCORES = [
    [0.9, 0.8, 0.1],
    [0.7, 0.6, 0.2],
    [0.5, 0.4, 0.45],
    [0.3, 0.2, 0.1],
]


def test_hand_computed_figures():
    report = metrics.evaluate(TARGETS, SCORES, ["a", "b", "c"])
    # a: (1/1 + 2/3) / 2; b: (1/2 + 2/3) / 2.
    assert report["per_class"] == {
        "a": {"average_precision": pytest.approx(5 / 6), "positives": 2},
        "b": {"average_precision": pytest.approx(7 / 12), "positives": 2},
        "c": {"average_precision": None, "positives": 0},
    }
    assert report["mAP"] == pytest.approx(17 / 24)
    # a: 3 of 4 pairs in order; b: 2 of 4.
    assert report["roc_auc"] == pytest.approx(0.625)
    # Phi^-1(0.625) = 0.3186393640.
    assert report["d_prime"] == pytest.approx(0.4506241100, abs=1e-9)
    # Clip 0: 1/1; clip 1: 1/2; clip 2: 1/1 and 2/3.
    assert report["lwlrap"] == pytest.approx((1 + 1 / 2 + 1 + 2 / 3) / 4)
    # a: (recall, precision) = (0, 1), (.5, 1), (.5, .5), (1, 2/3), (1, .5).
    # b: (0, 1), (0, 0), (.5, .5), (1, 2/3), (1, .5).
    area_a = 0.5 + 0.5 * (1 / 2 + 2 / 3) / 2
    area_b = 0.5 * (0 + 1 / 2) / 2 + 0.5 * (1 / 2 + 2 / 3) / 2
    assert report["pr_auc_macro"] == pytest.approx((area_a + area_b) / 2)
    assert report["num_clips"] == 4
    assert report["num_classes"] == 3
    assert report["classes_without_positives"] == ["c"]
    assert report["accuracy"] is None


def test_micro_area_pools_all_classes():
    targets = [[1, 0], [0, 1]]
    scores = [[0.9, 0.5], [0.7, 0.2]]
    report = metrics.evaluate(targets, scores, ["a", "b"])
    # Pooled ranking + - - +: (0, 1), (.5, 1), (.5, .5), (.5, 1/3), (1, .5).
    assert report["pr_auc_micro"] == pytest.approx(
        0.5 + 0.5 * (1 / 3 + 1 / 2) / 2
    )
    # Class a ranks + -, class b ranks - +.
    assert report["pr_auc_macro"] == pytest.approx((1.0 + 0.25) / 2)


def test_d_prime_is_sqrt_two_at_one_standard_deviation():
    """A mean ROC-AUC of Phi(1) must give sqrt(2) exactly."""
    # 841345 of 10^6 pairs in order: 1000 positives, 1000 negatives.
    targets = np.zeros((2000, 1), int)
    targets[:1000] = 1
    scores = np.zeros((2000, 1))
    scores[1000:, 0] = np.arange(1000)
    # 655 positives beat 841 negatives each, 345 beat 842: 841345 pairs.
    scores[:655, 0] = 840.5
    scores[655:1000, 0] = 841.5
    report = metrics.evaluate(targets, scores, ["a"])
    assert report["roc_auc"] == pytest.approx(0.841345, abs=1e-12)
    assert report["d_prime"] == pytest.approx(math.sqrt(2), abs=1e-5)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_every_figure_against_its_reference(name):
    for seed in range(3):
        for tied in (False, True):
            targets, scores = random_case(seed, tied)
            if name == "accuracy":
                targets = np.eye(CLASSES, dtype=int)[targets.argmax(axis=1)]
            found = metrics.evaluate(targets, scores, "abcdefg")[name]
            expected = REFERENCES[name](targets, scores)
            assert found == pytest.approx(expected, rel=1e-12), (seed, tied)


def test_average_precisions_of_the_classes_against_loops():
    for tied in (False, True):
        targets, scores = random_case(0, tied)
        expected = [
            naive_average_precision(targets[:, index], scores[:, index])
            for index in range(CLASSES)
        ]
        precisions = metrics.average_precision_per_class(targets, scores)
        assert precisions.dtype == np.float64
        np.testing.assert_allclose(precisions, expected, rtol=1e-12)


def test_lwlrap_of_equal_scores_is_the_published_one():
    """By hand: three classes of one score are ranked c, b, a."""
    targets, scores = [[0, 1, 1]], [[0.5, 0.5, 0.5]]
    assert metrics.evaluate(targets, scores, "abc")["lwlrap"] == 1.0
    targets = [[1, 0, 1]]
    found = metrics.evaluate(targets, scores, "abc")["lwlrap"]
    assert found == pytest.approx((1 + 2 / 3) / 2)
    # More classes than a sort of numpy handles stably by default.
    rng = np.random.default_rng(0)
    targets = rng.random((61, 89)) < 0.05
    scores = np.round(rng.random(targets.shape), 1)
    found = metrics.lwlrap(targets.astype(int), scores)
    assert found == pytest.approx(naive_lwlrap(targets, scores), rel=1e-12)


def test_a_new_figure_is_one_function_and_one_entry(monkeypatch):
    def one_error(targets, scores):
        """Share of clips whose highest score is that of no label."""
        rows = np.arange(len(targets))
        return float(np.mean(1 - targets[rows, scores.argmax(axis=1)]))

    entry = metrics.Metric(one_error, "min", "clips without a hit")
    monkeypatch.setitem(metrics.METRICS, "one_error", entry)
    report = metrics.evaluate(TARGETS, SCORES, "abc")
    assert report["one_error"] == 0.5
    lines = metrics.format_report(report).splitlines()
    assert ["one_error", "0.5000"] in [line.split() for line in lines]
    assert metrics.monitor_mode("val_one_error") == "min"


def test_monitors_know_their_mode_and_the_nearest_name():
    assert metrics.monitor_mode("val_mAP") == "max"
    assert metrics.monitor_mode("loss") == "min"
    assert metrics.monitor_mode("val_loss") == "min"
    assert set(metrics.monitors()) == {
        "loss",
        "val_loss",
        *(f"val_{name}" for name in metrics.METRICS),
    }
    with pytest.raises(ValueError, match="did you mean 'val_mAP'.*'val_map'"):
        metrics.monitor_mode("val_map")


def test_class_without_positives_is_nan_and_left_out():
    targets, scores = random_case(3, tied=False)
    full = metrics.average_precision_per_class(targets, scores)
    targets[:, 2] = 0
    precisions = metrics.average_precision_per_class(targets, scores)
    assert np.isnan(precisions).tolist() == [i == 2 for i in range(CLASSES)]
    report = metrics.evaluate(targets, scores, "abcdefg")
    assert report["mAP"] == pytest.approx(np.delete(full, 2).mean())
    assert report["classes_without_positives"] == ["c"]


def test_class_without_negatives_counts_in_map_but_not_in_roc():
    targets = [[1, 1], [1, 0], [1, 1]]
    scores = [[0.1, 0.9], [0.2, 0.5], [0.3, 0.4]]
    report = metrics.evaluate(targets, scores, ["a", "b"])
    assert report["mAP"] == pytest.approx((1 + (1 + 2 / 3) / 2) / 2)
    assert report["roc_auc"] == pytest.approx(0.5)
    assert report["d_prime"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.filterwarnings("error")
def test_undefined_figures_are_none():
    scores = np.random.default_rng(0).random((5, 3))
    empty = metrics.evaluate(np.zeros((5, 3)), scores, "abc")
    for name in metrics.METRICS:
        assert empty[name] is None, name
    assert empty["classes_without_positives"] == ["a", "b", "c"]
    full = metrics.evaluate(np.ones((5, 3)), scores, "abc")
    assert full["mAP"] == pytest.approx(1.0)
    assert full["lwlrap"] == pytest.approx(1.0)
    assert full["roc_auc"] is None
    perfect = metrics.evaluate([[1], [0]], [[0.9], [0.1]], "a")
    assert perfect["roc_auc"] == 1.0
    assert perfect["d_prime"] is None
    # The quantile of 0 is -inf, which JSON has not either.
    wrong = metrics.evaluate([[1], [0]], [[0.1], [0.9]], "a")
    assert wrong["roc_auc"] == 0.0
    assert wrong["d_prime"] is None


def test_an_infinite_separation_is_told_to_those_who_compare():
    """A perfect epoch is the best one, though its report has no number."""
    metric = metrics.METRICS["d_prime"]
    targets = np.array([[1], [0], [1], [0]])
    for scores, expected in (
        ([0.9, 0.1, 0.8, 0.2], math.inf),
        ([0.1, 0.9, 0.2, 0.8], -math.inf),
        ([0.1, 0.1, 0.9, 0.9], pytest.approx(0.0)),
    ):
        found = metric.extended(targets, np.array(scores)[:, None])
        assert found == expected
    # Of clips that all have the label there is none at all.
    assert metric.extended(targets | 1, np.ones((4, 1))) is None
    accuracy = metrics.METRICS["accuracy"]
    assert accuracy.extended(np.ones((2, 2)), np.ones((2, 2))) is None


def test_report_survives_strict_json():
    targets, scores = random_case(0, tied=False)
    targets[:, 0] = 0
    report = metrics.evaluate(targets, scores.astype("float32"), "abcdefg")
    text = json.dumps(report, allow_nan=False)
    assert json.loads(text) == report


def test_accuracy_only_with_one_label_per_clip():
    scores = [[0.9, 0.5, 0.1], [0.2, 0.3, 0.4], [0.1, 0.8, 0.7]]
    single = [[1, 0, 0], [0, 1, 0], [0, 1, 0]]
    report = metrics.evaluate(single, scores, "abc")
    assert report["accuracy"] == pytest.approx(2 / 3)
    none = [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert metrics.evaluate(none, scores, "abc")["accuracy"] is None
    two = [[1, 0, 0], [0, 1, 1], [0, 1, 0]]
    assert metrics.evaluate(two, scores, "abc")["accuracy"] is None


@pytest.mark.parametrize("name", metrics.METRICS)
def test_each_figure_refuses_what_is_not_scored(name):
    """A bad file has NaN of `predict`, which has no rank."""
    targets, scores = np.eye(3, dtype=int), np.eye(3) / 2
    figure = metrics.METRICS[name].figure
    assert figure(targets.tolist(), scores.tolist()) in (1.0, None)
    with pytest.raises(ValueError, match="same shape"):
        figure(targets, scores[:, :2])
    scores[1] = np.nan
    with pytest.raises(ValueError, match="`scores` must be finite"):
        figure(targets, scores)


def test_clip_scores_are_means_over_chunks():
    chunks = [[1.0, 10.0], [2.0, 20.0], [6.0, 0.0], [3.0, 60.0]]
    means = metrics.clip_scores(chunks, [2, 0, 2, 1], 3)
    np.testing.assert_allclose(means, [[2, 20], [3, 60], [3.5, 5]])


def test_clip_without_chunk_is_refused():
    with pytest.raises(ValueError, match="2 clips .* the first is 1.*Received"):
        metrics.clip_scores(np.ones((3, 2)), [0, 2, 2], 5 - 1)


@pytest.mark.parametrize(
    ("clip_index", "num_clips"),
    [
        ([0, 1], 2),
        ([[0], [1], [0]], 2),
        ([0.0, 1.0, 0.0], 2),
        ([0, 1, -1], 2),
        ([0, 1, 2], 2),
    ],
)
def test_bad_clip_index(clip_index, num_clips):
    with pytest.raises(ValueError, match="`clip_index`.*Received: "):
        metrics.clip_scores(np.ones((3, 2)), clip_index, num_clips)


@pytest.mark.parametrize(
    ("targets", "scores", "labels", "named"),
    [
        ([[1, 0]], [[0.1, 0.2], [0.3, 0.4]], "ab", "targets"),
        ([[1, 2]], [[0.1, 0.2]], "ab", "targets"),
        ([[1, 0.5]], [[0.1, 0.2]], "ab", "targets"),
        ([[1, math.nan]], [[0.1, 0.2]], "ab", "targets"),
        ([[1, 0]], [[0.1, math.nan]], "ab", "scores"),
        ([[1, 0]], [[0.1, math.inf]], "ab", "scores"),
        ([1, 0], [0.1, 0.2], "ab", "scores"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "ab", "scores"),
        ([[1, 0]], [[0.1, 0.2]], "abc", "labels"),
        ([[1, 0]], [[0.1, 0.2]], "aa", "labels"),
    ],
)
def test_bad_arguments_are_named(targets, scores, labels, named):
    with pytest.raises(ValueError, match=f"`{named}`.*Received: "):
        metrics.evaluate(targets, scores, labels)


def test_format_report_is_aligned_and_complete():
    report = metrics.evaluate(TARGETS, SCORES, ["a", "b", "c"])
    *table, note = metrics.format_report(report).splitlines()
    assert len({len(line) for line in table}) == 1
    assert dict(line.split() for line in table) == {
        "mAP": "0.7083",
        "d_prime": "0.4506",
        "roc_auc": "0.6250",
        "lwlrap": "0.7917",
        "pr_auc_micro": f"{report['pr_auc_micro']:.4f}",
        "pr_auc_macro": "0.6042",
        "accuracy": "n/a",
        "num_clips": "4",
        "num_classes": "3",
    }
    assert note.endswith("positives: c")


@pytest.mark.parametrize(
    ("num_missing", "ending"),
    [(5, "b, c, d, e, f"), (6, "b, c, d, e, f and 1 more")],
)
def test_format_report_names_five_classes(num_missing, ending):
    labels = "abcdefghi"[: num_missing + 1]
    targets = np.zeros((3, len(labels)))
    targets[0, 0] = 1
    scores = np.random.default_rng(0).random(targets.shape)
    text = metrics.format_report(metrics.evaluate(targets, scores, labels))
    assert text.endswith(f": {ending}")


def test_format_report_of_undefined_and_complete_cases():
    scores = [[0.9, 0.1], [0.2, 0.8]]
    text = metrics.format_report(
        metrics.evaluate([[1, 0], [0, 1]], scores, "ab")
    )
    assert "n/a" in text.splitlines()[1]
    assert text.splitlines()[6].split() == ["accuracy", "1.0000"]
    assert "Left out" not in text
