"""Folders of classes, with and without folders of splits."""

import zipfile

import pytest
from corpus_files import names, touch

from audio_tf import corpora
from audio_tf.corpora import (
    class_folders,
)


def test_folders_with_splits(tmp_path):
    touch(
        tmp_path / "train/rain/1.wav",
        tmp_path / "train/rain/deep/er/2.FLAC",
        tmp_path / "train/dog/3.ogg",
        tmp_path / "train/dog/notes.txt",
        tmp_path / "val/rain/5.mp3",
        tmp_path / "test/dog/6.wav",
        tmp_path / "test/rain/7.wav",
    )
    splits = corpora.read_folders(tmp_path)
    train = splits["train"]
    assert train.files == [
        tmp_path / "train/dog/3.ogg",
        tmp_path / "train/rain/1.wav",
        tmp_path / "train/rain/deep/er/2.FLAC",
    ]
    assert train.labels == [["dog"], ["rain"], ["rain"]]
    assert train.targets().tolist() == [[1, 0], [0, 1], [0, 1]]
    assert names(splits["val"]) == ["5.mp3"]
    # Val lacks a class of train, and keeps the columns of train.
    assert splits["val"].targets().tolist() == [[0, 1]]
    assert splits["test"].labels == [["dog"], ["rain"]]


def test_folders_of_a_class_in_two_forms_of_unicode(tmp_path):
    """As macOS names a folder, and as it was typed."""
    touch(tmp_path / "train/Vo\u0308gel/1.wav", tmp_path / "train/dog/2.wav")
    touch(tmp_path / "test/V\u00f6gel/3.wav")
    splits = corpora.read_folders(tmp_path)
    assert splits["train"].labels == [["V\u00f6gel"], ["dog"]]
    assert splits["test"].labels == [["V\u00f6gel"]]
    assert names(splits["train"]) == ["1.wav", "2.wav"]


def test_audio_below_a_folder(tmp_path):
    for name in ("b.wav", "a/c.FLAC", "a/deeper/a.mp3", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [
        file.relative_to(tmp_path).as_posix()
        for file in corpora.audio_below(str(tmp_path))
    ]
    assert found == ["a/c.FLAC", "a/deeper/a.mp3", "b.wav"]
    # The top has no class.
    with pytest.raises(ValueError, match="1 files beside them.* b.wav"):
        class_folders.read_class_folders(tmp_path)
    (tmp_path / "b.wav").unlink()
    labels = class_folders.read_class_folders(tmp_path).labels
    assert labels == [["a"], ["a"]]
    with pytest.raises(FileNotFoundError, match="none: no such folder"):
        corpora.audio_below(tmp_path / "none")


def test_folders_with_train_alone(tmp_path):
    touch(tmp_path / "train/rain/1.wav", tmp_path / "train/dog/2.wav")
    splits = corpora.read_folders(tmp_path)
    assert {split: len(corpus) for split, corpus in splits.items()} == {
        "train": 2,
        "val": 0,
        "test": 0,
    }
    assert splits["test"].vocabulary == ["dog", "rain"]


def test_splits_that_are_packed(tmp_path):
    names = ["train/dog/a.wav", "train/rain/b.wav", "test/rain/c.wav"]
    with zipfile.ZipFile(tmp_path / "sounds.zip", "w") as archive:
        for name in names:
            archive.writestr(f"sounds/{name}", b"some")
    splits = corpora.read_folders(tmp_path / "sounds")
    assert [len(each) for each in splits.values()] == [2, 0, 1]
    assert splits["test"].files == [tmp_path / "sounds" / names[2]]
    assert splits["test"].labels == [["rain"]]
    with pytest.raises(ValueError, match="splits of its own, .*seed=1"):
        corpora.read_folders(tmp_path / "sounds", seed=1)


def test_folders_without_splits(tmp_path):
    files = [
        tmp_path / label / f"{number}.wav"
        for label, count in (("dog", 17), ("rain", 23), ("wind", 13))
        for number in range(count)
    ]
    touch(*files)
    splits = corpora.read_folders(tmp_path, seed=5)
    assert [len(corpus) for corpus in splits.values()] == [43, 5, 5]
    drawn = sum((corpus.files for corpus in splits.values()), [])
    assert sorted(drawn) == sorted(files)
    for corpus in splits.values():
        assert corpus.vocabulary == ["dog", "rain", "wind"]
        expected = [[file.parent.name] for file in corpus.files]
        assert corpus.labels == expected
    assert corpora.load_corpus("folders", tmp_path, seed=5) == splits
    assert corpora.load_corpus("folders", tmp_path, seed=6) != splits


@pytest.mark.parametrize("split", ["val", "test"])
def test_folder_of_a_class_that_train_lacks(tmp_path, split):
    touch(tmp_path / "train/rain/1.wav", tmp_path / split / "snow/2.wav")
    with pytest.raises(ValueError, match=r"Received: \['snow'\]") as caught:
        corpora.read_folders(tmp_path)
    assert str(tmp_path / split) in str(caught.value)


@pytest.mark.parametrize("inside", ["", "dog", "train", "train/dog"])
def test_folder_without_audio(tmp_path, inside):
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    touch(tmp_path / "readme.txt")
    with pytest.raises(FileNotFoundError, match="no audio") as caught:
        corpora.read_folders(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="none: no such folder"):
        corpora.read_folders(tmp_path / "none")


def test_class_folders_that_are_named_as_splits(tmp_path):
    # Steam engines and whistles: `train` is a class among others.
    touch(tmp_path / "a/train/1.wav", tmp_path / "a/whistle/2.wav")
    splits = corpora.read_folders(tmp_path / "a")
    assert splits["train"].vocabulary == ["train", "whistle"]
    for number, (paths, message) in enumerate(
        [
            (["train/a/1.wav", "dog/2.wav"], r"alone.*in \['dog', 'train'\]"),
            (["train/a/1.wav", "Val/a/2.wav"], "did you mean 'val'"),
            (["train/a/1.wav", "validation/a/2.wav"], "'train', 'validation'"),
            (["train/1.wav", "test/2.wav"], "need a folder per class"),
            (["val/a/1.wav", "test/a/2.wav"], "train must be there"),
            (["Train/a/1.wav", "TEST/b/2.wav"], r"small.*\['TEST', 'Train'\]"),
            (["training/a/1.wav", "testing/a/2.wav"], "be called train"),
            (["train/a/1.wav", "val/2.wav"], "val: .*beside them"),
            (["train/a/1.wav", "train/2.wav"], "train: .*beside them"),
            (["dog/1.wav", "Dog/2.wav"], "two spellings"),
            (["dog/1.wav", "2.wav"], "beside them.* 2.wav"),
        ]
    ):
        folder = tmp_path / str(number)
        touch(*(folder / path for path in paths))
        with pytest.raises(ValueError, match=message) as caught:
            corpora.read_folders(folder)
        assert str(folder) in str(caught.value)
    # Classes, since one is none of a split, or has its clips at once.
    for name, paths in (
        ("c", ["Training/anna/1.wav", "whistle/ben/2.wav"]),
        ("d", ["Train/1.wav", "Test/a/2.wav"]),
    ):
        touch(*(tmp_path / name / path for path in paths))
        assert len(corpora.read_folders(tmp_path / name)["train"]) == 2
    touch(tmp_path / "b/train/a/1.wav", tmp_path / "b/val/a/1.txt")
    with pytest.raises(FileNotFoundError, match="val: no audio"):
        corpora.read_folders(tmp_path / "b")


def test_folders_with_one_file_in_two_splits(tmp_path):
    touch(tmp_path / "train/dog/1.wav")
    (tmp_path / "test/dog").mkdir(parents=True)
    (tmp_path / "test/dog/2.wav").symlink_to(tmp_path / "train/dog/1.wav")
    with pytest.raises(ValueError, match="1.wav and .*2.wav are one file"):
        corpora.read_folders(tmp_path)
