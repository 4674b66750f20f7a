"""Published weights of WavLM, HuBERT and wav2vec 2.0, by their names.

A converter as KerasHub has one for each of its own models: what a
configuration of `transformers` means here, and where each weight goes.
"""

import sys

from audio_tf import compat
from audio_tf.models.wavlm import WavLMBackbone
from audio_tf.ops.checks import check_sizes, closest

backbone_cls = WavLMBackbone

# `model_type` of a configuration, and the attention that it stands for.
FAMILIES = {
    "wavlm": "gated_relative",
    "hubert": "full",
    "wav2vec2": "full",
}
# What a configuration may not say, since nothing here computes it.
UNKNOWN = {
    "add_adapter": False,
    "conv_pos_batch_norm": False,
    "feat_proj_layer_norm": True,
    "adapter_attn_dim": None,
    "position_embeddings_type": None,
}
# A weight whose name tells what stands before all names of the encoder.
KNOWN = "feature_projection.projection.weight"
POSITIONS = "encoder.pos_conv_embed.conv"
# Of PyTorch's older and its newer normalisation by weight.
GAIN_AND_DIRECTION = (
    ("weight_g", "weight_v"),
    ("parametrizations.weight.original0", "parametrizations.weight.original1"),
)
# In the files of models that were trained with masks; not needed without.
LEARNED_FRAME = "masked_spec_embed"


class Fields(dict):
    """The fields of a configuration, of which one that is missing is named."""

    def __missing__(self, name):
        raise ValueError(
            f"The configuration must have {name!r}{closest(name, self)}. "
            f"Received: {sorted(self)}"
        )


def convert_backbone_config(config):
    """Turns a configuration of `transformers` into arguments of the backbone.

    Masks of features and the heads of a model are not taken over.

    Args:
        config: dict, `config.json` with `do_normalize` and `sampling_rate` of
            `preprocessor_config.json`, if there is one. Without it, waveforms
            are normalised where all convolutions are, as wav2vec 2.0, HuBERT
            and WavLM were trained.

    Returns:
        Dict of arguments of `WavLMBackbone`.

    Raises:
        ValueError: if the configuration says what the backbone cannot do, or
            lacks a field.
    """
    config = Fields(config)
    for name, usual in UNKNOWN.items():
        if config.get(name, usual) != usual:
            raise ValueError(
                f"WavLMBackbone has no counterpart of {name}={config[name]!r} "
                f"of a {config['model_type']} model. Received: "
                f"{name}={config[name]!r}, {usual!r} expected"
            )
    width, heads = config["hidden_size"], config["num_attention_heads"]
    check_sizes(hidden_size=width, num_attention_heads=heads)
    kinds = {config["hidden_act"], config["feat_extract_activation"]}
    if len(kinds) > 1:
        raise ValueError(
            "WavLMBackbone has one activation. Received: "
            f"hidden_act={config['hidden_act']!r}, "
            f"feat_extract_activation={config['feat_extract_activation']!r}"
        )
    attention = FAMILIES[config["model_type"]]
    options = {}
    if attention == "gated_relative":
        options["num_buckets"] = config.get("num_buckets", 320)
        options["max_distance"] = config.get("max_bucket_distance", 800)
    if config["attention_dropout"] != config["hidden_dropout"]:
        options["dropout"] = config["attention_dropout"]
    masked = config.get("apply_spec_augment", True)
    norm = config["feat_extract_norm"]
    return {
        "num_layers": config["num_hidden_layers"],
        "num_heads": heads,
        "key_dim": width // heads,
        "hidden_dim": width,
        "intermediate_dims": [config["intermediate_size"]],
        "conv_channels": list(config["conv_dim"]),
        "conv_kernels": list(config["conv_kernel"]),
        "conv_strides": list(config["conv_stride"]),
        "conv_bias": config["conv_bias"],
        "conv_norm": norm,
        "position_kernel": config["num_conv_pos_embeddings"],
        "position_groups": config["num_conv_pos_embedding_groups"],
        "norm_first": config["do_stable_layer_norm"],
        "normalize_waveform": config.get("do_normalize", norm == "layer"),
        "sample_rate_hz": config.get("sampling_rate", 16_000),
        "attention": attention,
        "attention_kwargs": options,
        "activation": config["hidden_act"],
        "dropout": config["hidden_dropout"],
        "activation_dropout": config["activation_dropout"],
        "frontend_dropout": config["feat_proj_dropout"],
        "layer_drop": config["layerdrop"],
        "mask_rate": config["mask_time_prob"] if masked else 0.0,
        "mask_frames": config["mask_time_length"],
        "layer_norm_epsilon": config["layer_norm_eps"],
        "initializer_range": config["initializer_range"],
    }


def convert_weights(backbone, loader, config):
    """Gives a backbone the weights of a published model.

    Args:
        backbone: a `WavLMBackbone`.
        loader: what KerasHub reads weights with, by `port_weight` and `keys`.
        config: dict as `convert_backbone_config` takes it.

    Raises:
        ValueError: if the file lacks a weight, has a weight of the encoder
            that the backbone lacks, or one is of another shape.
    """
    expected = FAMILIES[config["model_type"]]
    if backbone.attention != expected:
        raise ValueError(
            f"The weights of {loader.preset!r} do not fit the arguments: they "
            f"are those of {expected!r} attention. "
            f"Received: attention={backbone.attention!r}"
        )
    names = set(loader.keys())
    prefixes = [name.removesuffix(KNOWN) for name in names if KNOWN in name]
    if len(prefixes) != 1:
        raise ValueError(
            f"The weights must have one {KNOWN}. Received: {len(prefixes)} "
            f"among {len(names)} weights of {loader.preset}"
        )
    (prefix,) = prefixes
    plan = dict(weights_of(backbone, prefix, names))
    missing = sorted(set(plan) - names)
    parts = ("feature_extractor.", "feature_projection.", "encoder.")
    beyond = sorted(
        name
        for name in names - set(plan)
        if name.startswith(tuple(prefix + part for part in parts))
    )
    if missing or beyond:
        raise ValueError(
            f"The weights of {loader.preset!r} do not fit the arguments. "
            f"Received: {len(missing)} that are missing, first "
            f"{missing[:1]}, {len(beyond)} beyond, first {beyond[:1]}"
        )
    for name, (weight, turn) in plan.items():
        array = turn(loader.get_tensor(name))
        if tuple(array.shape) != tuple(weight.shape):
            raise ValueError(
                f"The weights of {loader.preset!r} do not fit the arguments. "
                f"Received: {name} of shape {tuple(array.shape)}, "
                f"{tuple(weight.shape)} in the model"
            )
        weight.assign(array)


def weights_of(backbone, prefix, names):
    """Yields for each name the weight that it is, and how it is turned.

    Args:
        backbone: a `WavLMBackbone`.
        prefix: str, what stands before all names.
        names: set of the names that there are.

    Yields:
        Pairs of a name and a pair of a `keras.Variable` and a function of an
        array.
    """
    frontend, blocks = backbone.frontend, backbone.blocks
    for layer in backbone.masking:
        yield prefix + LEARNED_FRAME, (layer.embedding, as_it_is)
    for index, layer in enumerate(frontend.convolutions):
        place = f"{prefix}feature_extractor.conv_layers.{index}"
        yield f"{place}.conv.weight", (layer.kernel, as_convolution)
        if layer.bias is not None:
            yield f"{place}.conv.bias", (layer.bias, as_it_is)
    norms = frontend.norms or [frontend.channel_norm]
    for index, layer in enumerate(norms):
        place = f"{prefix}feature_extractor.conv_layers.{index}.layer_norm"
        yield from norm(layer, place)
    place = prefix + "feature_projection"
    yield from norm(frontend.projection_norm, f"{place}.layer_norm")
    yield from dense(frontend.projection, f"{place}.projection")

    positions = backbone.embedding[0]
    place = prefix + POSITIONS
    for gain, direction in GAIN_AND_DIRECTION:
        if f"{place}.{gain}" in names:
            break
    yield f"{place}.{gain}", (positions.gain, lambda x: x.reshape(-1))
    yield f"{place}.{direction}", (positions.direction, as_convolution)
    yield f"{place}.bias", (positions.bias, as_it_is)
    yield from norm(backbone.encoder_norm.norm, f"{prefix}encoder.layer_norm")

    if backbone.attention == "gated_relative":
        table = blocks[0].attention.positions.table
        place = f"{prefix}encoder.layers.0.attention.rel_attn_embed"
        yield f"{place}.weight", (table, as_it_is)
    for index, block in enumerate(blocks):
        place = f"{prefix}encoder.layers.{index}"
        attention = block.attention
        for name, layer in (
            ("q", attention.query_dense),
            ("k", attention.key_dense),
            ("v", attention.value_dense),
            ("out", attention.output_dense),
        ):
            yield from dense(layer, f"{place}.attention.{name}_proj")
        if backbone.attention == "gated_relative":
            yield from gate(attention, f"{place}.attention")
        yield from norm(block.attention_norm, f"{place}.layer_norm")
        yield from norm(block.feed_forward_norm, f"{place}.final_layer_norm")
        forward = block.feed_forward
        place = f"{place}.feed_forward"
        yield from dense(forward.hidden[0], f"{place}.intermediate_dense")
        yield from dense(forward.output_dense, f"{place}.output_dense")


def as_it_is(array):
    """Returns an array."""
    return array


def as_kernel(array):
    """Turns `(outputs, inputs)` into `(inputs, outputs)`."""
    return array.T


def as_convolution(array):
    """Turns `(outputs, inputs, frames)` into `(frames, inputs, outputs)`."""
    return array.transpose(2, 1, 0)


def dense(layer, place):
    """Yields the weights of a Dense layer, as `weights_of` does."""
    yield f"{place}.weight", (layer.kernel, as_kernel)
    yield f"{place}.bias", (layer.bias, as_it_is)


def norm(layer, place):
    """Yields the weights of a normalisation, as `weights_of` does."""
    yield f"{place}.weight", (layer.gamma, as_it_is)
    yield f"{place}.bias", (layer.beta, as_it_is)


def gate(attention, place):
    """Yields what WavLM's attention has beyond full attention's."""
    yield from dense(attention.gate_dense, f"{place}.gru_rel_pos_linear")
    scale = attention.gate_scale
    yield f"{place}.gru_rel_pos_const", (scale, lambda x: x[0])


compat.register_converter(FAMILIES, sys.modules[__name__])
