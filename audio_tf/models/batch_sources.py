"""Batches that Keras reads one after the other, each of which is checked."""

import types

import keras


class CheckedBatches(keras.utils.PyDataset):
    """The batches of a `keras.utils.PyDataset`, each checked as it comes.

    Args:
        source: the `keras.utils.PyDataset`.
        check: function of a batch, which raises what is wrong with it.
    """

    def __init__(self, source, check):
        super().__init__(
            source.workers, source.use_multiprocessing, source.max_queue_size
        )
        self.source = source
        self.check = check

    def __getitem__(self, index):
        batch = self.source[index]
        self.check(batch)
        return batch

    @property
    def num_batches(self):
        return self.source.num_batches

    def on_epoch_begin(self):
        self.source.on_epoch_begin()

    def on_epoch_end(self):
        self.source.on_epoch_end()


def kind_of(x):
    """Returns the name of the class of batches, as their owner knows it."""
    while isinstance(x, CheckedBatches):
        x = x.source
    return type(x).__name__


def checked_batches(x, check):
    """Has each batch of a `keras.utils.PyDataset` or a generator checked.

    Args:
        x: anything that a model could be given.
        check: function of a batch, which raises what is wrong with it.

    Returns:
        The same batches, or `x` if it is something else.
    """
    if isinstance(x, keras.utils.PyDataset):
        return CheckedBatches(x, check)
    if isinstance(x, types.GeneratorType):
        # Keras asks for a generator's own class.
        return generated(x, check)
    return x


def generated(batches, check):
    """Yields batches behind their check; see `checked_batches`."""
    for batch in batches:
        check(batch)
        yield batch
