"""The base of every layer of the package, and its dropout."""

import keras
from keras import ops

from audio_tf.ops import checks

# Of layers of waveforms, `(batch, samples)`: one clip alone, or channels,
# would be found where a shape does not fit, or nowhere in a batch of one.
WAVEFORM = ("waveform", 2)
FRAMES = ("inputs", 3)
BANDS = ("inputs", 4)


def check_floating(name, x):
    """Raises a `ValueError` unless an array or tensor is of floating numbers.

    Args:
        name: str, the argument that the error names.
        x: array or tensor.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    if not keras.backend.is_float_dtype(dtype):
        raise ValueError(
            f"`{name}` must be floating numbers; integer samples have to be "
            f"divided by their full scale first. Received: dtype={dtype}"
        )


class Layer(keras.layers.Layer):
    """A Keras layer that refuses arguments it does not know.

    A subclass names its own arguments and hands all others up by `**kwargs`;
    here the rest must be those of `keras.layers.Layer`.

    Attributes:
        first_input: pair of the name of the first input, for errors, and of
            how many axes it must have; `None` where that is not checked.

    Args:
        **kwargs: `name`, `dtype`, `trainable`, `autocast` and
            `activity_regularizer` of `keras.layers.Layer`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest
            known one.
    """

    first_input = None

    def __init__(self, **kwargs):
        # What a subclass declares it keeps: only strangers come this far.
        strangers = set(kwargs) - set(checks.parameters_of(keras.layers.Layer))
        known = set(checks.parameters_of(type(self))) - strangers
        checks.reject_unknown(type(self).__name__, strangers, known)
        super().__init__(**kwargs)
        if self.first_input is not None:
            name, axes = self.first_input
            self.input_spec = keras.layers.InputSpec(ndim=axes, name=name)

    def as_floats(self, x):
        """Casts integers to what the layer computes in, which Keras does not.

        Args:
            x: tensor.

        Returns:
            Floating tensor; one that is floating already as it is.
        """
        dtype = keras.backend.standardize_dtype(x.dtype)
        if keras.backend.is_float_dtype(dtype):
            return x
        return ops.cast(x, self.compute_dtype)

    def compute_output_shape(self, input_shape, *other_shapes):
        """Returns the shapes of what the layer returns, where it is called.

        Wrappers such as `keras.layers.TimeDistributed` ask for it.

        Args:
            input_shape: tuple of int or `None`, the shape of its input.
            *other_shapes: those of further inputs, such as targets; lengths
                and masks change no shape.

        Returns:
            Tuple of int or `None`, or the same structure of them as that of
            its outputs.

        Raises:
            ValueError: as a call with inputs of these shapes.
        """
        inputs = [
            keras.KerasTensor(shape, self.compute_dtype)
            for shape in (input_shape, *other_shapes)
        ]
        return keras.tree.map_structure(
            lambda output: None if output is None else output.shape,
            self.compute_output_spec(*inputs),
        )

    def compute_output_spec(self, *args, **kwargs):
        if type(self).compute_output_shape is not Layer.compute_output_shape:
            return super().compute_output_spec(*args, **kwargs)
        # Keras' layer would ask the method above, which itself asks this one.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        # Without this method, Keras would take the constructor's arguments
        # for the configuration, and fail if one is a dtype policy.
        return super().get_config()


@keras.saving.register_keras_serializable("audio_tf")
class Dropout(keras.layers.Dropout):
    """A dropout that rests where it is frozen.

    In training a frozen model has then the outputs of inference, as
    Keras' `BatchNormalization` has.
    """

    def call(self, inputs, training=False):
        return super().call(inputs, training=training and self.trainable)
