"""Attention maps of every layer and head of a backbone."""

import keras
import numpy as np
from keras import ops

from audio_tf.models import SpeechEncoder


def backbone_of(model):
    """The backbone of a task, or the model itself if it is one."""
    return getattr(model, "backbone", model)


def transformer_blocks(model):
    """The blocks of a model in the order in which they are applied.

    Args:
        model: an `AudioBackbone`, or a task that has one.

    Returns:
        List of `TransformerBlock`; one that is applied again and again is
        there as often.
    """
    return list(backbone_of(model).blocks)


def frame_size(model):
    """Samples from one frame of the first block to the next."""
    return backbone_of(model).frame_size


def map_shapes(model, samples):
    """Shapes of the maps of a clip, found without computing any.

    Args:
        model: an `AudioBackbone`, or a task that has one.
        samples: int, length of the clip.

    Returns:
        List by layer of the shape of its maps, `(heads, frames, frames)`.

    Raises:
        ValueError: if the model has no blocks, or the clip is longer than the
            attention's `max_length`.
    """
    backbone = backbone_of(model)
    blocks = transformer_blocks(model)
    waveform = keras.KerasTensor((1, samples), "float32")
    if isinstance(backbone, SpeechEncoder):
        steps = backbone.features.compute_output_spec(waveform).shape[1]
        shape = (1, steps, backbone.encoder.embedding_dim)
        outputs = [keras.KerasTensor(shape)] * len(blocks)
    else:
        graph = keras.Model(
            backbone.input, {block.name: block.output for block in blocks}
        )
        lengths = keras.KerasTensor((1,), "int32")
        named = graph.compute_output_spec(
            {"waveform": waveform, "lengths": lengths}
        )
        outputs = [named[block.name] for block in blocks]
    # A block's output has the shape of its input.
    specs = [
        block.compute_output_spec(output, return_attention_scores=True)
        for block, output in zip(blocks, outputs, strict=True)
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
    read = block_inputs(model, blocks)
    waveforms = np.asarray(waveforms, "float32")
    if lengths is None:
        lengths = np.full(len(waveforms), waveforms.shape[1])
    lengths = np.asarray(lengths, "int32")
    for start in range(0, len(waveforms), batch_size):
        part = slice(start, start + batch_size)
        states = read(waveforms[part], lengths[part])
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


def block_inputs(model, blocks):
    """A function of waveforms and lengths to what each block is given.

    It returns, by block, pairs of the input `(batch, frames, dim)` and the
    mask of real frames, boolean `(batch, frames)`.
    """
    backbone = backbone_of(model)

    def read(waveforms, lengths):
        return backbone.block_inputs(
            {"waveform": waveforms, "lengths": lengths}
        )

    return read


def block_maps(block, state, mask):
    """The map of one block, float32 `(batch, heads, frames, frames)`."""
    _, weights = block(
        state, mask=mask, training=False, return_attention_scores=True
    )
    if len(weights.shape) != 4:
        raise ValueError(
            f"{block.attention_name!r} weights features, not pairs of frames, "
            "and so has no attention map. Received: weights of shape "
            f"{tuple(weights.shape)}"
        )
    weights = ops.convert_to_numpy(ops.cast(weights, "float32"))
    # A query of padding has weights too, which mean nothing.
    return weights * ops.convert_to_numpy(mask)[:, None, :, None]
