"""LibriSpeech in its released folders."""

import numpy as np
import pytest
from corpus_files import (
    SPEAKERS,
    packed,
    write_audio,
    write_librispeech,
    write_text,
)

from audio_tf.corpora import (
    read_librispeech,
    read_librispeech_speakers,
)


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("speakers", [SPEAKERS, None])
def test_librispeech(tmp_path, inner, speakers):
    root = write_librispeech(tmp_path, speakers)
    splits = read_librispeech(str(root if inner else tmp_path))
    assert list(splits) == ["train-clean-100", "dev-clean"]
    train, dev = splits.values()
    assert train.utterances == ["13-17-0000", "5-11-0000", "5-11-0001"]
    assert dev.utterances == ["7-19-0000", "7-19-0001"]
    assert train.files[1] == root / "train-clean-100/5/11/5-11-0000.flac"
    # As strings, over both subsets.
    assert train.vocabulary == dev.vocabulary == ["13", "5", "7"]
    assert train.speakers.tolist() == [0, 1, 1]
    assert dev.speakers.tolist() == [2, 2]
    assert dev.speakers.dtype == np.int32
    assert dev.targets().tolist() == [[0, 0, 1], [0, 0, 1]]
    assert train.frame_labels is None
    assert train.report == {}
    assert train.describe() == ""


def test_librispeech_one_subset_has_its_own_speakers_alone(tmp_path):
    write_librispeech(tmp_path)
    splits = read_librispeech(tmp_path, ["dev-clean"])
    assert list(splits) == ["dev-clean"]
    assert splits["dev-clean"].vocabulary == ["7"]


def test_librispeech_subset_that_is_missing_or_empty(tmp_path):
    root = write_librispeech(tmp_path)
    with pytest.raises(FileNotFoundError, match="test-other"):
        read_librispeech(tmp_path, ["test-other"])
    (root / "dev-other").mkdir()
    with pytest.raises(FileNotFoundError, match="dev-other: no utterances"):
        read_librispeech(tmp_path, ["dev-other"])
    with pytest.raises(FileNotFoundError, match="name the subsets"):
        read_librispeech(tmp_path / "LibriSpeech" / "dev-clean")


@pytest.mark.parametrize(
    "misplaced",
    [
        "5/11/13-11-0003.flac",
        "5/11/5-17-0003.flac",
        "5/5-11-0003.flac",
        "5/11/deep/5-11-0003.flac",
        "5/11/5-11.flac",
    ],
)
def test_librispeech_files_in_the_wrong_place(tmp_path, misplaced):
    root = write_librispeech(tmp_path) / "train-clean-100"
    write_audio(root / misplaced)
    train = read_librispeech(tmp_path)["train-clean-100"]
    assert len(train) == 3
    what = "files not named by their folders"
    assert train.report == {what: [f"train-clean-100/{misplaced}"]}
    assert train.describe() == f"1 {what}: train-clean-100/{misplaced}"
    with pytest.raises(ValueError, match="strict=True"):
        read_librispeech(tmp_path, strict=True)


@pytest.mark.parametrize(
    "twin", ["train-clean-100/5/11/5-11-0001.wav", "mine/5/11/5-11-0001.flac"]
)
def test_librispeech_utterance_that_is_there_twice(tmp_path, twin):
    root = write_librispeech(tmp_path)
    write_audio(root / twin)
    subsets = sorted({"train-clean-100", twin.split("/")[0]})
    with pytest.raises(ValueError) as caught:
        read_librispeech(tmp_path, subsets)
    assert "utterance 5-11-0001" in str(caught.value)
    assert str(root / twin) in str(caught.value)


def test_librispeech_speakers_file(tmp_path):
    path = write_text(tmp_path / "SPEAKERS.TXT", "\ufeff" + SPEAKERS)
    speakers = read_librispeech_speakers(path)
    assert speakers["5"] == {
        "sex": "F",
        "subset": "train-clean-100",
        "minutes": 25.03,
        "name": "Zoë | with | bars",
    }
    assert speakers["13"]["name"] == "|CBW|Simon"
    path.write_bytes(SPEAKERS.encode("latin-1"))
    assert list(read_librispeech_speakers(path)) == ["5", "13", "7"]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("| 8.10  ", "", "line 5: must be ID"),
        ("8.10", "eight", "line 5: must be ID"),
        ("7    |", "5    |", "line 5: speaker 5 occurs twice"),
        ("7    |", "8    |", "it lacks speaker 7 of dev-clean"),
        ("dev-clean", "dev-other", "7 is of dev-other. .*in dev-clean"),
    ],
)
def test_librispeech_speakers_that_do_not_agree(tmp_path, old, new, message):
    write_librispeech(tmp_path, SPEAKERS.replace(old, new))
    with pytest.raises(ValueError, match=rf"SPEAKERS\.TXT.*{message}"):
        read_librispeech(tmp_path)


def test_librispeech_phones_and_lists(tmp_path):
    write_librispeech(tmp_path)
    phones = write_text(
        tmp_path / "p.txt",
        "5-11-0001 1 2\n13-17-0000 0\n99-1-0000 1\n5-11-0002 3\n",
    )
    lists = {
        "train": write_text(tmp_path / "train.txt", "5-11-0001\n98-1-0000"),
        "test": ["13-17-0000"],
    }
    splits = read_librispeech(tmp_path, ["train-clean-100"], phones, lists)
    assert {k: v.utterances for k, v in splits.items()} == {
        "train": ["5-11-0001"],
        "test": ["13-17-0000"],
    }
    train = splits["train"]
    assert train.frame_labels[0].tolist() == [1, 2]
    assert train.label_rate_hz == 100.0
    assert train.vocabulary == ["13", "5"]
    assert train.speakers.tolist() == [1]
    # Nothing vanishes without a trace.
    assert train.report == splits["test"].report
    assert train.report == {
        "labels without audio": ["99-1-0000", "5-11-0002"],
        "utterances without labels": ["5-11-0000"],
        "listed without audio": ["98-1-0000"],
        "utterances in no list": ["5-11-0000"],
    }
    assert "2 labels without audio: 99-1-0000, 5-11-0002" in train.describe()
    with pytest.raises(ValueError, match="2 labels without audio"):
        read_librispeech(tmp_path, ["train-clean-100"], phones, strict=True)
    with pytest.raises(ValueError, match="1 listed without audio"):
        read_librispeech(
            tmp_path, ["train-clean-100"], None, lists, strict=True
        )


def test_lists_of_librispeech_within_its_archive(tmp_path):
    root = write_librispeech(tmp_path, SPEAKERS.replace("dev-clean", "dev"))
    write_text(root / "phones.txt", "5-11-0001 1 2\n13-17-0000 0\n")
    write_text(root / "train.txt", "5-11-0001\n")
    packed(root)
    splits = read_librispeech(
        tmp_path,
        ["train-clean-100"],
        root / "phones.txt",
        {"train": root / "train.txt"},
    )
    assert splits["train"].utterances == ["5-11-0001"]
    assert splits["train"].frame_labels[0].tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"SPEAKERS\.TXT: speaker 7 is of dev"):
        read_librispeech(root)


def test_subsets_by_split_are_joined(tmp_path):
    write_librispeech(tmp_path)
    groups = {"train": ["dev-clean", "train-clean-100"], "val": []}
    splits = read_librispeech(tmp_path, groups)
    assert list(splits) == ["train"]
    assert len(splits["train"]) == 5
    assert splits["train"].utterances[:2] == ["7-19-0000", "7-19-0001"]
    groups["val"] = ["dev-clean"]
    with pytest.raises(ValueError, match="named once, in one split"):
        read_librispeech(tmp_path, groups)
