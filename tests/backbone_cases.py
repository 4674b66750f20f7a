"""Small backbones by name, one for each entry of `BACKBONES`."""

import pytest

from audio_tf import layers, models
from audio_tf.models.convolutional import ConvolutionalBackbone

RATE_HZ = 1_100
SIZES = {
    "num_layers": 2,
    "num_heads": 2,
    "key_dim": 5,
    "hidden_dim": 12,
    "intermediate_dims": (7,),
}

PATCHES = {"num_mel_bins": 7, "sample_rate_hz": RATE_HZ}


def transformer(**kwargs):
    own = {"frontend_filters": 16, "window_s": 0.01, "sample_rate_hz": RATE_HZ}
    return models.AudioTransformerBackbone(**{**SIZES, **own, **kwargs})


def albert(**kwargs):
    # At 0.02 so small a model hardly sees its inputs.
    own = {"feature_dim": 14, "initializer_range": 0.3}
    return models.AudioAlbertBackbone(**{**SIZES, **own, **kwargs})


def speech_encoder(trainable=True, name=None, **kwargs):
    features = layers.SpeechFeatures(
        "s3prl", RATE_HZ, {"num_mel_bins": 7, "fft_length": 64, "stack_size": 2}
    )
    return models.SpeechEncoder(
        albert(**kwargs), features, trainable=trainable, name=name
    )


def vgg_like(**kwargs):
    own = {"filters": (3, 5), "depths": (2, 1)}
    return models.VGGLikeBackbone(**{**PATCHES, **own, **kwargs})


def mel_resnet(**kwargs):
    own = {"filters": (3, 5), "num_mel_bins": 7, "sample_rate_hz": RATE_HZ}
    return models.MelResNetBackbone(**{**own, **kwargs})


def crnn(**kwargs):
    own = {"filters": 3, "pools": ((2, 3), (2, 2)), "units": 4}
    return models.CRNNBackbone(**{**PATCHES, **own, **kwargs})


def resnet18(**kwargs):
    own = {"filters": (3, 5), "depth": 1}
    return models.ResNet18Backbone(**{**PATCHES, **own, **kwargs})


def densenet121(**kwargs):
    own = {"depths": (2, 1), "growth": 2, "stem_filters": 4}
    return models.DenseNet121Backbone(**{**PATCHES, **own, **kwargs})


def wavlm(**kwargs):
    own = {
        "conv_channels": (6, 5),
        "conv_kernels": (7, 3),
        "conv_strides": (4, 3),
        "position_kernel": 5,
        "position_groups": 3,
        "sample_rate_hz": RATE_HZ,
        "initializer_range": 0.3,
    }
    return models.WavLMBackbone(**{**SIZES, **own, **kwargs})


SMALL = {
    "audio_transformer": transformer,
    "audio_albert": albert,
    "speech_encoder": speech_encoder,
    "vgg_like": vgg_like,
    "mel_resnet": mel_resnet,
    "crnn": crnn,
    "resnet18": resnet18,
    "densenet121": densenet121,
    "wavlm": wavlm,
}
# Without attention.
CONVOLUTIONAL = [
    name
    for name, family in models.BACKBONES.items()
    if issubclass(family, (ConvolutionalBackbone, models.MelResNetBackbone))
]
ATTENDING = [name for name in models.BACKBONES if name not in CONVOLUTIONAL]
# Their layers and their contract are those of `vgg_like`, but for the layers
# that they have alone, which have tests of their own.
ALIKE = ["crnn", "resnet18", "densenet121"]


def each(names, slow=ALIKE):
    """Parameters of a test for each name, slow ones where models are alike."""
    return [
        pytest.param(name, marks=pytest.mark.slow) if name in slow else name
        for name in names
    ]


# Arguments that make the small form smaller still.
SMALLER = {
    **dict.fromkeys(ATTENDING, {"num_layers": 1}),
    "vgg_like": {"filters": (3,), "depths": (2,)},
    "mel_resnet": {"filters": (3,)},
    "crnn": {"pools": ((2, 3),)},
    "resnet18": {"filters": (3,)},
    "densenet121": {"depths": (1,)},
}
# Arguments of other architectures, whose weights do not fit.
UNFITTING = {
    **dict.fromkeys(
        ATTENDING,
        [{"attention": "random_synthesizer"}, {"intermediate_dims": (7, 7)}],
    ),
    "vgg_like": [{"depths": (1,)}, {"filters": (4,)}],
    "mel_resnet": [{"filters": (3, 4)}],
    "crnn": [{"units": 5}],
    "resnet18": [{"filters": (3, 4)}],
    "densenet121": [{"depths": (2,)}],
}
# A classifier takes a waveform.
WAVEFORM = [
    name
    for name, family in models.BACKBONES.items()
    if family.takes == "waveform"
]
# Layers that LoRA is asked for; `None` stands for KerasHub's own choice.
LORA = {
    **dict.fromkeys(ATTENDING),
    **dict.fromkeys(CONVOLUTIONAL, ["convolution"]),
}
