"""Training, evaluation and prediction of a classifier from files."""

import collections
import contextlib
import inspect
import itertools

import keras
import numpy as np

from audio_tf import compat, compiling
from audio_tf.audio.kept import KeptAudio
from audio_tf.audio.scoring import compute, longest_clip
from audio_tf.audio.sources import Source
from audio_tf.models.class_weights import check_one_class, weights_by_class
from audio_tf.models.file_batches import (
    BadFiles,
    ListedFiles,
    StreamedFiles,
)
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
from audio_tf.ops.checks import check_sizes


class FileTask:
    """The base of a classifier that is trained and evaluated with files, too.

    A subclass has what `AudioClassifierPreprocessor.check_model` asks for, and
    is a `ClipClassifier` and a `keras.Model`.
    """

    # Makes a source of a name; within `fit` one that keeps what it decodes.
    _source_of = Source

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

    def fit(self, *args, **kwargs):
        """Trains the model as `keras.Model.fit` does, with files as well.

        ```python
        classifier.fit(["a.wav", "b.wav"], ["dog", "rain"], epochs=30)
        classifier.fit(dataset)  # batches of (paths, names) by tf.data
        ```

        All chunks of a clip are trained on in each pass, with the labels and
        the weight of the clip, as by `audio_tf.data.Chunks`; `batch_size` is
        a number of chunks, of whole clips where `chunk_s` is `None`. Files of
        a list are shuffled unless `shuffle=False`, and their chunks too, as
        many as 64 MiB hold. With `steps_per_epoch` an epoch has so many
        batches, and what ends begins anew. A dataset keeps its order, and its
        batches say how many chunks are a batch. Files are decoded once, those
        of `validation_data` as well, and stay in memory until training ends, a
        GiB of samples at most; what is beyond that is decoded in each pass, and
        `audio_tf.data` keeps it on disk. Bad files, and clips longer than a
        model of whole clips takes, are left out, with one warning after
        training.

        Args:
            *args: as `keras.Model.fit` takes them. `x` may be a list of
                paths or a `tf.data.Dataset` of batches of paths and labels;
                `y` may be labels as `AudioClassifierPreprocessor` takes them;
                so may those of `validation_data`, whose figures are by clip,
                as those of `evaluate`. `class_weight` is a dict by label or
                by number, in which a class that is left out has the weight 1.
            **kwargs: as well.

        Returns:
            The `keras.callbacks.History`.

        Raises:
            ValueError: if a label is unknown, it names the closest; if there
                are not as many labels as files; if no file can be used; if a
                waveform is of integers or has an axis for channels; or if
                `class_weight` has an unknown class, or clips of several.
        """
        given = bound(keras.Model.fit, args, kwargs)
        batch_size = given.get("batch_size")
        clips = self.find_files(given)
        self.replace_names(given)
        self.replace_class_weight(
            given, given.get("y") if clips is None else clips.targets
        )
        if clips is not None and given.get("validation_data") is None:
            share = given.pop("validation_split", None)
            if share:
                clips, given["validation_data"] = clips.split(share)
        self.prepare_validation(given, batch_size)
        if compat.is_tf_dataset(given.get("x")):
            # Keras would warn of its own default, that a dataset is not
            # shuffled, even of one that is.
            given.setdefault("shuffle", False)
        with self.keeping_audio():
            if clips is None:
                return keras.Model.fit(self, **given)
            return self.fit_files(clips, **given)

    @contextlib.contextmanager
    def keeping_audio(self):
        """Has files decoded once, as long as the context lasts."""
        kept = KeptAudio(longest=longest_clip(self))
        self._source_of = kept.source
        try:
            yield
        finally:
            self._source_of = Source
            # TensorFlow never frees a Python function that a graph has called,
            # and with it what the function reads from.
            kept.drop()

    def fit_files(self, clips, batch_size=None, shuffle=True, **kwargs):
        """Does the work of `fit` for files; see there."""
        clips.require_labels()
        from audio_tf.audio import graph_rows

        bad, prepare = BadFiles(), self.preprocessor.prepare
        reading = {"report": bad.report, "source_of": self._source_of}
        batches = graph_rows.training_batches(
            clips.dataset(),
            lambda *clip: prepare(*clip, **reading),
            self.preprocessor.audio_converter.chunk_samples,
            clips.rows_of(batch_size),
            clips.seed_of(shuffle),
            compiling.widths(longest_clip(self))
            if compiling.jit_compile()
            else None,
        )
        quiet = kwargs.get("steps_per_epoch") is None
        silencer = compat.quiet_end_of_data if quiet else contextlib.nullcontext
        if not quiet:
            # Or Keras, which cannot count batches of chunks ahead, cuts the
            # epoch short in which the files end.
            batches = batches.repeat()
        try:
            with silencer():
                return keras.Model.fit(self, batches, shuffle=False, **kwargs)
        finally:
            if clips.are_all(bad):
                bad.refuse()
            bad.warn("left out of training")

    def evaluate(self, *args, **kwargs):
        """Evaluates the model as `keras.Model.evaluate` does, or with files.

        Of files, loss and metrics are those of clips: the scores of a clip
        are the mean over its chunks, as `classify` gives them. Bad files are
        left out, with a warning.

        Args:
            *args: as `keras.Model.evaluate` takes them; `x` and `y` as well
                as `fit` takes them.
            **kwargs: as well.

        Returns:
            As `keras.Model.evaluate` returns.

        Raises:
            ValueError: as `fit`, or if files have no labels.
        """
        given = bound(keras.Model.evaluate, args, kwargs)
        clips = self.find_files(given)
        self.replace_names(given)
        if clips is None:
            return keras.Model.evaluate(self, **given)
        # Within `fit`, Keras has an iterator ready, which files do not need.
        given.pop("_use_cached_eval_dataset", None)
        return self.evaluate_files(clips, **given)

    def predict(self, *args, **kwargs):
        """Scores waveforms as `keras.Model.predict` does, or files.

        Of files, there is one row of scores for each clip, the mean over its
        chunks, as `classify` gives them. A bad file has NaN, with a warning.

        Args:
            *args: as `keras.Model.predict` takes them; `x` as well a list of
                paths or a `tf.data.Dataset` of batches of them.
            **kwargs: as well.

        Returns:
            Float32 array `(clips, num_classes)`.

        Raises:
            ValueError: as `fit`.
        """
        given = bound(keras.Model.predict, args, kwargs)
        clips = self.find_files(given)
        if clips is None:
            return keras.Model.predict(self, **given)
        return self.predict_files(clips, **given)

    def train_on_batch(self, *args, **kwargs):
        """Trains on a batch as `keras.Model.train_on_batch` does, or on files.

        All chunks of the files are one batch.
        """
        given = bound(keras.Model.train_on_batch, args, kwargs)
        if self.find_files({**given}) is not None:
            data = self.preprocessor(
                given["x"], given.get("y"), given.get("sample_weight")
            )
            names = ("x", "y", "sample_weight")
            data = keras.utils.unpack_x_y_sample_weight(data)
            given.update(zip(names, data, strict=True))
        self.replace_names(given)
        self.replace_class_weight(given, given.get("y"))
        return keras.Model.train_on_batch(self, **given)

    def test_on_batch(self, *args, **kwargs):
        """Evaluates a batch as `keras.Model.test_on_batch` does, or files."""
        given = bound(keras.Model.test_on_batch, args, kwargs)
        if self.find_files({**given}) is not None:
            return self.evaluate(**given, verbose=0)
        self.replace_names(given)
        return keras.Model.test_on_batch(self, **given)

    def predict_on_batch(self, x):
        """Scores a batch as `keras.Model.predict_on_batch` does, or files."""
        if self.find_files({"x": x}) is not None:
            return self.predict(x, verbose=0)
        return keras.Model.predict_on_batch(self, x)

    def find_files(self, given):
        """Finds the files in what a method was given.

        Args:
            given: dict of `x` and, if there are any, `y` and `sample_weight`;
                of files, they are taken out of it.

        Returns:
            `ListedFiles`, `StreamedFiles`, or `None` if there are no files.

        Raises:
            TypeError: if there is something else among names of files.
            ValueError: if waveforms or files are not as they must be, labels
                are unknown, or the model has no preprocessor.
        """
        x = given.get("x")
        if compat.is_tf_dataset(x):
            names = keras.utils.unpack_x_y_sample_weight(x.element_spec)[0]
            if not is_text(names):
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
        del given["x"]
        return ListedFiles(names, targets, given.pop("sample_weight", None))

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

    def score_files(self, clips, batch_size, steps):
        """Scores files batch by batch, a few of them decoded ahead.

        Args:
            clips: `ListedFiles` or `StreamedFiles`.
            batch_size: int or `None`.
            steps: int, the number of batches, or `None` for all.

        Yields:
            Pair of a `ClipBatch` and a list by clip of
            `audio.scoring.Computed`.
        """
        asked = collections.deque()

        def sources():
            for batch in itertools.islice(clips.batches(batch_size), steps):
                asked.append(batch)
                yield from map(self._source_of, batch.names)

        found = compute(self, self.score_batch, sources(), False, "scores")
        rows = []
        for each in found:
            rows.append(each)
            if len(rows) == len(asked[0]):
                yield asked.popleft(), rows
                rows = []

    def predict_files(
        self, clips, batch_size=None, verbose="auto", steps=None, callbacks=None
    ):
        """Does the work of `predict` for files; see there."""
        steps = steps_of(clips, batch_size, steps)
        callbacks = self.callback_list(callbacks, verbose, steps)
        bad, outputs = BadFiles(), []
        callbacks.on_predict_begin()
        batches = self.score_files(clips, batch_size, steps)
        for step, (_, found) in enumerate(batches):
            callbacks.on_predict_batch_begin(step)
            scores = np.full((len(found), self.num_classes), np.nan, "float32")
            for row, each in enumerate(found):
                if each.reason is None:
                    scores[row] = each.value
                else:
                    bad.report(str(each.source.name), each.reason)
            outputs.append(scores)
            callbacks.on_predict_batch_end(step, {"outputs": scores})
        callbacks.on_predict_end()
        if len(bad) and np.isnan(np.concatenate(outputs)).all():
            bad.refuse()
        bad.warn("whose scores are NaN")
        return np.concatenate(outputs)

    def evaluate_files(
        self,
        clips,
        batch_size=None,
        verbose="auto",
        steps=None,
        callbacks=None,
        return_dict=False,
    ):
        """Does the work of `evaluate` for files; see there."""
        clips.require_labels()
        steps = steps_of(clips, batch_size, steps)
        callbacks = self.callback_list(callbacks, verbose, steps)
        bad, logs = BadFiles(), {}
        callbacks.on_test_begin()
        self.reset_metrics()
        batches = self.score_files(clips, batch_size, steps)
        for step, (batch, found) in enumerate(batches):
            callbacks.on_test_batch_begin(step)
            for each in found:
                if each.reason is not None:
                    bad.report(str(each.source.name), each.reason)
            usable = np.array([each.reason is None for each in found])
            if usable.any():
                batch = batch.select(usable)
                values = [e.value for e in found if e.reason is None]
                logs = compat.update_metrics(
                    self,
                    batch.targets,
                    np.stack(values).astype("float32"),
                    batch.weights,
                )
            callbacks.on_test_batch_end(step, logs)
        if bad and not logs:
            bad.refuse()
        callbacks.on_test_end(logs)
        bad.warn("left out of loss and metrics")
        return logs if return_dict else compat.flatten_metrics(self, logs)

    def callback_list(self, callbacks, verbose, steps):
        """Returns callbacks as Keras' own loops would call them."""
        if isinstance(callbacks, keras.callbacks.CallbackList):
            return callbacks
        return keras.callbacks.CallbackList(
            callbacks,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=1,
            steps=steps,
            model=self,
        )


def steps_of(clips, batch_size, steps):
    """Returns how many batches of files are scored, `None` if all are.

    Args:
        clips: `ListedFiles` or `StreamedFiles`.
        batch_size: int or `None`.
        steps: int or `None`, the number that is asked for.

    Raises:
        ValueError: if what is asked for is no positive integer.
    """
    if steps is None:
        return clips.count(batch_size)
    check_sizes(steps=steps)
    return steps


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
