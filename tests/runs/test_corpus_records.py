"""Which files a model was made from; runs by them are tested with training."""

import os
import pathlib

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("settings read corpora by tf.data", allow_module_level=True)

from audio_tf.corpora import Corpus
from audio_tf.runs import corpus_records, provenance
from audio_tf.runs.corpus_settings import DataSettings


def test_a_bad_clip_of_two_splits_stays_when_one_is_not_looked_at():
    """Or a run that goes on to its test would find another corpus."""
    splits = {"train": {"a": [1, "x"], "b": [1, "y"]}}
    before = {"vocabulary": ["x"], "splits": splits, "left_out": {"a": "bad"}}
    splits = {**splits, "test": {"a": [1, "x"], "c": [1, "y"]}}
    now = {**before, "splits": splits, "left_out": {"a": "bad", "c": "bad"}}
    assert corpus_records.without_split(now, "test") == before


def test_names_below_a_folder_may_begin_with_dots(tmp_path):
    for given, name in (
        ("..old/a.wav", "..old/a.wav"),
        (".b.wav", ".b.wav"),
        ("../other/a.wav", str(tmp_path / "other/a.wav")),
    ):
        found = corpus_records.name_below(
            tmp_path / "x", tmp_path / "x" / given
        )
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
            corpus_records.name_below(root, folder / "1.wav", others)
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
        found = corpus_records.in_first_order(
            out, {"train": train, "more": more}, tmp_path / "corpus", [folder]
        )
        record = corpus_records.make(found, tmp_path / "corpus", [folder])
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
    corpus_records.check(out, {"splits": {}})
    assert begin(first, [0, 1, 2]) == names
    assert begin(first, [2, 0, 1]) == names
    assert begin(first, [1, 2, 0]) == names
    # What it does not know is refused later; the folder may have moved.
    names.append("new.wav")
    assert begin(tmp_path / "below" / "a", [3, 2, 1, 0]) == names


def test_a_corpus_is_its_files_their_sizes_and_labels(tmp_path):
    """Not when they were copied; and what is left out is no part of it."""

    def record(labels="xy", names=("a", "b"), **failures):
        files = [str(tmp_path / f"{name}.wav") for name in names]
        corpus = Corpus(files, [[label] for label in labels], ["x", "y"])
        found = corpus_records.make({"train": corpus}, tmp_path)
        failures = {
            str(tmp_path / f"{name}.wav"): reason
            for name, reason in failures.items()
        }
        return corpus_records.leave_out(found, tmp_path, failures)

    (tmp_path / "a.wav").write_bytes(bytes(3))
    whole = record()
    sizes = {name: e[0] for name, e in whole["splits"]["train"].items()}
    assert sizes == {"a.wav": 3, "b.wav": "missing"}
    (tmp_path / "b.wav").write_bytes(bytes(5))
    changes = corpus_records.changes
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
    facts = corpus_records.summary
    assert facts(bad) == facts(record("y", "b")) != facts(whole)
    assert facts(bad)["train"]["files"] == 1
