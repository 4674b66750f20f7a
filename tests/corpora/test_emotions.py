"""RAVDESS and CREMA-D by the names of their files."""

import pytest
from corpus_files import names, touch

from audio_tf import corpora

RAVDESS = {
    "03-01-01-01-01-01-02.wav": "neutral",
    "03-01-02-02-01-02-02.wav": "calm",
    "03-01-08-01-02-01-11.wav": "surprise",
    "03-01-05-01-02-01-24.flac": "anger",
}
CREMA_D = {
    "1001_DFA_ANG_XX.wav": "anger",
    "1001_IEO_HAP_LO.wav": "happiness",
    "1077_IEO_SAD_HI.wav": "sadness",
    "1091_TSI_NEU_XX.wav": "neutral",
}


def write_ravdess(folder):
    for name in RAVDESS:
        touch(folder / f"Actor_{name[18:20]}" / name)
    # Song, of the same actor.
    touch(folder / "Actor_02" / "03-02-01-01-01-01-02.wav")
    return folder


def write_crema_d(folder):
    touch(*(folder / "AudioWAV" / name for name in CREMA_D))
    return folder


@pytest.mark.parametrize(
    ("dataset", "write", "labels", "speakers", "classes"),
    [
        ("ravdess", write_ravdess, RAVDESS, ["02", "02", "11", "24"], 8),
        (
            "crema_d",
            write_crema_d,
            CREMA_D,
            ["1001", "1001", "1077", "1091"],
            6,
        ),
    ],
)
def test_acted_emotions_by_names(
    dataset, write, labels, speakers, classes, tmp_path
):
    folder = write(tmp_path)
    train = corpora.load_corpus(dataset, folder)["train"]
    found = dict(zip(names(train), train.labels, strict=True))
    assert found == {name: [label] for name, label in labels.items()}
    assert train.groups == speakers
    assert len(train.vocabulary) == classes == len(set(train.vocabulary))
    splits = corpora.load_corpus(
        dataset, folder, val_speakers=speakers[2:3], test_speakers=speakers[3:]
    )
    assert [each.groups for each in splits.values()] == [
        speakers[:2],
        speakers[2:3],
        speakers[3:],
    ]
    touch(train.files[0].with_name("03-01-09-01-01-01-02.wav"))
    with pytest.raises(ValueError, match="must be named as .*01-09"):
        corpora.load_corpus(dataset, folder)
