"""Any folder of speech."""

import unicodedata

import pytest
from corpus_files import write_audio, write_text

from audio_tf.corpora import (
    read_speech_folder,
)


def test_any_folder(tmp_path):
    decomposed = unicodedata.normalize("NFD", "Zoë")
    write_audio(tmp_path / decomposed / "one two.ogg", rate_hz=8_000)
    write_audio(tmp_path / "bo" / "day 1" / "a.wav")
    write_audio(tmp_path / "top.flac")
    write_text(tmp_path / "notes.txt", "no audio")
    phones = write_text(tmp_path / "p.txt", "top 1\nZoë/gone 0\n")
    lists = {"train": ["top", "Zoë/one two"], "test": ["bo/day 1/a"]}
    splits = read_speech_folder(tmp_path, phones, lists)
    train, test = splits["train"], splits["test"]
    assert train.utterances == ["top", "Zoë/one two"]
    assert train.vocabulary == ["Zoë", "bo"]
    assert train.labels == [[], ["Zoë"]]
    assert train.speakers.tolist() == [-1, 0]
    assert test.speakers.tolist() == [1]
    assert train.report["labels without audio"] == ["Zoë/gone"]
    assert len(train.report["utterances without labels"]) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no audio there"):
        read_speech_folder(tmp_path / "empty")


def test_folder_is_split_by_a_seed(tmp_path):
    for number in range(31):
        (tmp_path / f"{number:02d}.wav").touch()
    splits = read_speech_folder(tmp_path, seed=3)
    assert {k: len(v) for k, v in splits.items()} == {
        "train": 25,
        "val": 3,
        "test": 3,
    }
    names = [name for split in splits.values() for name in split.utterances]
    assert sorted(names) == [f"{number:02d}" for number in range(31)]


def test_a_seed_beside_lists_is_refused(tmp_path):
    for name in ("a.wav", "b.wav"):
        (tmp_path / name).touch()
    lists = {"train": ["a"], "test": ["b"]}
    splits = read_speech_folder(tmp_path, lists=lists)
    assert splits["test"].utterances == ["b"]
    with pytest.raises(ValueError, match="lists name .*seed=3"):
        read_speech_folder(tmp_path, lists=lists, seed=3)
