"""Table 1 of Audio Transformers: rows that are run, kept, and shown."""

import csv
import json
import pathlib
import shutil

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

from scripts import in_this_process

from audio_tf import models
from audio_tf.runs import (
    flags,
    processes,
    provenance,
    sound_rows,
    sound_table,
    train,
    train_data,
)


def test_the_papers_table_is_whole():
    """Sums of the columns, by hand; one figure is a question mark there."""
    table = sound_rows.TABLE_1
    assert len(table) == 8
    assert sum(row.mAP or 0 for row in table.values()) == pytest.approx(3.18)
    total = sum(row.parameters for row in table.values())
    assert total == pytest.approx(32.83e6)
    assert [name for name in table if table[name].mAP is None] == [
        "large_multiscale"
    ]
    sizes = {row.settings["model"] for row in table.values()}
    assert len(sizes) == 8 and sizes <= set(models.list_sizes())


def settings(**changes):
    return sound_rows.SoundTableSettings(
        **{"data_dir": "there", "seeds": [0, 1], **changes}
    )


def test_a_rows_settings_are_its_own_then_those_of_all_then_of_one():
    asked = settings(
        batch_size=3,
        train_settings={
            "learning_rate": 0.2,
            "model_kwargs": {"dropout": 0.5},
            "silence_db": -60.0,
        },
        row_settings={
            "large": {"learning_rate": 0.3, "batch_size": 7},
            "crnn": {"patience": None},
        },
    )
    small, large, crnn, vgg = (
        asked.values(name) for name in ("small", "large", "crnn", "vgg_like")
    )
    assert small["dataset"] == "fsd50k" and small["data_dir"] == "there"
    assert small["model_kwargs"] == {"frontend_gain": 1.0, "dropout": 0.5}
    assert (small["learning_rate"], small["batch_size"]) == (0.2, 3)
    assert (large["learning_rate"], large["batch_size"]) == (0.3, 7)
    assert "patience" not in crnn and vgg["patience"] == 10
    assert "seed" not in small and small["silence_db"] == -60.0
    # What is taken back from all may be given to one.
    taken = settings(
        train_settings={"model_kwargs": None},
        row_settings={"large": {"model_kwargs": {"dropout": 0.1}}},
    )
    assert "model_kwargs" not in taken.values("small")
    assert taken.values("large")["model_kwargs"] == {"dropout": 0.1}
    # The rows' own figure to stop by needs clips to compute it of.
    alone = asked.values("vgg_like", validated=False)
    assert set(vgg) - set(alone) == {"monitor", "patience", "schedule"}
    # The table of rows itself is as it was.
    row = sound_rows.TABLE_1["small"]
    assert row.settings["model_kwargs"] == {"frontend_gain": 1.0}


def test_what_does_not_fit_is_named(refusal, tmp_path):
    given = ["reproduce", "fsd50k", "--out", tmp_path / "out"]
    for arguments, said in (
        (["--rows", "large_poled"], "did you mean 'large_pooled'"),
        (["--rows"], "--rows must not be empty"),
        (["--seeds"], "--seeds must not be empty"),
        (["--seed", "3"], "--seed"),
        (["--train-settings", '{"epoch": 1}'], "no setting 'epoch'; did you"),
        (["--train-settings", '{"epochs": 1}'], "of its own, --epochs"),
        (["--row-settings", '{"large": {"seed": 1}}'], "that of the rows"),
        (["--row-settings", '{"large": {"dataset": "csv"}}'], "--dataset"),
        (["--row-settings", '{"larg": {}}'], "did you mean 'large'"),
        (["--row-settings", '{"crnn": {"epochs": 0}}'], "row crnn: --epochs"),
        (["--train-settings", '{"test": false}'], "--score-split test needs"),
        (["--val-folds", 1], "--val-folds"),
        (["--data-dir", tmp_path / "none"], "none"),
        (["--data-dir", tmp_path / "out"], "than that of the corpus"),
    ):
        line = refusal(*given, *arguments)
        assert said in line, line
    assert not (tmp_path / "out").exists()


def write_run(out, row, seed, report, **corpus):
    folder = out / row / f"seed_{seed}"
    (folder / "preset").mkdir(parents=True)
    provenance = {"corpus": {"train": 7, "val": 5, **corpus}}
    (folder / "preset" / "provenance.json").write_text(json.dumps(provenance))
    (folder / "val.json").write_text(json.dumps(report))
    (folder / "config.json").write_text("{}")


def test_seeds_that_are_not_asked_for_stay_in_the_table(tmp_path):
    """Also in answers, and of rows that have them alone."""
    for row, values in (("small", (0.4, 0.48)), ("large", (0.5, 0.6))):
        for seed, value in enumerate(values):
            report = {"mAP": value, "accuracy": None}
            write_run(tmp_path, row, seed, report)
    tables = [
        sound_table.write_table(
            settings(out=tmp_path, score_split="val", seeds=seeds)
        )
        for seeds in ([0, 1], [1], [2])
    ]
    assert "| 0.4400 |" in tables[0] and "+0.1100" in tables[0]
    assert tables[1:] == tables[:1] * 2


def test_a_table_has_intervals_pairs_and_the_papers_values(tmp_path):
    for row, values in (
        ("large", (0.5, 0.6)),
        ("small", (0.4, 0.48)),
        ("large_multiscale", (0.1,)),
    ):
        for seed, value in enumerate(values):
            report = {"mAP": value, "accuracy": None}
            write_run(tmp_path, row, seed, report)
    asked = settings(out=tmp_path, score_split="val")
    count = {"parameters": 987_272}
    (tmp_path / "small" / "parameters.json").write_text(json.dumps(count))
    text = sound_table.write_table(asked)
    rows, _, helps = text.partition("\n\n")
    lines = rows.splitlines()
    assert len({line.count("|") for line in lines}) == 1
    # In the paper's order. t of 1 degree of freedom is 12.706, which times
    # 0.04 is 0.5082, and below 0 there is no figure.
    assert lines[2] == (
        "| Small Transformer `audio_transformer_small` | 0.4400 | "
        "0.0000 to 0.9482 | - | 2 | 987,272 | 0.469 | 0.90 M |"
    )
    assert "Large 6-Layer Transformer `" in lines[3]
    assert lines[4].endswith("| 0.1000 | - | - | 1 | - | - | 2.30 M |")
    # Seed by seed: 0.1 and 0.12 of depth; 0.1 less 0.5 of averages.
    depth, averages, _, corpus = helps.splitlines()[2:]
    assert corpus == "fsd50k, val split"
    assert depth.startswith("| more depth | +0.1100 | -0.0171 to +0.2371 | 2 ")
    assert depth.endswith("| +0.056 |")
    assert averages == "| multi-scale averages | -0.4000 | - | 1 | - |"

    content = json.loads((tmp_path / "table1.json").read_text())
    assert content["rows"]["large"]["mAP"]["by_seed"] == {"0": 0.5, "1": 0.6}
    assert content["help"]["more depth"]["paper"] == pytest.approx(0.056)
    with open(tmp_path / "table1.csv", newline="") as file:
        first, *_ = csv.DictReader(file)
    assert first["mAP"] == "0.44" and first["accuracy"] == ""
    assert first["parameters"] == "987272" and first["paper_mAP"] == "0.469"


@pytest.mark.parametrize(("row", "seed"), [("crnn", 0), ("small", 1)])
def test_figures_of_other_clips_are_neither_compared_nor_averaged(
    tmp_path, row, seed
):
    """But a row may leave the test out, whose figures do not count."""
    asked = settings(out=tmp_path, score_split="val")
    report = {"mAP": 0.1, "accuracy": None}
    write_run(tmp_path, "small", 0, report)
    write_run(tmp_path, "large", 0, report, test=3)
    sound_table.write_table(asked)
    write_run(tmp_path, row, seed, report, val=4)
    with pytest.raises(ValueError, match="seed_. is not that of .*seed_0"):
        sound_table.write_table(asked)


def test_parameters_are_of_the_training_that_is_there_now(
    tmp_path, monkeypatch
):
    asked, ran = settings(out=str(tmp_path)), []

    def count(arguments, device):
        ran.append(arguments)
        content = {"asked": json.loads(arguments[3]), "parameters": len(ran)}
        pathlib.Path(arguments[2]).write_text(json.dumps(content))

    def train(**own):
        folder = asked.folder("small", 1)
        folder.mkdir(parents=True, exist_ok=True)
        content = {"settings": {"epochs": 3, **own}}
        (folder / "config.json").write_text(json.dumps(content))
        return sound_table.parameters("small", 1, asked)

    monkeypatch.setattr(processes, "start", count)
    assert [train(), train(), train(data_dir="moved")] == [1, 1, 1]
    # As where its runs were removed, and made again with other settings.
    assert train(model_kwargs={"num_layers": 2}) == 2
    assert ran[0][:2] == ["reproduce", "parameters"]


def test_seeds_are_of_the_corpus_as_it_is_now(tmp_path):
    folder, out = tmp_path / "corpus", tmp_path / "out"
    folder.mkdir()
    lines = ["filename,labels,split"]
    for number, split in enumerate(["train", "train", "val", "test"]):
        (folder / f"{number}.wav").write_bytes(b"not decoded")
        lines.append(f"{number}.wav,{'ab'[number % 2]},{split}")
    listed = folder / "list.csv"
    listed.write_text("\n".join(lines))

    def begin(*seeds):
        asked = settings(
            dataset="csv",
            data_dir=str(listed),
            out=str(out),
            seeds=list(seeds),
            row_settings={"small": {"test": False}},
            score_split="val",
        )
        sound_table.begin(asked)
        return asked

    asked = begin(0)
    for row in ("small", "large"):
        training = asked.training(row)
        record = train_data.listed(training, training.load())[1]
        assert ("test" in record["splits"]) == (row == "large")
        folder = asked.folder(row, 0)
        provenance.begin_run(folder, training, record)
    # A copy that a user keeps is none of the table's.
    shutil.copytree(folder, out / "large_old" / "seed_0")
    begin(0, 1)
    listed.write_text("\n".join(lines).replace("0.wav,a", "0.wav,b"))
    message = "small.seed_0.corpus.json lists.*1 files .'0.wav'. labelled oth"
    with pytest.raises(ValueError, match=message):
        begin(0, 1)


def test_a_table_goes_on_to_its_test(tmp_path, monkeypatch):
    """Once settings are chosen on validation: nothing is trained for it."""
    listed, ran = tmp_path / "list.csv", []
    lines = ["a.wav,a,train", "b.wav,b,val", "c.wav,a,test"]
    listed.write_text("\n".join(["filename,labels,split", *lines]))
    given = {"dataset": "csv", "data_dir": str(listed), "out": str(tmp_path)}
    first = settings(**given, train_settings={"test": False}, score_split="val")
    sound_table.begin(first)
    write_run(tmp_path, "small", 0, {"mAP": 0.5, "accuracy": 0.5})
    training = first.training("small")
    record = train_data.listed(training, training.load())[1]
    provenance.begin_run(first.folder("small", 0), training, record)

    def run(command, *words, device):
        given = list(map(str, words)), True, train.FREE_SETTINGS
        ran.append(flags.parse(train.TrainSettings, "", *given))

    monkeypatch.setattr(processes, "run", run)
    sound_table.train("small", 0, first, True)
    assert not ran
    # With the test at the end of further runs, figures are still those of val.
    asked = settings(**given, score_split="val")
    sound_table.begin(asked)
    sound_table.train("small", 0, asked, True)
    assert not ran
    asked = settings(**given)
    sound_table.begin(asked)
    assert sound_table.finished_reports(asked) == {}
    sound_table.train("small", 0, asked, True)
    ((again, resumed),) = ran
    assert again.test and resumed
    with pytest.raises(ValueError, match=r"small\.test \(None, now False\)"):
        sound_table.begin(first)


def test_rows_are_of_the_teachers_as_they_are_now(tmp_path):
    """But for rows that have not begun."""
    listed, teacher = tmp_path / "list.csv", tmp_path / "teacher"
    lines = ["a.wav,a,train", "b.wav,b,val", "c.wav,a,test"]
    listed.write_text("\n".join(["filename,labels,split", *lines]))
    teacher.mkdir()
    weights = teacher / "model.weights.h5"
    weights.write_bytes(b"one")
    asked = settings(
        dataset="csv",
        data_dir=str(listed),
        out=str(tmp_path / "out"),
        row_settings={"small": {"teachers": [str(teacher)]}},
    )
    sound_table.begin(asked)
    weights.write_bytes(b"two")
    sound_table.begin(asked)
    training = asked.training("small")
    record = train_data.listed(training, training.load())[1]
    provenance.begin_run(asked.folder("small", 0), training, record)
    sound_table.begin(asked)
    weights.write_bytes(b"three")
    with pytest.raises(ValueError, match="other values of weights.small.*now"):
        sound_table.begin(asked)
    # A table of before does not say which it was, and rows may outlive it.
    file = tmp_path / "out" / "config.json"
    said = json.loads(file.read_text())
    del said["weights"]
    file.write_text(json.dumps(said))
    sound_table.begin(asked)
    weights.unlink()
    sound_table.begin(asked)


# Rows that are small, and trained on chunks of a tenth of a second.
RIVAL = {"num_mel_bins": 12, "sample_rate_hz": 8_000}
TRANSFORMER = {
    "num_heads": 1,
    "key_dim": 2,
    "hidden_dim": 4,
    "intermediate_dims": [2],
    "frontend_filters": 4,
    "sample_rate_hz": 8_000,
}
SMALL = {
    "crnn": {"filters": 2, "pools": [[2, 3], [2, 2]], "units": 2, **RIVAL},
    "vgg_like": {"filters": [2], "depths": [1], **RIVAL},
    "resnet18": {"filters": [2], "depth": 1, **RIVAL},
    "densenet121": {"depths": [1], "growth": 2, "stem_filters": 2, **RIVAL},
    "small": {"num_layers": 1, **TRANSFORMER},
    "large": {"num_layers": 2, **TRANSFORMER},
    "large_multiscale": {
        "num_layers": 2,
        "multiscale_windows": [2],
        **TRANSFORMER,
    },
    "large_pooled": {"num_layers": 3, "pool_kind": "max", **TRANSFORMER},
}


@pytest.mark.long
def test_eight_rows_are_run_once_and_failures_named(
    tmp_path, main, monkeypatch, capfd, eager_models, no_pictures
):
    """On noises of two classes; of one row an argument is wrong at first."""
    monkeypatch.setattr("audio_tf.runs.processes.start", in_this_process)
    rng, folder, lines = np.random.default_rng(0), tmp_path / "corpus", []
    folder.mkdir()
    for number in range(16):
        split = ("train", "train", "val", "test")[number // 2 % 4]
        noise = 0.1 * rng.standard_normal(800)
        soundfile.write(folder / f"{number}.wav", noise, 8_000)
        lines.append([f"{number}.wav", "ab"[number % 2], split])
    with open(folder / "list.csv", "w", newline="") as file:
        rows = [["filename", "labels", "split"], *lines]
        csv.writer(file).writerows(rows)
    out = tmp_path / "table"

    def run(test=False, **changes):
        by_row = {
            name: {"model_kwargs": {**SMALL[name], **changes.get(name, {})}}
            for name in SMALL
        }
        for name in ("crnn", "vgg_like", "resnet18", "densenet121"):
            by_row[name]["chunk_hop_s"] = 0.05
        main(
            *("reproduce", "fsd50k", "--dataset", "csv", "--out", out),
            *("--data-dir", folder / "list.csv", "--seeds", 5),
            *("--epochs", 1, "--batch-size", 4),
            *("--score-split", "test" if test else "val", "--train-settings"),
            json.dumps({"chunk_s": 0.1, **({} if test else {"test": False})}),
            *("--row-settings", json.dumps(by_row)),
        )

    with pytest.raises(SystemExit) as stopped:
        run(vgg_like={"depth": [1]})
    assert stopped.value.code == 1
    said = capfd.readouterr()
    failed = said.out.partition("1 runs failed:\n")[2]
    assert "--model vgg_like" in failed and "'depths'" in said.err
    content = json.loads((out / "table1.json").read_text())["rows"]
    assert set(content) == set(SMALL) - {"vgg_like"}
    with pytest.raises(SystemExit):
        run(small={"num_layers": 3})
    assert "small.model_kwargs.num_layers (" in capfd.readouterr().err

    # What the row failed by is put right.
    run()
    (command,) = [
        line
        for line in capfd.readouterr().out.splitlines()
        if line.startswith("$ ")
    ]
    assert "--model vgg_like" in command and "--seed 5" in command
    assert not list(out.rglob("test.json"))

    # Settings are chosen: all are tested, and none is trained.
    trained = {file: file.read_bytes() for file in out.rglob("last.keras")}
    assert len(trained) == 8
    run(test=True)
    said = capfd.readouterr().out
    assert said.count("--resume --test") == 8
    assert all(file.read_bytes() == trained[file] for file in trained)
    table = json.loads((out / "table1.json").read_text())
    assert list(table["rows"]) == list(SMALL)
    assert set(table["help"]) == set(sound_rows.QUESTIONS)
    for name, row in table["rows"].items():
        run_of = out / name / "seed_5"
        report = json.loads((run_of / "test.json").read_text())
        for figure in ("mAP", "accuracy"):
            assert row[figure]["mean"] == report[figure]
        # Not those of normalisations that are counted, not trained.
        model = models.AudioClassifier.from_preset(str(run_of / "preset"))
        assert row["parameters"] == model.count_params() - sum(
            int(np.prod(weight.shape)) for weight in model.non_trainable_weights
        )
    text = (out / "table1.md").read_text()
    assert len(text.splitlines()) == 10 + 6 + 2

    run(test=True)
    assert "\n$ " not in "\n" + capfd.readouterr().out
    assert (out / "table1.md").read_text() == text
