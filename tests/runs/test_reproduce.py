"""Tables of the papers: rows that are run, kept, and shown."""

import json
import shutil

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

import tiny
from scripts import in_this_process

from audio_tf import cli, models
from audio_tf.runs import (
    pretrain,
    probe_splits,
    provenance,
    reproduce,
    ssl_table,
)


def test_the_papers_table_is_whole():
    """Sums of the columns of Tables 1 and 2, by hand."""
    rows = {
        name: row
        for name, row in ssl_table.TABLE_2.items()
        if None not in row[1]
    }
    ours = [name for name in ssl_table.TABLE_2 if name not in rows]
    assert ours == ["local_dense_synthesizer", "hybrid_local"]
    # The table of 2020 has the same figures for its own patterns.
    of_2020 = rows.pop("raganato_synthesizer")
    assert of_2020[1] == rows["crafted_synthesizer"][1]
    assert of_2020[2] is None
    assert len(rows) == 14
    utterance, frame, one, two = zip(
        *(row[1] for row in rows.values()), strict=True
    )
    assert sum(utterance) == pytest.approx(12.6409)
    assert sum(frame) == pytest.approx(11.2921)
    assert sum(one) == pytest.approx(8.3042)
    assert sum(two) == pytest.approx(8.9082)
    assert sum(row[2] or 0 for row in rows.values()) == pytest.approx(2268.6)


def test_help_tells_of_all_tables_and_then_of_one(capsys):
    def said(*arguments):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["reproduce", *arguments])
        text = capsys.readouterr()
        return stopped.value.code, text.out, text.err

    code, overview, _ = said("--help")
    assert code == 0
    assert overview.startswith("usage: audio-tf reproduce [-h]")
    flags = {}
    for table in reproduce.TABLES:
        code, text, _ = said(table, "--help")
        assert code == 0
        assert text.startswith(f"usage: audio-tf reproduce {table} [-h]")
        # What the table is, one of its commands, and of no other table.
        summary = text.split("\n\n")[1]
        assert f"  {table:9s}{summary}\n" in overview
        assert f"\n    audio-tf reproduce {table} " in text
        others = {*reproduce.TABLES} - {table}
        assert not any(f"audio-tf reproduce {each} " in text for each in others)
        flags[table] = text.count("\n  --")
    assert overview.count("\n  --") < min(flags.values())
    code, _, error = said("--out", "x", "layers")
    assert code == 2 and "there is no flag --out" in error
    code, _, error = said("layer")
    assert code == 2 and "did you mean 'layers'" in error
    assert said()[0] == 2


@pytest.mark.parametrize(
    "name, layers",
    [
        ("raganato_synthesizer", ["raganato_synthesizer"] * 3),
        (
            "hybrid_local",
            ["local_dense_synthesizer", "full", "local_dense_synthesizer"],
        ),
    ],
)
def test_rows_beside_the_table_are_pre_trained_as_they_are_named(name, layers):
    """Layers of the same attention are one, as in every Audio ALBERT."""
    assert name in ssl_table.TABLE_2
    settings = pretrain.PretrainSettings(
        dataset="fsdd",
        data_dir="none",
        model="audio_albert_3",
        features="s3prl",
        target="input",
        model_kwargs={**tiny.SIZES, "num_layers": 3, "num_heads": 12},
        attention=name,
        made_for_frames=23,
    )
    backbone = pretrain.build(settings).backbone
    assert [block.attention_name for block in backbone.blocks] == layers
    assert len({id(block) for block in backbone.blocks}) == len(set(layers))


def test_a_table_has_means_of_seeds_beside_the_papers_values():
    def report(shift, causal):
        tasks = {
            task: {"test_accuracy": value + shift}
            for task, value in zip(
                ssl_table.TASKS, (0.5, 0.6, 0.7, 0.8), strict=True
            )
        }
        model = None if causal is None else {"causal": causal}
        return {"tasks": tasks, "model": model}

    rows = {
        name: ssl_table.row_facts(
            name,
            [report(0.0, causal), report(0.02, causal)],
            {"full": 2.0, "xbox": 1.5, "hybrid_local": 1.0},
        )
        for name, causal in (
            ("features", None),
            ("full", True),
            ("xbox", False),
            ("hybrid_local", True),
        )
    }
    assert rows["xbox"]["average"] == pytest.approx(0.66)
    assert rows["xbox"]["by_seed"]["speaker"] == [0.5, 0.52]
    head, rule, *lines = ssl_table.format_table(rows, 2.0).splitlines()
    assert len({line.count("|") for line in (head, rule, *lines)}) == 1
    lines = dict(zip(ssl_table.TABLE_2, lines, strict=True))
    assert all(f"`{name}` |" in line for name, line in lines.items())
    cells = {name: lines[name].split("|")[2].strip() for name in rows}
    assert list(cells.values()) == ["-", "yes", "no", "yes"]
    # A row of one seed does not pass for the mean of two.
    rows["full"]["by_seed"]["speaker"].pop()
    table = ssl_table.format_table(rows, 2.0).splitlines()[2:]
    counts = [line.split("|")[3].strip() for line in table]
    assert counts[:4] == ["2", "1", "-", "-"]
    mel = lines["features"]
    assert "0.5100 (0.0060)" in mel and mel.endswith("| - |")
    assert "| 1.00 (1.00) |" in lines["full"]
    # 1.5 / 2 beside 235.5 / 146.8.
    assert "| 0.75 (1.60) |" in lines["xbox"]
    # All are timed together, whatever rows are there by now.
    early = ssl_table.format_table({"xbox": rows["xbox"]}, 2.0)
    assert lines["xbox"] in early.splitlines()
    # The paper has no such row.
    assert lines["hybrid_local"].endswith("| 0.8100 | 0.6600 | 0.50 |")
    # Rows that were not measured say so, beside the paper's figures.
    of_2020 = lines["raganato_synthesizer"].split(" | ", 1)[1]
    assert of_2020 == (
        "- | - | not run (0.9842) | not run (0.9855) | not run (0.6157) | "
        "not run (0.6492) | not run (0.8086) | - |"
    )
    assert lines["local_dense_synthesizer"].count("| not run |") == 3


TINY_SSL = {
    "dataset": "fsdd",
    "sample_rate_hz": 8_000,
    "features": "s3prl",
    "features_options": {"num_mel_bins": 13, "fft_length": 256},
    "target": "input",
    "model": "audio_albert_3",
    "model_kwargs": {
        "num_heads": 2,
        "key_dim": 4,
        "hidden_dim": 8,
        "intermediate_dims": [8],
    },
    "made_for_frames": 30,
    "attention_kwargs": {"num_candidates": 4},
    "steps": 2,
    "save_every": 2,
    "feature_cache": True,
    "masking": "s3prl",
}


def write_config(path, config):
    path.write_text(f"def get_config():\n    return {config!r}\n")
    return path


@pytest.fixture
def noises(tmp_path):
    """A corpus of noises of two speakers, with phones."""
    rng, folder = np.random.default_rng(0), tmp_path / "corpus"
    (folder / "recordings").mkdir(parents=True)
    lines = []
    for index in range(5, 20):
        for speaker in ("ann", "bob"):
            name = f"{index % 10}_{speaker}_{index}"
            noise = 0.1 * rng.standard_normal(1_600)
            soundfile.write(folder / f"recordings/{name}.wav", noise, 8_000)
            lines.append(f"{name} " + " ".join("012"[i % 3] for i in range(20)))
    (folder / "phones.txt").write_text("SIL 0\nAA 1\nB 2\n")
    alignment = folder / "converted_aligned_phones.txt"
    alignment.write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def arguments(tmp_path, noises):
    """Those of a table of tiny models on noises, the corpus last."""
    probing = {"dataset": "fsdd", "epochs": 1, "hidden_dim": 4}
    return [
        *("reproduce", "ssl", "--out", tmp_path / "table", "--repeats", 0),
        "--pretrain-config",
        write_config(tmp_path / "ssl.py", TINY_SSL),
        "--probe-config",
        write_config(tmp_path / "probe.py", probing),
        *("--data-dir", noises),
    ]


def test_what_all_rows_lack_is_told_before_the_first(
    tmp_path, main, noises, arguments, capfd
):
    def refused(*changed):
        with pytest.raises(SystemExit):
            main(*arguments, *changed)
        output, errors = capfd.readouterr()
        assert "$ audio-tf" not in output
        assert not (tmp_path / "table").exists()
        return errors.splitlines()[-1]

    assert "nowhere" in refused("--data-dir", tmp_path / "nowhere")
    other = {"dataset": "librispeech", "train_subsets": ["train-clean-7"]}
    config = write_config(tmp_path / "other.py", other)
    assert "train-clean-7" in refused("--pretrain-config", config)
    # Two clips alone have phones.
    alignment = noises / "converted_aligned_phones.txt"
    lines = alignment.read_text().splitlines()
    alignment.write_text("\n".join(lines[:2]) + "\n")
    line = refused("--rows", "full")
    assert "'train' has phones, see --alignment" in line


@pytest.mark.long
def test_rows_are_run_once_and_failures_named(
    tmp_path, main, arguments, monkeypatch, capfd, eager_models
):
    """Two rows and mel; one attention fails."""
    monkeypatch.setattr("audio_tf.runs.processes.start", in_this_process)
    out = tmp_path / "table"
    # One attention has no such argument.
    with pytest.raises(SystemExit) as stopped:
        main(*arguments, "--rows", "xbox", "features", "full")
    assert stopped.value.code == 1
    output, errors = capfd.readouterr()
    assert "$ audio-tf probe --config" in output
    failed = output.partition("1 runs failed:\n  ")[2]
    assert failed.startswith("audio-tf pretrain ")
    assert "--attention full" in failed
    assert "--attention-kwargs" in errors and "Traceback" not in errors
    table = json.loads((out / "table2.json").read_text())
    assert list(table) == ["features", "xbox"]
    assert "Baseline (Mel) `features`" in (out / "table2.md").read_text()
    assert table["xbox"]["causal"] in (True, False)
    chance = table["features"]["test_accuracy"]["speaker"]
    assert chance == pytest.approx(0.5)

    # Rows that are not asked for stay in the table.
    again = [*arguments, "--rows", "xbox"]
    main(*again)
    assert "\n$ " not in "\n" + capfd.readouterr().out
    assert json.loads((out / "table2.json").read_text()) == table

    # Figures on two corpora do not stand in one table.
    report = out / "xbox" / "probe_0" / "probes.json"
    content = json.loads(report.read_text())
    other = {**content, "corpus": {}}
    report.write_text(json.dumps(other))
    with pytest.raises(SystemExit):
        main(*again)
    assert "probe_0 is not that of" in capfd.readouterr().err
    report.write_text(json.dumps(content))

    write_config(tmp_path / "probe.py", {"dataset": "fsdd"})
    with pytest.raises(SystemExit):
        main(*again)
    assert "other configs" in capfd.readouterr().err


@pytest.fixture
def asked(tmp_path):
    """Settings of a table on digits that are not decoded."""
    corpus, lines = tmp_path / "corpus" / "recordings", []
    corpus.mkdir(parents=True)
    for index in range(5, 20):
        for speaker in ("ann", "bob"):
            name = f"{index % 10}_{speaker}_{index}"
            (corpus / f"{name}.wav").write_bytes(b"not decoded")
            lines.append(f"{name} 0 1 2")
    path = tmp_path / "corpus" / "converted_aligned_phones.txt"
    path.write_text("\n".join(lines) + "\n")
    (tmp_path / "corpus" / "phones.txt").write_text("SIL 0\nAA 1\nB 2\n")
    (tmp_path / "config.py").write_text(
        "def get_config():\n"
        "    return {'dataset': 'fsdd', 'features': 's3prl'}\n"
    )
    return ssl_table.SslSettings(
        pretrain_config=str(tmp_path / "config.py"),
        probe_config=str(tmp_path / "config.py"),
        data_dir=str(tmp_path / "corpus"),
        seeds=[3, 4],
        out=str(tmp_path / "out"),
    )


def test_seeds_draw_splits_of_their_own_and_rows_share_them(asked, tmp_path):
    """As of CPC's lists, of which validation is drawn by the seed."""
    task = {"test_accuracy": 0.5}

    def write(row, seed, corpus):
        folder = tmp_path / "out" / row / f"probe_{seed}"
        folder.mkdir(parents=True)
        tasks = dict.fromkeys(ssl_table.TASKS, task)
        content = {"tasks": tasks, "corpus": corpus, "model": None}
        (folder / "probes.json").write_text(json.dumps(content))

    for seed, corpus in ((3, {"val": "a"}), (4, {"val": "b"})):
        write("full", seed, corpus)
        write("xbox", seed, corpus)
    found = ssl_table.finished_reports(asked)
    assert {row: len(each) for row, each in found.items()} == {
        "full": 2,
        "xbox": 2,
    }
    write("features", 4, {"val": "a"})
    with pytest.raises(ValueError, match="full.probe_4 is not that of .*feat"):
        ssl_table.finished_reports(asked)


@pytest.mark.parametrize("kind", ["pretrain", "probe"])
def test_rows_are_of_the_corpus_as_it_is_now(kind, asked, tmp_path):
    """Probes need not see the utterances that one row has heard more."""
    listed = {"pretrain": pretrain.listed, "probe": probe_splits.listed}
    pretraining, probing = asked.script_settings()
    settings = {"pretrain": pretraining, "probe": probing}[kind]
    for seed in (3, 4):
        run = tmp_path / "out" / "full" / f"{kind}_{seed}"
        own = settings.replace(seed=seed)
        provenance.begin_run(run, own, listed[kind](own)[1])
    # A copy that a user keeps is none of the table's.
    shutil.copytree(run, run.with_name(f"{kind}_4_old"))
    ssl_table.begin(asked)
    recordings = tmp_path / "corpus" / "recordings"
    (recordings / "5_ann_25.wav").write_bytes(b"not decoded")
    message = f"full.{kind}_3.corpus.json lists.*1 files .*5_ann_25.* added"
    with pytest.raises(ValueError, match=message):
        ssl_table.begin(asked)
    # What the other one reads is no part of it.
    (tmp_path / "out" / "full" / f"{kind}_3" / "config.json").unlink()
    (tmp_path / "out" / "full" / f"{kind}_4" / "config.json").unlink()
    ssl_table.begin(asked)


@pytest.mark.parametrize("row", ["features", "full"])
def test_configs_that_are_edited_meanwhile_end_the_table(
    row, asked, tmp_path, monkeypatch
):
    """That of probes may be read days after the table has begun."""
    ran = []
    monkeypatch.setattr(
        "audio_tf.runs.processes.run", lambda *command: ran.append(command[0])
    )
    ssl_table.begin(asked)
    ssl_table.probe(row, 3, asked)
    commands = {"features": ["probe"], "full": ["pretrain", "probe"]}[row]
    assert ran == commands
    config = tmp_path / "config.py"
    config.write_text(config.read_text().replace("{", "{'min_s': 0.1, "))
    with pytest.raises(ValueError, match=r"_config\.min_s \(None, now 0\.1\)"):
        ssl_table.probe(row, 4, asked)
    assert ran == commands


def test_phones_must_fit_the_frames_before_anything_is_trained(asked, tmp_path):
    """Of 37.5 ms, over labels of 10 ms; the probes found it, days later."""
    (tmp_path / "ssl.py").write_text(
        "def get_config():\n    return {'dataset': 'fsdd'}\n"
    )
    slow = asked.replace(pretrain_config=str(tmp_path / "ssl.py"))
    message = "config.py: labels at 100 Hz do not fit frames at 26.66"
    with pytest.raises(ValueError, match=message):
        ssl_table.begin(slow)
    assert not (tmp_path / "out").exists()
    (tmp_path / "probe.py").write_text(
        "def get_config():\n    return {'dataset': 'fsdd', 'by_time': True}\n"
    )
    ssl_table.begin(slow.replace(probe_config=str(tmp_path / "probe.py")))


def test_inference_is_timed_in_turns(tmp_path, monkeypatch):
    """Of each attention, once asked; the first call, which compiles, is not."""
    rows = {name: ssl_table.TABLE_2[name] for name in ("features", "full")}
    monkeypatch.setattr(ssl_table, "TABLE_2", rows)
    monkeypatch.setattr("audio_tf.runs.processes.start", in_this_process)
    monkeypatch.setattr(
        models.AudioAlbertBackbone,
        "from_preset",
        lambda size, **options: tiny.albert(**options),
    )
    for name in ("ssl", "probe"):
        write_config(tmp_path / f"{name}.py", {"dataset": "fsdd"})
    settings = ssl_table.SslSettings(
        pretrain_config=str(tmp_path / "ssl.py"),
        probe_config=str(tmp_path / "probe.py"),
        data_dir=str(tmp_path),
        out=str(tmp_path),
        time_frames=7,
        repeats=2,
    )
    seconds = ssl_table.inference_s(settings)
    assert list(seconds) == ["full"] and seconds["full"] > 0
    asked = json.loads((tmp_path / "inference.json").read_text())["asked"]
    assert asked["frames"] == 7 and asked["repeats"] == 2
    # It is not timed again.
    monkeypatch.setattr("audio_tf.runs.processes.start", None)
    assert ssl_table.inference_s(settings) == seconds


@pytest.mark.parametrize(
    "script, name, value",
    [
        ("pretrain", "attention", "xbox"),
        ("pretrain", "seed", 7),
        ("pretrain", "out", "elsewhere"),
        ("probe", "model", "nowhere"),
        ("probe", "layer", "1"),
        ("probe", "tasks", ["speaker"]),
        ("probe", "seed", 7),
        ("probe", "out", "elsewhere"),
    ],
)
def test_a_config_may_not_say_what_the_rows_say(
    script, name, value, tmp_path, refusal
):
    """It would be taken and ignored."""
    for each in ("pretrain", "probe"):
        config = {
            "dataset": "fsdd",
            **({name: value} if each == script else {}),
        }
        (tmp_path / f"{each}.py").write_text(
            f"def get_config():\n    return {config!r}\n"
        )
    out = tmp_path / "table"
    line = refusal(
        *("reproduce", "ssl", "--out", out, "--data-dir", tmp_path),
        *("--pretrain-config", tmp_path / "pretrain.py"),
        *("--probe-config", tmp_path / "probe.py"),
    )
    said = f"{script}.py: {name!r} is that of the rows. Received: {value!r}"
    assert said in line and not out.exists()


def test_no_table_is_written_into_the_corpus(refusal, tmp_path):
    """Its presets and pictures would lie among the clips."""
    config = tmp_path / "config.py"
    config.write_text("def get_config():\n    return {}\n")
    for table, given in (
        ("ssl", ["--pretrain-config", config, "--probe-config", config]),
        ("emotion", ["--model", "audio_albert_speech"]),
    ):
        line = refusal(
            *("reproduce", table, *given),
            *("--data-dir", tmp_path / "corpus", "--out", tmp_path / "corpus"),
        )
        assert "--out must be another folder than that of the corpus" in line
    assert not (tmp_path / "corpus").exists()


def test_the_model_that_is_timed_is_named_before_anything_runs(refusal):
    """It was found by the process that times it, in a folder made before."""
    for name in ("audio_albert_9", "audio_transformer_small"):
        line = refusal("reproduce", "ssl", "--time-model", name)
        assert "--time-model must be one of" in line
        assert "did you mean 'audio_albert_6'" in line or "small" in name
        assert f"Received: {name!r}" in line


def test_an_unknown_table_is_named_with_the_nearest(refusal):
    line = refusal("reproduce", "sll", "--out", "none")
    assert "no table 'sll'; did you mean 'ssl'" in line
    # Words by which rows have something measured are none of a user's.
    assert "no table 'time'" in refusal("reproduce", "time")
    assert "takes no 'costs'" in refusal("compare", "costs")
