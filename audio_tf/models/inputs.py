"""The one door of every model: inputs are completed and checked here."""

import keras
import numpy as np
from keras import ops

from audio_tf import compat
from audio_tf.ops import masks
from audio_tf.ops.checks import reject_unknown
from audio_tf.ops.layer import check_floating

# Names of further inputs beside a waveform or beside features.
COMPANIONS = {
    "waveform": ("lengths",),
    "features": ("lengths", "frame_mask"),
}
# Keras would drop or add an axis of one in silence.
AXES = {
    "waveform": ("batch", "samples"),
    "features": ("batch", "frames", "feature_dim"),
}
MAX_LENGTH = 2**31 - 1


def symbolic(takes, dim=None):
    """Makes the symbolic inputs of a functional model.

    Args:
        takes: `"waveform"` or `"features"`.
        dim: int, features of a frame where it takes features.

    Returns:
        Dict of `takes`, `(batch, samples)` or `(batch, frames, dim)`, and
        the optional `lengths`, `(batch,)`.
    """
    shape = (None,) if dim is None else (None, dim)
    return {
        takes: keras.Input(shape, dtype="float32", name=takes),
        "lengths": keras.Input(
            (), dtype="int32", name="lengths", optional=True
        ),
    }


def complete(inputs, takes, mask=None):
    """Completes the inputs of a model to the dict that its graph takes.

    Args:
        inputs: floating array or tensor, or a dict of it with either
            `lengths` or, for features, `frame_mask`. Without them, a mask
            counts that a layer such as `keras.layers.Masking` has attached.
        takes: `"waveform"` or `"features"`.
        mask: boolean `(batch, samples)` or `(batch, frames)`, True for what
            is real, in place of `lengths` and `frame_mask`, or `None`.

    Returns:
        Dict of `takes` and `lengths`, int32 or, where all is real, `None`,
        which is no input of a symbolic call.

    Raises:
        ValueError: if a dict lacks what the model takes, has both `lengths`
            and `frame_mask` or keys beyond, or one of them beside a `mask`;
            samples are no floating numbers or have other axes or are ragged,
            lengths no integers or of another batch, or a mask is of other
            frames or its real ones do not come first.
    """
    compat.refuse_ragged(inputs)
    if not isinstance(inputs, dict):
        inputs = {takes: inputs}
    given = {key for key in inputs if inputs[key] is not None}
    beside = given - {takes}
    if takes not in given or len(beside) > 1 or beside - {*COMPANIONS[takes]}:
        companions = " or ".join(f"`{each}`" for each in COMPANIONS[takes])
        raise ValueError(
            f"Inputs must be a floating tensor of `{takes}`, or a dict of it "
            f"as `{takes}` and, optionally, either {companions}. "
            f"Received: keys={sorted(map(str, inputs))}"
        )
    x, lengths = as_array(inputs[takes]), inputs.get("lengths")
    if is_numpy(x) and x.dtype.kind in "US":
        raise ValueError(
            f"A model is called with its `{takes}`; `fit`, `evaluate`, "
            "`predict` and `classify` of a classifier take names of files. "
            f"Received: dtype={x.dtype}"
        )
    check_floating(takes, x)
    if len(x.shape) != len(AXES[takes]):
        raise ValueError(
            f"`{takes}` must be of shape ({', '.join(AXES[takes])}). "
            f"Received: shape={tuple(x.shape)}"
        )
    if mask is None:
        mask = inputs.get("frame_mask") if beside else compat.mask_of(x)
    elif beside:
        raise ValueError(
            "What is real is said by a `mask` or within the inputs, not by "
            f"both. Received: a mask and {beside.pop()!r}"
        )
    if mask is not None:
        mask = as_array(mask)
        check_frames(x, mask, takes)
        lengths = lengths_of_mask(mask)
    elif lengths is not None:
        lengths = as_lengths(as_array(lengths))
    check_batch(x, lengths)
    if lengths is not None and is_numpy(x) != is_numpy(lengths):
        # Keras takes no mixture of arrays and tensors.
        x, lengths = map(ops.convert_to_tensor, (x, lengths))
    if lengths is None and isinstance(x, keras.KerasTensor):
        lengths = symbolic_lengths(x)
    return {takes: x, "lengths": lengths}


def symbolic_lengths(x):
    """Returns lengths of symbolic clips all of which is real, int32 `(batch,)`.

    Within another functional model, Keras lets no optional input be absent.

    Args:
        x: `keras.KerasTensor` `(batch, time, ...)`.
    """
    real = ops.ones_like(x, dtype="int32")
    if len(x.shape) == 3:
        real = ops.max(real, axis=2)
    return ops.sum(real, axis=1)


def as_array(x):
    """Turns lists and numbers into numpy arrays; keeps arrays and tensors.

    Raises:
        ValueError: if clips in a list are of several lengths.
    """
    if not isinstance(x, (list, tuple, int, float)):
        return x
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ValueError(
            "Clips of several lengths must be padded, as a dict of "
            "`waveform` (or `features`) and `lengths`. "
            f"Received: a list of {len(x)}, not all of one shape"
        ) from error


def without_lists(inputs):
    """Turns lists within a dict of inputs into the arrays that a model takes.

    Keras would take each number of a list for an input of its own.

    Args:
        inputs: anything that a model could be given.

    Returns:
        The dict with arrays for lists; anything else as it is.

    Raises:
        ValueError: as `as_array`.
    """
    if not isinstance(inputs, dict):
        return inputs
    return {name: as_array(value) for name, value in inputs.items()}


def is_numpy(x):
    """Returns whether something is a numpy array."""
    return isinstance(x, np.ndarray)


def as_lengths(lengths):
    """Turns lengths into int32; larger integers become its largest."""
    if masks.check_integers(lengths) == "int32":
        return lengths
    # A cast alone would wrap larger ones around.
    if is_numpy(lengths):
        return lengths.clip(0, MAX_LENGTH).astype("int32")
    return masks.within(lengths, MAX_LENGTH)


def lengths_of_mask(mask):
    """Counts the real frames of a mask `(batch, frames)`, int32 `(batch,)`."""
    if is_numpy(mask):
        check_mask(mask)
        return mask.astype("bool").sum(axis=1, dtype="int32")
    if not compat.is_traced(mask):
        check_mask(ops.convert_to_numpy(mask))
    return masks.to_lengths(mask)


def check_frames(x, mask, takes):
    """Raises a `ValueError` for a mask of other frames, as far as is known.

    Args:
        x: array or tensor of what the model takes.
        mask: array or tensor.
        takes: as `complete` takes it.
    """
    shape = tuple(getattr(mask, "shape", ()))
    frames = {x.shape[1], *shape[1:2]} - {None}
    if len(shape) != 2 or len(frames) > 1:
        unit = AXES[takes][1]
        raise ValueError(
            f"A mask must be of shape (batch, {unit}), with the {unit} of "
            f"`{takes}`, or those beyond would be taken for padding. "
            f"Received: a mask of shape {shape} for {takes} of "
            f"shape {tuple(x.shape)}"
        )


def check_mask(mask):
    """Raises a `ValueError` for padding among the real frames of a mask.

    Models go by lengths alone: as many frames of the beginning would count.

    Args:
        mask: numpy array `(batch, frames)`.
    """
    mask = mask.astype("bool")
    if (mask[:, 1:] & ~mask[:, :-1]).any():
        raise ValueError(
            "The real frames of a `frame_mask` must come first. Received: "
            f"a row with {int(mask.sum(axis=1).max())} real frames and "
            "padding among them"
        )


def check_batch(x, lengths):
    """Raises a `ValueError` for lengths of a batch of another size."""
    if lengths is None or not len(lengths.shape):
        return
    clips, counts = x.shape[0], lengths.shape[0]
    if isinstance(clips, int) and isinstance(counts, int) and clips != counts:
        raise ValueError(
            "There must be one of `lengths` for each clip. "
            f"Received: {counts} lengths, {clips} clips"
        )


def check_features(backbone, asking):
    """Raises a `ValueError` if a backbone does not take features.

    Args:
        backbone: an `AudioBackbone`.
        asking: str, the class that is to have it.
    """
    if backbone.takes != "features":
        raise ValueError(
            f"{asking} needs a backbone of features, as an AudioAlbertBackbone "
            f"is. Received: {type(backbone).__name__}, which takes a "
            f"{backbone.takes}"
        )


class InputDoor:
    """Mixin of functional models whose inputs go through `complete`.

    A subclass says by `takes`, `"waveform"` or `"features"`, what its input
    is, and by `max_samples` how many samples (of features: frames) it takes
    at most, `None` for any number.
    """

    takes = "waveform"
    max_samples = None

    def audio_backbone(self):
        """Returns the backbone of a task, or the model itself if it is one."""
        return self.backbone

    def __call__(self, inputs, *args, mask=None, **kwargs):
        return super().__call__(self.completed(inputs, mask), *args, **kwargs)

    def call(self, inputs, training=None, mask=None, **unknown):
        reject_unknown(self.name, unknown, ("training", "mask"))
        # JAX' stateless calls do not come through `__call__`.
        return super().call(self.completed(inputs, mask), training=training)

    def compute_mask(self, inputs, previous_mask=None):
        """Returns `None`: what is real of the outputs is among them."""

    def compute_output_spec(self, inputs, *args, **kwargs):
        return super().compute_output_spec(
            self.completed(inputs), *args, **kwargs
        )

    def compute_output_shape(self, input_shape):
        """Returns the shapes of what the model returns.

        Args:
            input_shape: tuple of int or `None`, the shape of the waveform or
                the features, or a dict of it as the model takes it.

        Raises:
            ValueError: as `complete` for inputs of that shape.
        """
        if not isinstance(input_shape, dict):
            input_shape = {self.takes: input_shape}
        dtypes = {"lengths": "int32", "frame_mask": "bool"}
        spec = self.compute_output_spec(
            {
                key: keras.KerasTensor(shape, dtypes.get(key, "float32"))
                for key, shape in input_shape.items()
            }
        )
        return keras.tree.map_structure(lambda each: each.shape, spec)

    def completed(self, inputs, mask=None):
        """Completes inputs as `complete` does, if they are not too long.

        Args:
            inputs: as the model takes them.
            mask: as `complete` takes it.

        Returns:
            Dict as `complete` returns it.

        Raises:
            ValueError: if they are longer than `max_samples`.
        """
        by_input = isinstance(inputs, dict) and isinstance(mask, dict)
        if by_input and mask.keys() == inputs.keys():
            # Keras' own, one for each input; lengths stand for theirs.
            mask = mask[self.takes] if len(mask) == 1 else None
        inputs = complete(inputs, self.takes, mask)
        shape, longest = inputs[self.takes].shape, self.max_samples
        if longest is None or not isinstance(shape[1], int):
            return inputs
        if shape[1] > longest:
            unit = "samples" if self.takes == "waveform" else "frames"
            raise ValueError(
                f"{self.name} takes at most {longest} {unit}, for which the "
                "tables of its attention are made; `made_for_frames` makes it "
                f"for longer ones. Received: an input of {shape[1]} {unit}"
            )
        return inputs


class FeatureDoor(InputDoor):
    """The door of models that may take features, and a mask of their frames."""

    def predict(self, x, *args, **kwargs):
        """Predicts as `keras.Model.predict` does.

        Raises:
            ValueError: if `x` has a `frame_mask` whose real frames do not come
                first, which is not known any more where it is computed.
        """
        compat.refuse_ragged(x)
        x = without_lists(x)
        mask = x.get("frame_mask") if isinstance(x, dict) else None
        if mask is not None:
            lengths_of_mask(mask)
        return super().predict(x, *args, **kwargs)
