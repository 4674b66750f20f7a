"""The training of a classifier on clips that are mixed, and their targets."""

import keras
import numpy as np
from keras import ops

from audio_tf import compat
from audio_tf.layers.mixing import mix_targets, mix_weights
from audio_tf.models.batch_sources import checked_batches
from audio_tf.models.checked_calls import CheckedCalls
from audio_tf.models.named_files import file_names, is_text, label_rows
from audio_tf.models.targets import check_targets


class ClassifierTraining(
    CheckedCalls, compat.OnAnyBackend, compat.TracedAnew, keras.Model
):
    """A model that trains a classifier on mixes of clips.

    ```python
    training = ClassifierTraining(classifier, layers.BetweenClassMixing())
    training.compile("adam", "categorical_crossentropy")
    training.fit(waveform, multi_hot)
    classifier.save_to_preset("trained")
    ```

    Clips are mixed before the backbone augments them, and their targets
    alike; noise is laid under what comes of it. The loss and the metrics of
    training are those of mixes, in which the label of each clip has its own
    weight where `fit` is given a `sample_weight` or a `class_weight`
    (`audio_tf.layers.mixing.mix_weights`). Without `training=True`, as in
    `evaluate`, nothing is changed. What is kept is the classifier, whose
    weights are trained: this model is never saved.

    Args:
        classifier: `AudioClassifier`.
        mixing: a layer that mixes waveforms with their targets, such as
            `audio_tf.layers.Mixup`, or `None`.
        noise: `audio_tf.layers.AdditiveNoise`, which lays noise under the
            clips or their mixes, or `None`.
        noise_bank: float array `(recordings, bank_samples)`, the recordings
            that `noise` takes pieces of, at the classifier's rate, or `None`
            for Gaussian noise.
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
            number for each class; if `noise_bank` has another shape, or
            nothing takes pieces of it.
    """

    def __init__(
        self, classifier, mixing=None, noise=None, noise_bank=None, name=None
    ):
        # By the policy `compile` scales the loss, or small gradients are lost;
        # but half precision is for the classifier's products, not for sound.
        super().__init__(
            name=name, dtype=classifier.dtype_policy, autocast=False
        )
        if mixing is not None and mixing.domain != "batch":
            raise ValueError(
                "`mixing` must be a layer that mixes clips with their targets. "
                f"Received: {type(mixing).__name__}, which augments the "
                f"{mixing.domain}"
            )
        if mixing is not None:
            mixing.check_rate(classifier.sample_rate_hz)
        if noise_bank is not None and noise is None:
            raise ValueError(
                "`noise_bank` needs `noise`, a layer that takes pieces of it. "
                "Received: noise=None"
            )
        if noise_bank is not None and (
            np.ndim(noise_bank) != 2 or not np.size(noise_bank)
        ):
            raise ValueError(
                "`noise_bank` must be floats (recordings, samples). "
                f"Received: an array of shape {np.shape(noise_bank)}"
            )
        self.classifier = classifier
        self.mixing = mixing
        self.noise = noise
        self.noise_bank = None
        if noise_bank is not None:
            # A constant would be copied into each graph.
            self.noise_bank = self.add_weight(
                shape=np.shape(noise_bank),
                dtype="float32",
                trainable=False,
                name="noise_bank",
            )
            self.noise_bank.assign(noise_bank)
        # All that has weights is: what restores them before the first batch,
        # as `keras.callbacks.BackupAndRestore` does, must know.
        self.built = True

    def call(self, inputs, training=None):
        inputs, pairs = self.mixed(inputs, training)
        return {"scores": self.classifier(inputs, training=training), **pairs}

    def mixed(self, inputs, training):
        """Mixes clips in training, and lays noise under them.

        Args:
            inputs: as the classifier takes them.
            training: bool, whether clips are mixed.

        Returns:
            Pair of the dict of `waveform` and `lengths` that the classifier
            is given, and of the dict of `partner` and `ratio`, empty without
            `mixing`.
        """
        inputs = self.classifier.completed(inputs)
        # Keras takes no mixture of arrays, as an eager step on JAX gets them
        # of a dataset, and of tensors that are computed of them.
        waveform = ops.convert_to_tensor(inputs["waveform"])
        lengths, pairs = inputs["lengths"], {}
        if self.mixing is not None:
            waveform, lengths, pairs = self.mixing.mix_clips(
                waveform, lengths, training=training
            )
        if self.noise is not None:
            waveform, lengths = self.noise(
                waveform, lengths, bank=self.noise_bank, training=training
            )
        return {"waveform": waveform, "lengths": lengths}, pairs

    def checked(self, method, args, kwargs):
        """Returns the arguments of a call, its weights of classes by number.

        Those are taken as `AudioClassifier.fit` takes them.

        Raises:
            ValueError: as in `CheckedCalls`, or if there are names of files
                or of labels.
        """
        given = super().checked(method, args, kwargs)
        for name in ("x", "validation_data"):
            if name in given:
                given[name] = checked_batches(given[name], self.refuse_batch)
        self.classifier.replace_class_weight(given, given.get("y"))
        return given

    def check_batch(self, batch):
        x, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
        if compat.is_tf_dataset(x):
            x, y, _ = keras.utils.unpack_x_y_sample_weight(x.element_spec)
            self.refuse_names(is_text(x), is_text(y))
        else:
            self.refuse_batch(batch)
            super().check_batch(batch)

    def refuse_batch(self, batch):
        """Raises a `ValueError` for names of files or of labels in a batch.

        Args:
            batch: tuple of `x` and, if there are any, `y` and weights.
        """
        x, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
        self.refuse_names(bool(file_names(x)), bool(label_rows(y)))

    def refuse_names(self, files, labels):
        """Raises a `ValueError` if there are names.

        Args:
            files: bool, whether there are names of files.
            labels: bool, whether there are names of labels.
        """
        if files or labels:
            found = "files" if files else "labels"
            raise ValueError(
                f"A {type(self).__name__} is trained on arrays; "
                "`classifier.preprocessor(x, y)` makes them of names, and "
                "of a dataset by `dataset.map(classifier.preprocessor)"
                f".unbatch().batch(32)`. Received: names of {found}"
            )

    def get_config(self):
        raise NotImplementedError(
            f"A {type(self).__name__} is not saved whole: save its "
            "`classifier`, whose weights it trains, or, to go on with the "
            "training, weights alone. Received: a call that saves the model"
        )

    def targets_of(self, targets, outputs, sample_weight=None):
        """Mixes targets and weights as the clips were mixed.

        Args:
            targets: floating tensor `(batch, classes)`.
            outputs: dict that `call` has returned.
            sample_weight: tensor `(batch,)` or `(batch, 1)`, the weights of
                clips, or `None`.

        Returns:
            Pair of the targets and of the weights of mixes, `(batch,)` or
            `None`; as they are without `mixing`.

        Raises:
            ValueError: if targets or weights of another shape are to be mixed.
        """
        if self.mixing is None:
            return targets, sample_weight
        shape, classes = tuple(targets.shape), outputs["scores"].shape[-1]
        if len(shape) != 2 or shape[1] not in (None, classes):
            raise ValueError(
                "Targets that are mixed must have a number for each class, "
                f"(batch, {classes}). Received: targets of shape {shape}"
            )
        partner, ratio = outputs["partner"], outputs["ratio"]
        if sample_weight is not None:
            sample_weight, ratio = mix_weights(sample_weight, partner, ratio)
        return mix_targets(targets, partner, ratio), sample_weight

    def labelled(self, targets, scores, sample_weight):
        """Returns the targets of what was heard, and the weights of each.

        Args:
            targets: tensor, mixed as the clips were.
            scores: tensor `(batch, classes)`.
            sample_weight: tensor `(batch,)` or `None`, mixed alike.
        """
        return targets, sample_weight

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Computes the compiled loss of what was heard, mixed or not."""
        scores = y_pred["scores"]
        targets, sample_weight = self.targets_of(y, y_pred, sample_weight)
        check_targets(self.loss, targets, scores)
        targets, sample_weight = self.labelled(targets, scores, sample_weight)
        return super().compute_loss(
            x, targets, scores, sample_weight, training=training
        )

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Updates the metrics by what was heard, mixed or not."""
        scores = y_pred["scores"]
        targets, sample_weight = self.targets_of(y, y_pred, sample_weight)
        targets, sample_weight = self.labelled(targets, scores, sample_weight)
        return super().compute_metrics(x, targets, scores, sample_weight)
