"""The static gate: each planted fault is named, and good exports pass."""

import runpy
import shutil
import sys

import keras
import numpy as np
import pytest
import serving_cases

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import tensorflow as tf
from serving_cases import classifier

from audio_tf import export as audio_export
from audio_tf.export import gate, signatures

WAVEFORM = tf.TensorSpec((None, None), tf.float32, name="waveform")
AUDIO_BYTES = tf.TensorSpec((None,), tf.string, name="audio_bytes")


class Scorer(tf.Module):
    """Mean of each clip times 5 weights, scored in a function of its own."""

    def __init__(self):
        super().__init__()
        values = np.linspace(-1, 1, 5, dtype="float32")
        self.weights = tf.Variable(values, name="weights")
        self.copy = None

    def scores(self, waveform):
        means = tf.reduce_mean(waveform, axis=1, keepdims=True)
        return {"scores": tf.tanh(means) * self.weights}

    def decoded(self, audio_bytes):
        length = tf.cast(tf.strings.length(audio_bytes), tf.float32)
        return self.scores(length[:, None])


def saved(folder, module=None, specs=None, **functions):
    """A SavedModel of functions, the Scorer's waveform signature if none."""
    module = module or Scorer()
    functions = functions or {"serving_default": module.scores}
    tf.saved_model.save(
        module,
        str(folder / "model"),
        {
            name: tf.function(function, input_signature=specs or [WAVEFORM])
            for name, function in functions.items()
        },
    )
    return folder / "model"


def only_problem(folder):
    """The single problem, so that no fault is named for another's sake."""
    texts = gate.problems(folder)
    assert len(texts) == 1, texts
    with pytest.raises(ValueError, match="TensorFlow Serving") as raised:
        gate.check(folder)
    assert texts[0] in str(raised.value)
    return texts[0]


def test_an_export_has_no_problems(shared_export):
    exported = shared_export.folder
    assert gate.problems(exported) == []
    assert gate.problems(exported.parent) == []
    gate.check(exported)


@pytest.mark.costly
@pytest.mark.parametrize(
    "kwargs",
    [
        {"attention": "crafted_synthesizer"},
        {"attention": "sign_alsh", "multiscale": "block"},
    ],
)
def test_trained_exports_have_no_problems(kwargs, scores_alone, tmp_path):
    """An optimizer, equal tables in each layer, hashing without dice."""
    model = classifier(num_layers=2, dtype="mixed_bfloat16", **kwargs)
    model(np.zeros((2, 30), "float32"))
    model.compile("adam", "categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)
    gate.check(audio_export.export(model, tmp_path))


def test_a_small_module_has_no_problems(tmp_path):
    module = Scorer()
    assert gate.problems(saved(tmp_path, module)) == []
    bytes_model = saved(
        tmp_path / "bytes",
        module,
        [AUDIO_BYTES],
        serving_audio_bytes=module.decoded,
    )
    assert gate.problems(bytes_model) == []


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no SavedModel"):
        gate.problems(tmp_path)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff")
    assert "not a SavedModel" in only_problem(tmp_path)


def test_a_model_without_signatures_is_named(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path))
    assert only_problem(tmp_path) == "no signature"


@pytest.mark.parametrize("call", [tf.numpy_function, tf.py_function])
def test_python_calls(call, tmp_path):
    module = Scorer()

    def scores(waveform):
        y = call(np.tanh, [waveform], tf.float32)
        return module.scores(tf.reshape(y, tf.shape(waveform)))

    text = only_problem(saved(tmp_path, module, serving_default=scores))
    assert "PyFunc calls Python" in text and "(serving_default)" in text


def test_an_unknown_op(tmp_path):
    model = saved(tmp_path)
    serving_cases.rename_op(model, "Tanh", "IO>AudioDecodeMP3")
    text = only_problem(model)
    assert text.startswith("IO>AudioDecodeMP3 is not of core TensorFlow")


def test_an_op_of_a_library_that_is_imported(tmp_path):
    """KerasHub imports tensorflow_text; a server has none of its ops."""
    text = pytest.importorskip("tensorflow_text")

    def scores(audio_bytes):
        tokens = text.WhitespaceTokenizer().tokenize(audio_bytes)
        return {"scores": tf.cast(tokens.row_lengths(), tf.float32)}

    model = saved(tmp_path, tf.Module(), [AUDIO_BYTES], words=scores)
    assert "is not of core TensorFlow" in only_problem(model)


def test_xla_of_a_function(tmp_path):
    module = Scorer()
    inner = tf.function(module.scores, jit_compile=True)
    model = saved(
        tmp_path, module, serving_default=lambda waveform: inner(waveform)
    )
    texts = gate.problems(model)
    assert len(texts) == 2
    assert "PartitionedCall is compiled by XLA" in texts[0]
    assert texts[1].startswith("function __inference_")


def test_an_xla_op(tmp_path):
    model = saved(tmp_path)
    serving_cases.rename_op(model, "Tanh", "XlaOptimizationBarrier")
    assert "is compiled by XLA" in only_problem(model)


@pytest.mark.parametrize(
    "noise",
    [
        lambda shape: tf.random.normal(shape),
        lambda shape: tf.random.stateless_uniform(shape, seed=(3, 7)),
        lambda shape: keras.random.dropout(tf.ones(shape), 0.5, seed=3),
        lambda shape: tf.random.shuffle(tf.ones(shape)),
    ],
)
def test_random_numbers(noise, tmp_path):
    module = Scorer()

    def scores(waveform):
        return module.scores(waveform + noise(tf.shape(waveform)))

    model = saved(tmp_path, module, serving_default=scores)
    texts = gate.problems(model)
    assert texts and all("draws random numbers" in text for text in texts)


def test_every_seeded_op_is_random():
    """Those with an attribute `seed` are told by it, the rest by name."""
    for name in gate.CORE:
        parameters = getattr(tf.raw_ops, name).__signature__.parameters
        if {"seed", "rng_seed", "alg"} & set(parameters):
            assert "seed" in parameters or gate.RANDOM.fullmatch(name), name
    assert not any(map(gate.RANDOM.fullmatch, ("Const", "While", "RFFT")))


@pytest.mark.costly
def test_dropout_that_is_left_on(tmp_path):
    model = classifier(dropout=0.5)
    signatures.write(
        {
            "serving_default": (
                lambda waveform: {"scores": model(waveform, training=True)},
                [WAVEFORM],
            )
        },
        model.variables,
        tmp_path,
    )
    texts = gate.problems(tmp_path)
    assert texts and all("draws random numbers" in text for text in texts)


def test_files_that_are_read(tmp_path):
    module = Scorer()

    def scores(audio_bytes):
        return module.decoded(tf.map_fn(tf.io.read_file, audio_bytes))

    model = saved(tmp_path, module, [AUDIO_BYTES], serving_default=scores)
    assert only_problem(model).startswith("ReadFile reads or writes files")


def test_checkpoints_that_a_signature_writes(tmp_path):
    module = Scorer()

    def scores(waveform):
        tf.raw_ops.SaveV2(
            prefix="x",
            tensor_names=["w"],
            shape_and_slices=[""],
            tensors=[module.weights],
        )
        return module.scores(waveform)

    model = saved(tmp_path, module, serving_default=scores)
    assert only_problem(model).startswith("SaveV2 reads or writes files")


@pytest.mark.costly
def test_weights_written_twice_by_keras(tmp_path):
    classifier().export(
        str(tmp_path),
        verbose=False,
        input_signature=[keras.InputSpec("float32", (None, None), name="x")],
    )
    texts = gate.problems(tmp_path)
    assert any("variables that no signature uses" in text for text in texts)
    assert any("bytes are stored, but only" in text for text in texts)


def test_a_variable_that_no_signature_uses(tmp_path):
    module = Scorer()
    module.optimizer = tf.Variable(tf.zeros(7), name="momentum")
    texts = gate.problems(saved(tmp_path, module))
    assert len(texts) == 2
    assert "1 variables that no signature uses: momentum" in texts[0]
    assert "2 tensors of 48 bytes are stored, but only 1 of 20" in texts[1]


def test_a_copy_of_the_weights_for_each_signature(tmp_path):
    module, other = Scorer(), Scorer()
    module.other = other
    model = saved(
        tmp_path, module, serving_default=module.scores, embed=other.scores
    )
    text = only_problem(model)
    assert "signatures use copies of weights, 20 of 40 bytes" in text


def test_weights_that_are_missing(tmp_path):
    model = saved(tmp_path)
    shutil.rmtree(model / "variables")
    assert only_problem(model) == "variables.index is missing"


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((3, None), "input waveform: fixed batch"),
        ((None, 131), "input waveform: fixed length"),
    ],
)
def test_a_fixed_waveform(shape, text, tmp_path):
    spec = tf.TensorSpec(shape, tf.float32, name="waveform")
    texts = gate.problems(saved(tmp_path, None, [spec]))
    assert any(text in each for each in texts)
    assert len(texts) == (2 if shape[0] else 1)


def test_a_state_of_fixed_batch(tmp_path):
    state = tf.TensorSpec((1, 5), tf.float32, name="state")

    def stream(waveform, state):
        return {"scores": waveform + tf.reduce_sum(state)}

    model = saved(tmp_path, tf.Module(), [WAVEFORM, state], stream=stream)
    assert "stream, input state: fixed batch, (1, 5)" in only_problem(model)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (lambda x: tf.reduce_mean(x), "output y: a scalar"),
        (lambda x: x[:1] * tf.ones((3, 1)), "output y: fixed batch"),
        (lambda x: tf.reshape(x, tf.cast(x[0], tf.int32)), "output y: unknown"),
    ],
)
def test_an_output_without_batch(output, text, tmp_path):
    def scores(waveform):
        return {"y": output(waveform)}

    model = saved(tmp_path, tf.Module(), serving_default=scores)
    assert text in only_problem(model)


def test_scalar_inputs_are_allowed(tmp_path):
    gain = tf.TensorSpec((), tf.float32, name="gain")
    model = saved(
        tmp_path,
        tf.Module(),
        [WAVEFORM, gain],
        serving_default=lambda waveform, gain: {"y": waveform * gain},
    )
    assert gate.problems(model) == []


def test_a_string_input_of_another_name(tmp_path):
    spec = tf.TensorSpec((None,), tf.string, name="audio")
    module = Scorer()
    model = saved(
        tmp_path, module, [spec], serve=lambda audio: module.decoded(audio)
    )
    assert "does not end in _bytes" in only_problem(model)


@pytest.mark.parametrize("op", ["Assert", "CheckNumerics"])
def test_what_fails_the_batch_of_a_bad_clip(op, tmp_path):
    module = Scorer()

    def decoded(audio_bytes):
        length = tf.strings.length(audio_bytes)
        if op == "Assert":
            tf.debugging.Assert(tf.reduce_all(length > 43), [length])
            return module.decoded(audio_bytes)
        scores = module.decoded(audio_bytes)["scores"]
        return {"scores": tf.debugging.check_numerics(scores, "bad")}

    for name in ("serving_audio_bytes", "trusted_bytes"):
        model = saved(tmp_path / name, module, [AUDIO_BYTES], **{name: decoded})
        if name == "trusted_bytes":
            assert gate.problems(model) == []
        else:
            text = only_problem(model)
            assert text.startswith(f"{op} fails the whole batch")


def test_the_command_prints_problems(
    shared_export, tmp_path, capsys, monkeypatch
):
    spec = tf.TensorSpec((3, None), tf.float32, name="waveform")
    model = str(saved(tmp_path, None, [spec]))
    monkeypatch.setattr(sys, "argv", ["gate", model])
    # As `python -m audio_tf.export.gate` does.
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(gate.__file__, run_name="__main__")
    assert ended.value.code == 1
    assert capsys.readouterr().out.count("fixed batch, (3,") == 2
    assert gate.main([str(shared_export.folder)]) == 0
    assert capsys.readouterr().out == "no problems\n"
    assert gate.main([]) == gate.main([str(tmp_path)]) == 2
    assert "no SavedModel" in capsys.readouterr().err
