"""The order of a clip's labels, also where scores are equal."""

import numpy as np
import pytest

from audio_tf import metrics
from audio_tf.archives import tables
from audio_tf.ops import answers

SCORES = [0.25, 1.0, 0.5, 1.0, 0.25, 1.0, 0.0]
LABELS = list("abcdefg")
# By hand: the highest first, and of equal ones the first class.
ORDER = ["b", "d", "f", "c", "a", "e", "g"]


@pytest.mark.parametrize("top", [None, 1, 4])
def test_of_equal_scores_the_first_class_comes_first(top):
    scores = np.array(SCORES)
    found = answers.answer("x", scores, LABELS, top)
    assert list(found["scores"]) == ORDER[:top]
    # It is the one that accuracy counts.
    targets = np.eye(len(LABELS), dtype=int)[[LABELS.index(ORDER[0])]]
    assert metrics.accuracy(targets, scores[None]) == 1.0


def test_of_many_equal_scores_the_first_class_comes_first(rng):
    """More of them than a sort of numpy leaves in order by itself."""
    scores = rng.integers(0, 4, 200) / 4
    expected = sorted(range(200), key=lambda place: (-scores[place], place))
    assert answers.best_first(scores).tolist() == expected
    assert answers.best_first(scores, 3).tolist() == expected[:3]


def test_files_of_scores_have_the_order_of_answers():
    pytest.importorskip("pyarrow")
    row = tables.Scored("x", 0.0, 1.0, np.array(SCORES, "float32"), None)
    table = tables.make([row], [], tables.Settings("m", LABELS, top=4))
    assert table["labels"].to_pylist() == [ORDER[:4]]
    assert table["scores"].to_pylist() == [[1.0, 1.0, 1.0, 0.5]]
