"""What sides of a figure may have in common, wherever that is asked."""

import dataclasses
import itertools
import json

import keras
import numpy as np
import pytest
from corpus_files import write_audio, write_csv

if keras.backend.backend() != "tensorflow":
    pytest.skip("audio is read through tf.data", allow_module_level=True)

from backbone_cases import RATE_HZ, speech_encoder

from audio_tf import data
from audio_tf.corpora import Corpus, load_corpus
from audio_tf.runs import (
    corpus_records,
    emotion,
    evaluate,
    folds,
    heard,
)
from audio_tf.runs.corpus_settings import DataSettings
from audio_tf.runs.heard import Heard
from audio_tf.runs.leakage import (
    MODEL,
    PRETRAINING,
    SIDES,
    TEACHERS,
    Leakage,
)

SPLITS = ("train", "val", "test")
BESIDE = ("unlabelled", "noise")


def test_who_may_have_what_in_common_is_one_table():
    """By the sentences of the documentation, one after the other."""
    assert set(SIDES) == {*BESIDE, "model", "teachers", "pretraining"}
    for official, asked in itertools.product((True, False), repeat=2):
        leakage = Leakage(official, asked)
        for sides in (*itertools.combinations(SPLITS, 2), ("03", "08")):
            assert leakage.allows(sides) == (official or asked)
        for split in ("val", "test"):
            for beside in BESIDE:
                assert leakage.allows((split, beside)) == asked
            assert leakage.allows((MODEL, split)) == asked
            assert leakage.allows((TEACHERS, split)) is False
            assert leakage.allows((PRETRAINING, split)) is True


@pytest.mark.parametrize("beside", BESIDE)
def test_audio_beside_a_corpus_is_none_that_is_scored(beside, tmp_path):
    clips = decoded(tmp_path, {"train": [1, 2], "test": [3], beside: [2, 4]})
    assert Leakage(False, False).of_audio(clips) == []
    clips |= decoded(tmp_path, {beside: [3, 4]})
    for official in (True, False):
        message = f"--{beside} must not hold clips that are scored; --other-sp"
        with pytest.raises(ValueError, match=message):
            Leakage(official, False).of_audio(clips)
    (found,) = Leakage(False, True).of_audio(clips)
    assert set(found.splits) == {"test", beside}


def decoded(folder, sounds):
    """`Clips` by split of sounds by number; a number is one sound.

    Args:
        folder: where files and the cache are.
        sounds: dict by split of a list of int.
    """
    splits = {}
    for split, numbers in sounds.items():
        files = [
            write_audio(folder / split / f"{row}.wav", 300, RATE_HZ, number)
            for row, number in enumerate(numbers)
        ]
        corpus = corpus_of(files)
        cache = folder / "cache"
        splits[split] = data.prepare(corpus, RATE_HZ, cache, progress=False)
    return splits


def corpus_of(files, **sources):
    return Corpus([*map(str, files)], [["a"]] * len(files), ["a"], **sources)


@pytest.mark.parametrize("side", [MODEL, TEACHERS])
def test_what_the_training_split_has_too_is_the_splits_own_matter(
    side, tmp_path, capsys
):
    """Official splits may share sound: whoever trains on them has heard it."""
    clips = decoded(tmp_path, {"train": [1, 2], "val": [3], "test": [4, 2]})
    leakage = Leakage(True, False)
    (own,) = leakage.of_audio(clips)
    assert own.splits == ("train", "test") and own.clips == 1
    marks = clips["train"].marks
    assert leakage.of_model(side, "preset", Heard(marks), clips) == []
    # What it has heard elsewhere is another matter.
    for split, number in (("val", 0), ("test", 0)):
        more = np.append(marks, clips[split].marks[number])
        message = f"--{side} preset must not have.*1 of {split}, such as .*0.wa"
        with pytest.raises(ValueError, match=message) as error:
            leakage.of_model(side, "preset", Heard(more), clips)
        assert ("--other-splits" in str(error.value)) == (side == MODEL)
    assert leakage.of_model(side, "preset", Heard(), clips) == []
    asked = Leakage(True, True)
    if side == MODEL:
        (found,) = asked.of_model(side, "preset", Heard(more), clips)
        assert found.splits == (MODEL, "test") and found.clips == 1
        assert "on both sides: " in capsys.readouterr().out
    else:
        with pytest.raises(ValueError, match="--teachers preset"):
            asked.of_model(side, "preset", Heard(more), clips)


@pytest.fixture
def official(tmp_path):
    """A corpus of official splits; sound 1 is in train and in the test."""
    for split, sounds in (("train", [1, 2]), ("val", [3]), ("test", [4, 1])):
        text = "file,class\n"
        for number in sounds:
            name = f"dataset/go/{split}{number}_NO_01.wav"
            write_audio(tmp_path / name, 300, RATE_HZ, number)
            text += f"{name},go\n"
        write_csv(tmp_path, text, f"{split}.csv")
    return {
        "dataset": "arabic_speech_commands",
        "data_dir": str(tmp_path),
        "cache_dir": str(tmp_path / "cache"),
    }


def test_official_splits_are_evaluated_as_they_were_trained_on(
    official, tmp_path
):
    """Training counts what they share, and so does who scores its model."""
    settings = DataSettings(**official)
    corpora = settings.load()
    arguments = settings.prepare_arguments()
    trained, held = (
        data.prepare(corpora[split], RATE_HZ, progress=False, **arguments)
        for split in ("train", "val")
    )
    preset = tmp_path / "preset"
    preset.mkdir()

    def scored(split="test", settings=settings):
        asked = settings, str(preset), corpora, split, RATE_HZ
        return evaluate.decode_unheard(*asked)[1:]

    heard.write(preset, [Heard(trained.marks)])
    (leak,), known = scored()
    assert leak.splits == ("train", "test") and known == leak.clips == 1
    assert leak.files == (corpora["train"].files[0], corpora["test"].files[1])
    assert scored("val") == ([], 0) and scored("train") == ([], 2)
    # Marks of samples that another decoder has made tell nothing of these.
    origin = {"settings": {"dataset": "csv", "decoder": "tfio"}}
    (preset / "provenance.json").write_text(json.dumps(origin))
    assert scored("val") == ([], None) and scored("train") == ([], 2)
    (preset / "provenance.json").unlink()
    heard.write(preset, [Heard(trained.marks), Heard(held.marks)])
    assert len(scored()[0]) == 1
    with pytest.raises(ValueError, match="1 of val, such as .*val3_NO"):
        scored("val")
    asked = settings.replace(other_splits=True)
    (leak,), known = scored("val", asked)
    assert leak.splits == (MODEL, "val") and known == 1
    # Without a training split nobody knows why it was heard.
    corpora["train"] = corpora["train"].select([])
    with pytest.raises(ValueError, match="1 of test, such as .*test1_NO"):
        scored()


def known_by_name(folder, official, corpora, **more):
    """Writes a preset that knows what it has heard by its list alone.

    Args:
        folder: where it is.
        official: dict that the fixture has returned.
        corpora: dict of `Corpus` by split; it was trained on `train`.
        **more: what else its provenance says, or says otherwise.

    Returns:
        `pathlib.Path` of the preset.
    """
    root = DataSettings(**official).file_root()
    record = corpus_records.make({"train": corpora["train"]}, root)
    origin = {
        "settings": official,
        "given": list(official),
        "corpus": corpus_records.summary(record),
        **more,
    }
    preset = folder / "preset"
    preset.mkdir(exist_ok=True)
    (preset / "provenance.json").write_text(json.dumps(origin))
    return preset


def test_what_a_model_without_marks_has_heard_is_known_by_name(
    official, tmp_path
):
    """Wherever it is scored, as of formats that are compared."""
    settings = DataSettings(**official)
    corpora = settings.load()
    preset = known_by_name(tmp_path, official, corpora)
    corpora["test"] = corpora["train"]
    asked = str(preset), corpora, "test", RATE_HZ
    with pytest.raises(ValueError, match="2 of test, such as .*train1_NO"):
        evaluate.decode_unheard(settings, *asked)
    settings = settings.replace(other_splits=True)
    # Of a decoder with other samples, marks tell nothing of these clips.
    for _ in range(2):
        _, (leak,), known = evaluate.decode_unheard(settings, *asked)
        assert leak.splits == (MODEL, "test") and known == leak.clips == 2
        np.save(preset / heard.FILE, np.array([7], "uint64"))


def test_of_what_was_beside_a_corpus_its_list_tells_nothing(official, tmp_path):
    """No clip by name is none at all only where nothing else was heard."""
    settings = DataSettings(**official)
    corpora = settings.load()

    def counted(**more):
        said = {**official, **more.pop("settings", {})}
        # Of a command that reads this corpus where none is named.
        more = {"settings": said, "given": [], **more}
        preset = known_by_name(tmp_path, official, corpora, **more)
        asked = str(preset), corpora, "val", RATE_HZ
        return evaluate.decode_unheard(settings, *asked)[2]

    earlier = {"preset": "p", "dataset": "csv", "command": "audio-tf train"}
    more = [
        {"settings": {"teachers": ["gone"]}},
        *({"settings": {name: ["audio"]}} for name in BESIDE),
        {"built_on": [earlier]},
    ]
    assert counted() == 0
    for each in more:
        assert counted(**each) is None
    # Marks are of all that was heard.
    np.save(tmp_path / "preset" / heard.FILE, np.array([7], "uint64"))
    for each in more:
        assert counted(**each) == 0


def test_names_of_another_corpus_are_not_what_a_teacher_has_heard(
    official, tmp_path
):
    """Numbers for names, and equal lengths: marks tell them apart."""
    settings = DataSettings(**official)
    corpora = settings.load()
    record = corpus_records.make(corpora, settings.file_root())
    splits = record["splits"]
    preset = tmp_path / "teacher" / "preset"
    preset.mkdir(parents=True)
    (preset / "task.json").touch()
    learned = preset.parent / "corpus.json"
    other = {"other.wav": [7, "go"], **splits["test"]}
    learned.write_text(json.dumps({"splits": {"train": other}}))
    leakage = settings.leakage()

    def of_list():
        asked = str(preset), heard.read(preset), corpora, record
        return leakage.of_list(TEACHERS, *asked)

    refused = "2 of test, such as .*/dataset/go/test4"
    with pytest.raises(ValueError, match=refused):
        of_list()
    np.save(preset / heard.FILE, np.array([7], "uint64"))
    assert of_list() == []
    learned.write_text(json.dumps({"splits": {"train": splits["test"]}}))
    with pytest.raises(ValueError, match=refused):
        of_list()


def test_an_encoder_of_folds_has_heard_none_of_their_clips(
    tmp_path, refusal, monkeypatch
):
    """A preset of a training may have learned the labels of whoever is left
    out."""
    for speaker in ("03", "08", "16"):
        for number, text in enumerate(("a01Wa", "a01Na")):
            write_audio(
                tmp_path / "wav" / f"{speaker}{text}.wav",
                500,
                RATE_HZ,
                int(speaker) + number,
            )
    preset = tmp_path / "preset"
    speech_encoder(num_layers=3).save_to_preset(str(preset))
    corpus = DataSettings(dataset="emodb", data_dir=str(tmp_path)).load()
    clips = data.prepare(
        corpus["train"].select([1]), RATE_HZ, tmp_path / "c", progress=False
    )
    heard.write(preset, [Heard(clips.marks)])
    run = ["emotion", "--model", preset, "--data-dir", tmp_path]
    run += ["--chunk-s", 0.2, "--filters", 2, "--out", tmp_path / "run"]
    line = refusal(*run)
    assert f"--model {preset} must not have learned from clips that" in line
    assert "1 of group 03, such as" in line
    assert "--other-splits allows that" in line
    # Allowed, it goes on to the features.
    monkeypatch.setattr(data, "cache_features", None)
    assert "not callable" in refusal(*run, "--other-splits")


def test_groups_that_are_left_out_do_not_depend_on_splits(capsys):
    splits = {
        split: corpus_of([file], sources=["jo"], source_kind="speaker")
        for split, file in (("train", "a.wav"), ("test", "b.wav"))
    }
    for protocol, said in (("splits", True), ("leave_one_out", False)):
        settings = emotion.EmotionSettings(
            model="m", dataset="fsdd", protocol=protocol, other_splits=True
        )
        settings.check_sources(splits)
        assert ("on both sides: a.wav" in capsys.readouterr().out) is said


def test_what_a_pretraining_has_heard_is_counted_alone(tmp_path, capsys):
    """It was told no label: a figure of its clips says so, and is one."""
    clips = decoded(tmp_path, {"train": [1, 2], "val": [3], "test": [4, 2, 5]})
    marks = [np.append(clips[split].marks, 7) for split in ("train", "test")]
    known = Heard(None, np.concatenate(marks).astype("uint64"))
    for official, asked in itertools.product((True, False), repeat=2):
        (leak,) = Leakage(official, asked).of_model(
            TEACHERS, "preset", known, clips
        )
        # The splits' own matter is what the training split has, too.
        assert leak.splits == (PRETRAINING, "test") and leak.clips == 2
        assert leak.files == (clips["test"].corpus.files[0],) * 2
    assert "0.wav in pretraining and " in capsys.readouterr().out
    # What was learned with its label is refused as that, and told once.
    known = known._replace(learned=clips["test"].marks[:1])
    with pytest.raises(ValueError, match="--model preset must not .*1 of test"):
        Leakage(False, False).of_model(MODEL, "preset", known, clips)
    found = Leakage(False, True).of_model(MODEL, "preset", known, clips)
    assert [(leak.splits[0], leak.clips) for leak in found] == [
        (MODEL, 1),
        (PRETRAINING, 1),
    ]


def test_a_model_is_scored_on_what_its_pretraining_has_heard(
    official, tmp_path
):
    settings = DataSettings(**official)
    corpora = settings.load()
    val = data.prepare(
        corpora["val"], RATE_HZ, progress=False, **settings.prepare_arguments()
    )
    preset = tmp_path / "preset"
    preset.mkdir()
    heard.write(preset, [Heard(pretrained=val.marks)])
    for learned in (None, np.array([7], "uint64")):
        heard.write(preset, [Heard(learned)])
        asked = str(preset), corpora, "val", RATE_HZ
        _, (leak,), known = evaluate.decode_unheard(settings, *asked)
        assert leak.splits == (PRETRAINING, "val") and leak.clips == 1
        # None was learned from, as far as the model says anything of that.
        assert known == (None if learned is None else 0)
    asked = str(preset), corpora, "train", RATE_HZ
    assert evaluate.decode_unheard(settings, *asked)[1] == []


@pytest.mark.parametrize("name", ["train", "test", "noise", "model"])
def test_a_group_may_be_called_as_a_split_or_a_flag_is(name, tmp_path):
    clips = decoded(tmp_path, {"all": [1, 2, 1]})["all"]
    groups = ["unlabelled", "jo", name]
    corpus = dataclasses.replace(clips.corpus, groups=groups)
    sides = folds.by_side(clips, folds.named_groups(corpus))
    message = "0.wav in group unlabelled and .*2.wav in group .*--other-splits"
    with pytest.raises(ValueError, match=message):
        Leakage(False, False).of_audio(sides)
    (leak,) = Leakage(False, True).of_audio(sides)
    assert leak.splits == ("group unlabelled", f"group {name}")
    known = Heard(clips.marks[1:2])
    (leak,) = Leakage(False, True).of_model(MODEL, "p", known, sides, sides)
    assert leak.splits == (MODEL, "group jo")


def test_a_release_knows_its_clips_again(shared_data, tmp_path):
    """They are resampled here, and were on another kind of processor there."""
    folds = {"train": [1, 2, 3, 4], "val": [], "test": []}
    corpora = load_corpus("esc10", shared_data / "esc10", folds=folds)
    clips = data.prepare(
        corpora["train"].select(range(0, 60, 3)),
        16_000,
        tmp_path / "cache",
        progress=False,
    )
    marks = heard.read("audio_transformer_esc10").learned
    assert heard.find(marks, clips) == clips.corpus.files
