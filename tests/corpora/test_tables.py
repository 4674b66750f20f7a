"""The tables of corpora: names, options, what a new line gives."""

import argparse
import subprocess
import sys

import numpy as np
import pytest
from corpus_files import write_audio, write_csv, write_fsdd, write_librispeech

from audio_tf import corpora
from audio_tf.corpora import (
    CORPORA,
    SPEECH,
    Layout,
    load_corpus,
    load_speech,
    synthetic,
)
from audio_tf.runs import corpus_settings, flags


def test_unknown_layout(tmp_path):
    with pytest.raises(ValueError, match="Received: dataset='esc51'") as caught:
        corpora.load_corpus("esc51", tmp_path)
    known = ["synthetic", "fsd50k", "esc10", "esc50", "folders", "csv"]
    assert all(f"'{name}'" in str(caught.value) for name in known)


def test_an_option_that_does_not_apply_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError) as caught:
        corpora.load_corpus("esc50", tmp_path, vocabulary="words.txt")
    assert str(caught.value) == (
        "`vocabulary` does not apply to the layout 'esc50', but to ['csv']. "
        "Received: vocabulary='words.txt'"
    )
    with pytest.raises(TypeError, match="'fold'; did you mean 'folds'"):
        corpora.load_corpus("esc50", tmp_path, fold=[1])


def test_an_unknown_option_is_told_with_those_of_the_layout(tmp_path):
    """What is nearest may be of another layout, what it takes is not."""
    with pytest.raises(TypeError) as caught:
        corpora.load_corpus("folders", tmp_path, foldz={"train": [1]})
    message = str(caught.value)
    assert "takes no argument 'foldz'; did you mean 'folds'." in message
    assert message.endswith("The layout 'folders' takes ['seed']")


def test_a_new_layout_is_one_function_and_one_entry(monkeypatch, capsys):
    """Choices, help, flags and their checks follow from the table."""

    def read_pairs(data_dir, seed=0):
        files = [f"{data_dir}/{seed}.wav"]
        return {"train": corpora.Corpus(files, [["a"]], ["a"])}

    layout = Layout(read_pairs, "files and their labels")
    monkeypatch.setitem(CORPORA, "pairs", layout)
    assert layout.takes == ("seed",)
    read = load_corpus("pairs", "there", seed=5)
    assert read["train"].files == ["there/5.wav"]

    def load(*given):
        argv = ["--dataset", "pairs", "--data-dir", "there", *given]
        return flags.parse(corpus_settings.DataSettings, "", argv).load()

    assert load("--corpus-seed", "7")["train"].files == ["there/7.wav"]
    # Another training learns from the same clips.
    assert load("--seed", "7")["train"].files == ["there/0.wav"]
    with pytest.raises(SystemExit):
        load("--train-folds", "1")
    message = "--train-folds applies to --dataset esc10 or esc50 or iemocap"
    assert message in capsys.readouterr().err
    parser = argparse.ArgumentParser()
    flags.add_flags(parser, corpus_settings.DataSettings)
    assert "pairs: files and their labels" in " ".join(
        parser.format_help().split()
    )


def test_synthetic_is_written_where_it_is_missing(tmp_path, monkeypatch):
    def small(directory, seed):
        return original(directory, 23, seed, max_duration_s=0.7, progress=False)

    original = synthetic.write_synthetic_corpus
    monkeypatch.setattr(synthetic, "write_synthetic_corpus", small)
    splits = corpora.load_corpus("synthetic", tmp_path / "one", seed=3)
    assert sum(len(corpus) for corpus in splits.values()) == 23
    assert all(file.is_file() for file in splits["test"].files)
    other = corpora.load_corpus("synthetic", tmp_path / "two", seed=4)
    assert other["train"].labels != splits["train"].labels


def test_one_door(tmp_path):
    write_librispeech(tmp_path / "l")
    write_fsdd(tmp_path / "f")
    dev = load_speech("librispeech", tmp_path / "l", subsets=["dev-clean"])[
        "dev-clean"
    ]
    assert len(dev) == 2
    assert len(load_speech("fsdd", tmp_path / "f")["val"]) == 2
    assert len(load_speech("folder", tmp_path / "l", seed=7)["train"]) == 5
    with pytest.raises(ValueError, match="fsdd.*Received: dataset='timit'"):
        load_speech("timit", tmp_path)
    with pytest.raises(ValueError, match="did you mean 'librispeech'"):
        load_speech("libri_speech", tmp_path)
    with pytest.raises(ValueError, match="`lists` does not apply .*'fsdd'"):
        load_speech("fsdd", tmp_path, lists={})
    with pytest.raises(TypeError, match="'subset'; did you mean 'subsets'"):
        load_speech("fsdd", tmp_path, subset=[])
    with pytest.raises(FileNotFoundError, match="no such folder"):
        load_speech("folder", tmp_path / "none")


def test_one_recording_in_two_splits(tmp_path):
    """Under a second name: a link, which every reader follows."""
    root = write_librispeech(tmp_path / "l")
    target = root / "train-clean-100/5/11/5-11-0000.flac"
    (root / "dev-clean/7/19/7-19-0007.flac").symlink_to(target)
    write_fsdd(tmp_path / "f", phones=False)
    recordings = tmp_path / "f" / "recordings"
    (recordings / "3_jo_12.wav").symlink_to(recordings / "3_jo_15.wav")
    (tmp_path / "f" / "a").mkdir()
    (tmp_path / "f" / "a" / "b.wav").symlink_to(recordings / "3_jo_5.wav")
    lists = {"train": ["recordings/3_jo_5"], "test": ["a/b"]}
    for dataset, folder, options, names in (
        ("librispeech", "l", {}, "5-11-0000.* and .*7-19-0007"),
        ("fsdd", "f", {}, "3_jo_15.* and .*3_jo_12"),
        ("folder", "f", {"lists": lists}, "3_jo_5.* and .*b.wav"),
    ):
        with pytest.raises(ValueError, match=f"{names}.* are one file"):
            load_speech(dataset, tmp_path / folder, **options)


WITHOUT_TENSORFLOW = """
import sys
from audio_tf import audio, corpora

heavy = {"tensorflow", "keras", "keras_hub", "scipy", "tqdm"}
print(sorted(heavy & {*sys.modules}))
splits = corpora.load_corpus("folders", sys.argv[1])
print(len(audio.load_audio(splits["train"].files[0], 8_000)))
print(sorted(heavy - {"scipy"} & {*sys.modules}))
"""


def test_files_are_read_without_tensorflow(tmp_path):
    """Neither it nor Keras, and nothing slow before it is needed."""
    write_audio(tmp_path / "dog" / "1.wav", 149, 16_000)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["[]", "75", "[]"], done.stderr


LISTS = "must be a list of strings"
NUMBERS = "must be a dict by split of lists of integers"
SUBSETS = "must be a list of strings|must be a dict by split of lists of str"
BY_SPLIT = "must be a dict by split of lists of strings, or of paths"
# Of each list that a reader takes what it was given in its place.
NO_NUMBERS = [3, "3", [1, 2], {"train": 3}, {"train": "1"}, {"train": ["1"]}]
NO_LISTS = {
    "folds": (NUMBERS, [*NO_NUMBERS, None, {"train": [True]}]),
    "splits": (NUMBERS, NO_NUMBERS),
    "val_speakers": (LISTS, [3, "15", [15], None, {"15": 1}]),
    "test_speakers": (LISTS, [3, "15", [15], None, {"15": 1}]),
    "subsets": (SUBSETS, [3, "dev-clean", [3], {"train": "dev-clean"}]),
    "lists": (BY_SPLIT, [3, "a.txt", ["a"], {"train": 3}, {"train": [3]}]),
    "vocabulary": (LISTS, [3, [3], {"dog": 0}]),
}


def corpus_of(dataset, folder):
    """Writes what is read before a reader comes to its lists."""
    if dataset == "folder":
        write_audio(folder / "a.wav")
    elif dataset == "librispeech":
        write_librispeech(folder)
    elif dataset == "csv":
        return write_csv(folder, "filename,labels\na.wav,dog\n")
    else:
        for inner in ("recordings", "wav", "AudioWAV", "Actor_01"):
            (folder / inner).mkdir()
    return folder


@pytest.mark.parametrize(
    "layouts, dataset, option",
    [
        (layouts, dataset, option)
        for layouts in (CORPORA, SPEECH)
        for dataset, layout in layouts.items()
        for option in layout.takes
        if option in NO_LISTS and dataset != "tfds_librispeech"
    ],
)
def test_a_list_that_is_none_is_named(layouts, dataset, option, tmp_path):
    """Whatever a reader is given for it, and whatever else is amiss."""
    folder = corpus_of(dataset, tmp_path)
    layout = layouts[dataset]
    meant, values = NO_LISTS[option]
    for value in values:
        with pytest.raises(ValueError, match=f"^`{option}` ({meant})") as e:
            layout.read(folder, **{option: value})
        assert str(e.value).endswith(f"Received: {option}={value!r}")


def test_lists_may_be_any_collection(tmp_path):
    write_fsdd(tmp_path)
    for indices in ([0], (0,), {0}, range(1), np.array([0])):
        splits = corpora.read_fsdd(tmp_path, {"test": indices})
        assert [x[-1] for x in splits["test"].utterances] == ["0"] * 2
