"""The model that trains a classifier: itself, or by mixes and by teachers."""

import contextlib
import json
import pathlib

import keras

from audio_tf.models import AudioClassifier, ClassifierTraining, Distiller
from audio_tf.models.distillation import fit_of
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import callbacks, noise
from audio_tf.runs.recipes import MIXINGS


@contextlib.contextmanager
def in_float32():
    """Builds models in float32 within a context, whatever `--precision` says.

    Teachers have scores to give, not weights to train, and half precision
    would round what is learned from them.
    """
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


def load_teachers(settings, classifier):
    """Loads the teachers of a training in float32, and checks that they fit.

    Args:
        settings: `TrainSettings`.
        classifier: `AudioClassifier` that is to be taught.

    Returns:
        List of `AudioClassifier`.

    Raises:
        ValueError: if one does not fit the classifier or is no classifier, or
            two are one; it names the preset.
    """
    teachers, seen = [], {}
    for preset in settings.teachers:
        try:
            with in_float32():
                teacher = AudioClassifier.from_preset(preset)
            fit_of(classifier, teacher)
        except ValueError as error:
            raise ValueError(f"--teachers {preset}: {error}") from error
        # Of one folder by two paths, or of a copy of it.
        same = seen.setdefault(weights_sha256(teacher.weights), preset)
        if same != preset:
            raise ValueError(
                "--teachers must have each model once, or it would count twice "
                f"in their mean. Received: the same weights of {same} and "
                f"{preset}"
            )
        teachers.append(teacher)
    return teachers


def teacher_facts(settings, teachers):
    """Describes the teachers of a training for its provenance.

    Args:
        settings: `TrainSettings`.
        teachers: list of `AudioClassifier`, as `load_teachers` returns it.

    Returns:
        List of dicts of `preset` and `weights_sha256`.
    """
    return [
        {"preset": preset, "weights_sha256": weights_sha256(teacher.weights)}
        for preset, teacher in zip(settings.teachers, teachers, strict=True)
    ]


def check_teachers(out, facts):
    """Raises a `ValueError` if a run would go on with other teachers.

    Args:
        out: `pathlib.Path`, the folder of the run; it may not be there yet.
        facts: list that `teacher_facts` has returned.
    """
    path = pathlib.Path(out, "config.json")
    if not path.is_file():
        return
    before = json.loads(path.read_text())["teachers"]
    changed = [
        now["preset"]
        for then, now in zip(before, facts, strict=True)
        if then != now
    ]
    if changed:
        raise ValueError(
            f"--teachers are not those that {path} lists, with which this run "
            f"began. Received: other weights of {changed}"
        )


def make_training(settings, classifier, one_label, teachers=(), bank=None):
    """Makes the model whose `fit` trains a classifier.

    It is made anew where a run goes on: its layers draw by the epoch.

    Args:
        settings: `TrainSettings`.
        classifier: `AudioClassifier`, compiled.
        one_label: bool, whether each clip of the corpus has one label.
        teachers: list of `AudioClassifier`, as `load_teachers` returns it.
        bank: float32 array of recordings of noise, or `None`.

    Returns:
        The classifier itself, or a `ClassifierTraining` that has its
        optimizer and its loss.
    """
    mixing = MIXINGS[settings.mixing](classifier.sample_rate_hz)
    laid_under = {"noise": noise.make_layer(settings), "noise_bank": bank}
    if teachers:
        training = Distiller(
            classifier,
            teachers,
            mixing,
            settings.teacher_share,
            settings.teacher_temperature,
            **laid_under,
        )
    elif mixing is not None or bank is not None:
        training = ClassifierTraining(classifier, mixing, **laid_under)
    else:
        return classifier
    # Where the optimizer is saved, its variables are in the classifier's order.
    # Where a run goes on, the scale of float16's loss would be made once more.
    if not classifier.optimizer.built:
        classifier.optimizer.build(classifier.trainable_variables)
    training.compile(
        classifier.optimizer,
        classifier.loss,
        # Clips without labels do not count.
        weighted_metrics=callbacks.training_metrics(
            one_label, classifier.num_classes
        ),
        jit_compile=settings.compiles(),
    )
    return training


def training_name(settings):
    """Returns what the loss and the figures of training are of, in words."""
    words = []
    if settings.mixing != "none":
        words.append(f"mixed by {settings.mixing}")
    if settings.teachers:
        words.append(f"taught by {len(settings.teachers)}")
    return f"training ({', '.join(words)})" if words else "training"
