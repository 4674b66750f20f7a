"""Clips to labels in one call: files, folders, bytes or samples.

Nothing is written to disk, and no tf.data is used.
"""

import typing

import numpy as np

from audio_tf.audio import sources
from audio_tf.audio.chunking import Cutting
from audio_tf.audio.decode import AudioError
from audio_tf.ops.answers import answer, refusal
from audio_tf.ops.checks import check_sizes
from audio_tf.ops.clip_scores import clip_scores

BATCH_SIZE = 64
# Of the whole clips that are padded to one batch, the padding included.
MAX_SAMPLES = 2**24


class Computed(typing.NamedTuple):
    """The numbers that a model computes of one clip.

    Attributes:
        source: the `sources.Source`.
        value: float64 array `(values,)`, the mean over the clip's chunks, or
            `None`.
        reason: str, why there is none, or `None`.
    """

    source: sources.Source
    value: np.ndarray | None
    reason: str | None


class ClipClassifier:
    """The base of what answers which labels a clip has, by any runtime.

    Attributes:
        labels: list of str, the names of the classes, or `None`.
        num_classes: int, the number of classes.
        sample_rate_hz: int, the rate of the waveform.
        chunk_s: float, the seconds of the chunks that long clips are cut
            into, or `None` if clips are scored as a whole.
        chunk_hop_s: float, the seconds from chunk to chunk, or `None` for
            chunks side by side.
        silence_db: float, the peak in dB of full scale below which chunks are
            left out, or `None` if none is.
        max_samples: int, the samples of the longest row that can be scored,
            or `None` for any.
        embeds: bool, whether it embeds clips, too.
    """

    # Whether `score_and_embed_batch` can be asked for.
    embeds = False
    max_samples = None

    def score_batch(self, inputs):
        """Scores a batch of waveforms.

        Args:
            inputs: float32 array `(batch, samples)`, or a dict of it as
                `waveform` and of `lengths`, int32 `(batch,)`.

        Returns:
            Float array `(batch, classes)`.
        """
        raise NotImplementedError  # abstract

    def score_and_embed_batch(self, inputs):
        """Scores a batch of waveforms, and embeds it.

        Args:
            inputs: as `score_batch` takes them.

        Returns:
            Pair of float arrays, scores `(batch, classes)` and what the head
            makes them of, `(batch, dim)`.
        """
        raise NotImplementedError  # abstract; see `embeds`

    @property
    def label_names(self):
        """The labels, or numbers where the model knows none."""
        if self.labels is not None:
            return list(self.labels)
        return [str(index) for index in range(self.num_classes)]

    def classify(self, clips, top=5, strict=False):
        """Scores clips, and returns the best labels of each.

        A clip's scores are the mean over its chunks, as `audio-tf classify`
        prints them.

        ```python
        classifier.classify("dog.wav")["scores"]
        classifier.classify(["dog.wav", "more_sounds/"], top=1)
        classifier.classify((samples, 44_100))
        ```

        Args:
            clips: path of a file, of a folder of such, or a pattern; the
                bytes of a file; a pair of samples, floats `(samples,)` of
                full scale 1, and their rate in Hz; or a list of these.
            top: int, how many labels each clip gets, or `None` for all.
            strict: bool. If True, the first bad clip is an error.

        Returns:
            Dict of `file`, a str, and of `scores`, a dict of floats by label,
            the highest first; or, for a bad clip, of `file` and `error`. A
            list, a folder and a pattern give a list of such dicts. Clips that
            are no files are called `"clip"`, with their place in a list.

        Raises:
            AudioError: if `strict`, at the first clip that is no audio.
            TypeError: if there is something else among the clips.
            ValueError: if samples are integers or have more than one axis;
                or if `strict`, at the first scores that are not finite.
        """
        found, single = sources.find_sources(clips)
        answers = list(self.classify_sources(found, top, strict))
        return answers[0] if single else answers

    def classify_sources(self, found, top=5, strict=False):
        """Yields the answer of `classify` for each clip as soon as it is there.

        Args:
            found: iterable of `audio.sources.Source`.
            top: int or `None`.
            strict: bool; see `classify` for both.
        """
        if top is not None:
            check_sizes(top=top)
        labels = self.label_names
        for each in compute(self, self.score_batch, found, strict, "scores"):
            if each.reason is not None:
                yield refusal(each.source.name, each.reason)
            else:
                yield answer(each.source.name, each.value, labels, top)


def compute(classifier, function, found, strict, what):
    """Computes something of clips in their order, the mean over their chunks.

    Clips are decoded by as many threads as there are cores, a few ahead, so
    that memory does not grow with their number.

    Args:
        classifier: `ClipClassifier`.
        function: function of a batch, as `score_batch` takes it, to a float
            array `(batch, values)`.
        found: iterable of `audio.sources.Source`.
        strict: bool. If True, the first bad clip is an error.
        what: str, what is computed, for messages.

    Yields:
        A `Computed` for each clip. A bad one leaves the others alone.

    Raises:
        AudioError: if `strict`, at the first clip that is no audio.
        ValueError: if `strict`, at the first values that are not finite.
    """
    loaded = sources.load_ahead(found, classifier.sample_rate_hz)
    yield from compute_loaded(classifier, function, loaded, strict, what)


def compute_loaded(classifier, function, loaded, strict, what):
    """Computes something of clips that are decoded; see `compute`.

    Args:
        classifier: `ClipClassifier`.
        function: function of a batch.
        loaded: iterable of triples as `sources.load_ahead` yields them. In
            place of a `Source` may stand whatever has a `name`.
        strict: bool.
        what: str.

    Yields:
        A `Computed` for each clip.
    """
    waiting, size = [], 0
    for source, audio, reason in refuse_longer(classifier, loaded):
        if strict and reason is not None:
            yield from compute_group(
                classifier, function, waiting, strict, what
            )
            raise AudioError(source.name, reason)
        waiting.append((source, audio, reason))
        size += len(audio)
        if size >= samples_at_once(classifier):
            yield from compute_group(
                classifier, function, waiting, strict, what
            )
            waiting, size = [], 0
    yield from compute_group(classifier, function, waiting, strict, what)


def refuse_longer(classifier, loaded):
    """Takes the samples of clips that are longer than a model takes whole.

    Args:
        classifier: `ClipClassifier`.
        loaded: iterable of triples as `sources.load_ahead` yields them.

    Yields:
        Triples alike; a clip that is too long has none, and the reason.
    """
    longest = longest_clip(classifier)
    for source, audio, reason in loaded:
        if longest is not None and len(audio) > longest:
            reason = too_long(longest, classifier.sample_rate_hz)
            audio = audio[:0]
        yield source, audio, reason


def longest_clip(classifier):
    """Returns the samples of the longest clip that is taken, `None` for any.

    Args:
        classifier: `ClipClassifier`.
    """
    return classifier.max_samples if classifier.chunk_s is None else None


def timed_samples(classifier):
    """Returns the samples of a clip that a model is timed on.

    It is a chunk; of a model that takes clips whole it is a second, or the
    longest clip if that is shorter.

    Args:
        classifier: `ClipClassifier`.
    """
    size = round((classifier.chunk_s or 1.0) * classifier.sample_rate_hz)
    longest = longest_clip(classifier)
    return max(1, size if longest is None else min(size, longest))


def too_long(longest, sample_rate_hz):
    """Returns why a clip of more samples than `longest` cannot be used."""
    return (
        f"longer than the {longest / sample_rate_hz:g} s that the model takes"
    )


def samples_at_once(classifier):
    """Returns how many samples are scored together, at least."""
    if classifier.chunk_s is None:
        return MAX_SAMPLES
    return BATCH_SIZE * classifier.chunk_s * classifier.sample_rate_hz


def compute_group(classifier, function, group, strict, what):
    """Computes something of some decoded clips together; see `compute`.

    Args:
        classifier: `ClipClassifier`.
        function: function of a batch.
        group: list of triples as `sources.load_ahead` yields them.
        strict: bool.
        what: str.

    Yields:
        A `Computed` for each clip of the group.
    """
    clips = [audio for _, audio, reason in group if reason is None]
    rows = iter(())
    if clips:
        rows = iter(means(classifier, function, clips))
    for source, _, reason in group:
        value = None
        if reason is None:
            value = next(rows)
            if not np.isfinite(value).all():
                reason = f"its {what} are not finite"
                if strict:
                    raise ValueError(f"{source.name}: {reason}")
        yield Computed(source, None if reason else value, reason)


def means(classifier, function, clips):
    """Computes something of the chunks of clips, and the mean for each clip.

    Args:
        classifier: `ClipClassifier`.
        function: function of a batch.
        clips: list of float32 arrays `(samples,)`.

    Returns:
        Float64 array `(clips, values)`, NaN where a value is not finite.
    """
    values, index = [], []
    for inputs, owners in batches(clips, Cutting.of(classifier)):
        values.append(np.asarray(function(inputs), np.float64))
        index.append(owners)
    values, index = np.concatenate(values), np.concatenate(index)
    finite = np.isfinite(values).all(axis=1)
    found = clip_scores(
        np.where(finite[:, None], values, 0.0), index, len(clips)
    )
    found[np.unique(index[~finite])] = np.nan
    return found


def batches(clips, cutting):
    """Puts the chunks of clips, or whole clips, into batches.

    Args:
        clips: list of float32 arrays `(samples,)`.
        cutting: `audio.chunking.Cutting`.

    Yields:
        Pair of inputs as `ClipClassifier.score_batch` takes them and the clip
        of each row, int64 `(batch,)`.
    """
    if cutting.size is None:
        yield from whole_batches(clips)
        return
    chunks, owners = [], []
    for clip, audio in enumerate(clips):
        pieces, _ = cutting.cut(audio)
        for piece in pieces:
            chunks.append(piece)
            owners.append(clip)
            if len(chunks) == BATCH_SIZE:
                yield np.stack(chunks), np.array(owners)
                chunks, owners = [], []
    if chunks:
        yield np.stack(chunks), np.array(owners)


def whole_batches(clips):
    """Puts whole clips into batches, those of like length together.

    Args:
        clips: list of float32 arrays `(samples,)`.

    Yields:
        Pair of a dict of `waveform` and `lengths` and of the clip of each
        row, int64 `(batch,)`.
    """
    lengths = np.array([len(audio) for audio in clips])
    order = np.argsort(lengths, kind="stable")
    while len(order):
        fits = lengths[order] * np.arange(1, len(order) + 1) <= MAX_SAMPLES
        count = max(1, min(BATCH_SIZE, np.count_nonzero(fits)))
        rows, order = order[:count], order[count:]
        waveform = np.zeros((count, lengths[rows[-1]]), "float32")
        for place, row in enumerate(rows):
            waveform[place, : lengths[row]] = clips[row]
        yield (
            {"waveform": waveform, "lengths": lengths[rows].astype("int32")},
            rows,
        )
