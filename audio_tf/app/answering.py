"""Clips that are given to the page, and the answers of models to them.

Nothing here knows of Gradio.
"""

import dataclasses
import threading

import numpy as np

from audio_tf import console
from audio_tf.audio.decode import (
    AudioError,
    TooLongError,
    open_audio,
    read_opened,
)
from audio_tf.audio.sources import Source
from audio_tf.ops.answers import refusal
from audio_tf.ops.checks import closest
from audio_tf.terminal import printable

MAX_BYTES = 25 * 2**20  # Of one file.
MAX_S = 600  # Of one clip.
MAX_EXPLAINED_S = 30  # It takes some hundred scorings for each second.
# As many as `MAX_S` has at the rate of a good recorder, so that clips of higher
# rates must be shorter: a file of few bytes may unpack to any number.
MAX_SAMPLES = MAX_S * 48_000
# What commands tell in one line, such as an `ImportError` for the runtime of a
# file that is no preset: that of one model is no reason against the others.
REFUSALS = tuple(
    each for each in console.EXPECTED if issubclass(each, Exception)
)


@dataclasses.dataclass(frozen=True)
class Clip:
    """A clip that was given to the page, decoded.

    Attributes:
        name: str, the name of its file.
        samples: float32 array `(samples,)`, full scale 1.
        rate_hz: int, the file's own rate.
        error: str, why there are no samples, or `None`.
    """

    name: str
    samples: np.ndarray | None
    rate_hz: int | None
    error: str | None = None

    @property
    def seconds(self):
        """The length of the clip in seconds, a float."""
        return len(self.samples) / self.rate_hz

    @property
    def source(self):
        """The clip as an `audio.sources.Source`, which classifiers take."""
        return Source(self.name, samples=self.samples, rate_hz=self.rate_hz)


def read_clip(name, content):
    """Decodes a file that was given to the page.

    Args:
        name: str, the name of the file.
        content: bytes of the file.

    Returns:
        `Clip`. One that cannot be used has the error that the command line
        gives for it; longer ones than the page takes have an error, too.
    """
    if len(content) > MAX_BYTES:
        return Clip(name, None, None, too_large(len(content)))
    rate_hz = 0
    try:
        with open_audio(name, content) as (file, complete):
            rate_hz = file.samplerate
            most = min(MAX_SAMPLES, MAX_S * rate_hz)
            samples, _ = read_opened(name, file, complete, most)
    except TooLongError:
        return Clip(name, None, None, too_long(rate_hz))
    except AudioError as error:
        return Clip(name, None, None, error.reason)
    return Clip(name, samples, rate_hz)


def too_large(size):
    """Returns why a file of so many bytes is refused."""
    return (
        f"larger than the page takes ({size / 2**20:.1f} MiB, at most "
        f"{MAX_BYTES / 2**20:.0f}); audio-tf classify takes any"
    )


def too_long(rate_hz):
    """Returns why a clip of such a rate with too many samples is refused."""
    most_s = min(MAX_S, MAX_SAMPLES / rate_hz)
    return (
        f"longer than the page takes (at most {most_s:.0f} s at {rate_hz} Hz); "
        "audio-tf classify takes any"
    )


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of one model to a clip.

    Attributes:
        found: dict as `AudioClassifier.classify` returns it, of all labels;
            with `error` in place of `scores` if there are none.
        samples: float32 array `(samples,)`, the clip at the model's rate, or
            `None` without scores.
        rate_hz: int, the model's rate.
        spans_s: float array `(frames, 2)`, the seconds that each frame spans,
            or `None` without scores.
        frames: float array `(frames, labels)`, the scores of each frame, in
            the order of `labels`, or `None`.
        labels: list of str, the labels in the order of `frames`.
    """

    found: dict
    samples: np.ndarray | None = None
    rate_hz: int | None = None
    spans_s: np.ndarray | None = None
    frames: np.ndarray | None = None
    labels: list = dataclasses.field(default_factory=list)

    @property
    def error(self):
        """The reason why there are no scores, a str, or `None`."""
        return self.found.get("error")


def of_each(names, ask, refuse):
    """Asks several models, each of which may fail alone.

    Args:
        names: list of str, the models.
        ask: function of a name to what that model says.
        refuse: function of the reason, a str, why a model says nothing, to
            what stands in its place.

    Returns:
        Dict by name.
    """
    found = {}
    for name in names:
        try:
            found[name] = ask(name)
        except REFUSALS as error:
            found[name] = refuse(console.one_line(error))
    return found


class Models:
    """The classifiers that the page offers, each loaded when it is asked for.

    Args:
        names: list of str, what `load` takes; the first is the page's choice.
        load: function of a name to an `AudioClassifier`.
        purposes: dict by name of what a model is for, a sentence, of those
            that are known.
    """

    def __init__(self, names, load, purposes={}):
        self.names = list(dict.fromkeys(names))
        self.load = load
        self.purposes = purposes
        self.loaded = {}
        # Keras traces a model's graphs where they are first needed, and one
        # clip after the other takes no longer than both at once.
        self.lock = threading.Lock()

    def classifier(self, name):
        """Returns a classifier by its name.

        Raises:
            ValueError: if the page does not offer it: a request names a
                model, and may not have any folder be opened.
        """
        if name not in self.names:
            raise ValueError(
                f"`model` must be one of {', '.join(self.names)}"
                f"{closest(name, self.names)}. "
                f"Received: model={printable(name, 200)}"
            )
        if name not in self.loaded:
            self.loaded[name] = self.load(name)
        return self.loaded[name]

    def classify(self, name, clip, top=None):
        """Scores a clip, as `audio-tf classify` does.

        Args:
            name: str, the model.
            clip: `Clip`.
            top: int, how many labels there are, or `None` for all.

        Returns:
            Dict as `AudioClassifier.classify` returns it.
        """
        with self.lock:
            classifier = self.classifier(name)
            if clip.error is not None:
                return refusal(clip.name, clip.error)
            return next(classifier.classify_sources([clip.source], top))

    def answer(self, name, clip):
        """Scores a clip and each of its frames.

        Args:
            name: str, the model.
            clip: `Clip`.

        Returns:
            `Answer`.
        """
        found = self.classify(name, clip)
        if "error" in found:
            return Answer(found)
        with self.lock:
            classifier = self.classifier(name)
            rate_hz = classifier.sample_rate_hz
            samples = clip.source.load(rate_hz)
            spans, frames = classifier.frames_of(samples)
        return Answer(
            found,
            samples,
            rate_hz,
            np.array(spans) / rate_hz,
            np.asarray(frames, np.float64),
            classifier.label_names,
        )

    def answers(self, names, clip):
        """Asks several models, each of which may fail alone.

        Args:
            names: list of str, the models.
            clip: `Clip`.

        Returns:
            Dict of `Answer` by name; that of a model that cannot be loaded
            has the error.
        """

        def refuse(reason):
            return Answer(refusal(clip.name, reason))

        return of_each(names, lambda name: self.answer(name, clip), refuse)

    def reasons(self, names, clip):
        """Asks several models what their answers rest on, as `answers` does.

        Args:
            names: list of str, the models.
            clip: `Clip`.

        Returns:
            Dict of what `explain` returns by name.
        """

        def refuse(reason):
            return refusal(clip.name, reason)

        return of_each(names, lambda name: self.explain(name, clip), refuse)

    def explain(self, name, clip):
        """Weighs every patch of a clip by what it says for its best label.

        Args:
            name: str, the model.
            clip: `Clip`.

        Returns:
            Dict as `AudioClassifier.explain` returns it; with `error` in place
            of weights where there are none.
        """
        if clip.error is not None:
            return refusal(clip.name, clip.error)
        if clip.seconds > MAX_EXPLAINED_S:
            return refusal(
                clip.name,
                f"longer than the page explains ({clip.seconds:.0f} s, at most "
                f"{MAX_EXPLAINED_S}); audio-tf explain takes any",
            )
        with self.lock:
            return self.classifier(name).explain((clip.samples, clip.rate_hz))
