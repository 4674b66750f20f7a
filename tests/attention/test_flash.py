"""Attentions by a kernel of the device, whose work Keras does here."""

import keras
import numpy as np
import pytest
from attention_cases import (
    D,
    F,
    T,
    any_padding,
    assert_equals_naive,
    causal_choices,
    inputs,
    make,
)
from keras import ops

from audio_tf import attention, compat

CASES = [
    ("full", {}),
    ("shared_qk", {}),
    ("shared_qk", {"normalize_keys": True}),
    ("grouped_query", {"num_key_value_heads": 1}),
    ("grouped_query", {"num_key_value_heads": 3}),
]
each = pytest.mark.parametrize("name, kwargs", CASES)


@pytest.fixture
def kernel(monkeypatch):
    """A device that has the kernel; the list of the masks that it was given.

    As cuDNN's, it takes masks of all pairs, for an even number of frames.
    """
    masks, plain = [], ops.dot_product_attention

    def attend(query, key, value, mask, is_causal, flash_attention):
        assert flash_attention
        if mask is not None:
            shape = tuple(ops.shape(mask))
            assert shape[1:] == (1, query.shape[1], key.shape[1])
            assert query.shape[1] % 2 == 0
        masks.append(mask)
        group = query.shape[2] // key.shape[2]
        return plain(
            query,
            # Keras on TensorFlow knows no shared keys.
            ops.repeat(key, group, axis=2),
            ops.repeat(value, group, axis=2),
            mask=mask,
            is_causal=is_causal,
            flash_attention=False,
        )

    monkeypatch.setattr(compat, "has_flash_attention", lambda *_: True)
    monkeypatch.setattr(ops, "dot_product_attention", attend)
    return masks


@each
def test_the_kernel_gives_what_the_map_gives(name, kwargs, kernel, rng):
    assert T % 2
    for causal in causal_choices(name):
        layer = make(name, causal=causal, **kwargs)
        for mask in (None, any_padding()):
            x = inputs(rng, batch=2 if mask is None else len(mask))
            assert_equals_naive(name, layer, x, mask)
            assert len(kernel) == 1
            kernel.clear()


@each
def test_a_row_that_sees_nothing_is_the_bias(name, kwargs, kernel, rng):
    """An empty clip, and what comes before the first frame of a causal one."""
    layer = make(name, causal=True, **kwargs)
    layer.output_dense.bias.assign(rng.standard_normal(F))
    mask = np.arange(T) >= np.array([[T], [3]])
    found = ops.convert_to_numpy(layer(inputs(rng), mask=mask))[~mask]
    bias = ops.convert_to_numpy(layer.output_dense.bias)
    np.testing.assert_array_equal(found, np.broadcast_to(bias, found.shape))
    assert len(kernel) == 1


def test_an_even_number_of_frames_is_not_padded(kernel, rng):
    layer = make("full")
    mask = np.ones((2, T + 1), bool)
    mask[1, 3:] = False
    x = inputs(rng, length=T + 1)
    assert_equals_naive("full", layer, x, mask)
    assert kernel[0].shape[-1] == T + 1


@each
def test_dropout_needs_the_map(name, kwargs, kernel, rng):
    layer = make(name, dropout=0.5, **kwargs)
    x = inputs(rng)
    layer(x, training=True)
    assert not kernel
    layer(x)
    assert len(kernel) == 1


def test_it_can_be_declined(kernel, rng):
    make("full", flash_attention=False)(inputs(rng))
    assert not kernel


def test_what_a_subclass_scores_is_heeded(kernel, rng):
    class Halved(attention.FullAttention):
        def scores(self, query, key):
            return super().scores(query, key) / 2

    class Banded(attention.FullAttention):
        def score_mask(self, length):
            return ops.eye(length, dtype="bool")

    class Doubled(attention.GroupedQueryAttention):
        def mix(self, scores, value, mask, training):
            return 2 * super().mix(scores, value, mask, training)

    class Halves(attention.SharedQKAttention):
        def scores(self, query, key):
            return super().scores(query, key) / 2

    for layer in (
        *(
            own(num_heads=2, key_dim=D)
            for own in (Halved, Banded, Doubled, Halves)
        ),
        make("shared_qk", mask_self=True),
    ):
        layer(inputs(rng))
    assert not kernel


@pytest.mark.parametrize(
    "name, wrong, message",
    [
        ("full", {"dropout": 0.1}, "`dropout` must be 0.*dropout=0.1"),
        ("shared_qk", {"mask_self": True}, "`mask_self`.*mask_self=True"),
        ("full", {"flash_attention": "yes"}, "flash_attention='yes'"),
    ],
)
def test_what_no_kernel_does_is_refused(name, wrong, message):
    with pytest.raises(ValueError, match=message):
        make(name, **{"flash_attention": True, **wrong})


def test_float32_has_none_and_asked_for_it_fails(rng):
    """On any device; Keras says what is missing."""
    tensors = [ops.ones((1, 2, 8, 16))] * 3
    assert not compat.has_flash_attention(*tensors)
    layer = make("full", flash_attention=True)
    missing = (ValueError, RuntimeError, NotImplementedError)
    with pytest.raises(missing, match="(?i)flash|cudnn|fp16"):
        layer(inputs(rng))


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="Keras' own test is JAX's"
)
def test_keras_is_asked_and_may_say_no(monkeypatch):
    from keras.src.backend.jax import nn

    asked = []

    def answer(query, key, value, bias):
        asked.append((query.shape, key.shape, value.shape, bias))
        return True

    monkeypatch.setattr(nn, "_can_use_flash_attention", answer)
    query, key = ops.ones((1, 4, 8, 16)), ops.ones((1, 2, 8, 16))
    assert compat.has_flash_attention(query, key, key)
    few = (1, 8, 2, 16)
    assert asked == [((1, 8, 4, 16), few, few, None)]
    try:
        keras.config.disable_flash_attention()
        assert not compat.has_flash_attention(query, key, key)
    finally:
        keras.config.enable_flash_attention()
