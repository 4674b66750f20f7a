"""Rows of clips through tf.data: Python within its graph, and batches."""

import os

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


def checked_targets(dataset, check, names):
    """Has the targets of each batch checked before it is trained on.

    Args:
        dataset: `tf.data.Dataset` of `(x, y)` or `(x, y, sample_weight)`; of
            others there is nothing to check.
        check: function of the array `y` and, where there is one, of
            `sample_weight`, which raises what is wrong with them.
        names: bool, whether it takes names of labels, too.

    Returns:
        `tf.data.Dataset` of the same elements.
    """
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) < 2:
        return dataset
    if not isinstance(spec[1], tf.TensorSpec) or spec[1].shape.rank == 0:
        return dataset
    if spec[1].dtype == tf.string and not names:
        return dataset
    known = [isinstance(each, tf.TensorSpec) for each in spec[1:]]

    def call(*arrays):
        check(*arrays)
        return True

    def look(x, targets, *beside):
        # Stateful, or TensorFlow leaves out what nobody reads the result of.
        arrays = [targets, *beside][: 2 if all(known) else 1]
        right = tf.numpy_function(call, arrays, tf.bool)
        with tf.control_dependencies([right]):
            return (x, tf.identity(targets), *beside)

    return dataset.map(tf.autograph.experimental.do_not_convert(look))


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
