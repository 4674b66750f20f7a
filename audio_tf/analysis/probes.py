"""Probes: what frozen features tell about speakers and phonemes.

A probe is a small network over features that stay as they are, as in the
downstream tasks of s3prl's branch AlbertNew. The epoch that is best on the
validation split is the one that is tested, once.
"""

import dataclasses

import keras
import numpy as np
from keras import ops

from audio_tf.data.feature_cache import own_config
from audio_tf.data.frame_labels import PADDING_LABEL
from audio_tf.layers import FrameMask, MaskedMean
from audio_tf.models import inputs as model_inputs


@dataclasses.dataclass(frozen=True)
class Probe:
    """What a probe is.

    Attributes:
        targets: str, what it tells, as `audio_tf.data.Utterances` takes it.
        hidden_layers: int, hidden layers, each with ReLU.
    """

    targets: str
    hidden_layers: int = 0


# The papers' four: `mean_linear_v2`, `OneLinearCPC`, `OneHidden` and the one
# that is called `linear` in the authors' code; and s3prl's `phone_linear`.
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
class ProbeModel(model_inputs.InputDoor, keras.Model):
    """A functional model over features; `create` makes it."""

    takes = "features"


def create(name, feature_dim, num_classes, hidden_dim=768, dropout=0.0):
    """A new probe, not compiled.

    `speaker` sees the mean over the real frames (the original's is over the
    padding too), all others see each frame alone.

    Args:
        name: a key of `PROBES`.
        feature_dim: int, features of a frame.
        num_classes: int.
        hidden_dim: int, units of hidden layers: 768, the width of the papers'
            models, for their mel baseline too.
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
    """Share of right answers among the targets that are not padding.

    Counted in whole numbers: batches may differ in their real frames, and
    float32 counts to 17 million only, 47 hours of 10 ms.

    Call arguments:
        y_true: integer tensor `(...)`, `PADDING_LABEL` where there is none.
        y_pred: logits `(..., num_classes)`.
    """

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.right = self.add_count("right")
        self.real = self.add_count("real")

    def add_count(self, name):
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

    Cross entropy over real frames, Adam, gradients clipped to a norm of 10.

    Args:
        probe: a model that `create` made; has the weights of the best epoch
            afterwards.
        splits: dict of `Utterances` by `"train"`, `"val"` and `"test"`.
        epochs: int, passes over `train`.
        batch_size: int, utterances.
        learning_rate: float, 1e-3 or 4e-3 in the authors' settings.
        seed: int, of the order of each pass.
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
        jit_compile=False,
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

    `max_frames` is how many frames of a clip it takes, `None` for any number.

    Args:
        encoder: a `SpeechEncoder`; always run in inference.
        layer: int, which hidden state: 0 is the embedding, `num_layers` the
            last layer. `None`: the encoder's output, which is the last layer
            or, in an encoder with `weighted_sum`, the mixture.

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
        inner, features = encoder.encoder, encoder.features
        if layer is not None and not 0 <= layer <= inner.num_layers:
            raise ValueError(
                "`layer` must be None or from 0, the embedding, to "
                f"{inner.num_layers}. Received: layer={layer}"
            )
        self.encoder = encoder
        self.layer = layer
        self.dim = inner.hidden_dim
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
        self.model.compile(jit_compile=False)

    @property
    def weights(self):
        """Those of the encoder."""
        return self.encoder.weights

    def __call__(self, waveform, lengths):
        return self.model.predict_on_batch(
            {"waveform": waveform, "lengths": lengths}
        )

    def get_config(self):
        """What the outputs depend on beside the weights."""
        inner = self.encoder.encoder
        return {
            "encoder": [type(inner).__name__, own_config(inner)],
            "features": own_config(self.encoder.features),
            "weighted_sum": self.encoder.weighted_sum,
            "layer": self.layer,
        }
