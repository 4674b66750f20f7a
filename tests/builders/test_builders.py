"""Corpora built for TFDS: read by TFDS alone, resumed, refused."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import warnings

import numpy as np
import pytest
import soundfile
import tiny
from releases import RELEASES, write_clip, write_esc
from zip_parts import write_parts

from audio_tf import builders, corpora, data, files
from audio_tf.audio import packed
from audio_tf.builders import records, shards
from audio_tf.builders.records import AudioFormat
from audio_tf.builders.release import Clip
from audio_tf.cli import main
from audio_tf.runs import corpus_records, corpus_settings

tfds = pytest.importorskip(
    "tensorflow_datasets", reason="NO BUILDER IS TESTED: no TFDS"
)

# Most of what is built here is a part of a release.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*the build is a part of the release"
)

DATASETS = pathlib.Path(__file__).resolve().parents[2] / "datasets"


def make(name, source, data_dir, **kwargs):
    """A builder of a small part of a release."""
    name, _, config = name.partition("/")
    kwargs = {"partial": True, "progress": False, "workers": 2, **kwargs}
    return builders.find(name)(
        source=source, data_dir=data_dir, config=config or None, **kwargs
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Dict by name of the release's folder, TFDS' folder and the builder."""
    root = tmp_path_factory.mktemp("built")
    found = {}
    for name, write in RELEASES.items():
        source = write(root / "releases" / name)
        builder = make(name, source, root / "tfds", shard_bytes=400)
        builder.download_and_prepare()
        found[name] = source, root / "tfds", builder
    return found


def contents(folder):
    """Dict by relative path of the bytes of all files of a build."""
    folder = pathlib.Path(folder)
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_every_builder_is_tested():
    assert {name.split("/")[0] for name in RELEASES} == {*builders.BUILDERS}


QUICK = ("esc/esc50", "fsdd/speakers")


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in RELEASES
    ],
)
def test_tfds_reads_each_sample_of_the_source(built, name):
    source, data_dir, builder = built[name]
    seen = set()
    for split in builder.info.splits:
        dataset = tfds.load(name, split=split, data_dir=data_dir)
        for example in dataset.as_numpy_iterator():
            file = example["file"].decode()
            audio, rate_hz = soundfile.read(source / file, dtype="int16")
            np.testing.assert_array_equal(example["audio"], audio)
            assert example["audio"].dtype == np.int16
            assert rate_hz == builder.info.features["audio"].sample_rate
            seen.add(file)
    listed = {clip.name for clip in builder.release.clips()}
    assert seen == listed and len(seen) > 2
    assert sum(builder.verify().values()) == len(seen)
    assert not list(data_dir.rglob(".*pieces")), "what was kept is gone"


def test_labels_and_splits_are_those_of_the_lists(built):
    _, data_dir, builder = built["esc/esc50"]
    assert {
        split: info.num_examples for split, info in builder.info.splits.items()
    } == {"fold1": 3, "fold2": 2, "fold4": 2}
    label = builder.info.features["label"]
    for example in builder.as_dataset(split="fold1+fold4").as_numpy_iterator():
        fold, number, _ = example["file"].decode()[6:].split("-")
        assert (
            label.int2str(example["label"]) == ("rain", "dog")[int(number) % 2]
        )
        assert example["fold"] == int(fold)
    ten = built["esc/esc10"][2].info.splits
    assert [ten[split].num_examples for split in ten] == [1, 1, 1]
    _, _, digits = built["fsdd/official"]
    assert digits.info.splits["test"].num_examples == 2
    who = built["fsdd/speakers"][2]
    for example in who.as_dataset(split="theo").as_numpy_iterator():
        speaker = who.info.features["speaker"].int2str(example["speaker"])
        digit = who.info.features["digit"].int2str(example["digit"])
        name = f"recordings/{digit}_{speaker}_{example['index']}.wav"
        assert speaker == "theo" and example["file"].decode() == name
    assert not json.loads(
        (pathlib.Path(who.data_dir) / "build.json").read_text()
    )["complete"]


@pytest.mark.parametrize(
    "name, dataset, options",
    [
        (
            "esc/esc50",
            "esc50",
            {"folds": {"train": [1], "val": [2], "test": [4]}},
        ),
        ("fsdd/speakers", "fsdd", {"classes": "speakers"}),
        pytest.param(
            "arabic_speech_commands",
            "arabic_speech_commands",
            {},
            marks=pytest.mark.slow,
        ),
        pytest.param("fsd50k", "fsd50k", {}, marks=pytest.mark.slow),
        (
            "librispeech_phones/subsets",
            "librispeech",
            {"task": "speaker", "split": "train-clean-100"},
        ),
        pytest.param(
            "librispeech_phones/cpc",
            "librispeech",
            {"task": "phones", "split": "train-clean-100"},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "iemocap",
            "iemocap",
            {"folds": {"train": [1], "val": [], "test": [5]}},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_load_gives_the_same_from_the_release_and_from_the_build(
    built, name, dataset, options, tmp_path
):
    source, data_dir, builder = built[name]
    kwargs = {"cache_dir": tmp_path, "progress": False, "with_info": True}
    kwargs |= {"split": "train", **options}
    places = [
        (source, {}),
        (builder.data_dir, {}),
        (dataset, {"data_dir": data_dir}),
    ]
    found = []
    for place, more in places:
        elements, clips = data.load(place, **kwargs, **more)
        found.append(
            (
                list(elements.as_numpy_iterator()),
                clips.sizes.tolist(),
                clips.checksums.tolist(),
                [pathlib.Path(file).name for file in clips.corpus.files],
            )
        )
    for elements, *facts in found[1:]:
        assert facts == list(found[0][1:])
        for one, two in zip(elements, found[0][0], strict=True):
            np.testing.assert_array_equal(one[0], two[0])
            np.testing.assert_array_equal(one[1], two[1])
    raw = data.load(source, **{**kwargs, "task": "audio"})[0]
    assert len(list(raw)) == len(found[0][0])


def test_load_leaves_out_the_same_clips_without_phones_of_a_build(tmp_path):
    source = RELEASES["fsdd/official"](tmp_path / "fsdd")
    lines = ["0_jackson_0 0 1\n", "0_theo_19 1 1\n"]
    (source / "converted_aligned_phones.txt").write_text("".join(lines))
    (source / "phones.txt").write_text("SIL 0\nAH 1\n")
    builder = make("fsdd/official", source, tmp_path / "tfds")
    builder.download_and_prepare(
        # The command of TFDS names it, whatever is built.
        download_config=tfds.download.DownloadConfig(manual_dir=tmp_path)
    )
    for place in (source, builder.data_dir):
        with pytest.warns(RuntimeWarning, match="1 of 3 clips .*_jackson_12"):
            elements = data.load(
                place,
                task="phones",
                splits={"train": [0, 12, 19], "test": [4, 5]},
                cache_dir=tmp_path / "cache",
                progress=False,
            )
        found = [phones.tolist() for _, phones in elements.as_numpy_iterator()]
        assert found == [[0, 1], [1, 1]]


@pytest.mark.parametrize(
    "name, folder, split, options",
    [
        ("fsdd/official", "recordings", "test", {}),
        (
            "esc/esc50",
            "audio",
            "train",
            {"folds": {"train": [1], "val": [2], "test": [4]}},
        ),
    ],
)
def test_load_tells_of_the_clips_that_a_build_was_made_without(
    name, folder, split, options, tmp_path
):
    """A folder of recordings has no list that would tell, one of ESC has."""
    source = RELEASES[name](tmp_path / "release")
    bad = sorted((source / folder).iterdir())[0]
    bad.write_bytes(b"no audio")
    builder = make(name, source, tmp_path / "tfds", skip_bad=True)
    builder.download_and_prepare()
    options = {
        **options,
        "cache_dir": tmp_path / "cache",
        "progress": False,
    }
    for place in (source, builder.data_dir):
        with pytest.warns(RuntimeWarning, match=bad.name) as told:
            data.load(place, split, **options)
        others = [each for each in told if "a part of" not in str(each.message)]
        assert len(others) == 1
        with pytest.raises(ValueError, match=bad.name):
            data.load(place, split, strict=True, **options)


def test_a_release_that_changes_while_it_is_built_is_told(
    tmp_path, monkeypatch
):
    """A label in the list beside the records would be none of theirs."""
    source = RELEASES["esc/esc50"](tmp_path / "release")
    [path] = source.rglob("*.csv")
    clip = sorted((source / "audio").iterdir())[0]
    text = path.read_text()

    def change_list():
        path.write_text(text.replace("rain", "sun"))

    def change_clip():
        clip.write_bytes(sorted((source / "audio").iterdir())[1].read_bytes())
        os.utime(clip, ns=(0, 0))

    for change, changed in (
        (change_list, path),
        (change_clip, clip),
        (clip.unlink, clip),
    ):
        kept = clip.read_bytes()
        builder = make("esc/esc50", source, tmp_path / "tfds")
        write = builder.write

        def write_and_change(*args, write=write, change=change):
            planned = write(*args)
            change()
            return planned

        monkeypatch.setattr(builder, "write", write_and_change)
        with pytest.raises(ValueError, match="1 files have changed") as caught:
            builder.download_and_prepare()
        assert changed.relative_to(source).as_posix() in str(caught.value)
        assert not pathlib.Path(builder.data_dir).exists()
        path.write_text(text)
        clip.write_bytes(kept)
    builder = make("esc/esc50", source, tmp_path / "tfds")
    builder.download_and_prepare()
    assert sum(builder.verify().values()) == len(builder.release.clips())


@pytest.mark.parametrize("name", ["esc/esc50", "fsdd/official"])
def test_a_name_that_is_not_utf8_is_told(name, tmp_path):
    """TFDS keeps text as UTF-8; nothing is built then."""
    source = RELEASES[name](tmp_path / "release")
    clip = sorted(source.rglob("*.wav"))[0]
    mark = "_" if name.startswith("fsdd") else "-"
    odd = clip.with_name(clip.name.replace(mark, f"{mark}\udce9", 1))
    if name.startswith("esc"):
        [path] = source.rglob("*.csv")
        text = path.read_text().replace(clip.name, odd.name)
        path.write_text(text, errors="surrogateescape")
    clip.rename(odd)
    with pytest.raises(ValueError, match="clip: must be UTF-8.*which may be"):
        make(name, source, tmp_path / "tfds").download_and_prepare()


def test_a_build_that_another_process_has_ended_is_taken(tmp_path, monkeypatch):
    """It ends between the look at what is there and the lock."""
    source = RELEASES["fsdd/official"](tmp_path / "release")
    other, builder = (
        make("fsdd/official", source, tmp_path / "tfds") for _ in range(2)
    )
    only_one = files.only_one

    def late(*args):
        monkeypatch.setattr(files, "only_one", only_one)
        other.download_and_prepare()
        return only_one(*args)

    monkeypatch.setattr(files, "only_one", late)
    builder.download_and_prepare()
    assert builder.verify() == other.verify()


def test_load_tells_of_a_build_of_a_part(built, tmp_path):
    """What is not there may be what was meant: with `strict`, too, it loads."""
    source, _, builder = built["fsdd/official"]
    options = {"cache_dir": tmp_path / "cache", "progress": False}
    whole = shutil.copytree(builder.data_dir, tmp_path / "whole")
    facts = json.loads((whole / "build.json").read_text())
    facts |= {"complete": True, "part": False}
    (whole / "build.json").write_text(json.dumps(facts))
    for place, expected in (source, 0), (whole, 0), (builder.data_dir, 1):
        for strict in (False, True):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", RuntimeWarning)
                data.load(place, "train", strict=strict, **options)
            found = [
                str(each.message)
                for each in told
                if "the build is a part of the release" in str(each.message)
            ]
            assert len(found) == expected
            assert all(str(builder.data_dir) in text for text in found)


def test_a_run_records_the_same_corpus(built):
    """Names, sizes and labels, whether of the release or of the build."""
    records = []
    source, data_dir, builder = built["esc/esc50"]
    for place in (source, builder.data_dir, data_dir):
        settings = corpus_settings.DataSettings(
            dataset="esc50",
            data_dir=str(place),
            train_folds=[1],
            val_folds=[2],
            test_folds=[4],
            other_splits=True,
        )
        root = settings.file_root()
        warned = contextlib.nullcontext()
        if place != source:
            warned = pytest.warns(RuntimeWarning, match="is not complete")
        with warned:
            records.append(corpus_records.make(settings.load(), root))
    assert records[1:] == records[:1] * 2
    assert records[0]["splits"]["val"]["audio/2-3-A.wav"] == [472, "dog"]


def warned_of_parts(run):
    """Runs something; returns its texts of warnings of incomplete builds."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return [
        str(each.message)
        for each in found
        if "the build is not complete" in str(each.message)
    ]


@pytest.mark.costly
def test_results_say_whether_the_build_was_complete(
    built, tmp_path, monkeypatch, eager_models, no_pictures
):
    """`train`, `evaluate` and `baseline`, each of which warns once."""
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "cache"))
    source, _, builder = built["fsdd/official"]
    part = {
        "dataset": "fsdd",
        "config": "official",
        "version": "1.0.0",
        "complete": False,
        "part": True,
        "left_out": 0,
    }
    kwargs = {**tiny.SIZES, "frontend_filters": 16, "sample_rate_hz": 8_000}
    train = ["--recipe", "paper", "--model-kwargs", json.dumps(kwargs)]
    train += ["--epochs", "1", "--batch-size", "2", "--chunk-s", "0.1"]
    # One clip of validation tells no epochs apart by its mAP.
    train += ["--monitor", "val_loss"]
    for place, expected in ((source, None), (builder.data_dir, part)):
        out = tmp_path / ("release" if expected is None else "build")
        corpus = ["--dataset", "fsdd", "--data-dir", str(place)]
        for command in (
            ["train", *corpus, *train, "--out", str(out)],
            ["evaluate", *corpus, "--model", str(out / "preset")]
            + ["--report", str(out / "evaluate.json")],
            ["baseline", *corpus, "--sample-rate-hz", "8000", "--trees", "2"]
            + ["--seeds", "0", "--report", str(out / "baseline.json")],
        ):
            found = warned_of_parts(lambda command=command: main(command))
            assert len(found) == (expected is not None), command
            for text in found:
                assert "it is a part of the release. Figures" in text
        reports = ("test", "evaluate", "baseline", "preset/provenance")
        for name in reports:
            report = json.loads((out / f"{name}.json").read_text())
            assert report["build"] == expected, name


def test_a_build_says_why_it_is_not_complete(built, tmp_path):
    folder = shutil.copytree(built["fsdd/official"][2].data_dir, tmp_path / "b")
    facts = json.loads((folder / "build.json").read_text())
    settings = corpus_settings.DataSettings(
        dataset="fsdd", data_dir=str(folder)
    )
    bad = {"complete": False, "left_out": {"a.wav": "cut off", "b.wav": "no"}}
    for said, reason in (
        ({"complete": True, "part": False}, None),
        ({**bad, "part": False}, "complete: 2 clips were left out."),
        ({**bad, "part": True}, "of the release and 2 clips were left out."),
        # As older builds have it.
        ({**bad, "part": None}, "of the release and 2 clips were left out."),
    ):
        now = {**facts, **said}
        if now["part"] is None:
            del now["part"]
        (folder / "build.json").write_text(json.dumps(now))
        packed._open_build.cache_clear()
        found = warned_of_parts(settings.load)
        assert len(found) == (reason is not None)
        assert reason is None or reason in found[0]
        assert settings.build_facts()["complete"] is said["complete"]


def test_a_build_of_its_own_comes_before_a_part(built):
    """ESC-10 may be read out of ESC-50, but not where it was built."""
    data_dir = built["esc/esc10"][1]
    found = {
        name: packed.find_build(data_dir, name).parent.name
        for name in ("esc10", "esc50", "fsdd")
    }
    assert found == {"esc10": "esc10", "esc50": "esc50", "fsdd": "official"}
    esc50 = built["esc/esc50"][2].data_dir
    assert packed.find_build(esc50, "esc10") == pathlib.Path(esc50)
    assert packed.find_build(esc50, "fsdd") is None


def test_folders_that_are_called_as_those_of_a_build_are_none(tmp_path):
    file = tmp_path / "release" / "dog" / "a.wav"
    file.parent.mkdir(parents=True)
    file.touch()
    (tmp_path / "clips.csv").write_text("path,sentence\n")
    found = corpora.read_folders(tmp_path / "release")
    assert found["train"].files == [file]
    (tmp_path / "clips.csv").unlink()
    (tmp_path / "build.json").write_text('{"version": "2.0.0"}')
    assert packed.find_build(tmp_path) is None


def test_archives_in_parts_are_read_in_place(built, tmp_path):
    """The same files come of FSD50K's archives, as downloaded, and folders."""
    source, _, whole = built["fsd50k"]
    for name in ("dev_audio", "eval_audio", "ground_truth", "metadata"):
        folder = f"FSD50K.{name}"
        write_parts(
            tmp_path,
            folder,
            900 if name == "dev_audio" else 2**20,
            {
                file.relative_to(source).as_posix(): file.read_bytes()
                for file in sorted((source / folder).iterdir())
            },
        )
    assert (tmp_path / "FSD50K.dev_audio.z01").is_file()
    assert not (tmp_path / "FSD50K.dev_audio").exists()
    builder = make("fsd50k", tmp_path, tmp_path / "to", shard_bytes=400)
    builder.download_and_prepare()
    assert contents(builder.data_dir) == contents(whole.data_dir)
    kwargs = {"split": "val", "cache_dir": tmp_path, "progress": False}
    for place in (tmp_path, source):
        [(waveform, targets)] = data.load(place, **kwargs)
        assert len(waveform) == 212 and targets.numpy().tolist() == [1, 1, 0, 0]
    # A release that is not a part is compared with the published checksums.
    wrong = make("fsd50k", tmp_path, tmp_path / "no", partial=False)
    wrong.counts = lambda: {"train": 2, "val": 1, "test": 2}
    with pytest.raises(ValueError, match="dev_audio.z01: cut off, damaged"):
        wrong.download_and_prepare()
    (tmp_path / "FSD50K.dev_audio.z01").write_bytes(b"PK")
    with pytest.raises(
        ValueError, match="dev_audio.z01: .* cut off or damaged"
    ):
        make("fsd50k", tmp_path, tmp_path / "no").download_and_prepare()


def test_what_is_beside_the_audio(built):
    fsd = built["fsd50k"][2]
    names = fsd.info.features["labels"].feature.names
    [example] = fsd.as_dataset(split="val").as_numpy_iterator()
    assert [names[row] for row in example["labels"]] == ["Bark", "Dog"]
    assert (example["clip"], example["uploader"]) == (b"64761", b"")
    uploaders = {
        example["clip"]: (example["uploader"], example["licence"])
        for example in fsd.as_dataset(split="train").as_numpy_iterator()
    }
    assert uploaders == {b"64760": (b"ann", b"CC0"), b"64762": (b"", b"")}
    speech = built["librispeech_phones/cpc"][2]
    [example] = speech.as_dataset(split="test").as_numpy_iterator()
    assert example["utterance"] == b"5-11-0001"
    assert example["phones"].tolist() == [1, 0, 40]
    assert speech.info.features["speaker"].int2str(example["speaker"]) == "5"
    subsets = built["librispeech_phones/subsets"][2]
    [example] = subsets.as_dataset(split="dev_clean").as_numpy_iterator()
    assert example["phones"].tolist() == []
    acted = built["iemocap"][2]
    found = {
        example["file"].decode()[-8:-4]: (
            acted.info.features["label"].int2str(example["label"]),
            example["session"],
            example["speaker"],
        )
        for example in acted.as_dataset(split="session5").as_numpy_iterator()
    }
    assert found == {
        "F000": ("neutral", 5, b"5F"),
        "M000": ("happiness", 5, b"5M"),
        "MXX1": ("anger", 5, b"5M"),
    }


def test_utterances_without_phones_are_built_and_counted(tmp_path, capsys):
    """And what CPC's lists and folders leave out, which is not built."""
    source = RELEASES["librispeech_phones/cpc"](tmp_path / "release")
    folder = source / "LibriSpeech" / "train-clean-100"
    for name in ("5/11/5-11-0007", "5/11/13-17-0009"):
        write_clip(folder / f"{name}.flac", 9, 16_000)
    alignment = source / "converted_aligned_phones.txt"
    lines = alignment.read_text().splitlines(keepends=True)
    gone = [f"gone-{number} 0 1\n" for number in range(7)]
    # Of 13-17-0000 there are none.
    alignment.write_text("".join([*lines[:2], *gone]))
    flags = ["--source", source, "--data-dir", tmp_path / "to", "--partial"]
    expected = {
        "cpc": {
            "files not named by their folders": [
                "train-clean-100/5/11/13-17-0009.flac"
            ],
            "labels without audio": [f"gone-{n}" for n in range(7)],
            "utterances in no list": ["5-11-0007"],
            "utterances of train without phones": ["13-17-0000"],
        },
        "subsets": {
            "files not named by their folders": [
                "train-clean-100/5/11/13-17-0009.flac"
            ],
            "utterances of train_clean_100 without phones": [
                "13-17-0000",
                "5-11-0007",
            ],
            "utterances of dev_clean without phones": ["7-19-0000"],
        },
    }
    for config, found in expected.items():
        assert main(["build", f"librispeech_phones/{config}", *flags]) == 0
        printed = capsys.readouterr().out
        build = tmp_path / "to" / "librispeech_phones" / config / "1.0.0"
        facts = json.loads((build / "build.json").read_text())
        assert facts["report"] == {
            what: {"count": len(names), "first": names[:5]}
            for what, names in found.items()
        }
        for what, names in found.items():
            more = " and 2 more" if len(names) > 5 else ""
            shown = ", ".join(names[:5])
            assert f"{len(names)} {what}: {shown}{more}\n" in printed
    examples = tfds.load(
        "librispeech_phones/cpc", split="train", data_dir=tmp_path / "to"
    ).as_numpy_iterator()
    examples = {example["utterance"]: example for example in examples}
    assert examples.keys() == {b"5-11-0000", b"13-17-0000"}
    example = examples[b"13-17-0000"]
    assert example["phones"].tolist() == [] and len(example["audio"])


@pytest.mark.parametrize(
    "change, message",
    [
        (("dev", '64761,"Bark,Dog"', "64761,Barc"), "did you mean 'Bark'"),
        (("dev", "64761,", "64760,"), "64760.wav is listed twice"),
        (("eval", "64764,Rain,", "64764,Rain,x,"), "too many fields"),
        (("eval", "64764,", "64760,"), "row 3: .* '64760', .*dev.csv, row 2"),
        (("eval", "64764,", "64769,"), "1 of 5 clips .*64769.wav"),
    ],
)
def test_lists_of_fsd50k_that_do_not_fit(tmp_path, change, message):
    source = RELEASES["fsd50k"](tmp_path / "fsd50k")
    name, old, new = change
    path = source / "FSD50K.ground_truth" / f"{name}.csv"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=message):
        make("fsd50k", source, tmp_path / "to").download_and_prepare()


def test_a_folder_that_is_not_there_can_be_left_out(tmp_path):
    """As of who has the archives of dev alone."""
    source, to = RELEASES["fsd50k"](tmp_path / "fsd50k"), tmp_path / "to"
    shutil.rmtree(source / "FSD50K.eval_audio")
    with pytest.raises(ValueError, match="2 of 5 clips .*--skip-bad leaves"):
        make("fsd50k", source, to).download_and_prepare()
    builder = make("fsd50k", source, to, skip_bad=True)
    builder.download_and_prepare()
    assert builder.verify() == {"train": 2, "val": 1}
    facts = packed.read_facts(pathlib.Path(builder.data_dir))
    assert facts["left_out"] == {
        f"FSD50K.eval_audio/{clip}.wav": "no such file"
        for clip in (64763, 64764)
    }


def test_a_row_too_many_is_counted(tmp_path):
    source = RELEASES["fsd50k"](tmp_path / "fsd50k")
    builder = make("fsd50k", source, tmp_path / "to")
    builder.counts = lambda: {"train": 2, "val": 1, "test": 1}
    with pytest.raises(ValueError, match="test must have 1 .*Received: 2"):
        builder.download_and_prepare()


def test_load_names_what_it_does_not_know(built, tmp_path, monkeypatch):
    source, _, _ = built["fsdd/official"]
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    with pytest.raises(ValueError, match="did you mean 'labels'"):
        data.load(source, task="label")
    with pytest.raises(ValueError, match="did you mean 'train'"):
        data.load(source, split="trian")
    with pytest.raises(FileNotFoundError, match="did you mean 'fsdd'"):
        data.load("fsd")
    with pytest.raises(FileNotFoundError, match="nothing is built there"):
        data.load("fsdd")
    with pytest.raises(ValueError, match="name it as `dataset`"):
        data.load(tmp_path)
    speakers, clips = data.load(
        "fsdd",
        data_dir=source,
        split="train",
        task="speaker",
        splits={"train": [0, 12], "test": [4, 5, 19]},
        cache_dir=tmp_path,
        progress=False,
        with_info=True,
    )
    assert [int(who) for _, who in speakers] == [0, 0]
    with pytest.raises(ValueError, match="2 of 2 clips of train lack"):
        data.load(
            "fsdd",
            data_dir=source,
            task="phones",
            splits={"train": [0, 12], "test": [4, 5, 19]},
            cache_dir=tmp_path,
            progress=False,
        )


@pytest.mark.parametrize("call", [2, 5])
def test_a_build_that_was_stopped_ends_with_the_same_files(
    built, tmp_path, monkeypatch, call
):
    source, _, whole = built["esc/esc50"]
    calls, encoded = [], []
    write, encode = shards.write_shard, records.encode

    def stop(*args, **kwargs):
        calls.append(args)
        if len(calls) == call:
            raise KeyboardInterrupt
        return write(*args, **kwargs)

    def count(clip, **kwargs):
        encoded.append(clip.name)
        return encode(clip, **kwargs)

    monkeypatch.setattr(shards, "write_shard", stop)
    monkeypatch.setattr(records, "encode", count)
    with pytest.raises(KeyboardInterrupt):
        make(
            "esc/esc50", source, tmp_path, shard_bytes=400
        ).download_and_prepare()
    done = {path.name for path in tmp_path.rglob("*.json")}
    encoded.clear()
    builder = make("esc/esc50", source, tmp_path, shard_bytes=400)
    builder.download_and_prepare()
    assert contents(builder.data_dir) == contents(whole.data_dir)
    shards_in_all = sum(info.num_shards for info in whole.info.splits.values())
    assert len([name for name in done if "tfrecord" in name]) == call - 1
    assert len(set(encoded)) < 7
    assert shards_in_all > 5
    assert not [path for path in tmp_path.rglob("incomplete*")]


def test_a_build_that_goes_on_leaves_out_no_clip_unasked(tmp_path, monkeypatch):
    """What --skip-bad left out before the build was stopped is an error."""
    source, to = write_esc(tmp_path / "esc"), tmp_path / "tfds"
    bad = source / "audio" / "2-3-A.wav"
    bad.write_bytes(bad.read_bytes()[:-9])

    def stop(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(builders.find("esc"), "write_index", stop)
        with pytest.raises(KeyboardInterrupt):
            make("esc/esc50", source, to, skip_bad=True).download_and_prepare()
    assert list(to.rglob("*tfrecord*.json"))
    with pytest.raises(ValueError, match="2-3-A.wav: cut off"):
        make("esc/esc50", source, to).download_and_prepare()
    assert not list(to.rglob("build.json"))
    builder = make("esc/esc50", source, to, skip_bad=True)
    builder.download_and_prepare()
    (facts,) = pathlib.Path(builder.data_dir).glob("build.json")
    left_out = json.loads(facts.read_text())["left_out"]
    assert left_out == {"audio/2-3-A.wav": "cut off after 209 samples"}


def test_a_record_is_the_same_whatever_the_order_of_features(tmp_path):
    """Of a map's entries each process has an order of its own."""
    clip = Clip(write_clip(tmp_path / "a.wav", 1), "a.wav", {"b": 1, "z": 2})
    written = []
    for order in (["audio", "file", "b", "z"], ["z", "file", "b", "audio"]):
        kinds = dict.fromkeys(order, tfds.features.Scalar(np.int64))
        kinds["audio"] = tfds.features.Audio(
            dtype=np.int16, encoding=tfds.features.Encoding.BYTES
        )
        kinds["file"] = tfds.features.Text()
        features = tfds.features.FeaturesDict(kinds)
        written.append(
            records.encode(clip, AudioFormat(8_000, "int16"), features)
        )
    assert written[0] == written[1]
    places = [written[0].record.index(name) for name in (b"audio", b"file")]
    assert places == sorted(places)


def test_what_does_not_fit_is_named(tmp_path):
    source = write_esc(tmp_path / "esc")
    to = tmp_path / "tfds"

    def build(**kwargs):
        make("esc/esc50", source, to, **kwargs).download_and_prepare()

    with pytest.raises(ValueError, match="'fold1': 400.*Received: .*: 3"):
        build(partial=False)
    lost = source / "audio" / "2-3-A.wav"
    kept = lost.read_bytes()
    lost.unlink()
    with pytest.raises(ValueError, match="1 of 7 clips .*audio/2-3-A.wav"):
        build()
    lost.write_bytes(kept[:-9])
    with pytest.raises(ValueError, match="2-3-A.wav: cut off"):
        build()
    build(skip_bad=True)
    facts = json.loads(
        (to / "esc" / "esc50" / "1.0.0" / "build.json").read_text()
    )
    assert facts["left_out"] == {"audio/2-3-A.wav": "cut off after 209 samples"}
    # Who reads the build is told why, too.
    with pytest.warns(RuntimeWarning, match="build: cut off after 209 samples"):
        data.load(
            "esc50",
            data_dir=to,
            cache_dir=tmp_path / "cache",
            folds={"train": [2], "test": []},
            progress=False,
        )
    release = to / "esc" / "esc50" / "1.0.0" / "release"
    with pytest.raises(ValueError, match="1 of 7 clips .*audio/2-3-A.wav"):
        make("esc/esc50", release, tmp_path / "of_it").download_and_prepare()
    shutil.rmtree(to)
    lost.write_bytes(kept)
    write_clip(lost, 3, rate_hz=16_000)
    with pytest.raises(ValueError, match="at 8000 Hz, this clip at 16000 Hz"):
        build()
    write_clip(lost, 3, subtype="PCM_24")
    build()
    shutil.rmtree(to)
    lost.write_bytes(kept)
    write_clip(source / "audio" / "5-9-A.wav", 9)
    with pytest.raises(ValueError, match="1 audio files .*audio/5-9-A.wav"):
        build()
    assert not list(to.rglob("clips.csv"))
    with pytest.raises(ValueError, match="file_format='array_record'"):
        make("esc/esc50", source, to).download_and_prepare(
            file_format="array_record"
        )
    for wrong in ({"max_examples_per_split": 2}, {"num_shards": 3}):
        with pytest.raises(ValueError, match=f"{[*wrong][0]}=[23]"):
            make("esc/esc50", source, to).download_and_prepare(
                download_config=tfds.download.DownloadConfig(**wrong)
            )
    with pytest.raises(ValueError, match="source=None"):
        builders.find("esc")(data_dir=to).download_and_prepare()
    with pytest.raises(ValueError, match="did you mean 'esc'"):
        builders.find("esk")


def test_a_damaged_record_is_named(built, tmp_path):
    _, _, builder = built["fsdd/official"]
    folder = shutil.copytree(builder.data_dir, tmp_path / "copy")
    path = folder / "release" / "recordings" / "0_jackson_0.wav"
    row = packed.open_build(folder).rows["recordings/0_jackson_0.wav"]
    samples, rate_hz = soundfile.read(
        io.BytesIO(packed.read_bytes(path)), dtype="int16"
    )
    assert rate_hz == 8_000 and len(samples) == int(row["bytes"]) // 2
    shard = folder / row["shard"]
    content = bytearray(shard.read_bytes())
    content[int(row["offset"]) + 3] ^= 1
    shard.write_bytes(content)
    with pytest.raises(packed.PackError, match=f"{row['shard']}: damaged"):
        packed.read_bytes(path)


def test_a_build_that_was_copied_in_part_is_named(built, tmp_path):
    _, _, builder = built["fsdd/official"]
    folder = shutil.copytree(builder.data_dir, tmp_path / "copy")
    release = folder / "release"
    row = packed.open_build(folder).rows["recordings/0_jackson_0.wav"]
    for name, change, message in (
        (packed.BUILD, lambda text: text[:40], "cut off or damaged"),
        (packed.BUILD, lambda text: "{}", "must say version, default"),
        (packed.CLIPS, lambda text: text[:-9], "damaged; .* 5 of 5 clips"),
        (
            packed.CLIPS,
            lambda text: text[: text[:-1].rindex("\n") + 1],
            "damaged; .* 4 of 5 clips",
        ),
    ):
        text = (folder / name).read_text()
        (folder / name).write_text(change(text))
        packed._open_build.cache_clear()
        with pytest.raises(packed.PackError, match=f"copy/{name}: .*{message}"):
            corpora.load_speech("fsdd", folder, splits={"train": [12, 19]})
        (folder / name).write_text(text)
    packed._open_build.cache_clear()
    (folder / row["shard"]).unlink()
    corpus = corpora.Corpus(
        [release / "recordings" / "0_jackson_0.wav"], [["0"]], ["0"]
    )
    message = f"{row['shard']}: this file of the build is missing"
    with pytest.raises(ValueError, match=message):
        data.prepare(corpus, 8_000, tmp_path / "cache", progress=False)


def test_the_command(tmp_path, capsys):
    source = RELEASES["fsdd/official"](tmp_path / "fsdd")
    flags = ["build", "fsdd", "--source", source, "--data-dir", tmp_path / "to"]
    assert main(flags) == 2
    assert "published counts" in capsys.readouterr().err
    assert main([*flags, "--partial", "--verify"]) == 0
    printed = capsys.readouterr().out
    assert "train: 3 clips equal to the source" in printed
    assert "test: 2 clips in 1 files" in printed
    assert "a part of the release" in printed
    assert main([*flags, "--partial"]) == 0
    printed = capsys.readouterr().out
    assert "is there already" in printed and "a part of the rel" in printed
    assert main(["build", "fsdd/off", "--source", source]) == 2
    assert "['official', 'speakers']" in capsys.readouterr().err
    built = tmp_path / "to" / "fsdd"
    assert main(["gather", tmp_path / "links", f"fsdd={built}"]) == 2
    assert "no file of its own" in capsys.readouterr().err
    assert main(["build", "esc", "--data-dir", tmp_path / "to"]) == 2
    assert "--source is needed" in capsys.readouterr().err


def test_flags_that_contradict_the_build_that_is_there_are_refused(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    source = RELEASES["fsdd/official"](tmp_path / "fsdd")
    flags = ["build", "fsdd", "--data-dir", tmp_path / "to"]
    part = [*flags, "--source", source, "--partial"]
    assert main(part) == 0
    folder = tmp_path / "to" / "fsdd" / "official" / "1.0.0"
    before = contents(folder)
    for asked, message in [
        (flags, "unless --partial is given.*5 clips, a part of the release"),
        ([*flags, "--source", source], "unless --partial is given"),
        ([*flags, "--source", source, "--verify"], "unless --partial is given"),
        ([*flags, "--source", tmp_path / "no"], "--source must be a folder"),
        ([*part, "--data-dir", ""], "--data-dir must be.*: an empty name"),
        (
            ["build", "fsdd", "--data-dir", folder / "build.json"]
            + ["--source", source, "--partial"],
            "--data-dir must be a folder that can be written to.*build.json",
        ),
    ]:
        capsys.readouterr()
        assert main(asked) == 2
        assert re.search(message, capsys.readouterr().err)
    write_clip(source / "recordings" / "7_theo_7.wav", 7)
    assert main(part) == 2
    assert re.search(
        "1 clips of the source alone.*7_theo_7", capsys.readouterr().err
    )
    # A whole release is whole for every flag, but for a source that is not.
    facts = json.loads((folder / "build.json").read_text())
    facts |= {"complete": True, "part": False}
    (folder / "build.json").write_text(json.dumps(facts))
    for asked in (flags, [*flags, "--source", source], part):
        assert main(asked) == 0
        assert "is there already" in capsys.readouterr().out
    assert main([*flags, "--source", tmp_path / "no"]) == 2
    assert contents(folder).keys() == before.keys()
    (folder / "build.json").unlink()
    assert main(flags) == 2
    assert "a folder without build.json" in capsys.readouterr().err


def test_a_build_without_its_bad_clips_is_kept_with_skip_bad_alone(
    tmp_path, capsys
):
    source = RELEASES["fsdd/official"](tmp_path / "fsdd")
    (source / "recordings" / "0_jackson_0.wav").write_bytes(b"RIFF")
    flags = ["build", "fsdd", "--source", source, "--data-dir", tmp_path / "to"]
    assert main([*flags, "--partial", "--skip-bad"]) == 1
    assert main([*flags, "--partial", "--skip-bad"]) == 1
    assert capsys.readouterr().out.count("left out: recordings/0_jack") == 2
    assert main([*flags, "--partial"]) == 2
    assert "unless --skip-bad is given" in capsys.readouterr().err


def replace(path, old, new):
    """Replaces what occurs once in a text file."""
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def move(source, old, new):
    path = source / "recordings"
    (path / old).rename(path / new)


@pytest.mark.parametrize(
    "name, change, message",
    [
        (
            "esc/esc50",
            lambda source: replace(
                source / "meta" / "esc50.csv",
                "1-0-A.wav,1,0,rain",
                "1-0-A.wav,1,1,dog",
            ),
            "the label of audio/1-0-A.wav .* 'dog'. Received: 'rain'",
        ),
        (
            "fsd50k",
            lambda source: replace(
                source / "FSD50K.ground_truth" / "dev.csv",
                '64761,"Bark,Dog"',
                "64761,Water",
            ),
            r"the labels of FSD50K.dev_audio/64761.wav .*\['Water'\]. "
            r"Received: \['Bark', 'Dog'\]",
        ),
        (
            "fsd50k",
            lambda source: replace(
                source / "FSD50K.metadata" / "dev_clips_info_FSD50K.json",
                "ann",
                "bob",
            ),
            "the uploader of FSD50K.dev_audio/64760.wav .*'bob'",
        ),
        (
            "fsd50k",
            lambda source: replace(
                source / "FSD50K.ground_truth" / "vocabulary.csv",
                "/m/3",
                "/m/4",
            ),
            "vocabulary.csv: must be what .* Received: another content",
        ),
        (
            "fsdd/speakers",
            lambda source: [
                each.unlink() for each in source.rglob("*_theo_*.wav")
            ],
            "Received: theo, of which .*copy has no clip",
        ),
        (
            "fsdd/official",
            lambda source: move(source, "1_jackson_12.wav", "1_lucas_12.wav"),
            "Received: recordings/1_jackson_12.wav, which is not listed",
        ),
        (
            "fsdd/official",
            lambda source: write_clip(
                source / "recordings" / "7_theo_7.wav", 7
            ),
            "1 clips of train are not in it. Received: .*7_theo_7.wav",
        ),
    ],
)
def test_verify_names_what_differs_from_the_source(
    built, tmp_path, name, change, message
):
    source, data_dir, _ = built[name]
    copy = shutil.copytree(source, tmp_path / "copy")
    assert sum(make(name, copy, data_dir).verify().values()) > 2
    change(copy)
    with pytest.raises(ValueError, match=message):
        make(name, copy, data_dir).verify()


@pytest.mark.parametrize("name", builders.BUILDERS)
def test_the_folder_of_a_builder_fits_its_class(name):
    folder = DATASETS / name
    spec = importlib.util.spec_from_file_location(
        f"{name}_dataset_builder", folder / f"{name}_dataset_builder.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    builder = builders.find(name)
    assert getattr(module, builder.__name__) is builder
    metadata = builder.get_metadata()
    assert metadata.citation == builder.CITATION
    assert metadata.description.startswith(f"# {name}:")
    assert metadata.tags and set(metadata.tags) <= set(valid_tags())
    sums = folder / "checksums.md5"
    lines = sums.read_text().splitlines() if sums.exists() else []
    assert [line.split() for line in lines] == [
        [value, file] for file, value in builder.CHECKSUMS.items()
    ]
    assert {*builder.LAYOUTS} == {*builder.COUNTS}


def valid_tags():
    from tensorflow_datasets.core.dataset_metadata import valid_tags

    return valid_tags()


def test_datasets_is_no_package():
    assert DATASETS.is_dir() and not list(DATASETS.rglob("__init__.py"))
