"""The layouts of corpora, written here as their authors release them."""

import argparse
import collections
import csv
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from audio_tf import corpora
from audio_tf.corpora import (
    CORPORA,
    Layout,
    class_folders,
    load_corpus,
    synthetic,
)
from audio_tf.corpora import corpus as corpus_module
from audio_tf.runs import corpus_settings, flags

VOCABULARY = """\
0,Accelerating_and_revving_and_vroom,/m/07q2z82
1,Bird,/m/015p6
2,Electric_guitar,/m/02sgy
3,Guitar,/m/0342h
4,Music,/m/04rlf
"""
DEV = """\
fname,labels,mids,split
64760,"Electric_guitar,Guitar,Music","/m/02sgy,/m/0342h,/m/04rlf",train
16399,Bird,/m/015p6,val
16401,"Music","/m/04rlf",train
"""
EVAL = """\
fname,labels,mids
37199,"Guitar,Music","/m/0342h,/m/04rlf"
175151,Accelerating_and_revving_and_vroom,/m/07q2z82
"""


def write_fsd50k(folder, dev=DEV, eval=EVAL, vocabulary=VOCABULARY):
    truth = folder / "FSD50K.ground_truth"
    truth.mkdir(parents=True)
    (truth / "dev.csv").write_text(dev, encoding="utf-8")
    (truth / "eval.csv").write_text(eval, encoding="utf-8")
    (truth / "vocabulary.csv").write_text(vocabulary, encoding="utf-8")
    return folder


def names(corpus):
    return [pathlib.Path(file).name for file in corpus.files]


def test_fsd50k_splits_labels_and_targets(tmp_path):
    splits = corpora.read_fsd50k(write_fsd50k(tmp_path))
    assert {split: len(corpus) for split, corpus in splits.items()} == {
        "train": 2,
        "val": 1,
        "test": 2,
    }
    dev_audio = tmp_path / "FSD50K.dev_audio"
    eval_audio = tmp_path / "FSD50K.eval_audio"
    train, val, test = splits["train"], splits["val"], splits["test"]
    assert train.files == [dev_audio / "64760.wav", dev_audio / "16401.wav"]
    assert val.files == [dev_audio / "16399.wav"]
    assert test.files == [eval_audio / "37199.wav", eval_audio / "175151.wav"]
    assert train.labels == [["Electric_guitar", "Guitar", "Music"], ["Music"]]
    for corpus in splits.values():
        assert corpus.vocabulary == [
            "Accelerating_and_revving_and_vroom",
            "Bird",
            "Electric_guitar",
            "Guitar",
            "Music",
        ]
    assert train.targets().tolist() == [[0, 0, 1, 1, 1], [0, 0, 0, 0, 1]]
    assert val.targets().tolist() == [[0, 1, 0, 0, 0]]
    assert test.targets().tolist() == [[0, 0, 0, 1, 1], [1, 0, 0, 0, 0]]
    assert train.targets().dtype == "float32"


def test_fsd50k_takes_a_str_and_a_byte_order_mark(tmp_path):
    write_fsd50k(tmp_path, "\ufeff" + DEV, "\ufeff" + EVAL)
    splits = corpora.read_fsd50k(str(tmp_path))
    assert names(splits["train"]) == ["64760.wav", "16401.wav"]


@pytest.mark.parametrize("name", ["dev", "eval"])
def test_fsd50k_label_not_in_the_vocabulary(tmp_path, name):
    text = {"dev": DEV, "eval": EVAL}[name].replace("Music", "Musik")
    write_fsd50k(tmp_path, **{name: text})
    # Row 2 of both files is the first below the header.
    message = rf"{name}\.csv, row 2: .*vocabulary of 5.*\['Musik'\]"
    with pytest.raises(ValueError, match=message) as caught:
        corpora.read_fsd50k(tmp_path)
    truth = tmp_path / "FSD50K.ground_truth"
    assert str(truth / f"{name}.csv") in str(caught.value)


def test_fsd50k_unknown_label_in_a_later_row(tmp_path):
    write_fsd50k(tmp_path, DEV.replace("16399,Bird", "16399,Brid"))
    with pytest.raises(ValueError, match=r"dev\.csv, row 3: .*\['Brid'\]"):
        corpora.read_fsd50k(tmp_path)


@pytest.mark.parametrize("split", ["validation", "eval", "Train", "test", ""])
def test_fsd50k_bad_split(tmp_path, split):
    write_fsd50k(tmp_path, DEV.replace("/m/015p6,val", f"/m/015p6,{split}"))
    message = rf"dev\.csv, row 3: .*train or val.*'{split}'"
    with pytest.raises(ValueError, match=message):
        corpora.read_fsd50k(tmp_path)


def test_fsd50k_eval_is_the_test_split_whatever_its_columns(tmp_path):
    text = "fname,labels,mids,split\n7,Bird,/m/015p6,train\n"
    splits = corpora.read_fsd50k(write_fsd50k(tmp_path, eval=text))
    assert names(splits["test"]) == ["7.wav"]
    assert len(splits["train"]) == 2


def test_fsd50k_row_that_is_too_short(tmp_path):
    write_fsd50k(tmp_path, eval=EVAL + "53\n")
    with pytest.raises(ValueError, match=r"eval\.csv, row 4"):
        corpora.read_fsd50k(tmp_path)


@pytest.mark.parametrize("name", ["dev", "eval", "vocabulary"])
def test_fsd50k_missing_csv(tmp_path, name):
    write_fsd50k(tmp_path)
    path = tmp_path / "FSD50K.ground_truth" / f"{name}.csv"
    path.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        corpora.read_fsd50k(tmp_path)
    assert str(caught.value) == f"{path}: no such file"


@pytest.mark.parametrize(
    "name, column",
    [("dev", "fname"), ("dev", "labels"), ("dev", "split"), ("eval", "fname")],
)
def test_fsd50k_missing_column(tmp_path, name, column):
    text = {"dev": DEV, "eval": EVAL}[name].replace(column, "other", 1)
    write_fsd50k(tmp_path, **{name: text})
    message = rf"{name}\.csv: .*{column}.*Received: \[.*'other'"
    with pytest.raises(ValueError, match=message):
        corpora.read_fsd50k(tmp_path)


@pytest.mark.parametrize("name", ["dev", "eval"])
def test_fsd50k_empty_csv(tmp_path, name):
    write_fsd50k(tmp_path, **{name: ""})
    with pytest.raises(ValueError, match=rf"{name}\.csv: .*Received: None"):
        corpora.read_fsd50k(tmp_path)


def test_fsd50k_csv_of_a_header_alone(tmp_path):
    write_fsd50k(tmp_path, eval="fname,labels,mids\n")
    with pytest.raises(ValueError, match=r"eval\.csv: no rows"):
        corpora.read_fsd50k(tmp_path)


def test_fsd50k_label_twice_in_the_vocabulary(tmp_path):
    write_fsd50k(tmp_path, vocabulary=VOCABULARY + "5,Bird,/m/015p6\n")
    with pytest.raises(ValueError, match=r"vocabulary\.csv: .*twice"):
        corpora.read_fsd50k(tmp_path)


@pytest.fixture(scope="module")
def mini_fsd50k(shared_data, tmp_path_factory):
    """A small corpus of real clips in the layout of the release."""
    folder = tmp_path_factory.mktemp("fsd50k")
    script = shared_data / "make_fsd50k_mini.py"
    subprocess.run([sys.executable, script, folder], check=True, timeout=300)
    return folder


def test_real_clips_in_the_layout_of_fsd50k(mini_fsd50k, shared_data):
    splits = corpora.load_corpus("fsd50k", mini_fsd50k)
    folds = collections.Counter(
        line.split(",")[1]
        for line in (shared_data / "esc10/esc10.csv").read_text().split()[1:]
    )
    counts = {split: len(corpus) for split, corpus in splits.items()}
    assert counts == {
        "train": folds["1"] + folds["2"],
        "val": folds["3"],
        "test": folds["4"],
    }
    assert counts["train"] + counts["val"] == 240
    assert counts["test"] == 80
    seen = set()
    for split, corpus in splits.items():
        assert len(corpus.vocabulary) == len(set(corpus.vocabulary)) == 200
        assert all(file.is_file() for file in corpus.files)
        assert not seen & set(corpus.files)
        seen.update(corpus.files)
        folder = "eval_audio" if split == "test" else "dev_audio"
        assert {file.parent.name for file in corpus.files} == {
            f"FSD50K.{folder}"
        }
    on_disk = {path for path in mini_fsd50k.glob("FSD50K.*_audio/*.wav")}
    assert seen == on_disk


def test_targets_of_real_clips(mini_fsd50k):
    truth = mini_fsd50k / "FSD50K.ground_truth"
    with open(truth / "vocabulary.csv", newline="") as file:
        columns = {label: int(index) for index, label, _ in csv.reader(file)}
    with open(truth / "eval.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    test = corpora.read_fsd50k(mini_fsd50k)["test"]
    assert names(test) == [f"{fname}.wav" for fname, _, _ in rows]
    for target, (_, labels, _) in zip(test.targets(), rows, strict=True):
        expected = sorted(columns[label] for label in labels.split(","))
        assert np.flatnonzero(target).tolist() == expected
        assert target.sum() == len(expected) > 1


# Targets neither in the order of the alphabet, nor of the rows, nor, as
# text, of numbers; a fold has clips of more than one class.
ESC = """\
filename,fold,target,category,esc10,src_file,take
1-100032-A-0.wav,1,9,dog,True,100032,A
1-104089-A-22.wav,1,22,clapping,False,104089,A
2-110389-A-0.wav,2,9,dog,True,110389,A
2-110417-B-28.wav,2,10,toilet_flush,False,110417,B
3-116765-A-41.wav,3,2,chainsaw,True,116765,A
4-119648-F-48.wav,4,48,fireworks,False,119648,F
5-119720-A-12.wav,5,12,crackling_fire,True,119720,A
"""
FOLDS = {"train": [1, 3], "val": [2], "test": [5, 4]}


def write_esc50(folder):
    (folder / "meta").mkdir()
    (folder / "meta" / "esc50.csv").write_text(ESC)
    return folder


def test_esc50_as_released(tmp_path):
    splits = corpora.read_esc(write_esc50(tmp_path), FOLDS)
    audio = tmp_path / "audio"
    assert splits["train"].files == [
        audio / "1-100032-A-0.wav",
        audio / "1-104089-A-22.wav",
        audio / "3-116765-A-41.wav",
    ]
    assert splits["train"].labels == [["dog"], ["clapping"], ["chainsaw"]]
    assert names(splits["val"]) == ["2-110389-A-0.wav", "2-110417-B-28.wav"]
    assert names(splits["test"]) == ["4-119648-F-48.wav", "5-119720-A-12.wav"]
    for corpus in splits.values():
        assert corpus.vocabulary == [
            "chainsaw",
            "dog",
            "toilet_flush",
            "crackling_fire",
            "clapping",
            "fireworks",
        ]
    assert splits["val"].targets().tolist() == [
        [0, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
    ]


@pytest.mark.parametrize("spelling", ["True", "true", "TRUE"])
def test_esc10_within_esc50(tmp_path, spelling):
    write_esc50(tmp_path)
    path = tmp_path / "meta" / "esc50.csv"
    path.write_text(path.read_text().replace("True", spelling))
    folds = {"train": [1, 3], "val": [2], "test": [5]}
    splits = corpora.read_esc(tmp_path, folds, only_esc10=True)
    assert names(splits["train"]) == ["1-100032-A-0.wav", "3-116765-A-41.wav"]
    assert names(splits["val"]) == ["2-110389-A-0.wav"]
    assert names(splits["test"]) == ["5-119720-A-12.wav"]
    vocabulary = ["chainsaw", "dog", "crackling_fire"]
    assert splits["test"].vocabulary == vocabulary
    loaded = corpora.load_corpus("esc10", tmp_path, folds=folds)
    assert loaded == splits


def test_esc_without_folds_in_a_split(tmp_path):
    folds = {"train": [1, 2], "val": [], "test": [4]}
    splits = corpora.read_esc(write_esc50(tmp_path), folds)
    assert len(splits["val"]) == 0
    assert splits["val"].targets().shape == (0, 6)
    assert names(splits["test"]) == ["4-119648-F-48.wav"]


@pytest.mark.parametrize(
    "folds",
    [
        {"train": [1, 2], "val": [3], "test": [2]},
        {"train": [1, 1], "val": [3], "test": [2]},
        {"train": [1, 2], "val": [3], "test": [6]},
        {"train": [1, 2], "val": [0], "test": [4]},
    ],
)
def test_esc_fold_in_two_splits_or_unknown(tmp_path, folds):
    write_esc50(tmp_path)
    message = r"one of \[1, 2, 3, 4, 5\] and in one split only.*Received:"
    with pytest.raises(ValueError, match=message) as caught:
        corpora.read_esc(tmp_path, folds)
    assert str(folds) in str(caught.value)


def test_esc_without_a_csv(tmp_path):
    with pytest.raises(FileNotFoundError, match="esc50.csv") as caught:
        corpora.read_esc(tmp_path, FOLDS)
    assert str(tmp_path) in str(caught.value)


def test_real_esc10(shared_data):
    folder = shared_data / "esc10"
    with open(folder / "esc10.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    folds = {"train": [1, 3], "val": [2], "test": [4]}
    splits = corpora.load_corpus("esc10", folder, folds=folds)
    for split, numbers in folds.items():
        corpus = splits[split]
        expected = [row for row in rows if int(row["fold"]) in numbers]
        assert len(corpus) == len(expected) == 80 * len(numbers)
        assert names(corpus) == [row["filename"] for row in expected]
        assert all(file.is_file() for file in corpus.files)
        assert len(corpus.vocabulary) == 10
        # Targets of ESC-10 are 0 to 9, so they are the columns themselves.
        columns = corpus.targets().argmax(axis=1)
        assert columns.tolist() == [int(row["target"]) for row in expected]
        assert (corpus.targets().sum(axis=1) == 1).all()
        counts = collections.Counter(columns.tolist())
        assert counts == {column: 8 * len(numbers) for column in range(10)}


def write_csv(folder, text, name="clips.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


WITH_SPLITS = """\
filename,labels,split
a/1.wav,"rain, wind",train
a/2.wav,dog,test
b/3.flac,"dog,rain",train
b/4.wav,,val
"""


def test_csv_with_splits(tmp_path):
    splits = corpora.read_csv(write_csv(tmp_path, WITH_SPLITS))
    assert list(splits) == ["train", "val", "test"]
    train = splits["train"]
    assert train.files == [tmp_path / "a/1.wav", tmp_path / "b/3.flac"]
    assert train.labels == [["rain", "wind"], ["dog", "rain"]]
    assert train.vocabulary == ["dog", "rain", "wind"]
    assert train.targets().tolist() == [[0, 1, 1], [1, 1, 0]]
    assert names(splits["val"]) == ["4.wav"]
    assert splits["val"].targets().tolist() == [[0, 0, 0]]
    assert names(splits["test"]) == ["2.wav"]
    assert splits["test"].vocabulary == ["dog", "rain", "wind"]


@pytest.mark.parametrize("split", ["dev", "", "Train"])
def test_csv_with_an_unknown_split(tmp_path, split):
    path = write_csv(tmp_path, WITH_SPLITS.replace("val", split))
    with pytest.raises(ValueError, match=rf"Received: \['{split}'\]") as caught:
        corpora.read_csv(path)
    assert str(path) in str(caught.value)


def write_unsplit(folder, count):
    rows = [f"{number}.wav,class_{number % 7}" for number in range(count)]
    return write_csv(folder, "filename,labels\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize(
    "count, sizes", [(53, (43, 5, 5)), (101, (81, 10, 10)), (7, (7, 0, 0))]
)
def test_csv_without_splits(tmp_path, count, sizes):
    splits = corpora.read_csv(write_unsplit(tmp_path, count), seed=3)
    assert tuple(len(corpus) for corpus in splits.values()) == sizes
    drawn = sum((names(corpus) for corpus in splits.values()), [])
    assert len(drawn) == count
    assert set(drawn) == {f"{number}.wav" for number in range(count)}
    for corpus in splits.values():
        assert corpus.vocabulary == [f"class_{index}" for index in range(7)]
        for file, labels in zip(corpus.files, corpus.labels, strict=True):
            assert labels == [f"class_{int(file.stem) % 7}"]


def test_csv_draw_is_the_seeds(tmp_path):
    path = write_unsplit(tmp_path, 53)
    drawn = {
        seed: {
            split: tuple(names(corpus))
            for split, corpus in corpora.read_csv(path, seed=seed).items()
        }
        for seed in range(5)
    }
    again = corpora.load_corpus("csv", path, seed=3)
    assert drawn[3] == {
        split: tuple(names(corpus)) for split, corpus in again.items()
    }
    assert len({splits["test"] for splits in drawn.values()}) == 5
    assert len({splits["val"] for splits in drawn.values()}) == 5


@pytest.mark.parametrize(
    "text",
    ["wind\nrain\nsnow\ndog\n", "0,wind,/m/1\n1,rain,/m/2\n2,snow,\n3,dog,\n"],
)
def test_csv_with_a_vocabulary_file(tmp_path, text):
    path = write_csv(tmp_path, WITH_SPLITS)
    vocabulary = write_csv(tmp_path, text, "vocabulary.csv")
    splits = corpora.load_corpus("csv", path, vocabulary=vocabulary)
    assert splits["val"].vocabulary == ["wind", "rain", "snow", "dog"]
    assert splits["train"].targets().tolist() == [[1, 1, 0, 0], [0, 1, 0, 1]]


def test_csv_label_not_in_the_vocabulary(tmp_path):
    path = write_csv(tmp_path, WITH_SPLITS)
    message = r"clips\.csv, row 2: .*vocabulary of 2.*Received: \['wind'\]"
    with pytest.raises(ValueError, match=message):
        corpora.read_csv(path, ["dog", "rain"])


def test_label_twice_in_the_vocabulary_file(tmp_path):
    path = write_csv(tmp_path, WITH_SPLITS)
    vocabulary = write_csv(tmp_path, "dog\nrain\nwind\ndog\n", "words.txt")
    with pytest.raises(ValueError, match=r"words\.txt: .*twice"):
        corpora.load_corpus("csv", path, vocabulary=vocabulary)


def test_missing_vocabulary_file(tmp_path):
    path = write_csv(tmp_path, WITH_SPLITS)
    with pytest.raises(FileNotFoundError, match=r"none\.txt: no such file"):
        corpora.load_corpus("csv", path, vocabulary=tmp_path / "none.txt")


def test_missing_csv(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv: no such file"):
        corpora.read_csv(tmp_path / "none.csv")


def test_csv_row_that_is_too_short(tmp_path):
    path = write_csv(tmp_path, "filename,labels\na.wav,dog\nb.wav\n")
    with pytest.raises(ValueError, match=r"clips\.csv"):
        corpora.read_csv(path)


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


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


def test_unknown_layout(tmp_path):
    with pytest.raises(ValueError, match="Received: dataset='esc51'") as caught:
        corpora.load_corpus("esc51", tmp_path)
    known = ["synthetic", "fsd50k", "esc10", "esc50", "folders", "csv"]
    assert all(f"'{name}'" in str(caught.value) for name in known)


CSV_ERRORS = {
    # A field that holds commas and is not quoted.
    "filename,labels\na.wav,dog,cat\n": "row 2: too many fields.*'cat'",
    "filename,labels,split\na.wav,dog\n": "row 2: too few fields",
    "filename,labels,Split\na.wav,dog,train\n": "'Split'; did you mean 'split'",
    "filename,labels, split\na.wav,dog,train\n": "did you mean 'split'",
    "filename,Labels\na.wav,dog\n": "'Labels'; did you mean 'labels'",
    "file,labels\na.wav,dog\n": "'file'; did you mean 'filename'",
    "filename,labels,subset\na.wav,dog,train\n": "unknown column 'subset'",
    "filename,sex,label\na.wav,f,dog\n": (
        "column 'sex', 'label'; did you mean 'labels'"
    ),
    "filename,labels,labels\na.wav,dog,cat\n": "each once",
    "filename,labels\n\n,dog\n": "row 3: no name of a file",
    "filename,labels\na.wav,'dog\0'\n": "must be text",
    "filename,labels,split\na.wav,dog,trian\n": "did you mean 'train'",
    'filename,labels\na.wav,"dog,,cat"\n': "row 2: labels must not be empty",
    'filename,labels\na.wav,"dog,"\n': "row 2: labels must not be empty",
    'filename,labels\na.wav,"dog, dog"\n': "each be there once",
    "filename,labels\na.wav,\nb.wav,\n": "no row has a label",
    "filename,labels\na.wav,dog\nb.wav,Dog\n": "spellings.*'Dog' and 'dog'",
    "filename,labels\na.wav,dog\na.wav,dog\n": "a.wav is listed twice",
    "filename,labels\na.wav,dog\nx/../a.wav,cat\n": r"twice.*dog.*cat",
    "filename,labels,split\na.wav,dog,train\na.wav,dog,test\n": (
        "listed twice.*in train .*in test"
    ),
}


@pytest.mark.parametrize("text", CSV_ERRORS)
def test_csv_that_does_not_say_what_it_means(tmp_path, text):
    path = write_csv(tmp_path, text)
    with pytest.raises(ValueError, match=CSV_ERRORS[text]) as caught:
        corpora.read_csv(path)
    assert str(path) in str(caught.value)
    assert "Received: " in str(caught.value) or "no " in str(caught.value)


def test_csv_as_it_is_meant(tmp_path):
    text = 'filename,labels,split\r\n\r\n"a,b.wav","dog, big cat",train\r\n'
    splits = corpora.read_csv(write_csv(tmp_path, "\ufeff" + text))
    assert names(splits["train"]) == ["a,b.wav"]
    assert splits["train"].labels == [["dog", "big cat"]]
    # Labels of a vocabulary need not occur.
    words = write_csv(tmp_path, "big cat\nrain\ndog\n", "words.txt")
    splits = corpora.read_csv(tmp_path / "clips.csv", words)
    assert splits["train"].targets().tolist() == [[1, 0, 1]]


@pytest.mark.parametrize(
    "words, message",
    [
        ("Rain\nwind\nsnow\ndog\n", "row 2: .*did you mean 'Rain'"),
        ("wind \nrain\ndog\n", "words.*spaces around it. Received: 'wind '"),
        ("wind\nrain\ndog\nDog\n", "words.*'dog' and 'Dog'"),
        ("0,wind\n1,rain\n3,dog\n", "words.*row 3: .*counted from 0"),
        ("Dog, barking\nrain\n", "words.*row 1: must be"),
        ("", "no labels"),
    ],
)
def test_vocabulary_that_does_not_fit(tmp_path, words, message):
    path = write_csv(tmp_path, WITH_SPLITS)
    with pytest.raises(ValueError, match=message):
        corpora.read_csv(path, write_csv(tmp_path, words, "words.txt"))


def test_csv_with_names_that_are_no_utf_8(tmp_path):
    path = tmp_path / "clips.csv"
    path.write_bytes(b"filename,labels\ncaf\xe9.wav,dog\n")
    splits = corpora.read_csv(path)
    assert splits["train"].files == [tmp_path / os.fsdecode(b"caf\xe9.wav")]
    path.write_bytes(b"filename,labels\na.wav,caf\xe9\n")
    with pytest.raises(ValueError, match=r"text.*'caf\\udce9'"):
        corpora.read_csv(path)


def test_one_file_in_two_splits_whatever_its_name(tmp_path):
    touch(tmp_path / "a.wav")
    (tmp_path / "link.wav").symlink_to("a.wav")
    (tmp_path / "folder").symlink_to(".")
    rows = "a.wav,dog,train\n{},{},{}\n"
    for name in ("link.wav", "folder/a.wav"):
        for label, split in (("dog", "test"), ("cat", "train")):
            text = "filename,labels,split\n" + rows.format(name, label, split)
            message = f"a.wav and .*{name} are one file.*{label}"
            with pytest.raises(ValueError, match=message):
                corpora.read_csv(write_csv(tmp_path, text))
    # One more name, but nothing that contradicts.
    text = "filename,labels,split\n" + rows.format("link.wav", "dog", "train")
    assert len(corpora.read_csv(write_csv(tmp_path, text))["train"]) == 2


def test_files_that_are_one_where_the_file_system_says_so(monkeypatch):
    """As on macOS and Windows, where case makes no other file."""
    monkeypatch.setattr(
        corpus_module, "file_identity", lambda file: file.lower()
    )
    one, two = [corpora.Corpus([file], [["x"]], ["x"]) for file in ("A", "a")]
    with pytest.raises(ValueError, match="A and a are one file"):
        corpus_module.check_splits("here", {"train": one, "test": two})


def test_fsd50k_rows_that_contradict(tmp_path):
    write_fsd50k(tmp_path / "a", DEV + "16399,Music,/m/04rlf,train\n")
    message = r"16399\.wav is listed twice.*train.*Music.*val.*Bird"
    with pytest.raises(ValueError, match=message):
        corpora.read_fsd50k(tmp_path / "a")
    write_fsd50k(tmp_path / "b", DEV + "7,,,train\n")
    with pytest.raises(ValueError, match="row 5: labels must not be empty"):
        corpora.read_fsd50k(tmp_path / "b")
    write_fsd50k(tmp_path / "c", DEV + "7,bird,/m/015p6,Train\n")
    with pytest.raises(ValueError, match="did you mean 'train'"):
        corpora.read_fsd50k(tmp_path / "c")
    write_fsd50k(tmp_path / "d", DEV.replace("fname", "Fname"))
    with pytest.raises(ValueError, match="did you mean 'Fname'"):
        corpora.read_fsd50k(tmp_path / "d")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("2-110389-A-0.wav,2,9,dog", "1-100032-A-0.wav,2,9,dog", "twice"),
        ("2-110389-A-0.wav,2,9,dog", "a.wav,2,8,dog", "row 4: .*target 9"),
        ("2-110389-A-0.wav,2,9,dog", "a.wav,two,9,dog", "row 4: .*'two'"),
        ("2-110389-A-0.wav,2,9,dog", "a.wav,2,9,Dog", "two categories"),
        ("2-110389-A-0.wav,2,9,dog", "a.wav,2,9,cat,dog", "row 4: too many"),
        ("5,12,crackling_fire", "5,7,", "must be text"),
        ("fold", "Fold", "did you mean 'Fold'"),
    ],
)
def test_esc_rows_that_contradict(tmp_path, old, new, message):
    write_esc50(tmp_path)
    path = tmp_path / "meta" / "esc50.csv"
    assert old in ESC
    path.write_text(ESC.replace(old, new))
    with pytest.raises(ValueError, match=message):
        corpora.read_esc(tmp_path, FOLDS)


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
    touch(tmp_path / "b/train/a/1.wav", tmp_path / "b/val/a/1.txt")
    with pytest.raises(FileNotFoundError, match="val: no audio"):
        corpora.read_folders(tmp_path / "b")


def test_folders_with_one_file_in_two_splits(tmp_path):
    touch(tmp_path / "train/dog/1.wav")
    (tmp_path / "test/dog").mkdir(parents=True)
    (tmp_path / "test/dog/2.wav").symlink_to(tmp_path / "train/dog/1.wav")
    with pytest.raises(ValueError, match="1.wav and .*2.wav are one file"):
        corpora.read_folders(tmp_path)


def test_an_option_that_does_not_apply_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError) as caught:
        corpora.load_corpus("esc50", tmp_path, vocabulary="words.txt")
    assert str(caught.value) == (
        "`vocabulary` does not apply to the layout 'esc50', but to ['csv']. "
        "Received: vocabulary='words.txt'"
    )
    with pytest.raises(TypeError, match="'fold'; did you mean 'folds'"):
        corpora.load_corpus("esc50", tmp_path, fold=[1])


def test_a_new_layout_is_one_function_and_one_entry(monkeypatch, capsys):
    """Choices, help, flags and their checks follow from the table."""

    def read_pairs(data_dir, seed=0):
        files = [f"{data_dir}/{seed}.wav"]
        return {"train": corpora.Corpus(files, [["a"]], ["a"])}

    layout = Layout(read_pairs, "files and their labels")
    monkeypatch.setitem(CORPORA, "pairs", layout)
    assert layout.takes == ("seed",)
    read = load_corpus("pairs", "there", seed=5)
    assert read["train"].files == ["there/5.wav"]

    def load(*given):
        argv = ["--dataset", "pairs", "--data-dir", "there", *given]
        return flags.parse(corpus_settings.DataSettings, "", argv).load()

    assert load("--seed", "7")["train"].files == ["there/7.wav"]
    with pytest.raises(SystemExit):
        load("--train-folds", "1")
    message = "--train-folds applies to --dataset esc10 or esc50 alone"
    assert message in capsys.readouterr().err
    parser = argparse.ArgumentParser()
    flags.add_flags(parser, corpus_settings.DataSettings)
    assert "pairs: files and their labels" in " ".join(
        parser.format_help().split()
    )


def test_default_folds_of_esc(tmp_path):
    splits = corpora.load_corpus("esc50", write_esc50(tmp_path))
    assert [len(corpus) for corpus in splits.values()] == [5, 1, 1]
    assert names(splits["test"]) == ["5-119720-A-12.wav"]


def test_synthetic_is_written_where_it_is_missing(tmp_path, monkeypatch):
    def small(directory, seed):
        return original(directory, 23, seed, max_duration_s=0.7, progress=False)

    original = synthetic.write_synthetic_corpus
    monkeypatch.setattr(synthetic, "write_synthetic_corpus", small)
    splits = corpora.load_corpus("synthetic", tmp_path / "one", seed=3)
    assert sum(len(corpus) for corpus in splits.values()) == 23
    assert all(file.is_file() for file in splits["test"].files)
    other = corpora.load_corpus("synthetic", tmp_path / "two", seed=4)
    assert other["train"].labels != splits["train"].labels


def test_select_keeps_files_and_labels_together():
    corpus = corpora.Corpus(
        ["a", "b", "c"], [["x"], ["x", "y"], []], ["y", "x", "z"]
    )
    chosen = corpus.select([2, 1])
    assert chosen.files == ["c", "b"]
    assert chosen.labels == [[], ["x", "y"]]
    assert chosen.targets().tolist() == [[0, 0, 0], [1, 1, 0]]
    assert len(chosen) == 2
    assert len(corpus) == 3
