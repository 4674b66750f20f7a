"""The classifier that a training begins with, and the one that it keeps."""

import keras

from audio_tf import console
from audio_tf.models import (
    AudioClassifier,
    freezing,
    preset_backbones,
    preset_tasks,
    presets,
)
from audio_tf.models.targets import check_one_label
from audio_tf.runs import callbacks
from audio_tf.runs.recipes import AUGMENTATIONS
from audio_tf.terminal import first_quoted


def augmentation(settings):
    """Returns the backbone's argument `augmentation`, in a dict.

    Args:
        settings: `TrainSettings`.

    Returns:
        Dict; empty where only the recipe asks for it, and the model is a
        preset with its own, and where there is no such argument, and none to
        be given to it.

    Raises:
        ValueError: if a flag asks for what the model cannot have.
    """
    family, config = preset_backbones.describe(settings.model)
    asked_for = "augmentation" in settings.given
    if "augmentation" not in preset_backbones.accepted(family, config):
        if asked_for and settings.augmentation != "none":
            raise ValueError(
                f"--augmentation must be none for {family.__name__}, which "
                f"has none. Received: model={settings.model!r}, "
                f"augmentation={settings.augmentation!r}"
            )
        return {}
    # A preset that was saved keeps its own.
    if not asked_for and settings.model not in presets.list_sizes():
        return {}
    rate_hz = preset_backbones.rate_hz(settings.model, settings.model_options())
    return {"augmentation": AUGMENTATIONS[settings.augmentation](rate_hz)}


def head(settings, one_label):
    """Returns the arguments of the head, in a dict.

    Args:
        settings: `TrainSettings`.
        one_label: bool, whether each clip of the corpus has one label.

    Returns:
        Dict; without a pooling where only the recipe asks for one, and the
        model was published with a head of its own.
    """
    options = settings.head_options(one_label)
    family, _ = preset_backbones.describe(settings.model)
    if "pooling" not in settings.given and "pooling" in family.head:
        del options["pooling"]
    return options


def check_trains(model):
    """Raises a `ValueError` for the preset of a model over a frozen backbone.

    Pooling, augmentation and rates are for one that is trained.

    Args:
        model: str, the size or the preset.
    """
    family = preset_tasks.class_for(model, AudioClassifier)
    if not family.trains_backbone:
        raise ValueError(
            f"--model must not be a {family.__name__}, which decodes a frozen "
            "model: `audio-tf emotion --model` trains such decoders of the "
            "preset of an encoder or a classifier. "
            f"Received: model={model!r}"
        )


def load(settings, options):
    """Loads a preset, or builds a size, with the backbone of a training.

    Args:
        settings: `TrainSettings`.
        options: dict of the arguments of the head.

    Returns:
        `AudioClassifier`.

    Raises:
        TypeError, ValueError: as `AudioClassifier.from_preset` raises them.
    """
    # Head and backbone both have a dropout; a flag is the backbone's.
    own = {**augmentation(settings), **settings.model_options()}
    return AudioClassifier.from_preset(
        settings.model, backbone_kwargs=own, **options
    )


def build(settings, corpus):
    """Builds a new classifier, or takes that of a preset.

    A preset's head is kept if it is one for the labels of the corpus, in
    their order, pooled alike; else the classifier gets a new one.

    Args:
        settings: `TrainSettings`, which are told the pooling that was taken.
        corpus: `Corpus` of the training split.

    Returns:
        `AudioClassifier`, not compiled.

    Raises:
        ValueError: if the head alone is to be trained, on random weights,
            the model freezes its backbone, every clip has the same label and
            no other, a clip has several or none and the loss takes one, or a
            class could not be loaded again.
    """
    labels = corpus.vocabulary
    corpus.check_teaches()
    check_trains(settings.model)
    head_alone = settings.trainable == "head"
    if head_alone and settings.model in presets.list_sizes():
        raise ValueError(
            "--trainable head needs a preset, whose weights are trained "
            f"already. Received: the size {settings.model!r}"
        )
    one_label = corpus.has_one_label()
    check_one_label(
        settings.loss_function(one_label),
        corpus.targets(),
        # Teachers judge a clip that has none.
        least=0 if settings.teachers else 1,
    )
    options = head(settings, one_label)
    kept = preset_tasks.has_head_of(
        settings.model,
        labels=labels,
        **{
            name: options[name]
            for name in ("pooling", "activation")
            if name in options
        },
    )
    if not kept:
        options["labels"] = labels
    with settings.naming_flags():
        classifier = load(settings, options)
    # A preset may have been saved at rest; what rests by its class still does.
    if not classifier.trainable:
        classifier.trainable = True
    freezing.thaw(classifier.backbone)
    if head_alone:
        classifier.backbone.trainable = False
    settings.pooling = classifier.pooling
    presets.check_found_again(classifier)
    console.print_summary(classifier)
    whose = "the preset's head" if kept else "a new head"
    print(f"{whose} for {len(labels)} labels: {first_quoted(labels)}")
    return classifier


def kept_model(settings, out):
    """Loads the classifier that a run has kept.

    Args:
        settings: `TrainSettings`.
        out: `pathlib.Path`, the folder of the run.

    Returns:
        The `AudioClassifier`: the best by `settings.monitor` where there is a
        validation split, else the last.
    """
    if (out / "best.keras").is_file():
        return keras.saving.load_model(out / "best.keras")
    classifier = keras.saving.load_model(out / "last.keras")
    if settings.average_share:
        callbacks.take_averages(classifier)
    return classifier
