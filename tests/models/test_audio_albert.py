"""Audio ALBERT: counts, shared weights, hidden states, any attention."""

import json
import math

import keras
import naive
import numpy as np
import pytest
from attention_cases import SIBLINGS, alike_are_slow

from audio_tf import attention
from audio_tf.models import AudioAlbertBackbone, WeightedSum

LENGTHS = np.array([29, 13, 1], "int32")


def backbone(**kwargs):
    return AudioAlbertBackbone(
        **{
            "num_layers": 3,
            "num_heads": 2,
            "key_dim": 5,
            "hidden_dim": 12,
            "intermediate_dims": (7,),
            "feature_dim": 11,
            # At 0.02 so small a model hardly sees its inputs.
            "initializer_range": 0.3,
            **kwargs,
        }
    )


def clips(rng, frames=29, batch=3, dim=11):
    return rng.standard_normal((batch, frames, dim)).astype("float32")


def states_of(model, inputs):
    """`(batch, layers + 1, frames, dim)`, as `"hidden_states"` are."""
    states = [np.asarray(state) for state, _ in model.hidden_states(inputs)]
    return np.stack(states, axis=1)


# Counted by hand: one layer with its two LayerNorms, then the input block.
LAYER, SHARED_QK_LAYER = 7_087_872, 6_497_280
INPUT = 370_944


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "count, arguments",
    [
        (7_458_816, {}),
        (7_458_816, {"num_layers": 3}),
        (7_458_816, {"num_layers": 12}),
        (6_868_224, {"attention": "shared_qk"}),
        (
            9_277_632,
            {
                "attention": "random_synthesizer",
                "attention_kwargs": {"max_length": 500},
            },
        ),
        (18_277_632, {"attention": "random_synthesizer"}),
        pytest.param(
            18_277_632,
            {"attention": "crafted_synthesizer"},
            marks=pytest.mark.slow,
        ),
        (7_151_616, {"feature_dim": 80}),
        (INPUT + 6 * LAYER, {"share_layers": False}),
        (
            INPUT + 3 * SHARED_QK_LAYER,
            {"share_layers": False, "num_layers": 3, "attention": "shared_qk"},
        ),
    ],
)
def test_parameter_counts_of_the_authors_code(count, arguments):
    assert AudioAlbertBackbone(**arguments).count_params() == count


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in attention.ATTENTIONS
        if "lsh" in name or "xbox" in name or "sparse" in name
    ],
)
def test_shared_qk_is_under_sparse_and_hashed_attention(name):
    model = AudioAlbertBackbone(attention=name, num_layers=1)
    trained = sum(math.prod(w.shape) for w in model.trainable_weights)
    assert trained == 6_868_224


@pytest.mark.parametrize("size", AudioAlbertBackbone.sizes)
def test_sizes_by_name(size):
    model = AudioAlbertBackbone.from_preset(
        size, num_heads=1, key_dim=1, hidden_dim=2, intermediate_dims=(3,)
    )
    assert model.get_config()["hidden_dim"] == 2
    for name, value in AudioAlbertBackbone.sizes[size].items():
        assert model.get_config()[name] == value


def test_defaults_are_the_papers():
    config = AudioAlbertBackbone(num_layers=1).get_config()
    assert config["layer_norm_epsilon"] == 1e-12
    assert config["dropout"] == 0.0 and config["activation"] == "gelu"


def test_one_layer_is_applied_again_and_again(rng):
    once, thrice = backbone(num_layers=1), backbone()
    assert once.count_params() == thrice.count_params()
    thrice.set_weights(once.get_weights())
    x = clips(rng)
    states = states_of(thrice, x)
    np.testing.assert_allclose(
        once(x)["sequence_output"], states[:, 1], atol=1e-6
    )
    block = once.get_layer("block")
    np.testing.assert_allclose(block(states[:, 1]), states[:, 2], atol=1e-6)
    assert np.abs(states[:, 2] - states[:, 1]).max() > 0.1


def test_unshared_layers_have_their_own_weights():
    shared, unshared = backbone(), backbone(share_layers=False)
    kernels = [
        np.asarray(
            unshared.get_layer(f"block_{i}").feed_forward.hidden[0].kernel
        )
        for i in range(3)
    ]
    assert np.abs(kernels[0] - kernels[1]).max() > 0.01
    per_layer = shared.get_layer("block").count_params()
    assert unshared.count_params() == shared.count_params() + 2 * per_layer


def test_layers_of_a_mixture_share_with_their_like(rng):
    model = backbone(num_layers=5, attention="hybrid_local")
    local, full = model.get_layer("block_0"), model.get_layer("block_1")
    assert model.blocks == [local, full, local, full, local]
    names = ["local_dense_synthesizer", "full"]
    assert [local.attention_name, full.attention_name] == names
    x = clips(rng)
    states = states_of(model, x)
    for index, block in enumerate(model.blocks):
        np.testing.assert_allclose(
            block(states[:, index]), states[:, index + 1], atol=1e-6
        )
    # Layers without shared weights are as many as there are.
    apart = backbone(attention="hybrid_local", share_layers=False)
    assert len({id(block) for block in apart.blocks}) == 3
    again = type(model).from_config(model.get_config())
    assert again.get_config() == model.get_config()
    assert len({id(block) for block in again.blocks}) == 2


def test_kernels_begin_as_berts():
    model = AudioAlbertBackbone(num_layers=1, feature_dim=160)
    for weight in model.weights:
        value = np.asarray(weight)
        if weight.path.endswith("kernel"):
            assert 0.0195 < value.std() < 0.0205, weight.path
            assert np.abs(value).max() < 0.15
        else:
            expected = 1.0 if weight.path.endswith("gamma") else 0.0
            np.testing.assert_array_equal(value, expected, weight.path)
    block = model.get_layer("block")
    for norm in (block.attention_norm, block.feed_forward_norm):
        assert norm.epsilon == 1e-12
    assert model.get_layer("input_norm").epsilon == 1e-12


def test_an_initializer_of_the_users_stays():
    kwargs = {"kernel_initializer": "ones"}
    model = backbone(attention_kwargs=kwargs)
    kernel = model.get_layer("block").attention.query_dense.kernel
    np.testing.assert_array_equal(kernel, 1.0)


def layer_norm(x, weights):
    gamma, beta = weights
    x = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-12)
    return gamma * x / scale + beta


def naive_states(model, x):
    """BERT's post-norm encoder of one clip `(T, F)`, in float64."""

    def dense(x, layer):
        kernel, bias = (np.asarray(w, "float64") for w in layer.weights)
        return x @ kernel + bias

    def norm(x, layer):
        return layer_norm(x, [np.asarray(w, "float64") for w in layer.weights])

    erf = np.vectorize(math.erf)
    block, dim = model.get_layer("block"), model.hidden_dim
    x = dense(x.astype("float64"), model.get_layer("input_projection"))
    for time in range(len(x)):
        for i in range(dim):
            angle = time / 10_000 ** (2 * (i // 2) / dim)
            x[time, i] += math.cos(angle) if i % 2 else math.sin(angle)
    states = [norm(x, model.get_layer("input_norm"))]
    for _ in range(model.num_layers):
        x, mixed = states[-1], []
        q, k, v = (
            dense(x, getattr(block.attention, f"{name}_dense"))
            for name in ("query", "key", "value")
        )
        for head in range(model.num_heads):
            part = slice(head * model.key_dim, (head + 1) * model.key_dim)
            scores = q[:, part] @ k[:, part].T / math.sqrt(model.key_dim)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            mixed.append(weights @ v[:, part])
        mixed = np.concatenate(mixed, axis=1)
        x = norm(
            x + dense(mixed, block.attention.output_dense), block.attention_norm
        )
        hidden = dense(x, block.feed_forward.hidden[0])
        hidden = 0.5 * hidden * (1.0 + erf(hidden / math.sqrt(2.0)))
        states.append(
            norm(
                x + dense(hidden, block.feed_forward.output_dense),
                block.feed_forward_norm,
            )
        )
    return np.stack(states)


@pytest.mark.op_by_op
def test_hidden_states_are_those_of_a_naive_encoder(rng):
    model = backbone(return_hidden_states=True)
    model.set_weights(
        [w + 0.1 * rng.standard_normal(w.shape) for w in model.get_weights()]
    )
    x = clips(rng)
    outputs = model({"features": x, "lengths": LENGTHS})
    states = np.asarray(outputs["hidden_states"])
    assert states.shape == (3, 4, 29, 12)
    for clip, length in enumerate(LENGTHS):
        np.testing.assert_allclose(
            states[clip, :, :length],
            naive_states(model, x[clip, :length]),
            atol=2e-5,
        )
    np.testing.assert_array_equal(states[:, -1], outputs["sequence_output"])
    by_method = backbone()
    by_method.set_weights(model.get_weights())
    np.testing.assert_allclose(
        states_of(by_method, {"features": x, "lengths": LENGTHS}),
        states,
        atol=1e-6,
    )
    assert "hidden_states" not in by_method(x)


def test_hidden_states_of_unshared_layers_in_their_order(rng):
    model, x = backbone(share_layers=False), clips(rng)
    states = states_of(model, x)
    for index in range(3):
        block = model.get_layer(f"block_{index}")
        np.testing.assert_allclose(
            block(states[:, index]), states[:, index + 1], atol=1e-6
        )


@pytest.mark.parametrize("normalize", [True, False])
def test_weighted_sum(normalize, rng):
    layer = WeightedSum(normalize=normalize)
    states = rng.standard_normal((2, 5, 7, 3)).astype("float32")
    np.testing.assert_allclose(layer(states), states.mean(axis=1), atol=1e-6)
    logits = rng.standard_normal(5).astype("float32")
    layer.set_weights([logits])
    weights = logits
    if normalize:
        weights = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(
        layer(states), (states * weights[:, None, None]).sum(axis=1), atol=1e-5
    )
    assert naive.missing_from_config(layer) == []
    assert layer.get_config()["normalize"] is normalize


def test_weighted_sum_learns_the_layer_that_serves(rng, tmp_path):
    """A step of its logits is that of the softmax's derivative."""
    rate, model = 0.5, backbone(return_hidden_states=True)
    model.trainable = False
    x = clips(rng)
    states = np.asarray(model(x)["hidden_states"], "float64")
    inputs = model.input
    mixed = WeightedSum(name="mix")(model(inputs)["hidden_states"])
    probe = keras.Model(inputs, mixed)
    start = np.array([0.3, -0.2, 0.1, 0.5])
    probe.get_layer("mix").set_weights([start])
    probe.compile(keras.optimizers.SGD(rate), "mse", run_eagerly=True)
    inputs = {"features": x, "lengths": np.full(3, 29)}
    probe.fit(inputs, states[:, 1], verbose=0)

    shares = np.exp(start) / np.exp(start).sum()
    mean = np.einsum("bltd,l->btd", states, shares)
    slopes = [
        2.0 * share * ((mean - states[:, 1]) * (states[:, i] - mean)).mean()
        for i, share in enumerate(shares)
    ]
    assert slopes[1] < 0.0
    (logits,) = probe.get_layer("mix").get_weights()
    np.testing.assert_allclose(logits, start - rate * np.array(slopes), 1e-4)
    assert len(probe.trainable_weights) == 1
    probe.save(tmp_path / "probe.keras")
    loaded = keras.saving.load_model(tmp_path / "probe.keras")
    assert len(loaded.trainable_weights) == 1
    np.testing.assert_array_equal(loaded(inputs), probe(inputs))


@pytest.mark.one_backend
@pytest.mark.parametrize("name", alike_are_slow(attention.ATTENTIONS, SIBLINGS))
def test_any_attention_and_any_padding(name, rng):
    model = backbone(attention=name, num_layers=2)
    x, real = clips(rng), np.arange(29) < LENGTHS[:, None]
    # The same clips twice, with what they had and with nines behind them.
    both = np.concatenate([x, np.where(real[:, :, None], x, 9.0)])
    outputs = model({"features": both, "lengths": np.tile(LENGTHS, 2)})
    frames = np.asarray(outputs["sequence_output"])
    np.testing.assert_array_equal(outputs["frame_mask"], np.tile(real, (2, 1)))
    for clip, length in enumerate(LENGTHS[1:], 1):
        alone = model(x[clip : clip + 1, :length])["sequence_output"]
        np.testing.assert_allclose(frames[clip, :length], alone[0], atol=2e-5)
    np.testing.assert_allclose(frames[:3][real], frames[3:][real], atol=2e-5)
    config = json.loads(json.dumps(model.get_config()))
    assert AudioAlbertBackbone.from_config(config).get_config() == config


def test_a_mask_says_what_lengths_say(rng):
    model, x = backbone(), clips(rng)
    mask = np.arange(29) < LENGTHS[:, None]
    by_mask = model({"features": x, "frame_mask": mask})
    tensors = {"features": x, "frame_mask": mask}
    tensors = {k: keras.ops.convert_to_tensor(v) for k, v in tensors.items()}
    # Of numbers, all but 0 stand for True, as in numpy.
    numbers = 255 * keras.ops.cast(tensors["frame_mask"], "int32")
    for each in (tensors, {**tensors, "frame_mask": numbers}):
        np.testing.assert_array_equal(
            model(each)["sequence_output"], by_mask["sequence_output"]
        )
    by_lengths = model({"features": x, "lengths": LENGTHS})
    np.testing.assert_array_equal(
        by_mask["sequence_output"], by_lengths["sequence_output"]
    )
    plain, full = model(x), model({"features": x, "lengths": np.full(3, 29)})
    np.testing.assert_allclose(
        plain["sequence_output"], full["sequence_output"], atol=1e-5
    )


@pytest.mark.filterwarnings("error:.*destroy the mask")
def test_a_mask_of_a_call_or_of_a_layer_before_says_what_lengths_say(rng):
    model, x = backbone(), clips(rng)
    mask = np.arange(29) < LENGTHS[:, None]
    x = np.where(mask[:, :, None], x, 0.0)
    expected = model({"features": x, "lengths": LENGTHS})["sequence_output"]
    masked = keras.layers.Masking()(x)
    inputs = keras.Input(x.shape[1:])
    outputs = model(keras.layers.Masking()(inputs))["sequence_output"]
    around = keras.Model(inputs, outputs)
    for found in (
        model(x, mask=mask)["sequence_output"],
        model.call(x, mask=mask)["sequence_output"],
        model({"features": x}, mask={"features": mask})["sequence_output"],
        model(masked)["sequence_output"],
        around(x),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    # Lengths that are given count, whatever was masked before.
    plain, full = model(x), {"features": masked, "lengths": np.full(3, 29)}
    np.testing.assert_allclose(
        model(full)["sequence_output"], plain["sequence_output"], atol=1e-5
    )
    for wrong, message in (
        (lambda: model(x, mask=mask[:, :-1]), "with the frames of `features`"),
        (lambda: model(x, mask=~mask), "must come first"),
        (
            lambda: model({"features": x, "lengths": LENGTHS}, mask=mask),
            "a mask and 'lengths'",
        ),
        (lambda: model(x, mask={"features": mask}), "must be of shape"),
        (lambda: model({"features": x}, mask={"lengths": 1}), "of shape"),
        (lambda: model(x, mask="no"), "must be of shape"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    for call in (model, model.call):
        with pytest.raises(TypeError, match="'maks'; did you mean 'mask'"):
            call(x, maks=mask)


def test_config_is_complete():
    changed = {
        "num_layers": 2,
        "share_layers": False,
        "attention": "sparse_strided",
        "attention_kwargs": {"stride": 5},
        "activation": "relu",
        "dropout": 0.25,
        "layer_norm_epsilon": 1e-6,
        "initializer_range": 0.1,
        "return_hidden_states": True,
        "feature_dim": 13,
    }
    model = backbone(**changed)
    assert naive.missing_from_config(model) == []
    for name, value in changed.items():
        assert model.get_config()[name] == value, name
    block = model.get_layer("block_1")
    assert naive.missing_from_config(block) == []
    assert block.attention.stride == 5 and block.dropout == 0.25
    again = type(block).from_config(block.get_config())
    assert again.attention_norm.epsilon == 1e-6
    assert again.get_config() == block.get_config()


def test_dropout_is_drawn_anew_for_each_application(rng):
    model, x = backbone(dropout=0.5), clips(rng)
    one = np.asarray(model(x, training=True)["sequence_output"])
    two = np.asarray(model(x, training=True)["sequence_output"])
    assert np.abs(one - two).max() > 0.1
    np.testing.assert_array_equal(
        model(x)["sequence_output"], model(x)["sequence_output"]
    )


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: backbone(num_layers=0), "num_layers=0"),
        (lambda: backbone(dropout=1.5), "`dropout` must"),
        (lambda: WeightedSum(normalize="no"), "`normalize` must be True"),
        (lambda: backbone(attention="none"), "attention='none'"),
        (lambda: AudioAlbertBackbone.from_preset("audio_albert_7"), "albert_7"),
        (lambda: backbone()({"waveform": np.zeros((1, 9))}), "waveform"),
        (
            lambda: backbone()(
                {
                    "features": np.zeros((1, 2, 11)),
                    "lengths": [2],
                    "frame_mask": [[True, True]],
                }
            ),
            "either",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
