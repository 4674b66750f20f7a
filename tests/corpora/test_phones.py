"""Phones of utterances, their names, and lists of utterances."""

import unicodedata

import numpy as np
import pytest
from corpus_files import write_text

from audio_tf.corpora import (
    read_phone_names,
    read_phones,
    read_utterance_list,
)


def test_phones_of_an_odd_but_valid_file(tmp_path):
    decomposed = unicodedata.normalize("NFD", "Zoë-1")
    text = f"\ufeff5-11-0000 0 0 3\r\n\r\n{decomposed}\t40  2 \n7-19-0001 1"
    phones = read_phones(write_text(tmp_path / "p.txt", text), 41)
    assert list(phones) == ["5-11-0000", "Zoë-1", "7-19-0001"]
    assert [each.tolist() for each in phones.values()] == [
        [0, 0, 3],
        [40, 2],
        [1],
    ]
    assert {each.dtype for each in phones.values()} == {np.dtype("int16")}


@pytest.mark.parametrize(
    "line, message",
    [
        ("b", "b has no labels"),
        ("a 1", "a has labels in line 1 already"),
        ("b 1 x", "must be integers.*'x'"),
        ("b 1.5", "must be integers"),
        ("b 2 -1", "at least 0 and below 41. Received: -1 to 2"),
        ("b 0 41", "below 41. Received: 0 to 41"),
        ("b 40000", "must be integers"),
    ],
)
def test_wrong_line_of_a_phone_file(tmp_path, line, message):
    path = write_text(tmp_path / "p.txt", f"a 0 1 2\n\n{line}\nc 0\n")
    with pytest.raises(ValueError, match=rf"p\.txt, line 3: .*{message}"):
        read_phones(path, 41)


def test_phone_file_that_is_missing_empty_or_no_text(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.txt: no such file"):
        read_phones(tmp_path / "none.txt")
    path = write_text(tmp_path / "p.txt", "\n \n")
    with pytest.raises(ValueError, match="p.txt: no labels"):
        read_phones(path)
    path.write_bytes(b"a 0\n\xff\xfe 1\n")
    with pytest.raises(ValueError, match="p.txt, line 2: must be UTF-8"):
        read_phones(path)


def test_phone_names(tmp_path):
    path = write_text(tmp_path / "n.txt", "AH 1\nSIL 0\nZ 2\n")
    assert read_phone_names(path) == ["SIL", "AH", "Z"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("SIL 0\nAH 2\n", r"0, 1, 2 and so on. Received: \[0, 2\]"),
        ("SIL 0\nAH 0\n", "line 2: label 0 has a name"),
        ("SIL 0\nAH\n", "line 2: must be a name and its label"),
        ("SIL zero\n", "line 1: must be a name and its label"),
        ("", "0, 1, 2 and so on"),
    ],
)
def test_wrong_phone_names(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_phone_names(write_text(tmp_path / "n.txt", text))


def test_utterance_list(tmp_path):
    path = write_text(tmp_path / "l.txt", "b-1\na-2")
    assert read_utterance_list(path) == ["b-1", "a-2"]
    for text, line in (("a\nb\na\n", 3), ("a\nb 1\n", 2)):
        with pytest.raises(ValueError, match=rf"l\.txt, line {line}: "):
            read_utterance_list(write_text(path, text))
    with pytest.raises(ValueError, match="no utterances"):
        read_utterance_list(write_text(path, "\n"))
