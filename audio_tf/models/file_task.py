"""Training, evaluation and prediction of a classifier from files."""

import collections
import contextlib
import itertools

import keras
import numpy as np

from audio_tf import compat, compiling
from audio_tf.audio.kept import KeptAudio
from audio_tf.audio.scoring import compute, longest_clip
from audio_tf.audio.sources import Source
from audio_tf.models.file_batches import BadFiles
from audio_tf.models.given_clips import GivenClips, bound
from audio_tf.ops.checks import check_rates, check_sizes


class FileTask(GivenClips, compat.OnAnyBackend):
    """The base of a classifier that is trained and evaluated with files, too.

    A subclass has what `GivenClips` asks for, and is a `ClipClassifier` and a
    `keras.Model`.
    """

    # Makes a source of a name; within `fit` one that keeps what it decodes.
    _source_of = Source

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
                are not as many labels as files; if there are no clips, or no
                file can be used; if a waveform is of integers or has an axis
                for channels, or NaN or infinity where it is real; if `y` of
                an array has NaN, and the loss is one of Keras'; if clips
                have several labels or none, and the loss is a categorical
                cross entropy; or if `class_weight` has an unknown class, or
                clips of several. Of a dataset they are found when their batch
                comes.
        """
        given = bound(keras.Model.fit, args, kwargs)
        with (
            self.checking_stream(given),
            self.checking_stream(given, "validation_data"),
            self.keeping_averages(),
        ):
            return self.fit_given(given)

    def fit_given(self, given):
        """Does the work of `fit`, of the dict of its arguments; see there."""
        batch_size = given.get("batch_size")
        # Keras takes 1.5 for 0.5.
        check_rates(validation_split=given.get("validation_split") or 0.0)
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
                return compat.with_clips(keras.Model.fit, self, **given)
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
        # What `fit` evaluates has been looked at, and has begun to be read.
        if given.get("_use_cached_eval_dataset"):
            if not self.is_of_files(given["x"]):
                return self.evaluate_arrays(given)
            # Keras has an iterator ready, which files do not need.
            del given["_use_cached_eval_dataset"]
            return self.evaluate_given(given)
        with self.checking_stream(given):
            return self.evaluate_given(given)

    def evaluate_given(self, given):
        """Does the work of `evaluate`, of the dict of its arguments."""
        clips = self.find_files(given)
        self.replace_names(given)
        if clips is None:
            return self.evaluate_arrays(given)
        return self.evaluate_files(clips, **given)

    def evaluate_arrays(self, given):
        """Evaluates as Keras does, whose Task would preprocess once more."""
        with self.keeping_variables():
            return compat.with_clips(keras.Model.evaluate, self, **given)

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
            with self.keeping_variables():
                return compat.with_clips(keras.Model.predict, self, **given)
        return self.predict_files(clips, **given)

    def train_on_batch(self, *args, **kwargs):
        """Trains on a batch as `keras.Model.train_on_batch` does, or on files.

        All chunks of the files are one batch.
        """
        given, clips = self.files_of_batch(
            bound(keras.Model.train_on_batch, args, kwargs)
        )
        if clips is not None:
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
        given, clips = self.files_of_batch(
            bound(keras.Model.test_on_batch, args, kwargs)
        )
        if clips is not None:
            return self.evaluate(**given, verbose=0)
        self.replace_names(given)
        return keras.Model.test_on_batch(self, **given)

    def predict_on_batch(self, x):
        """Scores a batch as `keras.Model.predict_on_batch` does, or files."""
        given, clips = self.files_of_batch({"x": x})
        if clips is not None:
            return self.predict(x, verbose=0)
        return keras.Model.predict_on_batch(self, given["x"])

    def files_of_batch(self, given):
        """Finds the files of one batch, and leaves them where they are.

        Args:
            given: dict of arguments, as `find_files` takes it.

        Returns:
            Pair of the dict, with arrays for lists of waveforms, and of what
            `find_files` returns.
        """
        found = {**given}
        clips = self.find_files(found)
        return (found if clips is None else given), clips

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
