"""EmoDB by the names of its files."""

import csv

import pytest
from corpus_files import names, touch

from audio_tf import corpora

# By the table of the corpus' own page, in German and English.
EMOTIONS = {
    "03a01Wa.wav": "anger",
    "03a02Lb.wav": "boredom",
    "08b10Ec.wav": "disgust",
    "08a05Aa.flac": "fear",
    "16a04Fd.wav": "happiness",
    "16b01Ta.wav": "sadness",
    "16b02Na.wav": "neutral",
}


def write_emodb(folder):
    touch(
        *(folder / "wav" / name for name in EMOTIONS), folder / "wav" / "a.md"
    )
    return folder


def test_emodb_by_its_names(tmp_path):
    splits = corpora.load_corpus("emodb", write_emodb(tmp_path))
    assert [len(corpus) for corpus in splits.values()] == [7, 0, 0]
    train = splits["train"]
    assert train.files[0] == tmp_path / "wav" / "03a01Wa.wav"
    assert train.vocabulary == sorted(EMOTIONS.values())
    assert dict(zip(names(train), train.labels, strict=True)) == {
        name: [emotion] for name, emotion in EMOTIONS.items()
    }


def test_emodb_with_speakers_left_out(tmp_path):
    splits = corpora.read_emodb(write_emodb(tmp_path), ["08"], ["03"])
    assert names(splits["train"]) == [
        "16a04Fd.wav",
        "16b01Ta.wav",
        "16b02Na.wav",
    ]
    assert names(splits["val"]) == ["08a05Aa.flac", "08b10Ec.wav"]
    assert names(splits["test"]) == ["03a01Wa.wav", "03a02Lb.wav"]
    assert splits["test"].vocabulary == sorted(EMOTIONS.values())
    with pytest.raises(ValueError, match="mean '03'. Received: '3'") as caught:
        corpora.load_corpus("emodb", tmp_path, test_speakers=["3"])
    assert f"{tmp_path}: `test_speakers`" in str(caught.value)


@pytest.mark.parametrize(
    "name, message",
    [
        ("03a01Xa.wav", "03a01Xa.wav: must be named.*Received: '03a01Xa'"),
        ("03a01fa.wav", "as 03a01Fa is, with one of W, L, E, A, F, T, N for"),
        ("03a01F.wav", "must be named"),
        ("3a01Fa.wav", "must be named"),
        ("03a01Wa.flac", "Two files are the utterance 03a01Wa"),
    ],
)
def test_emodb_with_a_file_that_does_not_fit(tmp_path, name, message):
    touch(write_emodb(tmp_path) / "wav" / name)
    with pytest.raises(ValueError, match=message):
        corpora.read_emodb(tmp_path)


def test_emodb_without_its_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="wav: no such folder"):
        corpora.read_emodb(tmp_path)
    (tmp_path / "wav").mkdir()
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}: no clips"):
        corpora.read_emodb(tmp_path)


def test_real_emodb(shared_data):
    folder = shared_data / "emodb"
    with open(folder / "labels.csv", newline="") as file:
        rows = {row["filename"]: row for row in csv.DictReader(file)}
    splits = corpora.load_corpus(
        "emodb", folder, val_speakers=["15"], test_speakers=["03", "09"]
    )
    assert [len(corpus) for corpus in splits.values()] == [387, 56, 92]
    for split, speakers in (("val", {"15"}), ("test", {"03", "09"})):
        found = {
            rows[f"wav/{name}"]["speaker"] for name in names(splits[split])
        }
        assert found == speakers
    for corpus in splits.values():
        for name, labels in zip(names(corpus), corpus.labels, strict=True):
            assert labels == [rows[f"wav/{name}"]["label"]]
