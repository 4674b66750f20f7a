"""The training of a classifier on clips that are mixed, and their targets."""

import keras

from audio_tf.layers.mixing import mix_targets
from audio_tf.models.classifier import check_targets


class ClassifierTraining(keras.Model):
    """A model that trains a classifier on mixes of clips.

    ```python
    training = ClassifierTraining(classifier, layers.BetweenClassMixing())
    training.compile("adam", "categorical_crossentropy")
    training.fit(waveform, multi_hot)
    classifier.save_to_preset("trained")
    ```

    Clips are mixed before the backbone augments them, and their targets
    alike; the loss and the metrics of training are those of mixes. Without
    `training=True`, as in `evaluate`, nothing is mixed. What is kept is the
    classifier, whose weights are trained: this model is never saved.

    Args:
        classifier: `AudioClassifier`.
        mixing: a layer that mixes waveforms with their targets, such as
            `audio_tf.layers.Mixup`, or `None`.
        name: str, the model's name.

    Call arguments:
        inputs: as the classifier takes them.
        training: bool, whether clips are mixed.

    Returns:
        Dict of `"scores"`, `(batch, classes)`, and, with `mixing`,
        `"partner"`, int32 `(batch,)`, and `"ratio"`, float32 `(batch, 1)`, as
        `audio_tf.layers.mixing.mix_targets` takes them.

    Raises:
        ValueError: if `mixing` is not meant for batches, or for another rate
            than the classifier's, or targets are to be mixed that have no
            number for each class.
    """

    def __init__(self, classifier, mixing=None, name=None):
        # Half precision is for the classifier's products, not for sound.
        super().__init__(name=name, dtype="float32")
        if mixing is not None and mixing.domain != "batch":
            raise ValueError(
                "`mixing` must be a layer that mixes clips with their targets. "
                f"Received: {type(mixing).__name__}, which augments the "
                f"{mixing.domain}"
            )
        if mixing is not None:
            mixing.check_rate(classifier.sample_rate_hz)
        self.classifier = classifier
        self.mixing = mixing

    def build(self, input_shape):
        # All that has weights is built with the classifier.
        self.built = True

    def call(self, inputs, training=None):
        inputs, pairs = self.mixed(inputs, training)
        return {"scores": self.classifier(inputs, training=training), **pairs}

    def mixed(self, inputs, training):
        """Mixes clips in training.

        Args:
            inputs: as the classifier takes them.
            training: bool, whether clips are mixed.

        Returns:
            Pair of the dict of `waveform` and `lengths` that the classifier
            is given, and of the dict of `partner` and `ratio`, empty without
            `mixing`.
        """
        inputs = self.classifier.completed(inputs)
        if self.mixing is None:
            return inputs, {}
        waveform, lengths, pairs = self.mixing.mix_clips(
            **inputs, training=training
        )
        return {"waveform": waveform, "lengths": lengths}, pairs

    def targets_of(self, targets, outputs):
        """Mixes targets as the clips were mixed that the scores are of.

        Args:
            targets: floating tensor `(batch, classes)`.
            outputs: dict that `call` has returned.

        Raises:
            ValueError: if targets of another shape are to be mixed.
        """
        if self.mixing is None:
            return targets
        shape, classes = tuple(targets.shape), outputs["scores"].shape[-1]
        if len(shape) != 2 or shape[1] not in (None, classes):
            raise ValueError(
                "Targets that are mixed must have a number for each class, "
                f"(batch, {classes}). Received: targets of shape {shape}"
            )
        return mix_targets(targets, outputs["partner"], outputs["ratio"])

    def labelled(self, targets, scores, sample_weight):
        """Returns the targets of what was heard, and the weights of each.

        Args:
            targets: tensor, mixed as the clips were.
            scores: tensor `(batch, classes)`.
            sample_weight: tensor `(batch,)` or `None`.
        """
        return targets, sample_weight

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Computes the compiled loss of what was heard, mixed or not."""
        targets, scores = self.targets_of(y, y_pred), y_pred["scores"]
        check_targets(self.loss, targets, scores)
        targets, sample_weight = self.labelled(targets, scores, sample_weight)
        return super().compute_loss(
            x, targets, scores, sample_weight, training=training
        )

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Updates the metrics by what was heard, mixed or not."""
        targets, scores = self.targets_of(y, y_pred), y_pred["scores"]
        targets, sample_weight = self.labelled(targets, scores, sample_weight)
        return super().compute_metrics(x, targets, scores, sample_weight)
