"""Audio ALBERT: one transformer layer, applied over and over."""

import keras
from keras import ops

from audio_tf.attention import by_block, of_block, one_for_all, untracked
from audio_tf.layers import FrameMask, SinusoidalPositions, TransformerBlock
from audio_tf.models import inputs as model_inputs
from audio_tf.models.backbone import AudioBackbone, embed_frames
from audio_tf.ops.checks import (
    check_flags,
    check_not_negative,
    check_rates,
    check_sizes,
)
from audio_tf.ops.layer import Dropout, Layer


@keras.saving.register_keras_serializable("audio_tf")
class WeightedSum(Layer):
    """A layer that mixes the hidden states of all layers by learned weights.

    `(batch, layers, frames, dim)` to `(batch, frames, dim)`. The weights are
    equal at first, so that the layer begins as the mean of the states.

    Args:
        normalize: bool. If True, the weights are the softmax of learned
            logits; if False, they are learned themselves, from
            `1 / layers`, and need not sum to one.
        **kwargs: arguments of `keras.layers.Layer`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import models
        >>> states = np.array([1.0, 3.0], "float32").reshape(1, 2, 1, 1)
        >>> round(float(models.WeightedSum()(states)[0, 0, 0]), 2)
        2.0
    """

    def __init__(self, normalize=True, **kwargs):
        super().__init__(**kwargs)
        check_flags(normalize=normalize)
        self.normalize = normalize

    def build(self, input_shape):
        layers = input_shape[1]
        self.layer_weights = self.add_weight(
            shape=(layers,),
            initializer=keras.initializers.Constant(
                0.0 if self.normalize else 1.0 / layers
            ),
            autocast=False,
            name="layer_weights",
        )

    def call(self, inputs):
        weights = ops.convert_to_tensor(self.layer_weights)
        if self.normalize:
            weights = ops.softmax(weights)
        return ops.einsum(
            "bltd,l->btd", inputs, ops.cast(weights, inputs.dtype)
        )

    def compute_output_spec(self, inputs):
        batch, _, frames, dim = inputs.shape
        return keras.KerasTensor((batch, frames, dim), dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "normalize": self.normalize}


@keras.saving.register_keras_serializable("audio_tf")
class AudioAlbertBackbone(AudioBackbone):
    """The encoder of Audio ALBERT (arXiv 2005.08575), over any features.

    Dense -> sinusoidal positions -> LayerNorm -> post-norm transformer layer,
    which is applied `num_layers` times with the same weights. The defaults
    come from the authors' code (s3prl's branch AlbertNew): 12 heads of 64, a
    feed-forward of 3072, exact GELU, three stacked spectra of 160 features,
    no dropout.
    "Input-independent Attention Weights Are Expressive Enough"
    (arXiv 2006.05174) trains it with each attention, 6 layers deep.

    Args:
        num_layers: int, how often a layer is applied: 3, 6 or 12.
        share_layers: bool. If False, each layer has weights of its own, as
            in Mockingjay (arXiv 1910.12638).
        num_heads: int, the number of attention heads.
        key_dim: int, the size of each head.
        hidden_dim: int, the model's width: features of a frame inside.
        intermediate_dims: tuple of ints, units of the feed-forward's hidden
            layers.
        feature_dim: int, features of a frame of the input.
        attention: name in `audio_tf.attention.ATTENTIONS`, or a subclass of
            `audio_tf.attention.Attention` or its registered name; or a list
            of one for each layer, or a name in `MIXTURES` beside it, which
            stands for such a list. Layers of the same attention share their
            weights.
        attention_kwargs: dict of further arguments of the attention, or a
            list of one dict for each layer.
        causal: bool or `None`. True asks for a model in which no frame
            depends on later ones, and is an error if the attention cannot be
            so; False, the paper's, makes attention bidirectional; `None`
            makes it causal where the mechanism can be.
        made_for_frames: int, the longest input that the model is made for;
            the papers' 1000 by default. Tables, strides and patterns of the
            attention are sized from it.
        activation: the activation of the feed-forward; `"gelu"` is the exact
            one.
        dropout: float, the dropout rate of the embedding, of attention
            weights and of both branches.
        layer_norm_epsilon: float, added to the variance in LayerNorms.
        initializer_range: float, the standard deviation of initial kernels.
        return_hidden_states: bool, whether the outputs have
            `"hidden_states"`.
        dtype: dtype policy of all layers.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: floating tensor `(batch, frames, feature_dim)`, or a dict of
            it as `features` with either `lengths` `(batch,)`, the real frames
            of each padded clip, or `frame_mask` `(batch, frames)`, True for
            the real frames, which come first.

    Returns:
        Dict of `"sequence_output"`, `(batch, frames, hidden_dim)`;
        `"frame_mask"`, boolean `(batch, frames)`, True where a frame is real;
        and, if asked for, `"hidden_states"`,
        `(batch, num_layers + 1, frames, hidden_dim)`: the embedding and the
        output of each layer. Real frames do not depend on the padding.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range, or `causal=True` and the
            attention cannot be causal.

    Examples:
        >>> import numpy as np
        >>> from audio_tf.models import AudioAlbertBackbone
        >>> backbone = AudioAlbertBackbone(
        ...     num_layers=3, num_heads=2, key_dim=8, hidden_dim=16,
        ...     intermediate_dims=(32,), feature_dim=40,
        ... )
        >>> outputs = backbone(np.zeros((1, 25, 40), "float32"))
        >>> tuple(outputs["sequence_output"].shape)
        (1, 25, 16)
    """

    takes = "features"
    frame_size = 1

    def __init__(
        self,
        num_layers=6,
        share_layers=True,
        num_heads=12,
        key_dim=64,
        hidden_dim=768,
        intermediate_dims=(3072,),
        feature_dim=480,
        attention="full",
        attention_kwargs=None,
        causal=False,
        made_for_frames=1000,
        activation="gelu",
        dropout=0.0,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        return_hidden_states=False,
        dtype=None,
        **kwargs,
    ):
        check_sizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            feature_dim=feature_dim,
            made_for_frames=made_for_frames,
        )
        check_flags(
            share_layers=share_layers,
            return_hidden_states=return_hidden_states,
        )
        check_rates(dropout=dropout)
        check_not_negative(initializer_range=initializer_range)
        # === Layers ===
        embedding = [
            keras.layers.Dense(
                hidden_dim,
                kernel_initializer=keras.initializers.RandomNormal(
                    stddev=initializer_range
                ),
                dtype=dtype,
                name="input_projection",
            ),
            SinusoidalPositions(dtype=dtype, name="positions"),
            keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=dtype, name="input_norm"
            ),
            Dropout(dropout, dtype=dtype, name="input_dropout"),
        ]
        names, options = by_block(attention, attention_kwargs, num_layers)
        asked = list(zip(names, options, strict=True))
        # Layers that share weights are those of the same attention.
        kinds = [x for i, x in enumerate(asked) if asked.index(x) == i]
        alone = share_layers and len(kinds) == 1
        made = [
            TransformerBlock(
                num_heads=num_heads,
                key_dim=key_dim,
                intermediate_dims=intermediate_dims,
                attention=name,
                attention_kwargs=of_block(own, index),
                causal=causal,
                made_for_frames=made_for_frames,
                activation=activation,
                dropout=dropout,
                kernel_initializer=keras.initializers.RandomNormal(
                    stddev=initializer_range
                ),
                layer_norm_epsilon=layer_norm_epsilon,
                dtype=dtype,
                name="block" if alone else f"block_{index}",
            )
            for index, (name, own) in enumerate(
                kinds if share_layers else asked
            )
        ]
        blocks = made
        if share_layers:
            blocks = [made[kinds.index(each)] for each in asked]
        frame_mask = FrameMask(1, name="frame_mask")

        # === Functional Model ===
        inputs = model_inputs.symbolic("features", feature_dim)
        features = inputs["features"]
        mask = frame_mask(features[:, :, 0], inputs["lengths"])
        states = [embed_frames(features, mask, embedding)]
        for block in blocks:
            states.append(block(states[-1], mask=mask))
        outputs = {"sequence_output": states[-1], "frame_mask": mask}
        if return_hidden_states:
            outputs["hidden_states"] = ops.stack(states, axis=1)
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

        # === Config ===
        self.frame_mask = frame_mask
        self.embedding = embedding
        self.blocks = blocks
        self.num_layers = num_layers
        self.share_layers = share_layers
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.hidden_dim = hidden_dim
        self.intermediate_dims = tuple(intermediate_dims)
        self.feature_dim = feature_dim
        self.attention = one_for_all(names)
        self.attention_kwargs = one_for_all(options)
        self.asked_causal = causal
        self.made_for_frames = made_for_frames
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.return_hidden_states = return_hidden_states

    @property
    def stages(self):
        return self.blocks

    def embed(self, inputs):
        features, lengths = inputs["features"], inputs["lengths"]
        mask = self.frame_mask(features[:, :, 0], lengths)
        return embed_frames(features, mask, self.embedding), mask

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "share_layers": self.share_layers,
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "hidden_dim": self.hidden_dim,
            "intermediate_dims": list(self.intermediate_dims),
            "feature_dim": self.feature_dim,
            "attention": untracked(self.attention),
            "attention_kwargs": untracked(self.attention_kwargs),
            "causal": self.asked_causal,
            "made_for_frames": self.made_for_frames,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "return_hidden_states": self.return_hidden_states,
        }


AudioAlbertBackbone.register_sizes(
    {
        "audio_albert_3": {"num_layers": 3},
        "audio_albert_6": {"num_layers": 6},
        "audio_albert_12": {"num_layers": 12},
        # Mockingjay's form on the same features.
        "audio_albert_6_unshared": {"num_layers": 6, "share_layers": False},
        # s3prl's HEAD, `audio_albert`: 80 log-mel bands, no stacking.
        "audio_albert_s3prl": {
            "num_layers": 3,
            "feature_dim": 80,
            "dropout": 0.1,
        },
    }
)
