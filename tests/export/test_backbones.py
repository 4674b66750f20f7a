"""The contract of exports, for every backbone that takes waveforms."""

import keras
import numpy as np
import pytest
from backbone_cases import (
    ALIKE,
    ATTENDING,
    CONVOLUTIONAL,
    LORA,
    RATE_HZ,
    SMALL,
    SMALLER,
    WAVEFORM,
    each,
)

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import serving_cases
import tensorflow as tf

from audio_tf import analysis, models
from audio_tf.audio.wav import WavError
from audio_tf.export import copies, signatures, streaming

pytestmark = pytest.mark.costly

CHUNK_S = 0.25
BEYOND = 2**31 - 1

# The graphs of WavLM are those of other backbones, but for convolutions.
EXPORTED = each(WAVEFORM, slow=[*ALIKE, "wavlm"])
every_backbone = pytest.mark.parametrize("name", EXPORTED)
with_attention = pytest.mark.parametrize(
    "name",
    each([n for n in WAVEFORM if n in ATTENDING], slow=[*ALIKE, "wavlm"]),
)


def classifier(backbone, chunk_s=None):
    return models.AudioClassifier(backbone, labels=list("abc"), chunk_s=chunk_s)


@pytest.fixture(scope="module", params=EXPORTED)
def exported(request, tmp_path_factory):
    """An export that cuts clips into chunks."""
    model = classifier(SMALL[request.param](), CHUNK_S)
    return serving_cases.Export(model, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def by_bytes(exported):
    """Pairs of a model and its scorer of bytes, by chunks and whole.

    The signatures of a waveform do not depend on chunks, and the other is the
    graph that an export writes.
    """
    whole = classifier(exported.model.backbone)
    function, specs = signatures.endpoints(whole, 600.0)["serving_audio_bytes"]
    graph = tf.function(function, input_signature=specs, autograph=False)
    return {
        CHUNK_S: (exported.model, exported.loaded.score_bytes),
        None: (whole, lambda files: graph(tf.constant(files))),
    }


def noise(rng, *shape):
    return 0.3 * rng.standard_normal(shape).astype("float32")


def test_signatures_equal_the_model(exported, rng):
    model, served = exported.model, exported.loaded
    x, clip = noise(rng, 4, 283), [283, 97, 1, 283]
    inputs = {"waveform": x, "lengths": np.array(clip, "int32")}
    # Beyond the clip, and -1: all of it.
    sent = {"waveform": x, "lengths": [BEYOND, 97, 1, -1]}
    scores = model(inputs)
    np.testing.assert_allclose(served(sent), scores, atol=1e-5)
    assert np.ptp(scores, axis=0).max() > 1e-3

    features = model.backbone(inputs)
    states = features["sequence_output"].numpy()
    mask = features["frame_mask"].numpy()
    found, found_mask = served.frames(sent)
    np.testing.assert_array_equal(found_mask, mask)
    np.testing.assert_allclose(found, model.score_frames(states), atol=1e-5)
    pooled = model.pooler(states, mask=mask)
    np.testing.assert_allclose(served.embed(sent), pooled, atol=1e-5)


@pytest.mark.parametrize("chunk_s", [CHUNK_S, None])
def test_bytes_equal_the_model_and_a_loud_clip_is_left_out(
    chunk_s, by_bytes, rng
):
    """A finite float of 1e30 overflows in the model, not in its batch."""
    model, score_bytes = by_bytes[chunk_s]
    clips = [noise(rng, 97), noise(rng, 275), np.full(300, 1e30, "float32")]
    files = [serving_cases.wav_file(clip, RATE_HZ) for clip in clips]
    outputs = score_bytes([files[0], files[2], files[1]])
    np.testing.assert_array_equal(outputs["valid"], [True, False, True])
    np.testing.assert_array_equal(outputs["error"], [0, WavError.OVERFLOW, 0])
    assert not outputs["scores"].numpy()[1].any()
    for row, clip in ((0, clips[0]), (2, clips[1])):
        if chunk_s is not None:
            # A shorter clip is repeated up to a chunk.
            clip = np.resize(clip, round(chunk_s * RATE_HZ))
        expected = model(clip[None])[0]
        np.testing.assert_allclose(outputs["scores"][row], expected, atol=1e-5)


@pytest.mark.parametrize(
    "name, options",
    [(name, {}) for name in (CONVOLUTIONAL[0], "wavlm")]
    + [
        (name, {"causal": causal})
        for name in WAVEFORM
        if name in ATTENDING and name != "wavlm"
        for causal in (None, False)
    ],
    ids=str,
)
def test_it_streams_if_it_is_causal(name, options, rng):
    model = classifier(SMALL[name](**options))
    backbone = model.backbone
    assert backbone.streams == backbone.causal
    if not backbone.streams:
        with pytest.raises(ValueError, match="looks? ahead.*causal=False"):
            streaming.endpoint(model)
        return
    step, _ = streaming.endpoint(model)
    waveform = noise(rng, 2, 157)
    expected = model.score_frames(backbone(waveform)["sequence_output"])
    state, found = tf.zeros((1, 0)), []
    for begin, end in ((0, 5), (5, 80), (80, 157)):
        piece, last = tf.constant(waveform[:, begin:end]), [end == 157]
        outputs = step(piece, tf.constant(last), state)
        state = outputs["state"]
        found.append(outputs["scores"])
    np.testing.assert_allclose(np.concatenate(found, 1), expected, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    each(WAVEFORM, slow=[n for n in WAVEFORM if n != "audio_transformer"]),
)
def test_lora_and_int8_are_exported_as_they_score(
    name, scores_alone, rng, tmp_path
):
    """Copies for folding and quantization keep what LoRA has learned."""
    options = SMALLER[name]
    if name in ATTENDING:
        foldable = {"attention": "random_synthesizer", "num_heads": 3}
        options = {**options, **foldable}
    backbone = SMALL[name](**options)
    model = classifier(backbone)
    x = noise(rng, 2, 131)
    before = model(x)
    model.backbone.enable_lora(2, LORA[name])
    for weight in model.backbone.trainable_weights:
        if "lora" in weight.path:
            # Many convolutions in a row must not end in scores of 0 and 1.
            weight.assign(0.3 * rng.standard_normal(weight.shape))
    expected = model(x)
    assert np.abs(expected - before).max() > 1e-3
    served = serving_cases.Export(model, tmp_path / "lora").loaded
    np.testing.assert_allclose(served(x), expected, atol=1e-5)

    smaller = copies.quantized(model)
    scores = smaller(x)
    assert 1e-7 < np.abs(scores - expected).max() < 0.1
    served = serving_cases.Export(smaller, tmp_path / "int8").loaded
    np.testing.assert_allclose(served(x), scores, atol=1e-5)
    np.testing.assert_array_equal(model(x), expected)


@with_attention
def test_maps_are_one_of_each_block(name, rng):
    model = classifier(SMALL[name]())
    found = analysis.attention_maps(model, noise(rng, 2, 157))
    assert len(found) == len(model.backbone.blocks)
    for weights in found:
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)
