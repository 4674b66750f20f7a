"""Times of frames, and the labels of an utterance that each frame has."""

import dataclasses
import math
import typing

import numpy as np

# The label of the frames behind an utterance. Pass it to the loss, as
# `SparseCategoricalCrossentropy(ignore_class=PADDING_LABEL)`.
PADDING_LABEL = -1


@dataclasses.dataclass(frozen=True)
class Frames:
    """The times of the frames of features or of a model.

    The middle of frame `i` is at sample `first_middle + i * frame_size`.

    Attributes:
        sample_rate_hz: int, rate of the waveform.
        frame_size: int, samples from one frame to the next.
        first_middle: float, the middle of the first frame in samples.
        count: function from the samples of clips, int array `(clips,)`, to
            the number of their frames; `None` for
            `1 + samples // frame_size`, as a centred spectrogram has.

    Examples:
        >>> from audio_tf import data
        >>> frames = data.Frames(sample_rate_hz=16_000, frame_size=160)
        >>> frames.rate_hz, frames.lengths([16_000]).tolist()
        (100.0, [101])
    """

    sample_rate_hz: int
    frame_size: int
    first_middle: float = 0.0
    count: typing.Callable | None = None

    @classmethod
    def of(cls, features):
        """Returns when the frames of features are.

        Args:
            features: `audio_tf.layers.SpeechFeatures`, or another object with
                its `sample_rate_hz`, `frame_size`, `first_middle` and
                `frame_lengths`.
        """
        return cls(
            features.sample_rate_hz,
            features.frame_size,
            features.first_middle,
            features.frame_lengths,
        )

    @property
    def rate_hz(self):
        """Returns the number of frames in a second."""
        return self.sample_rate_hz / self.frame_size

    def lengths(self, samples):
        """Returns the frames of clips of so many samples, int64 `(clips,)`."""
        samples = np.asarray(samples)
        if self.count is None:
            return 1 + samples // self.frame_size
        return np.asarray(self.count(samples), np.int64)


def labels_a_frame(label_rate_hz, frame_rate_hz, by_time=False, name="labels"):
    """Returns how many labels there are to a frame.

    With equal rates it is one; where labels are an exact multiple as frequent,
    that. Any other pair of rates is most often a mistake and is refused,
    unless `by_time` says that it is meant, as for Audio ALBERT's frames of
    37.5 ms and CPC's labels of 10 ms.

    Args:
        label_rate_hz: float, labels per second.
        frame_rate_hz: float, frames per second.
        by_time: bool, whether to take rates that do not divide.
        name: str, whose labels they are, for messages.

    Returns:
        Float.

    Raises:
        ValueError: if a rate is not positive, or the two do not fit.

    Examples:
        >>> from audio_tf.data import frame_labels
        >>> frame_labels.labels_a_frame(100, 50)
        2.0
    """
    rates = (label_rate_hz, frame_rate_hz)
    if not all(0 < rate < math.inf for rate in rates):
        raise ValueError(
            "Rates must be positive. Received: "
            f"label_rate_hz={label_rate_hz}, frame_rate_hz={frame_rate_hz}"
        )
    ratio = label_rate_hz / frame_rate_hz
    # A millionth is a frame in hours: rounding of a hop, not another rate.
    whole = round(ratio) >= 1 and abs(ratio / round(ratio) - 1) <= 1e-6
    if not whole and not by_time:
        raise ValueError(
            f"{name}: labels at {label_rate_hz:.10g} Hz do not fit frames at "
            f"{frame_rate_hz:.10g} Hz, which they must equal or be a multiple "
            "of. `by_time` takes the label at the middle of each frame."
        )
    return ratio


def align_labels(
    labels,
    label_rate_hz,
    frame_rate_hz,
    frames,
    name="labels",
    first_s=0.0,
    by_time=False,
    tolerance=3,
):
    """Returns the label of each frame.

    Frame `i` has its middle at `first_s + i / frame_rate_hz` and takes the
    label of that moment, number `floor(middle * label_rate_hz)`: label
    `i * k`, where `k` is `labels_a_frame`.

    At the end, up to `tolerance` labels may lack, and the last is repeated;
    as many may be left behind the last frame, and are cut. More means another
    recording or rate. CPC's labels need the default of 3 at a hop of 10 ms,
    see `corpora.read_phones`.

    Args:
        labels: integer array `(labels,)`.
        label_rate_hz: float, labels per second.
        frame_rate_hz: float, frames per second.
        frames: int, how many frames there are.
        name: str, the name of the utterance, for messages.
        first_s: float, the middle of the first frame in seconds.
        by_time: bool, whether to take rates that do not divide.
        tolerance: int, labels that may lack or be left.

    Returns:
        Array `(frames,)` of the dtype of `labels`.

    Raises:
        ValueError: if the rates do not fit, with both, or the ends do not,
            with the utterance and how many it has.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import data
        >>> labels = np.repeat([0, 1, 2], 4)  # one per 10 ms
        >>> data.align_labels(labels, 100, 50, frames=6).tolist()
        [0, 0, 1, 1, 2, 2]
    """
    labels = np.asarray(labels)
    ratio = labels_a_frame(label_rate_hz, frame_rate_hz, by_time, name)
    middles = first_s * label_rate_hz + ratio * np.arange(frames)
    rows = np.floor(middles + 1e-6).astype(np.int64)
    needed = rows[-1] + 1 if frames else 0
    covered = math.ceil(middles[-1] + ratio - 1e-6) if frames else 0
    lacking, left = needed - len(labels), len(labels) - covered
    if max(lacking, left) > tolerance or (frames and not len(labels)):
        raise ValueError(
            f"{name}: {len(labels)} labels at {label_rate_hz:.10g} Hz "
            f"({len(labels) / label_rate_hz:.3f} s) for {frames} frames at "
            f"{frame_rate_hz:.10g} Hz ({frames / frame_rate_hz:.3f} s); at "
            f"most {tolerance} labels may lack or be left at the end"
        )
    return labels[np.minimum(rows, len(labels) - 1)]
