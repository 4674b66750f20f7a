"""Corpora of speech, labels of frames and batches of whole utterances."""

import dataclasses
import errno
import fractions
import math
import os
import random
import shutil
import unicodedata

import keras
import numpy as np
import pytest
import soundfile

from audio_tf import data
from audio_tf.audio import AudioError, load_audio
from audio_tf.corpora import (
    FSDD_OFFICIAL_SPLITS,
    FSDD_SPLITS,
    load_speech,
    read_fsdd,
    read_librispeech,
    read_librispeech_speakers,
    read_phone_names,
    read_phones,
    read_speech_folder,
    read_tfds_librispeech,
    read_utterance_list,
    tfds_librispeech,
)
from audio_tf.data import PADDING_LABEL, align_labels, cache
from audio_tf.layers import SpeechFeatures

# 37 samples a frame make 100 frames a second.
RATE_HZ, STEP = 3_700, 37

SPEAKERS = """\
; comments | look | like | fields | too
;ID  |SEX| SUBSET           |MINUTES| NAME
5    | F | train-clean-100  | 25.03 | Zoë | with | bars
13   | M | train-clean-100  | 20.18 | |CBW|Simon
7    | M | dev-clean        | 8.10  | X
"""


def write_audio(path, samples=149, rate_hz=RATE_HZ, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    audio = 0.1 * rng.standard_normal(samples)
    soundfile.write(path, audio, rate_hz, format=path.suffix[1:].upper())
    return path


def write_librispeech(folder, speakers=SPEAKERS, suffix=".flac"):
    """Three speakers, five utterances."""
    root = folder / "LibriSpeech"
    for subset, speaker, chapter, count in (
        ("train-clean-100", 5, 11, 2),
        ("train-clean-100", 13, 17, 1),
        ("dev-clean", 7, 19, 2),
    ):
        for number in range(count):
            name = f"{speaker}-{chapter}-{number:04d}{suffix}"
            write_audio(root / subset / str(speaker) / str(chapter) / name)
    if speakers:
        (root / "SPEAKERS.TXT").write_text(speakers, encoding="utf-8")
    return root


def write_text(path, text):
    path.write_bytes(text.encode())
    return path


# Files of labels and lists


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
    with pytest.raises(ValueError, match="p.txt: not UTF-8"):
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


# Labels to frames


def test_equal_rates_keep_the_labels():
    labels = np.arange(13, dtype=np.int16)
    aligned = align_labels(labels, 100, 100.0, 13)
    np.testing.assert_array_equal(aligned, labels)
    assert aligned.dtype == np.int16


@pytest.mark.parametrize("step", [2, 3, 5])
def test_labels_that_are_a_multiple_as_frequent(step):
    labels = np.arange(7 * step)
    aligned = align_labels(labels, 100, 100 / step, 7)
    np.testing.assert_array_equal(aligned, labels[::step])
    later = align_labels(labels, 100, 100 / step, 7, first_s=0.015)
    np.testing.assert_array_equal(later, labels[1::step])


@pytest.mark.parametrize(
    "label_hz, frame_hz",
    [(100, 80), (100, 80 / 3), (50, 100), (100, 99.99), (100, 40)],
)
def test_rates_that_do_not_fit_are_refused_with_both(label_hz, frame_hz):
    with pytest.raises(ValueError) as caught:
        align_labels(np.zeros(7), label_hz, frame_hz, 7, "5-11-0002")
    assert "5-11-0002" in str(caught.value)
    assert f"labels at {label_hz:.10g} Hz" in str(caught.value)
    assert f"frames at {frame_hz:.10g} Hz" in str(caught.value)


@pytest.mark.parametrize("rates", [(0, 100), (100, 0), (-1, 100), (100, "nan")])
def test_rates_must_be_positive(rates):
    with pytest.raises(ValueError, match="must be positive"):
        align_labels(np.zeros(7), float(rates[0]), float(rates[1]), 7)


@pytest.mark.parametrize("samples", [9_001, 16_000, 30_011, 240_007])
@pytest.mark.parametrize("stack", [1, 3])
def test_by_time_takes_the_label_at_the_middle(samples, stack):
    """Against whole fractions: the paper's 12.5 ms, alone and in threes."""
    hop, label_samples = 200, 160
    labels = np.arange(samples // label_samples)
    frames = (1 + samples // hop) // stack
    aligned = align_labels(
        labels,
        100,
        16_000 / (hop * stack),
        frames,
        first_s=(stack - 1) / 2 * hop / 16_000,
        by_time=True,
    )
    expected = [
        math.floor(
            fractions.Fraction((i * stack + (stack - 1) // 2) * hop)
            / label_samples
        )
        for i in range(frames)
    ]
    expected = np.minimum(expected, labels[-1])
    np.testing.assert_array_equal(aligned, expected)


def test_labels_of_cpc_fit_every_length_at_the_default_tolerance():
    """Kaldi's frames, all within the audio, against centred ones."""
    lacking = set()
    for samples in range(1_600, 1_600 + 2 * 160):
        labels = np.arange(1 + (samples - 400) // 160)
        frames = 1 + samples // 160
        aligned = align_labels(labels, 100, 100, frames)
        np.testing.assert_array_equal(aligned[: len(labels)], labels)
        assert (aligned[len(labels) :] == labels[-1]).all()
        lacking.add(frames - len(labels))
    assert lacking == {2, 3}


def test_ends_that_do_not_fit():
    labels = np.arange(11)
    repeated = align_labels(labels, 100, 100, 14)
    assert repeated.tolist() == [*range(11), 10, 10, 10]
    assert align_labels(labels, 100, 100, 8).tolist() == list(range(8))
    for frames in (15, 7):
        with pytest.raises(ValueError) as caught:
            align_labels(labels, 100, 100, frames, "13-17-0000")
        message = str(caught.value)
        assert message.startswith("13-17-0000: 11 labels at 100 Hz")
        assert f"{frames} frames at 100 Hz" in message
        assert len(align_labels(labels, 100, 100, frames, tolerance=4))


def test_ends_under_sub_sampling_are_counted_in_labels():
    # Frames at 0, 3, 6, 9 of labels 0 to 11.
    for count in range(7, 16):
        aligned = align_labels(np.arange(count), 99, 33, 4)
        assert aligned.tolist() == np.minimum([0, 3, 6, 9], count - 1).tolist()
    for count in (6, 16):
        with pytest.raises(ValueError, match=f"{count} labels"):
            align_labels(np.arange(count), 99, 33, 4)


def test_no_frames_or_no_labels():
    assert align_labels(np.arange(3), 100, 100, 0).shape == (0,)
    with pytest.raises(ValueError, match="0 labels"):
        align_labels(np.zeros(0, int), 100, 100, 2)


# LibriSpeech


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("speakers", [SPEAKERS, None])
def test_librispeech(tmp_path, inner, speakers):
    root = write_librispeech(tmp_path, speakers)
    splits = read_librispeech(str(root if inner else tmp_path))
    assert list(splits) == ["train-clean-100", "dev-clean"]
    train, dev = splits.values()
    assert train.utterances == ["13-17-0000", "5-11-0000", "5-11-0001"]
    assert dev.utterances == ["7-19-0000", "7-19-0001"]
    assert train.files[1] == root / "train-clean-100/5/11/5-11-0000.flac"
    # As strings, over both subsets.
    assert train.vocabulary == dev.vocabulary == ["13", "5", "7"]
    assert train.speakers.tolist() == [0, 1, 1]
    assert dev.speakers.tolist() == [2, 2]
    assert dev.speakers.dtype == np.int32
    assert dev.targets().tolist() == [[0, 0, 1], [0, 0, 1]]
    assert train.frame_labels is None
    assert train.report == {}
    assert train.describe() == ""


def test_librispeech_one_subset_has_its_own_speakers_alone(tmp_path):
    write_librispeech(tmp_path)
    splits = read_librispeech(tmp_path, ["dev-clean"])
    assert list(splits) == ["dev-clean"]
    assert splits["dev-clean"].vocabulary == ["7"]


def test_librispeech_subset_that_is_missing_or_empty(tmp_path):
    root = write_librispeech(tmp_path)
    with pytest.raises(FileNotFoundError, match="test-other"):
        read_librispeech(tmp_path, ["test-other"])
    (root / "dev-other").mkdir()
    with pytest.raises(FileNotFoundError, match="dev-other: no utterances"):
        read_librispeech(tmp_path, ["dev-other"])
    with pytest.raises(FileNotFoundError, match="name the subsets"):
        read_librispeech(tmp_path / "LibriSpeech" / "dev-clean")
    with pytest.raises(FileNotFoundError, match="'dev-clean'"):
        read_librispeech(tmp_path, "dev-clean")


@pytest.mark.parametrize(
    "misplaced",
    [
        "5/11/._5-11-0000.flac",
        "5/11/13-11-0003.flac",
        "5/11/5-17-0003.flac",
        "5/5-11-0003.flac",
        "5/11/deep/5-11-0003.flac",
        "5/11/5-11.flac",
    ],
)
def test_librispeech_files_in_the_wrong_place(tmp_path, misplaced):
    root = write_librispeech(tmp_path) / "train-clean-100"
    write_audio(root / misplaced)
    train = read_librispeech(tmp_path)["train-clean-100"]
    assert len(train) == 3
    what = "files not named by their folders"
    assert train.report == {what: [f"train-clean-100/{misplaced}"]}
    assert train.describe() == f"1 {what}: train-clean-100/{misplaced}"
    with pytest.raises(ValueError, match="strict=True"):
        read_librispeech(tmp_path, strict=True)


@pytest.mark.parametrize(
    "twin", ["train-clean-100/5/11/5-11-0001.wav", "mine/5/11/5-11-0001.flac"]
)
def test_librispeech_utterance_that_is_there_twice(tmp_path, twin):
    root = write_librispeech(tmp_path)
    write_audio(root / twin)
    subsets = sorted({"train-clean-100", twin.split("/")[0]})
    with pytest.raises(ValueError) as caught:
        read_librispeech(tmp_path, subsets)
    assert "utterance 5-11-0001" in str(caught.value)
    assert str(root / twin) in str(caught.value)


def test_librispeech_speakers_file(tmp_path):
    path = write_text(tmp_path / "SPEAKERS.TXT", "\ufeff" + SPEAKERS)
    speakers = read_librispeech_speakers(path)
    assert speakers["5"] == {
        "sex": "F",
        "subset": "train-clean-100",
        "minutes": 25.03,
        "name": "Zoë | with | bars",
    }
    assert speakers["13"]["name"] == "|CBW|Simon"
    path.write_bytes(SPEAKERS.encode("latin-1"))
    assert list(read_librispeech_speakers(path)) == ["5", "13", "7"]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("| 8.10  ", "", "line 5: must be ID"),
        ("8.10", "eight", "line 5: must be ID"),
        ("7    |", "5    |", "line 5: speaker 5 occurs twice"),
        ("7    |", "8    |", "it lacks speaker 7 of dev-clean"),
        ("dev-clean", "dev-other", "7 is of dev-other. .*in dev-clean"),
    ],
)
def test_librispeech_speakers_that_do_not_agree(tmp_path, old, new, message):
    write_librispeech(tmp_path, SPEAKERS.replace(old, new))
    with pytest.raises(ValueError, match=rf"SPEAKERS\.TXT.*{message}"):
        read_librispeech(tmp_path)


def test_librispeech_phones_and_lists(tmp_path):
    write_librispeech(tmp_path)
    phones = write_text(
        tmp_path / "p.txt",
        "5-11-0001 1 2\n13-17-0000 0\n99-1-0000 1\n5-11-0002 3\n",
    )
    lists = {
        "train": write_text(tmp_path / "train.txt", "5-11-0001\n98-1-0000"),
        "test": ["13-17-0000"],
    }
    splits = read_librispeech(tmp_path, ["train-clean-100"], phones, lists)
    assert {k: v.utterances for k, v in splits.items()} == {
        "train": ["5-11-0001"],
        "test": ["13-17-0000"],
    }
    train = splits["train"]
    assert train.frame_labels[0].tolist() == [1, 2]
    assert train.label_rate_hz == 100.0
    assert train.vocabulary == ["13", "5"]
    assert train.speakers.tolist() == [1]
    # Nothing vanishes without a trace.
    assert train.report == splits["test"].report
    assert train.report == {
        "labels without audio": ["99-1-0000", "5-11-0002"],
        "utterances without labels": ["5-11-0000"],
        "listed without audio": ["98-1-0000"],
        "utterances in no list": ["5-11-0000"],
    }
    assert "2 labels without audio: 99-1-0000, 5-11-0002" in train.describe()
    with pytest.raises(ValueError, match="2 labels without audio"):
        read_librispeech(tmp_path, ["train-clean-100"], phones, strict=True)
    with pytest.raises(ValueError, match="1 listed without audio"):
        read_librispeech(
            tmp_path, ["train-clean-100"], None, lists, strict=True
        )


def test_description_counts_all_and_names_some(tmp_path):
    write_librispeech(tmp_path)
    corpus = read_librispeech(tmp_path)["dev-clean"]
    labels = {f"x-{n}": np.zeros(1, int) for n in range(7)}
    corpus = corpus.with_frame_labels({**labels, "7-19-0000": np.ones(2, int)})
    assert corpus.describe().splitlines() == [
        "7 labels without audio: x-0, x-1, x-2, x-3, x-4 and 2 more",
        "1 utterances without labels: 7-19-0001",
    ]
    assert corpus.labelled().utterances == ["7-19-0000"]


def test_labels_that_belong_to_nothing_here(tmp_path):
    write_librispeech(tmp_path)
    corpus = read_librispeech(tmp_path)["dev-clean"]
    with pytest.raises(ValueError, match="None of 2 utterances is among the 1"):
        corpus.with_frame_labels({"x": np.zeros(1, int)})
    with pytest.raises(ValueError, match="2 names of labels. .*label 2"):
        corpus.with_frame_labels(
            {"7-19-0000": np.array([0, 2])}, label_names=["a", "b"]
        )


def test_lists_that_overlap_or_find_nothing(tmp_path):
    write_librispeech(tmp_path)
    corpus = read_librispeech(tmp_path)["dev-clean"]
    both = {"train": ["7-19-0000"], "test": ["7-19-0001", "7-19-0000"]}
    with pytest.raises(ValueError, match="7-19-0000 .*train and test"):
        corpus.split(both)
    with pytest.raises(ValueError, match="split test .* 1 listed"):
        corpus.split({"train": ["7-19-0000"], "test": ["7-19-9999"]})


def test_holding_out_is_a_shuffle_by_seed(tmp_path):
    for number in range(23):
        (tmp_path / f"u{number:02d}.wav").touch()
    corpus = read_speech_folder(tmp_path)["train"]
    names = list(corpus.utterances)
    random.Random(1337).shuffle(names)
    rest, held = corpus.hold_out(0.1)
    assert (rest.utterances, held.utterances) == (names[:17], names[17:])
    assert [len(each) for each in corpus.hold_out(0.3)] == [13, 6]
    assert corpus.hold_out(0.1, seed=1)[1].utterances != held.utterances
    for share in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"Received: share={share}"):
            corpus.hold_out(share)


# FSDD and folders


def write_fsdd(folder, indices=(0, 5, 11, 15, 49), phones=True):
    names = [f"3_{who}_{i}" for who in ("jo", "ann_b") for i in indices]
    for name in names:
        write_audio(folder / "recordings" / f"{name}.wav")
    if phones:
        lines = "".join(f"{name} 0 1 0 1\n" for name in names[:-1])
        write_text(folder / "converted_aligned_phones.txt", lines)
        write_text(folder / "phones.txt", "SIL 0\nTH 1\n")
    return folder


def test_fsdd(tmp_path):
    splits = read_fsdd(write_fsdd(tmp_path))
    assert {k: v.utterances for k, v in splits.items()} == {
        "train": ["3_ann_b_15", "3_ann_b_49", "3_jo_15", "3_jo_49"],
        "val": ["3_ann_b_11", "3_jo_11"],
        "test": ["3_ann_b_5", "3_jo_5"],
    }
    train = splits["train"]
    assert train.vocabulary == ["ann_b", "jo"]
    assert train.speakers.tolist() == [0, 0, 1, 1]
    assert train.label_names == ["SIL", "TH"]
    assert train.frame_labels[1] is None
    assert train.frame_labels[3].tolist() == [0, 1, 0, 1]
    assert train.labelled().utterances == [
        "3_ann_b_15",
        "3_jo_15",
        "3_jo_49",
    ]
    assert train.report == {
        "utterances in no split": ["3_ann_b_0", "3_jo_0"],
        "utterances without labels": ["3_ann_b_49"],
    }


def test_fsdd_official_splits(tmp_path):
    write_fsdd(tmp_path, phones=False)
    splits = read_fsdd(tmp_path, FSDD_OFFICIAL_SPLITS)
    assert splits["test"].utterances == ["3_ann_b_0", "3_jo_0"]
    assert splits["train"].frame_labels is None
    for table in (FSDD_OFFICIAL_SPLITS, FSDD_SPLITS):
        used = [i for indices in table.values() for i in indices]
        assert len(set(used)) == len(used)
    assert sorted(used) == list(range(5, 50))


def test_fsdd_that_is_odd(tmp_path):
    write_fsdd(tmp_path, phones=False)
    write_audio(tmp_path / "recordings" / "take two.wav")
    splits = read_fsdd(tmp_path)
    what = "files not named digit_speaker_index"
    assert splits["val"].report[what] == ["take two.wav"]
    with pytest.raises(ValueError, match="strict=True"):
        read_fsdd(tmp_path, strict=True)
    with pytest.raises(ValueError, match="in one split only"):
        read_fsdd(tmp_path, {"train": [5, 11], "test": [11]})
    with pytest.raises(ValueError, match="no recording of the split test"):
        read_fsdd(tmp_path, {"train": [5, 11], "test": [12]})


def test_any_folder(tmp_path):
    decomposed = unicodedata.normalize("NFD", "Zoë")
    write_audio(tmp_path / decomposed / "one two.ogg", rate_hz=8_000)
    write_audio(tmp_path / "bo" / "day 1" / "a.wav")
    write_audio(tmp_path / "top.flac")
    write_text(tmp_path / "notes.txt", "no audio")
    phones = write_text(tmp_path / "p.txt", "top 1\nZoë/gone 0\n")
    lists = {"train": ["top", "Zoë/one two"], "test": ["bo/day 1/a"]}
    splits = read_speech_folder(tmp_path, phones, lists)
    train, test = splits["train"], splits["test"]
    assert train.utterances == ["top", "Zoë/one two"]
    assert train.vocabulary == ["Zoë", "bo"]
    assert train.labels == [[], ["Zoë"]]
    assert train.speakers.tolist() == [-1, 0]
    assert test.speakers.tolist() == [1]
    assert train.report["labels without audio"] == ["Zoë/gone"]
    assert len(train.report["utterances without labels"]) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no audio there"):
        read_speech_folder(tmp_path / "empty")


def test_folder_is_split_by_a_seed(tmp_path):
    for number in range(31):
        (tmp_path / f"{number:02d}.wav").touch()
    splits = read_speech_folder(tmp_path, seed=3)
    assert {k: len(v) for k, v in splits.items()} == {
        "train": 25,
        "val": 3,
        "test": 3,
    }
    names = [name for split in splits.values() for name in split.utterances]
    assert sorted(names) == [f"{number:02d}" for number in range(31)]


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


def test_subsets_by_split_are_joined(tmp_path):
    write_librispeech(tmp_path)
    groups = {"train": ["dev-clean", "train-clean-100"], "val": []}
    splits = read_librispeech(tmp_path, groups)
    assert list(splits) == ["train"]
    assert len(splits["train"]) == 5
    assert splits["train"].utterances[:2] == ["7-19-0000", "7-19-0001"]
    groups["val"] = ["dev-clean"]
    with pytest.raises(ValueError, match="named once, in one split"):
        read_librispeech(tmp_path, groups)


# TFDS


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder that TFDS prepared, without Beam, and its samples."""
    tfds = pytest.importorskip(
        "tensorflow_datasets", reason="THE TFDS ROAD IS NOT TESTED: no TFDS"
    )
    folder = tmp_path_factory.mktemp("tfds")
    rng = np.random.default_rng(5)
    samples = {
        f"{speaker}-11-{n:04d}": rng.integers(
            -(2**15), 2**15, 331 + n, np.int16
        )
        for speaker in (5, 13)
        for n in range(3)
    }

    class Small(tfds.core.GeneratorBasedBuilder):
        # TFDS looks for the file of a module in a package, and needs more
        # packages for that.
        __module__ = "small"
        name = "librispeech"
        VERSION = tfds.core.Version("2.1.1")

        def _info(self):
            features = {
                "speech": tfds.features.Audio(
                    sample_rate=16_000, dtype=np.int16
                ),
                "text": tfds.features.Text(),
                "speaker_id": np.int64,
                "chapter_id": np.int64,
                "id": np.str_,
            }
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict(features)
            )

        def _split_generators(self, dl_manager):
            return {"train_clean100": self._generate_examples()}

        def _generate_examples(self):
            for key, audio in samples.items():
                speaker, chapter, _ = key.split("-")
                yield (
                    key,
                    {
                        "speech": audio,
                        "text": "A",
                        "speaker_id": int(speaker),
                        "chapter_id": int(chapter),
                        "id": key,
                    },
                )

    builder = Small(data_dir=folder)
    builder.download_and_prepare()
    return folder, samples


def test_tfds_loses_no_sample_and_goes_on(prepared, tmp_path):
    folder, samples = prepared
    splits = load_speech("tfds_librispeech", folder, out_dir=tmp_path)
    assert list(splits) == ["train-clean-100"]
    corpus = splits["train-clean-100"]
    assert corpus.utterances == sorted(samples)
    assert corpus.vocabulary == ["13", "5"]
    for file, name in zip(corpus.files, corpus.utterances, strict=True):
        audio, rate_hz = soundfile.read(file, dtype="int16")
        np.testing.assert_array_equal(audio, samples[name])
        assert rate_hz == 16_000
    times = [file.stat().st_mtime_ns for file in corpus.files]
    corpus.files[2].unlink()
    read_tfds_librispeech(folder, tmp_path, ["train-clean-100"])
    after = [file.stat().st_mtime_ns for file in corpus.files]
    assert times[:2] + times[3:] == after[:2] + after[3:]
    assert not list(tmp_path.rglob("*.partial"))


def test_tfds_that_is_not_prepared(prepared, tmp_path):
    with pytest.raises(FileNotFoundError, match="has not prepared"):
        read_tfds_librispeech(tmp_path, tmp_path)
    with pytest.raises(ValueError, match="train-clean-100.*'dev-clean'"):
        read_tfds_librispeech(prepared[0], tmp_path, ["dev-clean"])


def test_tfds_newest_version_and_raw_bytes(tmp_path):
    for version in ("2.1.9", "2.1.10", "1.9.0"):
        folder = tmp_path / "librispeech" / "default" / version
        folder.mkdir(parents=True)
        (folder / "dataset_info.json").touch()
    assert tfds_librispeech.prepared_folder(tmp_path).name == "2.1.10"
    example = {"id": b"5-11-0003", "speech": b"fLaC"}
    tfds_librispeech.write_utterance(tmp_path, example, 16_000)
    path = tmp_path / "5" / "11" / "5-11-0003.flac"
    assert path.read_bytes() == b"fLaC"
    example = {"id": b"5-11-0004", "speech": np.zeros(3, np.int64)}
    with pytest.raises(ValueError, match="5-11-0004: .*int16.*int64"):
        tfds_librispeech.write_utterance(tmp_path, example, 16_000)
    assert len(list(path.parent.iterdir())) == 1


# Batches


LENGTHS = (211, 1_499, 367, 823, 1_009, 257, 1_301)


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    """Seven utterances of three speakers with labels, and their clips."""
    folder = tmp_path_factory.mktemp("speech")
    labels = {}
    for number, samples in enumerate(LENGTHS):
        name = f"{'abc'[number % 3]}/{number}"
        write_audio(folder / f"{name}.wav", samples, seed=number)
        labels[name] = (1 + np.arange(1 + samples // STEP)) % 41
    corpus = read_speech_folder(folder, lists={"train": list(labels)})
    corpus = corpus["train"].with_frame_labels(labels)
    clips = data.prepare(corpus, RATE_HZ, folder / "cache", progress=False)
    return corpus, labels, clips


def batches(utterances, **kwargs):
    return list(utterances.dataset(2, **kwargs).as_numpy_iterator())


def test_utterances_with_their_lengths_and_speakers(speech):
    corpus, _, clips = speech
    utterances = data.Utterances(clips, "speaker", buckets=3)
    order = utterances.scoring_order(2)
    assert sorted(order) == list(range(7))
    row = 0
    widths = set()
    for inputs, speakers in batches(utterances):
        assert speakers.dtype == np.int32 and speakers.ndim == 1
        widths.add(inputs["waveform"].shape[1])
        for audio, length, speaker in zip(
            inputs["waveform"], inputs["lengths"], speakers, strict=True
        ):
            clip = order[row]
            whole = load_audio(corpus.files[clip], RATE_HZ)
            assert length == len(whole) == LENGTHS[clip]
            np.testing.assert_array_equal(audio[:length], whole)
            assert not audio[length:].any()
            assert speaker == clip % 3
            row += 1
    assert row == 7
    assert widths <= set(utterances.length_bounds())
    assert len(utterances.length_bounds()) == 3


def test_speakers_train_the_classifier_on_chunks_too(speech):
    targets = data.Chunks(speech[2], 0.1).targets
    np.testing.assert_array_equal(targets, np.eye(3)[np.arange(7) % 3])


def test_utterances_of_like_length_meet(speech):
    utterances = data.Utterances(speech[2], buckets=3)
    padding = 0
    for inputs in batches(utterances, shuffle=True, seed=3):
        padding += inputs["waveform"].size - inputs["lengths"].sum()
    alone = 7 * max(LENGTHS) - sum(LENGTHS)
    assert padding < alone / 3


def test_labels_of_frames(speech):
    _, labels, clips = speech
    frames = data.Frames(RATE_HZ, STEP)
    assert frames.rate_hz == 100.0
    utterances = data.Utterances(clips, "frame_labels", frames)
    order, row = utterances.scoring_order(2), 0
    names = clips.corpus.utterances
    for inputs, targets in batches(utterances):
        assert targets.dtype == np.int32
        assert targets.shape[1] == 1 + inputs["waveform"].shape[1] // STEP
        for length, each in zip(inputs["lengths"], targets, strict=True):
            count = 1 + length // STEP
            np.testing.assert_array_equal(
                each[:count], labels[names[order[row]]]
            )
            assert (each[count:] == PADDING_LABEL).all()
            row += 1
    assert row == 7


def test_speakers_of_frames_follow_any_rate(speech):
    frames = data.Frames(RATE_HZ, 53)
    utterances = data.Utterances(speech[2], "frame_speaker", frames)
    order, row = utterances.scoring_order(2), 0
    for inputs, targets in batches(utterances):
        for length, each in zip(inputs["lengths"], targets, strict=True):
            count = 1 + length // 53
            assert (each[:count] == order[row] % 3).all()
            assert (each[count:] == PADDING_LABEL).all()
            row += 1


def test_nothing_but_inputs_for_pre_training(speech):
    utterances = data.Utterances(speech[2])
    found = batches(utterances)
    assert [sorted(inputs) for inputs in found] == [
        ["lengths", "waveform"]
    ] * utterances.num_batches(2)


def test_a_pass_is_the_same_again_and_from_the_middle(speech):
    utterances = data.Utterances(speech[2], "speaker")
    steps = utterances.num_batches(2)
    dataset = utterances.dataset(2, shuffle=True, seed=5, first_epoch=0)
    unbroken = list(dataset.take(2 * steps).as_numpy_iterator())
    dataset = utterances.dataset(2, shuffle=True, seed=5, first_epoch=1)
    resumed = list(dataset.take(steps).as_numpy_iterator())
    for (x, y), (other, labels) in zip(unbroken[steps:], resumed, strict=True):
        np.testing.assert_array_equal(x["waveform"], other["waveform"])
        np.testing.assert_array_equal(y, labels)


def test_rates_are_refused_before_training(speech):
    frames = data.Frames(RATE_HZ, 53)
    with pytest.raises(ValueError) as caught:
        data.Utterances(speech[2], "frame_labels", frames)
    assert "labels at 100 Hz" in str(caught.value)
    assert f"frames at {RATE_HZ / 53:.10g} Hz" in str(caught.value)
    data.Utterances(speech[2], "frame_labels", frames, by_time=True)
    frames = data.Frames(16_000, 160)
    with pytest.raises(ValueError, match="16000 Hz .* 3700 Hz"):
        data.Utterances(speech[2], "frame_labels", frames)


def test_ends_are_refused_with_the_utterance(speech):
    corpus, labels, clips = speech
    short = {**labels, "b/4": labels["b/4"][:-5]}
    clips = data.prepare(
        corpus.with_frame_labels(short),
        RATE_HZ,
        clips.entries[0].parents[2],
        progress=False,
    )
    frames = data.Frames(RATE_HZ, STEP)
    with pytest.raises(ValueError, match="b/4: 23 labels .* 28 frames"):
        data.Utterances(clips, "frame_labels", frames)
    found = data.Utterances(clips, "frame_labels", frames, tolerance=5)
    assert len(found.targets[4]) == 28


def test_targets_that_are_not_there(speech, tmp_path):
    corpus, labels, clips = speech
    with pytest.raises(ValueError, match="`targets` must be one of"):
        data.Utterances(clips, "phones")
    with pytest.raises(ValueError, match="need `frames`"):
        data.Utterances(clips, "frame_labels")
    write_audio(tmp_path / "top.wav")
    write_audio(tmp_path / "a" / "b.wav")
    corpus = read_speech_folder(tmp_path, lists={"train": ["top", "a/b"]})[
        "train"
    ]
    clips = data.prepare(corpus, RATE_HZ, tmp_path / "c", progress=False)
    with pytest.raises(ValueError, match="1 utterances have no speaker.*top"):
        data.Utterances(clips, "speaker")
    frames = data.Frames(RATE_HZ, STEP)
    with pytest.raises(ValueError, match="2 of 2 utterances have no labels"):
        data.Utterances(clips, "frame_labels", frames)


def test_bad_files_are_left_out_with_their_labels(speech, tmp_path):
    for number in range(3):
        write_audio(tmp_path / "a" / f"{number}.wav", 149 + number)
    write_text(tmp_path / "a" / "1.wav", "RIFF")
    names = [f"a/{number}" for number in range(3)]
    labels = {name: np.full(5, n) for n, name in enumerate(names)}
    corpus = read_speech_folder(tmp_path, lists={"train": names})
    corpus = corpus["train"].with_frame_labels(labels)
    clips = data.prepare(corpus, RATE_HZ, tmp_path / "c", progress=False)
    assert clips.corpus.utterances == ["a/0", "a/2"]
    assert [each[0] for each in clips.corpus.frame_labels] == [0, 2]
    assert list(clips.failures) == [str(tmp_path / "a" / "1.wav")]
    assert "not readable" in data.describe(clips.failures)
    with pytest.raises(AudioError, match=r"1\.wav"):
        data.prepare(
            corpus, RATE_HZ, tmp_path / "d", strict=True, progress=False
        )
    # The second time nothing is decoded.
    for file in corpus.files:
        status = file.stat()
        file.write_bytes(b"\0" * status.st_size)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = data.prepare(corpus, RATE_HZ, tmp_path / "c", progress=False)
    assert again.lengths.tolist() == [149, 151]


def test_limits_of_length_name_the_others(speech):
    clips = data.limit_lengths(speech[2], 0.07, 0.3)
    assert clips.lengths.tolist() == [367, 823, 1_009]
    assert clips.corpus.utterances == ["c/2", "a/3", "b/4"]
    assert len(clips.entries) == 3
    assert len(clips.failures) == 4
    reasons = " ".join(clips.failures.values())
    assert "0.06 s, not within 0.07 s to 0.3 s" in reasons
    for low, high in ((0.3, 0.07), (np.nan, 1.0), (0.0, np.nan), (-1.0, 1.0)):
        with pytest.raises(ValueError, match=f"min_s={low}, max_s={high}"):
            data.limit_lengths(speech[2], low, high)
    with pytest.raises(ValueError, match="None of 7 clips"):
        data.limit_lengths(speech[2], 9.0)


def test_a_model_learns_from_padded_labels(speech):
    """The loss leaves `PADDING_LABEL` out, finite and equal to a loop."""
    clips = speech[2]
    features = small_features()
    frames = data.Frames.of(features)
    utterances = data.Utterances(clips, "frame_labels", frames, by_time=True)
    inputs = {
        "waveform": keras.Input((None,), name="waveform"),
        "lengths": keras.Input((), dtype="int32", name="lengths"),
    }
    x = features(inputs["waveform"], inputs["lengths"])
    model = keras.Model(inputs, keras.layers.Dense(41)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=PADDING_LABEL
    )
    model.compile("adam", loss)
    inputs, targets = batches(utterances)[0]
    expected = []
    for row, each in zip(model.predict_on_batch(inputs), targets, strict=True):
        for logits, label in zip(row, each, strict=True):
            if label >= 0:
                shifted = logits - logits.max()
                expected.append(np.log(np.exp(shifted).sum()) - shifted[label])
    assert len(expected) < targets.size
    found = float(loss(targets, model.predict_on_batch(inputs)))
    assert found == pytest.approx(np.mean(expected), rel=1e-4)
    history = model.fit(utterances.dataset(2), shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"][0])


# Features


def small_features(stack=3, **options):
    return SpeechFeatures(
        "paper",
        RATE_HZ,
        {
            "window_s": 41 / RATE_HZ,
            "hop_s": 23 / RATE_HZ,
            "fft_length": 64,
            "num_mel_bins": 5,
            "stack_size": stack,
            **options,
        },
    )


def test_frames_of_stacked_features():
    features = small_features()
    frames = data.Frames.of(features)
    assert (frames.frame_size, frames.first_middle) == (69, 23.0)
    lengths = np.array([1, 68, 211, 1_499])
    expected = [max((1 + n // 23) // 3, 1) for n in lengths]
    assert frames.lengths(lengths).tolist() == expected


def test_features_are_cached(speech, tmp_path, monkeypatch):
    clips = speech[2]
    features = small_features()
    found = data.cache_features(clips, features, tmp_path, batch_size=2)
    assert found.frames.rate_hz == found.length_rate_hz == RATE_HZ / 69
    assert found.dim == 30 == features.dim
    for row, entry in enumerate(found.entries):
        audio = load_audio(clips.corpus.files[row], RATE_HZ)
        alone = keras.ops.convert_to_numpy(features(audio[None]))[0]
        stored = cache.read_entry(entry).reshape(-1, 30)
        assert len(stored) == found.lengths[row]
        np.testing.assert_allclose(stored, alone, atol=2e-4)

    def never(*args, **kwargs):
        raise RuntimeError("computed again")

    monkeypatch.setattr(SpeechFeatures, "__call__", never)
    again = data.cache_features(clips, small_features(), tmp_path)
    assert again.entries == found.entries
    # Another configuration, a lost entry and other audio are misses.
    for other in (small_features(pre_emphasis=0.5), small_features(stack=2)):
        with pytest.raises(RuntimeError, match="computed again"):
            data.cache_features(clips, other, tmp_path)
    found.entries[3].unlink()
    with pytest.raises(RuntimeError, match="computed again"):
        data.cache_features(clips, features, tmp_path)


def test_damaged_features_are_computed_again(speech, tmp_path):
    clips, features = speech[2], small_features()
    found = data.cache_features(clips, features, tmp_path)
    np.testing.assert_array_equal(found.sizes, clips.sizes)
    np.testing.assert_array_equal(found.checksums, clips.checksums)
    before = [cache.read_entry(entry) for entry in found.entries]
    os.truncate(found.entries[3], found.entries[3].stat().st_size - 4)
    found.entries[5].write_bytes(bytes(cache.HEADER_SIZE + 4 * 30))
    with pytest.warns(RuntimeWarning, match="2 damaged entries"):
        again = data.cache_features(clips, features, tmp_path)
    assert again.lengths.tolist() == found.lengths.tolist()
    for entry, x in zip(again.entries, before, strict=True):
        np.testing.assert_allclose(cache.read_entry(entry), x, atol=2e-4)
    with pytest.raises(ValueError, match="Clips of features are taken whole"):
        data.Chunks(found, 0.1)
    with pytest.raises(ValueError, match="batch_size=0"):
        data.cache_features(clips, features, tmp_path, batch_size=0)


def test_cached_features_in_batches(speech, tmp_path):
    clips = speech[2]
    features = small_features()
    found = data.cache_features(clips, features, tmp_path)
    frames = data.Frames.of(features)
    direct = data.Utterances(clips, "frame_labels", frames, by_time=True)
    cached = data.Utterances(found, "frame_labels", by_time=True)
    order = cached.scoring_order(2)
    row = 0
    for inputs, targets in batches(cached):
        width = inputs["features"].shape[1]
        assert inputs["features"].shape == (len(targets), width, 30)
        assert targets.shape[1] == width
        for x, length, each in zip(*inputs.values(), targets, strict=True):
            assert length == found.lengths[order[row]]
            stored = cache.read_entry(found.entries[order[row]])
            np.testing.assert_array_equal(x[:length].ravel(), stored)
            assert not x[length:].any()
            np.testing.assert_array_equal(
                each[:length], direct.targets[order[row]]
            )
            assert (each[length:] == PADDING_LABEL).all()
            row += 1
    assert row == 7
    short = data.limit_lengths(found, 0.0, 0.2)
    assert (short.lengths / (RATE_HZ / 69) <= 0.2).all()
    assert 0 < len(short) < 7


def test_features_of_another_rate(speech, tmp_path):
    with pytest.raises(ValueError, match="16000 Hz .* 3700 Hz"):
        data.cache_features(speech[2], SpeechFeatures(), tmp_path)


def test_features_are_cached_by_their_weights(speech, tmp_path):
    features = small_features()
    features.extra = features.add_weight(name="extra", shape=(1,))
    first = data.cache_features(speech[2], features, tmp_path)
    again = data.cache_features(speech[2], features, tmp_path)
    assert again.entries == first.entries
    features.extra.assign([3.0])
    other = data.cache_features(speech[2], features, tmp_path)
    assert not set(other.entries) & set(first.entries)


def test_features_of_another_decoder_are_others(speech, tmp_path):
    """A decoder's audio is in a folder of its own, under the same names."""
    clips = speech[2]
    features = small_features()
    first = data.cache_features(clips, features, tmp_path / "features")
    entries = []
    for entry in clips.entries:
        entries.append(tmp_path.joinpath("decoder", *entry.parts[-2:]))
        entries[-1].parent.mkdir(parents=True, exist_ok=True)
        cache.write_entry(entries[-1], 0.5 * cache.read_entry(entry) ** 2)
    other = data.cache_features(
        dataclasses.replace(clips, entries=entries),
        features,
        tmp_path / "features",
    )
    assert not set(other.entries) & set(first.entries)
    for one, two in zip(first.entries, other.entries, strict=True):
        assert one.read_bytes() != two.read_bytes()


def test_a_full_disk_is_known_before(speech, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="Received: 0.0 GB free"):
        data.cache_features(speech[2], small_features(), tmp_path)


def test_a_disk_that_fills_keeps_whole_features(speech, tmp_path, monkeypatch):
    write_entry = cache.write_entry
    written = []

    def write_three(*args):
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(args[0])
        return write_entry(*args)

    with monkeypatch.context() as patch:
        patch.setattr(cache, "write_entry", write_three)
        with pytest.raises(OSError, match="space.*3 of 7 entries") as caught:
            data.cache_features(speech[2], small_features(), tmp_path)
    assert caught.value.errno == errno.ENOSPC
    found = data.cache_features(speech[2], small_features(), tmp_path)
    assert set(written) < set(found.entries)


# Real speech


def test_the_librispeech_sample(shared_data, tmp_path):
    splits = read_librispeech(shared_data)
    train, dev = splits["train-clean-100"], splits["dev-clean"]
    assert list(splits) == ["train-clean-100", "dev-clean"]
    assert train.utterances == [
        "1088-134315-0000",
        "198-209-0000",
        "3436-172162-0000",
        "5703-47212-0000",
    ]
    assert dev.utterances == ["2412-153948-0000", "2412-153948-0001"]
    assert train.vocabulary == ["1088", "198", "2412", "3436", "5703"]
    assert train.speakers.tolist() == [0, 1, 3, 4]
    assert dev.speakers.tolist() == [2, 2]
    clips = data.prepare(train, 16_000, tmp_path, strict=True, progress=False)
    assert clips.lengths.tolist() == [256_640, 222_561, 267_920, 237_440]
    features = SpeechFeatures("s3prl")
    frames = data.Frames.of(features)
    assert frames.rate_hz == 100.0
    # As many labels as Kaldi would make, the number of each its index.
    labels = {
        name: np.arange(1 + (length - 400) // 160)
        for name, length in zip(train.utterances, clips.lengths, strict=True)
    }
    clips = data.prepare(
        train.with_frame_labels(labels), 16_000, tmp_path, progress=False
    )
    utterances = data.Utterances(clips, "frame_labels", frames, buckets=1)
    (inputs, targets), *rest = batches(utterances)
    assert len(rest) == 1
    assert inputs["waveform"].shape == (2, 267_920)
    assert targets.shape == (2, 1_675)
    assert targets[0, :1_605].tolist() == [*range(1_602), 1_601, 1_601, 1_601]
    assert (targets[0, 1_605:] == PADDING_LABEL).all()


def test_the_digits_with_their_phones(shared_data, tmp_path):
    splits = read_fsdd(shared_data / "fsdd")
    assert {k: len(v) for k, v in splits.items()} == {
        "train": 2_100,
        "val": 300,
        "test": 300,
    }
    labelled = {k: len(v.labelled()) for k, v in splits.items()}
    assert labelled == {"train": 2_037, "val": 292, "test": 291}
    train, test = splits["train"], splits["test"]
    assert {k: len(v) for k, v in train.report.items()} == {
        "utterances without labels": 80
    }
    assert len(train.vocabulary) == 6
    assert np.bincount(train.speakers).tolist() == [350] * 6
    assert train.label_names[0] == "SIL" and len(train.label_names) == 20
    top = max(each.max() for each in train.labelled().frame_labels)
    assert top == 19
    part = test.labelled()
    part = part.select(range(0, len(part), 7))
    clips = data.prepare(part, 16_000, tmp_path, strict=True, progress=False)
    for preset, by_time in (("s3prl", False), ("paper", True)):
        frames = data.Frames.of(SpeechFeatures(preset))
        found = data.Utterances(clips, "frame_labels", frames, by_time=by_time)
        assert sum(len(each) for each in found.targets) == sum(
            frames.lengths(clips.lengths)
        )
