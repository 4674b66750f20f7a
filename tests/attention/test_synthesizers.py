"""Synthesizers: dense, random from patterns, and local."""

import keras
import naive
import numpy as np
import pytest
import tiny
from attention_cases import (
    TABLES,
    B,
    D,
    F,
    H,
    T,
    alike_are_slow,
    assert_equal_where_real,
    assert_equals_naive,
    build,
    gaps,
    inputs,
    make,
    names_of_weights,
    padding,
    shaken,
    weights_of,
)
from backbone_cases import SMALL

from audio_tf import attention, layers, models


def test_dense_synthesizer_has_one_map_or_one_a_head(rng):
    one, many = make("dense_synthesizer"), make("dense_synthesizer_per_head")
    assert one.per_head is False and many.per_head is True
    assert one.length_kernel.shape == (1, 2, 17)
    assert one.length_bias.shape == (1, 17)
    assert one.hidden_dense.kernel.shape == (F, 2)
    assert many.length_kernel.shape == (H, 2, 17)
    assert many.length_bias.shape == (H, 17)
    assert many.hidden_dense.kernel.shape == (F, 2 * H)
    weights = weights_of(one, inputs(rng))
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    weights = weights_of(many, inputs(rng))
    assert np.abs(weights[:, 0] - weights[:, 1]).max() > 1e-3


def test_synthesizers_have_no_queries_or_keys():
    for name in naive.ATTENTIONS:
        if "synthesizer" in name:
            names = names_of_weights(make(name))
            assert not any(n.startswith(("query", "key")) for n in names)


def test_dense_synthesizer_by_hand():
    layer = build(
        "dense_synthesizer",
        1,
        num_heads=1,
        key_dim=1,
        max_length=3,
        intermediate_dim=2,
    )
    layer.hidden_dense.kernel.assign([[1.0, -1.0]])
    layer.length_kernel.assign([[[1.0, 2.0, 9.0], [-1.0, 0.5, 9.0]]])
    layer.length_bias.assign([[0.0, -3.0, 9.0]])
    weights = weights_of(layer, np.array([[[2.0], [-4.0]]], "float32"))
    # Hidden (2, 0) and (0, 4); logits (2, 4 - 3) and (-4, 2 - 3).
    e = np.exp
    expected = [
        [e(2) / (e(2) + e(1)), e(1) / (e(2) + e(1))],
        [e(-4) / (e(-4) + e(-1)), e(-1) / (e(-4) + e(-1))],
    ]
    np.testing.assert_allclose(weights[0, 0], expected, rtol=1e-5)


# The random Synthesizer and its patterns.


def test_random_synthesizer_does_not_look_at_its_input(rng):
    layer = make("random_synthesizer")
    one, other = weights_of(layer, inputs(rng)), weights_of(layer, inputs(rng))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one[0], one[1])
    assert np.abs(one[:, 0] - one[:, 1]).max() > 1e-3


def test_anchors_are_listed():
    start, end = "start", "end"
    crafted = 6 * (start,) + (end, start)
    raganato = (start, start, start, start, end, start, end, start)
    for name, expected in [
        ("random_synthesizer", 3 * (start,)),
        ("crafted_synthesizer", crafted),
        ("raganato_synthesizer", raganato),
    ]:
        heads = len(expected)
        assert tuple(make(name).anchors) == expected
        assert tuple(make(name, causal=True).anchors) == heads * (start,)
    assert tuple(make("crafted_synthesizer", num_heads=2).anchors) == (
        start,
        start,
    )


def crafted(head, i, j, n):
    shift = {0: 0, 1: -1, 2: -2, 3: 1, 4: 2}
    if head in shift:
        return float(j == i + shift[head])
    return {5: (j + 1) ** 3, 6: (n - j) ** 3}[head]


def raganato(head, i, j, n):
    if head < 3:
        return float(j == i + (0, -1, 1)[head])
    return {
        3: (j + 1) ** 3 if j <= i - 2 else 0,
        4: (n - j) ** 3 if j >= i + 2 else 0,
        5: (j + 1) ** 3,
        6: (n - j) ** 3,
    }[head]


PATTERNS = {"crafted": crafted, "raganato": raganato}


def raw_pattern(kind, head, n):
    p = [[PATTERNS[kind](head, i, j, n) for j in range(n)] for i in range(n)]
    return np.array(p, np.float64)


def pattern(kind, head, n):
    """Normalised rows; a row without support is even."""
    p = raw_pattern(kind, head, n)
    p[p.sum(axis=1) == 0.0] = 1.0
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", PATTERNS)
def test_patterns_hold_at_every_length(kind):
    layer = make(f"{kind}_synthesizer", max_length=17)
    for n in (1, 2, 3, 5, 12, 16, 17):
        alone = weights_of(layer, np.zeros((1, n, F), "float32"))[0]
        padded = weights_of(
            layer, np.zeros((2, 17, F), "float32"), padding(17, (n, 17))
        )
        for head in range(7):
            expected = pattern(kind, head, n)
            whole = pattern(kind, head, 17)
            np.testing.assert_allclose(alone[head], expected, atol=3e-6)
            found = padded[0, head, :n, :n]
            np.testing.assert_allclose(found, expected, atol=3e-6)
            assert np.all(padded[0, head, :n, n:] == 0.0)
            np.testing.assert_allclose(padded[1, head], whole, atol=3e-6)


@pytest.mark.parametrize("kind", PATTERNS)
def test_patterns_of_a_model_of_40_frames_are_not_flat(kind):
    """The papers' formulas over the model's own length, not over 1000."""
    backbone = tiny.backbone(
        attention=f"{kind}_synthesizer", num_heads=8, made_for_frames=40
    )
    dim = backbone.hidden_dim
    for block in backbone.blocks:
        layer = block.attention
        assert layer.causal
        assert tuple(layer.table.shape) == (8, 40, 40)
        found = weights_of(layer, np.zeros((1, 40, dim), "float32"))[0]
        for head in range(7):
            p = np.tril(raw_pattern(kind, head, 40) + 1e-7)
            expected = p / p.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(found[head], expected, atol=3e-6)
    free = attention.create(
        f"{kind}_synthesizer",
        num_heads=8,
        key_dim=D,
        causal=False,
        max_length=40,
    )
    found = weights_of(free, np.zeros((1, 40, F), "float32"))[0]
    for head in range(7):
        expected = pattern(kind, head, 40)
        np.testing.assert_allclose(found[head], expected, atol=4e-6)
    # The first frame weighs 40^3 times as much as the last.
    assert found[6, 0, 0] / found[6, 0, 39] == pytest.approx(64_000, rel=0.01)


@pytest.mark.parametrize("kind", PATTERNS)
def test_causal_patterns_are_those_of_the_past(kind):
    layer = make(f"{kind}_synthesizer", max_length=17, causal=True)
    for n in (1, 5, 17):
        found = weights_of(layer, np.zeros((1, n, F), "float32"))[0]
        for head in range(7):
            p = np.tril(raw_pattern(kind, head, 17) + 1e-8)[:n, :n]
            expected = p / p.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(found[head], expected, atol=3e-6)


@pytest.mark.parametrize("kind", PATTERNS)
def test_scaled_patterns_peak_at_ten(kind):
    table = np.asarray(
        make(f"{kind}_synthesizer", pattern_logits="scaled").table, np.float64
    )
    for head in range(7):
        p = pattern(kind, head, 17)
        p[np.ptp(p, axis=1) == 0.0] = 0.0
        peak = np.maximum(p.max(axis=1, keepdims=True), 1e-300)
        difference = table[head] - 10.0 * p / peak
        # A row may be shifted as a whole.
        assert np.ptp(difference, axis=1).max() < 1e-5
    assert table[:7].max() == pytest.approx(10.0)


def test_log_patterns_are_the_logarithm():
    """But for a constant of each row."""
    table = np.asarray(make("crafted_synthesizer").table)
    row = table[0][0]
    # What is left out weighs something, but not much.
    assert np.log(1e6) < row[0] - row[1] < np.log(1e10)
    row = table[5][4]
    assert row[16] - row[1] == pytest.approx(3 * np.log(17 / 2), rel=1e-6)
    row = table[6][4]
    assert row[15] - row[0] == pytest.approx(3 * np.log(2 / 17), rel=1e-6)


@pytest.mark.parametrize("kind", PATTERNS)
def test_heads_beyond_the_patterns_are_random(kind):
    layer = make(f"{kind}_synthesizer", num_heads=9, max_length=97)
    rest = np.asarray(layer.table)[7:]
    assert abs(rest.mean()) < 1e-3
    assert rest.std() == pytest.approx(0.02, rel=0.05)
    assert np.abs(rest[0] - rest[1]).max() > 0.01


def test_the_initializer_makes_the_random_heads():
    ones = {"table_initializer": "ones"}
    assert np.all(np.asarray(make("random_synthesizer", **ones).table) == 1.0)
    table = np.asarray(make("crafted_synthesizer", **ones).table)
    assert np.all(table[7] == 1.0) and not np.any(table[:7] == 1.0)
    bound = np.abs(np.asarray(make("random_synthesizer").table)).max()
    assert 0.2 < bound < 0.5


def test_fewer_heads_have_the_first_patterns():
    few = make("crafted_synthesizer", num_heads=3)
    many = make("crafted_synthesizer")
    np.testing.assert_array_equal(few.table, np.asarray(many.table)[:3])


tables = pytest.mark.parametrize(
    "name", alike_are_slow(TABLES, ["raganato_synthesizer"])
)


@tables
@pytest.mark.parametrize("causal", [False, True])
def test_folding_keeps_the_outputs(name, causal, rng):
    layer = shaken(make(name, causal=causal), rng)
    cases = [
        (inputs(rng, n), mask)
        for n in (1, 4, 17)
        for mask in (None, *(padding(n, (n, m)) for m in (n, n // 2, 0)))
    ]
    cases.append((inputs(rng), gaps()))
    expected = [
        naive.ATTENTIONS[name](layer, x, mask) + (layer(x, mask=mask),)
        for x, mask in cases
    ]
    trainable = len(layer.trainable_weights)
    layer.fold()
    assert layer.folded
    assert len(layer.trainable_weights) == trainable - 1
    assert not any("table" in w.path for w in layer.trainable_weights)
    assert any("table" in w.path for w in layer.non_trainable_weights)
    for (x, mask), (y, weights, before) in zip(cases, expected, strict=True):
        found, maps = layer(x, mask=mask, return_attention_scores=True)
        assert_equal_where_real(found, y, mask, atol=2e-5)
        assert_equal_where_real(found, before, mask, atol=2e-5)
        assert_equal_where_real(
            np.swapaxes(maps, 1, 2), weights.swapaxes(1, 2), mask, atol=5e-6
        )
    once = np.asarray(layer(cases[0][0]))
    layer.fold()
    np.testing.assert_array_equal(once, layer(cases[0][0]))


@tables
@pytest.mark.parametrize("causal", [False, True])
def test_a_layer_made_folded_begins_as_one_that_is_folded(name, causal):
    """Its table has weights, not logits that would be taken for them."""
    initializer = keras.initializers.RandomNormal(seed=3)
    made, folded = (
        make(name, causal=causal, table_initializer=initializer, folded=given)
        for given in (True, False)
    )
    folded.fold()
    np.testing.assert_allclose(made.table, folded.table, rtol=1e-6)
    sums = np.asarray(made.table).sum(axis=-1)
    np.testing.assert_allclose(sums, 1.0, rtol=1e-5)


@tables
def test_a_folded_layer_takes_any_length_in_a_graph(name, rng):
    layer = shaken(make(name), rng)
    layer.fold()
    x, real = keras.Input((None, F)), keras.Input((None,), dtype="bool")
    model = keras.Model([x, real], layer(x, mask=real))
    for length in (1, 5, 17):
        data = inputs(rng, length)
        for last in (length, length // 2):
            mask = padding(length, (length, last))
            assert_equal_where_real(
                model.predict_on_batch([data, mask]),
                layer(data, mask=mask),
                mask,
            )


@tables
@pytest.mark.parametrize("folded", [False, True])
def test_dropout_in_a_padded_clip_scales_what_it_keeps(name, folded, rng):
    """One frame that sees itself alone: nothing, or twice its output."""
    layer = make(name, num_heads=1, dropout=0.5)
    if folded:
        layer.fold()
    x, mask = inputs(rng), padding(real=(T, 1))
    plain = np.asarray(layer(x, mask=mask))[1, 0]
    seen = set()
    for _ in range(30):
        found = np.asarray(layer(x, mask=mask, training=True))[1, 0]
        seen.add(bool(found.any()))
        if found.any():
            np.testing.assert_allclose(found, 2.0 * plain, atol=1e-5)
        if len(seen) == 2:
            break
    assert seen == {False, True}


@tables
def test_a_folded_layer_is_saved_and_loaded(name, rng, tmp_path):
    layer = shaken(make(name), rng)
    x = keras.Input((None, F))
    model = keras.Model(x, layer(x))
    data = inputs(rng)
    before = np.asarray(model(data))
    layer.fold()
    assert layer.get_config()["folded"] is True
    model.save(tmp_path / "folded.keras")
    loaded = keras.saving.load_model(tmp_path / "folded.keras")
    np.testing.assert_array_equal(loaded(data), model(data))
    np.testing.assert_allclose(loaded(data), before, atol=5e-6)
    assert len(loaded.trainable_weights) == 4
    layer.fold()


@tables
@pytest.mark.parametrize("causal", [False, True])
def test_a_folded_layer_loads_what_is_not_folded(name, causal, rng, tmp_path):
    """The logits of a checkpoint had been taken for weights."""
    x = keras.Input((None, F))
    model = keras.Model(x, shaken(make(name, causal=causal), rng)(x))
    data = inputs(rng)
    before = np.asarray(model(data))
    model.save_weights(tmp_path / "not_folded.weights.h5")
    assert attention.fold(model) == 1
    model.layers[1].table.assign(0.0 * model.layers[1].table)
    model.load_weights(tmp_path / "not_folded.weights.h5")
    np.testing.assert_allclose(model(data), before, atol=5e-6)


@tables
def test_a_folded_model_is_saved_and_loaded(name, rng, tmp_path):
    """Its config does not tell: the weights had been taken for logits."""
    x = keras.Input((None, F))
    block = layers.TransformerBlock(
        8, D, (5,), attention=name, made_for_frames=17
    )
    model = keras.Model(x, block(x))
    shaken(block, rng)
    cases = [inputs(rng, length) for length in (17, 5)]
    before = [np.asarray(model(data)) for data in cases]
    assert attention.fold(model) == 1
    model.save(tmp_path / "folded.keras")
    loaded = keras.saving.load_model(tmp_path / "folded.keras")
    for data, expected in zip(cases, before, strict=True):
        np.testing.assert_allclose(loaded(data), expected, atol=2e-5)
    # It can be trained, and folded, as before.
    assert len(loaded.trainable_weights) == len(model.trainable_weights) + 1
    assert attention.fold(loaded) == 1
    np.testing.assert_allclose(loaded(cases[1]), before[1], atol=2e-5)


def test_folding_a_model_folds_all_its_tables(rng):
    x = keras.Input((None, F))
    y = x
    for name in ("random_synthesizer", "full", "crafted_synthesizer"):
        y = shaken(make(name), rng, 0.1)(y)
    model = keras.Model(x, y)
    data = inputs(rng)
    before = model.predict(data, verbose=0)
    assert attention.fold(model) == 2
    assert attention.fold(model) == 0
    # What was compiled for the tables of logits is compiled anew.
    np.testing.assert_allclose(
        model.predict(data, verbose=0), before, atol=2e-5
    )
    assert not any("table" in w.path for w in model.trainable_weights)
    for weight in model.non_trainable_weights:
        weight.assign(np.ones(weight.shape))
    np.testing.assert_allclose(
        model.predict(data, verbose=0), model(data), rtol=1e-4
    )


@pytest.mark.one_backend
def test_a_model_around_what_is_folded_is_compiled_anew(rng):
    """It had gone on with a table that was no longer of the model."""
    backbone = SMALL["audio_transformer"](
        num_layers=1, attention="random_synthesizer"
    )
    model = models.AudioClassifier(backbone, num_classes=2, chunk_s=None)
    x = rng.standard_normal((2, 99)).astype("float32")
    before = model.predict(x, verbose=0)
    assert attention.fold(backbone) == 1
    table = backbone.blocks[0].attention.table
    table.assign(0.0 * table)
    after = model.predict(x, verbose=0)
    assert np.abs(after - before).max() > 1e-4
    np.testing.assert_allclose(after, model(x), atol=1e-6)


def test_a_folded_layer_is_exported(rng, tmp_path):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("a SavedModel is TensorFlow's")
    import tensorflow as tf

    layer = shaken(make("raganato_synthesizer"), rng)
    x = keras.Input((None, F))
    model = keras.Model(x, layer(x))
    cases = [inputs(rng, n) for n in (5, 17)]
    expected = [np.asarray(model(data)) for data in cases]
    layer.fold()
    model.export(tmp_path / "saved", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "saved")
    for data, y in zip(cases, expected, strict=True):
        np.testing.assert_allclose(loaded.serve(data), y, atol=5e-6)


def test_a_folded_layer_trains_its_other_weights(rng):
    layer = shaken(make("crafted_synthesizer"), rng)
    layer.fold()
    x = keras.Input((None, F))
    model = keras.Model(x, layer(x))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    before = [
        np.asarray(w).copy() for w in (layer.table, layer.value_dense.kernel)
    ]
    data = inputs(rng)
    model.fit(data, np.zeros_like(data), verbose=0)
    np.testing.assert_array_equal(before[0], layer.table)
    assert np.abs(before[1] - layer.value_dense.kernel).max() > 0.0


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_table_keeps_full_precision_in_half(kind):
    """Logits near 8 would be 0.004 off, and weights that much of their own."""
    layer = make(f"{kind}_synthesizer", dtype="mixed_float16")
    weights = weights_of(layer, np.zeros((1, 17, F), "float32"))[0]
    assert weights.dtype == "float16"
    for head in range(7):
        expected = pattern(kind, head, 17)
        # One rounding, to float16.
        np.testing.assert_allclose(
            weights[head].astype("float64"), expected, rtol=6e-4, atol=3e-6
        )


def test_large_logits_of_padding_do_not_count(rng):
    layer = make("random_synthesizer")
    table = np.asarray(layer.table).copy()
    table[:, :, 4:] += 60.0
    layer.table.assign(table)
    assert_equals_naive("random_synthesizer", layer, inputs(rng), padding())


# The local dense Synthesizer.


def local_weights(x, context, mask=None, **kwargs):
    """Each position's logit is its number, whatever the frame."""
    layer = build(
        "local_dense_synthesizer",
        1,
        num_heads=1,
        key_dim=1,
        context_size=context,
        **kwargs,
    )
    assert layer.context_kernel.shape == (1, 1, context)
    assert layer.context_bias.shape == (1, context)
    layer.context_kernel.assign(np.zeros((1, 1, context)))
    layer.context_bias.assign(np.log(np.arange(1, context + 1))[None])
    return weights_of(layer, np.zeros((1, x, 1), "float32"), mask)[0, 0]


def test_an_odd_context_looks_as_far_to_both_sides():
    expected = np.array(
        [[2, 3, 0, 0], [1, 2, 3, 0], [0, 1, 2, 3], [0, 0, 1, 2]]
    )
    np.testing.assert_allclose(local_weights(4, 3), expected / 6, atol=1e-6)


def test_an_even_context_looks_further_back():
    expected = np.array(
        [[3, 4, 0, 0], [2, 3, 4, 0], [1, 2, 3, 4], [0, 1, 2, 3]]
    )
    np.testing.assert_allclose(local_weights(4, 4), expected / 10, atol=1e-6)


def test_a_causal_context_ends_at_its_frame():
    expected = np.array(
        [[3, 0, 0, 0], [2, 3, 0, 0], [1, 2, 3, 0], [0, 1, 2, 3]]
    )
    found = local_weights(4, 3, causal=True)
    np.testing.assert_allclose(found, expected / 6, atol=1e-6)


def test_renormalised_edges_share_among_what_is_there():
    expected = np.array(
        [[2, 3, 0, 0], [1, 2, 3, 0], [0, 1, 2, 3], [0, 0, 1, 2]]
    )
    expected = expected / expected.sum(axis=1, keepdims=True)
    found = local_weights(4, 3, edges="renorm")
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_padding_inside_a_context_counts_as_an_edge():
    mask = np.array([[True, False, True, True]])
    lost = np.array([[2, 0, 0, 0], [1, 0, 3, 0], [0, 0, 2, 3], [0, 0, 1, 2]])
    found = local_weights(4, 3, mask)
    np.testing.assert_allclose(found, lost / 6, atol=1e-6)
    shared = lost / lost.sum(axis=1, keepdims=True)
    found = local_weights(4, 3, mask, edges="renorm")
    np.testing.assert_allclose(found, shared, atol=1e-6)


def test_local_synthesizer_weights_have_these_shapes():
    layer = make("local_dense_synthesizer")
    assert layer.hidden_dense.kernel.shape == (F, H * D)
    assert layer.context_kernel.shape == (H, D, 5)
    assert layer.context_bias.shape == (H, 5)


@pytest.mark.parametrize("length", [31, 32, 33, 67])
def test_local_synthesizer_across_blocks(length, rng):
    for kwargs in (
        {"context_size": 5},
        {"context_size": 40, "edges": "renorm"},
        {"context_size": 35, "causal": True},
    ):
        layer = make("local_dense_synthesizer", num_heads=2, **kwargs)
        x = inputs(rng, length)
        mask = rng.random((B, length)) < 0.8
        for chosen in (None, mask):
            assert_equals_naive("local_dense_synthesizer", layer, x, chosen)
