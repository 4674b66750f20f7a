"""Whole utterances in batches: lengths, speakers, labels of frames."""

import dataclasses

import numpy as np
import tensorflow as tf

from audio_tf.data.chunks import Chunks
from audio_tf.data.frame_labels import PADDING_LABEL, align_labels
from audio_tf.ops.checks import check_sizes


@dataclasses.dataclass(frozen=True)
class Frames:
    """When the frames of a model are.

    Frame `i` has its middle at sample `first + i * step_size`.

    Attributes:
        sample_rate_hz: int, rate of the waveform.
        step_size: int, samples from frame to frame.
        first: float, the middle of the first frame in samples.
        count: callable from int array `(clips,)` of samples to frames;
            `1 + samples // step_size`, a centred spectrogram's, if `None`.
    """

    sample_rate_hz: int
    step_size: int
    first: float = 0.0
    count: object = None

    @classmethod
    def of(cls, features):
        """Those of `audio_tf.layers.SpeechFeatures`, or of a layer like it."""
        return cls(
            features.sample_rate_hz,
            features.step_size,
            features.first_step,
            features.step_lengths,
        )

    @property
    def rate_hz(self):
        """Frames per second."""
        return self.sample_rate_hz / self.step_size

    def lengths(self, samples):
        """Frames of clips of so many samples, int64 array `(clips,)`."""
        samples = np.asarray(samples)
        if self.count is None:
            return 1 + samples // self.step_size
        return np.asarray(self.count(samples), np.int64)


def limit_lengths(clips, min_s=0.0, max_s=np.inf):
    """Leaves out clips that are too short or too long, and names them.

    Returns:
        `Clips`, whose failures have the others.

    Raises:
        ValueError: if none is left, or the limits are not in order.
    """
    if not 0 <= min_s <= max_s:
        raise ValueError(
            "`min_s` must be at least 0 and at most `max_s`. "
            f"Received: min_s={min_s}, max_s={max_s}"
        )
    seconds = clips.lengths / clips.length_rate_hz
    kept = np.flatnonzero((seconds >= min_s) & (seconds <= max_s))
    if not len(kept):
        raise ValueError(
            f"None of {len(clips)} clips has {min_s} s to {max_s} s. Received: "
            f"{seconds.min():.2f} s to {seconds.max():.2f} s"
        )
    failures = dict(clips.failures)
    for row in np.setdiff1d(np.arange(len(clips)), kept):
        failures[str(clips.corpus.files[row])] = (
            f"{seconds[row]:.2f} s, not within {min_s} s to {max_s} s"
        )
    return dataclasses.replace(clips.select(kept), failures=failures)


class Utterances(Chunks):
    """Whole utterances, padded among others of like length.

    ```python
    clips = prepare(corpus.labelled(), 16_000, cache_dir)
    features = SpeechFeatures("paper")
    utterances = Utterances(
        clips, "frame_labels", Frames.of(features), by_time=True
    )
    ```

    Args:
        clips: `Clips` of a `SpeechCorpus`, of samples or of features.
        targets: what `dataset` has beside the inputs. `None`: nothing, for
            pre-training. `"speaker"`: the index of the speaker, int32
            `(batch,)`. `"frame_speaker"`: the same for each frame, int32
            `(batch, frames)`. `"frame_labels"`: the label of each frame,
            int32 `(batch, frames)`. Behind an utterance frames have
            `PADDING_LABEL`.
        frames: `Frames`, for the last two; clips of features have their own.
        buckets: int, how many lengths utterances are padded to.
        by_time: bool, whether rates that do not divide are meant, see
            `align_labels`.
        tolerance: int, labels that may lack or be left at the end.

    Raises:
        ValueError: if an utterance lacks the speaker or the labels, or rates
            or lengths do not fit: at once, not in the middle of training.
    """

    def __init__(
        self,
        clips,
        targets=None,
        frames=None,
        buckets=5,
        by_time=False,
        tolerance=3,
    ):
        if targets not in TARGETS:
            raise ValueError(
                f"`targets` must be one of {list(TARGETS)}. "
                f"Received: targets={targets!r}"
            )
        self.kind = targets
        self.of_frames = targets in ("frame_speaker", "frame_labels")
        self.dim = clips.dim
        frames = clips.frames or frames
        if self.of_frames:
            check_frames(frames, clips)
        self.frames = frames
        self.by_time = by_time
        self.tolerance = tolerance
        check_sizes(buckets=buckets)
        super().__init__(clips, chunk_s=None)
        self.bounds = super().length_bounds(buckets)
        # Counted once: `frames` may run a layer to count.
        self.widths = self.count_frames(self.bounds) if self.of_frames else None

    def clip_targets(self):
        return TARGETS[self.kind](self)

    def no_targets(self):
        """Nothing to be trained on."""
        return np.zeros(len(self.clips), np.int32)

    def speakers(self):
        """The speaker of each utterance, int32 `(clips,)`."""
        corpus = self.clips.corpus
        speakers = corpus.speakers
        if (speakers < 0).any():
            unknown = np.flatnonzero(speakers < 0)
            raise ValueError(
                f"{len(unknown)} utterances have no speaker. Received: "
                f"{corpus.utterances[unknown[0]]}"
            )
        return speakers

    def frame_speakers(self):
        """For each utterance an int32 array `(frames,)` of its speaker."""
        counts = self.count_frames(self.clips.lengths)
        return [
            np.full(count, speaker, np.int32)
            for count, speaker in zip(counts, self.speakers(), strict=True)
        ]

    def frame_labels(self):
        """For each utterance the label of each frame."""
        corpus = self.clips.corpus
        labelled = len(corpus.labelled())
        if labelled < len(corpus):
            raise ValueError(
                f"{len(corpus) - labelled} of {len(corpus)} utterances have "
                "no labels of frames; `corpus.labelled()` has the others"
            )
        counts = self.count_frames(self.clips.lengths)
        return [
            align_labels(
                labels,
                corpus.label_rate_hz,
                self.frames.rate_hz,
                count,
                name,
                self.frames.first / self.frames.sample_rate_hz,
                self.by_time,
                self.tolerance,
            )
            for labels, count, name in zip(
                corpus.frame_labels, counts, corpus.utterances, strict=True
            )
        ]

    def count_frames(self, lengths):
        """Frames of utterances of such lengths, int64 `(utterances,)`."""
        if self.dim is not None:
            return np.asarray(lengths, np.int64)
        return self.frames.lengths(lengths)

    def length_bounds(self):
        """Lengths that utterances are padded to."""
        return self.bounds

    def batch_targets(self, clips, width):
        if not self.of_frames:
            return self.targets[clips]
        frames = self.widths[np.searchsorted(self.bounds, width)]
        padded = np.full((len(clips), frames), PADDING_LABEL, np.int32)
        for row, clip in enumerate(clips):
            labels = self.targets[clip]
            padded[row, : len(labels)] = labels
        return padded

    def target_spec(self):
        shape = (None, None) if self.of_frames else (None,)
        return tf.TensorSpec(shape, tf.int32)

    def input_spec(self):
        if self.dim is None:
            return super().input_spec()
        return "features", tf.TensorSpec((None, None, self.dim), tf.float32)

    def read(self, row, offset=0):
        """One utterance: float32 `(samples,)`, or `(frames, dim)`."""
        audio = super().read(row, offset)
        return audio if self.dim is None else audio.reshape(-1, self.dim)

    def dataset(self, batch_size, **kwargs):
        """Batches for `fit`, `evaluate` and `predict`.

        Args:
            batch_size: int.
            **kwargs: as `Chunks.dataset` takes them.

        Returns:
            `tf.data.Dataset` of inputs and targets, or of inputs alone if
            there are no targets. Inputs are a dict of `waveform`, float32
            `(batch, samples)`, or `features`, float32 `(batch, frames, dim)`,
            and their `lengths`, int32 `(batch,)`.
        """
        dataset = super().dataset(batch_size, **kwargs)
        if self.kind is None:
            return dataset.map(lambda inputs, _: inputs)
        return dataset


def check_frames(frames, clips):
    """Raises a `ValueError` if these are no frames of such clips."""
    if frames is None:
        raise ValueError("Targets of frames need `frames`. Received: None")
    if frames.sample_rate_hz != clips.sample_rate_hz:
        raise ValueError(
            f"Frames of a waveform at {frames.sample_rate_hz} Hz do not fit "
            f"clips at {clips.sample_rate_hz} Hz"
        )


TARGETS = {
    None: Utterances.no_targets,
    "speaker": Utterances.speakers,
    "frame_speaker": Utterances.frame_speakers,
    "frame_labels": Utterances.frame_labels,
}
