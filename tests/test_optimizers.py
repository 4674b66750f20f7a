"""LAMB and its schedule against loops in float64, on either backend."""

import itertools
import json

import keras
import numpy as np
import pytest
import tiny
from keras import ops

from audio_tf import attention
from audio_tf.models import AudioClassifier
from audio_tf.ops import weights
from audio_tf.optimizers import (
    BIAS_CORRECTIONS,
    PRETRAINING,
    Lamb,
    WarmupLinearDecay,
    create,
)

SHAPES = {"kernel": (7, 5), "bias": (5,), "gamma": (3,), "table": (2, 11, 3)}
RATE = 0.1


def tensors(rng):
    """Weights by name, a bias of zeros among them."""
    weights = {
        name: rng.normal(size=shape).astype("float32")
        for name, shape in SHAPES.items()
    }
    return {**weights, "bias": np.zeros(5, "float32")}


def some_gradients(rng, steps):
    """For each step, gradients; the table's are as small as epsilons."""
    scales = {"kernel": 3.0, "bias": 0.2, "gamma": 1.0, "table": 1e-7}
    return [
        {
            name: (scales[name] * rng.normal(size=shape)).astype("float32")
            for name, shape in SHAPES.items()
        }
        for _ in range(steps)
    ]


def naive_lamb(
    weights,
    gradients,
    rates,
    epsilon=1e-8,
    weight_decay=0.01,
    trust_ratio=True,
    bias_correction=None,
    clip=None,
    beta_1=0.9,
    beta_2=0.999,
    undecayed=("bias", "gamma"),
):
    """LAMB as s3prl has it, one tensor after the other."""
    weights = {k: np.asarray(w, "float64") for k, w in weights.items()}
    moments = {k: (np.zeros(w.shape),) * 2 for k, w in weights.items()}
    for step, (gradient, rate) in enumerate(
        zip(gradients, rates, strict=True), start=1
    ):
        gradient = {k: g.astype("float64") for k, g in gradient.items()}
        length = np.sqrt(sum((g**2).sum() for g in gradient.values()))
        shrink = 1.0 if clip is None else min(1.0, clip / length)
        c_1, c_2 = 1.0 - beta_1**step, 1.0 - beta_2**step
        for name, w in weights.items():
            g = gradient[name] * shrink
            m, v = moments[name]
            m = beta_1 * m + (1.0 - beta_1) * g
            v = beta_2 * v + (1.0 - beta_2) * g**2
            moments[name] = m, v
            factor = 1.0
            if bias_correction == "moments":
                m, v = m / c_1, v / c_2
            elif bias_correction == "step_size":
                factor = np.sqrt(c_2) / c_1
            u = m / (np.sqrt(v) + epsilon)
            if weight_decay and name not in undecayed:
                u = u + weight_decay * w
            size, update_size = np.linalg.norm(w), np.linalg.norm(u)
            if trust_ratio and size > 0.0 and update_size > 0.0:
                factor = factor * size / update_size
            weights[name] = w - rate * factor * u
    return weights


def variables_of(weights):
    return {k: keras.Variable(w, name=k) for k, w in weights.items()}


def apply(optimizer, variables, gradients):
    """Runs all steps, and gives the weights by name."""
    for gradient in gradients:
        optimizer.apply(
            [ops.convert_to_tensor(gradient[name]) for name in variables],
            list(variables.values()),
        )
    return {k: ops.convert_to_numpy(v) for k, v in variables.items()}


def assert_close(weights, expected, rtol=1e-5, atol=1e-6):
    assert weights.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(
            weights[name], expected[name], rtol, atol, err_msg=name
        )


def small_model(jit_compile=False, **kwargs):
    """A model that trains in a compiled graph or, faster, without any."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.layers.Input((7,)),
            keras.layers.Dense(5, activation="gelu"),
            keras.layers.LayerNormalization(),
            keras.layers.Dense(3),
        ]
    )
    model.compile(
        Lamb(**kwargs),
        "mse",
        jit_compile=jit_compile,
        run_eagerly=not jit_compile,
    )
    return model


def batches(rng, count):
    return [
        (
            rng.normal(size=(11, 7)).astype("float32"),
            rng.normal(size=(11, 3)).astype("float32"),
        )
        for _ in range(count)
    ]


def update_once(model, rng):
    """Trains until a step counts: the first scales may be too large."""
    ((x, y),) = batches(rng, 1)
    for _ in range(5):
        if int(model.optimizer.iterations) == 0:
            model.train_on_batch(x, y)
    assert int(model.optimizer.iterations) == 1
    return x, y


@pytest.mark.parametrize(
    "trust_ratio, bias_correction, weight_decay, clip",
    list(
        itertools.product(
            [True, False], BIAS_CORRECTIONS, [None, 0.3], [None, 2.0]
        )
    ),
)
def test_steps_are_those_of_the_naive_loop(
    trust_ratio, bias_correction, weight_decay, clip, rng
):
    weights, gradients = tensors(rng), some_gradients(rng, 7)
    reading = {
        "trust_ratio": trust_ratio,
        "bias_correction": bias_correction,
        "weight_decay": weight_decay,
    }
    optimizer = Lamb(RATE, global_clipnorm=clip, **reading)
    outputs = apply(optimizer, variables_of(weights), gradients)
    expected = naive_lamb(weights, gradients, [RATE] * 7, clip=clip, **reading)
    assert_close(outputs, expected)
    assert np.abs(expected["bias"]).min() > 0.0
    for name, w in weights.items():
        assert np.abs(expected[name] - w).max() > 0.01


@pytest.mark.parametrize("name", PRETRAINING)
def test_both_readings_of_the_papers(name, rng):
    weights, gradients = tensors(rng), some_gradients(rng, 5)
    outputs = apply(create(name, RATE), variables_of(weights), gradients)
    reading = {
        "lamb": {"epsilon": 1e-8},
        "adamw": {
            "epsilon": 1e-9,
            "trust_ratio": False,
            "bias_correction": "step_size",
        },
    }[name]
    assert_close(outputs, naive_lamb(weights, gradients, [RATE] * 5, **reading))
    assert create(name).get_config()["weight_decay"] == 0.01
    assert create(name).get_config()["learning_rate"] == pytest.approx(5e-5)


def test_create_lets_arguments_win_and_names_what_it_knows():
    optimizer = create("adamw", RATE, epsilon=0.5, name="mine")
    assert optimizer.epsilon == 0.5 and optimizer.name == "mine"
    with pytest.raises(ValueError, match=r"'adamw', 'lamb'.*Received: 'sgd'"):
        create("sgd")


def test_defaults_are_s3prls_lamb(rng):
    weights, gradients = tensors(rng), some_gradients(rng, 3)
    expected = apply(create("lamb"), variables_of(weights), gradients)
    assert_close(apply(Lamb(), variables_of(weights), gradients), expected, 0)


def test_each_tensor_moves_by_its_own_norm(rng):
    weights, gradients = tensors(rng), some_gradients(rng, 1)
    optimizer = Lamb(RATE, weight_decay=0.3)
    outputs = apply(optimizer, variables_of(weights), gradients)
    for name in ("kernel", "gamma", "table"):
        moved = np.linalg.norm(outputs[name] - weights[name])
        expected = RATE * np.linalg.norm(weights[name])
        np.testing.assert_allclose(moved, expected, 1e-5)


def test_parts_of_a_weight_move_by_their_own_norms(rng):
    """A table of two maps takes the steps of two tensors, one each."""
    scales = np.array([16.0, 0.02], "float32").reshape(2, 1, 1)
    table = scales * rng.normal(size=(2, 11, 3)).astype("float32")
    gradients = [rng.normal(size=table.shape).astype("float32")] * 3
    maps = {f"map_{head}": table[head] for head in range(2)}
    expected = naive_lamb(
        maps,
        [{f"map_{h}": g[h] for h in range(2)} for g in gradients],
        [RATE] * 3,
    )
    for axis in (0, 2):
        # The same parts, wherever they stand.
        variable = keras.Variable(np.moveaxis(table, 0, axis), name="table")
        weights.declare_parts(variable, axis)
        optimizer = Lamb(RATE)
        for gradient in gradients:
            moved = np.moveaxis(gradient, 0, axis)
            optimizer.apply([ops.convert_to_tensor(moved)], [variable])
        outputs = np.moveaxis(ops.convert_to_numpy(variable), axis, 0)
        for head in range(2):
            np.testing.assert_allclose(
                outputs[head], expected[f"map_{head}"], 1e-4, 1e-6
            )


def test_heads_of_a_synthesizers_table_are_parts(rng, tmp_path):
    """Crafted heads do not set the pace of random ones, loaded or not."""
    layer = attention.create(
        "crafted_synthesizer", num_heads=11, key_dim=3, max_length=7
    )
    inputs = keras.Input((7, 5))
    model = keras.Model(inputs, layer(inputs))
    path = str(tmp_path / "model.keras")
    model.save(path)
    loaded = keras.saving.load_model(path).layers[-1]
    for table in (layer.table, loaded.table):
        before = ops.convert_to_numpy(table)
        gradient = rng.normal(size=before.shape).astype("float32")
        Lamb(RATE).apply([ops.convert_to_tensor(gradient)], [table])
        moved = ops.convert_to_numpy(table) - before
        for head in range(11):
            np.testing.assert_allclose(
                np.linalg.norm(moved[head]),
                RATE * np.linalg.norm(before[head]),
                1e-4,
            )


@pytest.mark.parametrize("trust_ratio", [True, False])
def test_zero_weights_and_zero_gradients_stay_where_they_are(trust_ratio):
    zeros = {"kernel": np.zeros((3, 2), "float32")}
    optimizer = Lamb(RATE, trust_ratio=trust_ratio)
    outputs = apply(optimizer, variables_of(zeros), [zeros] * 2)
    np.testing.assert_array_equal(outputs["kernel"], 0.0)


def test_weights_decay_once(rng):
    weights = tensors(rng)
    nothing = {k: np.zeros(s, "float32") for k, s in SHAPES.items()}
    optimizer = Lamb(RATE, weight_decay=0.3, trust_ratio=False)
    outputs = apply(optimizer, variables_of(weights), [nothing])
    for name, w in weights.items():
        kept = 1.0 if name in ("bias", "gamma") else 1.0 - RATE * 0.3
        np.testing.assert_allclose(outputs[name], kept * w, 1e-6)


def test_names_of_layers_exclude_nothing():
    dense = keras.layers.Dense(3, name="beta_bias_gamma")
    dense.build((None, 5))
    norm = keras.layers.LayerNormalization(name="kernel")
    norm.build((None, 5))
    variables = [*dense.trainable_variables, *norm.trainable_variables]
    optimizer = Lamb(RATE, weight_decay=0.3, trust_ratio=False)
    before = [ops.convert_to_numpy(v) for v in variables]
    optimizer.apply([ops.zeros(v.shape) for v in variables], variables)
    kept = dict(zip(["kernel", "bias", "gamma", "beta"], [0.97, 1, 1, 1]))
    for old, variable in zip(before, variables, strict=True):
        new = ops.convert_to_numpy(variable)
        np.testing.assert_allclose(new, kept[variable.name] * old, 1e-6)


def test_other_names_may_be_excluded_and_are_saved(rng):
    weights, gradients = tensors(rng), some_gradients(rng, 3)
    first = Lamb(RATE, weight_decay=0.3, exclude_from_weight_decay=["tab"])
    again = Lamb.from_config(first.get_config())
    later = Lamb(RATE, weight_decay=0.3)
    later.exclude_from_weight_decay(var_names=["tab"])
    expected = naive_lamb(
        weights,
        gradients,
        [RATE] * 3,
        weight_decay=0.3,
        undecayed=("table",),
    )
    for optimizer in (first, again, Lamb.from_config(later.get_config())):
        outputs = apply(optimizer, variables_of(weights), gradients)
        assert_close(outputs, expected)
    with pytest.raises(ValueError, match="before .* built.*Received: .*'x'"):
        first.exclude_from_weight_decay(var_names=["x"])


def test_variables_that_are_excluded_are_so_once_they_are_loaded(tmp_path):
    """By their gradients of 0, weights move by their decay alone."""
    model = AudioClassifier(tiny.backbone(), num_classes=2)
    optimizer = Lamb(0.1, weight_decay=0.3, trust_ratio=False)
    optimizer.exclude_from_weight_decay(var_list=[model.output_dense.kernel])
    model.compile(optimizer, "mse")
    model.save(tmp_path / "begun.keras")
    again = keras.saving.load_model(tmp_path / "begun.keras")
    for each in (model, again):
        trained = each.trainable_variables
        each.optimizer.build(trained)
        before = [ops.convert_to_numpy(variable) for variable in trained]
        still = [ops.zeros(variable.shape) for variable in trained]
        each.optimizer.apply(still)
        for old, variable in zip(before, trained, strict=True):
            kept = 1.0 if variable is each.output_dense.kernel else 0.97
            new = ops.convert_to_numpy(variable)
            np.testing.assert_allclose(new, kept * old, rtol=1e-5)
    strange = Lamb.from_config(optimizer.get_config())
    with pytest.raises(ValueError, match="`exclude_from_.*predictions/kernel"):
        strange.build([*variables_of({"table": np.zeros(3)}).values()])


def test_some_variables_learn_faster(rng):
    """As if theirs were the optimizer's rate; the others as ever."""
    weights, gradients = tensors(rng), some_gradients(rng, 3)
    optimizer = Lamb(RATE, rate_factors={"kernel": 4.0, "bias": 0.5})
    optimizer = Lamb.from_config(optimizer.get_config())
    outputs = apply(optimizer, variables_of(weights), gradients)
    for name, factor in {"kernel": 4.0, "bias": 0.5, "table": 1.0}.items():
        expected = naive_lamb(weights, gradients, [factor * RATE] * 3)
        assert_close({name: outputs[name]}, {name: expected[name]})
    optimizer = Lamb(RATE, rate_factors={"kernle": 4.0})
    with pytest.raises(ValueError, match=r"\['kernle'\], which none"):
        optimizer.build([*variables_of(weights).values()])


def test_accumulated_gradients_are_one_step_with_their_mean(rng):
    weights, gradients = tensors(rng), some_gradients(rng, 9)
    settings = {
        "weight_decay": 0.3,
        "bias_correction": "moments",
        "global_clipnorm": 2.0,
    }
    means = [
        {k: np.mean([g[k] for g in gradients[i : i + 3]], 0) for k in SHAPES}
        for i in (0, 3, 6)
    ]
    expected = apply(Lamb(RATE, **settings), variables_of(weights), means)
    optimizer = Lamb(RATE, gradient_accumulation_steps=3, **settings)
    variables = variables_of(weights)
    still = apply(optimizer, variables, gradients[:2])
    assert_close(still, weights, rtol=0, atol=0)
    assert_close(apply(optimizer, variables, gradients[2:]), expected)
    # Updates here; the schedule below counts batches.
    assert int(optimizer.iterations) == 3


@pytest.mark.parametrize("accumulated", [None, 3])
@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_averages_of_weights_have_no_bias(momentum, accumulated, rng):
    weights, gradients = tensors(rng), some_gradients(rng, 7)
    optimizer = Lamb(
        RATE,
        use_ema=True,
        ema_momentum=momentum,
        gradient_accumulation_steps=accumulated,
    )
    variables = variables_of(weights)
    passed = [apply(optimizer, variables, [each]) for each in gradients]
    # Each step's weights, by how long ago it was.
    shares = np.array([momentum**age for age in range(len(passed))][::-1])
    expected = {
        name: np.average([each[name] for each in passed], 0, shares)
        for name in SHAPES
    }
    optimizer.finalize_variable_values([*variables.values()])
    outputs = {k: ops.convert_to_numpy(v) for k, v in variables.items()}
    assert_close(outputs, expected)
    assert np.abs(outputs["kernel"] - passed[0]["kernel"]).max() > RATE / 100


@pytest.mark.parametrize("accumulated", [None, 3])
def test_schedules_rule_and_count_updates(accumulated, rng):
    """The k-th update has the k-th rate, however many batches it is of."""
    weights, gradients = tensors(rng), some_gradients(rng, 1)
    schedule = WarmupLinearDecay(RATE, 13, 5, accumulated)
    optimizer = Lamb(
        schedule, trust_ratio=False, gradient_accumulation_steps=accumulated
    )
    rates = np.array([0, 1 / 5, 2 / 5, 3 / 5, 4 / 5, 1, 7 / 8]) * RATE
    batches = gradients * len(rates) * (accumulated or 1)
    outputs = apply(optimizer, variables_of(weights), batches)
    expected = naive_lamb(
        weights, gradients * len(rates), rates, trust_ratio=False
    )
    assert_close(outputs, expected)


@pytest.mark.long
@pytest.mark.parametrize("jit_compile", [False, True])
def test_saved_in_mid_training_it_goes_on_as_if_unbroken(
    jit_compile, rng, tmp_path
):
    data = batches(rng, 7)
    kwargs = {
        "learning_rate": WarmupLinearDecay(0.1, 11, 3),
        "weight_decay": 0.3,
        "bias_correction": "moments",
        "gradient_accumulation_steps": 2,
        "jit_compile": jit_compile,
    }
    unbroken = small_model(**kwargs)
    start = unbroken.get_weights()
    for x, y in data[:3]:
        unbroken.train_on_batch(x, y)
    path = str(tmp_path / "model.keras")
    unbroken.save(path)
    loaded = keras.saving.load_model(path)
    assert type(loaded.optimizer) is Lamb
    for x, y in data[3:]:
        unbroken.train_on_batch(x, y)
        loaded.train_on_batch(x, y)
    for w, expected, first in zip(
        loaded.get_weights(), unbroken.get_weights(), start, strict=True
    ):
        np.testing.assert_allclose(w, expected, 1e-5, 1e-6)
        assert np.abs(expected - first).max() > 0.01
    variables = zip(
        loaded.optimizer.variables, unbroken.optimizer.variables, strict=True
    )
    for v, expected in variables:
        np.testing.assert_allclose(
            ops.convert_to_numpy(v), ops.convert_to_numpy(expected), 1e-4, 1e-6
        )


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_moves_weights_by_their_norms(policy, rng):
    keras.mixed_precision.set_global_policy(policy)
    model = small_model(learning_rate=RATE, weight_decay=0.3)
    scales = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scales == (policy == "mixed_float16")
    before = {v.path: v.numpy() for v in model.trainable_variables}
    update_once(model, rng)
    for v in model.trainable_variables:
        assert v.dtype == "float32"
        if v.name in ("kernel", "gamma"):
            moved = np.linalg.norm(v.numpy() - before[v.path])
            expected = RATE * np.linalg.norm(before[v.path])
            np.testing.assert_allclose(moved, expected, 1e-4)


def test_what_is_not_finite_skips_a_step_under_loss_scaling(rng):
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = small_model(learning_rate=RATE)
    x, y = update_once(model, rng)
    before = model.get_weights()
    model.train_on_batch(np.full_like(x, np.inf), y)
    for w, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(w, expected)
    assert int(model.optimizer.iterations) == 1


def test_norms_of_float16_weights_are_of_float32():
    # 307 * 311 squares of 1 exceed 65504.
    ones = np.ones((307, 311), "float16")
    variable = keras.Variable(ones, dtype="float16", name="kernel")
    optimizer = Lamb(0.25, weight_decay=None)
    optimizer.apply([ops.convert_to_tensor(ones)], [variable])
    np.testing.assert_allclose(ops.convert_to_numpy(variable), 0.75, 1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_moments_and_averages_of_half_weights_are_of_float32(dtype, rng):
    """The squares of these gradients are 0 in float16, and a thousandth of
    them, or of a distance, moves nothing in bfloat16."""
    steps, momentum = 300, 0.999
    gradients = rng.normal(1e-4, 2e-5, (steps, 5)).astype("float32")
    variable = keras.Variable(np.full(5, 0.5), dtype=dtype, name="kernel")
    optimizer = create(
        "adamw",
        1e-3,
        weight_decay=None,
        use_ema=True,
        ema_momentum=momentum,
    )
    m, v, average, total = 0.0, 0.0, 0.0, 0.0
    for step, gradient in enumerate(gradients, start=1):
        gradient = ops.cast(ops.convert_to_tensor(gradient), dtype)
        optimizer.apply([gradient], [variable])
        taken = float64(gradient)
        m = 0.9 * m + 0.1 * taken
        v = 0.999 * v + 0.001 * taken**2
        average = momentum * average + float64(variable)
        total = momentum * total + 1.0
    (velocity,), (mean,) = (
        optimizer.velocities,
        optimizer._model_variables_moving_average,
    )
    np.testing.assert_allclose(float64(optimizer.momentums[0]), m, 1e-4)
    np.testing.assert_allclose(float64(velocity), v, 1e-4)
    np.testing.assert_allclose(float64(mean), average / total, 1e-4)
    # Adam's steps are of about the rate, whatever the gradient is.
    assert np.all(np.abs(float64(variable) - 0.5) < 2 * steps * 1e-3)
    optimizer.finalize_variable_values([variable])
    np.testing.assert_allclose(float64(variable), average / total, 1e-2)


def float64(x):
    return np.float64(ops.convert_to_numpy(ops.cast(x, "float32")))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_half_weights_are_accumulated(dtype):
    variable = keras.Variable(np.full(3, 0.5), dtype=dtype, name="kernel")
    optimizer = create("adamw", 0.25, gradient_accumulation_steps=2)
    for _ in range(2):
        gradient = ops.cast(ops.convert_to_tensor(np.ones(3)), dtype)
        optimizer.apply([gradient], [variable])
    np.testing.assert_allclose(float64(optimizer.momentums[0]), 0.1, 1e-2)
    assert np.all(float64(variable) < 0.5)


def test_rows_taken_twice_have_the_gradient_of_both(rng):
    tokens = np.array([[1, 1, 4], [4, 1, 2]])
    model = keras.Sequential([keras.layers.Embedding(7, 5)])
    model.build((None, 3))
    model.compile(Lamb(RATE, weight_decay=0.3), "mse", jit_compile=False)
    (table,) = model.get_weights()
    targets = rng.normal(size=(2, 3, 5)).astype("float32")
    gradient = np.zeros_like(table)
    np.add.at(gradient, tokens, 2.0 * (table[tokens] - targets) / targets.size)
    expected = naive_lamb(
        {"table": table}, [{"table": gradient}], [RATE], weight_decay=0.3
    )
    model.train_on_batch(tokens, targets)
    np.testing.assert_allclose(
        model.get_weights()[0], expected["table"], 1e-5, 1e-6
    )


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="JAX alone applies statelessly"
)
@pytest.mark.parametrize("accumulated", [None, 2])
def test_stateless_steps_under_jit_are_the_stateful_ones(accumulated, rng):
    import jax

    weights, gradients = tensors(rng), some_gradients(rng, 6)
    settings = {
        "weight_decay": 0.3,
        "bias_correction": "step_size",
        "gradient_accumulation_steps": accumulated,
    }
    expected = apply(Lamb(RATE, **settings), variables_of(weights), gradients)
    optimizer, variables = Lamb(RATE, **settings), variables_of(weights)
    optimizer.build(list(variables.values()))
    state = [v.value for v in optimizer.variables]
    values = [v.value for v in variables.values()]
    step = jax.jit(optimizer.stateless_apply)
    for gradient in gradients:
        values, state = step(state, list(gradient.values()), values)
    assert_close(dict(zip(weights, values, strict=True)), expected)
    assert_close(
        {k: v.numpy() for k, v in variables.items()}, weights, rtol=0, atol=0
    )


def test_config_survives_keras_serialization():
    optimizer = Lamb(
        WarmupLinearDecay(3e-4, 101, 7, 2),
        beta_1=0.8,
        beta_2=0.99,
        epsilon=1e-5,
        weight_decay=0.2,
        trust_ratio=False,
        bias_correction="moments",
        exclude_from_weight_decay=("a", "b"),
        global_clipnorm=3.0,
        gradient_accumulation_steps=2,
        name="mine",
    )
    config = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    again = keras.optimizers.deserialize(config)
    # Keras has a `Lamb` of its own.
    assert type(again) is Lamb
    assert again.get_config() == optimizer.get_config()
    assert again.get_config()["beta_1"] == 0.8
    schedule = again._learning_rate
    assert type(schedule) is WarmupLinearDecay
    assert schedule.get_config() == {
        "peak_learning_rate": 3e-4,
        "total_steps": 101,
        "warmup_steps": 7,
        "gradient_accumulation_steps": 2,
    }


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"beta_1": 1.0}, "Received: beta_1=1.0, beta_2=0.999"),
        ({"beta_2": 0.0}, "Received: beta_1=0.9, beta_2=0.0"),
        ({"epsilon": -1.0}, "Received: epsilon=-1.0, weight_decay=0.01"),
        ({"weight_decay": -1.0}, "Received: epsilon=1e-08, weight_decay=-1.0"),
        ({"bias_correction": True}, "Received: bias_correction=True"),
        ({"trust_ratio": "no"}, "Received: trust_ratio='no'"),
        (
            {"exclude_from_weight_decay": "bias"},
            "Received: exclude_from_weight_decay='bias'",
        ),
        ({"epsilon": float("nan")}, "Received: epsilon=nan"),
        ({"rate_factors": {"a": 0.0}}, "Received: 0.0 for 'a'"),
    ],
)
def test_arguments_out_of_range(kwargs, message):
    with pytest.raises(ValueError) as error:
        Lamb(**kwargs)
    assert message in str(error.value)


def test_unknown_arguments_and_names_are_named():
    with pytest.raises(TypeError, match="'trust'; did you mean 'trust_ratio'"):
        Lamb(trust=1)
    with pytest.raises(TypeError, match="did you mean 'global_clipnorm'"):
        create("lamb", global_clip_norm=1.0)
    with pytest.raises(ValueError, match="did you mean 'adamw'.*'adam'"):
        create("adam")


@pytest.mark.parametrize(
    "step, rate",
    [
        (0, 0.0),
        (1, 0.5),
        (2, 1.0),
        (3, 1.5),
        (4, 2.0),
        (5, 1.8),
        (9, 1.0),
        (13, 0.2),
        (14, 0.0),
        (15, 0.0),
        (999, 0.0),
    ],
)
def test_schedule_by_hand(step, rate):
    schedule = WarmupLinearDecay(2.0, total_steps=14, warmup_steps=4)
    output = schedule(ops.convert_to_tensor(step))
    assert keras.backend.standardize_dtype(output.dtype) == "float32"
    np.testing.assert_allclose(ops.convert_to_numpy(output), rate, 1e-6)


def test_rates_of_a_run_sum_to_half_as_many_peaks():
    """Of one source, the rise and the fall leave out neither end.

    The rise sums to `(w - 1) / 2` and the fall to `(T - w + 1) / 2`.
    """
    for total, warmup in ((100, 10), (17, 1), (13, 0)):
        schedule = WarmupLinearDecay(3.0, total, warmup)
        rates = [float(schedule(step)) for step in range(total)]
        peaks = total / 2 + (0.5 if warmup == 0 else 0.0)
        assert sum(rates) == pytest.approx(3.0 * peaks)


def test_schedule_without_and_with_the_authors_warm_up():
    schedule = WarmupLinearDecay(2.0, total_steps=10, warmup_steps=0)
    rates = [float(schedule(step)) for step in range(11)]
    np.testing.assert_allclose(rates, np.arange(10, -1, -1) / 5, 1e-6)
    assert WarmupLinearDecay(2.0, 500_009).warmup_steps == 50_000


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0.0, 10), "Received: peak_learning_rate=0.0"),
        ((float("nan"), 10), "Received: peak_learning_rate=nan"),
        ((1.0, 10, 10), "Received: warmup_steps=10, total_steps=10"),
        ((1.0, 10, -1), "Received: warmup_steps=-1, total_steps=10"),
        ((1.0, 0), "Received: warmup_steps=0, total_steps=0"),
        ((1.0, 10, 2.5), "Received: warmup_steps=2.5, total_steps=10"),
        ((1.0, 10.0, 2), "Received: warmup_steps=2, total_steps=10.0"),
        ((1.0, "10"), "Received: warmup_steps=None, total_steps='10'"),
        ((1.0, 10, 2, 0), "Received: gradient_accumulation_steps=0"),
    ],
)
def test_schedule_arguments_out_of_range(arguments, message):
    with pytest.raises(ValueError) as error:
        WarmupLinearDecay(*arguments)
    assert message in str(error.value)
