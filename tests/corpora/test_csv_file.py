"""A corpus in one CSV: what is meant, and what contradicts itself."""

import os

import pytest
from corpus_files import WITH_SPLITS, names, touch, write_csv

from audio_tf import corpora
from audio_tf.corpora import lists
from audio_tf.terminal import printable


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
    asked_for_none = corpora.read_csv(path)["test"]
    assert tuple(names(asked_for_none)) == drawn[0]["test"]


def test_a_seed_beside_a_split_column_is_refused(tmp_path):
    text = "filename,labels,split\na.wav,dog,train\nb.wav,rain,test\n"
    path = write_csv(tmp_path, text)
    assert len(corpora.read_csv(path)["train"]) == 1
    with pytest.raises(ValueError, match="splits of its own, .*seed=0"):
        corpora.read_csv(path, seed=0)


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
    (tmp_path / "sounds").mkdir()
    with pytest.raises(FileNotFoundError, match="sounds: .* it is a folder"):
        corpora.read_csv(tmp_path / "sounds")


def test_csv_row_that_is_too_short(tmp_path):
    path = write_csv(tmp_path, "filename,labels\na.wav,dog\nb.wav\n")
    with pytest.raises(ValueError, match=r"clips\.csv"):
        corpora.read_csv(path)


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
    "filename,labels,labels\na.wav,dog,cat\n": "'labels' must be there once",
    "filename,labels,split,split\na.wav,dog,,\n": "'split' must be there once",
    "": r"no column 'filename', 'labels'\. Received: \[\]",
    "filename,labels\n": "no rows below the header",
    "filename,labels\n\n,dog\n": "row 3: no name of a file",
    "filename,labels\na.wav,'dog\0'\n": "must be printable text",
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
    # A quote that is not closed would take in the row below.
    'filename,source,labels\na.wav,u1,dog\nb.wav,"u2,cat\nc.wav,"u3",dog\n': (
        "row 3: not CSV.* a quote must be closed.*Received: 'b.wav"
    ),
    'filename,labels\na.wav,"dog\nb.wav,cat\n': "row 2: not CSV .*'a.wav",
    # After a field of two lines, and a line without any.
    'filename,labels\n"a\n.wav",dog\n\nb.wav,c"a"t\nc.wav,"d"o,\n': (
        "row 6: not CSV.*Received: 'c.wav"
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


# "Is heard" in Persian, and a family as one emoji.
JOINED = ["می\u200cشود", "\U0001f468\u200d\U0001f469\u200d\U0001f467"]


def test_labels_whose_letters_are_joined_by_invisible_ones(tmp_path):
    text = "filename,labels\n" + "".join(
        f"{number}.wav,{label}\n" for number, label in enumerate(JOINED)
    )
    splits = corpora.read_csv(write_csv(tmp_path, text))
    assert splits["train"].labels == [[label] for label in JOINED]
    assert printable(" ".join(JOINED)) == " ".join(JOINED)
    twin = JOINED[0].replace("\u200c", "")
    for label, message in (
        (twin, "in two spellings"),
        (f"{twin}\u200d", "text without spaces around it"),
        ("\u202edog", "must be printable text"),
    ):
        with pytest.raises(ValueError, match=message):
            corpora.read_csv(
                write_csv(tmp_path, f"{text}3.wav,{label}\n", "twins.csv")
            )


def test_csv_with_names_that_are_no_utf_8(tmp_path):
    path = tmp_path / "clips.csv"
    path.write_bytes(b"filename,labels\ncaf\xe9.wav,dog\n")
    splits = corpora.read_csv(path)
    assert splits["train"].files == [tmp_path / os.fsdecode(b"caf\xe9.wav")]


COMPOSED, DECOMPOSED = "K\u00e4se.wav", "Ka\u0308se.wav"


@pytest.mark.parametrize(
    ("listed", "there", "found"),
    [
        (COMPOSED, [DECOMPOSED], DECOMPOSED),
        (DECOMPOSED, [COMPOSED], COMPOSED),
        (COMPOSED, [COMPOSED, DECOMPOSED], COMPOSED),
        (COMPOSED, [], COMPOSED),
    ],
)
def test_csv_with_a_name_in_the_other_form_of_unicode(
    tmp_path, listed, there, found
):
    touch(*(tmp_path / name for name in there))
    path = write_csv(tmp_path, f"filename,labels\n{listed},dog\n")
    assert names(corpora.read_csv(path)["train"]) == [found]


def test_csv_with_a_label_in_two_forms_of_unicode(tmp_path):
    rows = "filename,labels\na.wav,Vo\u0308gel\nb.wav,V\u00f6gel\n"
    path = write_csv(tmp_path, rows)
    words = write_csv(tmp_path, "Vo\u0308gel\n", "words.txt")
    for vocabulary in (None, ["Vo\u0308gel"], words):
        train = corpora.read_csv(path, vocabulary)["train"]
        assert train.vocabulary == ["V\u00f6gel"]
        assert train.targets().tolist() == [[1], [1]]


def test_csv_with_a_source_in_two_forms_of_unicode(tmp_path):
    rows = "".join(
        f"{row}.wav,dog,Jose\u0301\n{row}b.wav,dog,Jos\u00e9\n"
        for row in range(10)
    )
    path = write_csv(tmp_path, f"filename,labels,source\n{rows}")
    # One source of twenty is drawn as a whole.
    assert set(corpora.read_csv(path)["train"].sources) == {"Jos\u00e9"}
    path.write_bytes(
        "filename,labels,source\na.wav,dog,Jos\u00e9".encode("cp1252")
    )
    with pytest.raises(ValueError, match="row 2: must be UTF-8"):
        corpora.read_csv(path)


@pytest.mark.parametrize("separator", [";", "|", " ; "])
def test_labels_that_something_else_than_a_comma_separates(tmp_path, separator):
    both = f"dog{separator}rain"
    text = f"filename,labels\na.wav,dog\nb.wav,rain\nc.wav,{both}\n"
    path = write_csv(tmp_path, text)
    message = rf"row 4: `labels` must .*, not by '[{separator.strip()}]'.*Rec"
    for vocabulary in (None, ["dog", "rain"]):
        with pytest.raises(ValueError, match=message):
            corpora.read_csv(path, vocabulary)
    # One label, if a vocabulary says so, or a part of it is none.
    splits = corpora.read_csv(path, ["dog", "rain", both])
    assert splits["train"].labels[-1] == [both]
    path = write_csv(tmp_path, text.replace("b.wav,rain", "b.wav,rains"))
    assert corpora.read_csv(path)["train"].labels[-1] == [both]


UMLAUTS = "filename,labels\na.wav,dog\nb.wav,Tür\n"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_labels_that_are_no_utf_8_are_told_so(tmp_path, encoding):
    path, words = tmp_path / "clips.csv", tmp_path / "words.txt"
    path.write_bytes(UMLAUTS.encode(encoding))
    words.write_bytes("dog\nTür\n".encode(encoding))
    message = r"row {}: must be UTF-8, but seems to be Latin-1 .*'{}'"
    for vocabulary in (None, ["dog", "Tür"]):
        with pytest.raises(ValueError, match=message.format(3, "Tür")):
            corpora.read_csv(path, vocabulary)
    with pytest.raises(ValueError, match=message.format(2, "Tür")) as caught:
        corpora.read_csv(write_csv(tmp_path, UMLAUTS), words)
    assert str(words) in str(caught.value)
    path.write_bytes("filename,Töne\na.wav,dog\n".encode(encoding))
    with pytest.raises(ValueError, match=message.format(1, "Töne")):
        corpora.read_csv(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_lists_in_utf_16_are_told_so(tmp_path, encoding):
    mark = "" if encoding == "utf-32" else "\ufeff"
    path, words = tmp_path / "clips.csv", tmp_path / "words.txt"
    path.write_bytes(f"{mark}{UMLAUTS}".encode(encoding))
    words.write_bytes(f"{mark}dog\nTür\n".encode(encoding))
    message = "{}: must be UTF-8, but begins as UTF-16"
    with pytest.raises(ValueError, match=message.format("clips.csv")):
        corpora.read_csv(path)
    with pytest.raises(ValueError, match=message.format("words.txt")):
        corpora.read_csv(write_csv(tmp_path, UMLAUTS), words)
    with pytest.raises(ValueError, match=message.format("words.txt")):
        list(lists.read_lines(words))
    # Excel's "CSV UTF-8" has a mark, too.
    path.write_bytes(UMLAUTS.encode("utf-8-sig"))
    words.write_bytes("dog\nTür\n".encode("utf-8-sig"))
    assert corpora.read_csv(path, words)["train"].vocabulary == ["dog", "Tür"]
