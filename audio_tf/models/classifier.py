"""The classification task over any audio backbone."""

import keras
import keras_hub

from audio_tf import compat
from audio_tf.audio.chunking import check_chunks
from audio_tf.layers import (
    AttentionPooling,
    LastStatesPooling,
    MaskedMean,
    MaxMeanPooling,
    StatisticsPooling,
)
from audio_tf.models import head_dtypes, preset_tasks, presets
from audio_tf.models.backbone import AudioBackbone
from audio_tf.models.classifier_checks import (
    check_backbone,
    check_labels,
)
from audio_tf.models.explaining import Explainer
from audio_tf.models.file_task import FileTask
from audio_tf.models.freezing import freeze_layers
from audio_tf.models.inputs import InputDoor
from audio_tf.models.targets import check_targets
from audio_tf.models.timeline import FrameClassifier
from audio_tf.ops import checks
from audio_tf.ops.layer import Dropout

# How the frames of a clip become one vector.
POOLINGS = {
    "mean": MaskedMean,
    "statistics": StatisticsPooling,
    "attention": AttentionPooling,
    "max_mean": MaxMeanPooling,
    "last_states": LastStatesPooling,
}
# What stands for `None`, where the backbone's `head` says nothing.
HEAD = {"pooling": "mean", "hidden_dim": 0}


@keras.saving.register_keras_serializable("audio_tf")
class AudioClassifier(
    InputDoor,
    FrameClassifier,
    Explainer,
    FileTask,
    compat.QuietQuantization,
    keras_hub.models.Task,
):
    """Scores every class from the backbone's real frames, pooled.

    ```python
    classifier = audio_tf.models.AudioClassifier.from_preset(
        "audio_transformer_small", num_classes=50
    )
    classifier.compile("adam", "binary_crossentropy")
    classifier.fit(waveform, multi_hot)
    classifier.predict(waveform)
    classifier.predict(["some.wav", "other.flac"])
    classifier.classify("some.wav")
    classifier.explain("some.wav")
    ```

    Args:
        backbone: an `AudioBackbone`.
        num_classes: int, the number of classes, or `None` to count `labels`.
        labels: names of the classes in the order of the scores, or `None`.
        chunk_s: float, the length in seconds of the chunks that the model is
            trained on; `audio_tf.data` and the command line cut clips into
            such chunks to score them. `None` scores clips whole.
        chunk_hop_s: float, the seconds from chunk to chunk, at most
            `chunk_s`, in training and scoring, or `None` for chunks side by
            side.
        silence_db: float, the peak in dB of full scale below which chunks are
            left out of training and scoring, or `None` to keep all; whole
            clips are always kept.
        preprocessor: an `AudioClassifierPreprocessor` that says the same of
            rate, chunks and labels as the model; `"auto"` makes one; `None`
            is for models that take no files in `fit`, `evaluate` and
            `predict`.
        dropout: float, the dropout rate before the last layer.
        activation: the activation of the scores; sigmoid for several labels a
            clip.
        pooling: how real frames become one vector: `"mean"`; `"statistics"`,
            mean and standard deviation; `"attention"`, both with learned
            weights; `"max_mean"`, the maximum of the first half of the
            features and the mean of the second; `"last_states"`, the first
            half of the last frame and the second half of the first; or `None`
            for the backbone's own, which is `"mean"` unless its `head` says
            otherwise.
        hidden_dim: int, units of a dense layer with ReLU between pooling and
            last layer, 0 for none, or `None` for the backbone's own, which is
            none unless its `head` says otherwise.
        head_dtype: the dtype policy of the last layer, or `None` for the
            backbone's.
        compile: bool, whether to compile the model as the paper does, with
            Adam and the Huber loss (section 4), at a learning rate of 1e-3.
        name: str, the model's name.
        trainable: bool. If False, nothing of the model is trained.

    Call arguments:
        inputs: floating waveform `(batch, samples)`, full scale 1, at
            `sample_rate_hz`, or a dict of it as `waveform` with the integers
            `lengths` `(batch,)`, the real samples of each padded clip.

    Returns:
        Scores `(batch, num_classes)`.

    Raises:
        ValueError: if `labels` and `num_classes` disagree, or neither is
            there, or the preprocessor disagrees with the model.
    """

    # Whether the backbone is trained, unless it is frozen.
    trains_backbone = True

    def __init__(
        self,
        backbone,
        num_classes=None,
        labels=None,
        chunk_s=1.0,
        chunk_hop_s=None,
        silence_db=None,
        preprocessor="auto",
        dropout=0.0,
        activation="sigmoid",
        pooling=None,
        hidden_dim=None,
        head_dtype=None,
        compile=True,
        name=None,
        trainable=True,
        **unknown,
    ):
        checks.reject_unknown("AudioClassifier", unknown, self.arguments())
        labels = check_labels(labels, num_classes)
        if num_classes is None:
            num_classes = len(labels)
        check_chunks(chunk_s, chunk_hop_s, silence_db)
        check_backbone(backbone, chunk_s, chunk_hop_s)
        own = {**HEAD, **backbone.head}
        pooling = own["pooling"] if pooling is None else pooling
        hidden_dim = own["hidden_dim"] if hidden_dim is None else hidden_dim
        if hidden_dim != 0:
            checks.check_sizes(hidden_dim=hidden_dim)
        checks.check_choice("pooling", pooling, POOLINGS)
        checks.check_rates(dropout=dropout)
        checks.check_flags(compile=compile, trainable=trainable)
        # === Layers ===
        own_head_dtype = head_dtypes.asked(head_dtype)
        head_dtype = own_head_dtype or backbone.dtype_policy
        self.backbone = backbone
        self.pooler = POOLINGS[pooling](dtype=head_dtype, name="pooler")
        self.build_head(
            num_classes, dropout, activation, head_dtype, hidden_dim
        )

        # === Functional Model ===
        inputs = backbone.input
        features = self.frame_model(inputs)
        scores = self.score_clips(
            features["sequence_output"], features["frame_mask"]
        )
        super().__init__(
            inputs=inputs,
            outputs=scores,
            compile=False,
            name=name,
        )
        freeze_layers(self, trainable)
        compat.scale_loss_for(self, head_dtype)
        compat.settle_dtypes(self)

        # === Config ===
        self.num_classes = num_classes
        self.labels = labels
        self.chunk_s = chunk_s
        self.chunk_hop_s = chunk_hop_s
        self.silence_db = silence_db
        self.dropout = dropout
        self.head_dtype = own_head_dtype
        self.pooling = pooling
        self.hidden_dim = hidden_dim
        self.preprocessor = preprocessor
        if compile:
            self.compile(keras.optimizers.Adam(1e-3), keras.losses.Huber())

    @classmethod
    def arguments(cls):
        """Lists the names of the constructor's arguments."""
        return checks.parameters_of(cls, last=AudioClassifier)

    @property
    def sample_rate_hz(self):
        """The rate of the waveform that the backbone takes."""
        return self.backbone.sample_rate_hz

    @property
    def max_samples(self):
        """The samples of the longest clip that is taken, `None` for any."""
        return self.backbone.max_samples

    @property
    def activation(self):
        """The activation of the scores, a function, which may be set."""
        return self.output_activation.activation

    @activation.setter
    def activation(self, value):
        self.output_activation.activation = keras.activations.get(value)
        self.note_other_weights()

    @property
    def frame_model(self):
        """The model of waveforms whose frames are pooled, the backbone."""
        return self.backbone

    @property
    def frame_stages(self):
        """The stages of the backbone that `frame_model` is made of, a list."""
        return self.backbone.stages

    def pick_frames(self, outputs):
        """Picks the frames of `frame_model` among those of `frame_stages`.

        Args:
            outputs: list of tensors `(batch, frames, dim)`, as the backbone's
                `pick_hidden_states` takes it.

        Returns:
            Tensor `(batch, frames, dim)`, as `score_frames` takes it.
        """
        return outputs[-1]

    def build_head(
        self, num_classes, dropout, activation, head_dtype, hidden_dim
    ):
        """Makes the layers that score one vector for each clip.

        Args:
            num_classes: int.
            dropout: float, the dropout rate before the last layer.
            activation: the activation of the scores.
            head_dtype: dtype policy of the layers.
            hidden_dim: int, units of a dense layer before the last, 0 for
                none.
        """
        self.hidden_dense = None
        if hidden_dim:
            self.hidden_dense = keras.layers.Dense(
                hidden_dim, "relu", dtype=head_dtype, name="hidden"
            )
        self.output_dropout = Dropout(
            dropout, dtype=head_dtype, name="output_dropout"
        )
        self.output_dense = keras.layers.Dense(
            num_classes, dtype=head_dtype, name="predictions"
        )
        # Scores in half precision lose all ranks near 0 and 1.
        self.output_activation = keras.layers.Activation(
            activation, dtype="float32", name="scores"
        )

    def vector_logits(self, x, training=None):
        """Computes what the scores are the activation of, from pooled frames.

        Args:
            x: floating tensor `(batch, dim)`, what `pooler` makes of frames.
            training: bool, whether dropout applies; `None` for what is asked
                of the model that calls this.

        Returns:
            Tensor `(batch, num_classes)` of the dtype of the head.
        """
        x = self.output_dropout(self.hidden(x), training=training)
        return self.output_dense(x)

    def score_vectors(self, x):
        """Scores clips from their pooled frames.

        Args:
            x: floating tensor `(batch, dim)`, what `pooler` makes of frames.

        Returns:
            Float32 tensor `(batch, num_classes)`.
        """
        return self.output_activation(self.vector_logits(x))

    def score_clips(self, frames, mask):
        """Scores clips from the outputs of `frame_model`, by the head.

        Args:
            frames: floating tensor `(batch, frames, dim)`,
                `"sequence_output"`.
            mask: boolean `(batch, frames)`, `"frame_mask"`.

        Returns:
            Float32 tensor `(batch, num_classes)`.
        """
        return self.output_activation(self.clip_logits(frames, mask))

    def clip_logits(self, frames, mask, training=None):
        """Computes what the scores of clips are the activation of.

        Args:
            frames: as `score_clips` takes them.
            mask: as `score_clips` takes it.
            training: bool, whether dropout applies; `None` for what is asked
                of the model that calls this.

        Returns:
            Tensor `(batch, num_classes)` of the dtype of the head.
        """
        x = self.pooler(frames, mask=mask)
        return self.vector_logits(x, training)

    def hidden(self, pooled):
        """Applies the dense layer before the last one, if there is any."""
        return (
            pooled if self.hidden_dense is None else self.hidden_dense(pooled)
        )

    def score_frames(self, frames):
        """Scores each frame for itself, as a clip of that frame alone.

        Args:
            frames: floating tensor `(batch, frames, dim)`, the
                `"sequence_output"` of `frame_model`.

        Returns:
            Float32 tensor `(batch, frames, num_classes)`.
        """
        batch, time, dim = keras.ops.shape(frames)
        x = self.pooler(keras.ops.reshape(frames, (batch * time, 1, dim)))
        x = self.score_vectors(x)
        return keras.ops.reshape(x, (batch, time, self.num_classes))

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Computes the compiled loss, of targets of a shape that fits it.

        Raises:
            ValueError: if targets are not of the scores' shape, and the loss
                is one of Keras' that would repeat them for every class.
        """
        check_targets(self.loss, y, y_pred)
        return super().compute_loss(
            x, y, y_pred, sample_weight, training=training
        )

    @classmethod
    def from_preset(
        cls, preset, load_weights=True, backbone_kwargs=None, **kwargs
    ):
        """Builds a classifier from the name of a size or from a preset.

        Args:
            preset: the name of a size (architecture with random weights), the
                name of a released preset, which `AudioClassifier.presets`
                lists, or what KerasHub takes: a folder written by
                `save_to_preset` or a `hf://`, `kaggle://` or `gs://` address.
            load_weights: bool, whether to load the weights of a preset.
            backbone_kwargs: dict of arguments for the backbone alone, such as
                its own `dropout`, or `None`.
            **kwargs: arguments of `AudioClassifier` and of the backbone, that
                override the preset's. Of a name that both have, such as
                `activation` and `dropout`, it is the classifier's, but
                `trainable=True` trains the backbone, too, even of a preset
                that was saved with a frozen one, unless `backbone_kwargs`
                says otherwise; without it, what was saved frozen stays so.
                `num_classes` or `labels` make a new head; a size
                needs one of them, and is made for chunks of `chunk_s` unless
                `made_for_frames` says otherwise.

        Raises:
            TypeError: if there is an unknown argument; it names the closest.
            ValueError: if there is no such size or preset, it lacks a file,
                its weights do not fit the arguments, or an argument would
                change the training of a backbone that the class freezes.
        """
        return preset_tasks.load_classifier(
            cls, AudioBackbone, preset, load_weights, kwargs, backbone_kwargs
        )

    def save_to_preset(self, preset_dir, max_shard_size=10):
        """Writes a preset with the head; all else `AudioBackbone` says.

        Raises:
            ValueError: as there, of the classes of the head, too.
        """
        presets.check_found_again(self)
        super().save_to_preset(preset_dir, max_shard_size=max_shard_size)

    def save_task_weights(self, filepath):
        """Saves the weights of the head, without the backbone's."""
        keras.saving.save_weights(
            self, filepath, objects_to_skip=self._not_of_the_head()
        )

    def load_task_weights(self, filepath):
        """Loads the weights of the head, without the backbone's."""
        keras.saving.load_weights(
            self, filepath, objects_to_skip=self._not_of_the_head()
        )

    def _not_of_the_head(self):
        # KerasHub's own skips the backbone alone: a preset would hold the
        # state of the optimizer, twice as large as the weights.
        backbone = self.backbone
        # A model that was never compiled has no such attribute.
        own = [self.optimizer] if self.compiled else []
        return [backbone, *compat.layers_within(backbone), *own]

    def get_config(self):
        of_backbone = [self.backbone, *compat.layers_within(self.backbone)]
        of_backbone = set(map(id, of_backbone))
        of_head = [
            layer
            for layer in compat.layers_within(self)
            if id(layer) not in of_backbone
        ]
        # The other layers of the head stay what they are.
        plain = self.head_dtype or self.backbone.dtype_policy
        return {
            **super().get_config(),
            "trainable": self.trainable,
            "num_classes": self.num_classes,
            "labels": self.labels,
            "chunk_s": self.chunk_s,
            "chunk_hop_s": self.chunk_hop_s,
            "silence_db": self.silence_db,
            "dropout": self.dropout,
            "activation": keras.activations.serialize(self.activation),
            "pooling": self.pooling,
            "hidden_dim": self.hidden_dim,
            "head_dtype": head_dtypes.saved(self.head_dtype, plain, of_head),
        }
