"""Options of the mechanisms, and what queries and keys they compare."""

import naive
import numpy as np
import pytest
from attention_cases import (
    B,
    D,
    F,
    H,
    T,
    any_padding,
    assert_equals_naive,
    build,
    causal_choices,
    every,
    gaps,
    gradients,
    inputs,
    make,
    names_of_weights,
    padding,
    picture,
    weights_of,
)
from keras import ops

from audio_tf import attention
from audio_tf.attention import self_attention
from audio_tf.layers import TransformerBlock

sparse = pytest.mark.parametrize("name", ["sparse_strided", "sparse_fixed"])

OPTIONS = [
    ("shared_qk", {"normalize_keys": True}),
    ("shared_qk", {"mask_self": True}),
    ("shared_qk", {"normalize_keys": True, "mask_self": True}),
    ("grouped_query", {"num_key_value_heads": 1}),
    ("grouped_query", {"num_key_value_heads": 3}),
    ("grouped_query", {"num_key_value_heads": 6}),
    ("sparse_strided", {"window": 2}),
    ("sparse_strided", {"window": 4, "num_heads": 5}),
    ("sparse_strided", {"window": 100}),
    ("sparse_strided", {"stride": 1}),
    ("sparse_strided", {"stride": T}),
    ("sparse_strided", {"stride": 11}),
    ("sparse_strided", {"shared_qk": False}),
    ("sparse_strided", {"literal_mask": True}),
    ("sparse_strided", {"literal_mask": True, "shared_qk": False}),
    ("sparse_fixed", {"num_columns": 1}),
    ("sparse_fixed", {"num_columns": 3, "num_heads": 5}),
    ("sparse_fixed", {"stride": 1, "num_columns": 1}),
    ("sparse_fixed", {"stride": T}),
    ("sparse_fixed", {"stride": 11}),
    ("sparse_fixed", {"shared_qk": False}),
    ("sparse_fixed", {"literal_mask": True}),
    ("sparse_fixed", {"literal_mask": True, "stride": 11}),
    *(
        (name, kwargs)
        for name in naive.HASHES
        for kwargs in (
            {"num_candidates": 1},
            {"num_candidates": 100},
            {"shared_qk": False},
            {"require_match": True, "num_candidates": 5},
            {"literal_mask": True},
            {"literal_mask": True, "require_match": True, "shared_qk": False},
        )
    ),
    ("sign_alsh", {"norm_bound": 0.9, "num_powers": 1}),
    ("sign_alsh", {"norm_bound": 0.5, "num_powers": 4}),
    ("crafted_synthesizer", {"pattern_logits": "scaled"}),
    ("crafted_synthesizer", {"num_heads": 3}),
    ("raganato_synthesizer", {"pattern_logits": "scaled"}),
    ("raganato_synthesizer", {"num_heads": 5}),
    ("raganato_synthesizer", {"max_length": T}),
    ("local_dense_synthesizer", {"edges": "renorm"}),
    ("local_dense_synthesizer", {"edges": "renorm", "context_size": 4}),
    ("local_dense_synthesizer", {"context_size": 4}),
    ("local_dense_synthesizer", {"context_size": 1}),
    ("local_dense_synthesizer", {"context_size": 2}),
    ("local_dense_synthesizer", {"context_size": 19}),
    ("local_dense_synthesizer", {"context_size": 19, "edges": "renorm"}),
]


def named(case):
    name, kwargs = case
    return "-".join([name, *(f"{k}={v}" for k, v in kwargs.items())])


@pytest.mark.one_backend
@pytest.mark.parametrize("case", OPTIONS, ids=named)
def test_options_equal_naive(case, rng):
    name, kwargs = case
    for causal in causal_choices(name):
        layer = make(name, causal=causal, **kwargs)
        assert_equals_naive(name, layer, inputs(rng), None)
        mask = any_padding()
        assert_equals_naive(name, layer, inputs(rng, batch=len(mask)), mask)


@every
@pytest.mark.one_backend
def test_long_inputs_by_rows_equal_naive(name, monkeypatch, rng):
    """A few rows of the map at a time, the last ones a shorter lot."""
    monkeypatch.setattr(self_attention, "LONG_INPUT", T - 1)
    monkeypatch.setattr(self_attention, "ROWS_AT_A_TIME", 3)
    options = {"mask_self": True} if name == "shared_qk" else {}
    for causal in causal_choices(name):
        layer = make(name, causal=causal, dropout=0.5, **options)
        x = inputs(rng)
        for mask in (None, gaps()):
            assert_equals_naive(name, layer, x, mask)
        plain = np.asarray(layer(x))
        assert np.abs(plain - np.asarray(layer(x, training=True))).max() > 1e-3


@pytest.mark.parametrize(
    "base",
    [
        attention.SelfAttention,
        attention.SharedQKAttention,
        attention.DenseSynthesizerAttention,
    ],
)
def test_scores_of_ones_own_may_depend_on_places(base, monkeypatch, rng):
    """Of the last frame alone, every frame had come out, of wrong scores."""

    class Fading(base):
        def scores(self, query, key):
            scores = super().scores(query, key)
            times = ops.arange(ops.shape(scores)[-1], dtype="float32")
            return scores - ops.abs(times[:, None] - times)

    layer, x = Fading(num_heads=H, key_dim=D, causal=True), inputs(rng)
    whole = np.asarray(layer(x))
    last = np.asarray(layer.call_last(x, 1))
    np.testing.assert_allclose(last, whole[:, T - 1 :], atol=1e-6)
    monkeypatch.setattr(self_attention, "LONG_INPUT", T - 1)
    np.testing.assert_allclose(layer(x), whole, atol=1e-6)


def test_pairs_of_each_head_are_cut_by_rows(monkeypatch, rng):
    """The mask of heads alone, `(heads, time, time)`, had too few axes."""

    class Near(attention.SelfAttention):
        def score_mask(self, length):
            times = ops.arange(length)
            reach = ops.arange(self.num_heads)[:, None, None]
            return ops.abs(times[:, None] - times) <= reach

    layer, x = Near(num_heads=H, key_dim=D), inputs(rng)
    whole = np.asarray(layer(x))
    monkeypatch.setattr(self_attention, "LONG_INPUT", T - 1)
    monkeypatch.setattr(self_attention, "ROWS_AT_A_TIME", 3)
    np.testing.assert_allclose(layer(x), whole, atol=1e-6)


@pytest.mark.parametrize("case", OPTIONS, ids=named)
def test_options_are_in_the_config(case):
    name, kwargs = case
    config = make(name, **kwargs).get_config()
    revived = attention.find(name).from_config(config)
    for option, value in kwargs.items():
        assert config[option] == getattr(revived, option) == value


@pytest.mark.parametrize(
    "name, wrong",
    [
        ("grouped_query", {"num_key_value_heads": 0}),
        ("grouped_query", {"num_key_value_heads": 4}),
        ("grouped_query", {"num_key_value_heads": 12}),
        ("sparse_strided", {"stride": 0}),
        ("sparse_strided", {"stride": 2.5}),
        ("sparse_strided", {"window": -1}),
        ("sparse_strided", {"num_heads": 1}),
        ("sparse_strided", {"literal_mask": True, "dropout": 0.1}),
        ("sparse_fixed", {"stride": -3}),
        ("sparse_fixed", {"num_heads": 1}),
        ("sparse_fixed", {"num_columns": 0}),
        ("sparse_fixed", {"num_columns": 4}),
        ("sparse_fixed", {"literal_mask": True, "dropout": 0.1}),
        *((name, {"num_candidates": 0}) for name in naive.HASHES),
        *(
            (name, {"literal_mask": True, "dropout": 0.1})
            for name in naive.HASHES
        ),
        ("sign_alsh", {"num_powers": 0}),
        ("sign_alsh", {"norm_bound": 0.0}),
        ("dense_synthesizer", {"max_length": 0}),
        ("dense_synthesizer", {"intermediate_dim": 0}),
        ("random_synthesizer", {"max_length": -2}),
        ("random_synthesizer", {"patterns": "crafty"}),
        ("random_synthesizer", {"pattern_logits": "linear"}),
        ("local_dense_synthesizer", {"context_size": 0}),
        ("local_dense_synthesizer", {"edges": "wrap"}),
        ("sparse_strided", {"window": 2.5}),
        ("sparse_strided", {"window": True}),
        ("sign_alsh", {"norm_bound": "0.75"}),
        ("xbox", {"seed": "seven"}),
        ("crafted_synthesizer", {"patterns": "raganato"}),
        ("dense_synthesizer_per_head", {"per_head": False}),
    ],
)
def test_bad_options_are_named(name, wrong):
    with pytest.raises(ValueError, match=f"{list(wrong)[0]}.*Received"):
        make(name, **wrong)


@sparse
def test_the_stride_is_the_root_of_the_longest_input(name):
    for length, stride in ((1, 1), (2, 1), (40, 6), (500, 22), (1000, 32)):
        block = TransformerBlock(2, 3, attention=name, made_for_frames=length)
        assert block.attention.stride == stride
        if name == "sparse_strided":
            assert block.attention.window == stride


def test_full_attention_by_hand():
    layer = build("full", 1, num_heads=1, key_dim=1)
    x = np.array([[[0.0], [1.0], [-2.0]]], "float32")
    e = np.exp
    expected = np.array([[1, 1, 1], [e(0), e(1), e(-2)], [e(0), e(-2), e(4)]])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights_of(layer, x)[0, 0], expected, atol=1e-7)
    np.testing.assert_allclose(layer(x)[0], expected @ x[0], atol=1e-6)


def test_scores_are_divided_by_the_root_of_the_size():
    layer = build("full", 4, num_heads=1, key_dim=4)
    x = np.array([[[3.0, 0, 0, 0], [0, 0, 0, 0]]], "float32")
    e = np.exp(9 / 2)
    np.testing.assert_allclose(
        weights_of(layer, x)[0, 0, 0], [e / (e + 1), 1 / (e + 1)], rtol=1e-6
    )


def test_shared_qk_has_no_key_weights():
    one = {"value/kernel", "value/bias", "output/kernel", "output/bias"}
    one |= {"query/kernel", "query/bias"}
    two = one | {"key/kernel", "key/bias"}
    assert names_of_weights(make("full")) == two
    assert names_of_weights(make("shared_qk")) == one
    assert names_of_weights(make("sparse_fixed")) == one
    assert names_of_weights(make("sparse_strided", shared_qk=False)) == two
    assert names_of_weights(make("xbox")) == one | {"hash_vectors"}
    assert names_of_weights(make("sign_alsh", shared_qk=False)) == two | {
        "hash_vectors"
    }


def test_shared_qk_scores_are_symmetric(rng):
    """One softmax apart: log-weights differ by a constant of each row."""
    weights = np.log(weights_of(make("shared_qk"), inputs(rng)))
    scores = weights - weights.diagonal(axis1=2, axis2=3)[..., None]
    odd = scores - scores.swapaxes(2, 3)
    np.testing.assert_allclose(
        odd, odd[..., :1] - odd[..., :1].swapaxes(2, 3), atol=1e-5
    )


def test_normalized_keys_have_unit_mean_square():
    layer = build("shared_qk", 1, num_heads=1, key_dim=1, normalize_keys=True)
    x = np.array([[[5.0], [-0.1]]], "float32")
    e = np.exp
    expected = [
        [e(5) / (e(5) + e(-5)), e(-5) / (e(5) + e(-5))],
        [e(-0.1) / (e(0.1) + e(-0.1)), e(0.1) / (e(0.1) + e(-0.1))],
    ]
    np.testing.assert_allclose(weights_of(layer, x)[0, 0], expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_a_masked_self_is_used_if_there_is_nothing_else(dtype, rng):
    layer = make("shared_qk", mask_self=True, dtype=dtype)
    x = 3.0 * inputs(rng)
    weights = weights_of(layer, x, padding(real=(T, 1)))
    assert np.all(weights[0].diagonal(axis1=1, axis2=2) == 0.0)
    np.testing.assert_allclose(weights[0].sum(axis=-1), 1.0, atol=2e-3)
    np.testing.assert_allclose(weights[1, :, 0, 0], 1.0, rtol=1e-6)


def test_normalized_keys_are_normalized_in_float32():
    """Squares of half precision end at 65504."""
    layer = build(
        "shared_qk",
        1,
        num_heads=1,
        key_dim=1,
        normalize_keys=True,
        dtype="mixed_float16",
    )
    weights = weights_of(layer, np.array([[[300.0], [-300.0]]], "float32"))
    np.testing.assert_array_equal(weights[0, 0], np.eye(2))


def test_normalized_keys_of_a_silent_clip_are_finite():
    layer = make("shared_qk", normalize_keys=True, dtype="mixed_float16")
    loss, found = gradients(layer, np.zeros((B, T, F), "float32"), None)
    assert np.isfinite(loss)
    assert all(np.all(np.isfinite(gradient)) for gradient in found)


@pytest.mark.parametrize("causal", [False, True])
def test_grouped_query_is_full_with_repeated_heads(causal, rng):
    grouped = make("grouped_query", causal=causal)
    full = make("full", num_heads=6, causal=causal)
    for part in ("query", "output", "key", "value"):
        source = getattr(grouped, f"{part}_dense").get_weights()
        if part in ("key", "value"):
            # Heads 0, 1, 2 have those of group 0; 3, 4, 5 of group 1.
            source = [
                np.repeat(
                    w.reshape(*w.shape[:-1], 2, 1, D), 3, axis=-2
                ).reshape(*w.shape[:-1], 6 * D)
                for w in source
            ]
        getattr(full, f"{part}_dense").set_weights(source)
    x = inputs(rng)
    for mask in (None, gaps()):
        found = grouped(x, mask=mask, return_attention_scores=True)
        expected = full(x, mask=mask, return_attention_scores=True)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=2e-6)


def test_grouped_query_has_fewer_key_and_value_weights():
    layer = make("grouped_query")
    assert layer.query_dense.kernel.shape == (F, 6 * D)
    assert layer.key_dense.kernel.shape == (F, 2 * D)
    assert layer.value_dense.kernel.shape == (F, 2 * D)
    assert layer.output_dense.kernel.shape == (6 * D, F)


LOCAL = """
xxxx...
xxxxx..
xxxxxx.
xxxxxxx
.xxxxxx
..xxxxx
...xxxx
""".split()

NARROW = """
xx.....
xxx....
.xxx...
..xxx..
...xxx.
....xxx
.....xx
""".split()

CLASSES = """
x..x..x
.x..x..
..x..x.
x..x..x
.x..x..
..x..x.
x..x..x
""".split()

BLOCKS = """
xxx....
xxx....
xxx....
...xxx.
...xxx.
...xxx.
......x
""".split()

COLUMNS = """
.xx.xx.
.xx.xx.
.xx.xx.
.xx.xx.
.xx.xx.
.xx.xx.
.xx.xx.
""".split()


@pytest.mark.parametrize(
    "name, kwargs, expected",
    [
        ("sparse_strided", {}, (LOCAL, LOCAL, CLASSES)),
        ("sparse_strided", {"num_heads": 2}, (LOCAL, CLASSES)),
        ("sparse_strided", {"window": 1}, (NARROW, NARROW, CLASSES)),
        ("sparse_fixed", {}, (BLOCKS, BLOCKS, COLUMNS)),
        ("sparse_fixed", {"num_heads": 2}, (BLOCKS, COLUMNS)),
    ],
)
def test_sparse_patterns_are_these(name, kwargs, expected, rng):
    weights = weights_of(make(name, **kwargs), inputs(rng))
    for clip in weights:
        assert [picture(head) for head in clip] == list(expected)
    causal = weights_of(make(name, causal=True, **kwargs), inputs(rng))
    for head, rows in zip(causal[0], expected, strict=True):
        past = [row[: i + 1].ljust(T, ".") for i, row in enumerate(rows)]
        assert picture(head) == past


@sparse
def test_a_literal_mask_gives_the_rest_weight_one(name, rng):
    """Before normalising: `exp(0)`."""
    layer, x = make(name, literal_mask=True), inputs(rng)
    plain = make(name)
    plain.set_weights(layer.get_weights())
    weights, chosen = weights_of(layer, x), weights_of(plain, x) > 0
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-6)
    for b in range(B):
        for h in range(H):
            for i in range(T):
                rest = weights[b, h, i][~chosen[b, h, i]]
                assert np.ptp(rest) < 1e-6 if rest.size else True
    future = weights_of(make(name, literal_mask=True, causal=True), x)
    assert np.all(np.triu(future, 1) == 0.0)
    assert np.all(future[..., np.tri(T, dtype=bool)] > 0.0)


@pytest.mark.parametrize("name", ["sparse_strided", "sparse_fixed", "xbox"])
def test_literal_masks_stand_large_scores(name, rng):
    """Scores of some hundreds, whose exponential float32 cannot hold."""
    layer = make(name, literal_mask=True)
    assert_equals_naive(name, layer, 30.0 * inputs(rng), gaps(), atol=3e-4)


@pytest.mark.one_backend
@pytest.mark.parametrize("name", ["sparse_strided", "sparse_fixed", "xbox"])
def test_a_literal_mask_without_a_rest_stands_low_scores(name):
    """One frame attends to itself, however low its score."""
    for low in (1.0, 4.0, 10.0):
        layer = build(
            name, 2, num_heads=2, key_dim=1, literal_mask=True, shared_qk=False
        )
        layer.key_dense.kernel.assign(-np.eye(2))
        x = np.full((1, 1, 2), low, "float32")
        np.testing.assert_allclose(layer(x), x, rtol=1e-6)


@pytest.mark.one_backend
@pytest.mark.parametrize("name", ["sparse_strided", "sparse_fixed", "xbox"])
def test_gradients_of_a_literal_mask(name, rng):
    layer, x, mask = make(name, literal_mask=True), inputs(rng), gaps()
    _, found = gradients(layer, x, mask)
    for _ in range(7):
        at = tuple(rng.integers(0, n) for n in x.shape)
        losses = []
        for sign in (1, -1):
            moved = x.astype("float64")
            moved[at] += sign * 1e-5
            y, _ = naive.ATTENTIONS[name](layer, moved, mask)
            losses.append((y[mask] ** 2).sum())
        np.testing.assert_allclose(
            found[0][at], (losses[0] - losses[1]) / 2e-5, rtol=2e-3, atol=1e-3
        )
