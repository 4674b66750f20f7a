"""Attention maps of every layer and head of a backbone."""

import keras
import numpy as np
from keras import ops

from audio_tf.models import AudioBackbone


def backbone_of(model):
    """The backbone of a task, or the model itself if it is one."""
    return model if isinstance(model, AudioBackbone) else model.backbone


def transformer_blocks(model):
    """The blocks of a model in the order in which they are applied.

    Args:
        model: an `AudioBackbone`, or a task that has one.

    Returns:
        List of `TransformerBlock`; one that is applied again and again is
        there as often.

    Raises:
        ValueError: if the model has none.
    """
    backbone = backbone_of(model)
    if not backbone.blocks:
        raise ValueError(
            "Attention maps are those of transformer blocks, and the model "
            f"has none. Received: {type(backbone).__name__}"
        )
    return list(backbone.blocks)


def map_shapes(model, samples):
    """Shapes of the maps of a clip, found without computing any.

    Args:
        model: an `AudioBackbone`, or a task that has one.
        samples: int, length of the clip.

    Returns:
        List by layer of the shape of its maps, `(heads, frames, frames)`.

    Raises:
        ValueError: if the model has no blocks, or the clip is longer than the
            model takes.
    """
    blocks, backbone = transformer_blocks(model), backbone_of(model)
    if backbone.max_samples is not None and samples > backbone.max_samples:
        raise ValueError(
            f"The model's {backbone.attention!r} attention was made for at "
            f"most {backbone.max_frames} frames, {backbone.max_samples} "
            f"samples. Received: {samples} samples"
        )
    # Of symbolic inputs, layers compute shapes alone.
    inputs = backbone.block_inputs(
        {
            "waveform": keras.KerasTensor((1, samples), "float32"),
            "lengths": keras.KerasTensor((1,), "int32"),
        }
    )
    specs = [
        block.compute_output_spec(x, return_attention_scores=True)
        for block, (x, _) in zip(blocks, inputs, strict=True)
    ]
    return [weights.shape[1:] for _, weights in specs]


def iterate_maps(model, waveforms, lengths=None, batch_size=1):
    """Yields the attention maps of a few clips at a time.

    All maps of a clip are `layers * heads * frames^2` floats: 72 MB for the
    paper's six layers of twelve heads over 500 frames.

    Args:
        model: an `AudioBackbone`, or a task that has one.
        waveforms: floating array `(clips, samples)`, full scale 1, at the
            model's rate.
        lengths: integers `(clips,)`, real samples of padded clips, or `None`
            where all are real.
        batch_size: int, clips at a time.

    Yields:
        List by layer of float32 arrays `(batch_size, heads, frames, frames)`,
        query by key, in inference; where a model pools between its blocks the
        frames differ. Rows and columns of padding are zero, and each other
        row sums to one, but for attentions whose rows do not.

    Raises:
        ValueError: if the model has no blocks, its attention weights
            something else than pairs of frames, or a clip is longer than the
            attention's `max_length`.
    """
    blocks = transformer_blocks(model)
    for block in blocks:
        if block.attention.map_kind != "frames":
            raise ValueError(
                f"{block.attention_name!r} weights features, not pairs of "
                "frames, and so has no attention map. "
                f"Received: map_kind={block.attention.map_kind!r}"
            )
    waveforms = np.asarray(waveforms, "float32")
    if lengths is None:
        lengths = np.full(len(waveforms), waveforms.shape[1])
    lengths = np.asarray(lengths, "int32")
    for start in range(0, len(waveforms), batch_size):
        part = slice(start, start + batch_size)
        states = backbone_of(model).block_inputs(
            {"waveform": waveforms[part], "lengths": lengths[part]}
        )
        yield [
            block_maps(block, state, mask)
            for block, (state, mask) in zip(blocks, states, strict=True)
        ]


def attention_maps(model, waveforms, lengths=None, batch_size=1):
    """The maps of all clips at once; arguments as `iterate_maps` takes them.

    Returns:
        List by layer of float32 arrays `(clips, heads, frames, frames)`; where
        the model does not pool, `np.stack` makes one array of it.
    """
    parts = iterate_maps(model, waveforms, lengths, batch_size)
    return [np.concatenate(layer) for layer in zip(*parts, strict=True)]


def block_maps(block, state, mask):
    """The map of one block, float32 `(batch, heads, frames, frames)`."""
    _, weights = block(
        state, mask=mask, training=False, return_attention_scores=True
    )
    weights = ops.convert_to_numpy(ops.cast(weights, "float32"))
    # A query of padding has weights too, which mean nothing.
    return weights * ops.convert_to_numpy(mask)[:, None, :, None]
