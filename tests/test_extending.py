"""What is added outside the package is found everywhere, by its entry alone.

`one_of_each.py` adds an attention, a backbone, a size, a corpus, a format and
a metric, each as `docs/extending.md` says.
"""

import argparse
import ast
import contextlib
import csv
import dataclasses
import importlib.util
import json
import pathlib
import re

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("audio is read through tf.data", allow_module_level=True)

import tiny

from audio_tf import (
    analysis,
    attention,
    cli,
    compat,
    corpora,
    metrics,
    models,
)
from audio_tf.export import formats
from audio_tf.models import AudioClassifier, preset_backbones
from audio_tf.runs import (
    compare,
    compare_rows,
    corpus_settings,
    model_settings,
    processes,
    train,
)
from audio_tf.runs.compare_settings import CompareSettings
from audio_tf.runs.flags import add_flags
from audio_tf.runs.flags import parse as parse_flags

TESTS = pathlib.Path(__file__).resolve().parent
MODULE = TESTS / "one_of_each.py"
RATE_HZ = 8_000
TABLES = [
    attention.ATTENTIONS,
    models.BACKBONES,
    compat.SIZE_LOADERS,
    corpora.CORPORA,
    formats.FORMATS,
    metrics.METRICS,
]


@pytest.fixture(scope="module")
def added():
    """The module that adds one of each; all of it is taken back again."""
    before = [dict(table) for table in TABLES]
    family, hub = models.AudioTransformerBackbone, compat.presets.preset_utils
    sizes = family.sizes
    spec = importlib.util.spec_from_file_location("one_of_each", MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for table, old in zip(TABLES, before, strict=True):
        assert len(table) == len(old) + 1
    yield module
    for table, old in zip(TABLES, before, strict=True):
        table.clear()
        table.update(old)
    # A test of KerasHub's names may be the next of this process.
    family.sizes = sizes
    for name in module.MINI:
        hub.BUILTIN_PRESETS.pop(name)
        hub.BUILTIN_PRESETS_FOR_BACKBONE[family].pop(name)


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    """Eight clips of two tones, each as loud as no other, named by label."""
    folder = tmp_path_factory.mktemp("sounds")
    time_s = np.arange(1_700) / RATE_HZ
    for number in range(8):
        kind = number % 2
        tone = np.sin(2 * np.pi * (300, 1_500)[kind] * time_s)
        tone *= 0.4 + 0.02 * number
        name = f"{number}_{('low', 'high')[kind]}.wav"
        soundfile.write(folder / name, tone, RATE_HZ)
    return folder


def test_the_page_on_extending_says_what_it_takes():
    """The last column of its table is what the module does."""
    text = (TESTS.parent / "docs" / "extending.md").read_text()
    entries = re.findall(r"`([^`]*)` \|$", text, re.MULTILINE)
    done = {ast.unparse(each) for each in ast.parse(MODULE.read_text()).body}
    assert len(entries) == len(TABLES)
    for entry in entries:
        assert ast.unparse(ast.parse(entry)) in done, entry


def test_the_page_on_extending_is_whole():
    """It prints all that the module has, imports and all, in its order."""
    text = (TESTS.parent / "docs" / "extending.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    imports, kinds = (
        (ast.Import, ast.ImportFrom),
        (ast.ClassDef, ast.FunctionDef),
    )
    body = ast.parse(MODULE.read_text()).body
    module = [ast.unparse(each) for each in body if isinstance(each, imports)]
    assert list(map(ast.unparse, ast.parse(block).body)) == module
    printed = re.findall(r"<!-- code: tests/one_of_each.py (\w+) -->", text)
    assert printed == [each.name for each in body if isinstance(each, kinds)]


def waveforms():
    return np.random.default_rng(5).uniform(-0.5, 0.5, (2, 1_700))


def parse(*arguments):
    """Settings of a model and of a corpus, from their flags."""
    classes = (model_settings.ModelSettings, corpus_settings.DataSettings)
    both = dataclasses.make_dataclass("Both", [], bases=classes)
    return parse_flags(both, "", list(map(str, arguments)))


@pytest.fixture
def run(capsys):
    """A command of this process that must end with a status."""

    def run(command, *arguments, status=0):
        argv = list(map(str, arguments))
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            assert cli.main([command, *argv]) == status
        return capsys.readouterr().out

    return run


def test_an_attention_is_a_class_and_an_entry(added, run, tmp_path, capsys):
    layer = attention.create("near", num_heads=2, key_dim=3)
    assert isinstance(layer, added.NearAttention)
    lines = [line.split() for line in run("attentions").splitlines()]
    assert ["near", "O(L^2", "D)", "yes"] in [line[:4] for line in lines]

    asked = parse("--attention", "near", "--attention-kwargs", '{"reach": 1}')
    model = tiny.backbone(**asked.model_options(), causal=False)
    assert model.attention == "near"
    for wrong in ("neat", "--attention-kwargs"):
        with pytest.raises(SystemExit):
            parse("--attention", wrong)
    assert "did you mean 'near'" in capsys.readouterr().err
    with pytest.raises(TypeError, match="'reech'; did you mean 'reach'"):
        tiny.backbone(attention="near", attention_kwargs={"reech": 1})

    (maps,) = analysis.attention_maps(model, waveforms()[:, :143])
    far = np.abs(np.subtract.outer(range(13), range(13))) > 1
    assert not maps[..., far].any()
    np.testing.assert_allclose(maps.sum(axis=-1), 1.0, atol=1e-5)

    model.save_to_preset(str(tmp_path / "preset"))
    again = models.AudioBackbone.from_preset(str(tmp_path / "preset"))
    assert isinstance(again.blocks[0].attention, added.NearAttention)
    assert again.attention_kwargs == {"reach": 1}


def assert_scores_agree(stored, classifier):
    inputs = waveforms().astype("float32")
    np.testing.assert_allclose(
        stored(inputs), classifier.predict(inputs, verbose=0), atol=1e-5
    )


@pytest.mark.long
def test_a_backbone_is_a_class_and_an_entry(
    added, run, tmp_path, sounds, eager_models
):
    # Of the added attention, which is exported with it.
    model = added.WindowsBackbone(attention="near")
    classifier = AudioClassifier(model, labels=["high", "low"], chunk_s=0.1)
    preset = tmp_path / "preset"
    classifier.save_to_preset(str(preset))
    again = AudioClassifier.from_preset(str(preset))
    assert isinstance(again.backbone, added.WindowsBackbone)
    assert isinstance(
        models.AudioBackbone.from_preset(str(preset)), added.WindowsBackbone
    )
    with pytest.raises(
        TypeError, match="'hidden_dimm'; did you mean 'hidden_dim'"
    ):
        AudioClassifier.from_preset(str(preset), hidden_dimm=3)

    run("export", tmp_path / "exported", "--model", preset)
    assert_scores_agree(formats.load(tmp_path / "exported"), classifier)
    clip = min(sounds.iterdir())
    pytest.importorskip("matplotlib")
    run(
        "inspect",
        tmp_path / "figures",
        "--model",
        preset,
        "--only",
        "maps",
        clip,
    )
    found = json.loads((tmp_path / "figures" / "maps.json").read_text())
    # 1,700 samples in windows of 80.
    assert [row["frames"] for row in found["heads"]] == [22, 22]


def test_a_backbone_that_says_no_rate_is_refused(added):
    model = added.WindowsBackbone()
    model.sample_rate_hz = None
    with pytest.raises(ValueError, match="`sample_rate_hz` must be .*None"):
        AudioClassifier(model, labels=["high", "low"])


def test_layers_without_names_of_their_own_have_the_weights_of_a_preset(
    added, rng, tmp_path
):
    """Keras numbers them anew for each model of a process."""
    model = added.WindowsBackbone()
    model.save_to_preset(str(tmp_path))
    again = models.AudioBackbone.from_preset(str(tmp_path), trainable=False)
    x = rng.standard_normal((2, 400)).astype("float32")
    np.testing.assert_array_equal(
        again(x)["sequence_output"], model(x)["sequence_output"]
    )
    differs = "14 weights that differ, first transformer_block/attention/key/k"
    with pytest.raises(ValueError, match=differs):
        models.AudioBackbone.from_preset(str(tmp_path), hidden_dim=4)
    for _ in range(2):
        alike = keras.Sequential([keras.layers.Dense(3) for _ in range(2)])
        alike.build((None, 3))
        assert preset_backbones.shapes(alike) == {
            "dense/kernel": (3, 3),
            "dense/bias": (3,),
            "dense_1/kernel": (3, 3),
            "dense_1/bias": (3,),
        }


def test_a_backbone_without_causal_is_compared_as_it_is(
    added, sounds, tmp_path, monkeypatch
):
    preset, config = tmp_path / "preset", tmp_path / "config.py"
    added.WindowsBackbone().save_to_preset(str(preset))
    values = {"model": str(preset), "dataset": "named", "data_dir": str(sounds)}
    config.write_text(f"def get_config():\n    return {values!r}\n")
    given = {"train_config": str(config), "attentions": ["full", "near"]}
    settings = CompareSettings(**given, out=str(tmp_path / "out"))
    ran = []
    monkeypatch.setattr(processes, "run", lambda *command: ran.append(command))
    for row in compare_rows.table_rows(settings):
        compare.train(row, 0, settings)
        flags = list(map(str, ran.pop()[1:]))
        asked = parse_flags(train.TrainSettings, "", flags)
        backbone = models.AudioBackbone.from_preset(
            asked.model, load_weights=False, **asked.model_options()
        )
        (block,) = backbone.blocks
        assert asked.attention == row.attention == backbone.attention
        assert block.attention.causal is False
    with pytest.raises(ValueError, match="differ in `causal`, and the model"):
        CompareSettings(**given, causality=["no", "yes"])


def test_a_size_is_an_entry_and_listed_as_backbones_are(
    added, run, monkeypatch
):
    for name in set(compat.SIZE_LOADERS) - set(added.MINI):
        monkeypatch.delitem(compat.SIZE_LOADERS, name)  # Large ones take long.
    lines = run("presets", "--parameters").splitlines()
    (windows,) = [line for line in lines if line.startswith("windows ")]
    assert "WindowsBackbone" in windows
    (mini,) = [
        line for line in lines if line.startswith("audio_transformer_mini ")
    ]
    model = AudioClassifier.from_preset("audio_transformer_mini", num_classes=2)
    assert model.backbone.hidden_dim == 6
    assert f" {model.backbone.count_params():,} parameters" in mini
    with pytest.raises(ValueError, match="did you mean 'audio_transformer_mi"):
        AudioClassifier.from_preset("audio_transformer_min", num_classes=2)


def test_a_corpus_is_a_function_and_an_entry(added, run, sounds, capsys):
    parser = argparse.ArgumentParser()
    add_flags(parser, corpus_settings.DataSettings)
    helped = " ".join(parser.format_help().split())
    assert "named: files <number>_<label>" in helped
    assert "named" in run("export", "--help")

    asked = ["--dataset", "named", "--data-dir", sounds, "--corpus-seed", 3]
    read = parse(*asked).load()
    assert {split: len(read[split]) for split in read} == {"train": 4, "val": 4}
    expected = added.read_named(sounds, seed=3)["val"]
    assert read["val"] == expected
    for given, message in (
        (["--dataset", "name"], "did you mean 'named'"),
        ([*asked, "--train-folds", "1"], "applies to --dataset esc10 or esc50"),
    ):
        with pytest.raises(SystemExit):
            parse(*given)
        assert message in capsys.readouterr().err


def test_a_metric_is_a_function_and_an_entry(added):
    targets = np.eye(2)[[0, 1, 1, 0]]
    report = metrics.evaluate(targets, targets[[0, 0, 1, 1]], ["a", "b"])
    assert report["one_error"] == 0.5
    assert "one_error" in metrics.format_report(report)
    assert metrics.monitor_mode("val_one_error") == "min"
    # Its module was imported before the metric was there.
    asked = train.TrainSettings(monitor="val_one_error")
    assert asked.monitor == "val_one_error"


@pytest.mark.long
def test_a_format_is_a_class_and_an_entry(
    added, run, tmp_path, sounds, capsys, eager_models
):
    classifier = AudioClassifier.from_preset(
        "audio_transformer_mini", labels=["high", "low"], chunk_s=0.1
    )
    preset, out = tmp_path / "preset", tmp_path / "out"
    classifier.save_to_preset(str(preset))
    assert "zipped" in run("export", "--help")
    arguments = (out, "--model", preset, "--format", "zipped", "--verify")
    said = run("export", *arguments)
    assert str(out / "model.zip") in said
    assert_scores_agree(formats.load(out / "model.zip"), classifier)
    clip = min(sounds.iterdir())
    scores = [
        run("classify", clip, "--model", model, "--json")
        for model in (out / "model.zip", preset)
    ]
    found, expected = (json.loads(line)["scores"] for line in scores)
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.long
def test_all_of_them_in_one_run(
    added, run, tmp_path, sounds, eager_models, no_pictures
):
    """The module is the config of a run too, and so it adds them there."""
    out, cache = tmp_path / "run", ("--cache-dir", tmp_path / "cache")
    source = ("--dataset", "named", "--data-dir", sounds, *cache)
    run("train", "--config", MODULE, "--data-dir", sounds, "--out", out, *cache)
    with open(out / "history.csv") as file:
        (epoch,) = csv.DictReader(file)
    assert 0 <= float(epoch["val_one_error"]) <= 1
    config = json.loads((out / "config.json").read_text())
    assert config["settings"]["monitor"] == "val_one_error"
    model = AudioClassifier.from_preset(str(out / "preset"))
    assert model.backbone.attention == "near"
    assert model.backbone.num_layers == 1 and model.labels == ["high", "low"]

    report = tmp_path / "report.json"
    said = run(
        "evaluate",
        *("--model", out / "preset", "--split", "val", "--report", report),
        *source,
    )
    assert "one_error" in said
    assert "one_error" in json.loads(report.read_text())
