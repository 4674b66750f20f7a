"""The optimizer of training, with its schedule, and the loss."""

import keras

from audio_tf import compat, optimizers
from audio_tf.models.distillation import activation_of
from audio_tf.runs import callbacks

# Decay is for products: the scale of a norm has no reason to go to zero.
NO_DECAY = ("bias", "gamma", "beta", "log_", "slope", "logit_")


def make_optimizer(settings, steps_per_epoch, head=()):
    """Makes the optimizer of a new model, with its schedule.

    Args:
        settings: `TrainSettings`.
        steps_per_epoch: int, batches of an epoch.
        head: list of the paths of the head's weights, as `head_paths` returns
            it.

    Returns:
        `keras.optimizers.Optimizer`.

    Raises:
        ValueError: if the rate would rise in all steps.
    """
    learning_rate = settings.learning_rate
    if settings.schedule == "cosine":
        steps = settings.epochs * steps_per_epoch
        warmup_steps = round(settings.warmup_share * steps)
        if warmup_steps == steps:
            raise ValueError(
                "--warmup-share must leave a step in which the rate falls. "
                f"Received: {settings.warmup_share} of {steps} steps"
            )
        learning_rate = keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=learning_rate / max(1, warmup_steps),
            decay_steps=steps - warmup_steps,
            alpha=0.001,
            warmup_target=learning_rate,
            warmup_steps=warmup_steps,
        )
    options = {"global_clipnorm": settings.clip_norm}
    if settings.average_share:
        reach = settings.average_share * settings.epochs * steps_per_epoch
        options["use_ema"] = True
        options["ema_momentum"] = 1.0 - 1.0 / max(1.0, reach)
    one_rate = settings.head_rate == 1.0
    # The average of Keras' own begins at the first step's weights, and its
    # moments have the precision of the weights.
    more = settings.weight_decay or settings.average_share
    if one_rate and settings.precision not in compat.HALVES and not more:
        return keras.optimizers.Adam(learning_rate, **options)
    return optimizers.create(
        "adamw",
        learning_rate,
        weight_decay=settings.weight_decay,
        rate_factors=None
        if one_rate
        else dict.fromkeys(head, settings.head_rate),
        exclude_from_weight_decay=NO_DECAY,
        **options,
    )


def compile(classifier, settings, steps_per_epoch, one_label):
    """Gives a new classifier its loss and its optimizer.

    Args:
        classifier: `AudioClassifier`.
        settings: `TrainSettings`.
        steps_per_epoch: int, batches of an epoch.
        one_label: bool, whether each clip that is trained on has one label.
    """
    # The head's, which is made for all clips that are listed: where those of
    # several labels are bad files, others of one label each are left.
    shares = activation_of(classifier) == "softmax"
    classifier.compile(
        make_optimizer(settings, steps_per_epoch, head_paths(classifier)),
        settings.loss_function(shares),
        metrics=callbacks.training_metrics(one_label, classifier.num_classes),
        jit_compile=settings.compiles(),
    )


def head_paths(classifier):
    """Lists the paths of the weights of a classifier that are its head's.

    Args:
        classifier: `AudioClassifier`.

    Returns:
        List of str.
    """
    backbone = {id(weight) for weight in classifier.backbone.weights}
    return [
        weight.path
        for weight in classifier.trainable_weights
        if id(weight) not in backbone
    ]
