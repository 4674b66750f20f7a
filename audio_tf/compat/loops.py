"""Training, evaluation and prediction: what Keras' loops take and return."""

import contextlib
import sys
import warnings

import keras
from keras import ops
from keras.src.utils import jax_utils

# What the errors say in which Keras' loops over no batches end.
OF_NO_BATCH = (
    "local variable 'batch_outputs'",
    "local variable 'logs'",
    "result() since the metric has not yet been built",
)


def is_tf_dataset(x):
    """Returns whether something is a `tf.data.Dataset`, on any backend."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(x, tf.data.Dataset)


def in_tf_graph():
    """Returns whether a graph of TensorFlow is traced, on any backend."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and not tf.executing_eagerly()


def is_traced(x):
    """Returns whether a tensor stands for values that are not known yet."""
    if isinstance(x, keras.KerasTensor) or in_tf_graph():
        return True
    return jax_utils.is_in_jax_tracing_scope(x)


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


@contextlib.contextmanager
def quiet_end_of_data():
    """Keeps Keras from a warning at the end of each pass, within a context.

    It does so where a dataset does not know how many batches it has.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Your input ran out of data")
        yield


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
