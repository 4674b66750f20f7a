"""ESC-50 and ESC-10 by fold."""

import collections
import csv

import pytest
from corpus_files import names, packed

from audio_tf import corpora

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


def test_esc_within_its_archive(tmp_path):
    root = tmp_path / "ESC-50-master"
    root.mkdir()
    expected = corpora.read_esc(write_esc50(root), FOLDS)
    packed(root)
    splits = corpora.read_esc(root, FOLDS)
    assert splits["train"].files == expected["train"].files


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


@pytest.mark.parametrize("spelling", ["1", "True ", ""])
def test_esc10_by_a_column_of_other_values(tmp_path, spelling):
    write_esc50(tmp_path)
    path = tmp_path / "meta" / "esc50.csv"
    path.write_text(ESC.replace("chainsaw,True", f"chainsaw,{spelling}"))
    message = f"row 6: esc10 must be True or False.*Received: '{spelling}'"
    with pytest.raises(ValueError, match=message):
        corpora.read_esc(tmp_path, FOLDS, only_esc10=True)
    assert len(corpora.read_esc(tmp_path, FOLDS)["train"]) == 3


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


def test_real_esc50(shared_data):
    """Fold 5 is not among them; ESC-10 is a column."""
    folder = shared_data / "esc50"
    with open(folder / "esc50.csv", newline="") as file:
        rows = {row["filename"]: row for row in csv.DictReader(file)}
    folds = {"train": [1, 2], "val": [3], "test": [4]}
    splits = corpora.load_corpus("esc50", folder, folds=folds)
    assert [len(corpus) for corpus in splits.values()] == [800, 400, 400]
    for split, numbers in folds.items():
        corpus = splits[split]
        assert all(file.is_file() for file in corpus.files)
        assert {int(name[0]) for name in names(corpus)} == set(numbers)
        columns = corpus.targets().argmax(axis=1).tolist()
        assert columns == [int(rows[name]["target"]) for name in names(corpus)]
        assert collections.Counter(columns) == {
            column: 8 * len(numbers) for column in range(50)
        }
    few = corpora.load_corpus("esc10", folder, folds=folds)
    chosen = [
        name for name in names(splits["val"]) if rows[name]["esc10"] == "True"
    ]
    assert names(few["val"]) == chosen and len(chosen) == 80
    with pytest.raises(ValueError, match=r"one of \[1, 2, 3, 4\]"):
        corpora.load_corpus("esc50", folder)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("2-110389-A-0.wav,2,9,dog", "1-100032-A-0.wav,2,9,dog", "twice"),
        ("2-110389-A-0.wav,2,9,dog", "a.wav,2,8,dog", "row 4: .*target 9"),
        ("2-110389-A-0.wav,2,9,dog", "a.wav,two,9,dog", "row 4: .*'two'"),
        ("2-110389-A-0.wav,2,9,dog", "a.wav,2,9,Dog", "two categories"),
        ("2-110389-A-0.wav,2,9,dog", "a.wav,2,9,cat,dog", "row 4: too many"),
        ("5,12,crackling_fire", "5,7,", "must be printable text"),
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


def test_default_folds_of_esc(tmp_path):
    splits = corpora.load_corpus("esc50", write_esc50(tmp_path))
    assert [len(corpus) for corpus in splits.values()] == [5, 1, 1]
    assert names(splits["test"]) == ["5-119720-A-12.wav"]
