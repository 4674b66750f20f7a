"""CRNN: three convolutions, and a recurrent layer over their frames."""

import keras

from audio_tf.layers import BidirectionalGRU, ConvolutionBlock
from audio_tf.models.convolutional import ConvolutionalBackbone
from audio_tf.ops.checks import check_sizes, pairs_of


@keras.saving.register_keras_serializable("audio_tf")
class CRNNBackbone(ConvolutionalBackbone):
    """The CRNN baseline of FSD50K, up to the states of its recurrent layer.

    Convolutions of 5 x 5, each with max pooling, and gated recurrent units in
    both directions. The pooling `last_states` of a classifier, which is its
    default for this backbone, takes the last state of each direction. With
    200 classes there are 973,000 trained weights. The paper's 0.96 M were not
    reached: with one bias of the recurrent units in place of Keras' two there
    are 972,616, and long short-term memory has 1,013,704.

    Args:
        filters: int, channels of each convolution.
        kernel_size: int, odd, frames and bands of the kernels.
        pools: list of pairs of ints, frames and bands of a window of the
            pooling behind each convolution.
        units: int, units of each direction.
        **kwargs: arguments of `ConvolutionalBackbone`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range or of the wrong kind.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import models
        >>> backbone = models.CRNNBackbone(filters=4, units=8)
        >>> outputs = backbone(np.zeros((1, 22_050), "float32"))
        >>> tuple(outputs["sequence_output"].shape)
        (1, 13, 16)
    """

    head = {"pooling": "last_states"}

    def __init__(
        self,
        filters=128,
        kernel_size=5,
        pools=((2, 5), (2, 4), (2, 2)),
        units=64,
        **kwargs,
    ):
        check_sizes(filters=filters, kernel_size=kernel_size, units=units)
        self.filters = filters
        self.kernel_size = kernel_size
        self.pools = pairs_of("pools", pools)
        self.units = units
        super().__init__(**kwargs)

    def make_stages(self, dtype):
        blocks = [
            ConvolutionBlock(
                self.filters,
                kernel_size=self.kernel_size,
                use_bias=True,
                pool_size=pool,
                dtype=dtype,
                name=f"block_{index}",
            )
            for index, pool in enumerate(self.pools)
        ]
        return [*blocks, BidirectionalGRU(self.units, dtype=dtype, name="gru")]

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "pools": [list(pool) for pool in self.pools],
            "units": self.units,
        }


CRNNBackbone.register_sizes({"crnn": {}})
