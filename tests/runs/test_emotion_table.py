"""Tables of decoders over embeddings: rows that are run, kept, and shown."""

import argparse
import json
import pathlib

import keras
import numpy as np
import pytest
from scripts import in_this_process

if keras.backend.backend() != "tensorflow":
    pytest.skip("audio is read through tf.data", allow_module_level=True)

from audio_tf.runs import (
    baseline,
    corpus_records,
    emotion_rows,
    emotion_table,
    fold_arrays,
    processes,
    provenance,
)
from audio_tf.runs.baseline import BaselineSettings
from audio_tf.runs.flags import add_flags


def test_the_papers_tables_are_whole():
    """Sums of the columns of Tables 2, 3 and 4, by hand."""
    columns = [*zip(*emotion_rows.MODULES.values(), strict=True)][1:]
    sums = [sum(each or 0 for each in column) for column in columns]
    assert sums == pytest.approx([4.537, 5.239, 6.616])


def report(accuracies, folds=("a", "b"), **changes):
    done = {
        name: {
            "heads": 8,
            "attention_parameters": 16_384,
            "parameters": 336_412,
            "validation": folds[place - 1],
            "tested": name,
        }
        for place, name in enumerate(folds)
    }
    return {
        "accuracy": accuracies[0],
        "balanced_accuracy": accuracies[1],
        "folds": done,
        "wanted": list(folds),
        "layers": [1, 2],
        "corpus": {},
        "model": None,
        **changes,
    }


def write(folder, content):
    folder.mkdir(parents=True)
    (folder / "emotion.json").write_text(json.dumps(content))


def test_a_table_has_seeds_baselines_and_the_papers_values(tmp_path):
    settings = emotion_table.EmotionTableSettings(
        embeddings="x.npz", out=str(tmp_path), paper="ag_news"
    )
    write(tmp_path / "gqgaam" / "seed_0", report((0.5, 0.4)))
    write(tmp_path / "gqgaam" / "seed_2", report((0.7, 0.8)))
    # One fold is wanted still.
    write(tmp_path / "mha" / "seed_0", report((0.1, 0.1), wanted=["c"]))
    baselines = emotion_table.baseline_facts(
        [
            {"figures": {"forest": {"accuracy": {"values": values}}}}
            for values in ([0.2, 0.4], [0.4, 0.8])
        ]
    )
    text = emotion_rows.write_table(settings, emotion_rows.MODULES, baselines)
    lines = text.splitlines()
    assert len(lines) == 4 and len({line.count("|") for line in lines}) == 1
    assert "| 16,384 | 0.6000 +- 0.1000 | 0.6000 +- 0.2000 | 2 |" in lines[2]
    assert "| 1 2 | 8 |" in lines[2] and lines[2].endswith("| 0.948 |")
    # Seeds first: 0.3 and 0.6.
    assert "0.4500 +- 0.1500 | - | 2 | - |" in lines[3]
    assert (tmp_path / "table.md").read_text() == text + "\n"
    # One seed has no spread, nor has the regression, which draws nothing.
    write(tmp_path / "mha" / "seed_1", report((0.1, 0.1)))
    baselines = emotion_table.baseline_facts(
        [{"figures": {"logistic": {"accuracy": {"values": [0.6]}}}}]
    )
    text = emotion_rows.write_table(settings, emotion_rows.MODULES, baselines)
    assert "| 0.1000 | 0.1000 | 1 |" in text
    assert "| 0.6000 | - | 1 | - |" in text
    write(tmp_path / "sga" / "seed_0", report((0.5, 0.4), corpus={"all": 1}))
    with pytest.raises(ValueError, match="is not that of the rows before"):
        emotion_rows.write_table(settings, emotion_rows.MODULES)


def test_rows_are_of_the_corpus_as_it_is_now(tmp_path):
    folders = [tmp_path / name for name in ("corpus", "other")]
    lines = ["filename,labels,split"]
    for number, split in enumerate(["train", "train", "val", "test"]):
        lines.append(f"{number}.wav,{'ab'[number % 2]},{split}")
    for folder, sound in zip(folders, (b"one", b"other"), strict=True):
        folder.mkdir()
        (folder / "list.csv").write_text("\n".join(lines))
        for number in range(4):
            (folder / f"{number}.wav").write_bytes(sound)
    config = tmp_path / "emotion.py"
    content = {"dataset": "csv", "protocol": "splits"}
    config.write_text(f"def get_config(): return {content}\n")

    def begin(folder):
        settings = emotion_table.EmotionTableSettings(
            emotion_config=str(config),
            model="preset",
            data_dir=str(folder / "list.csv"),
            out=str(tmp_path / "out"),
        )
        settings.begin()
        return settings

    training = begin(folders[0]).training()
    record = corpus_records.make(training.load(), training.file_root())
    run = tmp_path / "out" / "mha" / "seed_0"
    provenance.begin_run(run, training, record)
    # A corpus may be moved.
    begin(folders[0].rename(tmp_path / "moved"))
    message = "mha.seed_0.corpus.json lists.* 4 files .* changed, test and tra"
    with pytest.raises(ValueError, match=message):
        begin(folders[1])


@pytest.mark.parametrize("weights", ["model.weights.h5", "model.safetensors"])
def test_rows_are_of_the_encoder_as_it_is_now(weights, tmp_path):
    """A table whose rows are all there would be that of the old one."""
    (tmp_path / "list.csv").write_text(
        "filename,labels,split\na.wav,a,train\nb.wav,b,val\nc.wav,a,test\n"
    )
    config = tmp_path / "emotion.py"
    content = {"dataset": "csv", "protocol": "splits"}
    config.write_text(f"def get_config(): return {content}\n")
    preset = tmp_path / "preset"
    preset.mkdir()
    (preset / weights).write_bytes(b"one")

    def begin():
        emotion_table.EmotionTableSettings(
            emotion_config=str(config),
            model=str(preset),
            data_dir=str(tmp_path / "list.csv"),
            out=str(tmp_path / "out"),
        ).begin()

    begin()
    (preset / "README.md").write_text("A card.")
    begin()
    (preset / weights).write_bytes(b"two")
    with pytest.raises(ValueError, match="other values of encoder"):
        begin()
    # A table of before does not say which it was.
    file = tmp_path / "out" / "config.json"
    asked = json.loads(file.read_text())
    del asked["encoder"]
    file.write_text(json.dumps(asked))
    begin()
    assert json.loads(file.read_text())["encoder"] is not None


def test_rows_are_of_the_embeddings_as_they_are_now(tmp_path):
    path, rng = tmp_path / "x.npz", np.random.default_rng(0)
    config = tmp_path / "emotion.py"
    config.write_text("def get_config(): return {'protocol': 'splits'}\n")

    def write_arrays():
        np.savez(
            path,
            embeddings=rng.normal(size=(3, 2, 4)),
            labels=["a", "b", "a"],
            splits=["train", "val", "test"],
        )

    def begin():
        settings = emotion_table.EmotionTableSettings(
            emotion_config=str(config),
            embeddings=str(path),
            out=str(tmp_path / "out"),
        )
        settings.begin()
        return settings

    write_arrays()
    training = begin().training()
    record = fold_arrays.arrays_record(path, fold_arrays.read_arrays(path))
    run = tmp_path / "out" / "mha" / "seed_0"
    provenance.begin_run(run, training, record)
    begin()
    write_arrays()
    message = "mha.seed_0.corpus.json lists.*1 files .'x.npz'. labelled other"
    with pytest.raises(ValueError, match=message):
        begin()


def test_a_config_that_is_edited_meanwhile_ends_the_table(
    tmp_path, monkeypatch
):
    """Each row reads it anew: the others would be trained otherwise."""
    ran, config = [], tmp_path / "emotion.py"
    monkeypatch.setattr(processes, "run", lambda *command: ran.append(command))
    np.savez(
        tmp_path / "x.npz",
        embeddings=np.zeros((3, 2, 4)),
        labels=["a", "b", "a"],
        splits=["train", "val", "test"],
    )
    config.write_text("def get_config(): return {'protocol': 'splits'}\n")
    settings = emotion_table.EmotionTableSettings(
        emotion_config=str(config),
        embeddings=str(tmp_path / "x.npz"),
        out=str(tmp_path / "out"),
    )
    settings.begin()
    settings.train(tmp_path / "out" / "mha" / "seed_0", 0, module="mha")
    config.write_text(config.read_text().replace("}", ", 'epochs': 7}"))
    with pytest.raises(ValueError, match=r"training\.epochs \(None, now 7\)"):
        settings.train(tmp_path / "out" / "sga" / "seed_0", 0, module="sga")
    assert len(ran) == 1


@pytest.mark.parametrize("presets", [False, True])
def test_a_row_goes_on_to_what_it_writes_behind_its_folds(
    tmp_path, monkeypatch, presets
):
    """As where the table was stopped between the last fold and that."""
    config, ran = tmp_path / "emotion.py", []
    config.write_text(f"def get_config(): return {{'presets': {presets}}}\n")
    settings = emotion_table.EmotionTableSettings(
        emotion_config=str(config), model="preset", data_dir=str(tmp_path)
    )
    monkeypatch.setattr(processes, "run", lambda *command: ran.append(command))
    out = tmp_path / "row"
    write(out, report((0.5, 0.4)))
    (out / "config.json").write_text("{}")

    def is_run():
        ran.clear()
        settings.train(out, 0, module="gaam_v1")
        assert all("--resume" in command for command in ran)
        return len(ran)

    # A module without a map has no Importance Factor.
    assert is_run() == 0
    for name in "ab":
        (out / f"fold_{name}").mkdir()
        (out / f"fold_{name}" / "map.npy").write_bytes(b"")
    assert is_run() == 1
    (out / "importance.npz").write_bytes(b"")
    assert is_run() == presets
    for name in "ab":
        assert is_run() == presets
        (out / f"fold_{name}" / "preset").mkdir()
    assert is_run() == 0


@pytest.fixture
def asked(monkeypatch):
    """The `BaselineSettings` of baselines that are asked for, and not run."""
    found = []

    def run(command, *flags):
        assert command == "baseline"
        parser = argparse.ArgumentParser()
        add_flags(parser, BaselineSettings)
        settings = BaselineSettings(
            **vars(parser.parse_args([str(each) for each in flags]))
        )
        found.append(settings)
        values = [0.5 + 0.2 * (seed % 2) for seed in settings.seeds]
        report = {
            "figures": {"forest": {"accuracy": {"values": values}}},
            "settings": {"seeds": settings.seeds},
        }
        pathlib.Path(settings.report).write_text(json.dumps(report))

    monkeypatch.setattr(processes, "run", run)
    # There is no corpus.
    monkeypatch.setattr(baseline, "still_holds", lambda *_: True)
    return found


def test_the_baseline_has_the_folds_of_the_decoders(tmp_path, asked):
    def mean(*seeds):
        settings = emotion_table.EmotionTableSettings(
            model="preset",
            data_dir="there",
            out=str(tmp_path),
            seeds=list(seeds),
        )
        done = report((0, 0), ("03", "08"))
        found = emotion_table.run_baseline(settings, done)
        return found["forest"]["mean"]["accuracy"]

    assert mean(0) == 0.5
    first = asked[0]
    assert (first.dataset, first.data_dir) == ("emodb", "there")
    assert (first.test_speakers, first.split) == (["03"], "test")
    assert first.val_speakers == ["08"]
    assert mean(0) == 0.5 and len(asked) == 2
    # Of the seeds of the rows, as they are now.
    assert mean(0, 1) == 0.6
    assert [each.seeds for each in asked] == [[0]] * 2 + [[0, 1]] * 2


@pytest.mark.parametrize("validate_on", ["next", "test"])
def test_the_baseline_leaves_out_sessions_as_the_decoders_do(
    validate_on, tmp_path, asked
):
    """A corpus that is split by folds; a fold left alone trains on nothing."""
    config = tmp_path / "config.py"
    values = {"dataset": "iemocap", "validate_on": validate_on}
    config.write_text(f"def get_config():\n    return {values!r}\n")
    settings = emotion_table.EmotionTableSettings(
        emotion_config=str(config),
        model="preset",
        data_dir="there",
        out=str(tmp_path / "out"),
        seeds=[0, 1],
    )
    done = {
        tested: {"tested": tested, "validation": each}
        for tested, each in (
            (("2", "3"), ("5", "1"))
            if validate_on == "next"
            else (("2", "2"), ("5", "5"))
        )
    }
    found = emotion_table.run_baseline(settings, {"folds": done})
    assert found["forest"]["mean"] == {"accuracy": 0.6}
    folds = [each.folds() for each in asked]
    assert (
        folds
        == {
            "next": [
                {"train": [1, 4, 5], "val": [3], "test": [2]},
                {"train": [2, 3, 4], "val": [1], "test": [5]},
            ],
            "test": [
                {"train": [1, 3, 4, 5], "val": [], "test": [2]},
                {"train": [1, 2, 3, 4], "val": [], "test": [5]},
            ],
        }[validate_on]
    )
    assert {each.split for each in asked} == {"test"}
    assert all(each.split_facts()["official"] for each in asked)


def test_the_baseline_reads_the_clips_as_the_decoders_do(tmp_path, asked):
    """By every setting of the corpus: another seed draws other splits."""
    config = tmp_path / "config.py"
    values = {
        **{"dataset": "folders", "protocol": "splits"},
        **{"corpus_seed": 5, "strict": True},
    }
    config.write_text(f"def get_config():\n    return {values!r}\n")
    settings = emotion_table.EmotionTableSettings(
        emotion_config=str(config),
        model="preset",
        data_dir="there",
        out=str(tmp_path),
    )
    found = emotion_table.run_baseline(settings, report((0, 0), ("test",)))
    assert list(found) == ["forest"]
    (of_splits,) = asked
    assert (of_splits.dataset, of_splits.corpus_seed) == ("folders", 5)
    assert of_splits.strict


@pytest.mark.long
def test_rows_are_run_once_and_layers_selected(
    tmp_path, main, monkeypatch, capsys, eager_models
):
    rng = np.random.default_rng(0)
    file = tmp_path / "x.npz"
    np.savez(
        file,
        embeddings=rng.standard_normal((9, 4, 6)).astype("float32"),
        labels=np.array(list("abc") * 3),
        groups=np.repeat([1, 2, 3], 3),
    )
    config = tmp_path / "config.py"
    values = {"filters": 1, "epochs": 1, "leave_out": ["1"], "num_heads": 1}
    config.write_text(f"def get_config():\n    return {values!r}\n")
    monkeypatch.setattr("audio_tf.runs.processes.start", in_this_process)
    common = ["--emotion-config", config, "--embeddings", file, "--seeds", 0]
    out = tmp_path / "table"
    with pytest.raises(SystemExit):
        main("reproduce", "emotion", *common, "--out", out)
    assert "'num_heads' is that of the rows" in capsys.readouterr().err
    del values["num_heads"]
    config.write_text(f"def get_config():\n    return {values!r}\n")
    table = ["reproduce", "emotion", *common, "--out", out, "--rows", "gaam_v2"]
    main(*table)
    output = capsys.readouterr().out
    assert "$ audio-tf emotion --config" in output
    assert "no baseline: arrays have no audio" in output
    main(*table)
    assert "$ " not in capsys.readouterr().out

    importance = out / "gaam_v2" / "seed_0" / "importance.npz"
    means = np.load(importance)["importance"].mean(axis=1)
    arguments = [*common, "--importance", importance]
    main("reproduce", "layers", *arguments, "--out", tmp_path / "layers")
    output = capsys.readouterr().out
    assert f"high Importance Factor: layers [{means.argmax() + 1}]" in output
    content = json.loads((tmp_path / "layers" / "table.json").read_text())
    assert content["low"]["layers"] == [int(means.argmin()) + 1]
    assert content["high"]["paper"] == 0.640
    assert pathlib.Path(tmp_path / "layers" / "table.md").is_file()
