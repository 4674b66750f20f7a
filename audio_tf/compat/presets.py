"""Presets: KerasHub's loaders, and the doors that it lacks.

KerasHub knows presets by files alone: it has no door for an architecture that
comes by its name, without weights. That door is made here, in the one function
by which `keras_hub.models.Backbone` looks a preset up.
"""

import contextlib
import os

import keras
from keras_hub.src.models import backbone as hub_backbone
from keras_hub.src.utils import preset_utils
from keras_hub.src.utils.transformers import safetensor_utils

from audio_tf import released, torch_files
from audio_tf.terminal import first_line

CONFIG_FILE = preset_utils.CONFIG_FILE
TASK_CONFIG_FILE = preset_utils.TASK_CONFIG_FILE
TASK_WEIGHTS_FILE = preset_utils.TASK_WEIGHTS_FILE
METADATA_FILE = preset_utils.METADATA_FILE
PREPROCESSOR_CONFIG_FILE = preset_utils.PREPROCESSOR_CONFIG_FILE
AUDIO_CONVERTER_CONFIG_FILE = preset_utils.AUDIO_CONVERTER_CONFIG_FILE
MODEL_WEIGHTS_FILE = preset_utils.MODEL_WEIGHTS_FILE
SHARDED_WEIGHTS_FILE = preset_utils.SHARDED_MODEL_WEIGHTS_CONFIG_FILE

# Of published models: what KerasHub reads, and what PyTorch itself writes.
PUBLISHED_WEIGHTS = (
    preset_utils.SAFETENSOR_FILE,
    preset_utils.SAFETENSOR_CONFIG_FILE,
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
PREPROCESSOR_FILE = "preprocessor_config.json"

# Dict by name of the loaders of architectures.
SIZE_LOADERS = {}
# Dict by `model_type` of `transformers` of the modules that convert it.
CONVERTERS = {}


class SizeLoader(preset_utils.PresetLoader):
    """A loader that builds an architecture with random weights, without files.

    Args:
        name: str, the name of the size.
        family: the class of the backbone.
        arguments: dict of the backbone's constructor arguments.
    """

    def __init__(self, name, family, arguments):
        super().__init__(name, {"config": arguments})
        self.family = family

    def check_backbone_class(self):
        """Returns the class of the backbone."""
        return self.family

    def load_backbone(self, cls, load_weights, **kwargs):
        """Builds the architecture with random weights."""
        return cls(**{**self.config["config"], **kwargs})


class NamedSafetensors(safetensor_utils.SafetensorLoader):
    """KerasHub's loader of safetensors, which knows the names in them too."""

    def keys(self):
        """Lists the names of all tensors."""
        if self.safetensor_config is not None:
            return list(self.safetensor_config["weight_map"])
        path = get_file(self.preset, preset_utils.SAFETENSOR_FILE)
        opened = safetensor_utils.safetensors.safe_open(path, framework="np")
        with opened as file:
            return list(file.keys())


class TorchWeights(contextlib.ExitStack):
    """A loader of weights that PyTorch has saved, in one file or several.

    Args:
        preset: a folder or an address of a hub.
    """

    def __init__(self, preset):
        super().__init__()
        self.preset = preset
        *_, whole, index = PUBLISHED_WEIGHTS
        files = [whole]
        if has_file(preset, index):
            weight_map = read_json(preset, index)["weight_map"]
            files = sorted(set(weight_map.values()))
        self.files = {}
        for name in files:
            archive = torch_files.Archive(get_file(preset, name))
            self.callback(archive.close)
            self.files.update(dict.fromkeys(archive.keys(), archive))

    def keys(self):
        """Lists the names of all tensors."""
        return list(self.files)

    def get_tensor(self, name):
        """Reads a tensor by its name as an array."""
        return self.files[name].get_tensor(name)


class ConvertedLoader(preset_utils.PresetLoader):
    """A loader of a model that was published for `transformers`.

    KerasHub's own knows a fixed list of models. A converter has, as the
    modules of `keras_hub.src.utils.transformers` have, `backbone_cls`,
    `convert_backbone_config` and `convert_weights`.

    Args:
        preset: a folder or an address of a hub.
        config: dict, the `config.json` of the model, and what is in its
            `preprocessor_config.json`.
        converter: the module that converts it.
    """

    def __init__(self, preset, config, converter):
        converted = converter.convert_backbone_config(config)
        super().__init__(preset, {"config": converted})
        self.converter = converter
        self.published_config = config

    def check_backbone_class(self):
        """Returns the class of the backbone."""
        return self.converter.backbone_cls

    def load_backbone(self, cls, load_weights, **kwargs):
        """Builds the backbone, with the published weights or random ones."""
        backbone = cls(**{**self.config["config"], **kwargs})
        if load_weights:
            self._load_backbone_weights(backbone)
        return backbone

    def _load_backbone_weights(self, backbone):
        safe = any(has_file(self.preset, n) for n in PUBLISHED_WEIGHTS[:2])
        kind = NamedSafetensors if safe else TorchWeights
        with kind(self.preset) as loader:
            self.converter.convert_weights(
                backbone, loader, self.published_config
            )


def register_converter(model_types, converter):
    """Makes published models known by their `model_type`, to KerasHub too.

    Args:
        model_types: iterable of str.
        converter: module, as `ConvertedLoader` takes it.
    """
    CONVERTERS.update(dict.fromkeys(model_types, converter))


def is_converted(loader):
    """Returns whether a loader converts a model published elsewhere.

    Its converter compares every weight with the model, by name and shape.
    """
    return isinstance(loader, ConvertedLoader)


def weight_files(loader):
    """Lists the files of a preset's weights, one of which it needs."""
    if is_converted(loader):
        return PUBLISHED_WEIGHTS
    return (MODEL_WEIGHTS_FILE, SHARDED_WEIGHTS_FILE)


def register_sizes(family, sizes):
    """Makes architectures known to KerasHub, under the names of `sizes`.

    Args:
        family: the class of the backbones.
        sizes: dict by name of dicts of constructor arguments.
    """
    for name, arguments in sizes.items():
        SIZE_LOADERS[name] = SizeLoader(name, family, arguments)
    presets = {
        name: {
            "metadata": {
                "description": f"{family.__name__}, architecture only.",
                "path": "audio_tf",
            },
            # Asked for a file, KerasHub says that there is no such folder.
            "kaggle_handle": name,
        }
        for name in sizes
    }
    preset_utils.register_presets(presets, family)


def register_released(preset, families):
    """Makes a released preset known to KerasHub, which reads its folder.

    Args:
        preset: `released.Released`.
        families: list of the classes whose `presets` list it.
    """
    known = {
        "metadata": {
            "description": preset.description,
            "params": preset.parameters,
            "path": "audio_tf",
        },
        # In place of a handle, KerasHub takes the path of a folder.
        "kaggle_handle": os.fspath(preset.folder),
    }
    for family in families:
        preset_utils.register_presets({preset.name: known}, family)


def is_builtin(name):
    """Returns whether KerasHub knows a preset of that name."""
    return name in preset_utils.BUILTIN_PRESETS


def get_preset_loader(preset):
    """Returns the loader of a size by its name, or of what KerasHub takes.

    The files of a released preset are compared with their checksums.

    Raises:
        ValueError: if there is no such preset, or one is damaged.
    """
    if preset in SIZE_LOADERS:
        return SIZE_LOADERS[preset]
    if preset in released.RELEASED:
        released.RELEASED[preset].verify()
    try:
        get_file(preset, CONFIG_FILE)
    except ImportError:
        raise
    except Exception as error:
        # Hubs raise errors of their own, which may not name the preset, and
        # where a file is missing, KerasHub would ask again and not say why.
        missing = isinstance(error, FileNotFoundError)
        said = (missing and error.__cause__) or error
        reason = " ".join(str(said).split())
        if isinstance(error, ValueError) and preset in reason:
            raise
        raise ValueError(
            f"The preset has no {CONFIG_FILE} that could be read ({reason}). "
            f"Received: preset={preset!r}"
        ) from error
    loader = converted_loader(preset)
    return loader or preset_utils.get_preset_loader(preset)


def converted_loader(preset):
    """Returns the loader of a model that one of `CONVERTERS` knows, or `None`.

    Args:
        preset: a folder, an address of a hub, or a name.
    """
    if not has_file(preset, CONFIG_FILE):
        return None
    config = read_json(preset, CONFIG_FILE)
    converter = CONVERTERS.get(config.get("model_type"))
    if converter is None:
        return None
    if has_file(preset, PREPROCESSOR_FILE):
        config = {**read_json(preset, PREPROCESSOR_FILE), **config}
    return ConvertedLoader(preset, config, converter)


def has_file(preset, name):
    """Returns whether a preset, a folder or an address, has a file."""
    return preset_utils.check_file_exists(preset, name)


def read_json(preset, name):
    """Reads a JSON file of a preset, a dict.

    Raises:
        ValueError: if it is no JSON, or JSON of something else.
    """
    try:
        content = preset_utils.load_json(preset, name)
    except ValueError as error:
        raise ValueError(
            f"The preset's {name} must be JSON ({error})"
            f"{fetched_copy(preset, name)}. Received: preset={preset!r}"
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"The preset's {name} must be an object of JSON. "
            f"Received: {type(content).__name__}, preset={preset!r}"
        )
    return content


def get_file(preset, name):
    """Returns the local path of a preset's file, which may be downloaded."""
    return preset_utils.get_file(preset, name)


def fetched_copy(preset, name):
    """Returns the end of an error, where the copy of a hub's file lies.

    A download that was interrupted may stay, and be taken for the whole file.

    Args:
        preset: a folder, whose file is no copy, an address of a hub, or a
            name.
        name: str, the file.
    """
    if "://" not in preset:
        return ""
    # The error itself is to be told, whether or not the hub is still reached.
    with contextlib.suppress(Exception):
        path = get_file(preset, name)
        return f"; its copy is {path}, which is fetched anew once it is deleted"
    return ""


def load_backbone_weights(loader, backbone):
    """Loads the weights of a preset's backbone."""
    preset_utils.jax_memory_cleanup(backbone)
    with naming_weights(loader, *weight_files(loader)):
        loader._load_backbone_weights(backbone)


def load_task_weights(loader, task):
    """Loads the weights of a preset's task beyond those of its backbone."""
    with naming_weights(loader, TASK_WEIGHTS_FILE):
        task.load_task_weights(get_file(loader.preset, TASK_WEIGHTS_FILE))


@contextlib.contextmanager
def naming_weights(loader, *names):
    """Makes a context whose errors of files name the preset and its file.

    HDF5 says where a file was cut off, and not which one.

    Args:
        loader: the loader of the preset.
        *names: the files that the weights may be in.

    Raises:
        ValueError: if the weights cannot be read.
    """
    try:
        yield
    except OSError as error:
        here = loader.preset
        there = [n for n in names if os.path.exists(os.path.join(here, n))]
        name = (there or names)[0]
        raise ValueError(
            f"The preset's {name} cannot be read, as where it was not copied "
            f"as a whole: {first_line(error)}{fetched_copy(here, name)}. "
            f"Received: preset={here!r}"
        ) from error


def serialized_for_preset(model):
    """Serializes a model as KerasHub writes it into a preset.

    Args:
        model: the Keras model.

    Returns:
        Dict, without what the model was compiled and built with.
    """
    return without_compilation(keras.saving.serialize_keras_object(model))


def without_compilation(config):
    """Leaves out, at any depth, what models were compiled and built with."""
    if not isinstance(config, dict):
        return config
    return {
        key: without_compilation(value)
        for key, value in config.items()
        if key not in ("compile_config", "build_config")
    }


hub_backbone.get_preset_loader = get_preset_loader
