"""A recurrent layer over frames that looks at real frames only."""

import keras
from keras import ops

from audio_tf.layers.stages import Stage
from audio_tf.ops import masks
from audio_tf.ops.checks import check_sizes
from audio_tf.ops.layer import BANDS, Layer


@keras.saving.register_keras_serializable("audio_tf")
class Orthogonal(keras.initializers.Orthogonal):
    """Keras' initializer, drawn in float32 or better and then rounded.

    TensorFlow decomposes no matrix of bfloat16.
    """

    def __call__(self, shape, dtype=None):
        dtype = keras.backend.standardize_dtype(dtype)
        drawn = super().__call__(
            shape, keras.backend.result_type(dtype, "float32")
        )
        return ops.cast(drawn, dtype)


@keras.saving.register_keras_serializable("audio_tf")
class BidirectionalGRU(Stage, Layer):
    """Gated recurrent units in both directions, `(B, T, F, C)` to frames.

    `(B, T, F, C)` -> `(B, T, 2 * units)`: the channels of all bands of a frame
    are one vector. The first half of what comes out runs forwards, the second
    half begins at the last real frame of a clip.

    Args:
        units: int, the units of each direction.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, bands, channels)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool; nothing depends on it.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> recurrent = layers.BidirectionalGRU(units=8)
        >>> tuple(recurrent(np.zeros((1, 12, 5, 4), "float32")).shape)
        (1, 12, 16)
    """

    first_input = BANDS

    def __init__(self, units=64, **kwargs):
        super().__init__(**kwargs)
        check_sizes(units=units)
        self.supports_masking = True
        self.units = units
        self.recurrence = keras.layers.Bidirectional(
            keras.layers.GRU(
                units,
                return_sequences=True,
                recurrent_initializer=Orthogonal(),
                # What a GPU would export could not be served without one.
                use_cudnn=False,
                dtype=self.dtype_policy,
                name="gru",
            ),
            dtype=self.dtype_policy,
            name="recurrence",
        )

    def build(self, input_shape):
        _, _, bands, channels = input_shape
        self.recurrence.build((None, None, bands * channels))

    def compute_mask(self, inputs, mask=None):
        return mask

    def call(self, inputs, mask=None, training=None):
        x = inputs if mask is None else masks.zero_padding(inputs, mask)
        batch, time = ops.shape(x)[0], ops.shape(x)[1]
        x = ops.reshape(x, (batch, time, x.shape[2] * x.shape[3]))
        return self.recurrence(x, mask=mask, training=training)

    def compute_output_shape(self, input_shape, *args, **kwargs):
        return (*input_shape[:2], 2 * self.units)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
