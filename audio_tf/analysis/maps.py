"""Attention maps of every layer and head of a backbone."""

import keras
import numpy as np
from keras import ops

from audio_tf.models.inputs import complete
from audio_tf.ops.checks import check_sizes


def transformer_blocks(model):
    """Returns the blocks of a model in the order in which they are applied.

    Args:
        model: an `AudioBackbone`, or a task that has one.

    Returns:
        List of `TransformerBlock`. A block that is applied several times
        occurs in it as often.

    Raises:
        ValueError: if the model has no blocks.

    Examples:
        >>> from audio_tf import analysis, models
        >>> backbone = models.AudioTransformerBackbone(num_layers=2)
        >>> len(analysis.transformer_blocks(backbone))
        2
    """
    return model.audio_backbone().attention_blocks()


def map_shapes(model, samples):
    """Returns the shapes of a clip's maps without computing the maps.

    Args:
        model: an `AudioBackbone`, or a task that has one.
        samples: int, length of the clip in samples at the model's rate.

    Returns:
        List with one tuple for each layer, `(heads, frames, frames)`.

    Raises:
        ValueError: if the model has no blocks, or the clip is longer than the
            model takes.
    """
    blocks, backbone = transformer_blocks(model), model.audio_backbone()
    if backbone.max_samples is not None and samples > backbone.max_samples:
        raise ValueError(
            f"The model's {backbone.attention!r} attention was made for at "
            f"most {backbone.max_frames} frames, {backbone.max_samples} "
            f"samples. Received: {samples} samples"
        )
    # From symbolic inputs, layers compute nothing but shapes.
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
    """Yields the attention maps of a few clips at a time, in inference.

    The maps of one clip are `layers * heads * frames^2` floats. Six layers of
    twelve heads over 500 frames, as in arXiv 2006.05174, take 72 MB.

    Args:
        model: an `AudioBackbone`, or a task that has one.
        waveforms: floating array `(clips, samples)`, full scale 1, at the
            model's rate.
        lengths: integers `(clips,)`, the number of real samples of each
            padded clip, or `None` if no clip is padded.
        batch_size: int, the number of clips that are computed at a time.

    Yields:
        List with one float32 array for each layer,
        `(batch_size, heads, frames, frames)`, query by key. A model that pools
        between its blocks has fewer frames in later layers. Rows and columns
        of padding are zero. Every other row sums to one if the attention
        normalises its rows.

    Raises:
        ValueError: if the model has no blocks, its attention does not weight
            pairs of frames, or a clip is longer than the model takes; if there
            are no clips, samples are integers or have other axes, or there is
            not one of `lengths` for each clip.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis, models
        >>> backbone = models.AudioTransformerBackbone(
        ...     num_layers=1, num_heads=2
        ... )
        >>> clips = np.zeros((3, 4_000), "float32")
        >>> for maps in analysis.iterate_maps(backbone, clips, batch_size=2):
        ...     print(maps[0].shape)
        (2, 2, 10, 10)
        (1, 2, 10, 10)
    """
    blocks = transformer_blocks(model)
    for block in blocks:
        if block.attention.map_kind != "frames":
            raise ValueError(
                f"{block.attention_name!r} weights features, not pairs of "
                "frames, and so has no attention map. "
                f"Received: map_kind={block.attention.map_kind!r}"
            )
    check_sizes(batch_size=batch_size)
    inputs = {"waveform": np.asarray(waveforms)}
    if lengths is not None:
        inputs["lengths"] = np.atleast_1d(lengths)
    # Of all clips: a batch of them would hide how many lengths there are.
    inputs = complete(inputs, "waveform")
    waveforms, lengths = inputs["waveform"].astype("float32"), inputs["lengths"]
    if not len(waveforms):
        raise ValueError(
            "`waveforms` must have a clip at least. "
            f"Received: shape={waveforms.shape}"
        )
    if lengths is None:
        lengths = np.full(len(waveforms), waveforms.shape[1], "int32")
    for start in range(0, len(waveforms), batch_size):
        part = slice(start, start + batch_size)
        states = model.audio_backbone().block_inputs(
            {"waveform": waveforms[part], "lengths": lengths[part]}
        )
        yield [
            block_maps(block, state, mask)
            for block, (state, mask) in zip(blocks, states, strict=True)
        ]


def attention_maps(model, waveforms, lengths=None, batch_size=1):
    """Returns the attention maps of all clips at once.

    Args:
        model, waveforms, lengths, batch_size: as `iterate_maps` takes them.

    Returns:
        List with one float32 array `(clips, heads, frames, frames)` for each
        layer.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import analysis, models
        >>> backbone = models.AudioTransformerBackbone(
        ...     num_layers=1, num_heads=2
        ... )
        >>> clips = np.zeros((3, 4_000), "float32")
        >>> maps = analysis.attention_maps(backbone, clips)
        >>> [each.shape for each in maps]
        [(3, 2, 10, 10)]
    """
    parts = iterate_maps(model, waveforms, lengths, batch_size)
    return [np.concatenate(layer) for layer in zip(*parts, strict=True)]


def block_maps(block, state, mask):
    """Returns the map of one block.

    Args:
        block: a `TransformerBlock`.
        state: floating tensor `(batch, frames, dim)`, the block's input.
        mask: boolean tensor `(batch, frames)`, True where a frame is real.

    Returns:
        Float32 array `(batch, heads, frames, frames)`.
    """
    _, weights = block(
        state, mask=mask, training=False, return_attention_scores=True
    )
    weights = ops.convert_to_numpy(ops.cast(weights, "float32"))
    # A padded query has weights too, which mean nothing.
    return weights * ops.convert_to_numpy(mask)[:, None, :, None]
