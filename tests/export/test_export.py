"""SavedModels: equal scores, elsewhere, at any length and batch size."""

import errno
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import tensorflow as tf

from audio_tf import export as audio_export
from audio_tf.export import classifiers, gate, loading
from audio_tf.models import AudioClassifier, AudioTransformerBackbone

SHAPES = [(131, 3), (40, 5), (7, 3), (131, 5), (40, 3), (7, 5)]

STRANGER = """
import json, sys
sys.modules["audio_tf"] = None
import numpy as np
import tensorflow as tf

serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
scores = []
with np.load(sys.argv[2]) as inputs:
    for key in sorted(inputs):
        waveform = tf.constant(inputs[key])
        lengths = tf.constant([-1])
        scores.append(
            serve(waveform=waveform, lengths=lengths)["scores"].numpy().tolist()
        )
print(json.dumps(scores))
"""


def model(size=None, **kwargs):
    if size is not None:
        return AudioClassifier.from_preset(size, labels=list("abc"))
    backbone = tiny.backbone(num_layers=2, **kwargs)
    return AudioClassifier(backbone, labels=list("abc"), chunk_s=0.25)


def waveform(rng, samples, batch):
    return rng.standard_normal((batch, samples)).astype("float32")


@pytest.mark.parametrize("size", AudioTransformerBackbone.sizes)
def test_every_size_is_equal_in_another_process(size, rng, tmp_path):
    """Saved, reloaded, exported, loaded where audio_tf cannot be imported."""
    original = model(size)
    original.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    folder = audio_export.export(reloaded, tmp_path / "served")
    inputs = {
        f"{number}": waveform(rng, samples * 97, batch)
        for number, (samples, batch) in enumerate(SHAPES)
    }
    np.savez(tmp_path / "inputs.npz", **inputs)
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, folder, tmp_path / "inputs.npz"],
        capture_output=True,
        text=True,
        cwd="/",
        env={"TF_CPP_MIN_LOG_LEVEL": "3", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for key, scores in zip(sorted(inputs), found, strict=True):
        expected = original.predict(inputs[key], verbose=0)
        np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize(
    "kwargs", [{}, {"pool_every": 1}, {"multiscale": "block"}]
)
def test_padded_clips_score_as_alone(kwargs, rng, tmp_path):
    original = model(**kwargs)
    audio_export.export(original, tmp_path)
    served = audio_export.ExportedClassifier(tmp_path)
    for lengths in ([131, 60, 1], [77, 2], [40]):
        x = waveform(rng, max(lengths), len(lengths))
        padded = np.pad(x, ((0, 0), (0, 19)), constant_values=5.0)
        together = served({"waveform": padded, "lengths": lengths})
        for clip, length in enumerate(lengths):
            alone = x[clip : clip + 1, :length]
            for scores in (served(alone), original.predict(alone, verbose=0)):
                np.testing.assert_allclose(
                    together[clip : clip + 1], scores, atol=1e-5
                )


def test_a_server_may_leave_lengths_out(rng, tmp_path):
    """Feeds the graph as a server does, with nothing for `lengths`."""
    original, x = model(), waveform(rng, 60, 2)
    folder = audio_export.export(original, tmp_path)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(folder))
        signature = graph.signature_def["serving_default"]
        assert set(signature.inputs) == {"waveform", "lengths"}
        scores = session.run(
            signature.outputs["scores"].name,
            {signature.inputs["waveform"].name: x},
        )
    np.testing.assert_allclose(scores, original(x), atol=1e-5)


def test_batch_and_length_are_dynamic(tmp_path):
    folder = audio_export.export(model(), tmp_path)
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    shapes = {
        name: spec.shape.as_list()
        for name, spec in serve.structured_input_signature[1].items()
    }
    assert shapes == {"waveform": [None, None], "lengths": [None]}
    assert list(serve.structured_outputs) == ["scores"]


def test_weights_are_written_once(tmp_path):
    original = model()
    original.fit(np.zeros((2, 30)), np.zeros((2, 3)), verbose=0)
    folder = audio_export.export(original, tmp_path)
    saved = tf.train.list_variables(str(folder / "variables" / "variables"))
    floats = [
        (name, shape) for name, shape in saved if "OBJECT_GRAPH" not in name
    ]
    assert len(floats) == len(original.weights)
    count = sum(int(np.prod(shape)) for _, shape in floats)
    assert count == original.count_params()


def test_half_precision_is_served_in_float32(rng, tmp_path):
    original = model(dtype="mixed_bfloat16")
    audio_export.export(original, tmp_path)
    served = audio_export.ExportedClassifier(tmp_path)
    x = waveform(rng, 60, 2)
    assert served(x).dtype == tf.float32
    np.testing.assert_allclose(served(x), original(x), atol=1e-2)


def test_versions_count_up(tmp_path):
    assert audio_export.export(model(), tmp_path) == tmp_path / "1"
    assert audio_export.export(model(), tmp_path, 7) == tmp_path / "7"
    assert audio_export.export(model(), tmp_path) == tmp_path / "8"
    with pytest.raises(FileExistsError, match="7"):
        audio_export.export(model(), tmp_path, 7)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1", "7", "8"]
    assert audio_export.saved_model_folder(tmp_path).name == "8"


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_of_tensorflow(*args, **kwargs):
    raise tf.errors.ResourceExhaustedError(None, None, "No space left\n#1")


def test_a_full_disk_says_what_is_kept(tmp_path, monkeypatch):
    """One line, no half-written version, the older ones as they were."""
    older = tmp_path / "model" / "3"
    older.mkdir(parents=True)
    original = model()
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


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"version": -1}, "version=-1"),
        ({"version": 2**63}, "of 63 bits"),
        ({"max_clip_s": -5.0}, "max_clip_s=-5.0"),
        ({"max_clip_s": float("nan")}, "max_clip_s=nan"),
        ({"max_clip_s": 0.5}, "at most 0.4 s whole"),
        ({"stream": True, "max_clip_s": 0.1}, "looks|look ahead"),
    ],
)
def test_wrong_arguments_leave_no_folder(arguments, message, tmp_path):
    backbone = tiny.backbone(attention="random_synthesizer", causal=False)
    limited = AudioClassifier(backbone, labels=list("abc"), chunk_s=None)
    with pytest.raises(ValueError, match=message):
        audio_export.export(limited, tmp_path / "model", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_labels_and_provenance_that_are_no_utf8_travel_along(tmp_path):
    """As folders and files of Latin-1 are named by Python."""
    strange = os.fsdecode(b"caf\xe9")
    backbone = tiny.backbone()
    original = AudioClassifier(backbone, labels=[strange, "b"], chunk_s=0.25)
    facts = {"files": [strange], "\u732b": "\u732b"}
    (tmp_path / "provenance.json").write_text(json.dumps(facts))
    found = classifiers.read_provenance(tmp_path)
    assert found == facts
    audio_export.export(original, tmp_path / "model", provenance=found)
    served = audio_export.ExportedClassifier(tmp_path / "model")
    assert served.labels == [strange, "b"]
    assert served.metadata["provenance"] == facts

    (tmp_path / "provenance.json").write_text("{")
    with pytest.raises(ValueError, match="provenance.json cannot be read"):
        classifiers.read_provenance(tmp_path)


def test_versions_are_plain_numbers(tmp_path):
    for name in ("7", "\u00b2", "\u0663", "x"):
        (tmp_path / name).mkdir()
    assert loading.versions(tmp_path) == [7]
    assert loading.versions(tmp_path / "none") == []


def test_metadata_travels_along(tmp_path):
    audio_export.export(model(), tmp_path)
    served = audio_export.ExportedClassifier(tmp_path)
    assert served.labels == ["a", "b", "c"]
    assert served.sample_rate_hz == 1100 and served.chunk_s == 0.25


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no SavedModel"):
        audio_export.ExportedClassifier(tmp_path / "nothing")
