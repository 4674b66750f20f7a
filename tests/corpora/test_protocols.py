"""The official splits of corpora, and what departs from them."""

import itertools

import pytest

from audio_tf.corpora import CORPORA, SPEECH

FOLDS = range(1, 6)


def folds(train, val, test):
    return {"folds": {"train": train, "val": val, "test": test}}


@pytest.mark.parametrize("dataset", ["esc10", "esc50", "iemocap"])
def test_each_fold_is_the_test_in_turn(dataset):
    """A naive count of all ways to hand out five folds, or leave them out."""
    departure = CORPORA[dataset].protocol.departure
    official = 0
    for owners in itertools.product(["train", "val", "test", None], repeat=5):
        chosen = {
            split: [fold for fold in FOLDS if owners[fold - 1] == split]
            for split in ("train", "val", "test")
        }
        fits = owners.count("test") == 1 and None not in owners
        # Nothing is trained, as where a model is scored.
        fits |= owners.count("test") == 1 and owners.count(None) == 4
        assert (not departure({"folds": chosen})) == fits, chosen
        official += fits
    assert official == 5 * 2**4 + 5
    assert departure(folds([1, 2], [], [4])) == "[3, 5] are in no split"
    assert departure(folds([1, 2, 3], [], [4, 5])) == "the test is [4, 5]"


def test_lists_of_a_release_cannot_be_departed_from():
    """A reader that takes what moves clips has another protocol, or none."""
    moving = {"folds", "val_speakers", "test_speakers"}
    for name, layout in CORPORA.items():
        if layout.protocol is not None and not moving & set(layout.takes):
            assert layout.protocol.departure({}) == "", name
    assert CORPORA["fsdd"].protocol.departure({"classes": "digits"}) == ""
    asked = {"val_speakers": [], "test_speakers": ["jo"]}
    said = CORPORA["fsdd"].protocol.departure(asked)
    assert said == "test_speakers is ['jo']"


@pytest.mark.parametrize(
    "subsets, said",
    [
        (None, ""),
        (["dev-clean", "train-clean-100"], ""),
        ({"train": ["train-clean-100", "mine"], "val": ["dev-other"]}, ""),
        ({"train": ["dev-clean"]}, "dev-clean is of dev, not of train"),
        ({"held_out": ["dev-clean"]}, "dev-clean is of dev, not of held_out"),
    ],
)
def test_subsets_of_librispeech_are_of_their_splits(subsets, said):
    protocol = SPEECH["librispeech"].protocol
    assert protocol.departure({"subsets": subsets}) == said
