"""Embeddings of texts and images by every layer of an encoder of KerasHub.

`layer_embeddings` does the same for sound, by encoders of this library.
"""

import contextlib
import functools

import keras
import keras_hub
import numpy as np
from keras import ops

from audio_tf import compiling
from audio_tf.layers import MaskedMean

# Attributes of KerasHub's models that hold their blocks: of text on the
# backbone itself, of images on its layer that is the encoder.
OF_TEXT = "transformer_layers"
OF_IMAGES = ("encoder_layers", "layers")
# Preprocessors of texts, the first that a model has.
PREPROCESSORS = (
    keras_hub.models.TextClassifierPreprocessor,
    keras_hub.models.CausalLMPreprocessor,
)
# Tokens are cut to a multiple of so many, or each length would be a graph.
TOKENS = 32


def find_blocks(backbone):
    """Finds the blocks of a backbone of KerasHub, whose outputs are layers.

    Args:
        backbone: `keras_hub.models.Backbone`.

    Returns:
        List of layers.

    Raises:
        ValueError: if there are none, as in convolutional networks.
    """
    holders = [(backbone, OF_TEXT)]
    for layer in backbone.layers:
        if type(layer).__name__.endswith("Encoder"):
            holders += [(layer, name) for name in OF_IMAGES]
    for holder, name in holders:
        found = list(flat(getattr(holder, name, [])))
        if found:
            return found
    raise ValueError(
        "The encoder must be a transformer of KerasHub whose blocks are its "
        f"`{OF_TEXT}`, or its encoder's {' or '.join(OF_IMAGES)}. "
        f"Received: {type(backbone).__name__}"
    )


def flat(layers):
    """Yields the layers of nested lists; ALBERT has groups of blocks."""
    for each in layers:
        if isinstance(each, (list, tuple)):
            yield from flat(each)
        else:
            yield each


@contextlib.contextmanager
def recorded(blocks):
    """Records the outputs of blocks for as long as the context lasts.

    It goes by the calls, not by a graph: blocks lie within other layers in
    some models, and are called several times in others.

    Args:
        blocks: list of layers.

    Yields:
        List to which each call of one of them appends its output.
    """
    found, originals = [], [block.call for block in blocks]

    def recording(call):
        @functools.wraps(call)
        def recorded_call(*args, **kwargs):
            outputs = call(*args, **kwargs)
            first = isinstance(outputs, (list, tuple))
            found.append(outputs[0] if first else outputs)
            return outputs

        return recorded_call

    try:
        for block, call in zip(blocks, originals, strict=True):
            block.call = recording(call)
        yield found
    finally:
        for block in blocks:
            # The method of its class is what it had.
            del block.call


class PooledLayers(keras.Model):
    """A model of the means of all layers of a backbone of KerasHub.

    Args:
        backbone: `keras_hub.models.Backbone`.
        blocks: list of its blocks.

    Call arguments:
        inputs: what the backbone takes; a `padding_mask` in it, `(batch,
            tokens)`, is 1 where a token is real.

    Returns:
        Float32 tensor `(batch, layers, dim)`.
    """

    def __init__(self, backbone, blocks):
        super().__init__()
        self.backbone = backbone
        self.blocks = blocks
        self.mean = MaskedMean(dtype="float32")

    def call(self, inputs):
        with recorded(self.blocks) as states:
            outputs = self.backbone(inputs, training=False)
        if isinstance(outputs, dict):
            outputs = outputs["sequence_output"]
        states = [*states[:-1], outputs]
        shapes = {tuple(state.shape) for state in states}
        widths = {shape[-1] for shape in shapes}
        if {len(shape) for shape in shapes} != {3} or len(widths) != 1:
            raise ValueError(
                "All layers of the encoder must give (batch, tokens, dim), "
                f"as wide as each other. Received: {sorted(map(str, shapes))}"
            )
        mask = None
        if isinstance(inputs, dict) and "padding_mask" in inputs:
            mask = ops.cast(inputs["padding_mask"], "bool")
        return ops.stack([self.mean(x, mask=mask) for x in states], axis=1)


class HubEncoder:
    """A frozen encoder of KerasHub, all layers of which embed an example.

    Section 3.3 of "Gaussian Adaptive Attention is All You Need" (arXiv
    2401.11143): the output of each transformer layer is averaged over the
    sequence. The first hidden state, which no layer has computed, is left
    out, and the last is the backbone's own output, behind its final
    normalisation, as `transformers` gives it of Llama. The paper leaves open
    whether special tokens count, how long a text may be and how padding is
    averaged: here all tokens that are real count, the class token of an image
    too, and padding does not.

    Args:
        preset: str, name, address or folder of a preset of KerasHub.
        kind: str, `"text"` or `"image"`, what it is to take.
        max_tokens: int, tokens of a text, special ones included; the rest is
            cut off. `None` for images.
        dtype: str, the precision of the encoder, or `None` for the preset's.

    Attributes:
        backbone: `keras_hub.models.Backbone`.

    Raises:
        ValueError: if the preset takes something else, its blocks are not
            known, or it comes without a preprocessor.
    """

    def __init__(self, preset, kind, max_tokens=None, dtype=None):
        given = {} if dtype is None else {"dtype": dtype}
        self.kind = kind
        self.backbone = keras_hub.models.Backbone.from_preset(preset, **given)
        self.backbone.trainable = False
        takes = self.backbone.input
        self.names = list(takes) if isinstance(takes, dict) else [None]
        text = {"token_ids", "padding_mask"} <= set(self.names)
        image = len(self.names) == 1 and len(self.backbone.inputs[0].shape) == 4
        if not {"text": text, "image": image}[kind]:
            raise ValueError(
                f"--encoder must take {kind}s; sound is embedded by "
                "`AudioClassifier.embed`, and every layer's by `audio-tf "
                f"emotion --model`. Received: {preset}, a "
                f"{type(self.backbone).__name__} of "
                f"{[each.name for each in self.backbone.inputs]}"
            )
        self.model = PooledLayers(self.backbone, find_blocks(self.backbone))
        self.model.compile(jit_compile=compiling.jit_compile())
        if kind == "image":
            self.inputs = self.image_inputs
            self.preprocess = keras_hub.layers.ImageConverter.from_preset(
                preset
            )
            return
        # Of KerasHub's models some have positions in a table.
        longest = getattr(self.backbone, "max_sequence_length", None)
        if longest is not None and max_tokens > longest:
            raise ValueError(
                f"--max-tokens must be at most {longest}, which {preset} "
                f"takes. Received: {max_tokens}"
            )
        self.inputs = self.text_inputs
        self.preprocess = text_preprocessor(preset, self.backbone, max_tokens)

    def shape(self):
        """Returns how many layers there are, and how wide they are."""
        probe = "a" if self.kind == "text" else np.zeros((8, 8, 3), "uint8")
        return tuple(ops.shape(self.model(self.inputs([probe])))[1:])

    def embed(self, items):
        """Embeds texts or images.

        Args:
            items: list of str, or of uint8 arrays `(height, width, 3)`.

        Returns:
            Float32 array `(batch, layers, dim)`.
        """
        return self.model.predict_on_batch(self.inputs(items))

    def text_inputs(self, texts):
        """Makes tokens of texts, cut behind the longest of them."""
        found = {
            name: ops.convert_to_numpy(value)
            for name, value in self.preprocess(texts).items()
            if name in self.names
        }
        real = np.flatnonzero(found["padding_mask"].any(axis=0))
        last = 1 + (real[-1] if len(real) else 0)
        last = -(-last // TOKENS) * TOKENS
        return {name: value[:, :last] for name, value in found.items()}

    def image_inputs(self, images):
        """Makes a batch of images, each brought to the encoder's size."""
        found = [
            ops.convert_to_numpy(self.preprocess(image[None]))
            for image in images
        ]
        batch = np.concatenate(found)
        (name,) = self.names
        return batch if name is None else {name: batch}


def text_preprocessor(preset, backbone, max_tokens):
    """Makes KerasHub's preprocessor of the texts of a backbone.

    Args:
        preset: str, the preset, which has the vocabulary.
        backbone: `keras_hub.models.Backbone`.
        max_tokens: int, tokens of a text.

    Returns:
        Function of a list of str to a dict of arrays `(batch, max_tokens)`.

    Raises:
        ValueError: if KerasHub has none for this class.
    """
    for base in PREPROCESSORS:
        for cls in subclasses(base):
            if cls.backbone_cls is type(backbone):
                made = cls.from_preset(preset, sequence_length=max_tokens)
                if base is keras_hub.models.CausalLMPreprocessor:
                    return made.generate_preprocess
                return made
    raise ValueError(
        "KerasHub must have a preprocessor of texts for the encoder. "
        f"Received: {preset}, a {type(backbone).__name__}"
    )


def subclasses(cls):
    """Yields all subclasses of a class."""
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)
