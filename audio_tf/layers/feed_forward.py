"""The dense layers of a transformer block."""

import keras

from audio_tf.layers import activations
from audio_tf.ops.checks import check_rates, sizes_of
from audio_tf.ops.layer import Dropout, Layer
from audio_tf.ops.weights import another


@keras.saving.register_keras_serializable("audio_tf")
class FeedForward(Layer):
    """Dense layers that are applied to each frame alike.

    The last one has as many units as the input has features.

    Args:
        intermediate_dims: tuple of ints, units of the hidden layers;
            `(128, 128)` makes the "3-layer 128 neuron" network of "Audio
            Transformers" (arXiv 2105.00335).
        activation: the activation of the hidden layers.
        dropout: float, the dropout rate of the output.
        activation_dropout: float, the dropout rate behind each activation.
        kernel_initializer: the initializer of the dense layers, or `None` for
            Glorot uniform.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        training: bool, whether dropout applies.

    Returns:
        Tensor `(batch, time, dim)`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> feed_forward = layers.FeedForward((32,), activation="gelu")
        >>> tuple(feed_forward(np.zeros((1, 12, 16), "float32")).shape)
        (1, 12, 16)
    """

    def __init__(
        self,
        intermediate_dims=(128, 128),
        activation="relu",
        dropout=0.0,
        kernel_initializer=None,
        activation_dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        check_rates(dropout=dropout, activation_dropout=activation_dropout)
        self.intermediate_dims = sizes_of(
            "intermediate_dims", intermediate_dims
        )
        self.activation = activations.get(activation)
        self.dropout = dropout
        self.activation_dropout = activation_dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.hidden_dropout = Dropout(
            activation_dropout, dtype=self.dtype_policy, name="hidden_dropout"
        )
        self.hidden = [
            self.dense(units, f"hidden_{index}")
            for index, units in enumerate(self.intermediate_dims)
        ]
        self.output_dropout = Dropout(
            dropout, dtype=self.dtype_policy, name="output_dropout"
        )

    def dense(self, units, name):
        return keras.layers.Dense(
            units,
            kernel_initializer=another(self.kernel_initializer)
            or "glorot_uniform",
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape):
        shape = tuple(input_shape)
        for dense in self.hidden:
            dense.build(shape)
            shape = (*shape[:-1], dense.units)
        self.output_dense = self.dense(input_shape[-1], "output")
        self.output_dense.build(shape)

    def call(self, inputs, training=None):
        activation, x = self.activation, inputs
        if training and activation is not keras.activations.relu:
            # GELU would keep four tensors of the hidden size for its gradient.
            activation = keras.remat(activation)
        for dense in self.hidden:
            x = self.hidden_dropout(activation(dense(x)), training=training)
        return self.output_dropout(self.output_dense(x), training=training)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dims": list(self.intermediate_dims),
            "activation": activations.serialize(self.activation),
            "dropout": self.dropout,
            "activation_dropout": self.activation_dropout,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
