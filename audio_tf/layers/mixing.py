"""Mixing of pairs of clips and of their targets, active in training only."""

import math

import keras
import numpy as np
from keras import ops

from audio_tf.layers import augment
from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import (
    check_choice,
    check_positive,
    check_sizes,
    count_axes,
)
from audio_tf.ops.layer import WAVEFORM, check_floating

WEIGHTINGS = (None, "a")
# The reference code takes no window for quieter than this.
LEAST_DB = -80.0


def a_weighting_db(frequency_hz):
    """Computes the A-weighting of IEC 61672-1 in dB, 0 at 1 kHz."""
    f = np.square(np.maximum(np.asarray(frequency_hz, "float64"), 1e-3))
    numerator = 12194.0**2 * f**2
    denominator = (
        (f + 20.6**2)
        * np.sqrt((f + 107.7**2) * (f + 737.9**2))
        * (f + 12194.0**2)
    )
    return 2.0 + 20.0 * np.log10(numerator / denominator)


def between_class_share(level_db, other_db, ratio):
    """Computes the share of a waveform at which it is heard as `r` of a mix.

        p = 1 / (1 + 10^((G1 - G2) / 20) (1 - r) / r)

    This is equation 2 of "Learning from Between-class Examples"
    (arXiv 1711.10282).

    Args:
        level_db: tensor, `G1`, the level of the first clip in dB.
        other_db: tensor, `G2`, the level of the second clip in dB.
        ratio: tensor, `r` in [0, 1].

    Returns:
        Tensor, `p` in [0, 1].
    """
    # Multiplied out, so that r = 0 divides by nothing.
    difference = ops.clip(level_db - other_db, -200.0, 200.0)
    weighted = augment.ratio_from_db(difference) * (1.0 - ratio)
    return ratio / (ratio + weighted)


def between_class_mix(waveform, other, share):
    """Mixes waveforms by equation 1 of arXiv 1711.10282.

    The mix is `(p x1 + (1 - p) x2) / |(p, 1 - p)|`.

    Args:
        waveform: tensor `(batch, samples)`, `x1`.
        other: tensor `(batch, samples)`, `x2`.
        share: tensor `(batch, 1)`, `p`.
    """
    norm = ops.sqrt(ops.square(share) + ops.square(1.0 - share))
    return (share * waveform + (1.0 - share) * other) / norm


def mix_weights(weights, partner, ratio):
    """Mixes the weights of clips as clips were mixed, `r w1 + (1 - r) w2`.

    A loss that is linear in its targets, as a cross entropy is, is then
    `r w1 L(t1) + (1 - r) w2 L(t2)` for each mix: the label of each clip has
    its own weight, and that of a clip of weight 0 counts nowhere.

    Args:
        weights: tensor `(batch,)` or `(batch, 1)`, at least 0.
        partner: int32 `(batch,)`, the row of the clip that each is mixed with.
        ratio: float32 `(batch, 1)`, the share `r` of each first clip.

    Returns:
        Pair of the weights of the mixes, float32 `(batch,)`, and the shares
        of the first clips in their targets, float32 `(batch, 1)`, to be given
        to `mix_targets` as its `ratio`; where both weights are 0, it is `r`.

    Raises:
        ValueError: if there is not one weight for each clip.

    Examples:
        >>> import numpy as np
        >>> from audio_tf.layers import mixing
        >>> partner, ratio = np.array([1, 0]), np.full((2, 1), 0.5, "float32")
        >>> weights, shares = mixing.mix_weights([3.0, 1.0], partner, ratio)
        >>> weights.numpy().tolist(), shares.numpy().tolist()
        ([2.0, 2.0], [[0.75], [0.25]])
    """
    weights = ops.cast(weights, "float32")
    shape = tuple(weights.shape)
    if len(shape) not in (1, 2) or shape[1:] not in ((), (1,)):
        raise ValueError(
            "`sample_weight` must be one number for each clip that is mixed, "
            f"(batch,) or (batch, 1). Received: weights of shape {shape}"
        )
    weights = ops.reshape(weights, (-1, 1))
    own = ratio * weights
    mixed = own + (1.0 - ratio) * ops.take(weights, partner, axis=0)
    weighed = mixed > 0.0
    shares = ops.where(weighed, own / ops.where(weighed, mixed, 1.0), ratio)
    return ops.squeeze(mixed, 1), shares


def check_targets(targets):
    """Raises a `ValueError` for targets without a number for each class.

    Ids of classes would be mixed to other ids, or to a table of them all.

    Args:
        targets: tensor, of which the rank may not be known.
    """
    if count_axes(targets) in (2, None):
        return
    raise ValueError(
        "Targets that are mixed must have a number for each class, (batch, "
        "classes); `keras.utils.to_categorical` makes them of ids. "
        f"Received: targets of shape {tuple(targets.shape)}"
    )


def mix_targets(targets, partner, ratio):
    """Mixes targets as clips were mixed, `r t1 + (1 - r) t2`.

    Args:
        targets: tensor `(batch, classes)`, one-hot or multi-hot.
        partner: int32 `(batch,)`, the row of the clip that each is mixed with.
        ratio: float32 `(batch, 1)`, the share `r` of each first clip.

    Returns:
        Tensor of the shape of `targets`, of their dtype as `mixed_dtype` says.

    Raises:
        ValueError: as `check_targets`.
    """
    targets = ops.convert_to_tensor(targets)
    check_targets(targets)
    t = ops.cast(targets, "float32")
    mixed = ratio * t + (1.0 - ratio) * ops.take(t, partner, axis=0)
    return ops.cast(mixed, mixed_dtype(targets))


def mixed_dtype(targets):
    """Returns the dtype of targets that are mixed, a str.

    It is their own where it is floating; shares of labels that are integers
    or booleans would be rounded, and are float32.
    """
    dtype = keras.backend.standardize_dtype(targets.dtype)
    return dtype if keras.backend.is_float_dtype(dtype) else "float32"


class PairMixing(augment.Augmentation):
    """The base of layers that mix each clip of a batch with another one.

    Partners are a random permutation of the batch; a clip that meets itself
    stays as it is.
    A subclass gives `draw_ratio(waveform)`, the share `r` of the first clip
    in the targets, and `mix(waveform, lengths, other, other_lengths, ratio)`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`.
        targets: tensor `(batch, classes)`, one-hot or multi-hot.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real.
        training: bool; without it nothing is changed.

    Returns:
        Triple of the waveform and the targets, `r t1 + (1 - r) t2`, in the
        shapes and dtypes in which they came, targets of integers or booleans
        in float32, and the lengths, int32 `(batch,)`; a mix is as long as the
        longer of its two clips.

    Raises:
        ValueError: if targets have no number for each class, or samples are
            integers.
    """

    domain = "batch"
    first_input = WAVEFORM

    def call(self, waveform, targets, lengths=None, training=None):
        waveform, lengths, pairs = self.mix_clips(waveform, lengths, training)
        return waveform, mix_targets(targets, **pairs), lengths

    def mix_clips(self, waveform, lengths=None, training=None):
        """Mixes clips, and tells how, for targets that are elsewhere.

        Args:
            waveform: floating tensor `(batch, samples)`.
            lengths: integer `(batch,)`, or `None` where all samples are real.
            training: bool; without it nothing is changed.

        Returns:
            Triple of the waveform and the lengths as `call` returns them, and
            a dict of the arguments of `mix_targets` and of `mix_weights`
            beyond the targets and the weights.
        """
        check_floating("waveform", waveform)
        waveform = ops.convert_to_tensor(waveform)
        lengths = masks.real_lengths(waveform, lengths)
        if not training:
            rows = ops.arange(ops.shape(waveform)[0], dtype="int32")
            ratio = ops.ones((ops.shape(waveform)[0], 1), "float32")
            return waveform, lengths, {"partner": rows, "ratio": ratio}
        x = masks.zero_beyond(ops.cast(waveform, "float32"), lengths)
        partner = ops.squeeze(ops.argsort(self.uniform(x), axis=0), 1)
        other, other_lengths = (
            ops.take(x, partner, axis=0),
            ops.take(lengths, partner, axis=0),
        )
        ratio = self.draw_ratio(x)
        ratio = ops.where(self.chosen(x), ratio, 1.0)
        # Mixes keep the energy of clips that have nothing in common: of a
        # clip and itself they would be louder than it.
        rows = ops.arange(ops.shape(x)[0], dtype=partner.dtype)
        itself = ops.expand_dims(ops.equal(partner, rows), 1)
        ratio = ops.where(itself, 1.0, ratio)
        mixed = self.mix(x, lengths, other, other_lengths, ratio)
        alone = ratio >= 1.0
        lengths = ops.where(
            ops.squeeze(alone, 1), lengths, ops.maximum(lengths, other_lengths)
        )
        mixed = ops.cast(ops.where(alone, x, mixed), waveform.dtype)
        pairs = {"partner": ops.cast(partner, "int32"), "ratio": ratio}
        return mixed, lengths, pairs

    def draw_ratio(self, waveform):
        """Draws the share of each first clip, float32 `(batch, 1)`."""
        raise NotImplementedError  # abstract

    def mix(self, waveform, lengths, other, other_lengths, ratio):
        """Mixes two batches of clips.

        Args:
            waveform: float32 `(batch, samples)`, zeros behind the clips.
            lengths: int32 `(batch,)`, real samples of each clip.
            other: float32 `(batch, samples)`, the partner of each clip.
            other_lengths: int32 `(batch,)`, real samples of the partners.
            ratio: float32 `(batch, 1)`, as `draw_ratio` returns it.

        Returns:
            Float32 tensor `(batch, samples)`.
        """
        raise NotImplementedError  # abstract

    def compute_output_spec(
        self, waveform, targets, lengths=None, training=None
    ):
        check_targets(targets)
        return (
            keras.KerasTensor(waveform.shape, dtype=waveform.dtype),
            keras.KerasTensor(targets.shape, dtype=mixed_dtype(targets)),
            keras.KerasTensor(waveform.shape[:1], dtype="int32"),
        )


@keras.saving.register_keras_serializable("audio_tf")
class Mixup(PairMixing):
    """A layer that mixes waveforms as it mixes their targets.

    `x = r x1 + (1 - r) x2` with `r` from Beta(alpha, alpha): "mixup"
    (arXiv 1710.09412).

    Args:
        alpha: float above 0; 1 draws evenly, less draws nearer to 0 and 1.
        **kwargs: arguments of `audio_tf.layers.augment.Augmentation`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> mixup = layers.Mixup(alpha=0.2)
        >>> clips = np.ones((2, 400), "float32")
        >>> waveform, targets, _ = mixup(clips, np.eye(2), training=True)
        >>> tuple(waveform.shape), tuple(targets.shape)
        ((2, 400), (2, 2))
    """

    def __init__(self, alpha=0.2, **kwargs):
        super().__init__(**kwargs)
        check_positive(alpha=alpha)
        self.alpha = alpha

    def draw_ratio(self, waveform):
        # Beta is the share of a gamma in the sum of two. Of a small alpha
        # both may round to 0, which their logarithms do not.
        own, other = self.log_gamma(waveform), self.log_gamma(waveform)
        return ops.sigmoid(own - other)

    def log_gamma(self, waveform):
        """Draws the logarithm of Gamma(alpha, 1), float32 `(batch, 1)`.

        That is Gamma(alpha + 1, 1) times a root of an even draw: "A Simple
        Method for Generating Gamma Variables" (Marsaglia and Tsang, 2000),
        section 6.
        """
        more = keras.random.gamma(
            (ops.shape(waveform)[0], 1),
            self.alpha + 1.0,
            dtype="float32",
            seed=self.seed_generator,
        )
        # An even draw may be 0, never 1.
        root = ops.log(1.0 - self.uniform(waveform)) / self.alpha
        return ops.log(more) + root

    def mix(self, waveform, lengths, other, other_lengths, ratio):
        return ratio * waveform + (1.0 - ratio) * other

    def get_config(self):
        return {**super().get_config(), "alpha": self.alpha}


@keras.saving.register_keras_serializable("audio_tf")
class BetweenClassMixing(PairMixing):
    """A layer that mixes clips so that each is heard as its share of targets.

    "Learning from Between-class Examples for Deep Sound Recognition" (arXiv
    1711.10282): `r` is drawn evenly from [0, 1), `p` follows from the clips'
    levels (`between_class_share`), and the mix keeps their energy
    (`between_class_mix`). The level `G` of a clip is that of its loudest
    window, as in the authors' code: windows overlap by half, and none counts
    as quieter than -80 dB.

    Args:
        sample_rate_hz: int, rate of the waveform.
        window_s: float, length of a window; 2,048 samples at 16 kHz and
            4,096 at 44.1 kHz in the authors' code.
        weighting: `"a"` for A-weighted levels, the paper's, or `None` for
            the mean square.
        **kwargs: arguments of `audio_tf.layers.augment.Augmentation`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> mixing = layers.BetweenClassMixing(sample_rate_hz=16_000)
        >>> noise = np.random.default_rng(0).normal(size=(2, 4_000))
        >>> waveform, targets, _ = mixing(noise, np.eye(2), training=True)
        >>> [round(float(each), 2) for each in targets.numpy().sum(axis=1)]
        [1.0, 1.0]
    """

    def __init__(
        self, sample_rate_hz=16_000, window_s=0.128, weighting="a", **kwargs
    ):
        super().__init__(**kwargs)
        check_sizes(sample_rate_hz=sample_rate_hz)
        check_positive(window_s=window_s)
        check_choice("weighting", weighting, WEIGHTINGS)
        size = round(window_s * sample_rate_hz)
        self.sample_rate_hz = sample_rate_hz
        self.window_s = window_s
        self.weighting = weighting
        self.half = size // 2
        if self.half < 1:
            raise ValueError(
                "A window must hold two samples. Received: "
                f"window_s={window_s}, sample_rate_hz={sample_rate_hz}"
            )
        frequency_hz = np.arange(self.half + 1) * (
            sample_rate_hz / (2 * self.half)
        )
        self.bin_weights = 10.0 ** (a_weighting_db(frequency_hz) / 10.0)
        n = np.arange(2 * self.half)
        self.window = 0.5 - 0.5 * np.cos(np.pi * n / self.half)

    def draw_ratio(self, waveform):
        return self.uniform(waveform)

    def mix(self, waveform, lengths, other, other_lengths, ratio):
        share = between_class_share(
            self.level_db(waveform, lengths),
            self.level_db(other, other_lengths),
            ratio,
        )
        return between_class_mix(waveform, other, share)

    def level_db(self, waveform, lengths):
        """Computes the level of the loudest window of each clip in dB.

        Windows begin at 0, `half`, 2 `half` and so on, as long as they lie
        within the clip; a clip shorter than two halves is one window.

        Args:
            waveform: float32 `(batch, samples)`, zeros behind the clips.
            lengths: int32 `(batch,)`.
        """
        samples, half = ops.shape(waveform)[1], self.half
        count = blocks.at_least(blocks.count(samples, half), 2)
        x = ops.pad(waveform, [[0, 0], [0, count * half - samples]])
        x = ops.reshape(x, (-1, count, half))
        x = ops.concatenate([x[:, :-1], x[:, 1:]], axis=-1)  # (B, N, 2 half)
        if self.weighting is None:
            power = ops.mean(ops.square(x), axis=-1)
        else:
            window, bin_weights = (
                ops.convert_to_tensor(constant, dtype="float32")
                for constant in (self.window, self.bin_weights)
            )
            real, imaginary = ops.rfft(x * window)
            power = ops.square(real) + ops.square(imaginary)
            power = ops.sum(power * bin_weights, axis=-1)
        whole = ops.maximum((lengths - half) // half, 1)
        inside = masks.from_lengths(whole, count - 1)
        power = ops.max(ops.where(inside, power, 0.0), axis=1, keepdims=True)
        power = ops.maximum(power, 10.0 ** (LEAST_DB / 10.0))
        return ops.log(power) * (10.0 / math.log(10.0))

    def get_config(self):
        return {
            **super().get_config(),
            "sample_rate_hz": self.sample_rate_hz,
            "window_s": self.window_s,
            "weighting": self.weighting,
        }
