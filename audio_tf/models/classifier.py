"""The classification task over any audio backbone."""

import keras
import keras_hub
from keras_hub.src.utils.preset_utils import get_preset_loader

from audio_tf.layers import MaskedMean
from audio_tf.models.backbone import (
    AudioBackbone,
    TakesWaveforms,
    find_size,
)


@keras.saving.register_keras_serializable("audio_tf")
class AudioClassifier(TakesWaveforms, keras_hub.models.Task):
    """Scores every class from the mean of the backbone's real frames.

    ```python
    classifier = audio_tf.models.AudioClassifier.from_preset(
        "audio_transformer_small", num_classes=50
    )
    classifier.compile("adam", "binary_crossentropy")
    classifier.fit(waveform, multi_hot)
    classifier.predict(waveform)
    ```

    Args:
        backbone: an `AudioBackbone`.
        num_classes: int, or `None` to count `labels`.
        labels: names of the classes in the order of the scores, or `None`.
        chunk_s: float, seconds of the clips that the model is trained on;
            longer ones are scored in such chunks by `audio_tf.data` and the
            command line. `None` scores clips whole.
        silence_db: float, peak in dB of full scale below which chunks are
            left out of training and scoring, or `None` to keep all.
        preprocessor: `None`, or what KerasHub's `Task` takes.
        dropout: float, dropout rate before the last layer.
        activation: activation of the scores; sigmoid for several labels a
            clip.
        head_dtype: dtype policy of the last layer; the backbone's if `None`.
        compile: bool, whether to compile the model as the paper does, with
            Adam and the Huber loss (section 4), at a learning rate of 1e-3.
        **kwargs: arguments of `keras_hub.models.Task`.

    Call arguments:
        inputs: floating waveform `(batch, samples)`, full scale 1, at
            `sample_rate_hz`, or a dict of it as `waveform` with the integers
            `lengths` `(batch,)`, the real samples of each padded clip.

    Returns:
        Scores `(batch, num_classes)`.

    Raises:
        ValueError: if `labels` and `num_classes` disagree, or neither is
            there.
    """

    def __init__(
        self,
        backbone,
        num_classes=None,
        labels=None,
        chunk_s=1.0,
        silence_db=None,
        preprocessor=None,
        dropout=0.0,
        activation="sigmoid",
        head_dtype=None,
        compile=True,
        **kwargs,
    ):
        labels = None if labels is None else list(labels)
        if num_classes is None and labels is None:
            raise ValueError("Either `num_classes` or `labels` is needed.")
        if num_classes is None:
            num_classes = len(labels)
        if labels is not None and len(labels) != num_classes:
            raise ValueError(
                "There must be one label for each class. Received: "
                f"num_classes={num_classes}, {len(labels)} labels"
            )
        # === Layers ===
        own_head_dtype = head_dtype and keras.dtype_policies.get(head_dtype)
        head_dtype = own_head_dtype or backbone.dtype_policy
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.pooler = MaskedMean(dtype=head_dtype, name="pooler")
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=head_dtype, name="output_dropout"
        )
        self.output_dense = keras.layers.Dense(
            num_classes, dtype=head_dtype, name="predictions"
        )
        # Scores in half precision lose all ranks near 0 and 1.
        self.output_activation = keras.layers.Activation(
            activation, dtype="float32", name="scores"
        )

        # === Functional Model ===
        inputs = backbone.input
        features = backbone(inputs)
        scores = self.score_clips(
            features["sequence_output"], features["frame_mask"]
        )
        super().__init__(
            inputs=inputs,
            outputs=scores,
            compile=False,
            **kwargs,
        )
        if compile:
            self.compile(keras.optimizers.Adam(1e-3), keras.losses.Huber())

        # === Config ===
        self.num_classes = num_classes
        self.labels = labels
        self.chunk_s = chunk_s
        self.silence_db = silence_db
        self.dropout = dropout
        self.head_dtype = own_head_dtype
        self.activation = keras.activations.get(activation)

    @property
    def sample_rate_hz(self):
        """Rate of the waveform that the backbone takes."""
        return self.backbone.sample_rate_hz

    def score_clips(self, frames, mask):
        """Scores clips by the head from what the backbone gives.

        Args:
            frames: floating tensor `(batch, frames, dim)`,
                `"sequence_output"`.
            mask: boolean `(batch, frames)`, `"frame_mask"`.

        Returns:
            Float32 tensor `(batch, num_classes)`.
        """
        x = self.pooler(frames, mask=mask)
        return self.output_activation(self.output_dense(self.output_dropout(x)))

    def score_frames(self, frames):
        """Scores each frame for itself, by the head without its mean.

        Args:
            frames: floating tensor `(batch, frames, dim)`, the backbone's
                `"sequence_output"`.

        Returns:
            Float32 tensor `(batch, frames, num_classes)`.
        """
        return self.output_activation(self.output_dense(frames))

    def fit(self, *args, **kwargs):
        """Trains the model; arguments and result of `keras.Model.fit`."""
        # KerasHub's own `fit` batches arrays in their order, unshuffled.
        if self.preprocessor is None:
            return keras.Model.fit(self, *args, **kwargs)
        return super().fit(*args, **kwargs)

    def evaluate(self, *args, **kwargs):
        """Evaluates the model; as `keras.Model.evaluate`."""
        if self.preprocessor is None:
            return keras.Model.evaluate(self, *args, **kwargs)
        return super().evaluate(*args, **kwargs)

    def predict(self, *args, **kwargs):
        """Scores waveforms; as `keras.Model.predict`."""
        if self.preprocessor is None:
            return keras.Model.predict(self, *args, **kwargs)
        return super().predict(*args, **kwargs)

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Builds a classifier from the name of a size or from a preset.

        Args:
            preset: the name of a size (architecture with random weights), or
                what KerasHub takes: a folder written by `save_to_preset` or a
                `hf://`, `kaggle://` or `gs://` address.
            load_weights: bool, whether to load the weights of a preset.
            **kwargs: arguments of `AudioClassifier`. `num_classes` or
                `labels` make a new head; a size needs one of them.

        Raises:
            ValueError: if there is no such size or preset.
        """
        if find_size(AudioBackbone, preset) is not None:
            dtype = kwargs.pop("dtype", None)
            backbone = AudioBackbone.from_preset(preset, dtype=dtype)
            return cls(backbone=backbone, **kwargs)
        new_head = not kwargs.keys().isdisjoint({"num_classes", "labels"})
        if new_head:
            kwargs = {"num_classes": None, "labels": None, **kwargs}
        return get_preset_loader(preset).load_task(
            cls, load_weights, not new_head, **kwargs
        )

    def save_task_weights(self, filepath):
        """Saves the weights that are not the backbone's."""
        keras.saving.save_weights(
            self, filepath, objects_to_skip=self._not_of_the_head()
        )

    def load_task_weights(self, filepath):
        """Loads the weights that are not the backbone's."""
        keras.saving.load_weights(
            self, filepath, objects_to_skip=self._not_of_the_head()
        )

    def _not_of_the_head(self):
        # KerasHub's own skips the backbone alone: a preset would hold the
        # state of the optimizer, twice as large as the weights.
        return [*self.backbone._flatten_layers(), self.optimizer]

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "labels": self.labels,
            "chunk_s": self.chunk_s,
            "silence_db": self.silence_db,
            "dropout": self.dropout,
            "activation": keras.activations.serialize(self.activation),
            "head_dtype": self.head_dtype
            and keras.dtype_policies.serialize(self.head_dtype),
        }
