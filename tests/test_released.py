"""Presets by their released names: listed, loaded, and checked."""

import dataclasses
import json

import keras
import keras_hub
import numpy as np
import pytest
import tiny

from audio_tf import cli, compat, models, released
from audio_tf.models import AudioClassifier
from audio_tf.runs import heard

NAME = "audio_transformer_barks"
LABELS = ["dog", "rain", "siren"]
ENTRY = {
    "model": "audio_tf>AudioClassifier",
    "backbone": "audio_tf>AudioTransformerBackbone",
    "description": "It tells dogs from weather.",
    "corpus": "barks",
    "split": "test",
    "command": "audio-tf train --dataset barks",
    "seed": 3,
    "metric": released.Metric("accuracy", 0.75, [0.5, 0.9], 20),
    "licence": "CC BY 4.0",
    "parameters": 1_234,
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A tiny classifier, and a folder in which it is released."""
    root = tmp_path_factory.mktemp("root")
    classifier = AudioClassifier(tiny.backbone(), labels=LABELS, chunk_s=0.5)
    classifier.save_to_preset(str(root / NAME))
    released.add(root / NAME, **ENTRY)
    return classifier, root


@pytest.fixture
def forgotten(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(released, "RELEASED", dict(released.RELEASED))
    hub = compat.presets.preset_utils
    by_class = hub.BUILTIN_PRESETS_FOR_BACKBONE
    copied = type(by_class)(dict, {k: dict(v) for k, v in by_class.items()})
    monkeypatch.setattr(hub, "BUILTIN_PRESETS", dict(hub.BUILTIN_PRESETS))
    monkeypatch.setattr(hub, "BUILTIN_PRESETS_FOR_BACKBONE", copied)


@pytest.fixture
def root(stored, forgotten):
    models.register_released(stored[1])
    return stored[1]


def test_a_released_preset_is_loaded_by_its_name(
    stored, root, rng, tmp_path, monkeypatch
):
    """From any folder; the backbone alone and through KerasHub as well."""
    monkeypatch.chdir(tmp_path)
    waveform = rng.uniform(-0.5, 0.5, (2, 550)).astype("float32")
    expected = stored[0](waveform)
    loaded = AudioClassifier.from_preset(NAME)
    assert loaded.labels == LABELS and loaded.chunk_s == 0.5
    np.testing.assert_array_equal(loaded(waveform), expected)
    frames = stored[0].backbone(waveform)["sequence_output"]
    for base in (models.AudioBackbone, keras_hub.models.Backbone):
        found = base.from_preset(NAME)(waveform)["sequence_output"]
        np.testing.assert_array_equal(found, frames)
    new = AudioClassifier.from_preset(NAME, labels=["a", "b"])
    assert new.num_classes == 2
    with pytest.raises(TypeError, match="did you mean 'labels'"):
        AudioClassifier.from_preset(NAME, lables=["a", "b"])


def test_released_presets_are_listed(root, capsys):
    known = AudioClassifier.presets
    assert set(known) == {
        name
        for name, preset in models.list_released().items()
        if preset.model == ENTRY["model"]
    }
    assert known[NAME]["metadata"]["description"] == ENTRY["description"]
    assert known[NAME]["metadata"]["params"] == ENTRY["parameters"]
    assert NAME in models.AudioTransformerBackbone.presets
    assert NAME in keras_hub.models.Backbone.presets
    assert NAME not in models.AudioAlbertBackbone.presets
    assert cli.main(["presets"]) == 0
    (line,) = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(f"{NAME} ")
    ]
    for text in (
        "tells dogs from weather",
        "accuracy 0.750 [0.500, 0.900] on 20 clips",
        "CC BY 4.0",
    ):
        assert text in line


def test_an_unknown_name_names_the_nearest(root):
    for load in (AudioClassifier, models.AudioBackbone):
        with pytest.raises(ValueError, match=f"did you mean '{NAME}'"):
            load.from_preset("audio_transformer_bark")
    with pytest.raises(ValueError, match="did you mean 'audio_transformer_sm"):
        AudioClassifier.from_preset("audio_transformer_smal")


@pytest.mark.parametrize("name", ["model.weights.h5", "task.json"])
def test_a_damaged_file_is_named(name, root):
    path = root / NAME / name
    content = path.read_bytes()
    try:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        for base in (AudioClassifier, keras_hub.models.Backbone):
            with pytest.raises(ValueError, match=f"damaged.*{name}.*SHA-256"):
                base.from_preset(NAME)
        path.unlink()
        with pytest.raises(ValueError, match=f"incomplete.*{name} is missing"):
            AudioClassifier.from_preset(NAME)
    finally:
        path.write_bytes(content)
    AudioClassifier.from_preset(NAME)


def test_names_are_of_one_preset_alone(root, stored, tmp_path):
    """A size, a preset elsewhere and one of KerasHub keep their names."""
    with pytest.raises(ValueError, match=f"name of a released.*{NAME}"):
        models.AudioTransformerBackbone.register_sizes({NAME: {}})
    assert NAME not in models.list_sizes()
    entry = stored[1].joinpath(released.INDEX).read_text()
    for name in ("audio_transformer_small", "bert_base_en_uncased", NAME):
        (tmp_path / released.INDEX).write_text(entry.replace(NAME, name))
        with pytest.raises(ValueError, match=f"released.*{name}|name.*{name}"):
            models.register_released(tmp_path)
    models.register_released(root)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"licence": None}, "index.json.*without .'licence'"),
        ({"license": "CC BY 4.0"}, "index.json.*did you mean 'licence'"),
        ({"metric": {"name": "accuracy"}}, "index.json is no index"),
        ({"class": "audio_tf>AudioClasifier"}, "not all known.*AudioClasif"),
    ],
)
def test_a_wrong_entry_is_named(change, message, stored, forgotten, tmp_path):
    (entry,) = json.loads((stored[1] / released.INDEX).read_text()).values()
    entry = {**entry, **change}
    entry = {key: value for key, value in entry.items() if value is not None}
    (tmp_path / released.INDEX).write_text(json.dumps({NAME: entry}))
    with pytest.raises(ValueError, match=message):
        models.register_released(tmp_path)
    (tmp_path / released.INDEX).write_text("{")
    with pytest.raises(ValueError, match="index.json is no index"):
        models.register_released(tmp_path)


def test_the_index_says_what_is_in_the_folder(stored):
    (entry,) = released.read_index(stored[1]).values()
    there = {path.name for path in (stored[1] / NAME).iterdir()}
    assert there == set(entry.files) and "task.weights.h5" in there
    sizes = [path.stat().st_size for path in (stored[1] / NAME).iterdir()]
    assert entry.size_bytes == sum(sizes)
    for name, value in ENTRY.items():
        assert getattr(entry, name) == value


def test_a_large_preset_is_refused(tmp_path):
    (tmp_path / "large").mkdir()
    with open(tmp_path / "large" / "model.weights.h5", "wb") as file:
        file.truncate(released.MAX_BYTES)
    with pytest.raises(ValueError, match="8 MB.*8.00 MB are model.weights"):
        released.add(tmp_path / "large", **ENTRY)
    assert not (tmp_path / released.INDEX).exists()


@pytest.mark.parametrize("name", ["Barks", "a/b", "hf://a", "../a", "", "a-b"])
def test_a_name_is_a_word(name):
    with pytest.raises(ValueError, match="lower-case"):
        released.check_name(name)


def test_classify_takes_a_released_name(root, rng, tmp_path, capsys):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("the command line reads through tf.data")
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "a.wav", rng.uniform(-0.5, 0.5, 900), 1_100)
    arguments = ["classify", str(tmp_path / "a.wav"), "--json", "--model"]
    assert cli.main([*arguments, NAME]) == 0
    assert set(json.loads(capsys.readouterr().out)["scores"]) == set(LABELS)
    assert cli.main([*arguments, NAME[:-1]]) == 2
    assert f"did you mean '{NAME}'" in capsys.readouterr().err


def test_a_preset_is_replaced_in_the_index(stored, tmp_path):
    for seed in (3, 4):
        folder = tmp_path / NAME
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(str(seed))
        released.add(folder, **{**ENTRY, "seed": seed})
    (entry,) = released.read_index(tmp_path).values()
    assert entry.seed == 4
    entry.verify()
    assert dataclasses.replace(entry, seed=3) != entry


def test_released_classifiers_tell_what_they_were_trained_on():
    """Marks of all files of the split, but for those that sound the same."""
    classifiers = [
        entry
        for entry in released.read_index(released.ROOT).values()
        if entry.model == "audio_tf>AudioClassifier"
    ]
    assert len(classifiers) == 5
    for entry in classifiers:
        origin = json.loads((entry.folder / "provenance.json").read_text())
        listed = origin["corpus"]["train"]["files"]
        marks = heard.read(entry.folder).learned
        assert 0.9 * listed < len(np.unique(marks)) <= listed, entry.name
