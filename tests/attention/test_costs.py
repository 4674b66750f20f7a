"""The cost model, against what is in the graph."""

import functools
import math

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("counts the operations of a graph", allow_module_level=True)

import tensorflow as tf
from attention_cases import SIBLINGS

from audio_tf import attention
from audio_tf.attention.costs import paper_cost

# No length is a multiple of a block.
LENGTHS = (53, 101)
DIM, HEADS = 24, 4


def layer_of(name, length, **kwargs):
    common = {"num_heads": HEADS, "key_dim": DIM // HEADS, "causal": False}
    return attention.create(name, max_length=length, **{**common, **kwargs})


def operations(layer, length, training):
    """All operations of one call, with the gradients if it is training."""
    if not layer.built:
        layer.build((1, length, DIM))

    @tf.function
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(layer(x)))
        if not training:
            return y
        return tape.gradient(
            y, [x, *(w.value for w in layer.trainable_weights)]
        )

    graph = run.get_concrete_function(
        tf.TensorSpec((1, length, DIM), tf.float32)
    ).graph
    return graph.get_operations()


@functools.cache
def traced(name, length, training):
    """A layer, and the operations of one call of it."""
    layer = layer_of(name, length)
    return layer, operations(layer, length, training)


def multiply_adds(operations):
    total = 0
    for op in operations:
        if op.type == "MatMul":
            inner = op.inputs[0].shape[0 if op.get_attr("transpose_a") else 1]
        elif op.type == "BatchMatMulV2":
            inner = op.inputs[0].shape[-2 if op.get_attr("adj_x") else -1]
        else:
            assert op.type not in ("Einsum", "BatchMatMul", "Conv2D"), op.type
            continue
        total += op.outputs[0].shape.num_elements() * inner
    return total


@pytest.mark.costly
@pytest.mark.parametrize(
    ("name", "training"),
    [
        *((name, False) for name in attention.ATTENTIONS),
        *(
            pytest.param(
                name, True, marks=[pytest.mark.slow] * (name in SIBLINGS)
            )
            for name in attention.ATTENTIONS
        ),
    ],
)
def test_multiply_adds_are_those_of_the_graph(name, training):
    # Gradients are products of the same sizes: one length will do.
    for length in LENGTHS[training:]:
        layer, graph = traced(name, length, training)
        found = multiply_adds(graph)
        assert layer.cost(length, DIM, training).multiply_adds == found


@pytest.mark.parametrize("name", attention.ATTENTIONS)
def test_weight_bytes_are_those_of_the_graph(name):
    gaussian = attention.find(name).map_kind == "features"
    for length in LENGTHS:
        layer, graph = traced(name, length, False)
        found = sum(
            4 * op.outputs[0].shape.num_elements()
            for op in graph
            if op.type == "Softmax" or (gaussian and op.type == "Exp")
        )
        assert layer.cost(length, DIM).weight_bytes == found


@pytest.mark.parametrize("option", [{"causal": True}, {"shared_qk": False}])
@pytest.mark.parametrize("name", ["sparse_strided", "sparse_fixed"])
def test_options_are_counted(name, option):
    layer = layer_of(name, 53, **option)
    found = multiply_adds(operations(layer, 53, training=False))
    assert layer.cost(53, DIM).multiply_adds == found


def test_a_folded_table_forms_no_weights():
    layer = layer_of("crafted_synthesizer", 53)
    layer.build((1, 53, DIM))
    layer.fold()
    kinds = {op.type for op in operations(layer, 53, training=False)}
    assert "Softmax" not in kinds
    assert layer.cost(53, DIM).weight_bytes == 0


@pytest.mark.parametrize("name", attention.ATTENTIONS)
def test_growth_is_that_of_the_complexity(name):
    """Without projections: what is left grows with the stated power of L."""
    powers = {"L^2": 2.0, "L^1.5": 1.5}
    stated = attention.find(name).complexity
    power = next((p for part, p in powers.items() if part in stated), 1.0)
    lengths = (64**2, 4 * 64**2)

    def work(length):
        layer = layer_of(name, length)
        cost = layer.cost(length, DIM)
        return max(cost.weight_bytes, 1)

    growth = math.log(work(lengths[1]) / work(lengths[0]), 4)
    assert growth == pytest.approx(power, abs=0.1)


# By hand from Table 1 of arXiv 2006.05174: L 500, D 768, H 12, C 16, N 16.
BY_HAND = {
    "full": (3_768_000, 7_536_000),
    "shared_qk": (3_384_000, 6_768_000),
    "sparse_strided": (585_246, 1_170_492),
    "sparse_fixed": (518_164, 1_036_328),
    "xbox": (3_483_000, 3_963_000),
    "dense_synthesizer": (258_000, 516_000),
    "dense_synthesizer_per_head": (3_096_000, 6_192_000),
    "random_synthesizer": (0, 3_000_000),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_papers_table(name):
    inference, training = BY_HAND[name]
    assert paper_cost(name, 500) == pytest.approx(inference, abs=1)
    assert paper_cost(name, 500, training=True) == pytest.approx(
        training, abs=1
    )


def test_the_papers_table_lacks_what_came_later():
    assert paper_cost("local_dense_synthesizer", 500) is None
    assert paper_cost("sign_alsh", 500) == paper_cost("simple_alsh", 500)
    assert paper_cost("crafted_synthesizer", 500) == 0.0
    assert paper_cost("raganato_synthesizer", 500, training=True) == 3e6
