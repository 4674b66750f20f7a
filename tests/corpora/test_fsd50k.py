"""FSD50K, written here and of real clips, in its released folders."""

import collections
import csv

import numpy as np
import pytest
from corpus_files import names

from audio_tf import corpora

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
    with pytest.raises(ValueError, match=rf"{name}\.csv: .*Received: \[\]"):
        corpora.read_fsd50k(tmp_path)


def test_fsd50k_csv_of_a_header_alone(tmp_path):
    write_fsd50k(tmp_path, eval="fname,labels,mids\n")
    with pytest.raises(ValueError, match=r"eval\.csv: no rows"):
        corpora.read_fsd50k(tmp_path)


def test_fsd50k_label_twice_in_the_vocabulary(tmp_path):
    write_fsd50k(tmp_path, vocabulary=VOCABULARY + "5,Bird,/m/015p6\n")
    with pytest.raises(ValueError, match=r"vocabulary\.csv: .*twice"):
        corpora.read_fsd50k(tmp_path)


@pytest.mark.costly
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


def test_fsd50k_clip_in_both_dev_and_eval(tmp_path):
    clip = DEV.splitlines()[1].split(",")[0]
    write_fsd50k(tmp_path, eval=EVAL + f"{clip},Music,/m/04rlf\n")
    message = rf"eval\.csv, row 4: .*Received: '{clip}', .*dev\.csv, row 2"
    with pytest.raises(ValueError, match=message):
        corpora.read_fsd50k(tmp_path)
