"""DenseNet-121 on log-mel patches."""

import keras

from audio_tf.layers import (
    BandPooling,
    DenselyConnectedBlock,
    DenseTransition,
    NormalizedReLU,
)
from audio_tf.models.convolutional import ConvolutionalBackbone
from audio_tf.models.resnet import make_stem
from audio_tf.ops.checks import check_sizes, sizes_of


@keras.saving.register_keras_serializable("audio_tf")
class DenseNet121Backbone(ConvolutionalBackbone):
    """The DenseNet-121 baseline of FSD50K, up to its global average pooling.

    "Densely Connected Convolutional Networks" (arXiv 1608.06993) with one
    channel to begin with. A frame is the mean over bands; the mean over
    frames, the default of a classifier, then is that over the whole patch.
    With 200 classes there are 7,152,584 trained weights. The FSD50K paper says
    12.5 M, which is no DenseNet-121's: it cannot be matched.

    Args:
        depths: list of ints, units of each dense block; between two blocks
            frames and bands are halved, and so are channels.
        growth: int, channels that each unit adds.
        stem_filters: int, channels of the first convolution.
        **kwargs: arguments of `ConvolutionalBackbone`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range or of the wrong kind.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import models
        >>> backbone = models.DenseNet121Backbone(depths=(1, 1), stem_filters=8)
        >>> outputs = backbone(np.zeros((1, 22_050), "float32"))
        >>> tuple(outputs["sequence_output"].shape)
        (1, 13, 52)
    """

    def __init__(
        self, depths=(6, 12, 24, 16), growth=32, stem_filters=64, **kwargs
    ):
        check_sizes(growth=growth, stem_filters=stem_filters)
        self.depths = sizes_of("depths", depths, empty=False)
        self.growth = growth
        self.stem_filters = stem_filters
        super().__init__(**kwargs)

    def make_stages(self, dtype):
        stages = [make_stem(self.stem_filters, dtype)]
        channels = self.stem_filters
        for index, depth in enumerate(self.depths):
            if index:
                channels //= 2
                stages.append(
                    DenseTransition(
                        channels, dtype=dtype, name=f"transition_{index}"
                    )
                )
            stages.append(
                DenselyConnectedBlock(
                    depth, self.growth, dtype=dtype, name=f"block_{index}"
                )
            )
            channels += depth * self.growth
        return [
            *stages,
            NormalizedReLU(dtype=dtype, name="norm"),
            BandPooling(dtype=dtype, name="bands"),
        ]

    def get_config(self):
        return {
            **super().get_config(),
            "depths": list(self.depths),
            "growth": self.growth,
            "stem_filters": self.stem_filters,
        }


DenseNet121Backbone.register_sizes({"densenet121": {}})
