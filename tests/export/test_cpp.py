"""The C++ loader: exports run as TensorFlow Serving runs them, faults fail.

Each fault is planted in a model that the runner passes without it.
"""

import json
import re

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import serving_cases
import tensorflow as tf
from serving_cases import wav_file

pytestmark = pytest.mark.costly

X = np.array([[0.5, -1.0, 2.0]], "float32")
CLIP = tf.TensorSpec((None, None), tf.float32, name="x")


def example(name, spec, rng):
    """An input by its name, or zeros for two clips, as of a new stream."""
    if name == "waveform":
        return rng.standard_normal((2, 131)).astype("float32")
    if name == "lengths":
        return np.array([131, 60], "int32")
    if name == "label":
        return np.array([-1, 2], "int32")
    if name == "audio_bytes":
        return [wav_file(0.1 * rng.standard_normal(n)) for n in (131, 60)]
    return np.zeros(
        [size or 2 for size in spec.shape], spec.dtype.as_numpy_dtype
    )


@pytest.fixture(scope="module")
def exported(shared_export, tmp_path_factory):
    """An export with a case for each signature, expected from Python."""
    cases = tmp_path_factory.mktemp("cases")
    rng = np.random.default_rng(7)
    model = shared_export.model
    for name, signature in shared_export.loaded.signatures.items():
        inputs = {
            key: example(key, spec, rng)
            for key, spec in signature.structured_input_signature[1].items()
        }
        outputs = signature(**{k: tf.constant(v) for k, v in inputs.items()})
        outputs = {key: value.numpy() for key, value in outputs.items()}
        if name == "serving_default":
            outputs = {"scores": model(inputs).numpy()}
            alone = {"waveform": inputs["waveform"]}
            scores = {"scores": model(alone["waveform"]).numpy()}
            serving_cases.write_case(
                cases / "default_lengths", name, alone, scores
            )
        serving_cases.write_case(cases / name, name, inputs, outputs)
    return shared_export.folder, cases


@pytest.mark.long
def test_an_export_gives_the_expected_scores(exported):
    status, text = serving_cases.run("check", *exported)
    assert status == 0, text
    assert text.count("ok ") == len(list(exported[1].iterdir()))
    assert " 0 failed, 0 signatures without a case" in text


@pytest.mark.long
def test_times_are_json_lines(exported):
    status, text = serving_cases.run("time", *exported, 3)
    assert status == 0, text
    rows = [json.loads(x) for x in text.splitlines() if x.startswith("{")]
    assert len(rows) == len(list(exported[1].iterdir()))
    for row in rows:
        assert row["repeats"] == 3
        assert 0 < row["median_ms"] <= row["p99_ms"] and row["first_ms"] > 0


class Tanh(tf.Module):
    """tanh(x), given twice; signatures are overridden to plant a fault."""

    def values(self, x):
        return {"y": tf.tanh(x), "twice": 2 * tf.tanh(x)}


class PyFunc(Tanh):
    def values(self, x):
        y = tf.numpy_function(np.tanh, [x], tf.float32)
        y = tf.reshape(y, tf.shape(x))
        return {"y": y, "twice": 2 * y}


class Nan(Tanh):
    def values(self, x):
        y = tf.tanh(x)
        return {"y": y / tf.where(x < 0, 0 * x, 1 + 0 * x) * 0, "twice": 2 * y}


class Fewer(Tanh):
    def values(self, x):
        return {"y": tf.tanh(x)}


class More(Tanh):
    def values(self, x):
        return {**super().values(x), "thrice": x}


class Half(Tanh):
    def values(self, x):
        y = tf.tanh(tf.cast(x, tf.float16))
        return {"y": y, "twice": 2 * tf.tanh(x)}


class Transposed(Tanh):
    def values(self, x):
        y = tf.tanh(x)
        return {"y": tf.transpose(y), "twice": 2 * y}


def saved(module, folder, names=("serving_default",)):
    """A SavedModel with `values` under each name; also the case's folder."""
    function = tf.function(module.values, input_signature=[CLIP])
    tf.saved_model.save(
        module, str(folder / "model"), dict.fromkeys(names, function)
    )
    return folder / "model", folder / "cases"


def expect(cases, signature="serving_default", **outputs):
    """The case of Tanh on X, with some other outputs."""
    expected = {"y": np.tanh(X), "twice": 2 * np.tanh(X), **outputs}
    serving_cases.write_case(cases / "tanh", signature, {"x": X}, expected)


def test_an_equal_model_passes(tmp_path):
    model, cases = saved(Tanh(), tmp_path)
    expect(cases)
    assert serving_cases.run("check", model, cases)[0] == 0


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (PyFunc, "No OpKernel|PyFunc"),
        (Nan, "y: max difference -?nan"),
        (Fewer, "missing output twice"),
        (More, "unexpected output thrice"),
        (Half, "y: expected .*float.*found .*half"),
        (Transposed, r"y: expected .*\[1,3\].*found .*\[3,1\]"),
    ],
)
def test_a_faulty_model_fails(module, message, tmp_path):
    model, cases = saved(module(), tmp_path)
    expect(cases)
    status, text = serving_cases.run("check", model, cases)
    assert status == 1 and re.search(f"FAIL tanh: .*({message})", text), text


def test_a_wrong_score_fails_beyond_the_tolerance(tmp_path):
    model, cases = saved(Tanh(), tmp_path)
    expect(cases, y=np.tanh(X) + np.array([0, 2e-5, 0], "float32"))
    status, text = serving_cases.run("check", model, cases)
    assert status == 1 and "FAIL tanh: y: max difference" in text
    assert serving_cases.run("check", model, cases, 3e-5)[0] == 0


def test_an_unregistered_op_fails(tmp_path):
    model, cases = saved(Tanh(), tmp_path)
    expect(cases)
    serving_cases.rename_op(model, "Tanh", "IO>AudioDecodeMP3")
    status, text = serving_cases.run("check", model, cases)
    assert status == 1 and "IO>AudioDecodeMP3" in text, text


def test_a_signature_without_case_fails(tmp_path):
    model, cases = saved(Tanh(), tmp_path, ("serving_default", "embed"))
    expect(cases)
    status, text = serving_cases.run("check", model, cases)
    assert status == 1 and "FAIL signature embed has no case" in text


def test_an_input_without_value_or_default_fails(tmp_path):
    model, cases = saved(Tanh(), tmp_path)
    serving_cases.write_case(cases / "none", "serving_default", {}, {})
    status, text = serving_cases.run("check", model, cases)
    assert status == 1 and "no value and no default for input x" in text


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("serve",),
        ("check", "."),
        ("check", "no_model", "."),
        ("time", ".", ".", "0"),
        ("fuzz", ".", ".", "."),
    ],
)
def test_bad_usage_is_explained(arguments):
    status, text = serving_cases.run(*arguments)
    assert status == 2 and "usage: runner check EXPORT_DIR" in text


def test_bytes_that_numpy_would_cut_are_refused(tmp_path):
    with pytest.raises(ValueError, match="trailing zeros"):
        serving_cases.write_case(
            tmp_path / "case", "embed", {"audio_bytes": np.array([b"a\0"])}, {}
        )


class Decoder(tf.Module):
    """Scores of clips that begin with RIFF: their length and first byte."""

    def scores(self, audio_bytes, valid):
        length = tf.cast(tf.strings.length(audio_bytes), tf.float32)
        scores = tf.stack([length / 97.0, 1 / (1 + length)], axis=1)
        return tf.where(valid[:, None], scores, 0)

    def values(self, audio_bytes):
        valid = tf.strings.substr(audio_bytes, 0, 4) == "RIFF"
        return {
            "scores": self.scores(audio_bytes, valid),
            "valid": valid,
            "error": tf.where(valid, 0, 5),
        }


class Neighbours(Decoder):
    def scores(self, audio_bytes, valid):
        scores = super().scores(audio_bytes, valid)
        return scores + 1e-3 * tf.reduce_max(scores, axis=0)


class Credulous(Decoder):
    def values(self, audio_bytes):
        outputs = super().values(audio_bytes)
        return {**outputs, "valid": tf.ones_like(outputs["valid"])}


class NanOfBad(Decoder):
    def scores(self, audio_bytes, valid):
        scores = super().scores(audio_bytes, valid)
        return tf.where(valid[:, None], scores, np.nan)


class Asserts(Decoder):
    def values(self, audio_bytes):
        outputs = super().values(audio_bytes)
        tf.debugging.Assert(tf.reduce_all(outputs["valid"]), ["bad clip"])
        return outputs


class Endless(Decoder):
    def scores(self, audio_bytes, valid):
        scores = super().scores(audio_bytes, valid)
        bad = tf.reduce_any(~valid)
        _, scores = tf.while_loop(
            lambda step, _: bad & (step >= 0),
            lambda step, scores: ((step + 1) % 7, scores),
            (0, scores),
        )
        return scores


@pytest.fixture
def clips(tmp_path):
    """A good file, and a folder with two good ones, a bad and an empty one."""
    (tmp_path / "clips").mkdir()
    for name, content in {
        "a.wav": b"RIFF\0\xff",
        "b.wav": b"RIFX" * 31,
        "c d.wav": b"",
        "e.wav": b"RIFF" * 53,
    }.items():
        (tmp_path / "clips" / name).write_bytes(content)
    (tmp_path / "good.wav").write_bytes(b"RIFF" * 11)
    return tmp_path / "good.wav", tmp_path / "clips"


def saved_decoder(module, folder):
    spec = tf.TensorSpec((None,), tf.string, name="audio_bytes")
    function = tf.function(module.values, input_signature=[spec])
    tf.saved_model.save(
        module, str(folder / "model"), {"serving_audio_bytes": function}
    )
    return folder / "model"


def test_a_decoder_without_a_fault_passes_the_fuzz(clips, tmp_path):
    model = saved_decoder(Decoder(), tmp_path)
    status, text = serving_cases.run("fuzz", model, *clips)
    assert status == 0, text
    assert "4 files, 0 violations" in text
    assert "error 0: 2 files" in text and "error 5: 2 files" in text
    assert float(re.search(r"max CPU seconds: (\S+)", text)[1]) >= 0
    assert int(re.search(r"peak memory: (\d+) kB", text)[1]) > 1e4


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Neighbours, "FAIL e.wav: good row 0: scores differ by"),
        (Credulous, "FAIL c d.wav: its row: valid 1, error 5"),
        (NanOfBad, "FAIL b.wav: its row: score -?nan"),
        (Asserts, "FAIL c d.wav: Run: .*bad clip"),
        (Tanh, "FAIL no signature serving_audio_bytes"),
    ],
)
def test_a_faulty_decoder_fails_the_fuzz(module, message, clips, tmp_path):
    if issubclass(module, Decoder):
        model = saved_decoder(module(), tmp_path)
    else:
        model, _ = saved(module(), tmp_path)
    status, text = serving_cases.run("fuzz", model, *clips)
    assert status == 1 and re.search(message, text), text


def test_the_watchdog_names_the_file_that_never_ends(clips, tmp_path):
    model = saved_decoder(Endless(), tmp_path)
    status, text = serving_cases.run("fuzz", model, *clips, 1)
    assert status == 3 and "TOO SLOW b.wav" in text, text
