"""What an Audio Transformer has beyond the paper: front ends, pre-norm."""

import keras
import numpy as np
import pytest
from backbone_cases import transformer
from keras import ops

from audio_tf import layers, models

MEL = {
    "filterbank": "log_mel",
    "frontend_filters": 6,
    "window_s": 0.03,
    "hop_s": 0.01,
    "stack_size": 2,
    "causal": False,
    "norm_first": True,
}


def mel(**kwargs):
    return transformer(**{**MEL, **kwargs})


def frames_of(model, x, lengths):
    outputs = model({"waveform": x, "lengths": lengths})
    return [
        ops.convert_to_numpy(outputs[name])
        for name in ("sequence_output", "frame_mask")
    ]


def test_padding_of_a_mel_model_holds_anything(rng):
    model = mel()
    x = rng.standard_normal((3, 131)).astype("float32")
    lengths = np.array([131, 59, 3], "int32")
    holding = x.copy()
    for clip, length in zip(holding, lengths, strict=True):
        clip[length:] = np.nan
    frames, mask = frames_of(model, holding, lengths)
    assert mask.sum(axis=1).tolist() == [6, 3, 1]
    for clip, length, found, real in zip(x, lengths, frames, mask, strict=True):
        alone, _ = frames_of(model, clip[None, :length], lengths=None)
        np.testing.assert_allclose(found[real], alone[0], atol=1e-5)


def test_pre_norm_blocks_equal_the_formula(rng):
    """`x + F(LayerNorm(x))` twice, and a LayerNorm behind the last block."""
    block = layers.TransformerBlock(2, 3, (5,), norm_first=True)
    x = rng.standard_normal((2, 7, 6)).astype("float32")
    block.build(x.shape)
    for weight in block.weights:
        weight.assign(weight + 0.1 * rng.standard_normal(weight.shape))

    def normed(x, norm):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        x = (x - mean) / np.sqrt(variance + 1e-5)
        return x * np.asarray(norm.gamma) + np.asarray(norm.beta)

    def dense(x, layer):
        return x @ np.asarray(layer.kernel) + np.asarray(layer.bias)

    attended = block.attention(normed(x, block.attention_norm))
    middle = x + np.asarray(attended)
    inner = normed(middle, block.feed_forward_norm)
    inner = np.maximum(dense(inner, block.feed_forward.hidden[0]), 0.0)
    expected = middle + dense(inner, block.feed_forward.output_dense)
    np.testing.assert_allclose(np.asarray(block(x)), expected, atol=1e-5)

    model = mel()
    frames, _ = frames_of(model, 0.1 * rng.standard_normal((1, 99)), None)
    np.testing.assert_allclose(frames.mean(-1), 0.0, atol=1e-5)
    np.testing.assert_allclose(frames.std(-1), 1.0, atol=1e-3)


def test_each_block_may_have_its_own_attention():
    model = transformer(
        attention=["local_dense_synthesizer", "full"],
        attention_kwargs=[{"context_size": 3}, None],
    )
    names = [block.attention_name for block in model.blocks]
    assert names == ["local_dense_synthesizer", "full"]
    again = type(model).from_config(model.get_config())
    assert again.get_config() == model.get_config()
    assert [block.attention_name for block in again.blocks] == names
    with pytest.raises(ValueError, match="one for each of the 2 blocks"):
        transformer(attention=["full"])


def test_a_mixture_has_its_attentions_in_turn():
    """Each takes of the arguments what is its own."""
    model = transformer(
        num_layers=5,
        attention="hybrid_local",
        attention_kwargs={"context_size": 3, "use_bias": True},
    )
    local, full = "local_dense_synthesizer", "full"
    names = [block.attention_name for block in model.blocks]
    assert names == [local, full, local, full, local]
    assert {block.attention.use_bias for block in model.blocks} == {True}
    assert model.blocks[2].attention.context_size == 3
    # A preset says what the blocks have, whatever the name stands for later.
    config = model.get_config()
    assert config["attention"] == names
    assert type(model).from_config(config).get_config() == config
    with pytest.raises(TypeError, match="did you mean 'context_size'"):
        transformer(
            attention="hybrid_local", attention_kwargs={"context_sise": 3}
        )
    with pytest.raises(ValueError, match="more parts than there are blocks"):
        transformer(num_layers=1, attention="hybrid_local")


def test_places_and_scales_of_averages_and_max_pooling():
    model = transformer(
        num_layers=4,
        multiscale="causal",
        multiscale_windows=(3, 2),
        multiscale_shares=(0.25, 0.5),
        multiscale_after=(0, 3),
        pool_every=2,
        pool_kind="max",
    )
    names = [stage.name for stage in model.stages]
    assert names == [
        *("block_0", "multiscale_0", "block_1", "pooling_1"),
        *("block_2", "block_3", "multiscale_3"),
    ]
    assert isinstance(model.stages[3], layers.TemporalMaxPooling)
    averages = model.stages[-1]
    assert averages.groups(12) == [(3, 1), (3, 3), (6, 2)] and averages.causal
    again = type(model).from_config(model.get_config())
    assert again.get_config() == model.get_config()
    assert [stage.name for stage in again.stages] == names


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"filterbank": "log"}, "did you mean 'log_mel'"),
        ({"hop_s": 0.005}, "`hop_s` of the front end does not apply"),
        ({**MEL, "frontend_gain": 2.0}, "`frontend_gain`|`gain` of the"),
        ({**MEL, "causal": True}, "frontend does"),
        ({"pool_kind": "mean"}, "must be one of \\['average', 'max'\\]"),
        ({"pool_kind": "max"}, "`pool_kind` applies to `pool_every`"),
        ({"pool_size": 4}, "`pool_size` applies to `pool_every`"),
        ({"pool_strides": 2}, "`pool_strides` applies to `pool_every`"),
        ({"pool_every": -1}, "`pool_every` must be a positive integer"),
        ({"pool_every": 0.5}, "`pool_every` must be a positive integer"),
        (
            {"multiscale": "block", "multiscale_after": [0, 0]},
            "blocks from 0 to 1, each once",
        ),
        ({"multiscale_windows": [2]}, "applies to `multiscale`, which is None"),
        # By the names of the model, not of the layer within.
        ({"pool_every": 1, "pool_size": 0}, "`pool_size` must be a positive"),
        (
            {"pool_every": 1, "pool_strides": 0},
            "^`pool_size` and `pool_strides`: `strides` must be a positive",
        ),
        (  # Also where no block has another one behind it.
            {"num_layers": 1, "pool_every": 1, "pool_strides": 3},
            "^`pool_size` and .*else frames are lost.* strides=3",
        ),
        ({"frontend_gain": -1.0}, "`frontend_gain` must be a positive number"),
        (
            {"multiscale": "block", "multiscale_windows": [1]},
            "^`multiscale_windows` and .*: `windows` must be .*of 2 frames",
        ),
        (
            {"multiscale": "causal", "multiscale_shares": [2.0]},
            "^`multiscale_windows` and `multiscale_shares`: `shares` must be",
        ),
        (
            {"multiscale": "block", "multiscale_after": [0, 2]},
            r"blocks from 0 to 1, .* Received: multiscale_after=\[0, 2\]",
        ),
        (
            {"augmentation": [layers.VocalTractPerturbation()]},
            "augments the spectrum",
        ),
    ],
)
def test_what_does_not_fit_is_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        transformer(**kwargs)


@pytest.mark.parametrize("make", [transformer, mel])
def test_what_is_no_augmentation_of_clips_is_refused(make):
    with pytest.raises(ValueError, match="Mixup augments the batch"):
        make(augmentation=[layers.Mixup()])
    with pytest.raises(TypeError, match="must be a list of augmentations"):
        make(augmentation=[3])
    model = make()
    for wrong in (None, layers.RandomGain()):
        config = {**model.get_config(), "augmentation": wrong}
        for call in (
            lambda: make(augmentation=wrong),
            lambda: type(model).from_config(config),
        ):
            with pytest.raises(TypeError, match="must be a list of augmentat"):
                call()
    rate_hz = make().sample_rate_hz
    make(augmentation=[layers.TimeShift(sample_rate_hz=rate_hz)])
    with pytest.raises(ValueError, match=f"{rate_hz} Hz here.*={2 * rate_hz}"):
        make(augmentation=[layers.TimeShift(sample_rate_hz=2 * rate_hz)])


def test_the_papers_front_end_at_its_own_scale():
    """Keras' own Glorot: the largest weight is at most its limit."""
    kernel = transformer(frontend_gain=1.0).frontend.filter_dense.kernel
    limit = np.sqrt(6.0 / sum(kernel.shape))
    largest = np.abs(np.asarray(kernel)).max()
    assert 0.8 * limit < largest <= limit


def test_augmentation_is_of_training_alone_and_is_kept(rng, tmp_path):
    x = rng.standard_normal((2, 131)).astype("float32")
    plain = mel()
    augmentation = [
        layers.SpeedPerturbation((1.5, 1.6), seed=1),
        layers.TimeMasking(num_masks=3, max_frames=9, seed=2),
    ]
    model = mel(augmentation=augmentation)
    model.set_weights(plain.get_weights())
    expected = np.asarray(plain(x)["sequence_output"])
    np.testing.assert_array_equal(
        np.asarray(model(x)["sequence_output"]), expected
    )
    outputs = model(x, training=True)
    # Faster clips have fewer real frames.
    assert np.asarray(outputs["frame_mask"]).sum() < 12
    model.save_to_preset(str(tmp_path))
    again = models.AudioBackbone.from_preset(str(tmp_path))
    assert [type(each) for each in again.augmentation] == [
        type(each) for each in augmentation
    ]
    # Weights of a model without augmentation fit one that has some.
    plain.save_to_preset(str(tmp_path / "plain"))
    models.AudioBackbone.from_preset(
        str(tmp_path / "plain"), augmentation=augmentation
    )


def moments(frames):
    return np.concatenate([frames.mean(0), frames.std(0)])


def test_statistics_pooling_scores_mean_and_deviation(rng):
    classifier = models.AudioClassifier(
        mel(), num_classes=3, pooling="statistics", chunk_s=None
    )
    x = rng.standard_normal((2, 131)).astype("float32")
    lengths = np.array([131, 59], "int32")
    frames, mask = frames_of(classifier.backbone, x, lengths)
    head = classifier.output_dense
    kernel, bias = np.asarray(head.kernel), np.asarray(head.bias)

    def scores(vector):
        return 1.0 / (1.0 + np.exp(-(vector @ kernel + bias)))

    pooled = [moments(f[m]) for f, m in zip(frames, mask, strict=True)]
    found = classifier({"waveform": x, "lengths": lengths})
    np.testing.assert_allclose(found, scores(np.stack(pooled)), atol=1e-5)
    # A frame for itself has a deviation of 0.
    alone = np.concatenate([frames, np.zeros_like(frames)], axis=-1)
    np.testing.assert_allclose(
        np.asarray(classifier.score_frames(frames)), scores(alone), atol=1e-5
    )
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(classifier)
    )
    assert again.get_config()["pooling"] == "statistics"
    with pytest.raises(ValueError, match="did you mean 'statistics'"):
        models.AudioClassifier(mel(), num_classes=3, pooling="statistic")
