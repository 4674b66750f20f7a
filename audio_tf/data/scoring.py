"""Files to scores in memory: nothing is written to disk."""

import collections
import concurrent.futures
import os
import typing

import numpy as np

from audio_tf.audio import AudioError, load_audio
from audio_tf.corpora import Corpus
from audio_tf.data.chunks import Chunks, score_clips
from audio_tf.data.clips import Clips

# Clips are scored together until they have as many chunks, or as many samples
# if they are taken whole.
BATCH_SIZE = 64
MAX_SAMPLES = 2**24


class Scored(typing.NamedTuple):
    """The result for one file.

    Attributes:
        file: the path.
        scores: float64 array `(classes,)`, or `None`.
        reason: str, why there are no scores, or `None`.
    """

    file: object
    scores: np.ndarray | None
    reason: str | None


class ClipsInMemory(Clips):
    """Clips whose `entries` are float32 arrays `(samples,)`, not files."""

    def read(self, row, start=0, count=-1):
        end = None if count == -1 else start + count
        return self.entries[row][start:end]


def score_files(classifier, files, contents=None, strict=False):
    """Scores audio files in their order, each by the mean over its chunks.

    Files are decoded by as many threads as there are cores, a few ahead of
    what is scored, so that memory does not grow with their number.

    Args:
        classifier: an `AudioClassifier`, or what `export.load_classifier`
            gives.
        files: paths.
        contents: dict by path of the bytes of files that are not read from
            disk, or `None`.
        strict: bool. If True, the first bad file is an error.

    Yields:
        A `Scored` for each file. A file that cannot be scored leaves the
        others alone.

    Raises:
        AudioError: if `strict`, at the first file that is no audio.
        ValueError: if `strict`, at the first scores that are not finite.
    """
    labels = [str(number) for number in range(classifier.num_classes)]
    rate_hz = classifier.sample_rate_hz
    waiting, size = [], 0
    for file, audio, reason in decode_ahead(files, rate_hz, contents or {}):
        if strict and reason is not None:
            yield from score_group(classifier, waiting, labels, strict)
            raise AudioError(file, reason)
        waiting.append((file, audio, reason))
        size += len(audio)
        if size >= samples_at_once(classifier):
            yield from score_group(classifier, waiting, labels, strict)
            waiting, size = [], 0
    yield from score_group(classifier, waiting, labels, strict)


def samples_at_once(classifier):
    """Returns how many samples are scored together, at least."""
    if classifier.chunk_s is None:
        return MAX_SAMPLES
    return BATCH_SIZE * classifier.chunk_s * classifier.sample_rate_hz


def decode_ahead(files, sample_rate_hz, contents):
    """Decodes files by threads, a few ahead of what is asked for.

    Args:
        files: paths.
        sample_rate_hz: int, the rate wanted.
        contents: dict of bytes by path.

    Yields:
        Triple of the path, float32 samples `(samples,)`, and why there are
        none, or `None`.
    """

    def decode(file):
        try:
            return load_audio(file, sample_rate_hz, contents.get(file)), None
        except AudioError as error:
            return np.zeros(0, "float32"), error.reason

    workers = os.cpu_count()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        ahead = collections.deque()
        for file in files:
            ahead.append((file, pool.submit(decode, file)))
            if len(ahead) > workers:
                file, done = ahead.popleft()
                yield file, *done.result()
        while ahead:
            file, done = ahead.popleft()
            yield file, *done.result()


def score_group(classifier, group, labels, strict):
    """Scores some decoded files together.

    Args:
        classifier: the classifier.
        group: list of triples as `decode_ahead` yields them.
        labels: a name for each class.
        strict: bool, whether scores that are not finite are an error.

    Yields:
        A `Scored` for each file of the group.
    """
    usable = [(file, audio) for file, audio, reason in group if reason is None]
    if usable:
        files, entries = zip(*usable, strict=True)
        clips = ClipsInMemory(
            Corpus(files, [[] for _ in files], labels),
            entries,
            np.array([len(audio) for audio in entries], np.int64),
            classifier.sample_rate_hz,
            {},
            # There is no cache whose entries they would tell apart.
            sizes=np.zeros(len(files), np.int64),
            checksums=np.zeros(len(files), np.uint32),
        )
        chunks = Chunks(
            clips, classifier.chunk_s, silence_db=classifier.silence_db
        )
        rows = iter(
            score_clips(
                classifier, chunks, BATCH_SIZE, verbose=0, strict=strict
            )
        )
    for file, _, reason in group:
        if reason is not None:
            yield Scored(file, None, reason)
            continue
        scores = next(rows)
        if np.isfinite(scores).all():
            yield Scored(file, scores, None)
        else:
            yield Scored(file, None, "its scores are not finite")
