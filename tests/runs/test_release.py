"""Runs to released presets, with their cards."""

import csv
import dataclasses
import json
import pathlib
import re
import shlex
import shutil
import unittest.mock

import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("splits are scored through tf.data", allow_module_level=True)

from sklearn import metrics as sklearn_metrics

from audio_tf import intervals, released
from audio_tf.corpora import Corpus
from audio_tf.export import classifiers
from audio_tf.models import AudioClassifier
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import (
    baseline,
    corpus_records,
    finished_runs,
    model_card,
    provenance,
    release,
    release_figures,
    release_latency,
    release_licences,
    release_probes,
    showing,
    train,
    train_data,
)

NAME = "audio_transformer_tones"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A CSV corpus of two tones."""
    folder = tmp_path_factory.mktemp("corpus")
    rows = [["filename", "labels", "split"]]
    rng = np.random.default_rng(3)
    for number in range(14):
        kind = number % 2
        tone = np.sin((0.24, 1.2)[kind] * np.arange(1_000 + 37 * number))
        tone = 0.5 * tone + 0.01 * rng.standard_normal(len(tone))
        soundfile.write(folder / f"{number}.wav", tone, 8_000)
        split = "test" if number > 6 else "val" if number > 4 else "train"
        rows.append([f"{number}.wav", ("low", "high")[kind], split])
    with open(folder / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "list.csv"


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory, no_pictures):
    """The folder of a run and of a baseline, which is made to score nothing.

    The model is untrained; the rest is what training leaves, by the functions
    by which it leaves it.
    """
    out = tmp_path_factory.mktemp("run")
    settings = train.TrainSettings(
        dataset="csv",
        data_dir=str(corpus),
        cache_dir=str(out / "cache"),
        seed=5,
    )
    corpora = settings.load()
    record = corpus_records.make(corpora, settings.file_root())
    model = AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000),
        labels=corpora["train"].vocabulary,
        chunk_s=0.1,
    )
    chunks, _ = train_data.load_chunks(settings, corpora, model)
    provenance.begin_run(out, settings, record)
    train.report(model, chunks, out, {}, one_label=True, batch_size=5)
    origin = {
        **provenance.run_facts(settings),
        "command": f"audio-tf train --data-dir {corpus} --out=/srv/run/a b",
        "corpus": corpus_records.summary(record),
        "teachers": [{"preset": "/srv/old", "weights_sha256": "01ab" * 16}],
        "labels": model.labels,
        "splits": {**settings.split_facts(), "protocol": "by hand"},
        "leaks": [
            {
                "kind": "speaker",
                "splits": ["train", "test"],
                "shared": 2,
                "clips": 5,
                "files": ["a", "b"],
            }
        ],
    }
    train.save(model, out, origin, [chunks["train"].clips])
    (out / "history.csv").write_text(
        "epoch,loss,val_mAP\n0,0.9,0.5\n1,0.8,0.75\n2,0.7,0.625\n"
    )
    asked = baseline.BaselineSettings(
        dataset="csv",
        data_dir=str(corpus),
        cache_dir=str(out / "cache"),
        report=str(out / "baseline.json"),
        sample_rate_hz=8_000,
        trees=3,
    )
    baseline.run(asked)
    rewrite(out / "baseline.json", beaten)
    return out


def rewrite(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def beaten(content):
    for figures in content["figures"].values():
        figures["accuracy"]["mean"] = 0.0


@pytest.fixture(scope="module")
def no_pictures():
    with unittest.mock.patch.object(showing, "can_draw", lambda: False):
        yield


@pytest.fixture
def arguments(finished, tmp_path):
    return {
        "run": str(finished),
        "name": NAME,
        "use": "It tells high tones from low ones.",
        "licence": "CC BY 4.0",
        "baseline": str(finished / "baseline.json"),
        "into": str(tmp_path / "released"),
    }


@pytest.fixture
def quick(monkeypatch, eager_models):
    """Neither files of other runtimes nor many draws, which take seconds."""
    monkeypatch.setattr(release_latency, "installed", lambda model: [])
    monkeypatch.setattr(intervals, "FEWER_DRAWS", 3)
    monkeypatch.setattr(release_latency, "CALLS", 1)


def flags(arguments):
    return [each for k, v in arguments.items() for each in (f"--{k}", v)]


@pytest.mark.costly
def test_a_run_becomes_a_released_preset(
    finished, arguments, quick, main, tmp_path, capsys, monkeypatch
):
    main("release", *flags(arguments))
    share = json.loads((finished / "test.json").read_text())["accuracy"]
    assert f"accuracy {share:.3f}" in capsys.readouterr().out
    (entry,) = released.read_index(arguments["into"]).values()
    entry.verify()
    assert (entry.name, entry.split, entry.seed) == (NAME, "test", 5)
    assert entry.model == "audio_tf>AudioClassifier"
    assert entry.metric.value == share and entry.metric.clips == 7
    said = json.loads((finished / "test.json").read_text())["intervals"]
    assert entry.metric.interval == said["accuracy"] and said["units"] == 7
    folder = tmp_path / "released" / NAME
    for name in ("config.json", "task.json", "model.weights.h5"):
        before = (finished / "preset" / name).read_bytes()
        assert (folder / name).read_bytes() == before
    loaded = AudioClassifier.from_preset(str(folder))
    assert loaded.count_params() == entry.parameters

    card = (folder / "README.md").read_text()
    for text in (
        f"# {NAME}\n\nIt tells high",
        f'from_preset("{NAME}")',
        "| licence of the corpus | CC BY 4.0 |",
        "| teacher | old (sha256 01ab01ab01ab) |",
        "test 7 files",
        "| splits | the corpus has no official ones |",
        "| in both train and test | 2 of the kind speaker, 5 clips of test |",
        "Figures of 7 clips, the mean over the scores of a clip's chunks, "
        "with 95 % intervals of the bootstrap over 7 clips.",
        f"| accuracy | {share:.4f} [",
        "| forest, 3 seeds, deviation ",
        "epoch 2 of 3, the best by val_mAP, 0.7500",
        "| TensorFlow, all cores |",
        "--data-dir list.csv --out=a b`",
    ):
        assert text in card, text
    counts = re.findall(r"\| (?:high|low) \| (\d) \| (\d) \|", card)
    (high, not_high), (not_low, low) = [[int(n) for n in row] for row in counts]
    assert (high + not_high, not_low + low) == (4, 3)
    assert high + low == round(7 * share)
    # No path of this machine.
    for name in ("README.md", "provenance.json"):
        text = (folder / name).read_text()
        assert str(finished) not in text and str(tmp_path) not in text
        assert "/srv" not in text and "list.csv" in text

    with pytest.raises(ValueError, match="released already.*--replace"):
        release.ReleaseSettings(**arguments)
    assert model_card.ELSEWHERE in card
    # Where every program looks for names.
    monkeypatch.setattr(released, "ROOT", tmp_path / "released")
    release.run(
        release.ReleaseSettings(**arguments, replace=True, limits="No birds.")
    )
    again = (folder / "README.md").read_text()
    assert "**Limits.** No birds." in again
    assert model_card.ELSEWHERE not in again
    assert model_card.CHOSEN not in card
    (entry,) = released.read_index(arguments["into"]).values()
    entry.verify()


def more_clips(folder):
    """Makes a run of one that has learned from a clip more."""

    def one_more(content):
        content["splits"]["train"]["13.wav"] = [1, "high"]

    rewrite(folder / "corpus.json", one_more)
    rewrite(
        folder / "preset" / "provenance.json",
        lambda content: content["corpus"]["train"].update(files=6),
    )
    (folder / "test.json").unlink()


@pytest.mark.costly
def test_a_run_on_all_clips_has_the_figures_of_one_on_fewer(
    finished, arguments, quick, tmp_path
):
    whole = tmp_path / "whole"
    shutil.copytree(finished, whole)
    more_clips(whole)
    asked = {**arguments, "run": str(whole), "measured_run": str(finished)}
    release.run(release.ReleaseSettings(**asked))
    share = json.loads((finished / "test.json").read_text())["accuracy"]
    (entry,) = released.read_index(arguments["into"]).values()
    assert entry.metric.value == share
    card = (tmp_path / "released" / NAME / "README.md").read_text()
    assert "trained alike on 5 of the clips; this one has learned from 6." in (
        card
    )

    asked |= {"run": str(finished), "measured_run": str(whole)}
    with pytest.raises(ValueError, match="all clips of .*: 1 others.*13.wav"):
        release.run(release.ReleaseSettings(**asked, replace=True))
    asked |= {"run": str(whole), "measured_run": str(finished)}
    rewrite(
        whole / "config.json",
        lambda content: content["settings"].update(seed=6),
    )
    with pytest.raises(ValueError, match="but for the splits.*seed=5"):
        release.run(release.ReleaseSettings(**asked, replace=True))


def without_half(content):
    content["corpus"]["train"] = {"files": 3, "sha256": "0"}


@pytest.mark.costly
def test_a_card_says_that_the_epoch_was_chosen_on_the_split_it_tells(
    finished, arguments, quick, tmp_path
):
    """And what the baseline has learned from, where that is not the same.

    A run on all clips has no validation that its own epoch was chosen on.
    """
    whole = tmp_path / "whole"
    shutil.copytree(finished, whole)
    more_clips(whole)
    (whole / "history.csv").write_text("epoch,loss\n0,0.9\n1,0.8\n")
    report = tmp_path / "baseline.json"
    shutil.copy(finished / "baseline.json", report)
    facts = json.loads((finished / "preset" / "provenance.json").read_text())
    val = facts["corpus"]["val"]
    rewrite(report, lambda content: content["corpus"].update(val=val))
    asked = {**arguments, "run": str(whole), "measured_run": str(finished)}
    asked |= {"split": "val", "baseline": str(report)}
    release.run(release.ReleaseSettings(**asked))
    path = tmp_path / "released" / NAME / "README.md"
    card = path.read_text()
    assert model_card.CHOSEN in card and "| weights | of" not in card
    chosen = "weights of epoch 2 of 3, the best by val_mAP, 0.7500."
    assert f"learned from 6. That one has the {chosen}\n" in card
    assert "learned from" not in card.partition("The baseline")[2]

    # One that kept the last epoch has chosen none.
    last = tmp_path / "last"
    shutil.copytree(finished, last)
    shutil.copy(whole / "history.csv", last / "history.csv")
    rewrite(report, without_half)
    asked |= {"measured_run": str(last), "replace": True}
    release.run(release.ReleaseSettings(**asked))
    card = path.read_text()
    assert model_card.CHOSEN not in card and "That one has" not in card
    assert ", learned from 3 clips, which are not the 5 of the model |" in card


@pytest.mark.costly
def test_teachers_of_both_runs_are_trained_alike(finished, tmp_path):
    whole = tmp_path / "whole"
    shutil.copytree(finished, whole)
    more_clips(whole)
    ours, theirs = str(whole / "preset"), str(finished / "preset")
    # What else is written, and at what a run stops, changes no weight.
    rewrite(
        whole / "config.json",
        lambda content: content["settings"].update(export=True, strict=True),
    )
    finished_runs.check_teachers([ours, theirs], [theirs, theirs])
    with pytest.raises(ValueError, match="as many teachers"):
        finished_runs.check_teachers([ours], [])
    with pytest.raises(ValueError, match="all clips of .*: 1 others"):
        finished_runs.check_teachers([theirs], [ours])
    rewrite(
        whole / "config.json",
        lambda content: content["settings"].update(mixing="mixup"),
    )
    with pytest.raises(ValueError, match="but for the splits.*mixing='none'"):
        finished_runs.check_teachers([ours], [theirs])
    with pytest.raises(ValueError, match="A finished run is needed"):
        finished_runs.check_teachers([ours], [str(tmp_path / "x" / "preset")])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"licence": None}, "--licence is needed"),
        ({"licence": "CC BY-NC 3.0"}, "forbids commercial"),
        ({"licence": "for non-commercial use"}, "forbids commercial"),
        ({"licence": "cc_by_nc_sa_4.0"}, "forbids commercial"),
        ({"licence": "BY-NC4.0"}, "forbids commercial"),
        ({"licence": "for research purposes only"}, "forbids commercial"),
        ({"name": "Tones"}, "lower-case"),
        ({"name": "audio_transformer_small"}, "--name must not be a size's"),
        ({"baseline": None}, "--baseline is needed"),
        ({"split": "train"}, "--split must be one"),
        ({"into": "/dev/null/x"}, "--into must be a folder that can"),
    ],
)
def test_settings_that_are_refused(change, message, arguments):
    with pytest.raises(ValueError, match=message):
        release.ReleaseSettings(**{**arguments, **change})


def test_a_setting_that_would_count_for_nothing_is_refused(arguments):
    plain = release.ReleaseSettings(**arguments)
    release.check_given(plain, True)
    release.check_given(plain, False)
    for name, value, is_classifier in (
        ("probes", "probes.json", True),
        ("measured_run", "runs/fewer", False),
        ("split", "val", False),
        ("split", "test", False),  # The default, given.
        ("data_dir", "sounds", False),
        ("cache_dir", "cache", False),
    ):
        settings = release.ReleaseSettings(**arguments, **{name: value})
        release.check_given(settings, not is_classifier)
        message = f"--{name.replace('_', '-')} is of .*Received: {value}"
        with pytest.raises(ValueError, match=message):
            release.check_given(settings, is_classifier)


@pytest.mark.parametrize(
    "dataset, licence",
    [
        ("esc50", "CC BY-NC 3.0"),
        ("iemocap", "for research, by agreement"),
        ("ravdess", "CC BY-NC-SA 4.0"),
        ("fsd50k", "CC BY-NC in part"),
    ],
)
def test_weights_of_what_is_not_for_commerce_stay_here(dataset, licence):
    """Whatever --licence says."""
    origin = {"settings": {"dataset": dataset}, "command": "audio-tf train"}
    with pytest.raises(ValueError, match=f"{dataset} is {licence}"):
        release_licences.check_origin(origin)


def test_clips_that_are_not_for_commerce_are_told_by_the_corpus_own_lists():
    """Of a model, and of what it builds on."""
    free, bound = (
        f"http://creativecommons.org/licenses/{name}/3.0/"
        for name in ("by", "by-nc")
    )
    corpus = Corpus(
        ["a", "b", "c", "d"],
        [[]] * 4,
        ["x"],
        licences=[free, bound, None, free],
    )
    counted = corpus_records.licence_facts(corpus, {"b": "no audio"})
    assert counted == {free: 2, "": 1}
    silent = dataclasses.replace(corpus, licences=None)
    assert corpus_records.licence_facts(silent, {}) is None
    command = {"command": "audio-tf train"}

    def check(dataset, licences, **more):
        origin = {"settings": {"dataset": dataset}, **command, **more}
        release_licences.check_origin({**origin, "licences": licences})

    check("csv", counted)
    check("fsd50k", {free: 2})
    # Clips of which nothing is said may be those that are not.
    with pytest.raises(ValueError, match="fsd50k is CC BY-NC in part"):
        check("fsd50k", counted)
    bound_ones = corpus_records.licence_facts(corpus, {})
    for dataset in ("fsd50k", "csv"):
        with pytest.raises(ValueError, match=f"1 of {dataset} are .*by-nc/3.0"):
            check(dataset, bound_ones)
    earlier = {"dataset": "fsd50k", "licences": bound_ones, **command}
    with pytest.raises(ValueError, match="1 of fsd50k are .*by-nc/3.0"):
        check("csv", None, built_on=[earlier])


def test_what_a_model_builds_on_tells_its_licences(tmp_path):
    origin = {"settings": {"dataset": "fsd50k"}, "command": "audio-tf train"}
    for licences, told in (({"x": 3}, {"licences": {"x": 3}}), (None, {})):
        (tmp_path / "provenance.json").write_text(
            json.dumps({**origin, "licences": licences})
        )
        settings = {"dataset": "csv", "model": str(tmp_path)}
        (found,) = classifiers.built_on({"settings": settings})
        assert found == {
            "preset": str(tmp_path),
            "dataset": "fsd50k",
            "command": "audio-tf train",
            **told,
        }


def other_dataset(content):
    content["settings"]["dataset"] = "esc50"


def other_clips(content):
    content["corpus"]["test"]["sha256"] = "0"


def better(content):
    content["figures"]["forest"]["accuracy"]["mean"] = 1.01


def without_figures(content):
    del content["figures"]


def without_test(content):
    del content["corpus"]["test"]


def worse(content):
    content["mAP"] += 0.001


@pytest.mark.parametrize(
    "file, change, message",
    [
        ("preset/provenance.json", other_dataset, "esc50 is CC BY-NC"),
        ("baseline.json", other_clips, "test of the baseline must be"),
        (
            "baseline.json preset/provenance.json",
            other_clips,
            "test of the corpus must be",
        ),
        ("preset/provenance.json", without_test, "--no-test does not read"),
        (
            "baseline.json",
            without_figures,
            "--baseline must be a report of audio-tf baseline.*baseline.json",
        ),
        ("baseline.json", better, "below that of the baseline"),
        ("test.json", worse, "does not score as .*test.json says"),
    ],
)
def test_runs_that_are_refused(
    file, change, message, finished, arguments, quick, tmp_path
):
    copy = tmp_path / "run"
    shutil.copytree(finished, copy)
    for name in file.split():
        rewrite(copy / name, change)
    arguments = {
        **arguments,
        "run": str(copy),
        "baseline": str(copy / "baseline.json"),
    }
    with pytest.raises(ValueError, match=message):
        release.run(release.ReleaseSettings(**arguments))
    assert not (tmp_path / "released").exists()


def test_a_figure_without_an_interval_is_refused(
    arguments, quick, monkeypatch, tmp_path
):
    """As of one clip alone, whose mean average precision is always 1."""
    monkeypatch.setattr(intervals, "bootstrap", lambda *_: None)
    with pytest.raises(ValueError, match="must differ.*accuracy .* of 7 c"):
        release.run(release.ReleaseSettings(**arguments))
    assert not (tmp_path / "released").exists()


def test_folders_with_blanks_are_not_told():
    folder = "/data/ann lee/at work"
    command = ["audio-tf", "train", "--data-dir", f"{folder}/my corpus #1"]
    command += [f"--cache-dir={folder}/it's/", "--out", "runs/a b"]
    command += ["--model-kwargs", json.dumps({"a": "/srv/a.b", "b": "c=d"})]
    told = release.without_folders(
        {
            "command": shlex.join(command),
            "settings": {
                "data_dir": f"{folder}/my corpus #1",
                "noise": [f"{folder}/street/", "/", "runs/a b"],
                "seed": 3,
            },
            "labels": ["/m/068hy", "/t/dd00125"],
        }
    )
    assert told["labels"] == ["/m/068hy", "/t/dd00125"]
    assert shlex.split(told["command"]) == [
        *("audio-tf", "train", "--data-dir", "my corpus #1"),
        *("--cache-dir=it's", "--out", "runs/a b"),
        *("--model-kwargs", '{"a": "a.b", "b": "c=d"}'),
    ]
    assert told["settings"] == {
        "data_dir": "my corpus #1",
        "noise": ["street", "/", "runs/a b"],
        "seed": 3,
    }


def test_a_model_that_began_with_a_forbidden_one_is_refused(tmp_path):
    (tmp_path / "provenance.json").write_text(
        json.dumps(
            {"settings": {"dataset": "esc50"}, "command": "audio-tf train"}
        )
    )
    for part in ({"model": str(tmp_path)}, {"teachers": [str(tmp_path)]}):
        origin = {"settings": {"dataset": "csv", **part}}
        with pytest.raises(ValueError, match="esc50"):
            release_licences.check_origin(
                {**origin, "command": "audio-tf train"}
            )
    # The training knows it, wherever the preset is by now.
    found = classifiers.built_on(origin)
    assert [each["dataset"] for each in found] == ["esc50"]
    (tmp_path / "provenance.json").unlink()
    assert classifiers.built_on(origin) == []
    with pytest.raises(ValueError, match="esc50"):
        release_licences.check_origin(
            {**origin, "command": "audio-tf train", "built_on": found}
        )


def test_a_model_may_have_begun_with_a_release_of_its_own_name(tmp_path):
    path = tmp_path / "provenance.json"
    settings = {"dataset": "csv", "model": str(tmp_path)}
    origin = {"settings": settings, "command": "audio-tf train"}
    path.write_text(json.dumps(origin))
    release_licences.check_origin(origin)
    settings["dataset"] = "esc50"
    path.write_text(json.dumps(origin))
    settings["dataset"] = "csv"
    with pytest.raises(ValueError, match="esc50"):
        release_licences.check_origin(origin)


@pytest.mark.parametrize(
    "chunk_s, frames, samples",
    # Frames of 11 samples. A table of 41 rows, and one of more than a second.
    [(None, 41, 41 * 11), (None, 130, 1_100), (0.25, 41, 275)],
)
def test_a_model_is_timed_on_no_more_than_it_takes(
    chunk_s, frames, samples, quick
):
    small = tiny.backbone(
        attention="random_synthesizer", made_for_frames=frames
    )
    model = AudioClassifier(small, labels=["a", "b"], chunk_s=chunk_s)
    found = release_latency.measure_latency(model)
    assert found.clip_s == samples / tiny.RATE_HZ
    ((name, took_ms),) = found.medians_ms
    assert name == "TensorFlow, all cores" and took_ms > 0.0


def test_an_encoder_is_released_with_its_probes(tmp_path):
    """The intervals are of utterances, the baseline's tasks the same."""
    encoder = tiny.backbone()
    weights = weights_sha256(encoder.weights)

    def write(name, shares, weights=None, layer=None, max_s=37.5):
        tasks = {
            task: {
                "test_accuracy": share,
                "chance": 0.25,
                "utterances": {"test": 40},
            }
            for task, share in shares.items()
        }
        content = {
            "tasks": tasks,
            "corpus": {"test": 1},
            "settings": {"layer": layer, "max_s": max_s, "hidden_dim": 768},
            "model": weights and {"weights_sha256": weights},
        }
        (tmp_path / name).write_text(json.dumps(content))
        return str(tmp_path / name)

    asked = {
        "run": str(tmp_path),
        "name": "speech",
        "use": "It embeds speech.",
        "licence": "CC BY 4.0",
        "into": str(tmp_path / "out"),
    }
    plain = write("plain.json", {"speaker": 0.5, "phoneme": 0.9})
    ours = write("ours.json", {"speaker": 0.75, "phoneme": 0.8}, weights)
    settings = release.ReleaseSettings(**asked, baseline=plain, probes=ours)
    found = release_probes.of_encoder(settings, encoder)
    assert found.metric.value == 0.75 and found.metric.clips == 40
    assert found.baseline == [("plain features", 0.5)]
    assert [row[0] for row in found.table] == [
        "accuracy of speaker",
        "accuracy of phoneme",
    ]
    # Where plain features are ahead, the card says so.
    assert "| phoneme | 0.8000 | 0.9000 | 0.2500 |" in found.details
    assert found.meaning.endswith("95 % intervals.")
    release_figures.check_baseline(found)
    # Fewer clips have phones, of which the interval is wider.
    content = json.loads(pathlib.Path(ours).read_text())
    content["tasks"]["phoneme"]["utterances"] = {"test": 31}
    pathlib.Path(ours).write_text(json.dumps(content))
    found = release_probes.of_encoder(settings, encoder)
    assert found.meaning.startswith("Figures of 40 clips (phoneme of 31) with")
    assert found.metric.clips == 40
    # What the encoder knew beforehand, the card says.
    leak = {"kind": "audio", "shared": 3, "clips": 3, "files": ["a", "a"]}
    content["leaks"] = [
        {**leak, "splits": ["pretraining", split]} for split in ("val", "test")
    ]
    pathlib.Path(ours).write_text(json.dumps(content))
    found = release_probes.of_encoder(settings, encoder)
    assert "pre-trained on 3 of them, without labels." in found.meaning
    other = write("other.json", {"phoneme": 0.8})
    another = write("another.json", {"speaker": 0.9}, "0" * 64)
    mels = write("mels.json", {"speaker": 0.2}, weights, "features")
    longer = write("longer.json", {"speaker": 0.5, "phoneme": 0.9}, max_s=40.0)
    text = str(tmp_path / "text.json")
    pathlib.Path(text).write_text("no JSON")
    for changes, message in (
        ({"baseline": other, "probes": ours}, "same tasks"),
        # The corpus is the same, whatever is left out of it.
        (
            {"baseline": longer, "probes": ours},
            "same utterances.*--max-s 40.0, not 37.5",
        ),
        ({"baseline": plain}, "--probes is needed"),
        # Of another encoder, of none, or of the features of the right one.
        ({"baseline": plain, "probes": another}, "--probes must be of the enc"),
        ({"baseline": plain, "probes": plain}, "--probes must be of the enc"),
        ({"baseline": plain, "probes": mels}, "of plain features$"),
        ({"baseline": ours, "probes": ours}, "--baseline must be of plain fea"),
        (
            {"baseline": text, "probes": ours},
            "--baseline must be a report of audio-tf probe.*text.json",
        ),
    ):
        settings = release.ReleaseSettings(**asked, **changes)
        with pytest.raises(ValueError, match=message):
            release_probes.of_encoder(settings, encoder)
    # The features that an encoder computes are plain, too.
    mels = write(
        "mels.json", {"speaker": 0.2, "phoneme": 0.1}, weights, "features"
    )
    settings = release.ReleaseSettings(**asked, baseline=mels, probes=ours)
    found = release_probes.of_encoder(settings, encoder)
    assert found.baseline == [("plain features", 0.2)]


def test_confusions_are_those_of_scikit_learn(rng):
    for classes in (3, 20):
        labels = [f"label_{number}" for number in range(classes)]
        scores = rng.uniform(size=(200, classes))
        true = rng.integers(0, classes, 200)
        targets = np.eye(classes, dtype=np.int64)[true]
        expected = sklearn_metrics.confusion_matrix(
            true, scores.argmax(axis=1), labels=range(classes)
        )
        text = model_card.confusions(targets, scores, labels)
        if classes == 3:
            assert f"| label_1 | {' | '.join(map(str, expected[1]))} |" in text
            continue
        rows = re.findall(r"\| label_(\d+) \| label_(\d+) \| (\d+) \|", text)
        np.fill_diagonal(expected, 0)
        assert len(rows) == model_card.LISTED
        for one, other, count in rows:
            assert expected[int(one), int(other)] == int(count)
        assert int(rows[0][2]) == expected.max()
