"""Probes: small networks that tell speakers or phonemes from frozen features.

A probe is trained over features that stay as they are, as in the downstream
tasks of s3prl's branch AlbertNew. The epoch that is best on the validation
split is tested, once.
"""

import dataclasses

import keras
import numpy as np
from keras import ops

from audio_tf import compiling
from audio_tf.data.feature_cache import own_config
from audio_tf.data.frame_labels import PADDING_LABEL
from audio_tf.layers import FrameMask, MaskedMean
from audio_tf.models import inputs as model_inputs


@dataclasses.dataclass(frozen=True)
class Probe:
    """One kind of probe.

    Attributes:
        targets: str, the targets that it learns, as `audio_tf.data.Utterances`
            takes them.
        hidden_layers: int, number of hidden layers, each with ReLU.
    """

    targets: str
    hidden_layers: int = 0


# The papers' four probes, `mean_linear_v2`, `OneLinearCPC`, `OneHidden` and
# `linear` in the authors' code, and s3prl's `phone_linear`.
PROBES = {
    "speaker": Probe("speaker"),
    "frame_speaker": Probe("frame_speaker"),
    "phoneme_1hidden": Probe("frame_labels", hidden_layers=1),
    "phoneme_2hidden": Probe("frame_labels", hidden_layers=2),
    "phoneme_linear": Probe("frame_labels"),
}
PAPER_PROBES = [name for name in PROBES if name != "phoneme_linear"]


def check_probe(name):
    """Raises a `ValueError` if there is no such probe."""
    if name not in PROBES:
        raise ValueError(
            f"A probe must be one of {list(PROBES)}. Received: {name!r}"
        )


@keras.saving.register_keras_serializable("audio_tf")
class ProbeModel(model_inputs.FeatureDoor, keras.Model):
    """A functional model over features, which `create` makes."""

    takes = "features"


def create(name, feature_dim, num_classes, hidden_dim=768, dropout=0.0):
    """Builds a new probe, not compiled.

    The probe `speaker` sees the mean over the real frames (the mean of the
    original runs over the padding too). The others see each frame alone.

    Args:
        name: a key of `PROBES`.
        feature_dim: int, features of a frame.
        num_classes: int, number of speakers or phonemes.
        hidden_dim: int, units of a hidden layer. The default, 768, is the
            width of the papers' models and serves their mel baseline too.
        dropout: float, dropout rate of hidden layers; 0 in the papers.

    Returns:
        Keras model of `{"features": (batch, frames, feature_dim), "lengths":
        (batch,)}` to logits, `(batch, num_classes)` for `speaker`,
        `(batch, frames, num_classes)` for the others.

    Raises:
        ValueError: if there is no such probe.
    """
    check_probe(name)
    inputs = model_inputs.symbolic("features", feature_dim)
    x = inputs["features"]
    if PROBES[name].targets == "speaker":
        mask = FrameMask(1, name="frame_mask")(x[:, :, 0], inputs["lengths"])
        x = MaskedMean(name="mean")(x, mask=mask)
    for index in range(PROBES[name].hidden_layers):
        x = keras.layers.Dense(
            hidden_dim, activation="relu", name=f"hidden_{index}"
        )(x)
        x = keras.layers.Dropout(dropout, name=f"dropout_{index}")(x)
    # Logits in float32, whatever the policy.
    logits = keras.layers.Dense(num_classes, dtype="float32", name="logits")
    return ProbeModel(inputs=inputs, outputs=logits(x), name=name)


@keras.saving.register_keras_serializable("audio_tf")
class RealAccuracy(keras.metrics.Metric):
    """The share of right answers among the targets that are not padding.

    It counts in whole numbers, since batches may differ in their real frames
    and float32 counts to 17 million only, 47 hours of frames of 10 ms.

    Call arguments:
        y_true: integer tensor `(...)`, `PADDING_LABEL` where there is none.
        y_pred: logits `(..., num_classes)`.
    """

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.right = self.add_count("right")
        self.real = self.add_count("real")

    def add_count(self, name):
        """Adds an integer weight that begins at zero."""
        return self.add_weight(
            shape=(), initializer="zeros", dtype="int64", name=name
        )

    def update_state(self, y_true, y_pred, sample_weight=None):
        if sample_weight is not None:
            raise ValueError(
                "Whole numbers have no weights. "
                f"Received: sample_weight={sample_weight}"
            )
        y_true = ops.cast(y_true, "int64")
        real = ops.not_equal(y_true, PADDING_LABEL)
        right = ops.equal(
            ops.cast(ops.argmax(y_pred, axis=-1), "int64"), y_true
        )
        right = ops.logical_and(right, real)
        self.right.assign_add(ops.sum(ops.cast(right, "int64")))
        self.real.assign_add(ops.sum(ops.cast(real, "int64")))

    def result(self):
        real = ops.maximum(ops.cast(self.real, "float64"), 1.0)
        return ops.cast(self.right, "float64") / real


def train(
    probe,
    splits,
    epochs=40,
    batch_size=25,
    learning_rate=1e-3,
    seed=0,
    verbose="auto",
):
    """Trains a probe and tests its best epoch, once.

    The loss is the mean cross entropy over the real frames of a batch. Adam
    takes gradients that are clipped to a global norm of 10.

    Args:
        probe: a model that `create` has made. Afterwards it has the weights of
            the best epoch.
        splits: dict of `Utterances` by `"train"`, `"val"` and `"test"`.
        epochs: int, passes over `train`.
        batch_size: int, utterances in a batch.
        learning_rate: float, 1e-3 or 4e-3 in the authors' settings.
        seed: int, from which the order of each pass is drawn.
        verbose: as `keras.Model.fit` takes it.

    Returns:
        Dict of `test_accuracy`, `val_accuracy`, `best_epoch` (from 1, the
        earliest of equals), `epochs` and `history`, the `loss`, `accuracy`
        and `val_accuracy` of each epoch.

    Raises:
        ValueError: if the loss is not finite.
    """
    probe.compile(
        keras.optimizers.Adam(
            learning_rate, beta_1=0.9, beta_2=0.999, global_clipnorm=10.0
        ),
        keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=PADDING_LABEL
        ),
        metrics=[RealAccuracy()],
        jit_compile=compiling.jit_compile(),
    )
    best = keras.callbacks.EarlyStopping(
        "val_accuracy", mode="max", patience=epochs, restore_best_weights=True
    )
    history = probe.fit(
        splits["train"].dataset(
            batch_size, shuffle=True, seed=seed, first_epoch=0
        ),
        steps_per_epoch=splits["train"].num_batches(batch_size),
        validation_data=splits["val"].dataset(batch_size),
        epochs=epochs,
        callbacks=[keras.callbacks.TerminateOnNaN(), best],
        shuffle=False,  # The dataset has its own order for each epoch.
        verbose=verbose,
    ).history
    if not np.isfinite(history["loss"]).all():
        raise ValueError(
            f"The loss of {probe.name} must be finite. "
            f"Received: {history['loss']}"
        )
    test = probe.evaluate(
        splits["test"].dataset(batch_size), return_dict=True, verbose=0
    )
    names = ("loss", "accuracy", "val_accuracy")
    return {
        "test_accuracy": test["accuracy"],
        "val_accuracy": history["val_accuracy"][best.best_epoch],
        "best_epoch": best.best_epoch + 1,
        "epochs": epochs,
        "history": {name: history[name] for name in names},
    }


class FrozenFeatures:
    """A hidden state of a speech encoder, as `cache_features` takes features.

    It has the attributes of the layer `SpeechFeatures` that place a frame in
    time and bound the length of a clip.

    Args:
        encoder: a `SpeechEncoder`, which is run in inference.
        layer: int, the hidden state: 0 is the input of the first block, the
            number of blocks the output of the last. `None` is the encoder's
            output: that of the last block or, in an encoder with
            `weighted_sum`, the mixture.

    Call arguments:
        waveform: float32 array `(batch, samples)`, full scale 1.
        lengths: int32 array `(batch,)`, real samples of each clip.

    Returns:
        Float array `(batch, frames, dim)`; frames behind a clip are
        arbitrary.

    Raises:
        ValueError: if there is no such layer.
    """

    def __init__(self, encoder, layer=None):
        features, last = encoder.features, len(encoder.blocks)
        if layer is not None and not 0 <= layer <= last:
            raise ValueError(
                "`layer` must be None or from 0, the embedding, to "
                f"{last}. Received: layer={layer}"
            )
        self.encoder = encoder
        self.layer = layer
        self.dim = encoder.output["sequence_output"].shape[-1]
        self.sample_rate_hz = features.sample_rate_hz
        self.frame_size = features.frame_size
        self.first_middle = features.first_middle
        self.frame_lengths = features.frame_lengths
        self.max_frames = encoder.max_frames
        inputs = encoder.input
        if layer is None:
            outputs = encoder.output["sequence_output"]
        else:
            outputs, _ = encoder.hidden_states(inputs)[layer]
        self.model = keras.Model(inputs, outputs)
        self.model.compile(jit_compile=compiling.jit_compile())

    @property
    def weights(self):
        """Returns the weights of the encoder."""
        return self.encoder.weights

    def __call__(self, waveform, lengths):
        return self.model.predict_on_batch(
            {"waveform": waveform, "lengths": lengths}
        )

    def get_config(self):
        """Returns a dict of all that outputs depend on beside the weights."""
        inner = self.encoder.encoder
        return {
            "encoder": [type(inner).__name__, own_config(inner)],
            "features": own_config(self.encoder.features),
            "weighted_sum": self.encoder.weighted_sum,
            "layer": self.layer,
        }
