"""A Gaussian adaptive transformer as it is exported."""

import keras
import numpy as np
import pytest
from backbone_cases import speech_encoder, transformer, wavlm

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import serving_cases
import tensorflow as tf

from audio_tf import export as audio_export
from audio_tf import models
from audio_tf.export import copies, gate, signatures, streaming

pytestmark = pytest.mark.costly

BEYOND = 2**31 - 1


@pytest.fixture(scope="module")
def model():
    made = models.GaussianAdaptiveTransformer(
        speech_encoder(num_layers=3),
        labels=list("abc"),
        module="gqgaam",
        attention_kwargs={"num_query_heads": 4},
        filters=2,
        chunk_s=0.25,
    )
    rng = np.random.default_rng(4)
    for weight in made.decoder.weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape) + 0.1)
    return made


def inputs(rng):
    waveform = 0.3 * rng.standard_normal((3, 283)).astype("float32")
    return {
        "waveform": waveform,
        "lengths": np.array([283, 97, 200], "int32"),
    }


def test_signatures_equal_the_model(model, rng):
    x = inputs(rng)
    sent = tf.constant(x["waveform"]), tf.constant([BEYOND, 97, 200])
    functions = {
        name: function
        for name, (function, _) in signatures.endpoints(model, 1.0).items()
    }
    scores = functions["serving_default"](*sent)["scores"]
    np.testing.assert_allclose(scores, model(x), atol=1e-5)
    pooled = functions["embed"](*sent)["embedding"]
    np.testing.assert_allclose(
        np.reshape(pooled, (3, 3, 12)), model.embed_layers(x), atol=1e-5
    )
    found = functions["frames"](*sent)
    # Each frame as a clip of that frame alone.
    frames = model.frame_model(x)["sequence_output"].numpy()
    one = model.decoder(frames[1, 4].reshape(1, 3, 12))[0]
    np.testing.assert_allclose(found["scores"][1, 4], one, atol=1e-5)


def test_weights_of_training_alone_stay_away(rng, tmp_path):
    """A block that is not decoded, and what stands for masked frames."""
    encoder = wavlm(mask_rate=0.2)
    small = models.GaussianAdaptiveTransformer(
        encoder, labels=list("abc"), layers=[0, 1], filters=2
    )
    plain = models.AudioClassifier(encoder, labels=list("abc"))
    (embedding,) = encoder.masking[0].weights
    # The second block has the table of positions of the first.
    shared = set(map(id, encoder.blocks[0].weights))
    last = [w for w in encoder.blocks[1].weights if id(w) not in shared]
    unread = {small: [embedding, *last], plain: [embedding]}
    x = inputs(rng)
    for number, (model, left) in enumerate(unread.items()):
        folder = tmp_path / str(number)
        signatures.write_scores(model, folder)
        assert gate.problems(folder) == []
        stored = tf.train.list_variables(str(folder / "variables/variables"))
        stored = [shape for name, shape in stored if "OBJECT" not in name]
        assert len(stored) == len(model.weights) - len(left)
        serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
        sent = {name: tf.constant(value) for name, value in x.items()}
        np.testing.assert_allclose(serve(**sent)["scores"], model(x), atol=1e-5)


@pytest.mark.parametrize(
    "layers, kwargs",
    # A normalisation behind the last block belongs to the last state.
    [(None, {"norm_first": True}), ([0, 1], {}), ([2], {})],
)
def test_a_stream_scores_the_layers_that_are_decoded(layers, kwargs, rng):
    made = models.GaussianAdaptiveTransformer(
        transformer(causal=True, **kwargs),
        labels=list("abc"),
        layers=layers,
        filters=2,
    )
    for weight in made.decoder.weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape) + 0.1)
    # 11 samples make a frame; the last is filled up.
    waveform = rng.standard_normal((2, 125)).astype("float32")
    frames = made.frame_model(waveform)["sequence_output"]
    function, specs = streaming.endpoint(made)
    step = tf.function(function, input_signature=specs, autograph=False)
    state, scores = tf.zeros((1, 0)), []
    for number, piece in enumerate(np.split(waveform, [3, 60, 61], axis=1)):
        found = step(tf.constant(piece), tf.constant([number == 3]), state)
        state = found["state"]
        scores.append(found["scores"])
    np.testing.assert_allclose(
        np.concatenate(scores, axis=1), made.score_frames(frames), atol=1e-5
    )


@pytest.mark.parametrize(
    "layers, called", [([0], 0), ([0, 1], 1), ([2], 2), (None, 3)]
)
def test_no_layer_above_those_that_are_decoded_is_streamed(
    layers, called, rng, monkeypatch
):
    made = models.GaussianAdaptiveTransformer(
        transformer(causal=True, num_layers=3, norm_first=True),
        labels=list("abc"),
        layers=layers,
        filters=2,
    )
    calls = []
    kind = type(made.backbone.blocks[0])
    compute = kind.stream_piece

    def counted(self, seen, count, last):
        calls.append(self.name)
        return compute(self, seen, count, last)

    monkeypatch.setattr(kind, "stream_piece", counted)
    waveform = rng.standard_normal((2, 44)).astype("float32")
    step = streaming.Stream(made)
    outputs = step(
        tf.constant(waveform), tf.constant([False]), tf.zeros((1, 0))
    )
    assert calls == [block.name for block in made.backbone.blocks[:called]]
    # Nor do their past frames, four of twelve numbers each, grow the state.
    states = streaming.COUNTS + called * 4 * 12
    assert outputs["state"].shape[1] == max(states, 4)


def test_the_stream_of_a_lower_layer_is_exported(rng, tmp_path):
    """The block above it has weights that no signature uses."""
    small = models.GaussianAdaptiveTransformer(
        transformer(causal=True), labels=list("abc"), layers=[1], filters=2
    )
    audio_export.export(small, tmp_path / "live", stream=True)
    served = audio_export.ExportedClassifier(tmp_path / "live/1")
    waveform = rng.standard_normal((1, 44)).astype("float32")
    frames = small.frame_model(waveform)["sequence_output"]
    np.testing.assert_allclose(
        served.stream()(waveform, last=True),
        small.score_frames(frames),
        atol=1e-5,
    )


def test_a_stream_of_the_first_frames_alone_knows_their_places(rng):
    """No layer keeps the frames before, which have positions all the same."""
    made = models.GaussianAdaptiveTransformer(
        transformer(causal=True), labels=list("abc"), layers=[0], filters=2
    )
    waveform = rng.standard_normal((2, 11 * 43)).astype("float32")
    frames = made.frame_model(waveform)["sequence_output"]
    step, state, scores = streaming.Stream(made), tf.zeros((1, 0)), []
    for piece in np.split(waveform, [5, 23, 300], axis=1):
        outputs = step(tf.constant(piece), tf.constant([False]), state)
        state = outputs["state"]
        scores.append(outputs["scores"])
    np.testing.assert_allclose(
        np.concatenate(scores, 1), made.score_frames(frames), atol=1e-5
    )


@pytest.mark.slow
def test_labels_over_time_and_embeddings(model, rng):
    audio = 0.3 * rng.standard_normal(500).astype("float32")
    (clip,) = model.embed([(audio, 1_100)])
    # Chunks of 275 samples; the last one ends with the clip.
    chunks = np.stack([audio[:275], audio[225:]])
    expected = model.embed_layers(chunks).mean(axis=0)
    np.testing.assert_allclose(
        clip["embedding"].reshape(3, 12), expected, atol=1e-4
    )
    timeline = model.timeline((audio, 1_100), top=1)["timeline"]
    assert timeline[-1]["end_s"] == pytest.approx(500 / 1_100)


@pytest.mark.slow
def test_it_is_exported_quantized_and_read_back(model, rng, tmp_path):
    x = inputs(rng)
    exported = serving_cases.Export(model, tmp_path / "float")
    np.testing.assert_allclose(exported.loaded(x), model(x), atol=1e-5)
    small = copies.quantized(model)
    assert np.abs(np.asarray(small(x)) - np.asarray(model(x))).max() < 0.1
    small.save_to_preset(str(tmp_path / "preset"))
    again = models.AudioClassifier.from_preset(str(tmp_path / "preset"))
    np.testing.assert_allclose(again(x), small(x), atol=1e-5)
