"""Named recipes: the defaults of training, and the augmentations they name.

Nothing here imports Keras before it is needed.
"""

# Defaults of the settings of `train` by recipe. A setting that is given is
# none of the recipe's business.
RECIPES = {
    # What worked on validation splits of small corpora.
    "strong": {
        "model": "audio_transformer_mel_small",
        "pooling": "statistics",
        "loss": None,
        "label_smoothing": 0.1,
        "weight_decay": 0.05,
        "clip_norm": 1.0,
        "learning_rate": 2e-3,
        "schedule": "cosine",
        "warmup_share": 0.05,
        "batch_size": 64,
        "epochs": 60,
        "augmentation": "sound",
        "mixing": "none",
        "average_share": 0.1,
    },
    # "Audio Transformers" (arXiv 2105.00335), section 4.
    "paper": {
        "model": "audio_transformer_small",
        "pooling": "mean",
        "loss": "huber",
        "label_smoothing": None,
        "weight_decay": 0.0,
        "clip_norm": None,
        "learning_rate": 1e-3,
        "schedule": "constant",
        "warmup_share": 0.0,
        "batch_size": 32,
        "epochs": 90,
        "augmentation": "none",
        "mixing": "none",
        "average_share": 0.0,
    },
}
# Arguments of the front end by recipe, where it is that of the recipe's model.
FRONT_ENDS = {"paper": {"frontend_gain": 1.0}}


def no_augmentation(sample_rate_hz):
    """Makes no layer: clips are trained on as they are."""
    return []


def sound(sample_rate_hz):
    """Makes layers that change level, place and, a little, speed."""
    from audio_tf import layers

    return [
        layers.SpeedPerturbation((0.8, 1.25), rate=0.5),
        layers.TimeShift(0.1, sample_rate_hz),
        layers.RandomGain((-6.0, 6.0)),
    ]


def voice(sample_rate_hz, speed=(0.8, 1.25), vocal_tract=(0.84, 1.19)):
    """Makes layers that give a speaker other voices, for few speakers.

    Speed moves pitch, formants and rate together, and the vocal tract the
    formants alone; noise and masks hide what a voice could be known by, and
    shifts cut words at an end, as recordings do.
    """
    from audio_tf import layers

    return [
        layers.SpeedPerturbation(speed, rate=0.9),
        layers.TimeShift(0.2, sample_rate_hz),
        layers.RandomGain((-6.0, 6.0)),
        layers.AdditiveNoise((5.0, 40.0), color=(0.0, 2.0), rate=0.5),
        layers.VocalTractPerturbation(vocal_tract, rate=0.9),
        layers.BandMasking(num_masks=2, max_bands=10, fill=0.0),
        layers.TimeMasking(12, max_share=0.12, fill=0.0),
    ]


def voice_wide(sample_rate_hz):
    """Makes the layers of `voice`, with voices that are further apart."""
    return voice(sample_rate_hz, speed=(0.75, 1.45), vocal_tract=(0.8, 1.25))


# Functions of the sample rate to a list of layers, by name.
AUGMENTATIONS = {
    "none": no_augmentation,
    "sound": sound,
    "voice": voice,
    "voice_wide": voice_wide,
}


def no_mixing(sample_rate_hz):
    """Makes no layer: each clip is heard alone."""
    return None


def mixup(sample_rate_hz):
    """Makes a layer that adds clips up as it does their labels."""
    from audio_tf import layers

    return layers.Mixup()


def between_class(sample_rate_hz):
    """Makes a layer that mixes clips as loud as their labels say."""
    from audio_tf import layers

    return layers.BetweenClassMixing(sample_rate_hz)


# Functions of the sample rate to a layer, or to `None`, by name.
MIXINGS = {
    "none": no_mixing,
    "mixup": mixup,
    "between_class": between_class,
}
