"""The rows of batches, and memory that is used again."""

import gc

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("batches are made by tf.data", allow_module_level=True)

import tensorflow as tf

from audio_tf.data import batching


def place(array):
    return array.__array_interface__["data"][0]


@pytest.mark.costly
def test_memory_is_used_again_once_all_views_are_gone():
    buffers = batching.Buffers()
    first = buffers.empty((3, 5))
    assert first.shape == (3, 5) and first.dtype == np.float32
    first[...] = 7.0
    where, view = place(first), first[1:, 2]
    del first
    gc.collect()
    other = buffers.empty((3, 5))
    other[...] = 1.0
    assert place(other) != where
    np.testing.assert_array_equal(view, [7.0, 7.0])
    del view
    gc.collect()
    # Of the same size, whatever the shape.
    assert place(buffers.empty((5, 3))) == where


def test_tensors_take_the_memory_and_keep_it():
    """Batches that somebody keeps are not written to by later ones."""
    buffers, places = batching.Buffers(), set()

    def fill(value):
        array = buffers.empty((64, 3))
        places.add(place(array))
        array[...] = value
        return array

    def load(value):
        return tf.numpy_function(fill, [value], tf.float32)

    dataset = tf.data.Dataset.range(200).map(load, tf.data.AUTOTUNE)
    kept = list(dataset)
    for value, tensor in enumerate(kept):
        np.testing.assert_array_equal(tensor, np.full((64, 3), value))
        assert place(np.asarray(memoryview(tensor))) in places
    del kept, tensor
    places.clear()
    for _ in dataset:
        pass
    assert len(places) < 100


def test_no_more_memory_is_kept_than_is_under_way_at_once():
    buffers = batching.Buffers()
    arrays = [buffers.empty((4,)) for _ in range(batching.MOST_FREE + 3)]
    del arrays
    gc.collect()
    (pieces,) = buffers.free.values()
    assert len(pieces) == batching.MOST_FREE


def test_no_pipeline_on_rows_waits_for_a_thread_at_its_end():
    rows = batching.rows_dataset(lambda: iter([(np.arange(2), np.arange(2))]))
    batches = rows.map(lambda batch: batch).prefetch(1)
    both = tf.data.Dataset.zip(batches, batches).map(lambda one, other: one)
    for dataset in (rows, batches, both):
        assert dataset.options().autotune.enabled is False


@pytest.mark.parametrize("batches", [0, 1, 64, 65, 130])
def test_rows_come_as_they_were_yielded(batches):
    rng = np.random.default_rng(0)
    given = [
        (rng.integers(0, 9, size), rng.integers(-9, 9, size))
        for size in rng.integers(1, 6, batches)
    ]
    dataset = batching.rows_dataset(lambda: iter(given))
    found = [batching.rows_of(each) for each in dataset.as_numpy_iterator()]
    assert len(found) == batches
    for pair, (rows, offsets) in zip(given, found, strict=True):
        np.testing.assert_array_equal(rows, pair[0])
        np.testing.assert_array_equal(offsets, pair[1])
