"""Audio Transformer: waveform to frames by dense layers and attention."""

import keras

from audio_tf.attention import by_block, of_block, one_for_all, untracked
from audio_tf.layers import (
    FrameMask,
    FrameNorm,
    SinusoidalPositions,
    TransformerBlock,
)
from audio_tf.layers.stages import run_through
from audio_tf.models import inputs as model_inputs
from audio_tf.models.augmented import AugmentedBackbone
from audio_tf.models.between_blocks import Averages, Pooling, between_blocks
from audio_tf.models.frontends import make_frontend
from audio_tf.ops.checks import check_positive, check_sizes


def listed(values):
    """Returns a list of an argument's values, `None` where it is `None`."""
    return None if values is None else list(values)


@keras.saving.register_keras_serializable("audio_tf")
class AudioTransformerBackbone(AugmentedBackbone):
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
    | `audio_transformer_mel_small` | 166,656 | 179,656 | |
    | `audio_transformer_mel_base` | 826,368 | 852,168 | |

    Beyond the paper there is `audio_transformer_mel_small` and its larger
    relatives: a front end of compressed mel bands, blocks that normalise
    first, and attention over the whole clip. Trained on little data they
    are far better.

    Args:
        num_layers: int, the number of transformer blocks.
        num_heads: int, the number of attention heads.
        key_dim: int, the size of each head.
        hidden_dim: int, the model's width: features of a frame inside.
        intermediate_dims: tuple of ints, units of the feed-forward's hidden
            layers.
        frontend_filters: int, units of the front end's first layer, or the
            number of mel bands.
        window_s: float, the length of windows in seconds; those of the
            paper's front end make a frame each and do not overlap.
        frontend_gain: float, the scale at which the paper's front end begins,
            or `None` for `WaveformFrontend`'s default, which is not the
            paper's 1.
        sample_rate_hz: int, the rate of the waveform.
        filterbank: `"random"` or `"mel"` for the paper's dense front end, as
            `WaveformFrontend` has it; `"log_mel"` or `"pcen_mel"` for
            `MelFrontend`, by its compression.
        attention: name in `audio_tf.attention.ATTENTIONS`, or a subclass of
            `audio_tf.attention.Attention` or its registered name; or a list
            of one for each block; or a name in `MIXTURES` beside it, such as
            `"hybrid_local"`, which stands for such a list. Each block has its
            own layer.
        attention_kwargs: dict of further arguments of the attention, or a
            list of one dict for each block.
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
        pool_every: int or `None`. If given, the model pools over time
            after every so many blocks, but not after the last, where the mean
            over all frames follows anyway.
        pool_size: int, frames of a window that is pooled.
        pool_strides: int, frames from one window to the next; `pool_size` if
            `None`.
        pool_kind: `"average"`, which the paper prefers, or `"max"`, with
            `pool_every`.
        multiscale: `None`, `"block"` or `"causal"`: `MultiScaleAverage`
            between blocks, over blocks of frames or trailing windows. The
            arguments `multiscale_...` are its own, and go with it.
        multiscale_windows: list of ints, windows in frames, or `None` for 2,
            4, 8, 16 and 32.
        multiscale_shares: list of floats, for each window the share of the
            features that it has, or `None` for shares that halve.
        multiscale_after: list of ints, the blocks that averages come after,
            from 0 on, or `None` for each but the last.
        hop_s: float, the time in seconds from one window of a `MelFrontend`
            to the next, or `None` for its default of 10 ms.
        stack_size: int, windows of a `MelFrontend` that make a frame, or
            `None` for its default of 4.
        subtract_mean: bool, whether a `MelFrontend` takes each band's mean
            over the clip away, or `None` for its default of True.
        norm_first: bool, whether blocks normalise before attention and
            feed-forward; a normalisation then follows the last block.
        augmentation: list of `Augmentation` of `audio_tf.layers`, which are
            applied in training, each where its `domain` is computed.
        dtype: dtype policy of all layers.
        **kwargs: `name` and `trainable`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range, or `causal=True` and
            something looks ahead.

    Examples:
        >>> import numpy as np
        >>> from audio_tf.models import AudioTransformerBackbone
        >>> backbone = AudioTransformerBackbone(num_layers=1)
        >>> outputs = backbone(np.zeros((1, 16_000), "float32"))
        >>> tuple(outputs["sequence_output"].shape)
        (1, 40, 64)
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
        hop_s=None,
        stack_size=None,
        subtract_mean=None,
        norm_first=False,
        frontend_gain=None,
        augmentation=(),
        pool_kind="average",
        multiscale_windows=None,
        multiscale_shares=None,
        multiscale_after=None,
        dtype=None,
        **kwargs,
    ):
        check_sizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            frontend_filters=frontend_filters,
            made_for_frames=made_for_frames,
        )
        if frontend_gain is not None:
            check_positive(frontend_gain=frontend_gain)
        between = between_blocks(
            Averages(
                multiscale,
                multiscale_windows,
                multiscale_shares,
                multiscale_after,
            ),
            Pooling(pool_every, pool_size, pool_strides, pool_kind),
            num_layers,
            dtype,
        )
        attentions, options = by_block(attention, attention_kwargs, num_layers)
        # === Layers ===
        frontend = make_frontend(
            filterbank,
            {
                "hop_s": hop_s,
                "stack_size": stack_size,
                "subtract_mean": subtract_mean,
            },
            {"gain": frontend_gain},
            augmentation,
            frontend_filters,
            activation,
            hidden_dim=hidden_dim,
            window_s=window_s,
            sample_rate_hz=sample_rate_hz,
            dtype=dtype,
            name="frontend",
        )
        augmentation = list(augmentation)
        blocks, stages, frames = [], [], made_for_frames
        for index in range(num_layers):
            block = TransformerBlock(
                num_heads=num_heads,
                key_dim=key_dim,
                intermediate_dims=intermediate_dims,
                attention=attentions[index],
                attention_kwargs=of_block(options[index], index),
                causal=causal,
                made_for_frames=frames,
                activation=activation,
                dropout=dropout,
                norm_first=norm_first,
                dtype=dtype,
                name=f"block_{index}",
            )
            blocks.append(block)
            stages += [block, *between[index]]
            for stage in between[index]:
                frames = -(-frames // stage.frame_stride)
        if norm_first:
            stages.append(FrameNorm(dtype=dtype, name="output_norm"))
        looking_ahead = [s.name for s in (frontend, *stages) if not s.causal]
        if causal and looking_ahead:
            raise ValueError(
                "`causal=True` needs a model in which nothing looks ahead, but "
                f"{looking_ahead[0]} does. Received: causal={causal}, "
                f"attention={attention!r}, multiscale={multiscale!r}, "
                f"pool_size={pool_size}, pool_strides={pool_strides}"
            )
        frame_mask = FrameMask(frontend.frame_size, name="frame_mask")
        positions = SinusoidalPositions(dtype=dtype, name="positions")

        # === Functional Model ===
        inputs = model_inputs.symbolic("waveform")
        heard = self.augment(augmentation, inputs)
        waveform, lengths = heard["waveform"], heard["lengths"]
        x = positions(frontend(waveform, lengths))
        mask = frame_mask(waveform, lengths)
        x, mask = run_through(stages, x, mask)
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
        self.attention = one_for_all(attentions)
        self.attention_kwargs = one_for_all(options)
        self.asked_causal = causal
        self.made_for_frames = made_for_frames
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.pool_every = pool_every
        self.pool_size = pool_size
        self.pool_strides = pool_strides
        self.pool_kind = pool_kind
        self.multiscale = multiscale
        self.multiscale_windows = listed(multiscale_windows)
        self.multiscale_shares = listed(multiscale_shares)
        self.multiscale_after = listed(multiscale_after)
        self.hop_s = hop_s
        self.stack_size = stack_size
        self.subtract_mean = subtract_mean
        self.norm_first = norm_first
        self.frontend_gain = frontend_gain
        self.augmentation = augmentation
        self.augmented = heard

    @property
    def embeds_pieces(self):
        """Whether each frame is made of its own samples alone."""
        return self.frontend.embeds_pieces

    @property
    def frame_size(self):
        return self.frontend.frame_size

    @property
    def causal(self):
        return self.frontend.causal and super().causal

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
            "attention": untracked(self.attention),
            "attention_kwargs": untracked(self.attention_kwargs),
            "causal": self.asked_causal,
            "made_for_frames": self.made_for_frames,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "pool_every": self.pool_every,
            "pool_size": self.pool_size,
            "pool_strides": self.pool_strides,
            "pool_kind": self.pool_kind,
            "multiscale": self.multiscale,
            "multiscale_windows": self.multiscale_windows,
            "multiscale_shares": self.multiscale_shares,
            "multiscale_after": self.multiscale_after,
            "hop_s": self.hop_s,
            "stack_size": self.stack_size,
            "subtract_mean": self.subtract_mean,
            "norm_first": self.norm_first,
            "frontend_gain": self.frontend_gain,
        }


MEL = {
    "filterbank": "log_mel",
    "frontend_filters": 64,
    "num_heads": 4,
    "norm_first": True,
    "causal": False,
    "dropout": 0.1,
}
AudioTransformerBackbone.register_sizes(
    {
        "audio_transformer_mel_small": {
            **MEL,
            "num_layers": 3,
            "hidden_dim": 64,
            "key_dim": 16,
            "intermediate_dims": (256,),
        },
        "audio_transformer_mel_base": {
            **MEL,
            "num_layers": 4,
            "hidden_dim": 128,
            "key_dim": 32,
            "intermediate_dims": (512,),
        },
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
