"""Arabic Speech Commands by its official lists."""

import csv
import zipfile

import pytest
from corpus_files import names, write_csv

from audio_tf import corpora

LISTS = {
    "train": """\
file,class
dataset/zoom_in/00000003_NO_01.wav,zoom_in
dataset/backward/00000003_NO_02.ogg,backward
dataset/backward/00000005_NO_01.wav,backward
""",
    "val": "file,class\ndataset/zoom_in/00000002_NO_07.wav,zoom_in\n",
    "test": "file,class\ndataset/backward/00000007_NO_02.wav,backward\n",
}


def write_lists(folder):
    for split, text in LISTS.items():
        write_csv(folder, text, f"{split}.csv")
    return folder


def test_arabic_speech_commands_as_released(tmp_path):
    splits = corpora.load_corpus(
        "arabic_speech_commands", write_lists(tmp_path)
    )
    train = splits["train"]
    assert train.files == [
        tmp_path / "dataset/zoom_in/00000003_NO_01.wav",
        tmp_path / "dataset/backward/00000003_NO_02.ogg",
        tmp_path / "dataset/backward/00000005_NO_01.wav",
    ]
    assert train.labels == [["zoom_in"], ["backward"], ["backward"]]
    assert names(splits["val"]) == ["00000002_NO_07.wav"]
    assert splits["val"].targets().tolist() == [[0, 1]]
    assert names(splits["test"]) == ["00000007_NO_02.wav"]
    assert splits["test"].targets().tolist() == [[1, 0]]


def test_a_test_list_that_is_packed_is_not_missing(tmp_path):
    folder = tmp_path / "to"
    folder.mkdir()
    write_lists(folder)
    with zipfile.ZipFile(tmp_path / "arabic.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, f"arabic/{path.name}")
    splits = corpora.read_arabic_speech_commands(tmp_path / "arabic")
    assert [len(corpus) for corpus in splits.values()] == [3, 1, 1]


def test_the_test_list_alone_may_be_missing(tmp_path):
    write_lists(tmp_path)
    (tmp_path / "test.csv").unlink()
    splits = corpora.read_arabic_speech_commands(tmp_path)
    assert [len(corpus) for corpus in splits.values()] == [3, 1, 0]
    assert splits["test"].vocabulary == ["backward", "zoom_in"]
    (tmp_path / "val.csv").unlink()
    with pytest.raises(FileNotFoundError, match="val.csv: no such file"):
        corpora.read_arabic_speech_commands(tmp_path)


@pytest.mark.parametrize(
    "split, old, new, message",
    [
        ("val", ",zoom_in", ",zoom_im", "row 2: .*of train.*mean 'zoom_in'"),
        ("val", "set/zoom_in", "set/zoom_im", "row 2: .*in dataset/zoom_in"),
        ("val", "dataset/", "data/", "row 2: .*in dataset/zoom_in"),
        ("test", "backward/00", "backward/x/00", "row 2: .*'dataset/back.*/x"),
        ("test", "dataset/backward/00000007_NO_02.wav", "", "row 2: no name"),
        ("test", "00000007_NO_02", "00000005_NO_01", "listed twice.*in test"),
        ("train", "00000005_NO_01.wav", "00000003_NO_02.ogg", "listed twice"),
        ("train", "file,class", "file,Class", "did you mean 'Class'"),
    ],
)
def test_rows_that_do_not_fit(tmp_path, split, old, new, message):
    write_lists(tmp_path)
    assert old in LISTS[split]
    write_csv(tmp_path, LISTS[split].replace(old, new), f"{split}.csv")
    with pytest.raises(ValueError, match=message) as caught:
        corpora.read_arabic_speech_commands(tmp_path)
    where = "" if "twice" in message else f"{split}.csv"
    assert str(tmp_path / where) in str(caught.value)


def test_real_arabic_speech_commands(shared_data):
    folder = shared_data / "arabic_speech_commands"
    splits = corpora.load_corpus("arabic_speech_commands", folder)
    assert [len(corpus) for corpus in splits.values()] == [7_200, 2_400, 0]
    speakers = {}
    for split in ("train", "val"):
        corpus = splits[split]
        with open(folder / f"{split}.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert corpus.labels == [[row["class"]] for row in rows]
        assert len(corpus.vocabulary) == 40
        assert all(file.is_file() for file in corpus.files)
        speakers[split] = {file.name.split("_")[0] for file in corpus.files}
    assert len(speakers["train"]) == 18 and len(speakers["val"]) == 6
    assert not speakers["train"] & speakers["val"]
