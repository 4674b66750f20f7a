"""What `--verify` says of signatures that are not the model's."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import tensorflow as tf
from serving_cases import classifier

from audio_tf.audio.wav import WavError
from audio_tf.export import signature_parity, verify

pytestmark = pytest.mark.costly

NAMES = ["embed", "frames", "serving_audio_bytes", "stream"]


@pytest.fixture(scope="module")
def clips():
    """Two chunks and a part of a third, and less than one."""
    rng = np.random.default_rng(5)
    return [0.2 * rng.standard_normal(n).astype("float32") for n in (701, 97)]


def size_of(x):
    """What embeddings are compared by."""
    return tf.maximum(1.0, tf.reduce_max(tf.abs(x)))


class Faulty:
    """The signatures of an export, one of which gives something else."""

    def __init__(self, signatures, name, output, change):
        self.signatures = signatures
        self.name, self.output, self.change = name, output, change

    def __getitem__(self, name):
        if name != self.name:
            return self.signatures[name]
        return self.changed

    def __contains__(self, name):
        return name in self.signatures

    def changed(self, **inputs):
        found = self.signatures[self.name](**inputs)
        return {**found, self.output: self.change(found[self.output])}


def test_the_report_compares_every_signature(shared_export, clips):
    model, files = shared_export.model, {"savedmodel": shared_export.folder}
    plain, served = verify.verify(model, files, clips, rounds=0)
    assert plain.signatures == {} and plain.passed
    assert list(served.signatures) == NAMES and served.passed
    assert max(served.signatures.values()) <= 1e-5
    title, _, reference, line = verify.format_rows([plain, served]).splitlines()
    assert "| signatures diff | explain diff | parity |" in title
    assert reference.endswith(" |  |  | equal |")
    assert float(line.split("|")[-4]) == pytest.approx(
        max(served.signatures.values()), rel=0.1
    )


@pytest.mark.parametrize(
    "name, output, change, difference",
    [
        ("embed", "embedding", lambda x: x + 3e-4 * size_of(x), 3e-4),
        ("frames", "scores", lambda x: x + 3e-4, 3e-4),
        ("frames", "mask", tf.logical_not, np.inf),
        ("serving_audio_bytes", "scores", lambda x: x + 3e-4, 3e-4),
        ("serving_audio_bytes", "valid", tf.logical_not, np.inf),
        ("stream", "scores", lambda x: x + 3e-4, 3e-4),
        ("stream", "scores", lambda x: x[:, 1:], np.inf),
    ],
)
def test_a_fault_of_one_signature_is_told(
    name, output, change, difference, shared_export, clips, monkeypatch
):
    model, loaded = shared_export.model, shared_export.loaded
    faulty = Faulty(loaded.signatures, name, output, change)
    monkeypatch.setattr(loaded, "signatures", faulty)
    batch = verify.alone_and_together(clips)[-1]
    found = signature_parity.differences(model, loaded, clips, batch)
    assert list(found) == NAMES
    assert found.pop(name) == pytest.approx(difference, abs=1e-5)
    assert max(found.values()) <= 1e-5
    row = verify.Row("savedmodel", False, 1.0, 0.0, 0.0, 1.0)
    assert row.passed
    row.signatures = {name: difference}
    assert not row.passed and row.parity == f"DIFFERS IN {name} (over 1e-05)"


def test_files_that_are_too_long_for_the_export_are_not_compared(
    shared_export, clips, monkeypatch
):
    loaded = shared_export.loaded
    signatures = loaded.signatures

    def refuse(audio_bytes):
        found = signatures["serving_audio_bytes"](audio_bytes=audio_bytes)
        none = {name: tf.zeros_like(each) for name, each in found.items()}
        return {**none, "error": none["error"] + int(WavError.TOO_LONG)}

    monkeypatch.setattr(loaded, "signatures", {"serving_audio_bytes": refuse})
    batch = verify.alone_and_together(clips)[-1]
    found = signature_parity.differences(
        shared_export.model, loaded, clips, batch
    )
    assert found == {"serving_audio_bytes": 0.0}


def test_what_computes_less_precisely_may_be_further_apart():
    assert signature_parity.tolerance(classifier()) == 1e-5
    half = classifier(dtype="mixed_float16")
    assert signature_parity.tolerance(half) == 2e-3
    stored = classifier()
    stored.quantize("int8")
    assert signature_parity.tolerance(stored) == 2e-2
