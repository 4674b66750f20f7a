"""How a model came to be; that a corpus is the same is tested with training."""

import os
import pathlib
import sys

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("settings read corpora by tf.data", allow_module_level=True)

from audio_tf.corpora import Corpus
from audio_tf.runs import provenance
from audio_tf.runs.corpus_settings import DataSettings


def test_the_command_is_what_one_would_type(monkeypatch):
    for argv, command in (
        (["training/train.py", "--out", "a b"], "python training/train.py"),
        (["/opt/venv/bin/audio-tf", "train", "--out", "a b"], "audio-tf train"),
        (
            ["/opt/audio_tf/cli/__main__.py", "train", "--out", "a b"],
            "audio-tf train",
        ),
    ):
        monkeypatch.setattr(sys, "argv", argv)
        found = provenance.run_facts(DataSettings(seed=3))
        assert found["command"] == f"{command} --out 'a b'"
        assert found["given"] == ["seed"] and found["settings"]["seed"] == 3


def test_a_run_that_goes_on_keeps_its_first_command(monkeypatch, tmp_path):
    settings = DataSettings()
    for further in ([], ["--resume"]):
        monkeypatch.setattr(sys, "argv", ["audio-tf", "train", *further])
        provenance.begin_run(tmp_path, settings, {"splits": {}})
        facts = provenance.run_facts(settings, tmp_path)
        assert facts["command"] == "audio-tf train"


@pytest.mark.parametrize(
    "labels, message",
    [
        (["a", "b", "c"], "a model with 'c' beyond$"),
        (["a"], "a model without 'b'$"),
        (["a", "c"], "a model without 'b', with 'c' beyond$"),
    ],
)
def test_labels_that_differ_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
        provenance.column_order(labels, ["a", "b"], len(labels))


def test_a_bad_clip_of_two_splits_stays_when_one_is_not_looked_at():
    """Or a run that goes on to its test would find another corpus."""
    splits = {"train": {"a": [1, "x"], "b": [1, "y"]}}
    before = {"vocabulary": ["x"], "splits": splits, "left_out": {"a": "bad"}}
    splits = {**splits, "test": {"a": [1, "x"], "c": [1, "y"]}}
    now = {**before, "splits": splits, "left_out": {"a": "bad", "c": "bad"}}
    assert provenance.without_split(now, "test") == before


def test_names_below_a_folder_may_begin_with_dots(tmp_path):
    for given, name in (
        ("..old/a.wav", "..old/a.wav"),
        (".b.wav", ".b.wav"),
        ("../other/a.wav", str(tmp_path / "other/a.wav")),
    ):
        found = provenance.name_below(tmp_path / "x", tmp_path / "x" / given)
        assert found == name


def test_folders_of_one_name_beside_a_corpus_are_told_apart(tmp_path):
    """A clip that is bad in one of them is not left out in the other."""
    root = tmp_path / "corpus"
    one, other = tmp_path / "a" / "sounds", tmp_path / "b" / "sounds"
    for others, names in (
        ([one], ["../sounds/1.wav", str(other / "1.wav")]),
        ([one, other], ["../a/sounds/1.wav", "../b/sounds/1.wav"]),
        ([other, one], ["../a/sounds/1.wav", "../b/sounds/1.wav"]),
        ([one, one], ["../sounds/1.wav", str(other / "1.wav")]),
    ):
        found = [
            provenance.name_below(root, folder / "1.wav", others)
            for folder in (one, other)
        ]
        assert found == names


def test_a_run_goes_on_with_its_clips_in_their_first_order(tmp_path):
    """Or it would draw others: folders may be named in another order."""
    first, out = tmp_path / "a", tmp_path / "run"
    names = ["one/3.wav", "one/1.wav", "two/2.wav"]

    def begin(folder, order):
        train = Corpus(["train.wav"], [["x"]], ["x"])
        files = [str(folder / names[each]) for each in order]
        more = Corpus(files, [[] for _ in files], ["x"])
        found = provenance.in_first_order(
            out, {"train": train, "more": more}, tmp_path / "corpus", [folder]
        )
        record = provenance.corpus_record(found, tmp_path / "corpus", [folder])
        provenance.begin_run(out, DataSettings(), record)
        assert found["train"].files == train.files
        return [
            pathlib.Path(file).relative_to(folder).as_posix()
            for file in found["more"].files
        ]

    assert begin(first, [0, 1, 2]) == names
    # A start that was killed as it wrote the last of its files is no run.
    (out / "config.json").unlink()
    turned = [names[each] for each in (2, 1, 0)]
    assert begin(first, [2, 1, 0]) == turned
    (out / "config.json").unlink()
    provenance.check_corpus(out, {"splits": {}})
    assert begin(first, [0, 1, 2]) == names
    assert begin(first, [2, 0, 1]) == names
    assert begin(first, [1, 2, 0]) == names
    # What it does not know is refused later; the folder may have moved.
    names.append("new.wav")
    assert begin(tmp_path / "below" / "a", [3, 2, 1, 0]) == names


def test_scores_are_put_in_the_order_of_the_corpus():
    """A turn of three, which is not its own inverse."""
    labels, vocabulary = ["rain", "cat", "dog"], ["cat", "dog", "rain"]
    scores = np.array([[0.7, 0.2, 0.1]])  # Rain, most likely.
    order = provenance.column_order(labels, vocabulary, 3)
    assert dict(zip(vocabulary, scores[0, order], strict=True)) == {
        "rain": 0.7,
        "cat": 0.2,
        "dog": 0.1,
    }
    # What is not known is taken as it comes, if there is one for each.
    assert provenance.column_order(None, vocabulary, 3).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="each of 3 labels. Received: 2"):
        provenance.column_order(None, vocabulary, 2)


def test_a_corpus_is_its_files_their_sizes_and_labels(tmp_path):
    """Not when they were copied; and what is left out is no part of it."""

    def record(labels="xy", names=("a", "b"), **failures):
        files = [str(tmp_path / f"{name}.wav") for name in names]
        corpus = Corpus(files, [[label] for label in labels], ["x", "y"])
        found = provenance.corpus_record({"train": corpus}, tmp_path)
        failures = {
            str(tmp_path / f"{name}.wav"): reason
            for name, reason in failures.items()
        }
        return provenance.leave_out(found, tmp_path, failures)

    (tmp_path / "a.wav").write_bytes(bytes(3))
    whole = record()
    sizes = {name: e[0] for name, e in whole["splits"]["train"].items()}
    assert sizes == {"a.wav": 3, "b.wav": "missing"}
    (tmp_path / "b.wav").write_bytes(bytes(5))
    changes = provenance.changes
    assert changes(whole, record()) == ["1 files ('b.wav') changed, train"]
    whole = record()
    os.utime(tmp_path / "a.wav", (1, 1))
    assert changes(whole, record()) == []
    (relabelled,) = changes(whole, record("yy"))
    assert relabelled == "1 files ('a.wav') labelled otherwise, train"

    bad = record(a="no sound")
    (told,) = changes(whole, bad)
    assert told == "1 files ('a.wav') used then, left out now"
    (told,) = changes(bad, whole)
    assert told == "1 files ('a.wav') left out then, used now"
    # Nothing is decoded yet, so that nobody knows.
    assert changes(bad, {**whole, "left_out": None}) == []
    facts = provenance.corpus_facts
    assert facts(bad) == facts(record("y", "b")) != facts(whole)
    assert facts(bad)["train"]["files"] == 1
