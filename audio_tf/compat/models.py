"""Mixins of models, by which they are alike on every backend."""

import contextlib
import warnings

import keras

from audio_tf.compat.layers import layers_within
from audio_tf.compat.loops import with_clips
from audio_tf.compat.optimizers import unshare
from audio_tf.terminal import first_line

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
