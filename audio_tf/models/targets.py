"""Clips and their targets, held against loss and weights of classes."""

import contextlib

import keras
import numpy as np

from audio_tf import compat
from audio_tf.models.batch_sources import checked_batches, kind_of
from audio_tf.models.inputs import AXES, check_mask
from audio_tf.models.named_files import is_text

# Losses of Keras of which the targets of a clip are shares that add up to 1.
OF_SHARES = ("categoricalcrossentropy", "categoricalfocalcrossentropy")
# Numbers that are looked at together: a copy of all clips may be too large.
CHECKED = 2**24


def name_of_loss(loss):
    """Returns the name of a loss, `None` if it is not one of Keras' own.

    Args:
        loss: as `compile` takes it; it has no name if it is of several outputs.
    """
    if loss is None or isinstance(loss, (dict, list)):
        return None
    loss = keras.losses.get(loss)
    if not loss.__module__.startswith("keras."):
        return None
    return getattr(loss, "__name__", type(loss).__name__)


def takes_ids(loss):
    """Returns whether a loss is one of Keras' that takes the ids of classes.

    Args:
        loss: as `compile` takes it.
    """
    return "sparse" in (name_of_loss(loss) or "").lower()


def takes_shares(loss):
    """Returns whether a loss is one of Keras' that takes shares of classes.

    Args:
        loss: as `compile` takes it.
    """
    return (name_of_loss(loss) or "").replace("_", "").lower() in OF_SHARES


def check_targets(loss, targets, scores):
    """Checks that targets have the shape that their loss is meant for.

    Raises:
        ValueError: if the shapes differ and the loss is no sparse one, or if
            a sparse one of Keras' is given a target for each class.
    """
    name = name_of_loss(loss)
    if targets is None or name is None:
        return
    classes, shape = scores.shape[-1], tuple(targets.shape)
    if takes_ids(loss):
        if len(shape) == 2 and shape[1] == classes > 1:
            raise ValueError(
                f"The loss {name} takes the ids of classes, of shape "
                "(batch,); names of labels become multi-hot targets, for "
                "`categorical_crossentropy` or `binary_crossentropy`. "
                f"Received: targets of shape {shape}"
            )
        return
    if len(shape) != 2 or shape[1] not in (None, classes):
        raise ValueError(
            f"The loss {name} takes one target for each class, multi-hot of "
            f"shape (batch, {classes}); class ids need a sparse loss or "
            f"`keras.utils.to_categorical`. Received: targets of shape {shape}"
        )


def check_clips(loss, inputs, targets, weights=None, least=1, axes=AXES):
    """Checks what a loss is computed of, before any of it is trained on.

    Args:
        loss: as `compile` takes it, or `None`.
        inputs: as `check_inputs` takes them.
        targets: as `check_numbers` and `check_one_label` take them.
        weights: as `check_weights` takes them.
        least: as `check_one_label` takes it.
        axes: as `check_inputs` takes them.

    Raises:
        ValueError: as those functions do.
    """
    check_inputs(inputs, axes)
    check_numbers(loss, targets)
    check_one_label(loss, targets, least)
    check_weights(weights)


def check_inputs(inputs, axes=AXES):
    """Checks that samples, or features, are numbers where clips are real.

    One NaN makes the loss NaN, and by its gradient every weight. Padding may
    hold anything, and comes behind all that is real.

    Args:
        inputs: as a model takes them; of anything else, such as names of
            files and what comes in batches, there is nothing to check.
        axes: dict by name of what a model takes of tuples of names of axes,
            of which the second are the places that an error counts.

    Raises:
        ValueError: if there is NaN or infinity; it names the clip. If a
            `frame_mask` has padding among its real frames.
    """
    values, beside = inputs, {}
    if isinstance(inputs, dict):
        beside = inputs
        values = next(filter(has_values, map(inputs.get, axes)), None)
        mask = inputs.get("frame_mask")
        mask = as_numbers(mask) if has_values(mask) else None
        if mask is not None and mask.ndim == 2:
            check_mask(mask)
    if not has_values(values):
        return
    values = as_numbers(values)
    names = {len(each): name for name, each in axes.items()}
    if values is None or values.dtype.kind != "f" or values.ndim not in names:
        return
    wrong, first = 0, None
    rows = max(CHECKED // max(values[:1].size, 1), 1)
    for start in range(0, len(values), rows):
        finite = np.isfinite(values[start : start + rows])
        if finite.all():
            continue
        if values.ndim == 3:
            finite = finite.all(axis=2)
        real = real_positions(beside, *values.shape[:2])
        found = ~finite & real[start : start + rows]
        clips = np.flatnonzero(found.any(axis=1))
        if clips.size and first is None:
            first = start + clips[0], found[clips[0]].argmax()
        wrong += clips.size
    if wrong:
        name, (clip, place) = names[values.ndim], first
        value = values[first].ravel()
        value = value[~np.isfinite(value)][0]
        unit = axes[name][1].removesuffix("s")
        raise ValueError(
            f"`{name}` must be finite numbers, or the loss and then all "
            "weights are NaN; a clip that is not must be mended or left out. "
            f"Received: {value} in {unit} {place} for clip {clip}, of {wrong} "
            "such clips"
        )


def has_values(x):
    """Returns whether something is an array, a tensor, a list or a table.

    What comes in batches would be read by asking it for more.
    """
    known = (np.ndarray, list, tuple)
    return (
        isinstance(x, known) or keras.ops.is_tensor(x) or hasattr(x, "to_numpy")
    )


def real_positions(beside, clips, time):
    """Returns which samples or frames are real, boolean `(clips, time)`.

    Args:
        beside: dict of `lengths`, of `frame_mask`, or of neither, as a model
            takes them; others than of `clips` are for the model to refuse.
        clips: int.
        time: int, samples or frames of the longest clip.
    """
    real = np.ones((clips, time), "bool")
    mask, lengths = map(beside.get, ("frame_mask", "lengths"))
    if mask is not None:
        mask = as_numbers(mask)
    elif lengths is not None:
        lengths = as_numbers(lengths)
        if lengths is not None and lengths.ndim < 2:
            mask = np.arange(time) < lengths.reshape(-1, 1)
    if mask is not None and mask.shape in (real.shape, (1, time)):
        real &= mask.astype("bool")
    return real


def check_numbers(loss, targets):
    """Checks that targets are numbers, where a loss of Keras' takes them.

    One NaN, as tables have for what is not known, makes the loss NaN, and by
    its gradient every weight. A loss of one's own may leave it out.

    Args:
        loss: as `compile` takes it, or `None`.
        targets: array, tensor, list or table `(clips, ...)`; of anything else
            there is nothing to check.

    Raises:
        ValueError: if there is NaN or infinity; it names the clip.
    """
    if name_of_loss(loss) is None:
        return
    check_finite(
        "y", targets, "; clips whose label is not known must be left out"
    )


def check_weights(weights):
    """Checks that the weights of clips are numbers, which no loss is without.

    Args:
        weights: array, tensor, list or table `(clips, ...)`; of anything else
            there is nothing to check.

    Raises:
        ValueError: if there is NaN or infinity; it names the clip.
    """
    check_finite(
        "sample_weight", weights, "; a clip of the weight 0 teaches nothing"
    )


def as_numbers(values):
    """Returns an array, tensor, list or table of numbers as an array.

    Of anything else, which Keras refuses, it returns `None`.
    """
    if keras.ops.is_tensor(values):
        values = keras.ops.convert_to_numpy(values)
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    try:
        values = np.asarray(values)
        if values.dtype.kind == "O":
            values = values.astype("float64")
        elif values.dtype.name == "bfloat16":  # Of none of numpy's own kinds.
            values = values.astype("float32")
    except (TypeError, ValueError):
        return None
    return values if values.dtype.kind in "bfiu" else None


def check_finite(name, values, hint):
    """Raises a `ValueError` for NaN or infinity among numbers by clip.

    Args:
        name: str, the argument.
        values: array, tensor, list or table `(clips, ...)`; of anything else
            there is nothing to check.
        hint: str, the end of a sentence on what to do instead.
    """
    values = as_numbers(values)
    if values is None or values.dtype.kind != "f":
        return
    if not values.ndim or not values.size:
        return
    rows = values.reshape(len(values), -1)
    unknown = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if unknown.size:
        raise ValueError(
            f"`{name}` must be finite numbers, or the loss and then all "
            f"weights are NaN{hint}. Received: "
            f"{rows[unknown[0]].tolist()[:9]} for clip {unknown[0]}, of "
            f"{unknown.size} such clips"
        )


def check_one_label(loss, targets, least=1):
    """Checks that clips have one label each where their loss takes no others.

    Of a clip with several ones, a model of shares can reach none; the loss of
    a clip without any is 0, so that nothing is learned of it. Shares, as of
    smoothed or mixed labels or of another model's scores, are taken as they
    are.

    Args:
        loss: as `compile` takes it, or `None`.
        targets: array, tensor, list or table `(clips, classes)`; of anything
            else there is nothing to check.
        least: int, 0 where clips may have no label.

    Raises:
        ValueError: if targets of zeros and ones have several ones, or fewer
            than `least`.
    """
    if not takes_shares(loss):
        return
    targets = as_numbers(targets)
    if targets is None or targets.ndim != 2 or targets.shape[1] < 2:
        return
    hard = ((targets == 0) | (targets == 1)).all(axis=1)
    counts = targets.sum(axis=1)
    wrong = np.flatnonzero(hard & ((counts > 1) | (counts < least)))
    if wrong.size:
        count = int(counts[wrong[0]])
        raise ValueError(
            f"The loss {name_of_loss(loss)} takes clips of one label each; "
            "where they have several or none, a model with "
            "activation='sigmoid' learns by `binary_crossentropy`. "
            f"Received: {count} labels for clip {wrong[0]}"
        )


def check_one_class(targets):
    """Checks that each clip is of one class, whose weight it can have.

    Keras gives a clip the weight of the first of its highest targets.

    Args:
        targets: array or tensor `(clips, classes)`; of other shapes there is
            nothing to check. `None` if they are not known.

    Raises:
        ValueError: if a clip has several classes, or none.
    """
    if targets is None or len(np.shape(targets)) != 2:
        return
    targets = keras.ops.convert_to_numpy(targets)
    highest = (targets == targets.max(1, keepdims=True)).sum(1)
    several = np.flatnonzero((highest > 1) & (targets.shape[1] > 1))
    if several.size:
        raise ValueError(
            "`class_weight` needs clips of one label each; where they have "
            "several or none, `sample_weight` gives every clip its weight. "
            f"Received: targets {targets[several[0]].tolist()[:9]} of clip "
            f"{several[0]}"
        )


@contextlib.contextmanager
def checking_stream(given, loss, name="x", least=1, to_targets=None, axes=AXES):
    """Checks clips and targets that come in batches, as each comes.

    It may be a `tf.data.Dataset`, a `keras.utils.PyDataset` or a generator.
    They are held against the loss as `check_clips` does it, and with a
    `class_weight` as `check_one_class` does. What is something else stays as
    it is.

    Args:
        given: dict of the arguments of a method; changed.
        loss: as `compile` takes it, or `None`.
        name: str, the argument that may be such data.
        least: as `check_one_label` takes it.
        to_targets: function of an array of names of labels to their targets,
            or `None` where there are none to check.
        axes: as `check_inputs` takes them.

    Raises:
        ValueError: as those functions do, at the end of the context.
    """
    source, said = given.get(name), []
    weighted = name == "x" and given.get("class_weight") is not None
    is_dataset = compat.is_tf_dataset(source)
    kind = "dataset" if is_dataset else kind_of(source)

    def check(inputs=None, targets=None, weights=None):
        try:
            if to_targets is not None and is_text(targets):
                targets = to_targets(targets)
            check_clips(loss, inputs, targets, weights, least, axes)
            if weighted:
                check_one_class(targets)
        except ValueError as error:
            # No more of it: TensorFlow never frees what its graphs have called.
            said.append(f"{error} of a batch of the {kind}")
            raise ValueError(said[-1]) from error

    def check_batch(batch):
        # Keras tells of anything else, and others of names of files.
        if not isinstance(batch, (list, tuple)) or 0 < len(batch) < 4:
            check(*keras.utils.unpack_x_y_sample_weight(batch))

    if is_dataset:
        from audio_tf.audio import graph_rows

        given[name] = graph_rows.checked_batches(
            source, check, to_targets is not None
        )
    elif source is not None:
        given[name] = checked_batches(source, check_batch)
    try:
        yield
    except Exception:
        if not said:
            raise
        # TensorFlow's own error has the sentence amid two tracebacks.
        raise ValueError(said[0]) from None
