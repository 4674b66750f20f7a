"""Audio Transformer: waveform to frames by dense layers and attention."""

import keras

from audio_tf.attention import name_of
from audio_tf.layers import (
    FrameMask,
    MultiScaleAverage,
    SinusoidalPositions,
    TemporalAveragePooling,
    TransformerBlock,
    WaveformFrontend,
)
from audio_tf.models import inputs as model_inputs
from audio_tf.models.backbone import AudioBackbone
from audio_tf.ops.checks import check_sizes


@keras.saving.register_keras_serializable("audio_tf")
class AudioTransformerBackbone(AudioBackbone):
    """The encoder of "Audio Transformers" (arXiv 2105.00335), any length.

    Windows of 25 ms -> dense front end -> sinusoidal positions -> post-norm
    transformer blocks, with pooling or multi-scale averages between them.

    The paper leaves sizes open, and no reading of it gives both published
    counts (0.9 M and 2.3 M). The default is heads of 64 and a feed-forward of
    128-128-64; with 200 classes `model.summary()` then counts

    | size | backbone | with `AudioClassifier`, 200 classes | paper |
    |---|---|---|---|
    | `audio_transformer_small` | 974,272 | 987,272 | 0.9 M |
    | `audio_transformer_large` | 1,948,480 | 1,961,480 | 2.3 M |
    | `audio_transformer_large_pooled` | 1,948,480 | 1,961,480 | 2.3 M |
    | `audio_transformer_large_multiscale` | 1,948,480 | 1,961,480 | 2.3 M |

    Args:
        num_layers: int, the number of transformer blocks.
        num_heads: int, the number of attention heads.
        key_dim: int, the size of each head.
        hidden_dim: int, the model's width: features of a frame inside.
        intermediate_dims: tuple of ints, units of the feed-forward's hidden
            layers.
        frontend_filters: int, units of the front end's first layer.
        window_s: float, the length in seconds of the window that a frame is
            made of; windows do not overlap.
        sample_rate_hz: int, the rate of the waveform.
        filterbank: `"random"` or `"mel"`, as `WaveformFrontend` has it.
        attention: name in `audio_tf.attention.ATTENTIONS`, or a subclass of
            `audio_tf.attention.Attention` or its registered name. Each block
            has its own layer.
        attention_kwargs: dict of further arguments of the attention.
        causal: bool or `None`. True asks for a causal model, and is an error
            if something in it looks ahead; False makes the attentions
            bidirectional; with `None`, the paper's way, attentions are causal
            where the mechanism can be. The attribute `causal` says whether
            the whole model is.
        made_for_frames: int, the longest input that the model is made for;
            the paper's second of 40 frames by default. Tables, strides and
            patterns of the attentions are sized from it, behind a pooling
            from the frames that are left.
        activation: the activation of front end and feed-forward.
        dropout: float, the dropout rate of attention weights and of both
            branches.
        pool_every: int or `None`. If given, the model averages over time
            after every so many blocks, but not after the last, where the mean
            over all frames follows anyway.
        pool_size: int, frames of a window that is averaged.
        pool_strides: int, frames from one window to the next; `pool_size` if
            `None`.
        multiscale: `None`, `"block"` or `"causal"`: `MultiScaleAverage` after
            each block but the last, over blocks or trailing windows.
        dtype: dtype policy of all layers.
        **kwargs: `name` and `trainable`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range, or `causal=True` and
            something looks ahead.
    """

    def __init__(
        self,
        num_layers=6,
        num_heads=8,
        key_dim=64,
        hidden_dim=64,
        intermediate_dims=(128, 128),
        frontend_filters=2048,
        window_s=0.025,
        sample_rate_hz=16_000,
        filterbank="random",
        attention="full",
        attention_kwargs=None,
        causal=None,
        made_for_frames=40,
        activation="relu",
        dropout=0.0,
        pool_every=None,
        pool_size=2,
        pool_strides=None,
        multiscale=None,
        dtype=None,
        **kwargs,
    ):
        check_sizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            frontend_filters=frontend_filters,
            made_for_frames=made_for_frames,
        )
        if multiscale not in (None, "block", "causal"):
            raise ValueError(
                "`multiscale` must be None, 'block' or 'causal'. "
                f"Received: multiscale={multiscale!r}"
            )
        # === Layers ===
        frontend = WaveformFrontend(
            filters=frontend_filters,
            hidden_dim=hidden_dim,
            window_s=window_s,
            sample_rate_hz=sample_rate_hz,
            activation=activation,
            filterbank=filterbank,
            dtype=dtype,
            name="frontend",
        )
        blocks, stages, frames = [], [], made_for_frames
        for index in range(num_layers):
            block = TransformerBlock(
                num_heads=num_heads,
                key_dim=key_dim,
                intermediate_dims=intermediate_dims,
                attention=attention,
                attention_kwargs=attention_kwargs,
                causal=causal,
                made_for_frames=frames,
                activation=activation,
                dropout=dropout,
                dtype=dtype,
                name=f"block_{index}",
            )
            blocks.append(block)
            stages.append(block)
            if index == num_layers - 1:
                break
            if multiscale is not None:
                average = MultiScaleAverage(
                    causal=multiscale == "causal",
                    dtype=dtype,
                    name=f"multiscale_{index}",
                )
                stages.append(average)
            if pool_every and (index + 1) % pool_every == 0:
                pooling = TemporalAveragePooling(
                    pool_size,
                    pool_strides,
                    dtype=dtype,
                    name=f"pooling_{index}",
                )
                stages.append(pooling)
                frames = -(-frames // pooling.frame_stride)
        looking_ahead = [s.name for s in stages if not s.causal]
        if causal and looking_ahead:
            raise ValueError(
                "`causal=True` needs a model in which nothing looks ahead, but "
                f"{looking_ahead[0]} does. Received: causal={causal}, "
                f"attention={attention!r}, multiscale={multiscale!r}, "
                f"pool_size={pool_size}, pool_strides={pool_strides}"
            )
        frame_mask = FrameMask(frontend.window_size, name="frame_mask")
        positions = SinusoidalPositions(dtype=dtype, name="positions")

        # === Functional Model ===
        inputs = model_inputs.symbolic("waveform")
        x = positions(frontend(inputs["waveform"], inputs["lengths"]))
        mask = frame_mask(inputs["waveform"], inputs["lengths"])
        for stage in stages:
            before, x = x, stage(x, mask=mask)
            mask = stage.compute_mask(before, mask)
        super().__init__(
            inputs=inputs,
            outputs={"sequence_output": x, "frame_mask": mask},
            dtype=dtype,
            **kwargs,
        )

        # === Config ===
        self.frontend = frontend
        self.positions = positions
        self.frame_mask = frame_mask
        self.blocks = blocks
        self.stages = stages
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.hidden_dim = hidden_dim
        self.intermediate_dims = tuple(intermediate_dims)
        self.frontend_filters = frontend_filters
        self.window_s = window_s
        self.sample_rate_hz = sample_rate_hz
        self.filterbank = filterbank
        self.attention = name_of(attention)
        self.attention_kwargs = dict(attention_kwargs or {})
        self.asked_causal = causal
        self.made_for_frames = made_for_frames
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.pool_every = pool_every
        self.pool_size = pool_size
        self.pool_strides = pool_strides
        self.multiscale = multiscale

    embeds_pieces = True

    @property
    def frame_size(self):
        return self.frontend.window_size

    def embed(self, inputs):
        waveform, lengths = inputs["waveform"], inputs["lengths"]
        x = self.positions(self.frontend(waveform, lengths))
        return x, self.frame_mask(waveform, lengths)

    def embed_next(self, waveform, past):
        x = self.frontend(waveform)
        blank = keras.ops.zeros(
            (keras.ops.shape(x)[0], past, x.shape[-1]), x.dtype
        )
        return self.positions(keras.ops.concatenate([blank, x], 1))[:, past:]

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "hidden_dim": self.hidden_dim,
            "intermediate_dims": list(self.intermediate_dims),
            "frontend_filters": self.frontend_filters,
            "window_s": self.window_s,
            "sample_rate_hz": self.sample_rate_hz,
            "filterbank": self.filterbank,
            "attention": self.attention,
            "attention_kwargs": dict(self.attention_kwargs),
            "causal": self.asked_causal,
            "made_for_frames": self.made_for_frames,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "pool_every": self.pool_every,
            "pool_size": self.pool_size,
            "pool_strides": self.pool_strides,
            "multiscale": self.multiscale,
        }


AudioTransformerBackbone.register_sizes(
    {
        "audio_transformer_small": {"num_layers": 3, "frontend_filters": 1024},
        "audio_transformer_large": {"num_layers": 6, "frontend_filters": 2048},
        "audio_transformer_large_pooled": {
            "num_layers": 6,
            "frontend_filters": 2048,
            "pool_every": 2,
        },
        "audio_transformer_large_multiscale": {
            "num_layers": 6,
            "frontend_filters": 2048,
            "multiscale": "block",
        },
    }
)
