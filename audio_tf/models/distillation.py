"""Distillation: a classifier learns from the scores of trained ones."""

import math

import keras
from keras import ops

from audio_tf.models.targets import takes_ids
from audio_tf.models.training import ClassifierTraining
from audio_tf.ops import masks

# Losses of logits, by the activation of the scores that are learned.
SOFT_LOSSES = {
    "softmax": keras.losses.CategoricalCrossentropy,
    "sigmoid": keras.losses.BinaryCrossentropy,
}

# Far below the share of any clip in a mix.
EPSILON = 1e-7


class Distiller(ClassifierTraining):
    """A model that trains a classifier on the scores of teachers, too.

    "Distilling the Knowledge in a Neural Network" (arXiv 1503.02531): with
    the logits `z` of the classifier, its compiled loss `L` of the labels and
    the mean `p` of the teachers' scores at the temperature `T`, the loss is

        (1 - share) * L + share * T^2 * crossentropy(p, f(z / T))

    where `f` is the activation of the classifier's scores, softmax or
    sigmoid, and a teacher's scores are `f(z / T)` of its own logits and its
    own activation; for a softmax classifier they are divided by their sum.
    CMKD (arXiv 2203.06760) trains audio transformers so. As in "Knowledge
    distillation: A good teacher is patient and consistent"
    (arXiv 2106.05237), the teachers are given the very waveform that the
    classifier hears in training: mixed, and behind those augmentations of its
    backbone that change the waveform. They never draw anything themselves.

    Where scores are a softmax, a clip whose targets are all 0 has no label,
    and the teachers alone judge it, in mixes by its share of them. Its weight
    in the loss of the labels and in `weighted_metrics` is 0. Clips of other
    sounds and voices show more of what the teachers know.

    ```python
    distiller = Distiller(classifier, [teacher], share=0.7, temperature=2.0)
    distiller.compile("adam", "categorical_crossentropy")
    distiller.fit(waveform, multi_hot)
    classifier.save_to_preset("taught")
    ```

    Args:
        classifier: `AudioClassifier` with labels, which is trained.
        teachers: list of `AudioClassifier` of the same labels in any order,
            of the same rate and chunks. They are frozen.
        mixing, noise, noise_bank: as `ClassifierTraining` takes them. The
            teachers hear the noise, too.
        share: float in [0, 1], the weight of the teachers' scores.
        temperature: float above 0; more makes scores more alike.
        name: str, the model's name.

    Call arguments:
        inputs: as the classifier takes them.
        training: bool, whether clips are mixed and augmented.

    Returns:
        Dict as `ClassifierTraining` returns it, with `"logits"`, what the
        scores are the activation of, and `"taught"`, the teachers' scores at
        the temperature; both float32 `(batch, classes)`.

    Raises:
        ValueError: if a teacher does not fit the classifier, or an argument
            is out of range.
    """

    def __init__(
        self,
        classifier,
        teachers,
        mixing=None,
        share=0.7,
        temperature=2.0,
        noise=None,
        noise_bank=None,
        name=None,
    ):
        super().__init__(classifier, mixing, noise, noise_bank, name=name)
        if not 0.0 <= share <= 1.0:
            raise ValueError(
                f"`share` must be in [0, 1]. Received: share={share}"
            )
        if not 0.0 < temperature < math.inf:
            raise ValueError(
                "`temperature` must be above 0 and finite. "
                f"Received: temperature={temperature}"
            )
        if not teachers:
            raise ValueError(
                "`teachers` must be classifiers. Received: an empty list"
            )
        self.orders = [fit_of(classifier, each) for each in teachers]
        self.share = share
        self.temperature = temperature
        self.teachers = list(teachers)
        for teacher in self.teachers:
            teacher.trainable = False
        self.hearing = classifier.frame_model.with_heard()
        self.soft_loss = SOFT_LOSSES[activation_of(classifier)](
            from_logits=True
        )

    # The teachers alone judge a clip that has none.
    least_labels = 0

    def call(self, inputs, training=None):
        inputs, pairs = self.mixed(inputs, training)
        lengths = masks.real_lengths(inputs["waveform"], inputs["lengths"])
        frames = self.hearing({**inputs, "lengths": lengths}, training=training)
        logits = self.classifier.clip_logits(
            frames["sequence_output"], frames["frame_mask"], training
        )
        return {
            "scores": self.classifier.output_activation(logits),
            "logits": ops.cast(logits, "float32"),
            "taught": self.taught(frames["heard"]),
            **pairs,
        }

    def taught(self, inputs):
        """Computes what the teachers make of a batch.

        Args:
            inputs: dict of `waveform` and `lengths`.

        Returns:
            Float32 tensor `(batch, classes)`, the mean of the teachers'
            scores at the temperature, in the order of the classifier's.
        """
        total = 0.0
        for teacher, order in zip(self.teachers, self.orders, strict=True):
            frames = teacher.frame_model(inputs, training=False)
            logits = teacher.clip_logits(
                frames["sequence_output"], frames["frame_mask"], False
            )
            logits = ops.cast(logits, "float32") / self.temperature
            total += ops.take(teacher.activation(logits), order, axis=-1)
        scores = total / len(self.teachers)
        if activation_of(self.classifier) == "softmax":
            scores = scores / ops.sum(scores, axis=-1, keepdims=True)
        return ops.stop_gradient(scores)

    def labelled(self, targets, scores, sample_weight):
        """Weighs each row by how much of it has a label."""
        softmax = activation_of(self.classifier) == "softmax"
        # Batches of `tf.data` may not know their classes beforehand.
        shape, counts = tuple(targets.shape), (None, scores.shape[-1])
        by_class = len(shape) == 2 and shape[1] in counts
        if not (softmax and by_class) or takes_ids(self.loss):
            return targets, sample_weight
        targets = ops.cast(targets, "float32")
        known = ops.minimum(ops.sum(targets, axis=-1), 1.0)
        targets = targets / ops.maximum(known, EPSILON)[:, None]
        if sample_weight is None:
            return targets, known
        # Keras takes weights of shape (batch, 1), too.
        weight = ops.reshape(ops.cast(sample_weight, "float32"), (-1,))
        return targets, known * weight

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Computes the loss of the labels and of the teachers' scores."""
        loss = super().compute_loss(
            x, y, y_pred, sample_weight, training=training
        )
        _, weights = self.targets_of(y, y_pred, sample_weight)
        soft = self.soft_loss(
            y_pred["taught"], y_pred["logits"] / self.temperature, weights
        )
        return (1.0 - self.share) * loss + (
            self.share * self.temperature**2 * soft
        )


def activation_of(classifier):
    """Returns the name of the activation of a classifier's scores.

    Args:
        classifier: `AudioClassifier`.

    Raises:
        ValueError: if it is neither softmax nor sigmoid.
    """
    name = keras.activations.serialize(classifier.activation)
    if name not in SOFT_LOSSES:
        raise ValueError(
            "Classifiers that teach or are taught must have scores by "
            f"{' or '.join(SOFT_LOSSES)}. Received: activation={name!r}"
        )
    return name


def fit_of(classifier, teacher):
    """Checks that a teacher fits a classifier, and orders its scores.

    Args:
        classifier: `AudioClassifier`.
        teacher: `AudioClassifier`.

    Returns:
        List of int: `scores[:, order]` of the teacher are in the order of the
        classifier's.

    Raises:
        ValueError: if it has other labels, another rate or other chunks, or
            scores by another activation than softmax and sigmoid.
    """
    activation_of(teacher)
    for name in ("sample_rate_hz", "chunk_s"):
        own, other = getattr(classifier, name), getattr(teacher, name)
        if own != other:
            raise ValueError(
                f"A teacher must have the `{name}` of the classifier. "
                f"Received: {name}={other}, of the classifier {own}"
            )
    for model in (classifier, teacher):
        if model.labels is None:
            raise ValueError(
                "Classifier and teachers must have `labels`, by which their "
                f"scores are put in order. Received: {model.name} without"
            )
    missing = [each for each in classifier.labels if each not in teacher.labels]
    further = [each for each in teacher.labels if each not in classifier.labels]
    if missing or further:
        raise ValueError(
            "A teacher must have the labels of the classifier. Received: a "
            f"teacher without {missing}, with {further} beyond"
        )
    return [teacher.labels.index(label) for label in classifier.labels]
