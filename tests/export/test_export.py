"""SavedModels: equal scores, elsewhere, at any length and batch size."""

import errno
import json
import os
import pathlib
import re
import shutil

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import tensorflow as tf
from serving_cases import Export, classifier

from audio_tf import cli, models
from audio_tf import export as audio_export
from audio_tf.export import (
    base,
    classifiers,
    formats,
    gate,
    loading,
    runtimes,
    signatures,
)


def waveform(rng, samples, batch):
    return rng.standard_normal((batch, samples)).astype("float32")


@pytest.mark.parametrize(
    "kwargs",
    [
        {"pool_every": 1},
        pytest.param({}, marks=pytest.mark.costly),
        pytest.param({"multiscale": "block"}, marks=pytest.mark.costly),
    ],
)
def test_padded_clips_score_as_alone(kwargs, scores_alone, rng, tmp_path):
    original = classifier(num_layers=2, **kwargs)
    served = Export(original, tmp_path).loaded
    for lengths in ([131, 60, 1], [77, 2], [40]):
        x = waveform(rng, max(lengths), len(lengths))
        padded = np.pad(x, ((0, 0), (0, 19)), constant_values=5.0)
        together = served({"waveform": padded, "lengths": lengths})
        for clip, length in enumerate(lengths):
            alone = x[clip : clip + 1, :length]
            for scores in (served(alone), original(alone)):
                np.testing.assert_allclose(
                    together[clip : clip + 1], scores, atol=1e-5
                )


@pytest.mark.costly
def test_a_server_may_leave_lengths_out(shared_export, rng):
    """Feeds the graph as a server does, with nothing for `lengths`."""
    x, folder = waveform(rng, 60, 2), str(shared_export.folder)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        signature = graph.signature_def["serving_default"]
        assert set(signature.inputs) == {"waveform", "lengths"}
        scores = session.run(
            signature.outputs["scores"].name,
            {signature.inputs["waveform"].name: x},
        )
    np.testing.assert_allclose(scores, shared_export.model(x), atol=1e-5)


def test_batch_and_length_are_dynamic(shared_export):
    serve = shared_export.loaded.signatures["serving_default"]
    shapes = {
        name: spec.shape.as_list()
        for name, spec in serve.structured_input_signature[1].items()
    }
    assert shapes == {"waveform": [None, None], "lengths": [None]}
    assert list(serve.structured_outputs) == ["scores"]


@pytest.mark.costly
def test_weights_are_written_once(scores_alone, tmp_path):
    original = classifier(num_layers=2)
    original.optimizer.build(original.trainable_variables)
    folder = audio_export.export(original, tmp_path)
    saved = tf.train.list_variables(str(folder / "variables" / "variables"))
    floats = [
        (name, shape) for name, shape in saved if "OBJECT_GRAPH" not in name
    ]
    assert len(floats) == len(original.weights)
    count = sum(int(np.prod(shape)) for _, shape in floats)
    assert count == original.count_params()


@pytest.mark.costly
def test_half_precision_is_served_in_float32(shared_export, rng, tmp_path):
    original = classifier(dtype="mixed_bfloat16")
    served = Export(original, tmp_path).loaded
    # Not the masks and the numbers of the reasons.
    known = shared_export.loaded.signatures
    for name, signature in served.signatures.items():
        for key, output in signature.structured_outputs.items():
            assert output.dtype == known[name].structured_outputs[key].dtype
    x = waveform(rng, 60, 2)
    assert served(x).dtype == tf.float32
    np.testing.assert_allclose(served(x), original(x), atol=1e-2)


@pytest.mark.costly
def test_versions_count_up(head_alone, tmp_path):
    original = classifier()
    assert audio_export.export(original, tmp_path) == tmp_path / "1"
    assert audio_export.export(original, tmp_path, 7) == tmp_path / "7"
    assert audio_export.export(original, tmp_path) == tmp_path / "8"
    with pytest.raises(FileExistsError, match="7"):
        audio_export.export(original, tmp_path, 7)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1", "7", "8"]
    assert audio_export.saved_model_folder(tmp_path).name == "8"


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_of_tensorflow(*args, **kwargs):
    raise tf.errors.ResourceExhaustedError(None, None, "No space left\n#1")


def test_a_full_disk_says_what_is_kept(head_alone, tmp_path, monkeypatch):
    """One line, no half-written version, the older ones as they were."""
    older = tmp_path / "model" / "3"
    older.mkdir(parents=True)
    original = classifier()
    for place, name, fault, kept in (
        (gate, "check", full_disk_of_tensorflow, 3),
        (os, "rename", full_disk, 3),
        (pathlib.Path, "write_text", full_disk, "none"),
    ):
        folder = tmp_path / ("model" if kept == 3 else "new")
        with monkeypatch.context() as broken:
            broken.setattr(place, name, fault)
            with pytest.raises(OSError, match="No space left") as raised:
                audio_export.export(original, folder)
        message = str(raised.value)
        assert "\n" not in message and f"keeps: {kept}. Received" in message
        assert list((tmp_path / "model").iterdir()) == [older]
        assert [file.name for file in tmp_path.iterdir()] == ["model"]


class TwoFiles(base.FileFormat):
    """A format whose weights are in a second file, and which is not run."""

    name, suffix = "two", ".two"

    def convert(self, folder, path, quantize):
        path.write_text("model")
        path.with_suffix(".weights").write_text("weights")

    def try_out(self, model, path, quantize):
        pass


def test_a_format_stopped_between_its_files_leaves_no_mixture(
    tmp_path, monkeypatch
):
    """No file names labels or weights that are another model's."""
    monkeypatch.setattr(signatures, "write_scores", folder_alone)
    place = tmp_path / "model.two"
    TwoFiles().write(classifier(), place)
    whole = {"model.two", "model.two.json", "model.weights"}
    assert {file.name for file in tmp_path.iterdir()} == whole
    replace, done = os.replace, []

    def interrupted(source, target):
        if done:
            raise KeyboardInterrupt
        replace(source, target)
        done.append(target)

    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            TwoFiles().write(classifier(), place)
    assert {file.name for file in tmp_path.iterdir()} == whole - {place.name}
    TwoFiles().write(classifier(), place)
    assert {file.name for file in tmp_path.iterdir()} == whole


def folder_alone(model, folder):
    """Stands for a SavedModel that nothing converts."""
    folder.mkdir()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"version": -1}, "version=-1"),
        ({"version": 1.0}, "must be an integer.*version=1.0"),
        ({"version": True}, "must be an integer.*version=True"),
        ({"version": "1"}, "must be an integer.*version='1'"),
        ({"version": 2**63}, "of 63 bits"),
        ({"max_clip_s": -5.0}, "max_clip_s=-5.0"),
        ({"max_clip_s": float("nan")}, "max_clip_s=nan"),
        ({"max_clip_s": "5"}, "max_clip_s='5'"),
        ({"stream": "no"}, "stream='no'"),
        ({"explain": 2}, "explain=2"),
        ({"max_clip_s": 0.5}, "at most 0.4 s whole"),
        ({"stream": True, "max_clip_s": 0.1}, "looks|look ahead"),
    ],
)
def test_wrong_arguments_leave_no_folder(arguments, message, tmp_path):
    limited = classifier(None, attention="random_synthesizer", causal=False)
    with pytest.raises(ValueError, match=message):
        audio_export.export(limited, tmp_path / "model", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_bytes_of_one_file_are_not_several_files(kind):
    """A graph of it would score as many copies of the file as it has bytes."""
    served = object.__new__(audio_export.ExportedClassifier)
    served.signatures = {
        "serving_audio_bytes": lambda audio_bytes: {"scores": audio_bytes}
    }
    with pytest.raises(TypeError, match=f"as in .content.*{kind.__name__}"):
        served.score_bytes(kind(b"RIFF"))
    assert served.score_bytes([b"RIFF"])["scores"].shape == (1,)


@pytest.mark.parametrize("name", ["1", "3"])
def test_a_version_is_no_folder_of_a_model(name, tmp_path):
    """No server and no `ExportedClassifier` would find what is in it."""
    model = tmp_path / "model"
    (model / "1").mkdir(parents=True)
    (model / "1" / "saved_model.pb").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=f"`path` .* `version`.*model/{name}$"):
        audio_export.export(classifier(), model / name)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--stream"], "look ahead|looks"),
        (["--version", "7"], "7 exists already"),
        (["--max-clip", "0.5"], "at most 0.4 s whole"),
        (["--verify", "--clips", "lost.wav"], "lost.wav"),
        (["--verify", "--dataset", "folders", "--data-dir", "lost"], "lost"),
    ],
)
def test_nothing_is_written_for_flags_that_do_not_fit(
    flags, message, tmp_path, monkeypatch, capsys
):
    """Also of formats that come before the one that they do not fit."""
    limited = classifier(None, attention="random_synthesizer", causal=False)
    monkeypatch.setattr(classifiers, "load_trained", lambda name: limited)
    monkeypatch.setattr(classifiers, "read_provenance", lambda name: None)
    written = []
    for format in ("onnx", "savedmodel"):
        format = formats.FORMATS[format]
        monkeypatch.setattr(format, "check_installed", lambda: None)
        monkeypatch.setattr(
            format, "write", lambda *args, **kwargs: written.append(args)
        )
    (tmp_path / "7").mkdir()
    arguments = ["export", str(tmp_path), "--model", "none"]
    arguments += ["--format", "onnx,savedmodel", *flags]
    assert cli.main(arguments) == 2
    assert re.search(message, capsys.readouterr().err)
    assert written == [] and len(list(tmp_path.iterdir())) == 1


def test_exports_are_tensorflows(tmp_path, monkeypatch, capsys):
    """Another backend is refused before a model is loaded or converted."""
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.delattr(classifiers, "load_trained")
    for name in formats.FORMATS:
        with pytest.raises(RuntimeError, match="set KERAS_BACKEND=tensorflow"):
            formats.convert(None, tmp_path / "model", name)
        arguments = ["export", str(tmp_path), "--model", "lost"]
        assert cli.main([*arguments, "--format", name]) == 2
        assert "set KERAS_BACKEND=tensorflow" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="set KERAS_BACKEND=tensorflow"):
        audio_export.export(None, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_classifier_is_named(tmp_path):
    """The name of a preset, which the command line takes, is none."""
    told = "must be an AudioClassifier.*Received: model of type str"
    name = "audio_transformer_esc10"
    with pytest.raises(TypeError, match=told):
        audio_export.export(name, tmp_path / "model")
    with pytest.raises(TypeError, match=told):
        formats.check_model(name, "onnx")
    assert list(tmp_path.iterdir()) == []


def test_threads_that_a_runtime_does_not_take_are_refused(tmp_path):
    (tmp_path / "model.onnx").touch()
    for path, number in ((tmp_path, 2), (tmp_path / "model.onnx", 0)):
        with pytest.raises(ValueError, match=f"num_threads={number}"):
            formats.load(path, num_threads=number)


class Told(runtimes.RuntimeClassifier):
    """A runtime that tells what it was given."""

    def __init__(self):
        pass

    def run(self, waveform, lengths):
        return waveform.tolist(), lengths.tolist()


class Sums(Told):
    def run(self, waveform, lengths):
        self.batches.append(len(waveform))
        return np.stack([waveform.sum(axis=1), lengths], axis=1)


def test_a_stored_classifier_predicts_arrays_and_batches(capsys):
    clips = np.arange(12.0).reshape(6, 2)
    lengths = np.array([2, 1, 0, 2, 2, 1])
    inputs = {"waveform": clips, "lengths": lengths}
    stored, expected = Sums(), np.stack([clips.sum(axis=1), lengths], axis=1)
    for x, more, batches in (
        (inputs, {"batch_size": 4, "verbose": 1}, [4, 2]),
        (inputs, {}, [6]),
        ([inputs], {}, [6]),
        ([(clips[:1], lengths[:1]), (clips[1:], None)], {"verbose": 0}, [1, 5]),
    ):
        stored.batches = []
        found = stored.predict(x, **more)
        assert stored.batches == batches
        np.testing.assert_array_equal(found[:, 0], expected[:, 0])
        whole = isinstance(x, dict) or isinstance(x[0], dict)
        np.testing.assert_array_equal(found[:, 1], lengths if whole else -1)
        assert ("2/2" in capsys.readouterr().err) == ("batch_size" in more)


@pytest.mark.parametrize(
    ("x", "more", "message"),
    [
        (np.ones((2, 3)), {"batch_size": 0}, "`batch_size` must be a pos"),
        ([np.ones((2, 3))], {"batch_size": 2}, "an iterable has batches"),
        ([], {}, "`x` must have clips"),
        (np.ones((0, 3)), {}, "`x` must have clips"),
        (np.ones(3), {}, "shape .batch, samples"),
        ([np.ones(3)], {}, "shape .batch, samples"),
        (np.ones((2, 3)), {"verbose": "no"}, "`verbose` must be one of"),
    ],
)
def test_what_a_stored_classifier_cannot_predict_is_named(x, more, message):
    with pytest.raises(ValueError, match=message):
        Told().predict(x, **more)


def test_clips_without_samples_reach_a_runtime_as_padding():
    assert Told()(np.zeros((2, 0))) == ([[0.0], [0.0]], [0, 0])
    assert Told()(np.ones((1, 2))) == ([[1.0, 1.0]], [-1])


def test_labels_and_provenance_that_are_no_utf8_travel_along(
    scores_alone, tmp_path
):
    """As folders and files of Latin-1 are named by Python."""
    strange = os.fsdecode(b"caf\xe9")
    original = classifier(labels=[strange, "b"])
    facts = {"files": [strange], "\u732b": "\u732b"}
    (tmp_path / "provenance.json").write_text(json.dumps(facts))
    found = classifiers.read_provenance(tmp_path)
    assert found == facts
    served = Export(original, tmp_path / "model", provenance=found).loaded
    assert served.labels == [strange, "b"]
    assert served.metadata["provenance"] == facts
    # An export is known as its preset is, by whichever of its folders.
    for folder in ("model", "model/1"):
        assert classifiers.read_provenance(tmp_path / folder) == facts
    assert classifiers.read_provenance(tmp_path / "model" / "no") is None
    stored = tmp_path / "model.onnx"
    stored.touch()
    assert classifiers.read_provenance(stored) is None
    beside = tmp_path / "model.onnx.json"
    beside.write_text(json.dumps({"provenance": facts}))
    assert classifiers.read_provenance(stored) == facts
    beside.write_text("{")
    with pytest.raises(ValueError, match="model.onnx.json cannot be read"):
        classifiers.read_provenance(stored)

    (tmp_path / "provenance.json").write_text("{")
    with pytest.raises(ValueError, match="provenance.json cannot be read"):
        classifiers.read_provenance(tmp_path)


def test_versions_are_plain_numbers(tmp_path):
    for name in ("7", "\u00b2", "\u0663", "x"):
        (tmp_path / name).mkdir()
    assert loading.versions(tmp_path) == [7]
    assert loading.versions(tmp_path / "none") == []


def test_metadata_travels_along(shared_export):
    served = shared_export.loaded
    assert served.labels == ["dog", "rain", "siren"]
    assert served.sample_rate_hz == 1100 and served.chunk_s == 0.25


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no SavedModel"):
        audio_export.ExportedClassifier(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b'{"labels": ["do', b"\xff\xfe{}"])
def test_a_damaged_file_beside_a_model_is_named(content, tmp_path):
    """As where a copy was cut off."""
    extra = tmp_path / "1" / "assets.extra"
    extra.mkdir(parents=True)
    (tmp_path / "1" / "saved_model.pb").touch()
    (tmp_path / "model.onnx").touch()
    for path in (extra / "audio_tf.json", tmp_path / "model.onnx.json"):
        path.write_bytes(content)
    for place, name in (
        (tmp_path, "audio_tf.json"),
        (tmp_path / "model.onnx", "model.onnx.json"),
    ):
        with pytest.raises(ValueError, match=f"{name} cannot be read: ") as e:
            classifiers.load_classifier(place)
        # Workers of `audio-tf score` hand on the kind and the text.
        assert type(e.value) is ValueError


@pytest.mark.parametrize(
    "name", ["saved_model.pb", "variables.index", "variables.data-*"]
)
def test_a_model_that_is_cut_off_is_named(name, shared_export, tmp_path):
    version = tmp_path / "1"
    shutil.copytree(shared_export.folder, version)
    (path,) = version.rglob(name)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match="not copied as a whole") as error:
        classifiers.load_classifier(tmp_path)
    assert str(version) in str(error.value)


def test_a_newest_version_without_a_model_is_no_preset(tmp_path):
    """As while it is copied; `config.json` is not what is missing."""
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()
    with pytest.raises(FileNotFoundError, match="no SavedModel with") as error:
        classifiers.load_classifier(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_no_name_is_meant_by_a_path(tmp_path):
    """`preset` and `resnet18` share most of their letters."""
    path = str(tmp_path / "preset")
    for load in (
        classifiers.load_classifier,
        models.AudioClassifier.from_preset,
    ):
        with pytest.raises(ValueError, match="; no such file or folder. ") as e:
            load(path)
        assert "did you mean" not in str(e.value)
        with pytest.raises(ValueError, match="did you mean 'audio_transformer"):
            load("audio_transformer_esc11")
        (tmp_path / "last.keras").touch()
        with pytest.raises(ValueError, match="; a file is no preset. Received"):
            load(str(tmp_path / "last.keras"))


def test_the_folder_of_a_file_of_another_format_is_no_preset(tmp_path):
    """`audio-tf export DIR --format onnx` is given this folder."""
    for name in ("model.onnx", "model.onnx.json", "model_dynamic.tflite"):
        (tmp_path / name).touch()
    message = r"the file itself .*\['model.onnx', 'model_dynamic.tflite'\]"
    with pytest.raises(ValueError, match=message):
        classifiers.load_classifier(tmp_path)
    # A preset may have such a file beside it.
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json must be JSON"):
        classifiers.load_classifier(tmp_path)
