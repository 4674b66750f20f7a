"""Attention to candidates that a hash chooses."""

import keras
import naive
import numpy as np
import pytest
from attention_cases import (
    B,
    D,
    F,
    H,
    assert_equal_where_real,
    build,
    inputs,
    make,
    padding,
    picture,
    weights_of,
)
from backbone_cases import SMALL
from keras import ops

hashing = pytest.mark.parametrize("name", naive.HASHES)


def hashed_scalars(name, x, vector=(1.0,), **kwargs):
    """Which keys scalar frames attend to, by default hashed by their sign."""
    layer = build(name, 1, num_heads=1, key_dim=1, **kwargs)
    vectors = np.zeros(layer.hash_vectors.shape)
    vectors[0, : len(vector)] = vector
    layer.hash_vectors.assign(vectors)
    x = np.array(x, "float32")[None, :, None]
    return picture(weights_of(layer, x)[0, 0])


@hashing
def test_candidates_have_the_largest_or_smallest_hashes(name):
    assert hashed_scalars(name, [1, -2, 5, -7, 3], num_candidates=2) == [
        "..x.x",
        ".x.x.",
        "..x.x",
        ".x.x.",
        "..x.x",
    ]


@hashing
def test_a_match_of_hashes_can_be_required(name):
    x = [1, -2, 5, 4, 3]
    kwargs = {"num_candidates": 3}
    assert hashed_scalars(name, x, **kwargs)[1] == "xx..x"
    assert hashed_scalars(name, x, **kwargs, require_match=True) == [
        "..xxx",
        ".x...",
        "..xxx",
        "..xxx",
        "..xxx",
    ]


@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="`torch.topk` promises no order of what is equal",
)
@hashing
def test_equal_hashes_go_to_the_earlier_key(name):
    x = [2, -1, 2, -1, 2, -1]
    up, down = "x.x...", ".x.x.."
    found = hashed_scalars(name, x, num_candidates=2)
    assert found == [up, down] * 3


@hashing
def test_the_hash_of_zero_is_positive(name):
    found = hashed_scalars(name, [1, 0, -1], num_candidates=1)
    assert found == ["x..", "x..", "..x"]
    found = hashed_scalars(name, [0, -1], num_candidates=2, require_match=True)
    assert found == ["x.", ".x"]


def test_sign_alsh_appends_squares_of_squares():
    """Norms 0.9 and 0.45: `n^4 - 1.3 n^8` is larger for the first.

    With `n^6` in place of `n^8` it would be larger for the second.
    """
    found = hashed_scalars(
        "sign_alsh",
        [2, 1],
        vector=(0.0, 0.0, 1.0, -1.3),
        num_candidates=1,
        num_powers=3,
        norm_bound=0.9,
    )
    assert found == [".x", ".x"]


@hashing
def test_hash_vectors_are_not_trained(name, rng):
    layer = make(name)
    tail = {"sign_alsh": 2, "simple_alsh": 2}.get(name, 1)
    assert layer.hash_vectors.shape == (H, D + tail)
    assert not any("hash" in weight.path for weight in layer.trainable_weights)
    if keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = ops.sum(layer(inputs(rng)) ** 2)
    assert tape.gradient(loss, layer.hash_vectors.value) is None


def test_sign_alsh_has_a_tail_entry_for_each_power():
    assert make("sign_alsh", num_powers=4).hash_vectors.shape == (H, D + 4)


@hashing
def test_hash_vectors_are_normal_and_of_their_seed(name):
    def drawn(seed):
        layer = make(name, num_heads=41, key_dim=23, seed=seed)
        return np.asarray(layer.hash_vectors)

    first = drawn(3)
    np.testing.assert_array_equal(first, drawn(3))
    assert np.abs(first - drawn(4)).max() > 0.1
    assert np.abs(first[0] - first[1]).max() > 0.1
    assert np.abs(drawn(None) - drawn(None)).max() > 0.1
    assert abs(first.mean()) < 0.15 and abs(first.std() - 1.0) < 0.1


@pytest.mark.parametrize("kind", ["audio_transformer", "audio_albert", "wavlm"])
def test_blocks_of_one_seed_have_hash_vectors_of_their_own(kind, tmp_path):
    """The same in each model of that seed, and as they were once saved."""

    def drawn(seed, **kwargs):
        options = {"num_candidates": 2, "seed": seed}
        model = SMALL[kind](
            num_layers=3, attention="xbox", attention_kwargs=options, **kwargs
        )
        assert model.get_config()["attention_kwargs"] == options
        return model, vectors_of(model)

    def vectors_of(model):
        return [
            ops.convert_to_numpy(block.attention.hash_vectors)
            for block in model.blocks
        ]

    apart = {"share_layers": False} if kind == "audio_albert" else {}
    model, first = drawn(5, **apart)
    for one, other in zip(first, drawn(5, **apart)[1], strict=True):
        np.testing.assert_array_equal(one, other)
    others = drawn(6, **apart)[1]
    for place in range(3):
        for other in [*first[:place], *others]:
            assert np.abs(first[place] - other).max() > 0.1
    # Models of before had one for all.
    for block in model.blocks:
        block.attention.hash_vectors.assign(first[0])
    model.save(tmp_path / "model.keras")
    for again in vectors_of(keras.saving.load_model(tmp_path / "model.keras")):
        np.testing.assert_array_equal(again, first[0])


def test_blocks_that_share_weights_have_one_seed():
    model = SMALL["audio_albert"](
        num_layers=3, attention="xbox", attention_kwargs={"seed": 5}
    )
    assert len({id(block) for block in model.blocks}) == 1
    assert model.blocks[0].attention.seed == 5


def test_xbox_qnf_is_xbox(rng):
    """Scaling a query leaves the sign of its hash."""
    one, other = make("xbox"), make("xbox_qnf")
    other.set_weights(one.get_weights())
    x = inputs(rng, 31)
    np.testing.assert_array_equal(one(x), other(x))


def test_simple_alsh_ranks_keys_as_xbox_does(rng):
    """Its keys are those of XBOX over M; a tail of queries set aside."""
    one, other = make("xbox"), make("simple_alsh")
    for part in ("query_dense", "value_dense", "output_dense"):
        getattr(other, part).set_weights(getattr(one, part).get_weights())
    vectors = np.asarray(one.hash_vectors)
    other.hash_vectors.assign(np.append(vectors, 0.0 * vectors[:, :1], 1))
    x = inputs(rng, 31)
    np.testing.assert_allclose(one(x), other(x), atol=2e-6)


@hashing
def test_padding_does_not_count_for_the_largest_norm(name, rng):
    """The longest real vector alone sets M, on both sides."""
    layer = make(name, shared_qk=False, num_candidates=2)
    x = np.abs(inputs(rng, 11))
    # Padding is zero when it is projected: the longest is then the bias.
    for dense in (layer.query_dense, layer.key_dense):
        dense.kernel.assign(-np.abs(dense.kernel))
        dense.bias.assign(np.full(dense.bias.shape, 9.0))
    mask = padding(11, (11, 6))
    expected = np.asarray(layer(x[1:, :6]))
    for scale in (1e-3, 1.0, 50.0):
        x[1, 6:] = scale * rng.standard_normal((5, F))
        found = np.asarray(layer(x, mask=mask))[1:, :6]
        np.testing.assert_allclose(found, expected, atol=2e-6)


@hashing
def test_resample_draws_anew_in_training_only(name, rng):
    layer = make(name, resample=True, num_candidates=2)
    x = inputs(rng, 17)
    before = np.asarray(layer.hash_vectors)
    still = np.asarray(layer(x))
    np.testing.assert_array_equal(still, layer(x, training=False))
    assert_equal_where_real(still, naive.ATTENTIONS[name](layer, x)[0], None)
    draws = [np.asarray(layer(x, training=True)) for _ in range(3)]
    for one, other in [(0, 1), (1, 2), (0, 2)]:
        assert np.abs(draws[one] - draws[other]).max() > 1e-3
    np.testing.assert_array_equal(before, layer.hash_vectors)
    np.testing.assert_array_equal(still, layer(x))
    fixed = make(name)
    np.testing.assert_array_equal(fixed(x), fixed(x, training=True))


def test_a_frozen_layer_keeps_its_hash_vectors(rng):
    """Its outputs in training are those of inference, as a dropout's are."""
    layer, x = make("xbox", resample=True, num_candidates=2), inputs(rng, 17)
    layer.trainable = False
    for _ in range(3):
        np.testing.assert_array_equal(layer(x), layer(x, training=True))


def test_resampling_in_a_compiled_step_differs_each_time(rng):
    layer = make("xbox", resample=True, num_candidates=2)
    x = keras.Input((None, F))
    model = keras.Model(x, layer(x))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    data = inputs(rng, 17)
    target = np.zeros_like(data)
    losses = {float(model.train_on_batch(data, target)) for _ in range(4)}
    assert len(losses) == 4


def test_resampling_repeats_with_its_seed(rng):
    x = inputs(rng, 17)

    def draws(seed):
        layer = make("xbox", resample=True, seed=seed)
        layer.set_weights(first.get_weights())
        return np.stack([layer(x, training=True) for _ in range(2)])

    first = make("xbox", resample=True, seed=3)
    np.testing.assert_array_equal(draws(3), draws(3))
    assert np.abs(draws(3) - draws(4)).max() > 1e-3


@hashing
def test_large_vectors_are_hashed_in_float32(name, rng):
    """Norms beyond 255, whose square float16 cannot hold."""
    half, plain = [
        build(name, D, num_heads=1, key_dim=D, num_candidates=2, seed=5, **kind)
        for kind in ({"dtype": "mixed_float16"}, {})
    ]
    x = rng.standard_normal((B, 11, D)).astype("float16").astype("float32")
    norms = np.linspace(270.0, 370.0, 11)[:, None]
    x *= norms / np.linalg.norm(x, axis=-1, keepdims=True)
    for mask in (None, padding(11, (11, 6))):
        # Of weights so small that float16 has no number for them, none counts.
        chosen = [
            weights_of(layer, x, mask).astype("float16") > 0
            for layer in (half, plain)
        ]
        np.testing.assert_array_equal(*chosen)
