"""Rows of clips through tf.data: Python within its graph, and batches."""

import os

import keras
import tensorflow as tf

# Rows of chunks that are shuffled at once, in samples: 64 MiB.
SHUFFLED_SAMPLES = 2**24


def run_in_python(function, inputs, specs):
    """Calls a function of arrays within a graph.

    Args:
        function: function of arrays to a tuple of arrays.
        inputs: list of tensors.
        specs: list of pairs of the shape and the dtype of each output.

    Returns:
        List of tensors.
    """
    outputs = tf.numpy_function(
        function, inputs, [tf.as_dtype(dtype) for _, dtype in specs], False
    )
    return [
        tf.ensure_shape(output, shape)
        for output, (shape, _) in zip(outputs, specs, strict=True)
    ]


def checked_batches(dataset, check, names):
    """Has each batch checked before it is trained on.

    Args:
        dataset: `tf.data.Dataset` of what `fit` takes.
        check: function of the arrays `inputs`, `targets` and `weights` of a
            batch, of which there may be some; it raises what is wrong with
            them. Inputs are an array, or a dict of arrays.
        names: bool, whether it takes names of labels, too.

    Returns:
        `tf.data.Dataset` of the same elements.
    """
    spec = dataset.element_spec
    if isinstance(spec, tuple) and not 0 < len(spec) < 4:
        return dataset
    x, y, weights = keras.utils.unpack_x_y_sample_weight(spec)
    parts = {}
    within = x.values() if isinstance(x, dict) else [x]
    if all(map(is_batch, within)) and any(s.dtype.is_floating for s in within):
        parts["inputs"] = x
    if is_batch(y) and (names or y.dtype != tf.string):
        parts["targets"] = y
        if isinstance(weights, tf.TensorSpec):
            parts["weights"] = weights
    if not parts:
        return dataset

    def call(*arrays):
        check(**tf.nest.pack_sequence_as(parts, arrays))
        return True

    def look(*element):
        given = element if isinstance(spec, tuple) else element[0]
        found = keras.utils.unpack_x_y_sample_weight(given)
        found = dict(zip(("inputs", "targets", "weights"), found, strict=True))
        arrays = tf.nest.flatten({name: found[name] for name in parts})
        # Stateful, or TensorFlow leaves out what nobody reads the result of.
        right = tf.numpy_function(call, arrays, tf.bool)
        with tf.control_dependencies([right]):
            return tf.nest.map_structure(behind, given)

    return dataset.map(tf.autograph.experimental.do_not_convert(look))


def behind(part):
    """Returns a part of an element, computed behind what controls it."""
    return tf.identity(part) if tf.is_tensor(part) else part


def is_batch(spec):
    """Returns whether a part of an element is a tensor of a row a clip."""
    return isinstance(spec, tf.TensorSpec) and spec.shape.rank != 0


def take_rows(x, clips):
    """Returns the row of each clip, with `clips` int64 `(rows,)`."""
    return tf.gather(x, clips)


def clip_dataset(names, *beside):
    """Makes a dataset of clips by their names.

    Args:
        names: list of str, the paths.
        *beside: arrays `(clips, ...)`, or `None` for what there is not.

    Returns:
        `tf.data.Dataset` of tuples of a name and what is beside it.
    """
    given = [tf.constant([os.fsencode(name) for name in names], tf.string)]
    given += [each for each in beside if each is not None]
    return tf.data.Dataset.from_tensor_slices(tuple(given))


def training_batches(clips, to_rows, size, batch_size, seed=None, widths=None):
    """Makes batches of the rows of clips.

    Args:
        clips: `tf.data.Dataset` of single clips, as `to_rows` takes them.
        to_rows: function of tensors of one clip to what `fit` takes of its
            rows.
        size: int, samples of a chunk, or `None` for whole clips, which are
            padded to the longest of the batch.
        batch_size: int, the rows of a batch.
        seed: int. If given, clips and chunks are shuffled, in another order
            in each pass: clips among all, and chunks among those that are
            `SHUFFLED_SAMPLES` together. `None` keeps the order.
        widths: int array in ascending order. If given, whole clips are padded
            to the next of these, of which the last is wide enough for all.

    Returns:
        `tf.data.Dataset`.
    """
    if seed is not None:
        clips = clips.shuffle(max(int(clips.cardinality()), 1), seed)
    to_rows = tf.autograph.experimental.do_not_convert(to_rows)
    rows = clips.map(to_rows, tf.data.AUTOTUNE).unbatch()
    if size is None:
        batches = rows.padded_batch(batch_size)
        if widths is not None:
            batches = batches.map(
                lambda x, *beside: (widened(x, widths), *beside)
            )
        return batches.prefetch(tf.data.AUTOTUNE)
    if seed is not None:
        rows = rows.shuffle(max(SHUFFLED_SAMPLES // size, batch_size), seed)
    return rows.batch(batch_size).prefetch(tf.data.AUTOTUNE)


def widened(x, widths):
    """Pads a batch of whole clips to the next of some widths.

    Args:
        x: dict of `waveform`, `(batch, samples)`, and of `lengths`.
        widths: int array in ascending order.
    """
    samples = tf.shape(x["waveform"])[1]
    widths = tf.constant(widths, tf.int32)
    width = widths[tf.searchsorted(widths, samples[None])[0]]
    waveform = tf.pad(x["waveform"], [[0, 0], [0, width - samples]])
    return {**x, "waveform": waveform}
