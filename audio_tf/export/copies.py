"""Copies of a classifier for export; the classifier itself is not changed."""

import pathlib
import tempfile
import warnings

import keras

from audio_tf import attention


def copied(model):
    """Returns a model of equal config and weights, with LoRA's merged in."""
    copy = type(model).from_config(model.get_config())
    # By a file and not by `set_weights`: a layer with LoRA has more weights
    # than its config tells, and merges them into what it writes.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "copied.weights.h5")
        keras.saving.save_weights(model, path)
        keras.saving.load_weights(copy, path)
    return copy


def folded(model):
    """Returns a copy whose attention tables are constants, or the model.

    The model itself is returned if it has no table that could be folded.
    """
    if not any(
        block.attention.foldable and not block.attention.folded
        for block in model.backbone.blocks
    ):
        return model
    copy = copied(model)
    attention.fold(copy)
    return copy


def quantized(model):
    """Returns a copy of the model whose dense layers hold int8."""
    copy = copied(model)
    with warnings.catch_warnings():
        # It warns of each layer that has no weights to quantize.
        warnings.filterwarnings("ignore", ".*`quantize` method")
        copy.quantize("int8")
    return copy
