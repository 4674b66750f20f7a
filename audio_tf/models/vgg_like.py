"""VGG-like: six convolutions and both global poolings."""

import keras

from audio_tf.layers import BandPooling, ConvolutionBlock
from audio_tf.models.convolutional import ConvolutionalBackbone
from audio_tf.ops.checks import sizes_of


@keras.saving.register_keras_serializable("audio_tf")
class VGGLikeBackbone(ConvolutionalBackbone):
    """The VGG-like baseline of FSD50K, up to its global pooling.

    Blocks of convolutions of 3 x 3 and max pooling of 2 x 2; a frame is the
    maximum over bands of each channel and, behind it, the mean. The pooling
    `max_mean` of a classifier then is the paper's, maximum and mean over the
    whole patch, and its `hidden_dim` of 256 the paper's dense layer: both are
    the classifier's defaults for this backbone. With 200 classes there are
    265,992 trained weights, the paper's 0.27 M. The paper does not say how
    many convolutions each block has; (3, 2, 1) gives that count.

    Args:
        filters: list of ints, channels of the convolutions of each block.
        depths: list of ints, convolutions of each block.
        **kwargs: arguments of `ConvolutionalBackbone`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range or of the wrong kind.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import models
        >>> backbone = models.VGGLikeBackbone(filters=(4, 8), depths=(1, 1))
        >>> outputs = backbone(np.zeros((1, 22_050), "float32"))
        >>> tuple(outputs["sequence_output"].shape)
        (1, 26, 16)
    """

    head = {"pooling": "max_mean", "hidden_dim": 256}

    def __init__(self, filters=(32, 64, 128), depths=(3, 2, 1), **kwargs):
        self.filters = sizes_of("filters", filters, empty=False)
        self.depths = sizes_of("depths", depths, empty=False)
        if len(filters) != len(depths):
            raise ValueError(
                "Each block must have one of `filters` and of `depths`. "
                f"Received: filters={filters}, depths={depths}"
            )
        super().__init__(**kwargs)

    def make_stages(self, dtype):
        blocks = [
            ConvolutionBlock(
                filters,
                depth,
                use_bias=True,
                dtype=dtype,
                name=f"block_{index}",
            )
            for index, (filters, depth) in enumerate(
                zip(self.filters, self.depths, strict=True)
            )
        ]
        bands = BandPooling(include_max=True, dtype=dtype, name="bands")
        return [*blocks, bands]

    def get_config(self):
        return {
            **super().get_config(),
            "filters": list(self.filters),
            "depths": list(self.depths),
        }


VGGLikeBackbone.register_sizes({"vgg_like": {}})
