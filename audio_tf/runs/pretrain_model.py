"""The masked acoustic model of a pre-training, new or from a preset."""

from audio_tf import models, optimizers
from audio_tf.models import freezing, preset_backbones, presets


def load_backbone(settings, features):
    """Loads the backbone of features that is trained.

    Args:
        settings: `PretrainSettings`.
        features: `SpeechFeatures`, which it will hear.

    Returns:
        `AudioBackbone`, new, or the one within the preset of an encoder of
        waveforms, which an earlier run has left behind.

    Raises:
        ValueError: if there is none in the model, or it has learned from other
            features.
    """
    options = settings.model_options()
    family, _ = preset_backbones.describe(settings.model)
    if family.takes == "features":
        return models.AudioBackbone.from_preset(
            settings.model, feature_dim=features.dim, **options
        )
    found = models.AudioBackbone.from_preset(settings.model, **options)
    if found.encoder is None:
        raise ValueError(
            "--model must be a backbone of features, or have one within. "
            f"Received: {settings.model}, of {family.__name__}"
        )
    if type(found.features) is not type(features):
        raise ValueError(
            f"--model must hear {type(features).__name__}, which the preset "
            "of the run will have. "
            f"Received: {settings.model}, of {type(found.features).__name__}"
        )
    known, asked = map(facts_of, (found.features, features))
    if known != asked:
        raise ValueError(
            "--features, --sample-rate-hz and --features-options must be "
            f"those that {settings.model} has learned from, "
            f"{without(known, asked)}. Received: {without(asked, known)}"
        )
    return found.encoder


def facts_of(features):
    """Returns a dict of what a `SpeechFeatures` computes."""
    return {
        "preset": features.preset,
        "sample_rate_hz": features.sample_rate_hz,
        **features.options,
    }


def without(facts, others):
    """Returns those of some facts that others do not say, too."""
    return dict(each for each in facts.items() if each not in others.items())


def build(settings):
    """Builds a new model, or one from a preset, and compiles it.

    Args:
        settings: `PretrainSettings`.

    Returns:
        `MaskedAcousticModel`.

    Raises:
        ValueError: if the settings do not fit, or a class could not be loaded
            again.
    """
    with settings.naming_flags():
        features, target = settings.feature_layer(), settings.target_layer()
        backbone = load_backbone(settings, features)
        # A preset may have been saved at rest.
        freezing.thaw(backbone)
        presets.check_found_again(backbone)
        model = models.MaskedAcousticModel(
            backbone,
            target_dim=target and target.dim,
            masking=settings.masking,
            masking_kwargs=settings.masking_kwargs,
            compile=False,
        )
    parts = settings.accumulate if settings.accumulate > 1 else None
    model.compile(
        optimizers.create(
            settings.optimizer,
            optimizers.WarmupLinearDecay(
                settings.learning_rate,
                warmup_steps=settings.warmup_steps,
                total_steps=settings.steps,
                gradient_accumulation_steps=parts,
            ),
            global_clipnorm=settings.clip_norm,
            gradient_accumulation_steps=parts,
        ),
        jit_compile=settings.compiles(),
    )
    return model
