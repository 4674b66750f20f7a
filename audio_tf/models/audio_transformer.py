"""Audio Transformer: waveform to frames by dense layers and attention."""

import keras

from audio_tf.attention import find
from audio_tf.layers import (
    FrameMask,
    MultiScaleAverage,
    SinusoidalPositions,
    TemporalAveragePooling,
    TransformerBlock,
    WaveformFrontend,
)
from audio_tf.models.backbone import AudioBackbone, audio_inputs


@keras.saving.register_keras_serializable("audio_tf")
class AudioTransformerBackbone(AudioBackbone):
    """The encoder of "Audio Transformers" (arXiv 2105.00335), any length.

    Patches of 25 ms -> dense front end -> sinusoidal positions -> post-norm
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
        num_layers: int, transformer blocks.
        num_heads: int, attention heads.
        key_dim: int, size of each head.
        embedding_dim: int, size of a frame's embedding.
        feed_forward_dims: units of the feed-forward's hidden layers.
        frontend_filters: int, units of the front end's first layer.
        patch_s: float, length of a patch in seconds.
        sample_rate_hz: int, rate of the waveform.
        filterbank: `"random"` or `"mel"`, as `WaveformFrontend` has it.
        attention: name in `audio_tf.attention.ATTENTIONS`, registered name,
            or Layer class. Each block has its own layer.
        attention_kwargs: dict of further arguments of the attention.
        causal: bool or `None`. If True, no frame sees a later one. `None` is
            the paper's True, but False for an attention that cannot be causal.
        activation: activation of front end and feed-forward.
        dropout: float, dropout rate of attention weights and both branches.
        pool_every: int or `None`. Average over time after every so many
            blocks, but not after the last, where the mean follows anyway.
        pool_size: int, frames that are averaged.
        pool_strides: int, stride of the pooling; `pool_size` if `None`.
        multiscale: `None`, `"block"` or `"causal"`: `MultiScaleAverage` after
            each block but the last, over blocks or trailing windows.
        dtype: dtype policy of all layers.
        **kwargs: arguments of `keras_hub.models.Backbone`.

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(
        self,
        num_layers=6,
        num_heads=8,
        key_dim=64,
        embedding_dim=64,
        feed_forward_dims=(128, 128),
        frontend_filters=2048,
        patch_s=0.025,
        sample_rate_hz=16_000,
        filterbank="random",
        attention="full",
        attention_kwargs=None,
        causal=None,
        activation="relu",
        dropout=0.0,
        pool_every=None,
        pool_size=2,
        pool_strides=None,
        multiscale=None,
        dtype=None,
        **kwargs,
    ):
        if multiscale not in (None, "block", "causal"):
            raise ValueError(
                "`multiscale` must be None, 'block' or 'causal'. "
                f"Received: multiscale={multiscale!r}"
            )
        if causal is None:
            causal = getattr(find(attention), "supports_causal", True)
        # === Layers ===
        frontend = WaveformFrontend(
            filters=frontend_filters,
            embedding_dim=embedding_dim,
            patch_s=patch_s,
            sample_rate_hz=sample_rate_hz,
            activation=activation,
            filterbank=filterbank,
            dtype=dtype,
            name="frontend",
        )
        stages = []
        for index in range(num_layers):
            block = TransformerBlock(
                num_heads=num_heads,
                key_dim=key_dim,
                feed_forward_dims=feed_forward_dims,
                attention=attention,
                attention_kwargs=attention_kwargs,
                causal=causal,
                activation=activation,
                dropout=dropout,
                dtype=dtype,
                name=f"block_{index}",
            )
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

        # === Functional Model ===
        inputs = audio_inputs()
        x = frontend(inputs["waveform"], inputs["lengths"])
        mask = FrameMask(frontend.patch_size, name="frame_mask")(
            inputs["waveform"], inputs["lengths"]
        )
        x = SinusoidalPositions(dtype=dtype, name="positions")(x)
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
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.embedding_dim = embedding_dim
        self.feed_forward_dims = tuple(feed_forward_dims)
        self.frontend_filters = frontend_filters
        self.patch_s = patch_s
        self.sample_rate_hz = sample_rate_hz
        self.filterbank = filterbank
        self.attention = attention
        self.attention_kwargs = dict(attention_kwargs or {})
        self.causal = causal
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.pool_every = pool_every
        self.pool_size = pool_size
        self.pool_strides = pool_strides
        self.multiscale = multiscale

    def get_config(self):
        attention = self.attention
        if isinstance(attention, type):
            attention = keras.saving.get_registered_name(attention)
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "embedding_dim": self.embedding_dim,
            "feed_forward_dims": list(self.feed_forward_dims),
            "frontend_filters": self.frontend_filters,
            "patch_s": self.patch_s,
            "sample_rate_hz": self.sample_rate_hz,
            "filterbank": self.filterbank,
            "attention": attention,
            "attention_kwargs": dict(self.attention_kwargs),
            "causal": self.causal,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "pool_every": self.pool_every,
            "pool_size": self.pool_size,
            "pool_strides": self.pool_strides,
            "multiscale": self.multiscale,
        }


AudioTransformerBackbone.sizes = {
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
