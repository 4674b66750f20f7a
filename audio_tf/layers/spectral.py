"""Spectrograms of padded clips, by products with a matrix.

A discrete Fourier transform as a matrix product converts to every runtime;
ONNX has no real FFT that TensorFlow's becomes. The window is symmetric, so
the products run over half of it: 1.6 ms of one core for a second of sound at
the paper's 800 samples and 1025 bins, where `ops.stft` takes 0.5 ms, and 0.3
against 0.1 ms at 400 samples and 201 bins.

Where products are rounded, features are too. Emulated on speech, TF32, which
TensorFlow and JAX may take on a GPU, moves normalised features by 0.002
(`paper`) to 0.006 (`s3prl`) root mean square, bfloat16 by 0.02 to 0.06.
"""

import math
import warnings

import keras
import numpy as np
from keras import ops

from audio_tf.layers import mel
from audio_tf.ops import blocks, masks, statistics
from audio_tf.ops.checks import (
    check_choice,
    check_finite,
    check_not_negative,
    check_positive,
    check_sizes,
)
from audio_tf.ops.layer import WAVEFORM, Layer, check_floating

PADDINGS = ("reflect", "zero")


def half_transform(window_size, fft_length, bins):
    """Computes cosines and sines under half of a periodic Hann window.

    Sample `n` of a frame and sample `window_size - n` have the same window
    and cosine about the middle, and opposite sines: products with their sum
    and their difference make the transform. The first sample has window 0
    and the middle one is its own partner, so counts half.

    Args:
        window_size: int, samples under the window.
        fft_length: int, length of the transform.
        bins: integer array, which frequencies.

    Returns:
        Two float32 arrays `(window_size // 2, len(bins))`.
    """
    n = np.arange(1, window_size // 2 + 1)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * n / window_size)
    window = np.where(2 * n == window_size, 0.5 * window, window)[:, None]
    phase = 2.0 * np.pi / fft_length * np.outer(n - window_size / 2, bins)
    cos, sin = window * np.cos(phase), window * np.sin(phase)
    return cos.astype("float32"), sin.astype("float32")


def extend(waveform, lengths, positions, padding):
    """Takes samples of each clip at positions that may lie outside of it.

    Samples behind the end of a clip play no part.

    Args:
        waveform: tensor `(batch, samples)`.
        lengths: int32 `(batch,)`, real samples of each clip.
        positions: int32 `(count,)`, 0 for the first sample.
        padding: `"reflect"` to mirror the clip at its first and last sample,
            as often as need be, like `numpy.pad`; `"zero"` for silence.

    Returns:
        Tensor `(batch, count)`; zeros for an empty clip.
    """
    lengths = ops.expand_dims(lengths, 1)
    last = ops.maximum(lengths - 1, 0)
    positions = ops.expand_dims(positions, 0)
    if padding == "reflect":
        period = ops.maximum(2 * last, 1)
        offsets = ops.mod(ops.abs(positions), period)
        sources = ops.minimum(offsets, period - offsets)
        real = lengths > 0
    else:
        sources = positions
        real = (positions >= 0) & (positions < lengths)
    sources = blocks.clamp(sources, 0, last)
    # One sample more, so that there is one to take from a batch without any.
    waveform = ops.pad(waveform, [[0, 0], [0, 1]])
    taken = blocks.take_frames(ops.expand_dims(waveform, -1), sources)
    return ops.where(real, ops.squeeze(taken, -1), 0.0)


def set_level(waveform, lengths, level_db):
    """Scales each clip to a root mean square.

    Silence stays silence; samples behind the end of a clip become zero.

    Args:
        waveform: float32 tensor `(batch, samples)`, full scale 1.
        lengths: int32 `(batch,)`, real samples of each clip.
        level_db: float, the level in dB of full scale.
    """
    waveform = masks.zero_beyond(waveform, lengths)
    # A root has no gradient at 0.
    rms = ops.sqrt(ops.maximum(statistics.power(waveform, lengths), 1e-30))
    return waveform * (10.0 ** (level_db / 20.0) / (rms + 1e-10))


@keras.saving.register_keras_serializable("audio_tf")
class Spectrogram(Layer):
    """A layer that computes the power of the short-time Fourier transform.

    `(batch, samples)` -> `(batch, frames, bins)` with
    `frames = 1 + samples // hop_size` and `bins = fft_length // 2 + 1`. Frame
    `t` has its middle at sample `t * hop_size` and a periodic Hann window,
    as librosa and torch have with `center=True`; the clip is continued at
    both ends. A clip of `n` real samples has `1 + n // hop_size` real frames
    whatever it is padded to, one or more if it has a sample at all; frames
    behind them are zeros. Any length will do, shorter than the window too.

    Computed in float32 whatever the policy, and cast to it at the end.

    Args:
        sample_rate_hz: int, the rate of the waveform.
        window_s: float, the length of the window in seconds.
        hop_s: float, the time from one frame to the next in seconds.
        fft_length: int, even, the length of the transform in samples, at
            least the window.
        pre_emphasis: float, the factor of a filter that comes first,
            `y[n] = x[n] - pre_emphasis * x[n - 1]`.
        padding: how a clip goes on outside: `"reflect"`, mirrored at its
            ends, or `"zero"`, librosa's default since 0.10.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`, full scale 1.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real.

    Raises:
        ValueError: if an argument is out of range, or samples are integers.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> spectrogram = layers.Spectrogram(
        ...     window_s=0.025, hop_s=0.01, fft_length=512
        ... )
        >>> tuple(spectrogram(np.zeros((1, 16_000), "float32")).shape)
        (1, 101, 257)
    """

    first_input = WAVEFORM

    def __init__(
        self,
        sample_rate_hz=16_000,
        window_s=0.05,
        hop_s=0.0125,
        fft_length=2048,
        pre_emphasis=0.0,
        padding="reflect",
        **kwargs,
    ):
        # Cast to half precision, quiet bands would drown in rounding.
        super().__init__(autocast=False, **kwargs)
        check_sizes(sample_rate_hz=sample_rate_hz, fft_length=fft_length)
        check_positive(window_s=window_s, hop_s=hop_s)
        check_finite(pre_emphasis=pre_emphasis)
        self.sample_rate_hz = sample_rate_hz
        self.window_s = window_s
        self.hop_s = hop_s
        self.fft_length = fft_length
        self.pre_emphasis = pre_emphasis
        self.padding = padding
        self.window_size = round(window_s * sample_rate_hz)
        self.hop_size = round(hop_s * sample_rate_hz)
        check_choice("padding", padding, PADDINGS)
        if self.window_size < 2 or self.hop_size < 1:
            raise ValueError(
                "The window must hold two samples and the hop one. Received: "
                f"window_s={window_s}, hop_s={hop_s}, "
                f"sample_rate_hz={sample_rate_hz}"
            )
        if fft_length % 2 or fft_length < self.window_size:
            raise ValueError(
                "`fft_length` must be even and no less than the window's "
                f"{self.window_size} samples. Received: fft_length={fft_length}"
            )

    @property
    def dim(self):
        """The number of features of a frame."""
        return self.fft_length // 2 + 1

    def build(self, input_shape):
        # Constants, not weights: a model's count has only what it learns.
        self.cos, self.sin = half_transform(
            self.window_size, self.fft_length, self.bins()
        )

    def bins(self):
        """Returns the indices of the frequencies that `features` is given."""
        return np.arange(self.fft_length // 2 + 1)

    def features(self, power):
        """Turns power `(batch, frames, bins)` into the layer's output."""
        return power

    def frame_lengths(self, lengths):
        """Counts the real frames of clips.

        Args:
            lengths: integer `(batch,)`, real samples of each clip.

        Returns:
            Int32 tensor `(batch,)`.
        """
        # One less than int32 holds, for the frame that is added.
        lengths = masks.within(lengths, 2**31 - 2)
        return ops.where(lengths > 0, 1 + lengths // self.hop_size, 0)

    def call(self, waveform, lengths=None):
        check_floating("waveform", waveform)
        lengths = masks.real_lengths(waveform, lengths)
        waveform = ops.cast(waveform, "float32")
        if self.pre_emphasis:
            before = blocks.delay(waveform, 1)
            waveform = waveform - self.pre_emphasis * before
        features = self.features(self.power(self.frames(waveform, lengths)))
        features = masks.zero_beyond(features, self.frame_lengths(lengths))
        return ops.cast(features, self.compute_dtype)

    def frames(self, waveform, lengths):
        """Cuts frames without their first sample: `(B, T, window_size - 1)`."""
        pieces = blocks.count(self.window_size, self.hop_size)
        count = 1 + ops.shape(waveform)[1] // self.hop_size
        rows = count + pieces - 1
        # An odd window stands where librosa's does, in a transform of even
        # length.
        start = (self.window_size + 1) // 2
        positions = ops.arange(rows * self.hop_size, dtype="int32") - start
        x = extend(waveform, lengths, positions, self.padding)
        x = ops.reshape(x, (-1, rows, self.hop_size))
        x = [blocks.narrow(x, 1, piece, count) for piece in range(pieces)]
        return ops.concatenate(x, axis=-1)[:, :, 1 : self.window_size]

    def power(self, frames):
        half = self.window_size // 2
        mirrored = ops.flip(frames[:, :, -half:], axis=-1)
        frames = frames[:, :, :half]
        real = ops.matmul(frames + mirrored, self.cos)
        imaginary = ops.matmul(frames - mirrored, self.sin)
        return ops.square(real) + ops.square(imaginary)

    def compute_output_spec(self, waveform, lengths=None):
        batch, samples = waveform.shape
        frames = None if samples is None else 1 + samples // self.hop_size
        return keras.KerasTensor(
            (batch, frames, self.dim), dtype=self.compute_dtype
        )

    def get_config(self):
        return {
            **super().get_config(),
            "sample_rate_hz": self.sample_rate_hz,
            "window_s": self.window_s,
            "hop_s": self.hop_s,
            "fft_length": self.fft_length,
            "pre_emphasis": self.pre_emphasis,
            "padding": self.padding,
        }


@keras.saving.register_keras_serializable("audio_tf")
class LogMel(Spectrogram):
    """A layer that computes the logarithm of mel bands, `ln(mel + floor)`.

    `(batch, samples)` -> `(batch, frames, num_mel_bins)`, computed in float32
    from the frames of a `Spectrogram`. The values are the logarithm of what
    `librosa.feature.melspectrogram` gives with the same padding. Bands that
    are narrower than the bins of the spectrum may hold none: a warning tells
    how many.

    Args:
        num_mel_bins: int, the number of mel bands.
        mel_scale: `"slaney"`, librosa's default, or `"htk"`, torchaudio's.
        mel_norm: `"slaney"` for triangles of area 1, librosa's default, or
            `None` for triangles of height 1, torchaudio's.
        min_frequency_hz: float, the lower end of the first band.
        max_frequency_hz: float, the upper end of the last band, or `None` for
            half the sample rate.
        floor: float above 0, added to the energies before the logarithm.
        **kwargs: arguments of `Spectrogram`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> log_mel = layers.LogMel(num_mel_bins=40, sample_rate_hz=8_000)
        >>> log_mel(np.zeros((2, 8_000), "float32")).shape[2]
        40
    """

    def __init__(
        self,
        num_mel_bins=80,
        mel_scale="slaney",
        mel_norm="slaney",
        min_frequency_hz=0.0,
        max_frequency_hz=None,
        floor=1e-6,
        sample_rate_hz=16_000,
        fft_length=2048,
        **kwargs,
    ):
        check_choice("mel_scale", mel_scale, mel.SCALES)
        check_choice("mel_norm", mel_norm, mel.NORMS)
        check_sizes(num_mel_bins=num_mel_bins, sample_rate_hz=sample_rate_hz)
        check_not_negative(min_frequency_hz=min_frequency_hz)
        top_hz = sample_rate_hz / 2
        if max_frequency_hz is not None:
            check_positive(max_frequency_hz=max_frequency_hz)
            top_hz = max_frequency_hz
        if not min_frequency_hz < top_hz <= sample_rate_hz / 2:
            raise ValueError(
                "Bands must lie between 0 and half the sample rate. Received: "
                f"min_frequency_hz={min_frequency_hz}, "
                f"max_frequency_hz={max_frequency_hz}, "
                f"sample_rate_hz={sample_rate_hz}"
            )
        # Or silence has no logarithm.
        check_positive(floor=floor)
        super().__init__(
            sample_rate_hz=sample_rate_hz, fft_length=fft_length, **kwargs
        )
        self.num_mel_bins = num_mel_bins
        self.mel_scale = mel_scale
        self.mel_norm = mel_norm
        self.min_frequency_hz = min_frequency_hz
        self.max_frequency_hz = max_frequency_hz
        self.top_hz = top_hz
        self.floor = floor

    def build(self, input_shape):
        filters = mel.filters(
            self.num_mel_bins,
            self.fft_length,
            self.sample_rate_hz,
            self.mel_scale,
            self.mel_norm,
            self.min_frequency_hz,
            self.top_hz,
        )
        empty = int(np.sum(~filters.any(axis=0)))
        if empty:
            warnings.warn(
                f"{empty} of the {self.num_mel_bins} mel bands of {self.name} "
                "lie between two bins of the spectrum, and hold silence "
                "alone: `fft_length` is too short for so many. Received: "
                f"fft_length={self.fft_length}",
                stacklevel=2,
            )
        # Bins in no band need not be computed.
        self.used_bins = np.flatnonzero(filters.any(axis=1))
        self.filters = filters[self.used_bins].astype("float32")
        super().build(input_shape)

    @property
    def dim(self):
        return self.num_mel_bins

    def bins(self):
        return self.used_bins

    def features(self, power):
        bands = ops.matmul(power, self.filters)
        return ops.log(bands + self.floor)

    def get_config(self):
        return {
            **super().get_config(),
            "num_mel_bins": self.num_mel_bins,
            "mel_scale": self.mel_scale,
            "mel_norm": self.mel_norm,
            "min_frequency_hz": self.min_frequency_hz,
            "max_frequency_hz": self.max_frequency_hz,
            "floor": self.floor,
        }


@keras.saving.register_keras_serializable("audio_tf")
class DecibelSpectrogram(Spectrogram):
    """A layer that computes the amplitude of every bin in dB, in `[0, 1]`.

    `(batch, samples)` -> `(batch, frames, fft_length // 2 + 1)`, with the
    arguments of `Spectrogram`. `S = 20 log10(max(1e-5, |X|)) - 20` and
    `clip((S + 100) / 100, 0, 1)`: the linear target of Audio ALBERT
    (arXiv 2005.08575), as s3prl's branch AlbertNew has it in
    `utils/audio.py`.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> spectrogram = layers.DecibelSpectrogram(hop_s=0.01)
        >>> tuple(spectrogram(np.zeros((1, 16_000), "float32")).shape)
        (1, 101, 1025)
    """

    def features(self, power):
        level_db = 10.0 / math.log(10.0) * ops.log(ops.maximum(power, 1e-10))
        return ops.clip((level_db + 80.0) / 100.0, 0.0, 1.0)
