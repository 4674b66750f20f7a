"""Checkpoints as they are published for `transformers`, without its code.

Names, shapes and files are those of the releases of WavLM, HuBERT and
wav2vec 2.0; the numbers are random.
"""

import collections
import json
import pickle
import struct
import sys
import types
import zipfile

import numpy as np

CONFIG = {
    "architectures": ["WavLMModel"],
    "model_type": "wavlm",
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 7,
    "conv_dim": [6, 5],
    "conv_kernel": [7, 3],
    "conv_stride": [4, 3],
    "conv_bias": False,
    "feat_extract_norm": "group",
    "feat_extract_activation": "gelu",
    "do_stable_layer_norm": False,
    "num_conv_pos_embeddings": 5,
    "num_conv_pos_embedding_groups": 3,
    "num_buckets": 16,
    "max_bucket_distance": 9,
    "hidden_act": "gelu",
    "hidden_dropout": 0.1,
    "attention_dropout": 0.1,
    "activation_dropout": 0.0,
    "feat_proj_dropout": 0.1,
    "layerdrop": 0.05,
    "mask_time_prob": 0.05,
    "mask_time_length": 10,
    "layer_norm_eps": 1e-5,
    "initializer_range": 0.02,
}


def config(**changes):
    """The configuration of a small WavLM, with changes."""
    return {**CONFIG, **changes}


def weights(config, rng, older=True):
    """Weights by name of a configuration.

    Args:
        config: dict as `config` makes it.
        rng: generator of the numbers.
        older: bool, whether the positional convolution is normalised under
            the names of PyTorch before 2.

    Returns:
        Dict of float32 arrays.
    """
    width, heads = config["hidden_size"], config["num_attention_heads"]
    inner, shapes, before = config["intermediate_size"], {}, 1
    for index, (channels, kernel) in enumerate(
        zip(config["conv_dim"], config["conv_kernel"], strict=True)
    ):
        place = f"feature_extractor.conv_layers.{index}"
        shapes[f"{place}.conv.weight"] = (channels, before, kernel)
        if config["conv_bias"]:
            shapes[f"{place}.conv.bias"] = (channels,)
        if config["feat_extract_norm"] == "layer" or index == 0:
            shapes[f"{place}.layer_norm.weight"] = (channels,)
            shapes[f"{place}.layer_norm.bias"] = (channels,)
        before = channels

    def dense(place, inputs, outputs):
        shapes[f"{place}.weight"] = (outputs, inputs)
        shapes[f"{place}.bias"] = (outputs,)

    def norm(place, size):
        shapes[f"{place}.weight"] = shapes[f"{place}.bias"] = (size,)

    norm("feature_projection.layer_norm", before)
    dense("feature_projection.projection", before, width)
    shapes["masked_spec_embed"] = (width,)
    kernel = config["num_conv_pos_embeddings"]
    part = width // config["num_conv_pos_embedding_groups"]
    place = "encoder.pos_conv_embed.conv"
    gain, direction = ("weight_g", "weight_v")
    if not older:
        gain, direction = (f"parametrizations.weight.original{i}" for i in "01")
    shapes[f"{place}.{gain}"] = (1, 1, kernel)
    shapes[f"{place}.{direction}"] = (width, part, kernel)
    shapes[f"{place}.bias"] = (width,)
    norm("encoder.layer_norm", width)
    for index in range(config["num_hidden_layers"]):
        place = f"encoder.layers.{index}"
        for name in ("q", "k", "v", "out"):
            dense(f"{place}.attention.{name}_proj", width, width)
        if config["model_type"] == "wavlm":
            dense(f"{place}.attention.gru_rel_pos_linear", width // heads, 8)
            const = f"{place}.attention.gru_rel_pos_const"
            shapes[const] = (1, heads, 1, 1)
            if index == 0:
                table = f"{place}.attention.rel_attn_embed.weight"
                shapes[table] = (config["num_buckets"], heads)
        norm(f"{place}.layer_norm", width)
        norm(f"{place}.final_layer_norm", width)
        dense(f"{place}.feed_forward.intermediate_dense", width, inner)
        dense(f"{place}.feed_forward.output_dense", inner, width)
    return {
        name: rng.standard_normal(shape).astype("float32")
        for name, shape in shapes.items()
    }


def write_config(folder, config, **preprocessor):
    """Writes `config.json` and, if anything is given, the preprocessor's."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if preprocessor:
        (folder / "preprocessor_config.json").write_text(
            json.dumps(preprocessor)
        )


def write_safetensors(path, arrays):
    """Writes `.safetensors`: the size of a header, the header, the numbers."""
    header, position = {"__metadata__": {"format": "pt"}}, 0
    for name, array in arrays.items():
        end = position + array.nbytes
        header[name] = {
            "dtype": {"float32": "F32", "float16": "F16"}[array.dtype.name],
            "shape": array.shape,
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.tobytes())


def write_bin(path, arrays, extra=None):
    """Writes what `torch.save` writes of a dictionary of tensors.

    Args:
        path: path of the file.
        arrays: dict by name of float32 or float16 arrays, of which every
            second one is written as the transpose of a stored one.
        extra: an object that is put into the dictionary, too, or `None`.
    """
    storages, names = [], {"float32": "FloatStorage", "float16": "HalfStorage"}
    modules = {n: types.ModuleType(n) for n in ("torch", "torch._utils")}

    def rebuild(*arguments):
        raise AssertionError("only its name is written")

    rebuild.__module__ = "torch._utils"
    rebuild.__qualname__ = rebuild.__name__ = "_rebuild_tensor_v2"
    modules["torch._utils"]._rebuild_tensor_v2 = rebuild
    for name in names.values():
        kind = type(name, (), {"__module__": "torch"})
        setattr(modules["torch"], name, kind)

    class Stored:
        def __init__(self, array, turned):
            shape = array.shape
            numbers = array.T if turned else array
            strides = np.cumprod((1, *numbers.shape[:0:-1]))[::-1].tolist()
            strides = strides[::-1] if turned else strides
            # A number before the first, as of a tensor that is a part.
            self.numbers = np.append(array.dtype.type(7), numbers.ravel())
            self.arguments = (1, shape, tuple(strides), False)

        def __reduce__(self):
            hooks = collections.OrderedDict()
            return rebuild, (Storage(self.numbers), *self.arguments, hooks)

    class Storage:
        def __init__(self, numbers):
            self.numbers = numbers

    class Pickler(pickle.Pickler):
        def persistent_id(self, item):
            if not isinstance(item, Storage):
                return None
            storages.append(item.numbers)
            kind = getattr(modules["torch"], names[item.numbers.dtype.name])
            key = str(len(storages) - 1)
            return ("storage", kind, key, "cpu", item.numbers.size)

    state = collections.OrderedDict(
        (name, Stored(array, turned=index % 2 == 1))
        for index, (name, array) in enumerate(arrays.items())
    )
    if extra is not None:
        state["extra"] = extra
    kept = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        with zipfile.ZipFile(path, "w") as archive:
            with archive.open("archive/data.pkl", "w") as file:
                Pickler(file, protocol=2).dump(state)
            for key, numbers in enumerate(storages):
                archive.writestr(f"archive/data/{key}", numbers.tobytes())
    finally:
        for name, module in kept.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
