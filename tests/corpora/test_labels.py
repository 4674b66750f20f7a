"""Labels of a model beside those of a corpus."""

import numpy as np
import pytest

from audio_tf.corpora.labels import column_order


@pytest.mark.parametrize(
    "labels, message",
    [
        (["a", "b", "c"], "a model with 'c' beyond$"),
        (["a"], "a model without 'b'$"),
        (["a", "c"], "a model without 'b', with 'c' beyond$"),
    ],
)
def test_labels_that_differ_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
        column_order(labels, ["a", "b"], len(labels))


def test_a_model_has_labels_in_the_other_form_of_unicode():
    labels, vocabulary = ["dog", "Vo\u0308gel"], ["V\u00f6gel", "dog"]
    assert column_order(labels, vocabulary, 2).tolist() == [1, 0]


def test_scores_are_put_in_the_order_of_the_corpus():
    """A turn of three, which is not its own inverse."""
    labels, vocabulary = ["rain", "cat", "dog"], ["cat", "dog", "rain"]
    scores = np.array([[0.7, 0.2, 0.1]])  # Rain, most likely.
    order = column_order(labels, vocabulary, 3)
    assert dict(zip(vocabulary, scores[0, order], strict=True)) == {
        "rain": 0.7,
        "cat": 0.2,
        "dog": 0.1,
    }
    # What is not known is taken as it comes, if there is one for each.
    assert column_order(None, vocabulary, 3).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="each of 3 labels. Received: 2"):
        column_order(None, vocabulary, 2)
