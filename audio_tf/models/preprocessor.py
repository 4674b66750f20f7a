"""Files and label names to what a classifier takes, on KerasHub's classes."""

import keras
import keras_hub
import numpy as np

from audio_tf import compat
from audio_tf.audio.chunking import Cutting, check_chunks
from audio_tf.audio.decode import AudioError
from audio_tf.audio.resampling import RESAMPLER
from audio_tf.audio.rows import load_rows
from audio_tf.audio.sources import Source
from audio_tf.models import preset_tasks, presets
from audio_tf.models.inputs import complete
from audio_tf.models.named_files import (
    check_counts,
    check_waveform,
    file_names,
    is_one_name,
    is_text,
    label_rows,
    take_rows,
)
from audio_tf.ops import checks


@keras.saving.register_keras_serializable("audio_tf")
class WaveformConverter(keras_hub.layers.AudioConverter):
    """A converter of audio files to the waveform that a model takes.

    Files of any format, rate and number of channels are decoded, averaged to
    mono and resampled by `audio_tf.audio`, and cut into chunks as
    `AudioClassifier.classify` cuts them. Waveforms are checked, and stay as
    they are. Within `tf.data` it works too, by `dataset.map(converter)`.

    Args:
        sample_rate_hz: int, the rate of the model.
        chunk_s: float, the seconds of a chunk, or `None` for whole clips.
        chunk_hop_s: float, the seconds from chunk to chunk, or `None` for
            chunks side by side.
        silence_db: float, the peak in dB of full scale below which chunks are
            left out, or `None` to keep all.
        mono: bool, always True: the channels of a file are averaged.
        resampler: str, the resampler that the model was made with; a warning
            if this version has another. `None` is that of this version.
        **kwargs: `name`, `dtype` and `trainable` of `keras.layers.Layer`.

    Call arguments:
        x: path, list or string tensor `(clips,)` of paths, or a floating
            waveform `(batch, samples)` at `sample_rate_hz`.

    Returns:
        Of files, the chunks of all clips, float32 `(chunks, samples)`, or
        whole clips as a dict of `waveform` and `lengths`; else `x`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument does not fit, at the first file that is no
            audio, or if what is no file is no waveform either.

    Examples:
        >>> import soundfile
        >>> from audio_tf import models
        >>> soundfile.write("two_seconds.wav", [[0.5, 0.5]] * 16_000, 8_000)
        >>> converter = models.WaveformConverter(16_000, chunk_s=1.0)
        >>> tuple(converter("two_seconds.wav").shape)
        (2, 16000)
    """

    def __init__(
        self,
        sample_rate_hz,
        chunk_s=None,
        chunk_hop_s=None,
        silence_db=None,
        mono=True,
        resampler=None,
        **kwargs,
    ):
        checks.reject_unknown(type(self).__name__, kwargs, self.arguments())
        super().__init__(**kwargs)
        checks.check_sizes(sample_rate_hz=sample_rate_hz)
        check_chunks(chunk_s, chunk_hop_s, silence_db)
        if mono is not True:
            raise ValueError(
                f"`mono` must be True, all models are. Received: mono={mono!r}"
            )
        if resampler is not None:
            presets.compare_resampler("The audio converter", resampler)
        self.sample_rate_hz = sample_rate_hz
        self.chunk_s = chunk_s
        self.chunk_hop_s = chunk_hop_s
        self.silence_db = silence_db
        self.built = True

    @classmethod
    def arguments(cls):
        """Lists the names of the constructor's arguments."""
        own = checks.parameters_of(cls, last=WaveformConverter)
        return [*own, "name", "dtype", "trainable"]

    @property
    def chunk_samples(self):
        """The samples of a chunk, `None` for whole clips."""
        return Cutting.of(self).size

    def audio_shape(self):
        """Returns the shape of one row, `(None,)` for clips of any length."""
        return (self.chunk_samples,)

    def call(self, x):
        return self.convert(x)[0]

    def convert(self, x, report=None, source_of=Source):
        """Converts files to rows, each of which is a chunk or a whole clip.

        Args:
            x: as the layer is called with.
            report: function of the name of a bad file and of the reason;
                such a file has no rows. `None` makes it an error.
            source_of: function of a name to the `audio.sources.Source` that
                reads it.

        Returns:
            Pair of what the layer returns and of the clip of each row, int64
            `(rows,)`, or `None` if `x` are waveforms.
        """
        if compat.in_tf_graph():
            return self.convert_in_graph(x, report, source_of)
        names = file_names(x)
        if names is None:
            check_waveform(x)
            return x, None
        rows = self.load(names, report, source_of)
        return self.as_inputs(*rows[:2]), rows.clips

    def convert_in_graph(self, x, report, source_of):
        """Does the work of `convert` where `tf.data` traces it."""
        if not is_text(x):
            complete(x, "waveform")
            return x, None
        from audio_tf.audio import graph_rows

        waveform, lengths, clips = graph_rows.run_in_python(
            lambda names: tuple(
                self.load(file_names(names), report, source_of)
            ),
            [x],
            [
                ((None, self.chunk_samples), "float32"),
                ((None,), "int32"),
                ((None,), "int64"),
            ],
        )
        return self.as_inputs(waveform, lengths), clips

    def load(self, names, report, source_of):
        """Loads files by their names as `audio.rows.Rows`."""
        try:
            return load_rows(
                map(source_of, names),
                self.sample_rate_hz,
                Cutting.of(self),
                report,
            )
        except AudioError as error:
            # Keras adds the arguments of the call to a message, for which it
            # makes the error anew, of its message alone.
            raise ValueError(str(error)) from error

    def as_inputs(self, waveform, lengths):
        """Returns rows as a model takes them."""
        if self.chunk_s is None:
            return {"waveform": waveform, "lengths": lengths}
        return waveform

    @classmethod
    def from_preset(cls, preset, **kwargs):
        """Builds the converter of a classifier's preset.

        Args:
            preset: as `AudioClassifier.from_preset` takes it. Of a preset
                from before there were converters, one is made of what the
                model says.
            **kwargs: arguments that override the preset's.

        Raises:
            TypeError: if there is an unknown argument; it names the closest.
            ValueError: if there is no such preset, or it has no classifier.
        """
        return preset_tasks.load_converter(cls, preset, kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "sample_rate_hz": self.sample_rate_hz,
            "chunk_s": self.chunk_s,
            "chunk_hop_s": self.chunk_hop_s,
            "silence_db": self.silence_db,
            "mono": True,
            "resampler": RESAMPLER,
        }


@keras.saving.register_keras_serializable("audio_tf")
class AudioClassifierPreprocessor(keras_hub.models.Preprocessor):
    """A preprocessor of files and label names for `AudioClassifier`.

    The chunks of a clip are rows of their own, which have the targets and the
    weight of the clip. `AudioClassifier` has such a preprocessor by default,
    and uses it in `fit`. By hand, with a batch for each clip:

    ```python
    preprocessor = classifier.preprocessor
    x, y = preprocessor(["a.wav", "b.wav"], ["dog", "rain"])
    dataset.map(preprocessor).unbatch().batch(32)  # of paths and names
    ```

    Args:
        audio_converter: `WaveformConverter`.
        labels: names of the classes in the order of the scores, or `None`.
        **kwargs: `name`, `dtype`, `trainable` and `config_file` of
            `keras_hub.models.Preprocessor`.

    Call arguments:
        x: as `WaveformConverter` is called with.
        y: the labels of each clip, or `None`: a name `(clips,)`, several in a
            list of lists or `(clips, names)`, where `""` is no label, or
            numbers `(clips, ...)`, which stay as they are.
        sample_weight: `(clips,)`, or `None`.

    Returns:
        `x`, `(x, y)` or `(x, y, sample_weight)`, the names as multi-hot
        float32 `(rows, classes)`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if a name is no label, it names the closest; if there are
            not as many labels as files; or at the first file that is no
            audio.
    """

    audio_converter_cls = WaveformConverter

    def __init__(self, audio_converter, labels=None, **kwargs):
        checks.reject_unknown(type(self).__name__, kwargs, self.arguments())
        super().__init__(**kwargs)
        if not isinstance(audio_converter, WaveformConverter):
            raise ValueError(
                "`audio_converter` must be a WaveformConverter. "
                f"Received: {type(audio_converter).__name__}"
            )
        self.audio_converter = audio_converter
        self.labels = None if labels is None else list(labels)
        self.built = True

    @classmethod
    def arguments(cls):
        """Lists the names of the constructor's arguments."""
        own = checks.parameters_of(cls, last=AudioClassifierPreprocessor)
        return [*own, "name", "dtype", "trainable", "config_file"]

    @classmethod
    def of(cls, model):
        """Makes the preprocessor of a classifier from what that one says.

        Args:
            model: `AudioClassifier`.
        """
        converter = WaveformConverter(
            **{
                name: getattr(model, name)
                for name in preset_tasks.CONVERTER_ARGUMENTS
            }
        )
        return cls(converter, labels=model.labels)

    def check_model(self, model):
        """Checks that a classifier says the same as its preprocessor.

        Raises:
            ValueError: if they disagree; it says what both are.
        """
        facts = [
            (name, getattr(self.audio_converter, name), getattr(model, name))
            for name in preset_tasks.CONVERTER_ARGUMENTS
        ]
        facts.append(("labels", self.labels, model.labels))
        for name, found, expected in facts:
            if found != expected:
                raise ValueError(
                    f"The preprocessor must have the `{name}` of the model. "
                    f"Received: {name}={found} of the preprocessor, "
                    f"{name}={expected} of the model"
                )

    def call(self, x, y=None, sample_weight=None):
        return self.prepare(x, y, sample_weight)

    def prepare(
        self, x, y=None, sample_weight=None, report=None, source_of=Source
    ):
        """Does what calling the layer does, and can leave bad files out.

        Args:
            x: as the layer is called with.
            y: as well.
            sample_weight: as well.
            report: function of the name of a bad file and of the reason;
                such a file has no rows. `None` makes it an error.
            source_of: as `WaveformConverter.convert` takes it.

        Returns:
            As the layer returns.
        """
        if is_one_name(x):
            beside = [y, sample_weight]
            if compat.in_tf_graph():
                beside = [b if b is None else b[None] for b in beside]
            else:
                beside = [b if b is None else [b] for b in beside]
            y, sample_weight = beside
        y = self.targets(y)
        if not compat.in_tf_graph():
            check_counts(file_names(x), y=y, sample_weight=sample_weight)
        x, clips = self.audio_converter.convert(x, report, source_of)
        if clips is not None:
            y = take_rows(y, clips)
            sample_weight = take_rows(sample_weight, clips)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def targets(self, y):
        """Returns label names as multi-hot targets; other targets as they are.

        Args:
            y: as the layer is called with.

        Raises:
            ValueError: if a name is no label; it names the closest.
        """
        if compat.in_tf_graph():
            if y is None or not is_text(y):
                return y
            from audio_tf.audio import graph_rows

            spec = ((None, len(self.known_labels())), "float32")
            return graph_rows.run_in_python(
                lambda names: (self.targets(names),), [y], [spec]
            )[0]
        rows = label_rows(y)
        if rows is None:
            return y
        labels = self.known_labels()
        column = {label: index for index, label in enumerate(labels)}
        targets = np.zeros((len(rows), len(labels)), "float32")
        for place, names in enumerate(rows):
            for name in names:
                if name not in column:
                    raise ValueError(
                        f"Labels must be among the {len(labels)} of the model"
                        f"{checks.closest(name, labels)}. "
                        f"Received: {name!r} for clip {place}"
                    )
                targets[place, column[name]] = 1.0
        return targets

    def known_labels(self):
        """Returns the labels; without any it is a `ValueError`."""
        if self.labels is None:
            raise ValueError(
                "Names of labels are for a model that has `labels`; this one "
                "has `num_classes` alone, and takes numbers"
            )
        return self.labels

    @classmethod
    def from_preset(cls, preset, **kwargs):
        """Builds the preprocessor of a classifier's preset.

        Args:
            preset: as `WaveformConverter.from_preset` takes it.
            **kwargs: arguments that override the preset's.

        Raises:
            TypeError: if there is an unknown argument; it names the closest.
            ValueError: if there is no such preset, or it has no classifier.
        """
        return preset_tasks.load_preprocessor(
            cls, WaveformConverter, preset, kwargs
        )

    def get_config(self):
        return {**super().get_config(), "labels": self.labels}
