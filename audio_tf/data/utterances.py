"""Whole utterances in batches: lengths, speakers, labels of frames."""

import dataclasses
import typing

import numpy as np
import tensorflow as tf

from audio_tf.data.chunks import Chunks
from audio_tf.data.frame_labels import PADDING_LABEL, align_labels
from audio_tf.ops.checks import check_sizes


class Utterances(Chunks):
    """Whole utterances, padded among others of like length.

    ```python
    clips = prepare(corpus.labelled(), 16_000, cache_dir)
    features = SpeechFeatures("paper")
    utterances = Utterances(
        clips, "frame_labels", Frames.of(features), by_time=True
    )
    ```

    Every utterance is one chunk, from its first sample to its last.

    Args:
        clips: `Clips` of a `SpeechCorpus`, of samples or of features.
        targets: key of `TARGETS`, what `dataset` has beside the inputs.
            `None`: nothing, for pre-training. `"speaker"`: the index of the
            speaker, int32 `(batch,)`. `"frame_speaker"`: the index of the
            speaker for each frame, int32 `(batch, frames)`. `"frame_labels"`:
            the label of each frame, int32 `(batch, frames)`. Frames behind
            the end of an utterance have `PADDING_LABEL`.
        frames: `Frames`, for targets of frames; clips of features have their
            own.
        buckets: int, how many lengths utterances are padded to.
        by_time: bool, whether rates of labels and frames that do not divide
            are meant, see `align_labels`.
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
        self.kind = TARGETS[targets]
        self.dim = clips.dim
        frames = clips.frames or frames
        if self.kind.of_frames:
            check_frames(frames, clips)
        self.frames = frames
        self.by_time = by_time
        self.tolerance = tolerance
        check_sizes(buckets=buckets)
        super().__init__(clips, chunk_s=None)
        self.bounds = super().length_bounds(buckets)
        # Counted once: `frames` may run a layer to count.
        self.widths = (
            self.count_frames(self.bounds) if self.kind.of_frames else None
        )

    def clip_targets(self):
        return self.kind.read(self)

    def no_targets(self):
        """Returns zeros, int32 `(clips,)`, that `dataset` leaves out."""
        return np.zeros(len(self.clips), np.int32)

    def speakers(self):
        """Returns the index of each utterance's speaker, int32 `(clips,)`."""
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
        """Returns each utterance's speaker as an int32 array `(frames,)`."""
        counts = self.count_frames(self.clips.lengths)
        return [
            np.full(count, speaker, np.int32)
            for count, speaker in zip(counts, self.speakers(), strict=True)
        ]

    def frame_labels(self):
        """Returns each utterance's labels as an int array `(frames,)`."""
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
                self.frames.first_middle / self.frames.sample_rate_hz,
                self.by_time,
                self.tolerance,
            )
            for labels, count, name in zip(
                corpus.frame_labels, counts, corpus.utterances, strict=True
            )
        ]

    def count_frames(self, lengths):
        """Returns the frames of utterances of such lengths, int64 `(clips,)`.

        Args:
            lengths: int array `(clips,)` of samples, or of frames if the clips
                are features.
        """
        if self.dim is not None:
            return np.asarray(lengths, np.int64)
        return self.frames.lengths(lengths)

    def length_bounds(self):
        """Returns the lengths that utterances are padded to, ascending."""
        return self.bounds

    def batch_targets(self, clips, width):
        if not self.kind.of_frames:
            return self.targets[clips]
        frames = self.widths[np.searchsorted(self.bounds, width)]
        padded = np.full((len(clips), frames), PADDING_LABEL, np.int32)
        for row, clip in enumerate(clips):
            labels = self.targets[clip]
            padded[row, : len(labels)] = labels
        return padded

    def target_spec(self):
        shape = (None, None) if self.kind.of_frames else (None,)
        return tf.TensorSpec(shape, tf.int32)

    def input_spec(self):
        if self.dim is None:
            return super().input_spec()
        return "features", tf.TensorSpec((None, None, self.dim), tf.float32)

    def read(self, row, offset=0):
        """Reads one utterance: float32 `(samples,)`, or `(frames, dim)`."""
        audio = super().read(row, offset)
        return audio if self.dim is None else audio.reshape(-1, self.dim)

    def dataset(self, batch_size, **kwargs):
        """Returns batches for `fit`, `evaluate` and `predict`.

        Args:
            batch_size: int.
            **kwargs: further arguments of `Chunks.dataset`.

        Returns:
            `tf.data.Dataset` of inputs and targets, or of inputs alone if
            there are no targets. Inputs are a dict of `waveform`, float32
            `(batch, samples)`, or `features`, float32 `(batch, frames, dim)`,
            and their `lengths`, int32 `(batch,)`.
        """
        dataset = super().dataset(batch_size, **kwargs)
        if self.kind.inputs_alone:
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


@dataclasses.dataclass(frozen=True)
class Targets:
    """One kind of targets of utterances.

    Attributes:
        read: function of `Utterances` to the targets of all clips.
        of_frames: bool, whether there is one for each frame.
        inputs_alone: bool, whether batches have inputs and no targets.
    """

    read: typing.Callable
    of_frames: bool = False
    inputs_alone: bool = False


TARGETS = {
    None: Targets(Utterances.no_targets, inputs_alone=True),
    "speaker": Targets(Utterances.speakers),
    "frame_speaker": Targets(Utterances.frame_speakers, of_frames=True),
    "frame_labels": Targets(Utterances.frame_labels, of_frames=True),
}
