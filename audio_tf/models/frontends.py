"""Front ends of the Audio Transformer, by the name of their filterbank."""

from audio_tf.layers import MelFrontend, WaveformFrontend
from audio_tf.layers.augmented_frontend import check_augmentation
from audio_tf.layers.mel_frontend import COMPRESSIONS
from audio_tf.ops.checks import check_choice

# Filterbanks of the dense front end of the paper; the others are compressed
# mel bands, by the names of their compression.
DENSE_FILTERBANKS = ("random", "mel")
FILTERBANKS = {
    **dict.fromkeys(DENSE_FILTERBANKS),
    **{f"{name}_mel": name for name in COMPRESSIONS},
}


def make_frontend(
    filterbank,
    mel_options,
    dense_options,
    augmentation,
    filters,
    activation,
    sample_rate_hz,
    **kwargs,
):
    """Makes the front end of an Audio Transformer.

    Args:
        filterbank: str, a key of `FILTERBANKS`.
        mel_options: dict of further arguments of `MelFrontend`, of which
            `None` stands for its own defaults.
        dense_options: dict of the same for `WaveformFrontend`.
        augmentation: list of `Augmentation`.
        filters: int, units of the first layer, or mel bands.
        activation: the activation of the first layer, if there is one.
        sample_rate_hz: int, the rate of the waveform.
        **kwargs: arguments that all front ends have.

    Raises:
        ValueError: if there is no such filterbank, or an argument or an
            augmentation does not apply to it.
    """
    check_choice("filterbank", filterbank, FILTERBANKS)
    if filterbank in DENSE_FILTERBANKS:
        check_augmentation(augmentation, ["waveform"], sample_rate_hz)
        return WaveformFrontend(
            filters=filters,
            activation=activation,
            filterbank=filterbank,
            sample_rate_hz=sample_rate_hz,
            **options_of(filterbank, dense_options, mel_options),
            **kwargs,
        )
    check_augmentation(
        augmentation, ["waveform", "spectrum", "features"], sample_rate_hz
    )
    return MelFrontend(
        num_mel_bins=filters,
        compression=FILTERBANKS[filterbank],
        augmentation=[x for x in augmentation if x.domain != "waveform"],
        sample_rate_hz=sample_rate_hz,
        **options_of(filterbank, mel_options, dense_options),
        **kwargs,
    )


def options_of(filterbank, options, others):
    """Returns those of a front end's options that were given.

    Args:
        filterbank: str, a key of `FILTERBANKS`.
        options: dict of the options that apply to it.
        others: dict of options that apply to other filterbanks.

    Raises:
        ValueError: if one of the others was given.
    """
    for name, value in others.items():
        if value is not None:
            raise ValueError(
                f"`{name}` of the front end does not apply to the filterbank "
                f"{filterbank!r}. Received: {name}={value!r}"
            )
    return {k: v for k, v in options.items() if v is not None}
