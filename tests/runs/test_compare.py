"""The comparison of attentions: rows, what they cost, and the table."""

import csv
import json
import pathlib
import resource
import shutil
import subprocess
import types

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

import tiny
from scripts import in_this_process

from audio_tf import models
from audio_tf.runs import (
    baseline,
    compare,
    compare_costs,
    compare_rows,
    compare_settings,
    corpus_records,
    flags,
    leaderboard,
    processes,
    provenance,
    train,
    train_data,
)
from audio_tf.runs.compare_settings import CompareSettings


def test_multiply_adds_are_those_of_the_attentions_of_all_blocks():
    backbone = tiny.backbone(num_layers=3, sample_rate_hz=1_000, causal=False)
    # Windows of 10 ms; by hand, of 23 frames with 12 features and 2 heads of
    # 5: four projections, and scores and mixture of all pairs.
    assert backbone.frame_size == 10
    by_hand = 3 * (4 * 23 * 12 * 10 + 2 * 23**2 * 10)
    assert compare_costs.multiply_adds(backbone, 230) == by_hand
    # The next samples begin another frame.
    assert compare_costs.multiply_adds(backbone, 231) > by_hand


def test_costs_are_of_frames_that_a_front_end_does_not_tell_beforehand(
    monkeypatch,
):
    backbone = tiny.backbone(causal=False)
    counts = (compare_costs.multiply_adds, compare_costs.paper_cost)
    known = [count(backbone, 230) for count in counts]

    def untold(frontend, waveform, lengths=None):
        return keras.KerasTensor((1, None, frontend.hidden_dim), "float32")

    kind = type(backbone.frontend)
    monkeypatch.setattr(kind, "compute_output_spec", untold)
    assert [count(backbone, 230) for count in counts] == known


def test_memory_is_that_of_the_device_that_the_backend_computes_on(monkeypatch):
    jax = pytest.importorskip("jax")
    told = {"peak_bytes_in_use": 12_345}
    device = types.SimpleNamespace(memory_stats=lambda: told)
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert compare_costs.peak_bytes() == 12_345
    # A processor tells of none: all that the process has had.
    told = None
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert compare_costs.peak_bytes() >= peak_kib * 2**10


@pytest.mark.parametrize(
    "name, options, each",
    [
        # By hand, of 23 frames with 12 features and 2 heads.
        ("full", {}, 2 * 23 * 12 + 2 * 23**2),
        ("full", {"num_heads": 3}, 2 * 23 * 12 + 3 * 23**2),
        ("sparse_fixed", {}, 23 * 12 + 2 * 23**1.5),
        ("xbox", {"num_candidates": 3}, 2 * 23**2 + 23 + 23 * 12 + 2 * 69),
        ("dense_synthesizer", {"intermediate_dim": 5}, 23 * 5 + 23**2),
        ("random_synthesizer", {}, 0),
        ("hybrid_local", {}, None),
    ],
)
def test_the_papers_cost_is_of_the_attentions_of_all_blocks(
    name, options, each
):
    backbone = tiny.backbone(
        num_layers=3,
        sample_rate_hz=1_000,
        causal=False,
        attention=name,
        attention_kwargs=options,
    )
    found = compare_costs.paper_cost(backbone, 230)
    assert found == (each if each is None else pytest.approx(3 * each))


@pytest.fixture
def config(tmp_path):
    """A config of a tiny model, on tones of two rates."""
    rng, folder = np.random.default_rng(0), tmp_path / "corpus"
    folder.mkdir()
    lines = [["filename", "labels", "split"]]
    for number in range(24):
        split = ("train", "train", "val", "test")[number // 2 % 4]
        noise = 0.1 * rng.standard_normal(800)
        soundfile.write(folder / f"{number}.wav", noise, 8_000)
        lines.append([f"{number}.wav", "ab"[number % 2], split])
    with open(folder / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows(lines)
    values = {
        "dataset": "csv",
        "data_dir": str(folder / "list.csv"),
        "model": "audio_transformer_small",
        "model_kwargs": {
            "num_layers": 1,
            "num_heads": 2,
            "key_dim": 4,
            "hidden_dim": 8,
            "intermediate_dims": [8],
            "frontend_filters": 16,
            "sample_rate_hz": 8_000,
        },
        "chunk_s": 0.1,
        "epochs": 1,
        "batch_size": 5,
    }
    path = tmp_path / "config.py"

    def write(**changes):
        content = {**values, **changes}
        path.write_text(f"def get_config():\n    return {content!r}\n")
        return path

    write()
    write.path = path
    return write


def board(out):
    with open(out / "leaderboard.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.long
def test_a_table_is_trained_measured_drawn_and_goes_on(
    config, tmp_path, main, monkeypatch, capfd, eager_models, no_pictures
):
    monkeypatch.setattr("audio_tf.runs.processes.start", in_this_process)
    out = tmp_path / "table"
    arguments = ["compare", "--train-config", config.path, "--out", out]
    arguments += ["--attentions", "xbox", "full", "--seeds", 3]
    arguments += ["--turns", 1, "--kwargs-by-attention"]
    run = processes.run

    def killed(command, *flags):
        """Trains `full`, and not what runs out of memory."""
        if "xbox" not in flags:
            return run(command, *flags)
        words = [*processes.AUDIO_TF, command, *map(str, flags)]
        raise subprocess.CalledProcessError(9, words)

    with monkeypatch.context() as patched, pytest.raises(SystemExit) as stopped:
        patched.setattr(processes, "run", killed)
        main(*arguments, '{"xbox": {"num_candidates": 3}}')
    assert stopped.value.code == 1
    failed = capfd.readouterr().out.partition("1 runs failed:\n")[2]
    assert "--attention xbox" in failed
    names = [row["attention"] for row in board(out)]
    assert names == ["full", "baseline: forest", "baseline: logistic"]

    # The folder has rows of other arguments than are asked for now.
    with pytest.raises(SystemExit):
        main(*arguments, '{"full": {"dropout": 0.1}}')
    assert "kwargs_by_attention.full (None, now" in capfd.readouterr().err
    # What the row failed by is put right.
    arguments.append('{"xbox": {"num_candidates": 2}}')
    # As a run that was killed before its preset was written.
    shutil.rmtree(out / "causal_no/full/seed_3/preset")
    main(*arguments)
    lines = capfd.readouterr().out.splitlines()
    again, new = [line for line in lines if line.startswith("$ ")]
    assert "--attention full" in again and "--resume" in again.split()
    assert "--attention xbox" in new and "--no-causal" in new
    found = {row["attention"]: row for row in board(out)}
    assert len(found) == 4
    for name in ("full", "xbox"):
        row, folder = found[name], out / "causal_no" / name / "seed_3"
        report = json.loads((folder / "val.json").read_text())
        assert float(row["mean"]) == report["accuracy"]
        preset = models.AudioClassifier.from_preset(str(folder / "preset"))
        assert int(row["parameters"]) == preset.backbone.count_params()
        assert preset.backbone.causal is False
        ratio = float(row["training_ratio"])
        assert (ratio == 1.0) if name == "full" else ratio > 0.0
        assert float(row["peak_mib"]) >= 0.0
    assert found["baseline: forest"]["causal"] == ""

    before = (out / "leaderboard.csv").read_bytes()
    main(*arguments)
    assert "\n$ " not in "\n" + capfd.readouterr().out
    assert (out / "leaderboard.csv").read_bytes() == before


def write_run(folder, split, report, corpus=None):
    """Writes what the figure of a finished training is read of."""
    (folder / "preset").mkdir(parents=True)
    origin = json.dumps({"corpus": {split: {}, **(corpus or {})}})
    (folder / "preset" / "provenance.json").write_text(origin)
    (folder / f"{split}.json").write_text(json.dumps(report))


def test_rows_have_means_of_their_seeds_and_the_best_comes_first(
    config, tmp_path, capsys
):
    settings = CompareSettings(
        train_config=config.path,
        attentions=["full", "shared_qk", "xbox"],
        seeds=[0, 1, 2],
        out=tmp_path,
        score_split="test",
    )
    table = compare_rows.table_rows(settings)
    for row, values in zip(
        table, ([0.5, 0.6], [0.7, 0.8, 0.8], []), strict=True
    ):
        for seed, value in enumerate(values):
            folder = row.run_folder(seed)
            write_run(folder, "test", {"accuracy": None, "mAP": value})
    costs = {"inference_ratio": 0.5, "training_ratio": 2.0, "asked": {}}
    found = compare.summed_up(settings, table, {table[1]: costs})
    assert [row["attention"] for row in found] == ["shared_qk", "full"]
    assert [row["seeds"] for row in found] == [3, 2]
    assert found[0]["figure"] == "mAP" and found[0]["inference_ratio"] == 0.5
    mean = 2.3 / 3
    assert found[0]["mean"] == pytest.approx(mean)
    # t of 2 degrees of freedom is 4.3027, the deviation 0.1 / sqrt(3).
    assert found[0]["low"] == pytest.approx(mean - 0.1434, abs=1e-4)
    assert found[0]["high"] == pytest.approx(mean + 0.1434, abs=1e-4)
    # Of two values it would reach beyond what there is.
    assert (found[1]["low"], found[1]["high"]) == (0.0, 1.0)
    assert "inference_ratio" not in found[1]
    values = {"values": [0.25, 0.35]}
    report = {"figures": {"forest": {"accuracy": values, "mAP": {}}}}
    found += leaderboard.baseline_rows(report)
    assert found[2]["attention"] == "baseline: forest"
    assert found[2]["mean"] == pytest.approx(0.3) and found[2]["seeds"] == 2
    leaderboard.write(tmp_path / "leaderboard.csv", found)
    assert board(tmp_path)[1]["inference_ratio"] == ""
    assert leaderboard.read(tmp_path / "leaderboard.csv") == [
        {
            name: row[name]
            for name in leaderboard.COLUMNS
            if row.get(name) is not None
        }
        for row in found
    ]
    assert "shared_qk" in leaderboard.format_table(found).splitlines()[1]
    leaderboard.draw(tmp_path / "leaderboard.png", found, "table")
    assert (tmp_path / "leaderboard.png").is_file()


def test_a_split_without_labels_is_refused_before_a_row_begins(
    config, tmp_path
):
    listed = tmp_path / "corpus" / "list.csv"
    text = listed.read_text()
    for label in "ab":
        text = text.replace(f",{label},test", ",,test")
    listed.write_text(text)
    settings = CompareSettings(
        train_config=config(), score_split="test", out=tmp_path / "out"
    )
    message = "--score-split must have clips with labels.*test, 6 clips with"
    with pytest.raises(ValueError, match=message):
        compare.begin(settings)
    assert not (tmp_path / "out").exists()


def test_rows_without_a_figure_are_left_out(config, tmp_path):
    """As where the files of all labels of the split are bad."""
    settings = CompareSettings(
        train_config=config.path,
        attentions=["full", "xbox"],
        seeds=[0],
        out=tmp_path,
    )
    table = compare_rows.table_rows(settings)
    for row, value in zip(table, (None, 0.5), strict=True):
        folder = row.run_folder(0)
        write_run(folder, "val", {"accuracy": None, "mAP": value})
    figures = {"forest": {}, "logistic": {"mAP": {"values": [0.25]}}}
    report = {"figures": figures, "settings": {"seeds": [0]}}
    compare.baseline_report(settings).write_text(json.dumps(report))
    found = compare.summed_up(settings, table, {})
    assert [(row["attention"], row["mean"]) for row in found] == [
        ("xbox", 0.5),
        ("baseline: logistic", 0.25),
    ]


@pytest.mark.parametrize("split", ["train", "test"])
def test_rows_of_other_clips_do_not_stand_beside_each_other(
    config, tmp_path, split, capsys
):
    """As of whole clips that are longer than an attention takes."""
    settings = CompareSettings(
        train_config=config.path,
        attentions=["full", "shared_qk", "xbox", "sparse_fixed"],
        seeds=[0, 1],
        out=tmp_path,
        score_split="test",
    )
    table = compare_rows.table_rows(settings)
    others = [(table[0], 0), (table[2], 0), (table[2], 1)]
    whole = {"train": {"files": 12}, "val": {"files": 5}, "test": {"files": 6}}
    fewer = {**whole, split: {"files": 4}}
    for row in table:
        for seed in (0, 1):
            own = (0.25, fewer) if (row, seed) in others else (0.75, whole)
            report = {"accuracy": own[0]}
            write_run(row.run_folder(seed), "test", report, own[1])
    found = compare.summed_up(settings, table, {})
    assert [(row["attention"], row["mean"], row["seeds"]) for row in found] == [
        ("full", 0.75, 1),
        ("shared_qk", 0.75, 2),
        ("sparse_fixed", 0.75, 2),
    ]
    compare.tell_of_others(compare.by_clips(settings, table)[1])
    lines = capsys.readouterr().out.splitlines()
    named = [f"  {row.run_folder(seed)}" for row, seed in others]
    assert lines[0] == "" and lines[1].startswith("Not in the table,")
    assert lines[2:] == named
    # Of as many the first are those that are compared.
    found = compare.by_clips(settings, table[:1])
    assert found == ([(table[0], 0)], [(table[0], 1)])
    compare.tell_of_others([])
    assert capsys.readouterr().out == ""


def test_a_table_without_a_row_of_other_clips_ends_with_1(
    config, tmp_path, monkeypatch, no_pictures, capsys
):
    def run(command, *words):
        asked = flags.parse(train.TrainSettings, "", list(map(str, words)))
        folder, files = pathlib.Path(asked.out), 12
        if asked.attention == "xbox":
            files = 4
        corpus = {"train": {"files": files}}
        write_run(folder, "val", {"accuracy": 0.5}, corpus)
        (folder / "config.json").write_text('{"settings": {}}')

    monkeypatch.setattr(processes, "run", run)
    monkeypatch.setattr(processes, "measure", lambda *_: {})
    asked = CompareSettings(
        train_config=config.path,
        attentions=["full", "xbox"],
        seeds=[0],
        baseline_rows=False,
        out=tmp_path / "out",
    )
    with pytest.raises(SystemExit) as ended:
        compare.compare(asked)
    assert ended.value.code == 1
    assert [row["attention"] for row in board(tmp_path / "out")] == ["full"]
    assert "xbox/seed_0" in capsys.readouterr().out.split("Not in the table")[1]


def test_baselines_of_other_seeds_are_not_shown(config, tmp_path):
    """Nor any that are not asked for; an earlier table may have left them."""
    shown = []
    for seeds, wanted in (([0], True), ([0, 1], True), ([0], False)):
        settings = CompareSettings(
            train_config=config.path,
            seeds=seeds,
            out=tmp_path,
            baseline_rows=wanted,
        )
        figures = {"logistic": {"mAP": {"values": [0.25]}}}
        report = {"figures": figures, "settings": {"seeds": [0]}}
        compare.baseline_report(settings).write_text(json.dumps(report))
        shown.append(len(compare.summed_up(settings, [], {})))
    assert shown == [1, 0, 0]


def baseline_asked(command):
    words = list(map(str, command[1:]))
    return flags.parse(baseline.BaselineSettings, "", words)


def write_baseline(asked, left_out=()):
    """Writes a report as the run of these settings would have written it."""
    corpora = asked.load()
    used = {split: corpora[split] for split in ("train", asked.split)}
    record = corpus_records.make(used, asked.file_root())
    record["left_out"] = dict.fromkeys(left_out, "no audio")
    report = {
        **asked.to_json(),
        "corpus": corpus_records.summary(record),
        "left_out": record["left_out"],
    }
    pathlib.Path(asked.report).write_text(json.dumps(report))


def test_a_baseline_is_of_the_corpus_as_it_is_now(
    config, tmp_path, monkeypatch
):
    """One of before stands beside no row, also where the next one fails."""
    ran, listed = [], tmp_path / "corpus" / "list.csv"
    monkeypatch.setattr(processes, "run", lambda *command: ran.append(command))
    settings = CompareSettings(
        train_config=config.path, seeds=[0], out=tmp_path
    )
    report = compare.baseline_report(settings)
    compare.run_baseline(settings)
    for left_out in ([], ["0.wav"]):
        write_baseline(baseline_asked(ran[0]), left_out)
        compare.run_baseline(settings)
        assert len(ran) == 1 and report.is_file()
    before = listed.read_text()
    # Another split than those of the baseline may change.
    listed.write_text(before + "new.wav,a,test\n")
    compare.run_baseline(settings)
    assert len(ran) == 1
    for change in (
        before + "new.wav,a,train\n",
        before.replace("2.wav,a,train", "2.wav,b,train"),
    ):
        write_baseline(baseline_asked(ran[0]))
        listed.write_text(change)
        ran.clear()
        compare.run_baseline(settings)
        assert len(ran) == 1 and not report.exists()


@pytest.mark.parametrize("changed", ["xbox", "full"])
def test_costs_are_of_the_trainings_that_are_there_now(
    config, tmp_path, monkeypatch, changed
):
    """A row that is made anew, or full attention, has others."""
    settings = CompareSettings(
        train_config=config.path,
        attentions=["xbox", "full"],
        seeds=[7],
        out=tmp_path,
    )
    base, row = compare_rows.table_rows(settings)
    asked = []

    def measure(arguments, device):
        asked.append(json.loads(arguments[3]))
        content = {"asked": asked[-1], "parameters": len(asked)}
        pathlib.Path(arguments[2]).write_text(json.dumps(content))

    def train(name, **own):
        folder = {"xbox": row, "full": base}[name].run_folder(7)
        folder.mkdir(parents=True, exist_ok=True)
        content = {"settings": {"epochs": 3, "out": "here", **own}}
        (folder / "config.json").write_text(json.dumps(content))

    monkeypatch.setattr(processes, "start", measure)
    train("xbox")
    train("full")
    found = [compare.costs(row, 7, settings)["parameters"] for _ in range(2)]
    # It may lie elsewhere, and go on to the test.
    train(changed, out="there", test=True)
    found.append(compare.costs(row, 7, settings)["parameters"])
    train(changed, attention_kwargs={"dropout": 0.1})
    found.append(compare.costs(row, 7, settings)["parameters"])
    assert found == [1, 1, 1, 2]
    assert asked[0]["model"] == str(row.run_folder(7) / "last.keras")
    assert asked[0]["full"] == str(base.run_folder(7) / "last.keras")


def test_baselines_have_the_seeds_of_the_rows(config, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(processes, "run", lambda *command: ran.append(command))

    def run_with(*seeds):
        settings = CompareSettings(
            train_config=config.path, seeds=list(seeds), out=tmp_path
        )
        ran.clear()
        compare.run_baseline(settings)
        for command in ran:
            asked = baseline_asked(command)
            assert asked.seeds == list(seeds)
            write_baseline(asked)
        return len(ran)

    assert run_with(0) == 1
    assert run_with(0) == 0
    assert run_with(0, 1) == 1
    assert run_with(0, 1) == 0


def test_what_cannot_be_causal_has_no_row(config, tmp_path, capsys):
    settings = CompareSettings(
        train_config=config.path,
        attentions=["xbox", "shared_qk", "full", "hybrid_local"],
        causality=["yes", "no"],
        out=tmp_path / "out",
    )
    found = [
        (row.attention, row.causal) for row in compare_rows.table_rows(settings)
    ]
    assert found == [
        ("full", "yes"),
        ("shared_qk", "yes"),
        ("hybrid_local", "yes"),
        ("full", "no"),
        ("xbox", "no"),
        ("shared_qk", "no"),
        ("hybrid_local", "no"),
    ]
    assert capsys.readouterr().out.startswith("xbox cannot be causal")
    settings = CompareSettings(train_config=config.path)
    from audio_tf.attention import ATTENTIONS, MIXTURES

    assert sorted(settings.names()) == sorted([*ATTENTIONS, *MIXTURES])
    assert settings.names()[0] == "full"


def test_what_cannot_be_built_is_known_before_a_row_begins(
    config, tmp_path, capsys
):
    """A model of one block has no two attentions in turn."""

    def asked(**changes):
        settings = CompareSettings(
            train_config=config.path,
            attentions=["full", "hybrid_local", "xbox"],
            out=tmp_path / "out",
            **changes,
        )
        table = compare_rows.buildable(
            compare_rows.table_rows(settings), settings
        )
        return [row.attention for row in table]

    assert asked() == ["full", "xbox"]
    said = capsys.readouterr().out
    assert said.startswith("hybrid_local has no row") and "blocks, 1" in said
    for name, options, problem in (
        ("hybrid_local", {"context_size": 3}, "must not have more parts"),
        ("xbox", {"num_candidates": 0}, "num_candidates"),
    ):
        with pytest.raises(
            ValueError, match=f"^--kwargs-by-attention: {name}: .*{problem}"
        ):
            asked(kwargs_by_attention={name: options})
    config(model_kwargs={"num_layers": 0})
    with pytest.raises(ValueError, match="^.*config.py: .*num_layers"):
        asked()
    assert not (tmp_path / "out").exists()


def test_a_preset_whose_weights_do_not_fit_is_known_before_a_row_begins(
    config, tmp_path, capsys
):
    """As of another attention than the one that they were trained with."""
    preset = tmp_path / "preset"
    backbone = tiny.backbone(sample_rate_hz=8_000, attention="full")
    backbone.save_to_preset(str(preset))

    def asked(*attentions, **changes):
        config(model=str(preset), **changes)
        settings = CompareSettings(
            train_config=config.path,
            attentions=attentions,
            out=tmp_path / "out",
        )
        table = compare_rows.buildable(
            compare_rows.table_rows(settings), settings
        )
        return [row.attention for row in table]

    changed = {"model_kwargs": {}, "chunk_s": 0.1}
    assert asked("full", "dense_synthesizer", **changed) == ["full"]
    said = capsys.readouterr().out
    assert said.startswith("dense_synthesizer has no row, as it cannot be ")
    assert "do not fit" in said
    with pytest.raises(ValueError, match="config.py: .* do not fit"):
        asked("full", model_kwargs={"hidden_dim": 20})


@pytest.mark.parametrize("causal", ["no", "yes"])
def test_causality_is_that_of_the_attentions(
    config, tmp_path, monkeypatch, causal
):
    """Also behind a front end whose windows look ahead."""
    config(model="audio_transformer_mel_small", model_kwargs={"num_layers": 2})
    settings = CompareSettings(
        train_config=config.path, causality=[causal], out=tmp_path / "out"
    )
    ran = []
    monkeypatch.setattr(processes, "run", lambda *command: ran.append(command))
    row = compare_rows.table_rows(settings)[1]
    compare.train(row, 5, settings)
    (command,) = ran
    assert command[0] == "train" and row.attention == "shared_qk"
    asked = flags.parse(train.TrainSettings, "", list(map(str, command[1:])))
    assert (asked.attention, asked.seed) == ("shared_qk", 5)
    backbone = models.AudioTransformerBackbone.from_preset(
        asked.model, **asked.model_options()
    )
    assert len(backbone.blocks) == 2 and not backbone.frontend.causal
    found = {block.attention.causal for block in backbone.blocks}
    assert found == {causal == "yes"}


def test_a_folder_says_what_its_rows_were_made_with(config, tmp_path):
    """But for attentions of which no row was begun."""
    out = tmp_path / "out"
    given = {"train_config": config.path, "attentions": ["full", "xbox"]}
    given["out"] = str(out)

    def begin(**more):
        compare.begin(CompareSettings(**{**given, **more}))

    begin(kwargs_by_attention={"xbox": {"num_candidates": -2}})
    begin(kwargs_by_attention={"xbox": {"num_candidates": 2}})
    begin(attentions=["full"])
    begin(kwargs_by_attention={"xbox": {"num_candidates": 2}})
    run = out / "causal_no" / "xbox" / "seed_0"
    run.mkdir(parents=True)
    (run / "config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"xbox\.num_candidates \(2, now 4\)"):
        begin(kwargs_by_attention={"xbox": {"num_candidates": 4}})
    config(epochs=77)
    with pytest.raises(ValueError, match=r"training\.epochs \(.*, now 77\)"):
        begin(kwargs_by_attention={"xbox": {"num_candidates": 2}})


def test_the_folder_of_another_command_is_no_table(config, tmp_path):
    """As of a training, which has a `config.json`, too."""
    (tmp_path / "config.json").write_text('{"settings": {}, "given": []}')
    settings = CompareSettings(train_config=config.path, out=tmp_path)
    with pytest.raises(ValueError, match="holds rows of other configs"):
        compare.begin(settings)


def test_a_config_that_is_edited_meanwhile_ends_the_table(
    config, tmp_path, monkeypatch
):
    """Each row reads it anew: the others would be trained otherwise."""
    ran = []
    monkeypatch.setattr(processes, "run", lambda *command: ran.append(command))
    settings = CompareSettings(
        train_config=config.path,
        attentions=["full", "xbox"],
        out=tmp_path / "out",
    )
    full, xbox = compare_rows.table_rows(settings)
    compare.begin(settings)
    compare.train(full, 0, settings)
    config(epochs=77)
    with pytest.raises(ValueError, match=r"of training\.epochs \(1, now 77\)"):
        compare.train(xbox, 0, settings)
    assert len(ran) == 1
    # Where the corpus is decoded to is no matter of the rows.
    config(cache_dir=str(tmp_path / "cache"))
    compare.train(xbox, 0, settings)
    assert len(ran) == 2


@pytest.mark.parametrize("role", ["model", "teachers"])
def test_rows_are_of_the_presets_as_they_are_now(
    config, tmp_path, monkeypatch, role
):
    """One that was trained anew in place would stand beside the old one."""
    preset, out = tmp_path / "preset", tmp_path / "out"
    preset.mkdir()
    weights = preset / "model.weights.h5"
    weights.write_bytes(b"one")
    monkeypatch.setattr(
        compare_settings,
        "model_takes",
        lambda training: ["attention", "causal"],
    )
    value = {"model": str(preset), "teachers": [str(preset)]}[role]
    config(**{role: value}, model_kwargs={})
    settings = CompareSettings(train_config=config.path, out=out)

    def begin():
        compare.begin(settings)
        return json.loads((out / "config.json").read_text())

    begin()
    (preset / "README.md").write_text("A card.")
    asked = begin()
    weights.write_bytes(b"two")
    message = "other values of weights.*preset .'.*', now '"
    with pytest.raises(ValueError, match=message):
        begin()
    # A table of before does not say which they were.
    del asked["weights"]
    (out / "config.json").write_text(json.dumps(asked))
    assert begin()["weights"][str(preset)] is not None
    # Rows that are there may outlive it.
    weights.unlink()
    begin()


def test_rows_that_are_not_asked_for_stay_in_the_table(
    config, tmp_path, monkeypatch, no_pictures, capsys
):
    """With the arguments that they were made with, and nothing is trained."""
    out, ran, timed = tmp_path / "out", [], []

    def run(command, *flags):
        """Finishes a training that was asked for."""
        words = list(map(str, flags))
        asked = flags_of_training(words)
        ran.append((asked.attention, asked.causal is not False, asked.seed))
        folder = pathlib.Path(asked.out)
        write_run(folder, "val", {"accuracy": 0.5 + len(ran) / 100})
        (folder / "config.json").write_text('{"settings": {}}')

    def flags_of_training(words):
        return flags.parse(train.TrainSettings, "", words)

    def costs(command, file, asked):
        timed.append(pathlib.Path(asked["model"]).parent.name)
        return {"inference_ratio": 1.0}

    monkeypatch.setattr(processes, "run", run)
    monkeypatch.setattr(processes, "measure", costs)
    given = {"train_config": config.path, "baseline_rows": False, "out": out}

    def table(**asked):
        """Makes the table, and lists what was trained and what stands there."""
        ran.clear()
        timed.clear()
        compare.compare(CompareSettings(**given, **asked))
        return list(ran), [
            tuple(row[name] for name in ("attention", "causal", "seeds"))
            for row in board(out)
            if row["inference_ratio"] == "1.0"
        ]

    options = {"kwargs_by_attention": {"xbox": {"num_candidates": 2}}}
    first = table(attentions=["full", "xbox"], seeds=[0, 1], **options)
    assert [row[0] for row in first[0]] == ["full", "xbox", "full", "xbox"]
    kept = [("xbox", "no", "2"), ("full", "no", "2")]
    assert first[1] == kept
    before = (out / "leaderboard.csv").read_bytes()
    # One seed more, another attention, another causality.
    trained, shown = table(
        attentions=["full", "shared_qk"], seeds=[0, 2], causality=["yes"]
    )
    assert sorted(trained) == [
        (name, True, seed) for name in ("full", "shared_qk") for seed in (0, 2)
    ]
    assert [row for row in shown if row[1] == "no"] == kept
    assert len(shown) == 4
    # Fewer seeds: those that there are count on, and are what was timed.
    capsys.readouterr()
    only = {"attentions": ["full"]}
    trained, shown = table(seeds=[1], **only)
    assert trained == [] and set(timed) == {"seed_0"}
    assert sorted(row[2] for row in shown) == ["2"] * 4
    lines = (out / "leaderboard.csv").read_bytes().splitlines()
    assert set(before.splitlines()) <= set(lines)
    said = "of other seeds than --seeds 1, which count in their rows, too: 0, 2"
    assert said in capsys.readouterr().out
    # One more, of one row.
    trained, shown = table(seeds=[3], **only)
    assert trained == [("full", False, 3)]
    counts = {row[:2]: row[2] for row in shown}
    assert counts["full", "no"] == "3" and counts["xbox", "no"] == "2"
    said = json.loads((out / "config.json").read_text())
    assert said["kwargs_by_attention"] == options["kwargs_by_attention"]
    with pytest.raises(ValueError, match=r"xbox .*num_candidates.*, now None"):
        table(attentions=["full", "xbox"], seeds=[0])


def test_a_table_goes_on_to_its_test(
    config, tmp_path, monkeypatch, no_pictures
):
    """Once settings are chosen on validation: nothing is trained for it."""
    out, ran = tmp_path / "out", []

    def run(command, *words):
        words = list(map(str, words))
        ran.append("--resume" in words)
        if ran[-1]:
            settings, _ = flags.parse(
                *(train.TrainSettings, "", words, True, train.FREE_SETTINGS)
            )
        else:
            settings = flags.parse(train.TrainSettings, "", words)
        folder = pathlib.Path(settings.out)
        record = train_data.listed(settings, settings.load())[1]
        provenance.begin_run(folder, settings, record)
        shutil.rmtree(folder / "preset", ignore_errors=True)
        corpus = corpus_records.summary(record)
        write_run(folder, "val", {"accuracy": 0.5}, corpus)
        if settings.test:
            report = {"accuracy": 0.25 if settings.seed else 0.75}
            (folder / "test.json").write_text(json.dumps(report))

    def table(**asked):
        ran.clear()
        settings = CompareSettings(
            train_config=config.path,
            attentions=["full", "xbox"],
            baseline_rows=False,
            out=out,
            **asked,
        )
        compare.compare(settings)
        return list(ran), [
            (row["attention"], float(row["mean"]), row["seeds"])
            for row in board(out)
        ]

    monkeypatch.setattr(processes, "run", run)
    monkeypatch.setattr(processes, "measure", lambda *given: {})
    config(test=False)
    chosen = [("full", 0.5, "2"), ("xbox", 0.5, "2")]
    assert table(seeds=[0, 1]) == ([False] * 4, chosen)
    config()
    tested = {"seeds": [0], "score_split": "test"}
    # Seeds without it are in no row.
    assert table(**tested) == (
        [True] * 2,
        [("full", 0.75, "1"), ("xbox", 0.75, "1")],
    )
    assert table(seeds=[1]) == ([], chosen)
    tested["seeds"] = [1]
    assert table(**tested) == ([True] * 2, chosen)
    assert table(**tested) == ([], chosen)
    config(test=False)
    with pytest.raises(ValueError, match=r"training\.test \(.*, now False\)"):
        table(seeds=[0])


def test_rows_are_of_the_corpus_as_it_is_now(config, tmp_path):
    out = tmp_path / "out"
    settings = CompareSettings(train_config=config.path, out=str(out))
    compare.begin(settings)
    run = out / "causal_no" / "xbox" / "seed_0"
    run.mkdir(parents=True)
    training = settings.training()
    record = train_data.listed(training, training.load())[1]
    record["left_out"] = {"0.wav": "longer than the model takes"}
    (run / "config.json").write_text("{}")
    (run / "corpus.json").write_text(json.dumps(record))
    compare.begin(settings)
    listed = tmp_path / "corpus" / "list.csv"
    before = listed.read_text()
    listed.write_text(before + "new.wav,a,train\n")
    with pytest.raises(ValueError) as raised:
        compare.begin(settings)
    assert str(run) in str(raised.value)
    assert "1 files ('new.wav') added, train" in str(raised.value)
    listed.write_text(before.replace("0.wav,a,train", "0.wav,b,train"))
    with pytest.raises(ValueError, match="labelled otherwise, train"):
        compare.begin(settings)


@pytest.mark.parametrize(
    ("name", "argument", "said"),
    [
        ("xbox", "num_cand", "'num_cand'; did you mean 'num_candidates'"),
        ("hybrid_local", "win", "'hybrid_local' takes no argument 'win'"),
    ],
)
def test_arguments_are_known_before_a_row_begins(config, name, argument, said):
    options = {name: {argument: 2}}
    with pytest.raises(ValueError, match=f"^--kwargs-by-attention: .*{said}"):
        CompareSettings(train_config=config.path, kwargs_by_attention=options)


@pytest.mark.costly
def test_what_does_not_fit_is_named(config, refusal, tmp_path):
    out = tmp_path / "out"
    given = ["--train-config", config.path, "--out", out]
    for arguments, said in (
        (["--out", out], "--train-config is needed"),
        ([*given, "--attentions", "xbox"], "--attentions must name full"),
        ([*given, "--attentions", "fulll"], "--attentions must be one of"),
        ([*given, "--attentions", "fulll"], "did you mean 'full'"),
        ([*given, "--attentions"], "--attentions must not be empty"),
        ([*given, "--causality", "maybe"], "--causality must be one of"),
        ([*given, "--kwargs-by-attention", '{"xbx": {}}'], "'xbx'"),
        ([*given, "--data-dir", tmp_path / "none"], "none"),
        ([*given, "--data-dir", out], "than that of the corpus"),
    ):
        line = refusal("compare", *arguments)
        assert said in line, line
    config(attention="full")
    assert "'attention' is that of the rows" in refusal("compare", *given)
    config(model_kwargs={"causal": True})
    assert "'causal' of 'model_kwargs'" in refusal("compare", *given)
    config(model="vgg_like")
    assert "has none. Received: model='vgg_like'" in refusal("compare", *given)
    config(val_folds=[1], dataset="folders")
    assert "--val-folds" in refusal("compare", *given)
    config(test=False)
    line = refusal("compare", *given, "--score-split", "test")
    assert "config.py: --score-split test needs the test, which it l" in line
    assert not out.exists()
