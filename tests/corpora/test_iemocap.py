"""IEMOCAP's turns by session, and lines that do not fit."""

import pytest
from corpus_files import names
from releases import write_iemocap

from audio_tf.corpora import load_corpus, read_iemocap
from audio_tf.corpora.iemocap import iemocap_speaker

FOLDS = {"train": [1], "val": [], "test": [5]}


def test_four_emotions_by_session(tmp_path):
    write_iemocap(tmp_path)
    splits = load_corpus("iemocap", tmp_path, folds=FOLDS)
    assert [len(splits[split]) for split in FOLDS] == [3, 0, 3]
    train = splits["train"]
    assert train.vocabulary == ["sadness", "neutral", "happiness", "anger"]
    assert train.labels == [["neutral"], ["happiness"], ["anger"]]
    assert train.groups == ["1"] * 3 and splits["test"].groups == ["5"] * 3
    assert names(train) == [
        "Ses01F_impro01_F000.wav",
        "Ses01F_impro01_M000.wav",
        "Ses01F_impro01_MXX1.wav",
    ]
    assert all(file.is_file() for file in train.files)
    assert [iemocap_speaker(file.stem) for file in train.files] == [
        "1F",
        "1M",
        "1M",
    ]


def test_what_does_not_fit_is_named(tmp_path):
    write_iemocap(tmp_path)
    path = next(tmp_path.glob("Session1/dialog/EmoEvaluation/*.txt"))
    text = path.read_text()
    for old, new, message in (
        ("\texc\t", "\texcited\t", "line 6: an emotion .* did you mean 'exc'"),
        ("_M000", "_F000", "line 6: .*_F000 is in line 3 already"),
        ("Ses01F_impro01_M000", "Ses02F_impro01_M000", "no utterance of"),
        ("- 11.3925]", "11.3925]", r"line 6: must be \[begin - end\]"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(ValueError, match=message):
            read_iemocap(tmp_path, FOLDS)
    without = text.replace("[", "").encode()
    for content in (b"", without, text.encode("utf-16")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{path.name}: no turn of the"):
            read_iemocap(tmp_path, FOLDS)
    path.write_text(text)
    with pytest.raises(FileNotFoundError, match="Session2.*no dialogs"):
        read_iemocap(tmp_path)
    for folds in ({"train": [1], "test": [1]}, {"train": [1], "test": [6]}):
        with pytest.raises(
            ValueError, match=r"one of \[1, 2, 3, 4, 5\] and in"
        ):
            read_iemocap(tmp_path, folds)
