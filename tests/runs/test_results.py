"""What stands beside the figures of a result, and what forbids one."""

import json
import pathlib
import subprocess
import types

import keras
import numpy as np
import pytest
import soundfile
import tiny
from corpus_files import touch, write_csv

if keras.backend.backend() != "tensorflow":
    pytest.skip("splits are scored through tf.data", allow_module_level=True)

from sklearn import metrics as sklearn_metrics

from audio_tf import cli, corpora, data
from audio_tf.corpora import leaks
from audio_tf.export import classifiers, several
from audio_tf.models import AudioClassifier
from audio_tf.runs import (
    baseline,
    corpus_records,
    evaluate,
    heard,
    provenance,
    results,
    showing,
    train,
)
from audio_tf.runs.corpus_settings import DataSettings

LEAK = leaks.Leak("speaker", ("train", "test"), 2, 5, ("a.wav", "b.wav"))


def test_what_is_on_both_sides_is_refused_by_two_files(tmp_path, capsys):
    """But of official splits, which are what they are, and is then told."""
    own = {"dataset": "csv", "data_dir": str(tmp_path)}
    message = "a.wav in train and b.wav in test have one speaker.*--other-spl"
    with pytest.raises(ValueError, match=message):
        DataSettings(**own).leakage().judged([LEAK])
    departing = {"dataset": "fsdd", "test_speakers": ["jo"]}
    for settings, official in (
        (DataSettings(**own, other_splits=True), None),
        (DataSettings(dataset="arabic_speech_commands"), True),
        (DataSettings(dataset="fsdd"), True),
        (DataSettings(**departing, other_splits=True), False),
    ):
        assert settings.leakage().judged([LEAK]) == [LEAK]
        assert "on both sides: a.wav in train" in capsys.readouterr().out
        assert settings.split_facts()["official"] is official
    facts = DataSettings(**departing, other_splits=True).split_facts()
    assert facts["departure"] == "test_speakers is ['jo']"
    assert facts["other_splits"] is True


def test_a_speaker_on_both_sides_is_seen_as_lists_are_read(tmp_path):
    """Before anything is decoded: these files hold no sound."""
    touch(*(tmp_path / "recordings" / f"3_jo_{i}.wav" for i in (0, 5, 10)))
    settings = DataSettings(dataset="fsdd", data_dir=str(tmp_path))
    found = leaks.of_sources(settings.load())
    record = corpus_records.make(settings.load(), settings.file_root())
    facts = json.loads(json.dumps(results.facts(settings, record, found)))
    assert facts["dataset"] == "fsdd" and facts["seed"] == 0
    assert facts["leaks"][1] == {
        "kind": "speaker",
        "splits": ["train", "test"],
        "shared": 1,
        "clips": 1,
        "files": ["recordings/3_jo_10.wav", "recordings/3_jo_0.wav"],
    }
    assert facts["corpus"]["test"]["files"] == 1
    assert len(facts["corpus"]["test"]["sha256"]) == 64


def test_the_commit_is_that_of_the_codes_own_checkout(tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path, *arguments], check=True)

    code = tmp_path / "library"
    code.mkdir()
    (code / "file.py").touch()
    facts = provenance.code_facts
    assert facts(code)["commit"] is None
    git("init", "-q")
    facts.cache_clear()
    # An environment in another project's checkout.
    assert facts(code)["commit"] is None
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c")
    facts.cache_clear()
    found = facts(code)
    assert len(found["commit"]) == 40 and found["changed"] is False
    (code / "file.py").write_text("changed")
    facts.cache_clear()
    assert facts(code)["changed"] is True and facts(code)["version"]
    facts.cache_clear()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A CSV of clips with any number of labels; the last is the first again."""
    folder = tmp_path_factory.mktemp("corpus")
    rng, text = np.random.default_rng(3), "filename,labels,split\n"
    labels = ["a", "b", '"a,b"', ""]
    for number in range(16):
        split = "train" if number < 6 else "val" if number < 11 else "test"
        samples = 0.1 * rng.standard_normal(500 + 40 * number)
        if number == 0:
            first = samples
        if number == 15:
            samples = first
        soundfile.write(folder / f"{number}.wav", samples, 8_000)
        text += f"{number}.wav,{labels[number % 4]},{split}\n"
    return write_csv(folder, text)


def test_the_same_sound_on_both_sides_is_refused(corpus, tmp_path):
    asked = {"dataset": "csv", "data_dir": str(corpus)}
    places = {"cache_dir": str(tmp_path), "sample_rate_hz": 8_000}
    with pytest.raises(ValueError, match="0.wav in train and .*15.wav in test"):
        baseline.run(baseline.BaselineSettings(**asked, **places))
    # Where it is allowed, the report says so.
    places |= {"trees": 2, "seeds": [0], "report": str(tmp_path / "a.json")}
    allowed = baseline.BaselineSettings(**asked, **places, other_splits=True)
    baseline.run(allowed)
    (leak,) = json.loads((tmp_path / "a.json").read_text())["leaks"]
    assert (leak["kind"], leak["splits"]) == ("audio", ["train", "test"])
    assert leak["files"] == ["0.wav", "15.wav"]


def test_a_validation_of_one_label_a_clip_calibrates_thresholds_too(
    tmp_path, monkeypatch
):
    """A few clips may have one each, where those of training have several."""
    monkeypatch.setattr(showing, "can_draw", lambda: False)
    rng = np.random.default_rng(5)
    targets = {
        "train": np.array([[1, 1], [0, 1], [1, 0]]),
        "val": np.array([[1, 0], [0, 1], [1, 0], [0, 1]]),
    }
    scores = np.array([[0.9, 0.2], [0.8, 0.3], [0.7, 0.1], [0.4, 0.6]])
    np.save(tmp_path / "val_scores.npy", scores)
    clips = data.Clips(
        corpora.Corpus(list("wxyz"), [["a"], ["b"]] * 2, ["a", "b"]),
        8_000,
        [None] * 4,
        rng.integers(1, 9, 4),
        {},
        np.ones(4, np.int64),
        np.arange(4, dtype=np.uint32),
    )
    chunks = {
        split: types.SimpleNamespace(targets=each, clips=clips)
        for split, each in targets.items()
    }
    monkeypatch.setattr(results, "how_scored", lambda chunks: {})
    settings, model = train.TrainSettings(), types.SimpleNamespace()
    model.labels = ["a", "b"]

    def calibrated():
        one_label = train.have_one_label(settings, chunks)
        return train.report(model, chunks, tmp_path, {}, one_label, 5)[1]

    # By hand: of a, 0.7 has both clips and one other; of b, 0.3 has both alone.
    assert calibrated() == {"a": 0.7, "b": 0.3}
    assert json.loads((tmp_path / "thresholds.json").read_text()) == {
        "a": 0.7,
        "b": 0.3,
    }
    # Clips of one label each need none, also beside those of no label.
    chunks["train"].targets = np.array([[1, 0], [0, 1], [0, 0]])
    assert calibrated() is not None
    settings.unlabelled = ["more"]
    assert calibrated() is None


def test_thresholds_are_of_their_labels_in_whatever_order(monkeypatch):
    """A vocabulary may have another order than the model of the training."""
    monkeypatch.setattr(results, "how_scored", lambda chunks: {})
    corpus = corpora.Corpus(
        list("wxyz"), [["a"], ["b"], ["a"], ["a"]], ["b", "a"]
    )
    chunks = types.SimpleNamespace(
        targets=corpus.targets(), clips=types.SimpleNamespace(corpus=corpus)
    )
    scores = np.array([[0.2, 0.5], [0.8, 0.4], [0.6, 0.5], [0.1, 0.2]])
    thresholds = {"a": 0.45, "b": 0.7}
    found = results.figures("test", chunks, scores, ["b", "a"], thresholds)
    at = found["at_thresholds"]["per_class"]
    assert {label: at[label]["threshold"] for label in at} == thresholds
    # Of a, two of three are found, and nothing else; of b, the only one.
    assert at["a"]["recall"] == pytest.approx(2 / 3)
    assert at["a"]["precision"] == at["b"]["f1"] == 1.0


@pytest.mark.costly
def test_a_test_is_left_out_and_then_scored_at_thresholds(
    corpus, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(keras.Model, "run_eagerly", tiny.ALWAYS_EAGER)
    monkeypatch.setattr(showing, "can_draw", lambda: False)
    out, cache = tmp_path / "run", str(tmp_path / "cache")
    source = {"dataset": "csv", "data_dir": str(corpus), "cache_dir": cache}

    def build(settings, corpus):
        return AudioClassifier(
            tiny.backbone(sample_rate_hz=8_000),
            labels=corpus.vocabulary,
            chunk_s=0.05,
        )

    monkeypatch.setattr(train, "build", build)
    monkeypatch.setattr(
        train,
        "fit",
        lambda settings, model, chunks, out, *_: model.save(out / "last.keras"),
    )
    # What would be refused is not even decoded.
    train.run(train.TrainSettings(**source, test=False, seed=7), out)
    assert not (out / "test.json").exists() and not (out / "test").exists()
    assert len(list((tmp_path / "cache").rglob("*.f32"))) == 11
    val = json.loads((out / "val.json").read_text())
    assert (val["split"], val["seed"]) == ("val", 7)
    assert "at_thresholds" not in val and "test" not in val["corpus"]
    assert val["splits"]["official"] is None and val["leaks"] == []
    assert val["scored"]["chunk_s"] == 0.05 and val["scored"]["chunks"] > 5
    low, high = val["intervals"]["mAP"]
    assert low <= val["mAP"] <= high and val["intervals"]["unit"] == "clip"
    assert "accuracy" not in val["intervals"]
    assert val["code"] == provenance.code_facts()

    origin = json.loads((out / "preset" / "provenance.json").read_text())
    calibrated = json.loads((out / "thresholds.json").read_text())
    assert origin["thresholds"] == calibrated and list(calibrated) == ["a", "b"]
    report = tmp_path / "test.json"
    asked = evaluate.EvaluateSettings(
        **source, model=str(out / "preset"), report=str(report)
    )
    # A clip of the training under another name.
    with pytest.raises(ValueError, match="1 of test, such as .*15.wav"):
        evaluate.run(asked)
    evaluate.run(asked.replace(other_splits=True))
    told = json.loads(report.read_text())
    assert told["clips_trained_on"] == 1
    (leak,) = told["leaks"]
    assert leak["splits"] == ["model", "test"] and leak["clips"] == 1
    # The training's: evaluation has no seed of its own.
    assert told["seed"] == 7
    model = AudioClassifier.from_preset(out / "preset")
    chunks, scores = evaluate.score_split(
        model,
        DataSettings(**source).load()["test"],
        "test",
        {"cache_dir": cache},
    )
    for column, label in enumerate("ab"):
        found = sklearn_metrics.f1_score(
            chunks.targets[:, column],
            scores[:, column] >= calibrated[label],
            zero_division=0.0,
        )
        at = told["at_thresholds"]["per_class"][label]
        assert at["f1"] == pytest.approx(found)
        assert at["threshold"] == calibrated[label]
    assert told["split"] == "test" and told["corpus"]["test"]["files"] == 5
    # Nobody is told how well thresholds fit the clips they were fitted to.
    vocabulary = tmp_path / "labels.txt"
    vocabulary.write_text("b\na\n")
    for more in ({}, {"vocabulary": str(vocabulary)}):
        found = evaluate.run(asked.replace(split="val", **more))
        assert "at_thresholds" not in found
        assert found["mAP"] == pytest.approx(val["mAP"])
        assert "calibrated on these clips" in capsys.readouterr().out


def test_clips_of_some_of_the_labels_are_scored_by_a_vocabulary(tmp_path, rng):
    for name in "ab":
        audio = 0.1 * rng.standard_normal(800)
        soundfile.write(tmp_path / f"{name}.wav", audio, 8_000)
    path = tmp_path / "mine.csv"
    path.write_text("filename,labels,split\na.wav,a,test\nb.wav,c,test\n")
    model = AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000), labels=list("abc"), chunk_s=0.05
    )
    model.save_to_preset(str(tmp_path / "preset"))
    asked = evaluate.EvaluateSettings(
        dataset="csv",
        data_dir=str(path),
        cache_dir=str(tmp_path / "cache"),
        model=str(tmp_path / "preset"),
    )
    with pytest.raises(ValueError, match="--vocabulary .*: none.* clip of 'b'"):
        evaluate.run(asked)
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    found = evaluate.run(asked.replace(vocabulary=str(tmp_path / "labels.txt")))
    assert found["classes_without_positives"] == ["b"]
    # Of a label that the model has not, no vocabulary helps.
    path.write_text("filename,labels,split\na.wav,a,test\nb.wav,d,test\n")
    with pytest.raises(ValueError, match="a model without 'd', with 'b', 'c'"):
        evaluate.run(asked)


def test_the_splits_of_a_run_are_drawn_as_it_drew_them(tmp_path):
    rows = "".join(f"{number}.wav,{'ab'[number % 2]}\n" for number in range(40))
    path = write_csv(tmp_path, f"filename,labels\n{rows}", "clips.csv")
    place = {"dataset": "csv", "data_dir": str(path)}

    def trained_on(**given):
        origin = {
            "settings": {**place, "seed": 0, "corpus_seed": 0, **given},
            "given": sorted({**place, **given}),
            "corpus": {"train": {}},
        }
        settings = evaluate.EvaluateSettings(**place)
        return set(evaluate.trained_on(settings, origin)[0])

    def drawn(seed):
        return set(corpora.load_corpus("csv", path, seed=seed)["train"].files)

    assert drawn(0) != drawn(5)
    assert trained_on(seed=5) == drawn(0)
    assert trained_on(seed=5, corpus_seed=0) == drawn(0)
    assert trained_on(seed=0, corpus_seed=5) == drawn(5)


def test_names_of_another_corpus_are_not_what_a_model_has_heard(tmp_path):
    """One's own recordings, of the layout that the model was trained in."""
    rows = "".join(f"{number}.wav,{'ab'[number % 2]}\n" for number in range(40))
    path = write_csv(tmp_path, f"filename,labels\n{rows}", "mine.csv")
    origin = {
        "settings": {"dataset": "csv", "corpus_seed": 5, "seed": 0},
        "given": ["corpus_seed", "dataset"],
        "corpus": {"train": {"files": 32, "sha256": "of others"}},
    }
    settings = evaluate.EvaluateSettings(dataset="csv", data_dir=str(path))
    corpus = settings.load()["test"]
    found = evaluate.trained_on(settings, origin)
    marks = np.zeros(3, np.uint64)
    assert evaluate.heard_by_name(corpus, *found, marks) is None
    # Of an older model, nothing but names is known.
    again = evaluate.heard_by_name(corpus, *found)
    assert again and set(again) < set(corpus.files)
    record = corpus_records.make(
        {"train": corpora.load_corpus("csv", path, seed=5)["train"]}, tmp_path
    )
    origin["corpus"] = corpus_records.summary(record)
    found = evaluate.trained_on(settings, origin)
    assert evaluate.heard_by_name(corpus, *found, marks) == again


def test_marks_tell_what_a_model_has_heard(tmp_path):
    rng = np.random.default_rng(4)
    sounds = [0.1 * rng.standard_normal(size) for size in (700, 700, 900)]
    sounds.append(np.zeros(800))
    files = [str(tmp_path / f"{row}.wav") for row in range(len(sounds))]
    for file, samples in zip(files, sounds):
        soundfile.write(file, samples, 8_000, subtype="FLOAT")
    clips = data.prepare(
        corpora.Corpus(files, [["a"]] * len(files), ["a"]),
        8_000,
        tmp_path / "cache",
        progress=False,
    )
    preset = tmp_path / "preset"
    preset.mkdir()
    for name in (preset, "audio_transformer_esc1", "audio_transformer_small"):
        assert heard.read(name) == heard.Heard()
    # Silence is the same as no other, and has a mark for all that.
    own = heard.Heard(clips.marks[[3, 1]], clips.marks[[1, 2]])
    heard.write(preset, [own])
    known = heard.read(preset)
    marks = known.learned
    assert len(marks) == 2
    assert heard.find(marks, clips) == [files[1]]
    assert heard.find(known.pretrained, clips) == files[1:3]
    assert heard.find(known.unlabelled(), clips) == [files[2]]
    # What goes on from a preset has heard what that has.
    later = tmp_path / "later"
    later.mkdir()
    nothing = heard.read("none")
    heard.write(later, [heard.Heard(clips.marks[[0]]), nothing, known])
    assert heard.find(heard.read(later).learned, clips) == files[:2]
    assert heard.find(heard.read(later).pretrained, clips) == files[1:3]
    # What a start that was killed has left is not that of a run.
    settings = train.TrainSettings(model=str(preset))
    listed = {"a.wav": [7, "dog"]}
    heard.keep(
        later, heard.Heard(np.array([2**64 - 7], "uint64"), None, listed)
    )
    np.testing.assert_array_equal(
        heard.began_with(settings, later).learned, marks
    )
    (later / "config.json").write_text("{}")
    found = heard.began_with(settings, later)
    assert found.learned.tolist() == [2**64 - 7] and found.pretrained is None
    assert found.listed == listed
    # A run of before tells nothing of its own.
    (later / heard.BEFORE).unlink()
    np.testing.assert_array_equal(
        heard.began_with(settings, later).learned, marks
    )
    np.save(preset / "heard.npy", marks.astype("float64"))
    with pytest.raises(ValueError, match="heard.npy must hold marks.*float64"):
        heard.read(preset)
    (preset / "heard.npy").write_bytes(b"no array")
    with pytest.raises(ValueError, match="heard.npy cannot be read"):
        heard.read(preset)


def test_an_export_has_the_marks_of_its_preset(tmp_path, monkeypatch, capsys):
    """Or a file that was exported could be scored on what it has learned."""
    preset, origin = tmp_path / "preset", {"seed": 3}
    preset.mkdir()
    learned = np.array([5, 2**63 + 9], "uint64")
    known = heard.Heard(learned, np.array([6], "uint64"))
    assert heard.noted(origin, preset) == origin
    assert heard.noted(None, preset) is None
    heard.write(preset, [known])
    (preset / "provenance.json").write_text(json.dumps(origin))
    told = []

    def write(model, path, options, quantize, provenance):
        told.append(provenance)
        yield "onnx", path

    monkeypatch.setattr(classifiers, "load_trained", lambda name: None)
    monkeypatch.setattr(several, "write", write)
    out = str(tmp_path / "out")
    assert cli.main(["export", out, "--model", str(preset)]) == 0
    stored = tmp_path / "model.onnx"
    stored.touch()
    beside = tmp_path / "model.onnx.json"
    beside.write_text(json.dumps({"provenance": told[0]}))
    found = heard.read(stored)
    np.testing.assert_array_equal(found.learned, learned)
    assert found.pretrained.tolist() == [6]
    assert classifiers.read_provenance(stored)["seed"] == 3
    beside.write_text(json.dumps({"provenance": None}))
    assert heard.read(stored) == heard.Heard()


def test_exports_are_not_compared_on_clips_that_trained(
    tmp_path, capsys, monkeypatch
):
    """Or the accuracies beside the formats would be those of no new clip."""
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "cache"))
    rng, top = np.random.default_rng(8), tmp_path / "clips"
    for name in ("train/a/0", "train/b/1", "test/a/0", "test/b/1"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        audio = 0.1 * rng.standard_normal(900)
        soundfile.write(top / f"{name}.wav", audio, 8_000)
    corpus = corpora.load_corpus("folders", top)["test"]
    clips = data.prepare(corpus, 8_000, tmp_path / "cache", progress=False)
    preset = tmp_path / "preset"
    classifier = AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000), labels=["a", "b"], chunk_s=0.1
    )
    classifier.save_to_preset(str(preset))
    heard.write(preset, [heard.Heard(clips.marks[[1]])])
    arguments = ["export", str(tmp_path / "out"), "--model", str(preset)]
    arguments += ["--verify", "--dataset", "folders", "--data-dir", str(top)]
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert f"--model {preset} must not have learned from clips that" in said
    assert "--other-splits allows that" in said
    assert f"1 of test, such as {clips.corpus.files[1]}" in said
    assert not (tmp_path / "out").exists()
    asked = classifier, preset, "folders", top
    chunks = evaluate.labelled_chunks(*asked, other_splits=True)
    assert len(chunks.clips) == 2
    # Nobody knows what a preset without marks was trained on.
    (preset / heard.FILE).unlink()
    assert len(evaluate.labelled_chunks(*asked).clips) == 2


def test_exports_are_compared_on_the_folds_that_are_asked_for(
    tmp_path, monkeypatch
):
    """With targets in the order of the model's labels, a turn of three."""
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "cache"))
    rng, names = np.random.default_rng(8), ["cat", "dog", "rain"]
    text = "filename,fold,target,category\n"
    (tmp_path / "audio").mkdir()
    for fold in (1, 2, 3, 4, 5):
        for target, name in enumerate(names):
            file = f"{fold}-{fold}{target}-A-{target}.wav"
            text += f"{file},{fold},{target},{name}\n"
            audio = 0.1 * rng.standard_normal(900)
            soundfile.write(tmp_path / "audio" / file, audio, 8_000)
    write_csv(tmp_path, text, "esc10.csv")
    model = AudioClassifier(
        tiny.backbone(sample_rate_hz=8_000),
        labels=["rain", "cat", "dog"],
        chunk_s=0.1,
    )
    for folds, expected in (([2], [2]), ([4, 3], [3, 4]), (None, [5])):
        chunks = evaluate.labelled_chunks(
            *(model, tmp_path / "none", "esc10", str(tmp_path), folds),
            other_splits=folds == [4, 3],
        )
        corpus = chunks.clips.corpus
        found = [int(pathlib.Path(file).name[0]) for file in corpus.files]
        assert found == [fold for fold in expected for _ in names]
        said = [model.labels[row.argmax()] for row in chunks.targets]
        assert said == names * len(expected)


def test_a_model_is_not_scored_on_what_it_was_trained_on(tmp_path):
    """Whatever split the corpus now says that it is; folds may be missing."""
    text = "filename,fold,target,category\n"
    for fold in (1, 2, 3, 4):
        text += f"{fold}-1{fold}-A.wav,{fold},3,dog\n"
    write_csv(tmp_path, text, "esc10.csv")
    given = {"dataset": "esc10", "train_folds": [1, 2], "seed": 5}
    origin = {
        "settings": {**given, "epochs": 3},
        "given": sorted(given),
        "corpus": {"train": {}},
    }

    def known(**changes):
        settings = evaluate.EvaluateSettings(
            **{
                "dataset": "esc10",
                "data_dir": str(tmp_path),
                "train_folds": [4],
                "val_folds": [1],
                "test_folds": [3],
                **changes,
            }
        )
        corpus = settings.load()[settings.split]
        files = evaluate.trained_on(settings, origin)
        return evaluate.heard_by_name(corpus, *files)

    # The list has another content than that of the training.
    assert known(other_splits=True) is None
    training = DataSettings(
        **given,
        data_dir=str(tmp_path),
        val_folds=[3],
        test_folds=[4],
        other_splits=True,
    )
    record = corpus_records.make(training.load(), training.file_root())
    origin["corpus"] = corpus_records.summary(record)
    first = str(tmp_path / "audio" / "1-11-A.wav")
    assert known(other_splits=True) == []
    assert [*map(str, known(other_splits=True, split="val"))] == [first]
    nothing = {"train_folds": [], "val_folds": []}
    assert [*map(str, known(**nothing, test_folds=[1]))] == [first]
    assert known(**nothing, test_folds=[4]) == []
    # A fold that this copy of the corpus does not have.
    origin["settings"] |= {"train_folds": [5], "test_folds": [3]}
    origin["given"].append("test_folds")
    assert known(**nothing, test_folds=[1]) is None
    origin["settings"] |= {"train_folds": [1, 2]}
    assert [*map(str, known(**nothing, test_folds=[1]))] == [first]
    # Names in the training of another corpus tell nothing.
    origin["settings"]["dataset"] = "esc50"
    assert known(**nothing, test_folds=[1]) is None


def test_a_deviation_is_of_the_seeds_that_were_run():
    """As the pages say of all tables; by hand, of 1, 2 and 6."""
    assert results.deviation([1.0, 2.0, 6.0]) == pytest.approx((14 / 3) ** 0.5)
    assert results.deviation([0.25]) == 0.0
