"""Keras' methods of models that are given arrays, checked before they train."""

import keras

from audio_tf import compat
from audio_tf.models.given_clips import bound
from audio_tf.models.inputs import without_lists
from audio_tf.models.targets import (
    AXES,
    check_clips,
    check_one_class,
    checking_stream,
)


class CheckedCalls:
    """Mixin of a `keras.Model` that computes its loss of nothing but numbers.

    It comes before `compat.OnAnyBackend`.
    """

    # What the model takes, as `check_clips` takes it.
    axes_of_inputs = AXES
    # How many labels a clip has at least, where its targets are shares.
    least_labels = 1

    def fit(self, *args, **kwargs):
        """Trains the model as `keras.Model.fit` does.

        Args:
            *args: as `keras.Model.fit` takes them.
            **kwargs: as well.

        Returns:
            The `keras.callbacks.History`.

        Raises:
            ValueError: if there are no clips, or as `checked`.
        """
        given = self.checked(keras.Model.fit, args, kwargs)
        with (
            self.checking_stream(given),
            self.checking_stream(given, "validation_data"),
        ):
            return compat.with_clips(super().fit, **given)

    def evaluate(self, *args, **kwargs):
        """Evaluates the model as `keras.Model.evaluate` does.

        Raises:
            ValueError: as `fit`.
        """
        given = bound(keras.Model.evaluate, args, kwargs)
        # What `fit` evaluates has been looked at, and has begun to be read.
        if given.get("_use_cached_eval_dataset"):
            return super().evaluate(**given)
        given = self.checked(keras.Model.evaluate, args, kwargs)
        with self.checking_stream(given):
            return super().evaluate(**given)

    def train_on_batch(self, *args, **kwargs):
        """Trains on a batch as `keras.Model.train_on_batch` does.

        Raises:
            ValueError: as `fit`.
        """
        given = self.checked(keras.Model.train_on_batch, args, kwargs)
        return super().train_on_batch(**given)

    def test_on_batch(self, *args, **kwargs):
        """Evaluates a batch as `keras.Model.test_on_batch` does.

        Raises:
            ValueError: as `fit`.
        """
        given = self.checked(keras.Model.test_on_batch, args, kwargs)
        return super().test_on_batch(**given)

    def checked(self, method, args, kwargs):
        """Returns the arguments of a call, of which none is refused.

        Args:
            method: the method of `keras.Model` that is called.
            args: tuple of the arguments by position, without the object.
            kwargs: dict of those by name.

        Raises:
            ValueError: if there is NaN or infinity among clips, targets or
                weights; or if clips have several labels or none, and the loss
                is a categorical cross entropy or there is a `class_weight`.
        """
        given = bound(method, args, kwargs)
        if "x" in given:
            given["x"] = without_lists(given["x"])
        data = given.get("validation_data")
        if isinstance(data, (tuple, list)) and data:
            given["validation_data"] = (without_lists(data[0]), *data[1:])
        names = ("x", "y", "sample_weight")
        clips = tuple(given.get(name) for name in names)
        for data in (clips, given.get("validation_data")):
            self.check_batch(data)
        if given.get("class_weight") is not None:
            check_one_class(given.get("y"))
        return given

    def check_batch(self, batch):
        """Raises a `ValueError`, as `checked` does, for a batch.

        Args:
            batch: tuple of `x` and, if there are any, `y` and weights.
        """
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        check_clips(
            self.loss, x, y, weights, self.least_labels, self.axes_of_inputs
        )

    def checking_stream(self, given, name="x"):
        """Has batches checked, as long as a context lasts.

        Args:
            given: dict of arguments; changed.
            name: str, the argument that may come in batches.
        """
        return checking_stream(
            given, self.loss, name, self.least_labels, axes=self.axes_of_inputs
        )
