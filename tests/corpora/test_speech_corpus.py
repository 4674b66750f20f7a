"""Utterances with labels, lists and reports."""

import math
import random

import numpy as np
import pytest
from corpus_files import write_librispeech

from audio_tf.corpora import (
    read_librispeech,
    read_speech_folder,
)


def test_description_counts_all_and_names_some(tmp_path):
    write_librispeech(tmp_path)
    corpus = read_librispeech(tmp_path)["dev-clean"]
    labels = {f"x-{n}": np.zeros(1, int) for n in range(7)}
    corpus = corpus.with_frame_labels({**labels, "7-19-0000": np.ones(2, int)})
    assert corpus.describe().splitlines() == [
        "7 labels without audio: x-0, x-1, x-2, x-3, x-4 and 2 more",
        "1 utterances without labels: 7-19-0001",
    ]
    assert corpus.labelled().utterances == ["7-19-0000"]


def test_labels_that_belong_to_nothing_here(tmp_path):
    write_librispeech(tmp_path)
    corpus = read_librispeech(tmp_path)["dev-clean"]
    with pytest.raises(ValueError, match="None of 2 utterances is among the 1"):
        corpus.with_frame_labels({"x": np.zeros(1, int)})
    with pytest.raises(ValueError, match="2 names of labels. .*label 2"):
        corpus.with_frame_labels(
            {"7-19-0000": np.array([0, 2])}, label_names=["a", "b"]
        )


def test_lists_that_overlap_or_find_nothing(tmp_path):
    write_librispeech(tmp_path)
    corpus = read_librispeech(tmp_path)["dev-clean"]
    both = {"train": ["7-19-0000"], "test": ["7-19-0001", "7-19-0000"]}
    with pytest.raises(ValueError, match="7-19-0000 .*train and test"):
        corpus.split(both)
    with pytest.raises(ValueError, match="split test .* 1 listed"):
        corpus.split({"train": ["7-19-0000"], "test": ["7-19-9999"]})


def test_holding_out_is_a_shuffle_by_seed(tmp_path):
    for number in range(23):
        (tmp_path / f"u{number:02d}.wav").touch()
    corpus = read_speech_folder(tmp_path)["train"]
    names = list(corpus.utterances)
    random.Random(1337).shuffle(names)
    rest, held = corpus.hold_out(0.1)
    assert (rest.utterances, held.utterances) == (names[:17], names[17:])
    assert [len(each) for each in corpus.hold_out(0.3)] == [13, 6]
    assert corpus.hold_out(0.1, seed=1)[1].utterances != held.utterances
    for share in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"Received: share={share}"):
            corpus.hold_out(share)
