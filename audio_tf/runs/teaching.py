"""The model that trains a classifier: itself, or one that mixes its clips."""

from audio_tf.models import ClassifierTraining
from audio_tf.runs import callbacks
from audio_tf.runs.recipes import MIXINGS


def make_training(settings, classifier, one_label):
    """Makes the model whose `fit` trains a classifier.

    It is made anew where a run goes on: its layers draw by the epoch.

    Args:
        settings: `TrainSettings`.
        classifier: `AudioClassifier`, compiled.
        one_label: bool, whether each clip of the corpus has one label.

    Returns:
        The classifier itself, or a `ClassifierTraining` that has its
        optimizer and its loss.
    """
    mixing = MIXINGS[settings.mixing](classifier.sample_rate_hz)
    if mixing is None:
        return classifier
    training = ClassifierTraining(classifier, mixing)
    training.compile(
        classifier.optimizer,
        classifier.loss,
        metrics=callbacks.training_metrics(one_label, classifier.num_classes),
        jit_compile=settings.jit_compile,
    )
    return training


def training_name(settings):
    """Returns what the loss and the figures of training are of, in words."""
    if settings.mixing == "none":
        return "training"
    return f"training (mixed by {settings.mixing})"
