"""The private API of Keras and KerasHub that the library uses, in one place.

It was tried with Keras 3.15 and KerasHub 0.32. KerasHub knows presets by files
alone: it has no door for an architecture that comes by its name, without
weights. That door is made here, in the one function by which
`keras_hub.models.Backbone` looks a preset up.
"""

import contextlib
import math
import os
import sys
import warnings

import keras
from keras import ops
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

# Of averages of weights: 1 itself would be 0 / 0.
LARGEST_MOMENTUM = 1.0 - 1e-12

# Where Keras has its optimizers of Torch, and where all backends have them.
TORCH_OPTIMIZERS = "keras.src.backend.torch.optimizers."
OPTIMIZERS = "keras.optimizers"

# As Keras' training on JAX names them, in its order.
VARIABLES_OF_STATE = (
    "trainable_variables",
    "non_trainable_variables",
    "optimizer_variables",
    "metrics_variables",
)

# What the errors say in which Keras' loops over no batches end.
OF_NO_BATCH = (
    "local variable 'batch_outputs'",
    "local variable 'logs'",
    "result() since the metric has not yet been built",
)

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
    except FileNotFoundError as error:
        # KerasHub would ask a hub again, and not say what it answered.
        reason = " ".join(str(error.__cause__ or error).split())
        raise ValueError(
            f"The preset has no {CONFIG_FILE} ({reason}). "
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
            f"The preset's {name} must be JSON ({error}). "
            f"Received: preset={preset!r}"
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


def load_backbone_weights(loader, backbone):
    """Loads the weights of a preset's backbone."""
    preset_utils.jax_memory_cleanup(backbone)
    loader._load_backbone_weights(backbone)


def load_task_weights(loader, task):
    """Loads the weights of a preset's task beyond those of its backbone."""
    task.load_task_weights(get_file(loader.preset, TASK_WEIGHTS_FILE))


def has_flash_attention(query, key, value):
    """Returns whether Keras has a flash attention that takes these tensors.

    Keras' own test, which on a processor would go on without one. That of
    Torch, which takes no mask, was not tried.

    Args:
        query: tensor `(batch, heads, time, dim)`.
        key: tensor `(batch, groups, time, dim)`.
        value: tensor like `key`.
    """
    if keras.backend.backend() != "jax":
        return False
    if keras.config.is_flash_attention_enabled() is False:
        return False
    from keras.src.backend.jax import nn

    heads_last = [ops.swapaxes(x, 1, 2) for x in (query, key, value)]
    return nn._can_use_flash_attention(*heads_last, bias=None)


def is_tf_dataset(x):
    """Returns whether something is a `tf.data.Dataset`, on any backend."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(x, tf.data.Dataset)


def refuse_ragged(clips):
    """Raises a `ValueError` for clips in a ragged tensor of TensorFlow.

    Keras fills it up on the other backends, and the lengths are lost.

    Args:
        clips: what a model could be given: a tensor, a dict, a tuple of them
            and of targets, or a `tf.data.Dataset` of any of these.
    """
    if is_tf_dataset(clips):
        clips = clips.element_spec
    if isinstance(clips, tuple):
        clips = next(iter(clips), None)
    tf = sys.modules.get("tensorflow")
    kinds = () if tf is None else (tf.RaggedTensor, tf.RaggedTensorSpec)
    for part in clips.values() if isinstance(clips, dict) else [clips]:
        symbolic = isinstance(part, keras.KerasTensor) and part.ragged
        if symbolic or isinstance(part, kinds):
            name = "ragged KerasTensor" if symbolic else type(part).__name__
            raise ValueError(
                "Clips of several lengths must be padded, as a dict of "
                "`waveform` (or `features`) and `lengths`, which `to_tensor()` "
                "and `row_lengths()` make of a ragged tensor. "
                f"Received: a {name}"
            )


def in_tf_graph():
    """Returns whether a graph of TensorFlow is traced, on any backend."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and not tf.executing_eagerly()


@contextlib.contextmanager
def quiet_end_of_data():
    """Keeps Keras from a warning at the end of each pass, within a context.

    It does so where a dataset does not know how many batches it has.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Your input ran out of data")
        yield


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


def with_public_optimizers(config):
    """Names Keras' optimizers of Torch as all backends know them.

    Keras itself names the class that it runs on Torch, whose module cannot be
    imported where there is no Torch, and is another in later versions.

    Args:
        config: dict, what Keras serializes of a compilation, or a part of it.

    Returns:
        The same with other names.
    """
    if not isinstance(config, dict):
        return config
    found = {key: with_public_optimizers(config[key]) for key in config}
    if str(found.get("module")).startswith(TORCH_OPTIMIZERS):
        found.update(module=OPTIMIZERS, registered_name=None)
    return found


class PortableCompilation:
    """Mixin of a model that is loaded compiled on other backends, too."""

    def get_compile_config(self):
        """Returns what the model was compiled with, as Keras serializes it.

        Keras itself keeps what `"auto"` was on its backend: Torch would
        compile for minutes what comes from JAX, and JAX nothing of others.
        """
        config = with_public_optimizers(super().get_compile_config())
        chosen = self._resolve_auto_jit_compile()
        if config and config["jit_compile"] == chosen:
            config["jit_compile"] = "auto"
        return config

    def compile_from_config(self, config):
        """Compiles the model as Keras has serialized it, on any backend."""
        super().compile_from_config(with_public_optimizers(config))


class ExportedByTensorFlow:
    """Mixin of a model that says where its `export` is at home.

    Keras traces a model with symbols for its shapes there, which on JAX and
    Torch ends within the layers.
    """

    def export(self, *args, **kwargs):
        """Exports the model as `keras.Model.export` does.

        Raises:
            RuntimeError: if Keras does not do so on a backend that is not
                TensorFlow.
        """
        backend = keras.backend.backend()
        try:
            return super().export(*args, **kwargs)
        except (ImportError, ValueError):
            # A format that is unknown, or whose package is not here.
            raise
        except Exception as error:
            if backend == "tensorflow":
                raise
            words = f"{type(error).__name__}: {first_line(error)}"
            raise RuntimeError(
                "Keras does not export this model here. On TensorFlow it "
                "does, and `audio_tf.export` of a classifier: set "
                "KERAS_BACKEND=tensorflow, which loads presets and files of "
                f"other backends. Received: backend={backend!r}, {words}"
            ) from error


def compiled_metrics(model):
    """Returns the metrics that `compile` was given.

    Args:
        model: a `keras.Model`, compiled or not.

    Returns:
        Dict of `metrics` and `weighted_metrics`, as they were given; empty
        if there are none.
    """
    found = getattr(model, "_compile_metrics", None)
    if found is None:
        return {}
    return {
        "metrics": found._user_metrics,
        "weighted_metrics": found._user_weighted_metrics,
    }


def update_metrics(model, targets, scores, weights):
    """Counts scores that are there already as `evaluate` counts a batch.

    Args:
        model: a compiled `keras.Model`.
        targets: array `(clips, ...)`.
        scores: float array `(clips, classes)`.
        weights: array `(clips,)` or `None`.

    Returns:
        Dict of the metrics of all batches so far, as `metrics_of` returns it.
    """
    y, y_pred = map(ops.convert_to_tensor, (targets, scores))
    if weights is not None:
        weights = ops.convert_to_tensor(weights)
    loss = model.compute_loss(
        y=y, y_pred=y_pred, sample_weight=weights, training=False
    )
    model._loss_tracker.update_state(loss, sample_weight=len(targets))
    model.compute_metrics(None, y, y_pred, sample_weight=weights)
    return metrics_of(model)


def metrics_of(model):
    """Returns what the metrics of a model have come to, as `evaluate` does.

    It is a dict of floats, and of arrays where a metric has a figure for each
    class.
    """
    found = {}
    for name, value in model.get_metrics_result().items():
        value = ops.convert_to_numpy(value)
        found[name] = value if value.ndim else float(value)
    return found


def flatten_metrics(model, logs):
    """Returns metrics as `evaluate` does without `return_dict`."""
    return model._flatten_metrics_in_order(logs)


def settle_dtypes(model):
    """Gives each layer its own dtype policy where a map holds them all.

    A quantised model is built with one map of policies. Keras 3.15 then asks
    the map, not the layer's entry in it, how to save the layer, and fails.

    Args:
        model: a built `keras.Model`; changed in place.
    """
    for layer in layers_within(model):
        policy = layer._dtype_policy
        if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
            # Without a path it has no weights.
            own = policy[layer.path] if layer.path else policy.default_policy
            layer._dtype_policy = own


def layers_within(model):
    """Lists the layers of a model or layer, at any depth, without itself."""
    return list(model._flatten_layers(include_self=False))


def unshare(variables, weights):
    """Gives variables that hold the very arrays of others copies of them.

    Args:
        variables: list of `keras.Variable`, such as those of an optimizer.
        weights: list of `keras.Variable`, such as those of a model.
    """
    held = {id(weight.value) for weight in weights}
    for variable in variables:
        if id(variable.value) in held:
            variable.assign(ops.copy(variable.value))


class KeptVariables:
    """Mixin of a model that has its weights after an error on JAX, too.

    Keras takes the values of all variables out of a model there while it is
    trained, evaluated or predicts. Of an error in the first batch, and of any
    outside of `fit`, they would not come back. And a training ends with the
    averages of its optimizer as weights: the next evaluation would give the
    arrays of both away, and nothing be left to save or to go on with.
    """

    def fit(self, *args, **kwargs):
        """Trains the model as `keras.Model.fit` does."""
        with self.keeping_averages():
            return super().fit(*args, **kwargs)

    def _get_jax_state(self, **kinds):
        state = super()._get_jax_state(**kinds)
        if kinds.get("purge_model_variables"):
            names = [name for name in VARIABLES_OF_STATE if kinds.get(name)]
            self._jax_state = dict(zip(names, state, strict=True))
        return state

    def evaluate(self, *args, **kwargs):
        """Evaluates the model as `keras.Model.evaluate` does."""
        with self.keeping_variables():
            return with_clips(super().evaluate, *args, **kwargs)

    def predict(self, *args, **kwargs):
        """Predicts as `keras.Model.predict` does."""
        with self.keeping_variables():
            return with_clips(super().predict, *args, **kwargs)

    @contextlib.contextmanager
    def keeping_averages(self):
        """Has an optimizer's averages be its own behind the context."""
        try:
            yield
        finally:
            if keras.backend.backend() == "jax" and self.compiled:
                unshare(self.optimizer.variables, self.variables)

    @contextlib.contextmanager
    def keeping_variables(self):
        """Puts back what Keras has taken out, where the context fails."""
        try:
            yield
        except BaseException:
            if keras.backend.backend() == "jax":
                self.jax_state_sync()
            raise


class OnAnyBackend(KeptVariables, PortableCompilation, ExportedByTensorFlow):
    """Mixin of a model that all backends run, load and tell the limits of."""


def first_shape(clips):
    """Returns the shape of the first array of clips, `()` if it has none.

    Args:
        clips: what a model could be given, as `refuse_ragged` takes it.
    """
    if isinstance(clips, tuple):
        clips = next(iter(clips), None)
    if isinstance(clips, dict):
        clips = next(iter(clips.values()), None)
    return tuple(getattr(clips, "shape", None) or ())


def without_clips(name):
    """Returns what is wrong with an argument that has no clips."""
    return (
        f"`{name}` must have a clip at least. "
        f"Received: `{name}` without any batch"
    )


def with_clips(method, *args, **kwargs):
    """Returns what a method of `keras.Model` returns of a batch at least.

    Args:
        method: `fit`, `evaluate` or `predict` of `keras.Model`.
        *args: what it is called with.
        **kwargs: as well.

    Raises:
        ValueError: if there was none; it names the argument. If clips are
            ragged.
    """
    for name, given in (
        *(("x", clips) for clips in args[:1]),
        *((name, kwargs.get(name)) for name in ("x", "validation_data")),
    ):
        refuse_ragged(given)
        # Of arrays it is known, and Torch would call the model without any.
        if first_shape(given)[:1] == (0,):
            raise ValueError(without_clips(name))
    found, cause = [], None
    try:
        found = method(*args, **kwargs)
    except StopIteration as error:  # Where metrics are to be built, on JAX.
        cause = error
    except (ValueError, UnboundLocalError) as error:
        if not any(words in str(error) for words in OF_NO_BATCH):
            raise
        cause = error
    empty = isinstance(found, (list, dict)) and not found
    if isinstance(found, keras.callbacks.History):
        # A step of one's own may call its loss otherwise.
        trained = [n for n in found.history if not n.startswith("val_")]
        empty = found.epoch and not trained
    if empty:
        within_fit = kwargs.get("_use_cached_eval_dataset")
        name = "validation_data" if within_fit else "x"
        raise ValueError(without_clips(name)) from cause
    return found


class TracedAnew:
    """Mixin of a model that is traced anew once layers have got other weights.

    Keras does so for the model alone that is quantised or compiled. TensorFlow
    would go on with the old weights in a model around it and in one within it,
    and in one whose layers have got LoRA weights.
    """

    # How often a model has got other weights, and before the tracing of each
    # function.
    _changes = 0
    _changes_of_training = 0
    _changes_of_test = 0
    _changes_of_prediction = 0

    @staticmethod
    def note_other_weights():
        """Notes that layers of a model have got other weights."""
        TracedAnew._changes += 1

    def make_train_function(self, force=False):
        """Makes a step of training, anew where weights are others."""
        force = force or self._changes_of_training != self._changes
        self._changes_of_training = self._changes
        return super().make_train_function(force)

    def make_test_function(self, force=False):
        """Makes a step of evaluation, anew where weights are others."""
        force = force or self._changes_of_test != self._changes
        self._changes_of_test = self._changes
        return super().make_test_function(force)

    def make_predict_function(self, force=False):
        """Makes a step of prediction, anew where weights are others."""
        force = force or self._changes_of_prediction != self._changes
        self._changes_of_prediction = self._changes
        return super().make_predict_function(force)


class QuietQuantization(TracedAnew):
    """Mixin of a model that quantises without a warning for each other layer.

    Keras warns of each layer that has nothing to be quantised, such as a
    LayerNormalization.
    """

    def quantize(self, *args, **kwargs):
        """Quantises the weights, as `keras.Model.quantize` does.

        Raises:
            ValueError: if no layer can be quantised, as convolutions cannot.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Layer .* does not have a `quantize` method"
            )
            super().quantize(*args, **kwargs)
        self.note_other_weights()
        policies = [layer.dtype_policy for layer in layers_within(self)]
        if not any(policy.quantization_mode for policy in policies):
            raise ValueError(
                "Keras quantises dense layers, not convolutions or recurrent "
                f"layers, and {self.name} has no dense layer. Received: "
                f"mode={(*args, *kwargs.values())}"
            )


class OwnWeightDecay:
    """Mixin of an optimizer whose step itself decays the weights.

    Keras would take the decay off the weights before the step, too.
    """

    def _apply_weight_decay(self, variables):
        pass

    def decays(self, variable):
        """Returns whether a variable is not excluded from weight decay."""
        return self._use_weight_decay(variable)

    def index_of(self, variable):
        """Returns the place of a variable among those of the optimizer."""
        return self._get_variable_index(variable)


class UnbiasedAverage:
    """Mixin of an optimizer whose average of weights has no bias.

    Keras begins the average at the weights behind the first step, which then
    are most of it until the run is longer than what the average reaches back.
    Here all steps so far are weighted as later ones are, as Adam corrects its
    moments: with the momentum `m`, the average `a` and the weights `w` behind
    step `t`, counted from 1, it is `a = a + (w - a) (1 - m) / (1 - m ** t)`;
    with 1 it is the mean of all steps, the limit of that.
    """

    def _update_model_variables_moving_average(self, trainable_variables):
        if not self.use_ema:
            return
        # Batches, at each of which Keras updates the average.
        steps = ops.cast(self._iterations + 1, "float32")
        momentum = min(self.ema_momentum, LARGEST_MOMENTUM)
        share = 1.0 - momentum
        if momentum:
            # 1 - m ** t, which float32 would round to 0 for m close to 1.
            share = share / -ops.expm1(steps * math.log(momentum))
        averages = self._model_variables_moving_average
        for variable, average in zip(
            trainable_variables, averages, strict=True
        ):
            if average is not None:
                distance = ops.cast(variable, "float32") - ops.cast(
                    average, "float32"
                )
                average.assign_add(ops.cast(share * distance, average.dtype))


def replace_weight(layer, weight, make):
    """Replaces a weight of a built layer by another one.

    Args:
        layer: a built layer, which tracks no new weights any longer.
        weight: `keras.Variable`, the weight that is dropped.
        make: function without arguments that adds the new weight.
    """
    layer._tracker.unlock()
    layer._untrack_variable(weight)
    make()
    layer._tracker.lock()


hub_backbone.get_preset_loader = get_preset_loader
