"""Errors of a split and figures of its classes."""

import csv
import os

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from audio_tf.analysis import mistakes
from audio_tf.corpora import Corpus

ODD = os.fsdecode(b"\xff\xe4.wav")


def corpus(files, labels):
    return Corpus(files, labels, ["a", "b", "c"])


def test_the_surest_error_comes_first(tmp_path):
    clips = corpus(
        ["right", "unsure", ODD, "nothing", "hit"],
        [["a"], ["b"], ["a", "c"], [], ["b", "c"]],
    )
    scores = np.array(
        [
            [0.9, 0.2, 0.1],
            [0.1, 0.3, 0.4],
            [0.2, 0.8, 0.5],
            [0.6, 0.1, 0.0],
            [0.1, 0.2, 0.7],
        ]
    )
    rows = mistakes.errors(clips, clips.targets(), scores)
    assert [list(row.values()) for row in rows] == [
        [ODD, "a,c", "b", 0.8, 0.5],
        ["nothing", "", "a", 0.6, None],
        ["unsure", "b", "c", 0.4, 0.3],
    ]
    path = tmp_path / "errors.csv"
    mistakes.write_errors(path, rows)
    with open(
        path, newline="", encoding="utf-8", errors="surrogateescape"
    ) as file:
        header, first, second, _ = csv.reader(file)
    assert header == ["file", "labels", "predicted", "score", "score_of_truth"]
    assert first == [ODD, "a,c", "b", "0.8", "0.5"] and second[-1] == ""


def test_errors_of_equal_scores_keep_the_order_of_the_clips(rng):
    """More of them than a sort of numpy leaves in order by itself."""
    names = [f"{row:03}" for row in range(120)]
    clips = corpus(names, [["a"]] * len(names))
    highest = rng.integers(1, 4, len(names)) / 4
    scores = np.stack([0 * highest, highest, 0 * highest], axis=1)
    rows = mistakes.errors(clips, clips.targets(), scores)
    expected = sorted(zip(-highest, names, strict=True))
    assert [row["file"] for row in rows] == [name for _, name in expected]


def test_figures_of_classes_are_scikit_learns(rng):
    true, told = rng.integers(0, 5, (2, 61))
    # One class that no clip has, and one that none is told as.
    true[true == 3] = 0
    told[told == 1] = 2
    targets, scores = np.eye(5)[true], np.eye(5)[told]
    found = mistakes.class_figures(targets, scores)
    assert list(found) == ["recall", "precision"]
    for name, score in (
        ("recall", sklearn_metrics.recall_score),
        ("precision", sklearn_metrics.precision_score),
    ):
        expected = score(
            true, told, labels=range(5), average=None, zero_division=np.nan
        )
        np.testing.assert_allclose(found[name], expected)
        assert np.isnan(found[name]).any()
    targets[0, :2] = 1.0
    found = mistakes.class_figures(targets, rng.random((61, 5)))
    assert list(found) == ["average precision"]
    assert np.isnan(found["average precision"]).tolist() == [0, 0, 0, 1, 0]


def test_confusion_needs_one_label_a_clip():
    from audio_tf import metrics

    targets = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]])
    scores = np.array([[0.1, 0.5, 0.2], [0, 1, 0], [0.3, 0.2, 0.1]])
    assert metrics.confusion(targets, scores).tolist() == [
        [0, 1, 0],
        [1, 1, 0],
        [0, 0, 0],
    ]
    with pytest.raises(ValueError, match="exactly one label.*from 1 to 2"):
        metrics.confusion(targets + [[0, 0, 0], [0, 0, 0], [1, 0, 0]], scores)
