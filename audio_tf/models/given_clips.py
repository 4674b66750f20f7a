"""The arguments of Keras' methods, where they may be files and names."""

import inspect

import keras
import numpy as np

from audio_tf import compat
from audio_tf.models.class_weights import weights_by_class
from audio_tf.models.file_batches import ListedFiles, StreamedFiles
from audio_tf.models.inputs import without_lists
from audio_tf.models.named_files import (
    check_waveform,
    file_names,
    is_one_name,
    is_text,
    label_rows,
    stacked,
    without_names,
)
from audio_tf.models.preprocessor import AudioClassifierPreprocessor
from audio_tf.models.targets import (
    check_clips,
    check_one_class,
    checking_stream,
)


class GivenClips:
    """The base of a model that may be given files and names of labels.

    A subclass has what `AudioClassifierPreprocessor.check_model` asks for.
    """

    @property
    def preprocessor(self):
        """The `AudioClassifierPreprocessor`, or `None`."""
        # KerasHub asks before it is set, and an attribute of the class would be
        # what Torch finds in place of the layer.
        return getattr(self, "_preprocessor", None)

    @preprocessor.setter
    def preprocessor(self, value):
        if isinstance(value, str) and value == "auto":
            value = AudioClassifierPreprocessor.of(self)
        if value is not None:
            if not isinstance(value, AudioClassifierPreprocessor):
                raise ValueError(
                    "`preprocessor` must be an AudioClassifierPreprocessor, "
                    f"'auto' or None. Received: {value!r}"
                )
            value.check_model(self)
        self._preprocessor = value

    def find_files(self, given):
        """Finds the files in what a method was given.

        Args:
            given: dict of `x` and, if there are any, `y` and `sample_weight`;
                of files, they are taken out of it, and lists of waveforms
                become arrays.

        Returns:
            `ListedFiles`, `StreamedFiles`, or `None` if there are no files.

        Raises:
            TypeError: if there is something else among names of files.
            ValueError: if waveforms or files are not as they must be, labels
                are unknown, or the model has no preprocessor.
        """
        x = given.get("x")
        if compat.is_tf_dataset(x):
            if not self.is_of_files(x):
                return None
            self.require_preprocessor()
            for name in ("y", "sample_weight"):
                if given.pop(name, None) is not None:
                    raise ValueError(
                        "A dataset of files has labels and weights in it. "
                        f"Received: `{name}` beside the dataset"
                    )
            del given["x"]
            return StreamedFiles(x, self.preprocessor)
        if isinstance(x, (list, tuple)) and not x:
            raise ValueError(
                f"There must be a clip at least. Received: x={x!r}"
            )
        names = file_names(x)
        if names is None:
            if isinstance(x, (list, tuple)):
                given["x"] = x = stacked(x)
            elif isinstance(x, dict):
                given["x"] = x = without_lists(x)
            if isinstance(x, (np.ndarray, dict)) or keras.ops.is_tensor(x):
                check_waveform(x)
            elif x is not None:
                given["x"] = without_names(x)
            return None
        if is_one_name(x):
            raise ValueError(
                "Files must be a list of paths; `classify` takes a single "
                f"file, a folder or a pattern. Received: {x!r}"
            )
        self.require_preprocessor()
        targets = self.preprocessor.targets(given.pop("y", None))
        weights = given.pop("sample_weight", None)
        check_clips(self.loss, None, targets, weights)
        del given["x"]
        return ListedFiles(names, targets, weights)

    def is_of_files(self, x):
        """Returns whether something is a `tf.data.Dataset` of files."""
        if not compat.is_tf_dataset(x):
            return False
        spec = keras.utils.unpack_x_y_sample_weight(x.element_spec)
        return is_text(spec[0])

    def require_preprocessor(self):
        """Raises a `ValueError` without a preprocessor that fits the model."""
        if self.preprocessor is None:
            raise ValueError(
                "Files need a preprocessor, and the model has none: "
                "`classifier.preprocessor = 'auto'` makes it. "
                "Received: preprocessor=None"
            )
        self.preprocessor.check_model(self)

    def replace_names(self, given):
        """Replaces names of labels by targets where `x` are waveforms.

        Args:
            given: dict of arguments; changed.

        Raises:
            ValueError: if there are clips of several labels or of none, and
                the loss takes no such targets; or as `check_clips` does.
        """
        x = given.get("x")
        if compat.is_tf_dataset(x):
            y = keras.utils.unpack_x_y_sample_weight(x.element_spec)[1]
            if y is not None and is_text(y):
                self.require_preprocessor()
                given["x"] = x.map(self.preprocessor)
        elif label_rows(given.get("y")) is not None:
            self.require_preprocessor()
            given["y"] = self.preprocessor.targets(given["y"])
        beside = map(given.get, ("y", "sample_weight"))
        check_clips(self.loss, x, *beside)

    def checking_stream(self, given, name="x"):
        """Has batches checked, as long as a context lasts.

        Args:
            given: dict of arguments; changed.
            name: str, the argument that may come in batches.
        """
        to_targets = None
        if self.preprocessor is not None:
            to_targets = self.preprocessor.targets
        return checking_stream(given, self.loss, name, to_targets=to_targets)

    def replace_class_weight(self, given, targets):
        """Replaces the weights of some classes by those of all, by number.

        Args:
            given: dict of arguments; changed.
            targets: array or tensor `(clips, ...)`, or `None` if it is not
                known before training.
        """
        if given.get("class_weight") is None:
            return
        given["class_weight"] = weights_by_class(
            given["class_weight"], self.labels, self.num_classes
        )
        check_one_class(targets)

    def prepare_validation(self, given, batch_size):
        """Replaces validation data of files by what `evaluate` takes of them.

        Args:
            given: dict of the arguments of `fit`; changed.
            batch_size: int or `None`, the batch size of training.
        """
        data = given.get("validation_data")
        if data is None:
            return
        clips = data
        if not isinstance(data, ListedFiles):
            unpacked = keras.utils.unpack_x_y_sample_weight(data)
            parts = dict(
                zip(("x", "y", "sample_weight"), unpacked, strict=True)
            )
            clips = self.find_files(parts)
            self.replace_names(parts)
        if clips is None:
            if not compat.is_tf_dataset(parts["x"]):
                parts = tuple(parts.values())
                given["validation_data"] = keras.utils.pack_x_y_sample_weight(
                    *parts
                )
            else:
                given["validation_data"] = parts["x"]
            return
        size = given.pop("validation_batch_size", None) or batch_size
        # Keras iterates over it, if at all, by way of `evaluate`.
        given["validation_data"] = clips.batched(size)


def bound(method, args, kwargs):
    """Returns the arguments of a call of a method of Keras as a dict.

    Args:
        method: the method.
        args: tuple of the arguments by position, without the object.
        kwargs: dict of those by name.
    """
    found = inspect.signature(method).bind(None, *args, **kwargs).arguments
    extra = found.pop("kwargs", {})
    del found["self"]
    return {**found, **extra}
