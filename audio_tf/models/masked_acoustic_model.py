"""Masked acoustic modelling: a backbone learns by filling in frames."""

import keras
from keras import ops

from audio_tf import compat
from audio_tf.layers import activations
from audio_tf.layers.frame_masking import MASKING_POLICIES, FrameMasking
from audio_tf.models import head_dtypes
from audio_tf.models.checked_calls import CheckedCalls
from audio_tf.models.freezing import freeze_layers
from audio_tf.models.given_clips import bound
from audio_tf.models.inputs import FeatureDoor, check_features, complete
from audio_tf.models.targets import has_values
from audio_tf.ops import checks


def masked_l1(targets, outputs, masked, weights=None):
    """Computes the mean absolute difference over masked frames, in float32.

    The mean is over all features of the frames. Without any masked frame it
    is 0.

    Args:
        targets: floating tensor `(batch, frames, dim)`.
        outputs: floating tensor `(batch, frames, dim)`.
        masked: boolean `(batch, frames)`, True for the frames that count.
        weights: floating `(batch,)`, how much each clip counts, or `None`.

    Returns:
        Float32 scalar.

    Raises:
        ValueError: if the frames or features of `targets` and `outputs`
            differ, or there is more than one weight for a clip.
    """
    shape = () if weights is None else tuple(weights.shape)
    if any(size != 1 for size in shape[1:]):
        raise ValueError(
            "`sample_weight` must have one weight for each clip, of shape "
            f"(batch,). Received: weights of shape {shape}"
        )
    if targets.shape[-1] != outputs.shape[-1]:
        raise ValueError(
            "The targets must have `target_dim` features. Received: "
            f"{targets.shape[-1]} features, target_dim={outputs.shape[-1]}"
        )
    frames = {*tuple(targets.shape)[1:2], outputs.shape[1]} - {None}
    if len(targets.shape) != 3 or len(frames) > 1:
        # One frame, or none, would be repeated over all of them.
        raise ValueError(
            "The targets must have the frames of the features, of shape "
            "(batch, frames, target_dim). Received: targets of shape "
            f"{tuple(targets.shape)} for outputs of {tuple(outputs.shape)}"
        )
    difference = ops.cast(targets, "float32") - ops.cast(outputs, "float32")
    # What is not counted may be anything, not even finite; here, so that its
    # gradient is zero too.
    difference = ops.where(ops.expand_dims(masked, -1), difference, 0.0)
    by_frame = ops.mean(ops.abs(difference), axis=-1)  # (B, T)
    counts = ops.cast(masked, "float32")
    if weights is not None:
        weights = ops.cast(ops.reshape(weights, (-1, 1)), "float32")
        counts = counts * weights
    total = ops.sum(counts)
    return ops.sum(by_frame * counts) / ops.where(total > 0.0, total, 1.0)


class ReplicaShare(keras.losses.Loss):
    """A loss that is computed already, and is shared among replicas by Keras.

    Keras adds up the gradients of the replicas of `tf.distribute`, and so
    divides the values of its own losses by their number; other losses it
    leaves as they are.
    """

    def call(self, y_true, y_pred):
        return ops.reshape(y_pred, (1,))


@keras.saving.register_keras_serializable("audio_tf")
class MaskedAcousticModel(
    CheckedCalls,
    FeatureDoor,
    compat.OnAnyBackend,
    compat.QuietQuantization,
    keras.Model,
):
    """A model that pre-trains an Audio ALBERT to fill in hidden frames.

    ```python
    backbone = AudioAlbertBackbone.from_preset("audio_albert_6")
    model = MaskedAcousticModel(backbone, masking="paper")
    model.fit(features)
    backbone.save_to_preset("pretrained")
    ```

    The loss is the L1 distance over masked frames (Mockingjay,
    arXiv 1910.12638), `masked_l1`, of this batch; `compile` takes no other
    and no metrics, and `fit` no `class_weight`: there are no labels.
    `fit` sees plain features, padded clips with their `lengths`: masks are
    drawn inside, at random in training, and from a fixed seed in `evaluate`
    and `predict`, so that batches of equal sizes have equal masks and losses
    of epochs compare. The backbone alone never masks.

    Args:
        backbone: an `AudioAlbertBackbone`.
        target_dim: int, features of the targets `y` that `fit` is given,
            3075 for the authors' linear spectrogram; `None` to rebuild the
            inputs, without a `y`.
        masking: `"paper"` or `"s3prl"`, a key of
            `audio_tf.layers.MASKING_POLICIES`.
        masking_kwargs: dict of further arguments of `FrameMasking`.
        head_dtype: the dtype policy of the masking and of the layers that
            rebuild the frames, or `None` for the backbone's.
        compile: bool, whether to compile the model with Adam at the paper's
            learning rate of 5e-5 and the authors' clipping at a norm of 10.
        name: str, the model's name.
        trainable: bool. If False, nothing of the model is trained.

    Call arguments:
        inputs: as `AudioAlbertBackbone` takes them.

    Returns:
        Dict of `"reconstruction"`, `(batch, frames, target_dim)`;
        `"masked_features"`, `(batch, frames, feature_dim)`, the input of the
        backbone; `"masked_frames"`, boolean `(batch, frames)`, True where a
        frame counts in the loss; and `"frame_mask"`, boolean
        `(batch, frames)`, True where a frame is real.

    Raises:
        ValueError: if there is no such `masking`, the backbone takes no
            features, `target_dim` is no positive integer, targets of another
            size are given, or it is trained by a loss that `compile` got.
    """

    takes = "features"

    def __init__(
        self,
        backbone,
        target_dim=None,
        masking="paper",
        masking_kwargs=None,
        head_dtype=None,
        compile=True,
        name=None,
        trainable=True,
        **unknown,
    ):
        known = checks.parameters_of(MaskedAcousticModel, MaskedAcousticModel)
        checks.reject_unknown("MaskedAcousticModel", unknown, known)
        checks.check_choice("masking", masking, MASKING_POLICIES)
        checks.check_flags(compile=compile, trainable=trainable)
        check_features(backbone, "MaskedAcousticModel")
        if target_dim is not None:
            checks.check_sizes(target_dim=target_dim)
        own_head_dtype = head_dtypes.asked(head_dtype)
        dtype = own_head_dtype or backbone.dtype_policy
        # === Layers ===
        mask_frames = FrameMasking(
            **{
                **MASKING_POLICIES[masking],
                "evaluation_seed": 0,
                **(masking_kwargs or {}),
            },
            dtype=dtype,
            name="masking",
        )
        head = [
            keras.layers.Dense(
                backbone.hidden_dim,
                activation=activations.gelu,
                kernel_initializer=initializer_of(backbone),
                dtype=dtype,
                name="head_dense",
            ),
            keras.layers.LayerNormalization(
                epsilon=backbone.layer_norm_epsilon,
                dtype=dtype,
                name="head_norm",
            ),
            keras.layers.Dense(
                target_dim or backbone.feature_dim,
                kernel_initializer=initializer_of(backbone),
                dtype=dtype,
                name="head_output",
            ),
        ]

        # === Functional Model ===
        inputs = backbone.input
        features, masked = mask_frames(
            inputs["features"], lengths=inputs["lengths"]
        )
        outputs = backbone({"features": features, "lengths": inputs["lengths"]})
        x = outputs["sequence_output"]
        for layer in head:
            x = layer(x)
        super().__init__(
            inputs=inputs,
            outputs={
                "reconstruction": x,
                "masked_features": features,
                "masked_frames": masked,
                "frame_mask": outputs["frame_mask"],
            },
            name=name,
        )
        freeze_layers(self, trainable)
        compat.settle_dtypes(self)
        compat.scale_loss_for(self, dtype)

        # === Config ===
        self.backbone = backbone
        self.head = head
        self.target_dim = target_dim
        self.masking = masking
        self.masking_kwargs = dict(masking_kwargs or {})
        self.head_dtype = own_head_dtype
        if compile:
            self.compile(keras.optimizers.Adam(5e-5, global_clipnorm=10.0))

    def checked(self, method, args, kwargs):
        """Returns the arguments of a call, of which none is refused.

        Raises:
            ValueError: as in `CheckedCalls`, or if there is a `class_weight`,
                or `compile` got metrics.
        """
        refuse_class_weight(bound(method, args, kwargs))
        refuse_metrics(self)
        given = super().checked(method, args, kwargs)
        names = ("x", "y", "sample_weight")
        given.update(zip(names, with_targets(*map(given.get, names))))
        data = given.get("validation_data")
        if isinstance(data, (list, tuple)) and len(data) == len(names):
            given["validation_data"] = with_targets(*data)
        return given

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Computes `masked_l1` of a batch, and adds the losses of layers."""
        if self.loss is not None:
            raise ValueError(
                "`compile` takes no loss: it is the L1 of masked frames. "
                f"Received: loss={self.loss!r}"
            )
        targets = complete(x, self.takes)["features"] if y is None else y
        loss = masked_l1(
            targets,
            y_pred["reconstruction"],
            y_pred["masked_frames"],
            sample_weight,
        )
        for added in self.losses:
            loss = loss + ops.cast(ops.sum(added), "float32")
        return ReplicaShare()(loss, loss)

    def reconstruct(self, features):
        """Fills in the frames that it hides as in evaluation.

        Where XLA compiles `evaluate`, TensorFlow hides other frames there, of
        the seed that is used here.

        Args:
            features: as the model takes them.

        Returns:
            Dict of the model's outputs as numpy arrays.
        """
        outputs = self(features, training=False)
        return {
            name: ops.convert_to_numpy(output)
            for name, output in outputs.items()
        }

    def get_config(self):
        plain = self.head_dtype or self.backbone.dtype_policy
        return {
            "name": self.name,
            "trainable": self.trainable,
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "target_dim": self.target_dim,
            "masking": self.masking,
            "masking_kwargs": dict(self.masking_kwargs),
            "head_dtype": head_dtypes.saved(self.head_dtype, plain, self.head),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        backbone = keras.saving.deserialize_keras_object(
            config["backbone"], custom_objects=custom_objects
        )
        return cls(**{**config, "backbone": backbone})


def with_targets(x, y, weights):
    """Returns clips that have weights with targets, if they are in arrays.

    Of clips without targets, Keras hands no weights on.

    Args:
        x: as a model takes features; in batches of anything it stays as it is.
        y: the targets, or `None` where the features are rebuilt.
        weights: array `(clips,)`, or `None`.

    Returns:
        Triple of the same.
    """
    if y is None and weights is not None:
        features = x.get("features") if isinstance(x, dict) else x
        y = features if has_values(features) else None
    return x, y, weights


def refuse_class_weight(given):
    """Raises a `ValueError` for weights of classes, of which there are none.

    Args:
        given: dict of the arguments of a method.
    """
    if given.get("class_weight") is not None:
        raise ValueError(
            "`class_weight` is for labels, and a MaskedAcousticModel learns "
            "without any; `sample_weight` gives every clip its weight. "
            f"Received: class_weight={given['class_weight']!r}"
        )


def refuse_metrics(model):
    """Raises a `ValueError` for metrics, which Keras would leave out.

    It does not know which of the outputs the targets are for.

    Args:
        model: compiled `MaskedAcousticModel`.
    """
    for name, metrics in compat.compiled_metrics(model).items():
        if metrics:
            raise ValueError(
                "`compile` takes no metrics: the loss is the L1 of masked "
                "frames, and `reconstruct` gives what others are computed of. "
                f"Received: {name}={metrics!r}"
            )


def initializer_of(backbone):
    """Returns a new initializer of kernels as the backbone has them."""
    return keras.initializers.RandomNormal(stddev=backbone.initializer_range)
