"""The base of every backbone: its contract and its presets."""

import keras
import keras_hub

from audio_tf import compat
from audio_tf.models import freezing, preset_backbones, presets
from audio_tf.models.inputs import FeatureDoor
from audio_tf.ops import checks, masks


class AudioBackbone(
    FeatureDoor,
    compat.OnAnyBackend,
    compat.QuietQuantization,
    keras_hub.models.Backbone,
):
    """The base of the models that turn audio into frames.

    A subclass builds its graph, hands `inputs` and `outputs` to this
    constructor and has `stages`, `frame_size` and, where it takes waveforms,
    `sample_rate_hz`. One with attention has `blocks`, `made_for_frames`,
    `attention`, `attention_kwargs` and the method `embed`, too. The base
    derives all its other attributes from these.

    Attributes:
        takes: `"waveform"` or `"features"`.
        sample_rate_hz: int, the rate of the waveform; `None` where the model
            takes features.
        features: layer that computes features of the waveform, a
            `SpeechFeatures`, `None` where the model takes the waveform
            otherwise or takes features.
        encoder: the backbone that these features go into, `None` where there
            are none.
        frontend: `layers.filters.Frontend`, the layer that turns the waveform
            into frames or bands, and whose method `learned` says what it has
            learned; `None` where the model takes features.
        frame_size: int, samples (of features: input frames, 1) from one frame
            of the first stage to the next.
        output_frame_size: int, samples from one frame of
            `"sequence_output"` to the next.
        blocks: list of `TransformerBlock` in the order in which they are
            applied; a shared one occurs as often as it is applied. Empty
            where the model has no attention.
        stages: list of the `Stage`s that frames run through: the blocks and
            what is between them, or whatever the model has in their place.
        made_for_frames: int, the longest input that the model is made for, in
            frames of the first stage: tables, strides and patterns of the
            attentions are sized from it. `None` without attention.
        max_frames: int, frames of the first stage of the longest input that
            the model takes, or `None` for any length.
        max_samples: int, samples (of features: input frames) of the longest
            input, or `None` for any length.
        attention: str, the name of the attention, or a list of one for each
            block; `None` where the model has none. `attention_kwargs` is the
            dict of its arguments, or such a list, or `None`.
        num_heads: int, the heads of the attention, or `None`.
        head: dict of the arguments of `AudioClassifier` that differ from its
            own defaults where the published model has another head.
        causal: bool, whether no frame of the output depends on samples behind
            it: behind its `output_frame_size` samples.
        streams: bool, whether the model can be run piece by piece, by
            `embed_next` and the stages; a causal one can.
        heard: dict of the symbolic `waveform` and `lengths` (of features: as
            the inputs are) that frames are made of, behind all that training
            changes in the samples; the inputs, unless a subclass says
            otherwise.

    Call arguments:
        inputs: floating waveform `(batch, samples)`, full scale 1, or
            features `(batch, frames, feature_dim)`, as `takes` says; or a
            dict of it under that name with `lengths`, integers `(batch,)`,
            the real samples (of features: frames) of each padded clip.
            Lengths beyond the tensor count as all of it, negative ones as 0.
        mask: boolean `(batch, samples)` or `(batch, frames)`, True for what is
            real, which comes first, in place of `lengths`; by default the
            mask that a layer such as `keras.layers.Masking` has attached to
            an input without any.

    Returns:
        Dict of `"sequence_output"`, `(batch, frames, dim)`, and
        `"frame_mask"`, boolean `(batch, frames)`, True where a frame holds a
        real sample. Frames that are real do not depend on the padding,
        whatever it holds.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if what is given is no floating tensor, or longer than
            `max_samples`.

    Examples:
        >>> from audio_tf import models
        >>> backbone = models.AudioBackbone.from_preset(
        ...     "audio_transformer_small", load_weights=False
        ... )
        >>> backbone.sample_rate_hz, backbone.frame_size, len(backbone.blocks)
        (16000, 400, 3)
    """

    sample_rate_hz = None
    # Without attention; a model that has any says what it has.
    blocks = ()
    attention = None
    attention_kwargs = None
    num_heads = None
    made_for_frames = None
    head = {}
    # Whether each frame is made of its own `frame_size` samples alone.
    embeds_pieces = False
    sizes = {}
    # Names of the arguments that are backbones themselves.
    parts = ()

    def __init__(
        self, inputs, outputs, dtype=None, name=None, trainable=True, **unknown
    ):
        checks.reject_unknown(type(self).__name__, unknown, self.arguments())
        super().__init__(
            inputs=inputs,
            outputs=outputs,
            dtype=dtype,
            name=name,
        )
        # Torch would find an attribute of the class before a model's own
        # layer; some subclasses have a property.
        for name in ("features", "encoder", "frontend"):
            if not hasattr(type(self), name):
                setattr(self, name, None)
        self.resting_by_class = tuple(freezing.resting(self))
        freezing.freeze_layers(self, trainable)
        compat.settle_dtypes(self)

    @classmethod
    def arguments(cls):
        """Lists the names of the constructor's arguments, with the bases'."""
        names = checks.parameters_of(cls, last=AudioBackbone)
        return [name for name in names if name not in ("inputs", "outputs")]

    @classmethod
    def defaults(cls):
        """Returns a dict by name of the defaults of `arguments`."""
        defaults = checks.defaults_of(cls, last=AudioBackbone)
        names = cls.arguments()
        return {name: defaults[name] for name in names if name in defaults}

    @classmethod
    def rate_hz_of(cls, config):
        """Returns the `sample_rate_hz` of a model by its config, not built.

        Args:
            config: dict of constructor arguments, complete with defaults; an
                argument that is a layer is a serialised object.
        """
        return config.get("sample_rate_hz", cls.sample_rate_hz)

    @classmethod
    def register_sizes(cls, sizes):
        """Makes architectures known by name, to KerasHub too.

        Args:
            sizes: dict by name of dicts of constructor arguments.

        Raises:
            ValueError: if a released preset has the name of one.
        """
        presets.register_sizes(cls, sizes)
        cls.sizes = {**cls.sizes, **sizes}

    @property
    def output_frame_size(self):
        return self.frame_size * self._frames_at(len(self.stages))

    @property
    def max_frames(self):
        limits = []
        for index, stage in enumerate(self.stages):
            limit = stage.max_frames
            if limit is not None:
                limits.append(limit * self._frames_at(index))
        return min(limits, default=None)

    @property
    def heard(self):
        return self.input

    def _frames_at(self, index):
        """Returns how many of the first stage's frames make one at a stage."""
        count = 1
        for stage in self.stages[:index]:
            count *= stage.frame_stride
        return count

    @property
    def max_samples(self):
        frames = self.max_frames
        return None if frames is None else frames * self.frame_size

    @property
    def causal(self):
        return all(stage.causal for stage in self.stages)

    def audio_backbone(self):
        return self

    def with_heard(self):
        """Makes a model of the outputs and, as `"heard"`, of `heard`.

        One pass computes both the frames and what they are made of.
        """
        return keras.Model(self.input, {**self.output, "heard": self.heard})

    def enable_lora(self, rank, target_layer_names=None):
        """Adds LoRA weights as KerasHub does, if there is a layer for them.

        Args:
            rank: int, the rank of the update of each kernel.
            target_layer_names: list of the names of layers that get an
                update, by default the projections to queries and values.

        Raises:
            ValueError: if the model has no such layer.
        """
        names = target_layer_names or self.default_lora_layer_names()
        layers = compat.layers_within(self)
        if not any(layer.name in names for layer in layers):
            having = f"with its {self.attention!r} attention"
            if self.attention is None:
                having = "without attention"
            raise ValueError(
                f"No layer of {self.name} {having} has one of the names "
                f"{list(names)}. "
                f"Received: target_layer_names={target_layer_names}"
            )
        super().enable_lora(rank, target_layer_names)
        self.note_other_weights()

    @property
    def streams(self):
        return self.embeds_pieces and all(s.streams for s in self.stages)

    def embed_next(self, waveform, past):
        """Computes the first block's input for the next frames of a stream.

        Args:
            waveform: floating tensor `(batch, samples)`, whole frames or, at
                the end of a stream, the beginning of one behind them.
            past: integer scalar tensor, frames that came before.

        Returns:
            Tensor `(batch, frames, dim)`.
        """
        raise NotImplementedError  # abstract where `embeds_pieces`

    def embed(self, inputs):
        """Computes the first block's input, in inference.

        Args:
            inputs: complete dict of the model's inputs.

        Returns:
            Pair of a tensor `(batch, frames, dim)` and the mask of real
            frames, boolean `(batch, frames)`.
        """
        raise NotImplementedError  # abstract where there are `blocks`

    def attention_blocks(self):
        """Returns the list of the blocks of a model that has any.

        Raises:
            ValueError: if the model has no blocks.
        """
        if not self.blocks:
            raise ValueError(
                "Attention maps and the states between blocks are those of "
                "transformer blocks, and the model has none. "
                f"Received: {type(self).__name__}"
            )
        return list(self.blocks)

    def run_stages(self, inputs):
        """Yields the stages, with what goes in and comes out, in inference.

        Args:
            inputs: as the model takes them.

        Yields:
            Tuples by stage of the stage, its input and its output, `(batch,
            frames, dim)`, and the mask of its input, boolean `(batch,
            frames)`.
        """
        inputs = self.completed(inputs)
        inputs[self.takes] = keras.ops.cast(inputs[self.takes], "float32")
        x, mask = self.embed(inputs)
        for stage in self.stages:
            before, x = x, stage(x, mask=mask, training=False)
            yield stage, before, x, mask
            mask = stage.compute_mask(before, mask)

    def walk(self, inputs):
        """Yields the blocks, with what goes in and comes out, in inference.

        Args:
            inputs: as the model takes them.

        Yields:
            Triples by block of its input and its output, `(batch, frames,
            dim)`, and their mask, boolean `(batch, frames)`.

        Raises:
            ValueError: if the model has no blocks.
        """
        blocks = {id(block) for block in self.attention_blocks()}
        for stage, before, after, mask in self.run_stages(inputs):
            if id(stage) in blocks:
                yield before, after, mask

    def block_inputs(self, inputs):
        """Computes the input of each block, in inference.

        Args:
            inputs: as the model takes them.

        Returns:
            List by block of pairs of a tensor `(batch, frames, dim)` and the
            mask of real frames, boolean `(batch, frames)`.
        """
        return [(before, mask) for before, _, mask in self.walk(inputs)]

    def hidden_states(self, inputs):
        """Computes the first block's input and each block's output.

        The last of them is `"sequence_output"`: a normalisation behind the
        last block is part of it.

        Args:
            inputs: as the model takes them.

        Returns:
            List of pairs like `block_inputs`, one more than there are blocks.
        """
        self.attention_blocks()  # Refuses before anything is computed.
        outputs = []
        for stage, before, after, mask in self.run_stages(inputs):
            outputs = outputs or [(before, mask)]
            outputs.append((after, stage.compute_mask(before, mask)))
        return self.pick_hidden_states(outputs)

    def stages_below(self, state):
        """Returns the list of the stages that a hidden state comes out of.

        Args:
            state: int, its place among the `hidden_states`. All stages belong
                to the last.
        """
        blocks = {id(block) for block in self.attention_blocks()}
        ends = [0]
        for number, stage in enumerate(self.stages, start=1):
            if id(stage) in blocks:
                ends.append(number)
        ends[-1] = len(self.stages)
        return list(self.stages[: ends[state]])

    def pick_hidden_states(self, outputs):
        """Picks the hidden states among what comes out of the stages.

        Args:
            outputs: list of the first stage's input and, by stage, its output;
                that of the first stages alone gives the first states.

        Returns:
            List of those that `hidden_states` are made of, in its order.
        """
        blocks = {id(block) for block in self.attention_blocks()}
        states = [outputs[0]]
        stages = self.stages[: len(outputs) - 1]
        for stage, output in zip(stages, outputs[1:], strict=True):
            if id(stage) in blocks:
                states.append(output)
            elif len(states) > len(self.blocks):
                states[-1] = output
        return states

    def get_config(self):
        # Not KerasHub's: its map of policies has no default, and Keras then
        # forgets what quantised layers compute in, here as in the file.
        policy = self.dtype_policy
        if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
            policy = policy.default_policy
        layers = compat.layers_within(self)
        policy = compat.quantized_policy(policy, layers) or policy
        return {
            "name": self.name,
            "trainable": freezing.trained(self, self.resting_by_class),
            "dtype": keras.dtype_policies.serialize(policy),
        }

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Builds a backbone from the name of a size or from a preset.

        Args:
            preset: the name of a size, which gives the architecture with
                random weights, the name of a released preset, or what
                KerasHub takes: a folder or a `hf://`, `kaggle://` or `gs://`
                address.
            load_weights: bool, whether to load the weights of a preset.
            **kwargs: arguments of the class that override the preset's. Where
                the model has another in it, as a `SpeechEncoder` has its
                encoder, the arguments of that one count as well.
                `trainable=True` trains all of a preset that was saved frozen,
                wholly or in parts; a list of names of layers, such as
                `["block_5"]`, trains these alone.

        Raises:
            TypeError: if there is an unknown argument; it names the closest.
            ValueError: if there is no such size or preset, it is of another
                class or lacks a file, or its weights do not fit the
                arguments.
        """
        return preset_backbones.load_backbone(cls, preset, load_weights, kwargs)

    def save_to_preset(self, preset_dir, max_shard_size=10):
        """Writes a preset, which a task around this model adds its own to.

        Its `metadata.json` names the resampler of this version of audio_tf;
        `from_preset` warns where it is another.

        Args:
            preset_dir: folder of the preset; made if missing.
            max_shard_size: float, GB of the largest file of weights, or
                `None` for one file.

        Raises:
            ValueError: if a class of the model is not registered with Keras,
                so that the preset could not be loaded.
        """
        presets.check_found_again(self)
        super().save_to_preset(preset_dir, max_shard_size=max_shard_size)
        presets.record_resampler(preset_dir)


def embed_frames(frames, mask, layers):
    """Computes the first block's input, whatever the padding holds.

    Args:
        frames: floating tensor `(batch, frames, dim)`.
        mask: boolean `(batch, frames)`, True where a frame is real.
        layers: list of layers, applied one after the other.

    Returns:
        Tensor `(batch, frames, hidden_dim)`.
    """
    x = masks.zero_padding(frames, mask)
    for layer in layers:
        x = layer(x)
    return x
