"""Every attention equals its naive reference, whatever the sizes."""

import hypothesis
import naive
import numpy as np
import pytest
from attention_cases import (
    MECHANISMS,
    SIBLINGS,
    F,
    assert_equals_naive,
    shaken,
)
from hypothesis import strategies as st

from audio_tf import attention

# Each of hundreds of shapes is compiled anew on JAX.
pytestmark = pytest.mark.one_backend

LONGEST = 40

sizes = st.integers(1, LONGEST + 3)


@st.composite
def sparse(draw):
    return {
        "num_heads": draw(st.integers(2, 5)),
        "stride": draw(sizes),
        "shared_qk": draw(st.booleans()),
        "literal_mask": draw(st.booleans()),
    }


@st.composite
def strided(draw):
    return draw(sparse()) | {"window": draw(st.none() | sizes)}


@st.composite
def fixed(draw):
    options = draw(sparse())
    columns = st.integers(1, options["stride"])
    return options | {"num_columns": draw(columns)}


@st.composite
def grouped(draw):
    groups = draw(st.integers(1, 3))
    return {
        "num_heads": groups * draw(st.integers(1, 3)),
        "num_key_value_heads": groups,
    }


def hashed(**kwargs):
    return st.fixed_dictionaries(
        {
            "num_candidates": sizes,
            "shared_qk": st.booleans(),
            "require_match": st.booleans(),
            "literal_mask": st.booleans(),
            "seed": st.integers(0, 9),
            **kwargs,
        }
    )


longer = st.integers(LONGEST, LONGEST + 3)
dense = st.fixed_dictionaries(
    {"max_length": longer, "intermediate_dim": st.integers(1, 5)}
)
random = st.fixed_dictionaries(
    {
        "max_length": longer,
        "num_heads": st.integers(1, 9),
        "pattern_logits": st.sampled_from(["log", "scaled"]),
    }
)

OPTIONS = {
    "full": st.just({}),
    "shared_qk": st.fixed_dictionaries(
        {"normalize_keys": st.booleans(), "mask_self": st.booleans()}
    ),
    "grouped_query": grouped(),
    "sparse_strided": strided(),
    "sparse_fixed": fixed(),
    "sign_alsh": hashed(
        num_powers=st.integers(1, 4), norm_bound=st.floats(0.3, 0.95)
    ),
    "xbox": hashed(),
    "xbox_qnf": hashed(),
    "simple_lsh": hashed(),
    "simple_alsh": hashed(),
    "dense_synthesizer": dense,
    "dense_synthesizer_per_head": dense,
    "random_synthesizer": random,
    "crafted_synthesizer": random,
    "raganato_synthesizer": random,
    "gated_relative": st.fixed_dictionaries(
        {
            "num_heads": st.sampled_from(
                [n for n in (1, 2, 3, 4) if F % n == 0]
            ),
            "num_buckets": st.sampled_from([8, 16]),
            "max_distance": st.integers(5, 12),
        }
    ),
    "local_dense_synthesizer": st.fixed_dictionaries(
        {"context_size": sizes, "edges": st.sampled_from(["zero", "renorm"])}
    ),
}


@st.composite
def masks(draw, batch, length):
    """None, real frames first, or any frames at all."""
    kind = draw(st.sampled_from(["all", "padding", "gaps"]))
    if kind == "all":
        return None
    if kind == "padding":
        real = [draw(st.integers(0, length)) for _ in range(batch)]
        return np.arange(length) < np.array(real)[:, None]
    row = st.lists(st.booleans(), min_size=length, max_size=length)
    return np.array([draw(row) for _ in range(batch)], bool)


@st.composite
def cases(draw, name):
    """A layer with weights as after training, its input and mask."""
    attention_class = attention.find(name)
    options = {
        "num_heads": draw(st.integers(1, 4)),
        "key_dim": draw(st.integers(1, 7)),
        "use_bias": draw(st.booleans()),
        "causal": attention_class.supports_causal and draw(st.booleans()),
    }
    layer = attention.create(name, **options | draw(OPTIONS[name]))
    layer.build((None, None, F))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    shaken(layer, rng, 0.3)
    batch, length = draw(st.integers(1, 2)), draw(st.integers(1, LONGEST))
    x = rng.standard_normal((batch, length, F)).astype("float32")
    return layer, x, draw(masks(batch, length))


def is_clear(name, layer, x, mask):
    """Whether every choice by hash is out of reach of rounding."""
    found = naive.hashes(layer, x, mask, naive.HASHES[name])
    for b in range(len(x)):
        real = slice(None) if mask is None else mask[b]
        queries, keys = found[0, b][:, real], found[1, b][:, real]
        order = np.sort(keys, axis=1)
        near = [np.abs(queries), np.abs(keys) if layer.require_match else 1.0]
        count = layer.num_candidates
        if count < order.shape[1]:
            for ranked in (order, order[:, ::-1]):
                near.append(np.abs(ranked[:, count] - ranked[:, count - 1]))
        if any(np.min(gap, initial=1.0) < 1e-3 for gap in near):
            return False
    return True


@pytest.mark.costly
@pytest.mark.parametrize("name", MECHANISMS)
def test_equals_naive_whatever_the_sizes(name):
    @hypothesis.settings(
        # Of code that mechanisms share, the sizes are tried with the others.
        max_examples=4 if name in SIBLINGS else 11,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    @hypothesis.given(cases(name))
    def equals_naive(case):
        layer, x, mask = case
        if name in naive.HASHES:
            hypothesis.assume(is_clear(name, layer, x, mask))
        assert_equals_naive(name, layer, x, mask, atol=2e-5)

    equals_naive()
