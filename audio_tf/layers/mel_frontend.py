"""From samples to frames by mel bands, compressed as a model learns to."""

import functools

import keras
from keras import ops

from audio_tf.layers import mel
from audio_tf.layers.augmented_frontend import AugmentedFrontend
from audio_tf.layers.compression import PCEN, LogCompression
from audio_tf.layers.filters import Filters, Learned
from audio_tf.layers.frontend import mel_centers
from audio_tf.layers.spectral import Spectrogram
from audio_tf.ops import blocks, checks, masks, statistics
from audio_tf.ops.layer import check_floating

# Brings logarithms of energies to a deviation of about 1.
LOG_SCALE = 0.3
# Energies of mel bands below it are taken as silence at first: 60 dB below
# those of speech in a room.
LOG_FLOOR = 1e-6

COMPRESSIONS = {
    "log": functools.partial(LogCompression, LOG_FLOOR, LOG_SCALE),
    "pcen": PCEN,
}


def power_of_two(size):
    """Returns the least power of two that is at least `size`."""
    return 1 << (size - 1).bit_length()


class MelBands(AugmentedFrontend):
    """A layer that computes the mel bands of a waveform, compressed.

    `(batch, samples)` -> `(batch, windows, num_mel_bins)` with
    `windows = stack_size * ceil(samples / frame_size)`. The energies of mel
    bands of overlapping windows are compressed by a function that is learned
    with the model, by default a logarithm. There is no convolution: the
    Fourier transform is a product with a matrix.

    A window ends where its hop ends, so that none depends on samples of later
    ones; what comes before the clip is silence.

    Computed in float32, whatever the policy.

    Args:
        num_mel_bins: int, the number of mel bands.
        window_s: float, the length of the windows in seconds.
        hop_s: float, the time from one window to the next in seconds, at most
            `window_s`.
        stack_size: int, windows that will make a frame: there are always
            whole frames of them.
        sample_rate_hz: int, the rate of the waveform.
        compression: `"log"` for `LogCompression`, which begins as the
            logarithm of log-mel, or `"pcen"` for `PCEN`.
        subtract_mean: bool, whether to subtract from each band its mean over
            the clip, which takes away what a microphone or a room adds to
            all frames. The layer is not causal with it.
        augmentation: list of `SpectrogramAugmentation`, which are applied in
            training: those of spectra before the mel bands, those of features
            behind the compression.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`, full scale 1.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real. Samples behind the end of a clip are taken
            as silence.
        training: bool, whether augmentation applies.

    Raises:
        ValueError: if an argument is out of range, or samples are integers.
    """

    domains = ("spectrum", "features")
    # Each frame looks back, beyond its own samples.
    embeds_pieces = False

    def __init__(
        self,
        num_mel_bins=64,
        window_s=0.025,
        hop_s=0.01,
        stack_size=1,
        sample_rate_hz=16_000,
        compression="log",
        subtract_mean=True,
        augmentation=(),
        **kwargs,
    ):
        super().__init__(sample_rate_hz, augmentation, **kwargs)
        checks.check_sizes(num_mel_bins=num_mel_bins, stack_size=stack_size)
        checks.check_positive(window_s=window_s, hop_s=hop_s)
        checks.check_flags(subtract_mean=subtract_mean)
        checks.check_choice("compression", compression, COMPRESSIONS)
        if hop_s > window_s:
            raise ValueError(
                "`hop_s` must be at most `window_s`, else samples are lost. "
                f"Received: hop_s={hop_s}, window_s={window_s}"
            )
        self.spectrogram = Spectrogram(
            sample_rate_hz,
            window_s,
            hop_s,
            power_of_two(round(window_s * sample_rate_hz)),
            dtype="float32",
            name="spectrogram",
        )
        self.num_mel_bins = num_mel_bins
        self.window_s = window_s
        self.hop_s = hop_s
        self.stack_size = stack_size
        self.compression_name = compression
        self.subtract_mean = subtract_mean
        self.hop_size = self.spectrogram.hop_size
        self.compression = COMPRESSIONS[compression](
            dtype="float32", name="compression"
        )
        filters = mel.filters(
            num_mel_bins,
            self.spectrogram.fft_length,
            sample_rate_hz,
            scale="htk",
            norm=None,
            min_frequency_hz=0.0,
            max_frequency_hz=sample_rate_hz / 2,
        )
        if not filters.any(axis=0).all():
            raise ValueError(
                "There are more mel bands than the spectrum has bins for at "
                f"low frequencies. Received: num_mel_bins={num_mel_bins}, "
                f"window_s={window_s}, sample_rate_hz={sample_rate_hz}"
            )
        # So that a band of full scale has an energy of about 1.
        self.filters = (filters / self.spectrogram.window_size).astype(
            "float32"
        )

    @property
    def frame_size(self):
        """The samples from one frame to the next."""
        return self.hop_size * self.stack_size

    @property
    def causal(self):
        """Whether no frame depends on samples of later ones."""
        return not self.subtract_mean

    def learned(self):
        middles = mel_centers(self.num_mel_bins, self.sample_rate_hz)
        return Learned(None, middles, self.compression.by_band())

    def build(self, input_shape):
        self.spectrogram.build(input_shape)
        self.compression.build((None, None, self.num_mel_bins))

    def call(self, waveform, lengths=None, training=None):
        x = self.bands(waveform, lengths, training)
        return ops.cast(x, self.compute_dtype)

    def bands(self, waveform, lengths, training):
        """Computes compressed mel bands, zeros behind the end of a clip.

        Args:
            waveform: floating tensor `(batch, samples)`.
            lengths: integer `(batch,)` or `None`.
            training: bool.

        Returns:
            Float32 tensor `(batch, windows, num_mel_bins)`.
        """
        check_floating("waveform", waveform)
        lengths = masks.real_lengths(waveform, lengths)
        x = masks.zero_beyond(ops.cast(waveform, "float32"), lengths)
        rows = self.stack_size * blocks.count(ops.shape(x)[1], self.frame_size)
        mask = masks.from_lengths(blocks.count(lengths, self.hop_size), rows)
        x = self.spectrogram.power(self.windows(x, rows))
        x = self.augmented(x, mask, "spectrum", training)
        x = self.compression(ops.matmul(x, self.filters), mask=mask)
        if self.subtract_mean:
            mean, _ = statistics.moments(x, 1, ops.expand_dims(mask, -1))
            x = x - mean
        x = self.augmented(x, mask, "features", training)
        return masks.zero_padding(x, mask)

    def windows(self, waveform, rows):
        """Cuts windows without their first sample, whose weight is 0.

        Args:
            waveform: float32 tensor `(batch, samples)`.
            rows: integer scalar, the number of windows.

        Returns:
            Tensor `(batch, rows, window_size - 1)`.
        """
        size, hop = self.spectrogram.window_size, self.hop_size
        pieces = blocks.count(size, hop)
        before = (pieces - 1) * hop
        behind = rows * hop - ops.shape(waveform)[1]
        x = ops.pad(waveform, [[0, 0], [before, behind]])
        x = ops.reshape(x, (ops.shape(x)[0], rows + pieces - 1, hop))
        x = [blocks.narrow(x, 1, piece, rows) for piece in range(pieces)]
        return ops.concatenate(x, axis=-1)[:, :, 1 - size :]

    def compute_output_spec(self, waveform, lengths=None, training=None):
        batch, samples = waveform.shape
        frames = None if samples is None else -(-samples // self.frame_size)
        windows = None if frames is None else frames * self.stack_size
        return keras.KerasTensor(
            (batch, windows, self.num_mel_bins), dtype=self.compute_dtype
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_mel_bins": self.num_mel_bins,
            "window_s": self.window_s,
            "hop_s": self.hop_s,
            "stack_size": self.stack_size,
            "compression": self.compression_name,
            "subtract_mean": self.subtract_mean,
        }


@keras.saving.register_keras_serializable("audio_tf")
class MelFrontend(MelBands):
    """A layer that embeds a waveform by its compressed mel bands.

    `(batch, samples)` -> `(batch, frames, hidden_dim)` with
    `frames = ceil(samples / frame_size)`: `stack_size` neighbours of
    `MelBands` make a frame, which a dense layer embeds.

    Computed in float32 up to the dense layer, whatever the policy.

    Args:
        hidden_dim: int, the width of a frame.
        num_mel_bins: int, as `MelBands` takes it.
        window_s: float, as `MelBands` takes it.
        hop_s: float, as `MelBands` takes it.
        stack_size: int, windows of a frame.
        **kwargs: further arguments of `MelBands`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`, full scale 1.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real. Samples behind the end of a clip are taken
            as silence.
        training: bool, whether augmentation applies.

    Raises:
        ValueError: if an argument is out of range, or samples are integers.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> frontend = layers.MelFrontend(hidden_dim=32)  # frames of 40 ms
        >>> tuple(frontend(np.zeros((1, 16_000), "float32")).shape)
        (1, 25, 32)
    """

    def __init__(
        self,
        hidden_dim=64,
        num_mel_bins=64,
        window_s=0.025,
        hop_s=0.01,
        stack_size=4,
        **kwargs,
    ):
        super().__init__(num_mel_bins, window_s, hop_s, stack_size, **kwargs)
        checks.check_sizes(hidden_dim=hidden_dim)
        self.hidden_dim = hidden_dim
        self.embedding_dense = keras.layers.Dense(
            hidden_dim, dtype=self.dtype_policy, name="embedding"
        )

    def learned(self):
        found = super().learned()
        kernel = ops.convert_to_numpy(self.embedding_dense.kernel)
        weights = kernel.T.reshape(
            self.hidden_dim, self.stack_size, self.num_mel_bins
        )
        return found._replace(
            filters=Filters(weights, self.hop_size, found.bands_hz)
        )

    def build(self, input_shape):
        super().build(input_shape)
        self.embedding_dense.build(
            (None, None, self.stack_size * self.num_mel_bins)
        )

    def call(self, waveform, lengths=None, training=None):
        x = self.bands(waveform, lengths, training)
        frames = ops.shape(x)[1] // self.stack_size
        width = self.stack_size * self.num_mel_bins
        x = ops.reshape(x, (ops.shape(x)[0], frames, width))
        return self.embedding_dense(ops.cast(x, self.compute_dtype))

    def compute_output_spec(self, waveform, lengths=None, training=None):
        batch, samples = waveform.shape
        frames = None if samples is None else -(-samples // self.frame_size)
        return keras.KerasTensor(
            (batch, frames, self.hidden_dim), dtype=self.compute_dtype
        )

    def get_config(self):
        return {**super().get_config(), "hidden_dim": self.hidden_dim}
