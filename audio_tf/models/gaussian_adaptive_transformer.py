"""A frozen backbone, its layers recalibrated by Gaussians and decoded."""

import keras
import numpy as np

from audio_tf import compat
from audio_tf.models.classifier import AudioClassifier
from audio_tf.models.classifier_checks import check_labels
from audio_tf.models.freezing import freeze_layers
from audio_tf.models.gaussian_adaptive_decoder import (
    GaussianAdaptiveDecoder,
    make_loss,
    make_optimizer,
)
from audio_tf.models.inputs import InputDoor
from audio_tf.ops import checks


@keras.saving.register_keras_serializable("audio_tf")
class LayerFrames(
    InputDoor, compat.OnAnyBackend, compat.QuietQuantization, keras.Model
):
    """A functional model of the hidden states of a backbone, side by side.

    Args:
        backbone: an `AudioBackbone` of waveforms, run in inference.
        layers: list of int, the hidden states, see
            `GaussianAdaptiveTransformer`.

    Returns:
        Dict of `"sequence_output"`, `(batch, frames, len(layers) * dim)`, and
        `"frame_mask"`, boolean `(batch, frames)`.
    """

    def __init__(self, backbone, layers):
        states = backbone.hidden_states(backbone.input)
        _, mask = states[layers[0]]
        frames = keras.layers.Concatenate(
            dtype=backbone.dtype_policy, name="layers"
        )([states[layer][0] for layer in layers])
        super().__init__(
            inputs=backbone.input,
            outputs={"sequence_output": frames, "frame_mask": mask},
            name="layer_frames",
        )
        self.max_samples = backbone.max_samples
        # As attributes Keras would track them, and order weights by them.
        self.made_of = lambda: (backbone, list(layers))

    def call(self, inputs, training=None, mask=None, **kwargs):
        # Keras hands `training` on to every layer, and augmentations of what
        # a front end computes would hide it at random, frozen or not.
        return super().call(inputs, training=False, mask=mask, **kwargs)

    def with_heard(self):
        """Makes a model of the frames and of the clips, which stay as given."""
        return keras.Model(
            self.input, {**self(self.input), "heard": self.input}
        )

    def get_config(self):
        # Keras' own is that of any functional model, made in another way.
        backbone, layers = self.made_of()
        return {
            "backbone": keras.saving.serialize_keras_object(backbone),
            "layers": layers,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        backbone = keras.saving.deserialize_keras_object(
            config["backbone"], custom_objects=custom_objects
        )
        return cls(backbone, config["layers"])


@keras.saving.register_keras_serializable("audio_tf")
class GaussianAdaptiveTransformer(AudioClassifier):
    """Scores classes from all layers of a frozen backbone.

    Section 3.3 of "Gaussian Adaptive Attention is All You Need" (arXiv
    2401.11143): the output of each layer is averaged over time, an attention
    module recalibrates layers and features, and a small network decodes them;
    `GaussianAdaptiveDecoder` is both. Only the decoder is trained: embeddings
    may be computed once, as `audio-tf emotion` does, and `decoder` be trained
    on them alone.

    ```python
    encoder = AudioBackbone.from_preset("runs/pretrain/preset")
    model = GaussianAdaptiveTransformer(encoder, labels=emotions)
    model.decoder.compile("adamw", "categorical_focal_crossentropy")
    model.decoder.fit(model.embed_layers(waveforms), one_hot)
    model.classify("some.wav")
    ```

    It is an `AudioClassifier` in all else: presets, `classify`, export.
    `embed` gives the pooled layers one after the other.

    Args:
        backbone: an `AudioBackbone` of waveforms whose layers have equally
            many frames. It is frozen here and runs in inference: nothing of
            it is dropped out, and its `augmentation` rests.
        num_classes: int, the number of classes, or `None` to count `labels`.
        labels: names of the classes in the order of the scores, or `None`.
        layers: list of ints, ascending, the hidden states that are decoded: 0
            is the input of the first block, the number of blocks the output
            of the last. `None` for the outputs of all blocks.
        module, num_heads, attention_kwargs, filters, grid: as
            `GaussianAdaptiveDecoder` takes them.
        chunk_s, chunk_hop_s, silence_db, preprocessor, dropout, activation: as
            `AudioClassifier` takes them.
        head_dtype, compile, name, trainable: as `AudioClassifier` takes them.

    Call arguments, returns and errors are those of `AudioClassifier`; a
        `ValueError` too if there is no such layer, layers have frames of
        different lengths, or the decoder cannot be made so.
    """

    trains_backbone = False

    def __init__(
        self,
        backbone,
        num_classes=None,
        labels=None,
        layers=None,
        module="gaam_v1",
        num_heads=None,
        attention_kwargs=None,
        filters=512,
        grid=None,
        chunk_s=5.0,
        chunk_hop_s=None,
        silence_db=None,
        preprocessor="auto",
        dropout=0.0,
        activation="softmax",
        head_dtype=None,
        compile=True,
        name=None,
        trainable=True,
        **unknown,
    ):
        checks.reject_unknown(
            "GaussianAdaptiveTransformer", unknown, self.arguments()
        )
        checks.check_flags(compile=compile)
        labels = check_labels(labels, num_classes)
        self.layer_numbers = check_layers(backbone, layers)
        freeze_layers(backbone, False)
        self.layer_frames = LayerFrames(backbone, self.layer_numbers)
        width = self.layer_frames.output["sequence_output"].shape[-1]
        self.decoder_options = {
            "num_layers": len(self.layer_numbers),
            "dim": width // len(self.layer_numbers),
            "module": module,
            "num_heads": num_heads,
            "attention_kwargs": attention_kwargs,
            "filters": filters,
            "grid": grid,
        }
        super().__init__(
            backbone,
            num_classes=num_classes,
            labels=labels,
            chunk_s=chunk_s,
            chunk_hop_s=chunk_hop_s,
            silence_db=silence_db,
            preprocessor=preprocessor,
            # The backbone may have a head of its own.
            pooling="mean",
            hidden_dim=0,
            dropout=dropout,
            activation=activation,
            head_dtype=head_dtype,
            compile=False,
            name=name,
            trainable=trainable,
        )
        self.layers_given = layers and list(layers)
        if compile:
            self.compile(make_optimizer(), make_loss())

    @classmethod
    def arguments(cls):
        return checks.parameters_of(cls, last=GaussianAdaptiveTransformer)

    @property
    def frame_model(self):
        return self.layer_frames

    @property
    def frame_stages(self):
        return self.backbone.stages_below(self.layer_numbers[-1])

    def pick_frames(self, outputs):
        states = self.backbone.pick_hidden_states(outputs)
        return keras.ops.concatenate(
            [states[layer] for layer in self.layer_numbers], axis=-1
        )

    def build_head(
        self, num_classes, dropout, activation, head_dtype, hidden_dim
    ):
        self.decoder = GaussianAdaptiveDecoder(
            **self.decoder_options,
            num_classes=num_classes,
            dropout=dropout,
            activation=activation,
            head_dtype=head_dtype,
            # An optimizer of its own would be saved with the model.
            compile=False,
            name="decoder",
        )

        self.output_activation = self.decoder.get_layer("scores")

    def vector_logits(self, x, training=None):
        logits = keras.Model(
            self.decoder.input, self.decoder.get_layer("predictions").output
        )
        return logits(self.as_layers(x), training=training)

    def score_vectors(self, x):
        return self.decoder(self.as_layers(x))

    def score_clips(self, frames, mask):
        x = self.pooler(frames, mask=mask)
        return self.score_vectors(x)

    def as_layers(self, x):
        """Shapes pooled frames `(batch, layers * dim)` by layer."""
        shape = (-1, self.decoder.num_layers, self.decoder.dim)
        return keras.ops.reshape(x, shape)

    def embed_layers(self, inputs, batch_size=16):
        """Computes the embeddings that the decoder takes.

        Args:
            inputs: as the model takes them, of any number of clips.
            batch_size: int, clips that are computed at a time: the frames of
                all layers of all clips would not fit.

        Returns:
            Float32 array `(clips, layers, dim)`.

        Raises:
            ValueError: if `batch_size` is no positive int.
        """
        checks.check_sizes(batch_size=batch_size)
        inputs, found = self.completed(inputs), []
        clips = inputs["waveform"].shape[0]
        for start in range(0, max(clips, 1), batch_size):
            outputs = self.frame_model.predict_on_batch(
                {
                    name: value[start : start + batch_size]
                    if value is not None and len(value.shape)
                    else value
                    for name, value in inputs.items()
                }
            )
            pooled = self.pooler(
                outputs["sequence_output"], mask=outputs["frame_mask"]
            )
            pooled = keras.ops.cast(self.as_layers(pooled), "float32")
            found.append(keras.ops.convert_to_numpy(pooled))
        return np.concatenate(found)

    def _not_of_the_head(self):
        own = [self.decoder.optimizer] if self.decoder.compiled else []
        return [*super()._not_of_the_head(), *own]

    def get_config(self):
        config = super().get_config()
        del config["pooling"], config["hidden_dim"]
        own = self.decoder.get_config()
        names = ("module", "num_heads", "attention_kwargs", "filters", "grid")
        return {
            **config,
            "layers": self.layers_given,
            **{name: own[name] for name in names},
        }


def check_layers(backbone, layers):
    """Checks which hidden states of a backbone are decoded.

    Args:
        backbone: an `AudioBackbone`.
        layers: list of ints, or `None` for the outputs of all blocks.

    Returns:
        List of ints.

    Raises:
        ValueError: if there is no such layer, they are not ascending, or a
            layer has fewer frames than the one before.
    """
    last = len(backbone.blocks)
    if not last:
        raise ValueError(
            "Layers are those of transformer blocks, and the backbone has "
            f"none. Received: a backbone {type(backbone).__name__}"
        )
    for stage in backbone.stages:
        if stage.frame_stride != 1:
            raise ValueError(
                "All layers of the backbone must have equally many frames, "
                f"but {stage.name} averages {stage.frame_stride}. Received: a "
                f"backbone {type(backbone).__name__}"
            )
    if layers is None:
        return list(range(1, last + 1))
    numbers = list(layers)
    known = all(type(each) is int and 0 <= each <= last for each in numbers)
    if not numbers or not known or numbers != sorted(set(numbers)):
        raise ValueError(
            "`layers` must be ascending numbers from 0, the input of the "
            f"first block, to {last}. Received: layers={layers}"
        )
    return numbers
