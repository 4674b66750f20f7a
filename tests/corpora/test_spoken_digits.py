"""Spoken digits, split by the index of the recording."""

import collections

import pytest
from corpus_files import names, packed, touch, write_audio, write_fsdd

from audio_tf.corpora import (
    FSDD_OFFICIAL_SPLITS,
    FSDD_SPLITS,
    load_corpus,
    read_fsdd,
    read_fsdd_clips,
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


def test_phones_of_fsdd_within_its_archive(tmp_path):
    root = write_fsdd(tmp_path / "fsdd")
    packed(root)
    train = read_fsdd(root)["train"]
    assert train.label_names == ["SIL", "TH"]
    assert train.frame_labels[3].tolist() == [0, 1, 0, 1]


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


def write_clips(folder):
    for name in ("3_jo_0", "3_jo_9", "4_jo_10", "4_ann_b_4", "3_ann_b_49"):
        touch(folder / "recordings" / f"{name}.wav")
    return folder


def test_fsdd_as_clips(tmp_path):
    splits = load_corpus("fsdd", write_clips(tmp_path))
    assert {split: names(corpus) for split, corpus in splits.items()} == {
        "train": ["3_ann_b_49.wav", "4_jo_10.wav"],
        "val": ["3_jo_9.wav"],
        "test": ["3_jo_0.wav", "4_ann_b_4.wav"],
    }
    assert splits["test"].vocabulary == ["3", "4"]
    assert splits["test"].labels == [["3"], ["4"]]
    who = read_fsdd_clips(tmp_path, "speakers")
    assert who["test"].vocabulary == ["ann_b", "jo"]
    assert who["test"].labels == [["jo"], ["ann_b"]]
    assert names(who["train"]) == names(splits["train"])
    splits = read_fsdd_clips(tmp_path, test_speakers=["jo"])
    assert names(splits["train"]) == ["3_ann_b_49.wav", "4_ann_b_4.wav"]
    assert len(splits["test"]) == 3 and not splits["val"].files


def test_fsdd_clips_that_are_odd(tmp_path):
    write_clips(tmp_path)
    for options, message in (
        ({"classes": "speaker"}, "did you mean 'speakers'"),
        ({"val_speakers": ["joe"]}, "did you mean 'jo'"),
        ({"classes": "speakers", "val_speakers": ["jo"]}, "to digits alone"),
    ):
        with pytest.raises(ValueError, match=message):
            read_fsdd_clips(tmp_path, **options)
    for name, message in (
        ("take two.wav", "take two.wav: must be named digit_speaker_index"),
        ("4_jo_10.flac", "Two files are the utterance 4_jo_10"),
        ("4_jo_50.wav", "4_jo_50.wav: its index is in no split"),
    ):
        path = tmp_path / "recordings" / name
        touch(path)
        with pytest.raises(ValueError, match=message):
            read_fsdd_clips(tmp_path)
        path.unlink()
    with pytest.raises(FileNotFoundError, match="recordings: no such folder"):
        read_fsdd_clips(tmp_path / "recordings")


def test_real_fsdd_clips(shared_data):
    """The official test is not among them."""
    splits = load_corpus("fsdd", shared_data / "fsdd")
    assert [len(corpus) for corpus in splits.values()] == [2_400, 300, 0]
    counts = collections.Counter(label for (label,) in splits["val"].labels)
    assert counts == {str(digit): 30 for digit in range(10)}
    who = load_corpus("fsdd", shared_data / "fsdd", classes="speakers")
    assert who["val"].files == splits["val"].files
    assert who["val"].vocabulary == [
        *("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
    ]
    counts = collections.Counter(label for (label,) in who["val"].labels)
    assert set(counts.values()) == {50}
