"""ResNet-18 on log-mel patches."""

import keras

from audio_tf.layers import BandPooling, ConvolutionBlock, ResidualBlock
from audio_tf.models.convolutional import ConvolutionalBackbone
from audio_tf.ops.checks import check_sizes, sizes_of


@keras.saving.register_keras_serializable("audio_tf")
class ResNet18Backbone(ConvolutionalBackbone):
    """The ResNet-18 baseline of FSD50K, up to its global average pooling.

    "Deep Residual Learning for Image Recognition" (arXiv 1512.03385) with one
    channel to begin with. A frame is the mean over bands; the mean over
    frames, the default of a classifier, then is that over the whole patch.
    With 200 classes there are 11,272,840 trained weights, the paper's 11.3 M.

    The models of KerasHub and of `keras.applications` have no place for a
    mask between their layers: padding of a clip would reach its frames.

    Args:
        filters: list of ints, channels of the blocks of each part. All parts
            but the first halve frames and bands; what comes before quarters
            them.
        depth: int, residual blocks of each part.
        **kwargs: arguments of `ConvolutionalBackbone`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range or of the wrong kind.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import models
        >>> backbone = models.ResNet18Backbone(filters=(4, 8), depth=1)
        >>> outputs = backbone(np.zeros((1, 22_050), "float32"))
        >>> tuple(outputs["sequence_output"].shape)
        (1, 13, 8)
    """

    def __init__(self, filters=(64, 128, 256, 512), depth=2, **kwargs):
        check_sizes(depth=depth)
        self.filters = sizes_of("filters", filters, empty=False)
        self.depth = depth
        super().__init__(**kwargs)

    def make_stages(self, dtype):
        blocks = [
            ResidualBlock(
                filters,
                2 if part and not index else 1,
                dtype=dtype,
                name=f"part_{part}_block_{index}",
            )
            for part, filters in enumerate(self.filters)
            for index in range(self.depth)
        ]
        bands = BandPooling(dtype=dtype, name="bands")
        return [make_stem(self.filters[0], dtype), *blocks, bands]

    def get_config(self):
        return {
            **super().get_config(),
            "filters": list(self.filters),
            "depth": self.depth,
        }


def make_stem(filters, dtype):
    """Makes what quarters frames and bands of an image: 7 x 7, then 3 x 3.

    Args:
        filters: int, channels that come out.
        dtype: dtype policy.
    """
    return ConvolutionBlock(
        filters,
        kernel_size=7,
        strides=2,
        pool_size=(3, 3),
        pool_strides=(2, 2),
        dtype=dtype,
        name="stem",
    )


ResNet18Backbone.register_sizes({"resnet18": {}})
