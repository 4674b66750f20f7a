"""Streams score as the whole clip does, however it is cut."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import serving_cases
import tensorflow as tf

from audio_tf import attention
from audio_tf import export as audio_export
from audio_tf.export import streaming
from audio_tf.layers import SpeechFeatures
from audio_tf.models import AudioAlbertBackbone, AudioClassifier, SpeechEncoder

pytestmark = pytest.mark.costly

CAUSAL = [
    name
    for name, mechanism in attention.ATTENTIONS.items()
    if mechanism.supports_causal
]


# One for each way to look back: along the clip, by the place of a frame in
# it, in a table, and a few frames.
KINDS_OF_GRAPH = [
    "full",
    "sparse_strided",
    "random_synthesizer",
    "local_dense_synthesizer",
]


def classifier(**kwargs):
    return serving_cases.classifier(**{"num_layers": 2, **kwargs})


def in_graph(model):
    """A step of a stream, as an export has it."""
    function, specs = streaming.endpoint(model)
    return tf.function(function, input_signature=specs, autograph=False)


def streamed(step, waveform, cuts):
    """Scores of a stream that comes in pieces, one array for each."""
    state, scores = tf.zeros((1, 0)), []
    pieces = np.split(waveform, cuts, axis=1)
    for number, piece in enumerate(pieces, start=1):
        last = tf.constant([number == len(pieces)])
        outputs = step(tf.constant(piece), last, state)
        state = outputs["state"]
        scores.append(outputs["scores"].numpy())
    return scores


def assert_streams(mechanism, make_step, rng):
    # Enough heads for each of the hand-crafted patterns.
    sizes = {"num_heads": 8, "hidden_dim": 16}
    model = classifier(attention=mechanism, made_for_frames=41, **sizes)
    waveform = rng.standard_normal((2, 401)).astype("float32")
    offline = model.score_frames(model.backbone(waveform)["sequence_output"])
    pieces = streamed(make_step(model), waveform, [3, 3, 60, 61, 200, 333])
    # 11 samples make a frame; the last is filled up.
    counts = [piece.shape[1] for piece in pieces]
    assert counts == [0, 0, 5, 0, 13, 12, 7], mechanism
    online = np.concatenate(pieces, axis=1)
    np.testing.assert_allclose(online, offline, atol=1e-5, err_msg=mechanism)


@pytest.mark.long
def test_every_causal_attention_streams(rng):
    """Without a graph, whose lengths are unknown until it is run."""
    for mechanism in CAUSAL:
        assert_streams(mechanism, lambda model: streaming.Stream(model), rng)


def test_a_head_is_never_given_no_frames(monkeypatch):
    """Convolutions of some builds of TensorFlow fail at none."""
    model, given = classifier(), []
    score = model.score_frames

    def noted(frames):
        given.append(frames.shape[1])
        return score(frames)

    monkeypatch.setattr(model, "score_frames", noted)
    waveform = np.ones((2, 15), "float32")
    pieces = streamed(streaming.Stream(model), waveform, [3, 3, 12])
    assert [piece.shape[1] for piece in pieces] == [0, 0, 1, 1]
    assert min(given) > 0


@pytest.mark.parametrize("mechanism", KINDS_OF_GRAPH)
def test_attentions_stream_in_a_graph(mechanism, rng):
    assert_streams(mechanism, in_graph, rng)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", CAUSAL)
def test_every_causal_attention_streams_in_a_graph(mechanism, rng):
    assert_streams(mechanism, in_graph, rng)


@pytest.mark.parametrize(
    "kwargs",
    [
        # So many features reach the largest window of 32 frames.
        {"multiscale": "causal", "hidden_dim": 72},
        {"pool_every": 1},
        {"pool_every": 1, "pool_size": 3, "pool_strides": 2},
        {"pool_every": 1, "pool_size": 3, "pool_strides": 1},
        {
            "num_layers": 3,
            "pool_every": 2,
            "pool_size": 5,
            "pool_kind": "max",
            "multiscale": "causal",
            "multiscale_windows": [3, 11],
        },
    ],
)
def test_pooling_and_averages_stream(kwargs, rng):
    model = classifier(**kwargs)
    step = in_graph(model)
    for samples in (11 * 43, 11 * 40 + 1, 4):
        waveform = rng.standard_normal((2, samples)).astype("float32")
        states = model.backbone(waveform)["sequence_output"]
        cuts = sorted(rng.integers(0, samples + 1, 9))
        online = np.concatenate(streamed(step, waveform, cuts), axis=1)
        np.testing.assert_allclose(
            online,
            model.score_frames(states),
            atol=1e-5,
            err_msg=f"{samples} samples, cut at {cuts}",
        )


def test_a_stream_begins_anew_after_its_last_piece(shared_export, rng):
    served = shared_export.loaded
    stream, waveform = served.stream(), rng.standard_normal((3, 57))
    offline = served.frames(waveform)[0]
    for cut in (57, 20):
        begun = stream(waveform[:, :cut])
        assert begun.shape == (3, cut // 11, 3)
        online = np.concatenate(
            [begun, stream(waveform[:, cut:], last=True)], 1
        )
        np.testing.assert_allclose(online, offline, atol=1e-5)


def test_a_piece_is_whole_and_one_end_is_that_of_all_rows(shared_export):
    """Padding would be heard as silence between the pieces."""
    stream, waveform = shared_export.loaded.stream(), np.zeros((2, 33))
    for wrong in ([5, 33], [33, 0]):
        with pytest.raises(ValueError, match="`lengths` be left out. .* of 33"):
            stream({"waveform": waveform, "lengths": wrong})
    for wrong in (None, 1, [True], [True, False]):
        with pytest.raises(ValueError, match="`last` must be True or False"):
            stream(waveform, last=wrong)
    whole = {"waveform": waveform, "lengths": [33, 33]}
    assert stream(whole, last=np.True_).shape == (2, 3, 3)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"causal": False},
        {"attention": "xbox"},
        {"attention": "gaussian_adaptive"},
        {"multiscale": "block"},
    ],
)
def test_models_that_look_ahead_are_refused(kwargs, tmp_path):
    with pytest.raises(ValueError, match="look"):
        audio_export.export(classifier(**kwargs), tmp_path, stream=True)
    assert list(tmp_path.iterdir()) == []


def test_a_causal_model_of_mel_bands_is_told_why_it_does_not_stream(tmp_path):
    """Its windows overlap: none of it looks ahead."""
    model = AudioClassifier.from_preset(
        "audio_transformer_mel_small",
        labels=["a", "b"],
        causal=True,
        subtract_mean=False,
        num_layers=1,
    )
    assert model.backbone.causal
    with pytest.raises(ValueError, match="samples of each, as mel bands do"):
        audio_export.export(model, tmp_path, stream=True)
    assert list(tmp_path.iterdir()) == []


def test_a_made_up_state_is_refused(rng):
    step = in_graph(classifier(num_layers=1))
    waveform = tf.zeros((1, 30))
    for state in ([3e9, 3e9], [5.0, 7.0, 0.0], [-1.0, 1e9, 2.0, 3.0]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            step(waveform, tf.constant([False]), tf.constant([state]))


def test_a_speech_encoder_is_refused_by_what_looks_ahead(tmp_path):
    """Its features are normalised over the whole clip."""
    encoder = AudioAlbertBackbone(
        num_layers=1, num_heads=1, key_dim=5, hidden_dim=7, feature_dim=80
    )
    backbone = SpeechEncoder(encoder, SpeechFeatures("s3prl", 1100))
    model = AudioClassifier(backbone, labels=list("abc"))
    with pytest.raises(ValueError, match="frames of the waveform.*SpeechEnc"):
        audio_export.export(model, tmp_path, stream=True)
    assert list(tmp_path.iterdir()) == []
