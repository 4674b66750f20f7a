"""What every corpus is, and splits that contradict each other."""

import numpy as np
import pytest
from corpus_files import touch, write_csv

from audio_tf import corpora
from audio_tf.corpora import corpus as corpus_module


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


def test_a_file_is_listed_once_however_it_is_spelt(tmp_path, monkeypatch):
    """A record of the corpus by names would have one clip less than it."""
    monkeypatch.chdir(tmp_path)
    names = ["a.wav", str(tmp_path / "a.wav")]
    twice = corpora.Corpus(names, [["x"], ["x"]], ["x"])
    with pytest.raises(ValueError, match=f"{names[1]} is listed twice"):
        corpus_module.check_splits("here", {"train": twice})


def test_files_that_are_one_where_the_file_system_says_so(monkeypatch):
    """As on macOS and Windows, where case makes no other file."""
    monkeypatch.setattr(
        corpus_module, "file_identity", lambda file: file.lower()
    )
    one, two = [corpora.Corpus([file], [["x"]], ["x"]) for file in ("A", "a")]
    with pytest.raises(ValueError, match="A and a are one file"):
        corpus_module.check_splits("here", {"train": one, "test": two})


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


def test_select_takes_any_iterable_of_indices_and_no_mask():
    corpus = corpora.Corpus(["a", "b"], [["x"], ["y"]], ["x", "y"])
    speech = corpora.SpeechCorpus(
        ["a", "b"], [["x"], ["y"]], ["x", "y"], utterances=["1", "2"]
    )
    for each in (corpus, speech):
        chosen = each.select(row for row in [1])
        assert (chosen.files, chosen.labels) == (["b"], [["y"]])
        for mask in ([False, True], np.array([False, True])):
            with pytest.raises(ValueError, match="`rows` must be the indices"):
                each.select(mask)
    assert speech.select(row for row in [1]).utterances == ["2"]


def test_lists_of_a_corpus_are_of_its_clips():
    for name in ("labels", "sources", "utterances", "frame_labels"):
        lists = {"labels": [["x"]] * 2, "utterances": ["1", "2"], name: [["x"]]}
        with pytest.raises(ValueError, match=f"`{name}` .* 1 for 2 files"):
            corpora.SpeechCorpus(["a", "b"], vocabulary=["x"], **lists)


def test_a_label_of_no_vocabulary_is_named():
    corpus = corpora.Corpus(["a.wav", "b.wav"], [["dog"], ["dgo"]], ["dog"])
    message = "b.wav: label not in .* did you mean 'dog'. Received: 'dgo'"
    with pytest.raises(ValueError, match=message):
        corpus.targets()


@pytest.mark.parametrize("seed", ["", -1, 0.5])
def test_splits_are_drawn_by_a_seed_alone(tmp_path, seed):
    touch(tmp_path / "dog" / "a.wav", tmp_path / "rain" / "b.wav")
    with pytest.raises(ValueError, match=f"`seed` must be .*seed={seed!r}"):
        corpora.read_folders(tmp_path, seed=seed)


def test_no_speaker_is_in_two_splits():
    corpus = corpora.Corpus(list("abcde"), [["x"]] * 5, ["x"])
    who = ["jo", "ann", "jo", "zoe", "ann"]

    def split(val, test):
        splits = corpus_module.split_by_speaker("here", corpus, who, val, test)
        return ["".join(each.files) for each in splits.values()]

    assert split(["zoe"], ["ann"]) == ["ac", "d", "be"]
    assert split([], ["zoe", "jo"]) == ["be", "", "acd"]
    assert split([], []) == ["abcde", "", ""]
    for val, test, message in (
        (["joe"], [], "here: `val_speakers` .*did you mean 'jo'"),
        ([], ["bob"], r"`test_speakers` must be among \['ann', 'jo', 'zoe'\]"),
        (["jo"], ["jo"], "named once"),
        ([], ["jo", "jo"], "named once"),
        (["jo", "zoe"], ["ann"], "left for training.*test_speakers=."),
    ):
        with pytest.raises(ValueError, match=message):
            split(val, test)
