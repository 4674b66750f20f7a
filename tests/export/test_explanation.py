"""The signature `explain` against `AudioClassifier.explain`, in NumPy."""

import json

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import serving_cases
import tensorflow as tf
import tiny
from backbone_cases import SMALL, WAVEFORM
from serving_cases import assert_scored, classifier

from audio_tf import attention, cli
from audio_tf.export import (
    classifiers,
    copies,
    explanation,
    signatures,
    verify,
    writing,
)
from audio_tf.models import AudioClassifier
from serving import served as stand_in

pytestmark = pytest.mark.costly

RATE_HZ = 1100
KEYS = ("weights", "label", "score", "silence_score", "valid")


def explainer(model):
    """The signature as a graph that is not written."""
    clips, _ = signatures.endpoints(model, 3.0)["serving_audio_bytes"]
    function, specs = explanation.endpoint(clips)
    return tf.function(function, input_signature=specs, autograph=False)


def sound(rng, samples):
    """A tone that fades, in noise."""
    time = np.arange(samples) / RATE_HZ
    tone = np.exp(-4 * time) * np.sin(2 * np.pi * 140 * time)
    return (0.4 * tone + 0.1 * rng.standard_normal(samples)).astype("float32")


@pytest.mark.parametrize(
    "chunk_s, hop_s, silence_db",
    [(None, None, None), (0.25, None, -20.0), (0.25, 0.2, -20.0)],
)
def test_explanations_of_a_padded_batch_equal_the_models(
    chunk_s, hop_s, silence_db, rng, monkeypatch
):
    """Clips of three chunks, one of them silent, of one, and of one sample."""
    # Neither steps nor samples are multiples.
    monkeypatch.setattr(explanation, "MAX_ROWS", 11)
    monkeypatch.setattr(explanation, "MAX_SAMPLES", 2**11)
    keras.utils.set_random_seed(3)
    model = tiny.eager(
        classifier(chunk_s, silence_db, chunk_hop_s=hop_s, num_heads=1)
    )
    clips = [sound(rng, samples) for samples in (701, 275, 97, 1)]
    clips[0][:300] *= 1e-3
    case = serving_cases.explain_case(model, clips, [-1, 2, 0, 1])
    assert_scored({"explain": case}, {"explain": explainer(model)})
    weights = case[1]["weights"]
    assert np.abs(weights).max(axis=(1, 2)).min() > 1e-3
    assert not weights[3, 1:].any()
    if silence_db is not None and hop_s is None:
        assert not weights[0, :2].any()


@pytest.fixture(scope="module")
def served(shared_export):
    return shared_export.loaded


def test_lengths_and_label_may_be_left_out(served, shared_export, rng):
    clip, model = sound(rng, 301), shared_export.model
    _, expected = serving_cases.explain_case(model, [clip], [-1])
    found = served.explain(np.stack([clip, clip]))
    for key in KEYS:
        for row in found[key].numpy():
            np.testing.assert_allclose(row, expected[key][0], atol=1e-5)


def test_a_server_answers_in_json(shared_export, rng):
    """The request of docs/serve.md, to the stand-in, by columns and rows."""
    clips = [sound(rng, 130), sound(rng, 301)]
    inputs, expected = serving_cases.explain_case(
        shared_export.model, clips, [-1, 2]
    )
    inputs = {key: value.tolist() for key, value in inputs.items()}
    rows = [
        dict(zip(inputs, row, strict=True))
        for row in zip(*inputs.values(), strict=True)
    ]
    server = stand_in.Served(shared_export.folder)

    def ask(**request):
        request = json.dumps({"signature_name": "explain", **request})
        return json.loads(json.dumps(server.answer(json.loads(request))))

    columns = ask(inputs=inputs)["outputs"]
    instances = ask(instances=rows)["predictions"]
    assert columns.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(columns[key], value, atol=1e-5)
        found = [row[key] for row in instances]
        np.testing.assert_allclose(found, value, atol=1e-5)


def test_clips_that_cannot_be_explained_leave_the_others_alone(served, rng):
    """Of no samples, of a label that is not there, and of too loud ones."""
    x = np.stack([sound(rng, 130) for _ in range(4)])
    x[3] = 1e30
    lengths = np.array([0, 130, -1, 130], "int32")
    label = tf.constant([0, 3, 1, 0])
    found = served.run(
        "explain", {"waveform": x, "lengths": lengths}, label=label
    )
    found = {key: found[key].numpy() for key in KEYS}
    assert found["valid"].tolist() == [False, False, True, False]
    assert found["label"].tolist() == [-1, -1, 1, -1]
    alone = served.explain(x[2:3], "rain")
    for key in KEYS:
        assert not found[key][[0, 1, 3]].any() or key == "label"
        np.testing.assert_allclose(found[key][2], alone[key][0], atol=1e-6)
    empty = served.explain(np.zeros((0, 30), "float32"), [])
    assert empty["weights"].shape == (0, 1, 16)


def test_labels_are_named(served, rng):
    x = sound(rng, 130)[None]
    assert served.explain(x, ["siren"])["label"].numpy() == [2]
    with pytest.raises(ValueError, match="did you mean 'siren'"):
        served.explain(x, "sirens")


def test_a_model_without_gradients_is_refused():
    """Hues are of no gradient that TensorFlow knows."""

    class Clips:
        chunk_size, num_classes, sample_rate_hz = 33, 3, RATE_HZ

        def score_chunks(self, waves):
            none = tf.zeros((0,), tf.int64)
            batch = waves.nrows()
            return tf.zeros((batch, 3)), (none, none, tf.zeros((0,)))

        def score(self, waveform, lengths):
            pixels = tf.reshape(waveform, (-1, 11, 1, 3))
            return tf.reduce_mean(tf.image.adjust_hue(pixels, 0.1), (1, 2))

    function, specs = explanation.endpoint(Clips())
    graph = tf.function(function, input_signature=specs, autograph=False)
    with pytest.raises(ValueError, match="`explain` needs gradients.*Hue"):
        graph.get_concrete_function()


@pytest.mark.long
def test_the_report_finds_other_explanations(
    shared_export, served, rng, monkeypatch
):
    model, files = shared_export.model, {"savedmodel": shared_export.folder}
    clips = [sound(rng, n) for n in (301, 97)]
    rows = verify.verify(model, files, clips, rounds=0)
    assert rows[0].explained is None and rows[1].explained <= 1e-5
    assert all(row.passed for row in rows)
    title, _, reference, good = verify.format_rows(rows).splitlines()
    assert "| explain diff | parity |" in title
    assert " |  | equal |" in reference and "e-" in good.split("|")[-3]
    assert "| equal |" in good

    expected = [AudioClassifier.explain(model, (x, RATE_HZ)) for x in clips]
    batch = verify.alone_and_together(clips)[-1]

    def difference(**other):
        answers = iter([expected[0], {**expected[1], **other}])
        monkeypatch.setattr(model, "explain", lambda clip: next(answers))
        return verify.explained(model, served, clips, batch)

    weights = expected[1]["weights"].copy()
    weights[0, 3] += 2e-4
    score = expected[1]["score"] - 3e-4
    found = rows[1].explained = difference(weights=weights)
    assert found == pytest.approx(2e-4, abs=1e-5) and not rows[1].passed
    assert "EXPLAINS OTHERWISE (over 1e-04)" in verify.format_rows(rows)
    assert difference(score=score) == pytest.approx(3e-4, abs=1e-5)
    assert difference(error="its weights are not finite") == np.inf


@pytest.mark.parametrize(
    "dtype, tolerance",
    [("float32", 1e-4), ("mixed_float16", 2e-3), ("mixed_bfloat16", 2e-2)],
)
def test_half_precision_explains_less_precisely(dtype, tolerance):
    assert verify.explain_tolerance(classifier(dtype=dtype)) == tolerance


@pytest.mark.parametrize("asked", [False, True])
def test_the_flag_asks_for_the_signature(asked, monkeypatch, tmp_path):
    given = {}

    def export(model, path, **options):
        given.update(options)
        return path

    monkeypatch.setattr(classifiers, "load_trained", lambda name: classifier())
    monkeypatch.setattr(writing, "export", export)
    arguments = ["export", str(tmp_path), "--model", "none"]
    assert cli.main([*arguments, *["--explain"] * asked]) == 0
    assert given["explain"] is asked


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*WAVEFORM, *attention.ATTENTIONS, "float16", "int8"]
)
def test_every_model_explains(name, rng):
    keras.utils.set_random_seed(3)
    atol = 1e-5
    if name in WAVEFORM:
        model = AudioClassifier(SMALL[name](), labels=list("abc"), chunk_s=0.25)
    elif name == "float16":
        model, atol = classifier(dtype="mixed_float16"), 1e-2
    elif name == "int8":
        model = copies.quantized(classifier())
    else:
        model = classifier(attention=name, made_for_frames=41)
    model = copies.folded(model)
    clips = [sound(rng, 301), sound(rng, 97)]
    inputs, outputs = serving_cases.explain_case(model, clips, [-1, 1])
    found = explainer(model)(**inputs)
    for key, expected in outputs.items():
        np.testing.assert_allclose(found[key], expected, atol=atol)
