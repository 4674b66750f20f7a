"""Spoken digits, split by the index of the recording."""

import pytest
from corpus_files import write_audio, write_fsdd

from audio_tf.corpora import (
    FSDD_OFFICIAL_SPLITS,
    FSDD_SPLITS,
    read_fsdd,
)


def test_fsdd(tmp_path):
    splits = read_fsdd(write_fsdd(tmp_path))
    assert {k: v.utterances for k, v in splits.items()} == {
        "train": ["3_ann_b_15", "3_ann_b_49", "3_jo_15", "3_jo_49"],
        "val": ["3_ann_b_11", "3_jo_11"],
        "test": ["3_ann_b_5", "3_jo_5"],
    }
    train = splits["train"]
    assert train.vocabulary == ["ann_b", "jo"]
    assert train.speakers.tolist() == [0, 0, 1, 1]
    assert train.label_names == ["SIL", "TH"]
    assert train.frame_labels[1] is None
    assert train.frame_labels[3].tolist() == [0, 1, 0, 1]
    assert train.labelled().utterances == [
        "3_ann_b_15",
        "3_jo_15",
        "3_jo_49",
    ]
    assert train.report == {
        "utterances in no split": ["3_ann_b_0", "3_jo_0"],
        "utterances without labels": ["3_ann_b_49"],
    }


def test_fsdd_official_splits(tmp_path):
    write_fsdd(tmp_path, phones=False)
    splits = read_fsdd(tmp_path, FSDD_OFFICIAL_SPLITS)
    assert splits["test"].utterances == ["3_ann_b_0", "3_jo_0"]
    assert splits["train"].frame_labels is None
    for table in (FSDD_OFFICIAL_SPLITS, FSDD_SPLITS):
        used = [i for indices in table.values() for i in indices]
        assert len(set(used)) == len(used)
    assert sorted(used) == list(range(5, 50))


def test_fsdd_that_is_odd(tmp_path):
    write_fsdd(tmp_path, phones=False)
    write_audio(tmp_path / "recordings" / "take two.wav")
    splits = read_fsdd(tmp_path)
    what = "files not named digit_speaker_index"
    assert splits["val"].report[what] == ["take two.wav"]
    with pytest.raises(ValueError, match="strict=True"):
        read_fsdd(tmp_path, strict=True)
    with pytest.raises(ValueError, match="in one split only"):
        read_fsdd(tmp_path, {"train": [5, 11], "test": [11]})
    with pytest.raises(ValueError, match="no recording of the split test"):
        read_fsdd(tmp_path, {"train": [5, 11], "test": [12]})
