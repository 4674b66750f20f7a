"""Callbacks and scoring as training over several hosts asks for them."""

import keras

from audio_tf.data.shares import WHOLE
from audio_tf.runs import callbacks, hosts


class OfFirst(callbacks.Nested):
    """Runs callbacks that write at an epoch's end, on the first host alone.

    Args:
        callbacks: list of `keras.callbacks.Callback`, as `Nested` takes it.
        share: `Share`.
    """

    def __init__(self, callbacks, share):
        super().__init__(callbacks)
        self.share = share

    def on_epoch_end(self, epoch, logs=None):
        if not self.share.is_first:
            return
        with hosts.alone():
            super().on_epoch_end(epoch, logs)


class StopTogether(keras.callbacks.Callback):
    """Ends training on all hosts where the first one ends it.

    Args:
        share: `Share`.
    """

    def __init__(self, share):
        super().__init__()
        self.share = share

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = hosts.first_says(
            self.model.stop_training, self.share
        )


class Everywhere(keras.Model):
    """A model whose outputs `predict` returns whole on every host.

    Args:
        model: `keras.Model` with one output `(batch, values)`.
    """

    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, input_shape):
        self.built = True

    def call(self, inputs, training=None):
        outputs = self.model(inputs, training=training)
        spread = keras.distribution.distribution()
        if spread is None:
            return outputs
        layout = keras.distribution.TensorLayout(
            (None, None), spread.device_mesh
        )
        return keras.distribution.distribute_tensor(outputs, layout)


def whole_scores(model, share):
    """Returns the model that scores, of which each host has all scores.

    Args:
        model: `AudioClassifier`.
        share: `Share`.
    """
    return model if share == WHOLE else Everywhere(model)
