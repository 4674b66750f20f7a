"""WavLM, HuBERT and wav2vec 2.0: a convolutional front end and a transformer.

Keras itself has none of them. `conversion.py` reads their published weights.
"""

import keras
from keras import ops

from audio_tf.attention import name_of, of_block
from audio_tf.layers import (
    ConvolutionalFrontend,
    ConvolutionalPositions,
    FrameMask,
    FrameNorm,
    LearnedFrameMasking,
    TransformerBlock,
)
from audio_tf.layers.augmented_frontend import check_augmentation
from audio_tf.models import inputs as model_inputs
from audio_tf.models.augmented import AugmentedBackbone
from audio_tf.models.backbone import embed_frames
from audio_tf.ops.checks import (
    check_flags,
    check_not_negative,
    check_rates,
    check_sizes,
)
from audio_tf.ops.layer import Dropout


@keras.saving.register_keras_serializable("audio_tf")
class WavLMBackbone(AugmentedBackbone):
    """The encoder of WavLM (arXiv 2110.13900), of any size.

    Strided convolutions over the waveform -> projection -> positions by a
    wide convolution -> transformer blocks, whose attention has a gated
    relative position bias. `attention="full"` leaves the bias out, which
    makes it the encoder of wav2vec 2.0 (arXiv 2006.11477) and of HuBERT
    (arXiv 2106.07447).

    ```python
    encoder = WavLMBackbone.from_preset("hf://microsoft/wavlm-large")
    frames = encoder(waveform)["sequence_output"]
    ```

    A size by its name has random weights; `from_preset` of an address or a
    folder converts the weights that are published for `transformers`, as
    safetensors or as PyTorch wrote them, of all three families. Frames are 20
    ms apart, and each is made of 25 ms of sound.

    | size | layers, width | normalises | parameters |
    |---|---|---|---|
    | `wavlm_base`, `wavlm_base_plus` | 12, 768 | behind | 94,381,936 |
    | `wavlm_large` | 24, 1024 | before | 315,453,120 |

    The defaults are the architecture of `wavlm_base` without its dropout. In
    the base sizes the channels of the first convolution are normalised over
    time. Here only real samples count, as if each clip were alone, where
    `transformers` counts the padding of a batch, too: its own frames of such
    a model move with the padding.

    Args:
        num_layers: int, the number of transformer blocks.
        num_heads: int, the number of attention heads.
        key_dim: int, the size of each head.
        hidden_dim: int, the model's width: features of a frame inside.
        intermediate_dims: tuple of ints, units of the feed-forward's hidden
            layers.
        conv_channels, conv_kernels, conv_strides: tuples of ints, channels,
            kernel and stride of each convolution of the front end.
        conv_bias: bool, whether these convolutions have biases.
        conv_norm: `"group"` or `"layer"`, how they are normalised, as
            `ConvolutionalFrontend` says.
        position_kernel: int, frames of the convolution that tells positions.
        position_groups: int, the groups of that convolution.
        norm_first: bool, whether blocks normalise before attention and
            feed-forward; a normalisation then follows the last block, and
            none precedes the first.
        normalize_waveform: bool, whether each clip is first brought to mean
            0 and variance 1 over its real samples, as the feature extractor
            does that some published weights come with.
        sample_rate_hz: int, the rate of the waveform.
        attention: name in `audio_tf.attention.ATTENTIONS`, or a subclass of
            `audio_tf.attention.Attention` or its registered name.
        attention_kwargs: dict of further arguments of the attention.
        made_for_frames: int, the longest input that the model is made for,
            5 s by default; tables and strides of an attention that has some
            are sized from it. Those of WavLM have none.
        activation: the activation of all parts.
        dropout: float, the dropout rate of attention weights, of both
            branches and of the first block's input.
        activation_dropout: float, the dropout rate within the feed-forward.
        frontend_dropout: float, the dropout rate behind the projection.
        layer_drop: float, the share of training steps in which a block is
            passed over, each for itself.
        mask_rate: float, the share of frames that a learned one replaces in
            training, as `LearnedFrameMasking` does.
        mask_frames: int, frames of each run that is replaced.
        layer_norm_epsilon: float, added to the variance in LayerNorms.
        initializer_range: float, the standard deviation of initial kernels.
        return_hidden_states: bool, whether the outputs have
            `"hidden_states"`.
        augmentation: list of `Augmentation` of `audio_tf.layers` for
            waveforms, applied in training alone, one after the other.
        dtype: dtype policy of all layers.
        **kwargs: `name` and `trainable`.

    It is called as every `AudioBackbone`. A frame is real if its whole window
    is; a clip shorter than that is one frame.

    Returns:
        Dict of `"sequence_output"` and `"frame_mask"`, as every
        `AudioBackbone` returns them, and, if asked for, `"hidden_states"`,
        `(batch, num_layers + 1, frames, hidden_dim)`: the first block's input
        and the output of each block, of the last one as it is normalised.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range.
    """

    def __init__(
        self,
        num_layers=12,
        num_heads=12,
        key_dim=64,
        hidden_dim=768,
        intermediate_dims=(3072,),
        conv_channels=(512,) * 7,
        conv_kernels=(10, 3, 3, 3, 3, 2, 2),
        conv_strides=(5, 2, 2, 2, 2, 2, 2),
        conv_bias=False,
        conv_norm="group",
        position_kernel=128,
        position_groups=16,
        norm_first=False,
        normalize_waveform=False,
        sample_rate_hz=16_000,
        attention="gated_relative",
        attention_kwargs=None,
        made_for_frames=249,
        activation="gelu",
        dropout=0.0,
        activation_dropout=0.0,
        frontend_dropout=0.0,
        layer_drop=0.0,
        mask_rate=0.0,
        mask_frames=10,
        layer_norm_epsilon=1e-5,
        initializer_range=0.02,
        return_hidden_states=False,
        augmentation=(),
        dtype=None,
        **kwargs,
    ):
        check_sizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            sample_rate_hz=sample_rate_hz,
            made_for_frames=made_for_frames,
            mask_frames=mask_frames,
        )
        check_rates(mask_rate=mask_rate)
        check_rates(frontend_dropout=frontend_dropout)
        check_not_negative(initializer_range=initializer_range)
        check_flags(
            conv_bias=conv_bias, return_hidden_states=return_hidden_states
        )
        check_augmentation(augmentation, ["waveform"], sample_rate_hz)
        augmentation = list(augmentation)

        def initializer():
            return keras.initializers.RandomNormal(stddev=initializer_range)

        # === Layers ===
        frontend = ConvolutionalFrontend(
            hidden_dim=hidden_dim,
            channels=conv_channels,
            kernels=conv_kernels,
            strides=conv_strides,
            use_bias=conv_bias,
            norm=conv_norm,
            normalize_waveform=normalize_waveform,
            activation=activation,
            dropout=frontend_dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            kernel_initializer=initializer(),
            dtype=dtype,
            name="frontend",
        )
        masking = []
        if mask_rate:
            masking = [
                LearnedFrameMasking(
                    mask_rate, mask_frames, dtype=dtype, name="masking"
                )
            ]
        encoder_norm = FrameNorm(
            layer_norm_epsilon,
            dtype=dtype,
            name="output_norm" if norm_first else "input_norm",
        )
        embedding = [
            ConvolutionalPositions(
                position_kernel,
                position_groups,
                activation=activation,
                dtype=dtype,
                name="positions",
            )
        ]
        if not norm_first:
            embedding.append(encoder_norm)
        embedding.append(Dropout(dropout, dtype=dtype, name="input_dropout"))
        blocks = [
            TransformerBlock(
                num_heads=num_heads,
                key_dim=key_dim,
                intermediate_dims=intermediate_dims,
                attention=attention,
                attention_kwargs=of_block(attention_kwargs, index),
                made_for_frames=made_for_frames,
                activation=activation,
                dropout=dropout,
                kernel_initializer=initializer(),
                layer_norm_epsilon=layer_norm_epsilon,
                norm_first=norm_first,
                activation_dropout=activation_dropout,
                layer_drop=layer_drop,
                dtype=dtype,
                name=f"block_{index}",
            )
            for index in range(num_layers)
        ]
        blocks[0].build((None, None, hidden_dim))
        for block in blocks[1:]:
            block.attention.share(blocks[0].attention)
        stages = list(blocks)
        if norm_first:
            stages.append(encoder_norm)
        frame_mask = FrameMask(
            frontend.frame_size, frontend.window_size, name="frame_mask"
        )

        # === Functional Model ===
        inputs = model_inputs.symbolic("waveform")
        heard = self.augment(augmentation, inputs)
        mask = frame_mask(**heard)
        x = frontend(**heard)
        for layer in masking:
            x = layer(x)
        states = [embed_frames(x, mask, embedding)]
        for block in blocks:
            states.append(block(states[-1], mask=mask))
        for stage in stages[num_layers:]:
            states[-1] = stage(states[-1], mask=mask)
        outputs = {"sequence_output": states[-1], "frame_mask": mask}
        if return_hidden_states:
            outputs["hidden_states"] = ops.stack(states, axis=1)
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

        # === Config ===
        self.frontend = frontend
        self.masking = masking
        self.embedding = embedding
        self.encoder_norm = encoder_norm
        self.frame_mask = frame_mask
        self.blocks = blocks
        self.stages = stages
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.hidden_dim = hidden_dim
        self.intermediate_dims = tuple(intermediate_dims)
        self.conv_channels = frontend.channels
        self.conv_kernels = frontend.kernels
        self.conv_strides = frontend.strides
        self.conv_bias = conv_bias
        self.conv_norm = conv_norm
        self.position_kernel = position_kernel
        self.position_groups = position_groups
        self.norm_first = norm_first
        self.normalize_waveform = normalize_waveform
        self.sample_rate_hz = sample_rate_hz
        self.attention = name_of(attention)
        self.attention_kwargs = dict(attention_kwargs or {})
        self.made_for_frames = made_for_frames
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.activation_dropout = activation_dropout
        self.frontend_dropout = frontend_dropout
        self.layer_drop = layer_drop
        self.mask_rate = mask_rate
        self.mask_frames = mask_frames
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.return_hidden_states = return_hidden_states
        self.augmentation = augmentation
        self.augmented = heard

    @property
    def frame_size(self):
        return self.frontend.frame_size

    @property
    def max_samples(self):
        frames = self.max_frames
        return None if frames is None else self.frontend.longest_clip(frames)

    @property
    def causal(self):
        """Whether no frame depends on later samples: windows overlap."""
        return False

    def embed(self, inputs):
        waveform, lengths = inputs["waveform"], inputs["lengths"]
        mask = self.frame_mask(waveform, lengths)
        x = self.frontend(waveform, lengths)
        return embed_frames(x, mask, self.embedding), mask

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "hidden_dim": self.hidden_dim,
            "intermediate_dims": list(self.intermediate_dims),
            "conv_channels": list(self.conv_channels),
            "conv_kernels": list(self.conv_kernels),
            "conv_strides": list(self.conv_strides),
            "conv_bias": self.conv_bias,
            "conv_norm": self.conv_norm,
            "position_kernel": self.position_kernel,
            "position_groups": self.position_groups,
            "norm_first": self.norm_first,
            "normalize_waveform": self.normalize_waveform,
            "sample_rate_hz": self.sample_rate_hz,
            "attention": self.attention,
            "attention_kwargs": dict(self.attention_kwargs),
            "made_for_frames": self.made_for_frames,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "activation_dropout": self.activation_dropout,
            "frontend_dropout": self.frontend_dropout,
            "layer_drop": self.layer_drop,
            "mask_rate": self.mask_rate,
            "mask_frames": self.mask_frames,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "return_hidden_states": self.return_hidden_states,
        }


# What is dropped and masked in training; a published model brings its own.
BASE = {"dropout": 0.1, "frontend_dropout": 0.1, "layer_drop": 0.05}
WavLMBackbone.register_sizes(
    {
        "wavlm_base": {**BASE, "mask_rate": 0.05},
        "wavlm_base_plus": {**BASE, "mask_rate": 0.05},
        "wavlm_large": {
            **BASE,
            "layer_drop": 0.1,
            "mask_rate": 0.075,
            "num_layers": 24,
            "num_heads": 16,
            "hidden_dim": 1024,
            "intermediate_dims": [4096],
            "conv_norm": "layer",
            "norm_first": True,
            "normalize_waveform": True,
        },
    }
)
