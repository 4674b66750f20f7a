"""Small backbones by name, one for each entry of `BACKBONES`."""

from audio_tf import layers, models

RATE_HZ = 1_100
SIZES = {
    "num_layers": 2,
    "num_heads": 2,
    "key_dim": 5,
    "hidden_dim": 12,
    "intermediate_dims": (7,),
}


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


SMALL = {
    "audio_transformer": transformer,
    "audio_albert": albert,
    "speech_encoder": speech_encoder,
}
# A classifier takes a waveform.
WAVEFORM = [
    name
    for name, family in models.BACKBONES.items()
    if family.takes == "waveform"
]
