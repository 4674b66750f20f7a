"""The contract that every attention of the table keeps.

Each check runs for every entry, and on an attention made here, which is a
class, an entry and a naive reference and nothing else.
"""

import inspect

import keras
import naive
import numpy as np
import pytest
from attention_cases import (
    CASES,
    DISTINCT,
    REFERENCES,
    SIBLINGS,
    B,
    D,
    F,
    H,
    T,
    alike_are_slow,
    any_padding,
    assert_equal_where_real,
    assert_equals_naive,
    causal_choices,
    compiled,
    fresh,
    gradients,
    inputs,
    make,
    mechanism_of,
    options,
    padding,
    reference,
    shaken,
    silent_and_loud,
    tolerance,
)
from keras import ops

from audio_tf import attention, models
from audio_tf.layers import TransformerBlock
from audio_tf.ops import masks
from audio_tf.ops.checks import check_sizes

CONTRACT = []


def every(check):
    """A check of the contract: it takes the `name` of a case."""
    CONTRACT.append(check)
    return pytest.mark.parametrize("name", CASES)(check)


def every_kind(check):
    """A check of the contract that is slow where another case is alike."""
    CONTRACT.append(check)
    return pytest.mark.parametrize("name", alike_are_slow(CASES))(check)


def every_graph(check):
    """A check of the contract that is slow where shapes are another case's."""
    CONTRACT.append(check)
    names = alike_are_slow(CASES, SIBLINGS)
    return pytest.mark.parametrize("name", names)(check)


def side_by_side(check):
    """A check of the contract that takes the `names` of cases, all at once.

    To store one model of all takes less than one of each.
    """
    CONTRACT.append(check)
    return pytest.mark.parametrize("names", [CASES], ids=["all"])(check)


def in_one_graph(check):
    """A check as those side by side, slow but for one graph of each kind."""
    CONTRACT.append(check)
    return pytest.mark.parametrize(
        "names",
        [
            pytest.param(DISTINCT, id="distinct"),
            pytest.param(CASES, id="all", marks=pytest.mark.slow),
        ],
    )(check)


def numpy(x):
    return ops.convert_to_numpy(ops.cast(x, "float32"))


def assert_close(found, expected, atol):
    np.testing.assert_allclose(numpy(found), numpy(expected), atol=atol)


def block_of(name, **kwargs):
    """The attention in a transformer block, where it fits the residual."""
    own = {**options(name), "hidden_dim": None}
    if "hidden_dim" not in options(name):
        del own["hidden_dim"]
    if own.get("num_query_heads") == 4:
        own["num_query_heads"], own["num_key_value_heads"] = 3, 1
    block = TransformerBlock(
        H,
        D,
        (11,),
        attention=mechanism_of(name),
        attention_kwargs=own,
        **kwargs,
    )
    block.build((None, None, F))
    return block


def test_every_entry_has_a_naive_reference():
    assert set(REFERENCES) == set(attention.ATTENTIONS)


@every
def test_equals_naive(name, rng):
    for causal in causal_choices(name):
        layer = shaken(make(name, causal=causal), rng, 0.1)
        assert_equals_naive(name, layer, inputs(rng), None)
        mask = any_padding()
        assert_equals_naive(name, layer, inputs(rng, batch=len(mask)), mask)


@every
@pytest.mark.one_backend
def test_gradients_equal_naive_differences(name, rng):
    """Against central differences of the naive reference in float64.

    Along random directions, in which the input and each weight have so long
    a step that each moves the loss alike.
    """
    step = 2.0**-12
    for causal in causal_choices(name):
        layer = shaken(make(name, causal=causal), rng, 0.1)
        x, mask = inputs(rng), padding()
        _, found = gradients(layer, x, mask)
        start = [x, *(np.asarray(w).copy() for w in layer.trainable_weights)]
        for _ in range(3):
            directions = [
                rng.standard_normal(g.shape) / max(1.0, np.linalg.norm(g))
                for g in found
            ]
            ends, losses = [], []
            for sign in (1, -1):
                moved, *weights = [
                    (value + sign * step * direction).astype("float32")
                    for value, direction in zip(start, directions, strict=True)
                ]
                for weight, value in zip(
                    layer.trainable_weights, weights, strict=True
                ):
                    weight.assign(value)
                y, _ = reference(name)(layer, moved, mask)
                losses.append((y[mask] ** 2).sum())
                ends.append([moved, *weights])
            # Of the steps as float32 has them.
            expected = sum(
                np.sum(gradient * (up.astype("float64") - down))
                for gradient, up, down in zip(found, *ends, strict=True)
            )
            assert abs(losses[0] - losses[1] - expected) < 2e-3 * 2 * step
        for weight, value in zip(
            layer.trainable_weights, start[1:], strict=True
        ):
            weight.assign(value)


@every
def test_every_weight_has_a_gradient(name, rng):
    """At its start too: a weight must be able to leave it."""
    for by in (0.0, 0.2):
        layer = shaken(make(name), rng, by)
        _, found = gradients(layer, inputs(rng), padding())
        weights = layer.trainable_weights
        for weight, gradient in zip(weights, found[1:], strict=True):
            # A key bias adds the same score to all keys: softmax is blind.
            if not weight.path.endswith("key/bias"):
                assert np.abs(gradient).max() > 1e-6, weight.path


@every
def test_padding_changes_nothing(name, rng):
    """Neither the frames, nor the map, nor a gradient, whatever it holds."""
    silent, loud, mask = silent_and_loud(rng, (1e3, -1e30, np.inf, np.nan))
    for causal in causal_choices(name):
        layer = make(name, causal=causal)
        alone = layer(silent[1:, :4])
        expected = layer(silent, mask=mask, return_attention_scores=True)
        assert_close(expected[0][1:, :4], alone, tolerance(name))
        found = layer(loud, mask=mask, return_attention_scores=True)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(numpy(one), numpy(other))
        _, slopes = gradients(layer, silent, mask)
        assert np.all(slopes[0][~mask] == 0.0)
        _, found = gradients(layer, loud, mask)
        for one, other in zip(slopes, found, strict=True):
            np.testing.assert_array_equal(one, other)


def assert_junk_changes_nothing(layer, silent, loud, mask):
    np.testing.assert_array_equal(
        numpy(layer(loud, mask=mask)), numpy(layer(silent, mask=mask))
    )
    # So that no gradient is rightly beyond float16.
    _, slopes = gradients(layer, silent, mask, scale=0.003)
    _, found = gradients(layer, loud, mask, scale=0.003)
    for one, other in zip(slopes, found, strict=True):
        assert np.all(np.isfinite(one))
        np.testing.assert_array_equal(one, other)


@every
@pytest.mark.one_backend
def test_padding_changes_nothing_in_half_precision(name, rng):
    """Behind four frames, and in clips of nothing else."""
    junk = (6e4, np.inf, np.nan)
    assert_junk_changes_nothing(
        make(name, dtype="mixed_float16"),
        *silent_and_loud(rng, junk, scale=30.0, real=(4, 0)),
    )


@every
@pytest.mark.one_backend
def test_padding_changes_nothing_in_a_block(name, rng):
    """Norms, feed-forward and residual included."""
    silent, loud, mask = silent_and_loud(rng, (1e30, np.nan))
    block = block_of(name)
    np.testing.assert_array_equal(
        numpy(block(loud, mask=mask)), numpy(block(silent, mask=mask))
    )
    block = block_of(name, dtype="mixed_float16")
    assert_junk_changes_nothing(block, silent, loud, mask)


@every
def test_a_clip_does_not_see_the_others(name, rng):
    layer, x = make(name), inputs(rng, batch=3)
    mask = padding(real=(T, 4, 6))
    together = numpy(layer(x, mask=mask))
    for b in range(3):
        alone = layer(x[b : b + 1], mask=mask[b : b + 1])
        assert_close(alone, together[b : b + 1], tolerance(name))


@every
def test_empty_clip_attends_to_nothing(name, rng):
    for causal in causal_choices(name):
        layer, x = shaken(make(name, causal=causal), rng), inputs(rng)
        mask = padding(real=(T, 0))
        y, weights = layer(x, mask=mask, return_attention_scores=True)
        assert np.all(numpy(weights)[1] == 0.0)
        assert np.any(numpy(weights)[0] != 0.0)
        # The same for every frame: no trace of what lies there.
        assert np.all(numpy(y)[1] == numpy(y)[1, 0])


EMPTY = ((0, T), (2, 0), (0, 0))


@every
def test_nothing_gives_nothing(name, rng):
    """No clips, as the last batch of a filtered dataset, and no frames."""
    for causal in causal_choices(name):
        layer = make(name, causal=causal)
        for batch, length in EMPTY:
            x = inputs(rng, length, batch)
            expected = layer.compute_output_spec(
                keras.KerasTensor(x.shape), return_attention_scores=True
            )
            assert layer.compute_output_shape(x.shape) == expected[0].shape
            for mask in (None, np.ones((batch, length), bool)):
                found = layer(x, mask=mask, return_attention_scores=True)
                assert [tuple(each.shape) for each in found] == [
                    each.shape for each in expected
                ]
            for gradient in gradients(layer, x, mask)[1]:
                assert gradient is None or np.all(np.isfinite(gradient))


@pytest.mark.costly
@in_one_graph
def test_nothing_gives_nothing_in_a_graph(names, rng):
    """An empty batch, where neither size is known before run time."""
    for name in names:
        layer = make(name, causal=causal_choices(name)[-1])
        call = compiled(layer, signature=True, by_xla=False)
        x = inputs(rng, batch=0)
        found = call(x, np.ones(x.shape[:2], bool))
        expected = layer.compute_output_spec(keras.KerasTensor(x.shape))
        assert tuple(found.shape) == expected.shape, name


@every
def test_causality_is_as_declared(name, rng):
    """Declared against behaviour, also where a mechanism says it cannot."""
    can = fresh(name).supports_causal
    assert fresh(name, causal=None).causal is can
    if not can:
        with pytest.raises(ValueError, match="cannot be causal.*Received"):
            fresh(name, causal=True)
    for causal in causal_choices(name):
        layer, x = shaken(make(name, causal=causal), rng, 0.2), inputs(rng)
        # Not from one call: with the map, it is another program of JAX.
        before = layer(x)
        _, weights = layer(x, return_attention_scores=True)
        # The second is a score that no finite mask of -1e9 would exclude.
        for future in (x[:, 4:] + 1.0, 1e12 * x[:, 4:]):
            moved = np.concatenate([x[:, :4], future], axis=1)
            change = np.abs(numpy(before) - numpy(layer(moved)))
            assert change[:, 4:].max() > 0.0
            if causal:
                assert np.all(change[:, :4] == 0.0)
        if causal:
            if layer.map_kind == "frames":
                assert np.all(np.triu(numpy(weights), 1) == 0.0)
        elif not can:
            assert change[:, :4].max() > 1e-5


@every
def test_the_last_frames_are_the_end_of_all(name, rng):
    x = inputs(rng)
    with pytest.raises(ValueError, match="looks ahead.*Received"):
        make(name).call_last(x, 1)
    if not fresh(name).supports_causal:
        return
    layer = shaken(make(name, causal=True), rng, 0.2)
    whole = numpy(layer(x))
    for count in (1, 3, T):
        last = numpy(layer.call_last(x, count))
        np.testing.assert_allclose(
            last, whole[:, T - count :], atol=tolerance(name)
        )


@every
def test_the_map_is_of_its_kind(name, rng):
    layer, x = make(name), inputs(rng)
    shapes = {
        "frames": (B, layer.num_heads, T, T),
        "features": (B, T, F),
    }
    for mask in (None, padding()):
        y, weights = layer(x, mask=mask, return_attention_scores=True)
        np.testing.assert_allclose(
            numpy(y), numpy(layer(x, mask=mask)), atol=1e-5
        )
        assert tuple(weights.shape) == shapes[layer.map_kind]
        if layer.map_kind == "frames":
            value_heads = layer.value_dense.units // layer.key_dim
            expected = naive.mixed(layer, x, numpy(weights), value_heads)
            np.testing.assert_allclose(numpy(y), expected, atol=5e-6)


@every
def test_symbolic_and_eager_specs_agree(name, rng):
    for dtype in ("float32", "mixed_bfloat16"):
        layer = make(name, dtype=dtype)
        eager = layer(inputs(rng), return_attention_scores=True)
        assert tuple(eager[0].shape) == (B, T, layer.output_dim(F))
        for shape in ((None, None, F), (B, T, F)):
            symbolic = keras.KerasTensor(shape)
            specs = layer(symbolic, return_attention_scores=True)
            assert layer(symbolic).shape == specs[0].shape
            for spec, tensor in zip(specs, eager, strict=True):
                known = {B: shape[0], T: shape[1]}
                wanted = tuple(known.get(n, n) for n in tensor.shape)
                assert tuple(spec.shape) == wanted
                dtype = keras.backend.standardize_dtype(tensor.dtype)
                assert spec.dtype == dtype == layer.compute_dtype


def model_of(layers):
    """A model of `[x, mask]`: of each layer its output with and without it."""
    x, mask = keras.Input((None, F)), keras.Input((None,), dtype="bool")
    pairs = [(layer(x, mask=mask), layer(x)) for layer in layers]
    return keras.Model([x, mask], [y for pair in pairs for y in pair])


def stored_graph(model, folder):
    """The model as a SavedModel that knows neither batch nor length.

    `model.export` would trace the model four times.
    """
    import tensorflow as tf

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None, F)),
            tf.TensorSpec((None, None), "bool"),
        ]
    )
    def serve(x, mask):
        outputs = enumerate(model([x, mask]))
        return {f"{index:03}": output for index, output in outputs}

    module = tf.Module()
    module.held = [variable.value for variable in model.variables]
    module.serve = serve.get_concrete_function()
    tf.saved_model.save(module, folder, module.serve)
    return tf.saved_model.load(folder).serve


@pytest.mark.costly
@in_one_graph
def test_exported_with_any_batch_and_length(names, rng, tmp_path):
    """One graph that knows neither equals the naive references."""
    layers = [
        shaken(make(name, causal=causal_choices(name)[-1]), rng, 0.1)
        for name in names
    ]
    model = model_of(layers)
    if keras.backend.backend() == "tensorflow":
        serve = stored_graph(model, tmp_path / "saved")
    for batch, length in ((1, 1), (2, 3), (3, 5), (2, 11), (1, 17)):
        x = inputs(rng, length, batch)
        mask = padding(length, [length, (length + 1) // 2, 0][:batch])
        if keras.backend.backend() == "tensorflow":
            found = serve(x=x, mask=mask)
            outputs = iter([found[key] for key in sorted(found)])
        else:
            outputs = iter(model.predict_on_batch([x, mask]))
        for name, layer in zip(names, layers, strict=True):
            for real in (mask, None):
                expected, _ = reference(name)(layer, x, real)
                assert_equal_where_real(
                    next(outputs), expected, real, tolerance(name), name
                )


@pytest.mark.costly
@every_graph
def test_compiled_takes_any_batch_and_length(name, rng):
    """A form of two sizes, or two forms of one each: to compile is slow."""
    forms = causal_choices(name)
    functions = [
        (layer, compiled(layer, signature=True))
        for layer in (make(name, causal=causal) for causal in reversed(forms))
    ]
    for index, real in enumerate([(11, 4), (1, 0, 1)]):
        layer, function = functions[index % len(forms)]
        length = max(real)
        x, mask = inputs(rng, length, len(real)), padding(length, real)
        expected, _ = reference(name)(layer, x, mask)
        found = function(x, mask)
        assert_equal_where_real(found, expected, mask, tolerance(name))


@every
def test_features_must_be_known_to_build(name):
    for shape in ((None, None, None), (B, T, None)):
        message = r"known number of features.*Received: shape=\(.*None\)"
        with pytest.raises(ValueError, match=message):
            fresh(name).build(shape)
        with pytest.raises(ValueError, match=message):
            fresh(name)(keras.KerasTensor(shape))


@every_graph
@pytest.mark.one_backend
def test_a_graph_need_not_know_the_features(name, rng):
    import tensorflow as tf

    layer, x = make(name), inputs(rng)
    graph = tf.function(layer, input_signature=[tf.TensorSpec([None] * 3)])
    assert_equal_where_real(graph(x), layer(x), None)


@every
def test_config_is_complete(name):
    arguments = {"dropout": 0.25, "causal": causal_choices(name)[-1]}
    others = {"use_bias": False, "kernel_initializer": "he_normal"}
    if fresh(name).takes_kernel_initializer:
        arguments.update(others)
    layer = make(name, **arguments)
    assert naive.missing_from_config(layer) == []
    config = layer.get_config()
    revived = type(layer).from_config(config)
    assert type(revived) is type(layer)
    assert revived.get_config() == config
    arguments.pop("kernel_initializer", None)
    for argument, value in {**options(name), **arguments}.items():
        assert config[argument] == getattr(revived, argument) == value


@every
def test_a_block_keeps_its_attention(name):
    """By a name that JSON holds, given the name or the class."""
    block = block_of(name, made_for_frames=T, causal=None, dropout=0.1)
    assert block.attention_name == mechanism_of(name)
    assert block.causal is fresh(name).supports_causal
    config = block.get_config()
    assert config["causal"] is None and config["made_for_frames"] == T
    revived = TransformerBlock.from_config(config)
    assert revived.get_config() == config
    assert revived.attention.get_config() == block.attention.get_config()
    found = attention.find(mechanism_of(name))
    by_class = TransformerBlock(6, D, (7,), attention=found)
    assert attention.find(by_class.attention_name) is found


@every
def test_projections_take_bias_and_initializer(name, rng):
    layer = fresh(name, kernel_initializer="ones")
    assert layer.takes_kernel_initializer == hasattr(layer, "use_bias")
    if not layer.takes_kernel_initializer:
        return
    layer.build((None, None, F))
    kernels = [w for w in layer.weights if w.path.endswith("/kernel")]
    assert len(kernels) >= 2
    for kernel in kernels:
        assert np.all(numpy(kernel) == 1.0), kernel.path
    layer = make(name, use_bias=False)
    assert not any("bias" in weight.path for weight in layer.weights)
    assert_equals_naive(name, layer, inputs(rng), padding())


@every
def test_an_initializer_may_be_a_function(name):
    """Keras takes one, in a layer and for all projections of a block."""

    def thirds(shape, dtype=None):
        return ops.full(shape, 1 / 3, dtype)

    layer = fresh(name, kernel_initializer=thirds)
    layer.build((None, None, F))
    block = block_of(name, kernel_initializer=thirds)
    weights = [*layer.weights, *block.weights]
    kernels = [w for w in weights if w.path.endswith("kernel")]
    assert len(kernels) >= 2
    for kernel in kernels:
        np.testing.assert_array_equal(kernel, np.float32(1 / 3), kernel.path)


@every
def test_integers_are_taken_for_floats(name, rng):
    """A Gaussian map of integers had been rounded to zeros."""
    layer, mask = make(name), padding()
    x = np.round(3.0 * inputs(rng))
    found, expected = (
        layer(each, mask=mask, return_attention_scores=True)
        for each in (x.astype("int32"), x)
    )
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(numpy(one), numpy(other))


@every
def test_dropout_acts_in_training_only(name, rng):
    layer, x = make(name, dropout=0.5), inputs(rng)
    plain, weights = layer(x, training=False, return_attention_scores=True)
    np.testing.assert_allclose(numpy(plain), numpy(layer(x)), atol=1e-5)
    dropped, same = layer(x, training=True, return_attention_scores=True)
    assert np.abs(numpy(plain) - numpy(dropped)).max() > 1e-3
    np.testing.assert_allclose(numpy(weights), numpy(same), atol=1e-6)


@every_kind
def test_dropout_keeps_the_mean(name, rng):
    """Over many copies of one clip, each with weights dropped of its own.

    Where one table serves all clips of a batch, so does what is dropped.
    Beyond a softmax or a norm of what was dropped, no mean is kept.
    """
    if hasattr(fresh(name), "hidden_dim"):
        return
    layer, x = make(name, dropout=0.3), inputs(rng, batch=1)
    if layer.foldable:
        dropped = [numpy(layer(x, training=True))[0] for _ in range(61)]
    else:
        dropped = numpy(layer(np.repeat(x, 499, axis=0), training=True))
    dropped = np.asarray(dropped)
    error = dropped.std(axis=0) / np.sqrt(len(dropped))
    difference = np.abs(dropped.mean(axis=0) - numpy(layer(x))[0])
    assert np.median(error) > 1e-4
    assert np.all(difference < 6.0 * error + 1e-3)


@every
def test_half_precision_is_close(name, rng):
    layer = make(name)
    if mechanism_of(name) in naive.HASHES:
        # Chosen keys jump where two are close: no luck of a backend's draws.
        for weight in layer.weights:
            drawn = rng.standard_normal(weight.shape).astype("float32")
            weight.assign(np.std(numpy(weight.value)) * drawn)
    for dtype, step in (("float16", 4e-3), ("bfloat16", 4e-2)):
        half = make(name, dtype=f"mixed_{dtype}")
        half.set_weights(layer.get_weights())
        # What half precision can hold, or the inputs alone would differ.
        x = numpy(ops.cast(ops.cast(inputs(rng), dtype), "float32"))
        x[1, 4:] = 1e3
        y, mask = half(x, mask=padding()), padding()
        assert keras.backend.standardize_dtype(y.dtype) == dtype
        wanted = numpy(layer(x, mask=mask))
        atol = step * max(1.0, np.abs(wanted[mask]).max())
        assert_equal_where_real(numpy(y), wanted, mask, atol)


@pytest.mark.costly
@in_one_graph
def test_one_step_of_training_moves_weights(names, rng):
    layers = [make(name) for name in names]
    x = keras.Input((None, F))
    outputs = keras.layers.Concatenate()([layer(x) for layer in layers])
    model = keras.Model(x, outputs)
    model.compile(keras.optimizers.SGD(1.0), "mse")
    before = [layer.get_weights() for layer in layers]
    model.train_on_batch(inputs(rng), np.zeros((B, T, outputs.shape[-1])))
    for name, layer, start in zip(names, layers, before, strict=True):
        trainable = {w.path for w in layer.trainable_weights}
        weights = zip(layer.weights, start, layer.get_weights(), strict=True)
        for weight, old, new in weights:
            moved = np.abs(new - old).max() > 0.0
            if not weight.path.endswith("key/bias"):
                assert moved == (weight.path in trainable), (name, weight.path)


@pytest.mark.costly
@side_by_side
def test_saved_and_loaded(names, rng, tmp_path):
    layers = [shaken(make(name, dropout=0.1), rng) for name in names]
    for name, layer in zip(names, layers, strict=True):
        paths = [weight.path for weight in layer.weights]
        assert len(set(paths)) == len(paths), name
    model = model_of(layers)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    data = [inputs(rng), padding()]
    pairs = zip(model(data), loaded(data), strict=True)
    for index, (one, other) in enumerate(pairs):
        np.testing.assert_array_equal(
            numpy(one), numpy(other), err_msg=names[index // 2]
        )


@every
def test_sizes_fit_a_longest_input(name, rng):
    """What has a length has that of the longest input, unless told."""
    mechanism = mechanism_of(name)
    for length in (4, 40):
        sizes = attention.find(mechanism).sizes_for(length)
        own = {k: v for k, v in options(name).items() if k not in sizes}
        given = {"num_heads": H, "key_dim": D, "max_length": length, **own}
        layer = attention.create(mechanism, **given)
        for argument, size in sizes.items():
            assert layer.get_config()[argument] == size
        assert layer.max_length in (None, length)
        assert layer(inputs(rng, length)).shape[:2] == (B, length)
    told = attention.create(mechanism, **{**given, **dict.fromkeys(sizes, 5)})
    assert all(told.get_config()[argument] == 5 for argument in sizes)
    with pytest.raises(ValueError, match="`max_length`.*Received"):
        attention.create(mechanism, **{**given, "max_length": 0})


@every
def test_longer_than_max_length_is_refused(name, rng):
    layer = make(name)
    if layer.max_length is None:
        assert layer(inputs(rng, 41)).shape[:2] == (B, 41)
        return
    assert layer(inputs(rng, 17)).shape == (B, 17, F)
    message = "max_length=17.*Received: .*18"
    for given in (inputs(rng, 18), keras.KerasTensor((None, 18, F))):
        with pytest.raises(ValueError, match=message):
            layer(given)
    with pytest.raises(ValueError, match=message):
        fresh(name).build((None, 18, F))


@every
def test_wrong_arguments_are_named(name):
    """Out of range, of another kind, or of another shape."""
    wrong = [
        {"num_heads": 0},
        {"num_heads": 2.0},
        {"num_heads": "8"},
        {"num_heads": True},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"dropout": "x"},
        {"dropout": None},
        {"causal": "yes"},
        {"max_length": 2.5},
    ]
    if fresh(name).takes_key_dim:
        wrong += [{"key_dim": -1}, {"key_dim": "5"}]
        with pytest.raises(TypeError, match="needs `key_dim`"):
            attention.create(mechanism_of(name), num_heads=H)
    # Whatever else it takes is a bool, a number, or a name of something.
    config = fresh(name).get_config()
    for argument, value in config.items():
        if isinstance(value, bool) and argument not in ("trainable", "causal"):
            wrong.append({argument: "yes"})
        elif isinstance(value, (int, float)) and argument not in (
            "num_heads",
            "key_dim",
            "dropout",
            "trainable",
            "causal",
        ):
            wrong += [{argument: "x"}, {argument: 2.5}]
    for given in wrong:
        argument = list(given)[0]
        if given == {argument: 2.5} and isinstance(config.get(argument), float):
            continue
        with pytest.raises(ValueError, match=f"`{argument}`.*Received"):
            fresh(name, **given)
    with pytest.raises(ValueError, match="batch, time, dim.*Received"):
        make(name)(np.zeros((B, F), "float32"))


@every
def test_unknown_arguments_name_the_nearest(name):
    mechanism = mechanism_of(name)
    with pytest.raises(TypeError, match="'droput'; did you mean 'dropout'"):
        fresh(name, droput=0.1)
    with pytest.raises(TypeError, match=f"attention='{mechanism}' takes no.*"):
        TransformerBlock(
            H, D, attention=mechanism, attention_kwargs={"dropuot": 0.1}
        )
    # What `create` takes for all, a block's own arguments are not.
    known = fresh(name).get_config()
    for argument in {"key_dim", "max_length"} - set(known):
        with pytest.raises(TypeError, match=f"takes no argument '{argument}'"):
            TransformerBlock(
                H, D, attention=mechanism, attention_kwargs={argument: 3}
            )


@pytest.mark.parametrize("argument", ["dtype", "name"])
def test_arguments_that_a_model_gives_its_layers_are_said_to_be_its_own(
    argument,
):
    given = {"use_bias": False, argument: "float32"}
    message = f"attention='.*' takes no argument '{argument}' of its own"
    for make_one in (
        lambda: TransformerBlock(H, D, attention_kwargs=given),
        lambda: models.GaussianAdaptiveDecoder(
            6, 8, 3, module="mha", attention_kwargs=given
        ),
    ):
        with pytest.raises(TypeError, match=message):
            make_one()


def test_an_argument_of_others_is_said_to_be_theirs():
    """The nearest name of one's own, `trainable`, has nothing to do with it."""
    given = {"stride": 3}
    for make_one in (
        lambda: attention.create("full", num_heads=H, key_dim=D, **given),
        lambda: attention.by_block("hybrid_local", given, 2),
        lambda: TransformerBlock(
            H, D, attention="full", attention_kwargs=given
        ),
    ):
        with pytest.raises(TypeError, match="'stride'; others take it: 'spar"):
            make_one()


def near(length, radius):
    positions = ops.arange(length)
    return (
        ops.abs(ops.expand_dims(positions, 0) - ops.expand_dims(positions, 1))
        <= radius
    )


@keras.saving.register_keras_serializable("audio_tf_tests")
class WindowAttention(attention.SelfAttention):
    """A new mechanism: frames at most `radius` away."""

    complexity = "O(L^2 D)"

    def __init__(self, num_heads, key_dim, radius=2, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        check_sizes(radius=radius)
        self.radius = radius

    @classmethod
    def sizes_for(cls, length):
        return {"radius": length}

    def score_mask(self, length):
        return masks.combine(
            super().score_mask(length), near(length, self.radius)
        )

    def get_config(self):
        return {**super().get_config(), "radius": self.radius}


def window_attention(layer, x, mask=None):
    """The naive reference of the new mechanism."""
    query, key = naive.query_and_key(layer, x)

    def head_scores(b, h, real):
        q, k = (naive.head(v[b], h, layer.key_dim) for v in (query, key))
        return lambda i, seen: {
            j: q[i] @ k[j] / np.sqrt(layer.key_dim)
            for j in seen
            if abs(i - j) <= layer.radius
        }

    return naive.attend(layer, x, mask, head_scores)


def of_contract(check):
    """A check of the contract with the marks that leave it out."""
    marks = [
        mark
        for mark in getattr(check, "pytestmark", [])
        if mark.name == "one_backend"
    ]
    return pytest.param(check, id=check.__name__, marks=marks)


@pytest.mark.parametrize("check", [*map(of_contract, CONTRACT)])
def test_a_new_attention_is_a_class_an_entry_and_a_reference(
    check, monkeypatch, request
):
    monkeypatch.setitem(attention.ATTENTIONS, "window", WindowAttention)
    monkeypatch.setitem(REFERENCES, "window", window_attention)
    case = {"name": "window", "names": ["window"]}
    given = {
        argument: case.get(argument) or request.getfixturevalue(argument)
        for argument in inspect.signature(check).parameters
    }
    check(**given)


def test_what_cannot_be_causal_is_this():
    """A mechanism that says so itself has been asked too little."""
    over_time = ["gaussian_adaptive", "grouped_query_gaussian_adaptive"]
    over_time += ["skewed_gaussian", "bi_skewed_gaussian"]
    cannot = {
        name for name in attention.ATTENTIONS if not fresh(name).supports_causal
    }
    assert cannot == {*naive.HASHES, *over_time}


@every
def test_a_mask_of_other_clips_is_refused(name):
    layer, x = make(name), np.zeros((1, 6, F), "float32")
    for shape in (2, 6), (1, 5):
        with pytest.raises(ValueError, match="a mask of shape"):
            layer(x, mask=np.ones(shape, bool))


def test_a_mixture_is_for_models():
    with pytest.raises(ValueError, match="blocks of a model.*'hybrid_local'"):
        attention.create("hybrid_local", num_heads=H, key_dim=3)


def test_a_class_without_a_name_is_for_layers_alone():
    class Unregistered(attention.FullAttention):
        pass

    attention.create(Unregistered, num_heads=H, key_dim=3)
    with pytest.raises(ValueError, match="register.*=Unregistered without it"):
        attention.name_of(Unregistered)
    with pytest.raises(ValueError, match="register.*=Unregistered without it"):
        TransformerBlock(H, D, attention=Unregistered)


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="'full'.*Received: .*'fulll'"):
        attention.create("fulll", num_heads=1, key_dim=1)


def test_what_is_no_attention_is_refused():
    """It would not say what it is capable of."""
    for wrong in (keras.layers.Dense, "Dense", object, None, 3):
        with pytest.raises(ValueError, match="subclass .*Received: attention"):
            TransformerBlock(H, D, attention=wrong)
    with pytest.raises(TypeError, match="`attention_kwargs` must be a dict"):
        TransformerBlock(H, D, attention_kwargs="stride=3")


def test_a_name_is_not_contradicted():
    with pytest.raises(ValueError, match="`patterns` must be 'crafted', for"):
        attention.create(
            "crafted_synthesizer", num_heads=1, key_dim=1, patterns="raganato"
        )


def test_a_block_refuses_what_does_not_fit_its_residual():
    block = TransformerBlock(
        4,
        attention="grouped_query_gaussian_adaptive",
        attention_kwargs={"hidden_dim": 44},
    )
    with pytest.raises(ValueError, match="Received: 12 features, and 44 from"):
        block.build((None, None, 12))


def test_keras_name_is_free():
    assert make("full", name="mine").name == "mine"


def test_softmax_is_rounded_once(rng):
    """To half precision, from float32 at least: to half a unit, 2^-11."""
    scores = 3.0 * rng.standard_normal((7, 41))
    scores = scores.astype("float16")
    weights = attention.functional.softmax_weights(
        ops.convert_to_tensor(scores)
    )
    assert keras.backend.standardize_dtype(weights.dtype) == "float16"
    expected = np.exp(scores.astype("float64"))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.asarray(weights, np.float64), expected, rtol=2.0**-11, atol=1e-7
    )


@pytest.mark.filterwarnings("error:.*softmax")
def test_a_frame_alone_has_all_the_weight():
    """Without Keras' warning that this is not what one wants."""
    scores = np.array([[[-5.0]], [[1e30]], [[np.nan]]], "float32")
    for mask in (None, np.array([[[True]], [[False]], [[True]]])):
        weights = numpy(
            attention.functional.softmax_weights(
                ops.convert_to_tensor(scores), mask
            )
        )
        np.testing.assert_array_equal(weights.ravel(), [1.0, 1.0, np.nan])


@every
@pytest.mark.filterwarnings("error:.*softmax")
def test_a_clip_of_one_frame_gives_no_warning(name, rng):
    make(name)(inputs(rng, 1), mask=np.ones((B, 1), bool))


def test_softmax_sums_in_float32():
    """A float16 sum of 4096 equal terms stops at 2048 times one of them."""
    scores = ops.zeros((1, 4099), "float16")
    weights = attention.functional.softmax_weights(scores)
    np.testing.assert_allclose(
        np.asarray(weights, np.float64).sum(), 1.0, atol=1e-3
    )


def test_a_row_without_keys_mixes_to_zero():
    mask = np.array([[True, False, True], [False] * 3])
    mixed = attention.functional.mix(
        ops.zeros((2, 3)), ops.convert_to_tensor([[2.0], [64.0], [4.0]]), mask
    )
    np.testing.assert_array_equal(mixed, [[3.0], [0.0]])


def test_the_mask_of_keras_is_taken_and_passed_on(rng):
    x = inputs(rng)
    x[1, 4:] = 0.0
    layer = make("full")
    masked = keras.layers.Masking()(x)
    y = layer(masked)
    np.testing.assert_array_equal(y, layer(x, mask=padding()))
    np.testing.assert_array_equal(y._keras_mask, padding())
