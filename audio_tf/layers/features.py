"""Features of speech models, by the name of a preset."""

import keras
from keras import ops

from audio_tf.layers import frames, spectral
from audio_tf.layers.filters import Frontend
from audio_tf.ops import masks
from audio_tf.ops.checks import (
    check_choice,
    check_finite,
    check_flags,
    reject_unknown,
)
from audio_tf.ops.layer import check_floating


@keras.saving.register_keras_serializable("audio_tf")
class SpeechFeatures(Frontend):
    """The features that Audio ALBERT is trained on, from the waveform.

    `(batch, samples)` -> `(batch, frames, dim)`. The layer sets the level of
    a clip, takes the spectrum of each window, appends slopes, normalises over
    the clip and stacks the spectra into frames, in that order. A clip has
    `spectra = 1 + samples // hop_size` and
    `frames = max(spectra // stack_size, 1)`. Real frames do not depend on
    padding; frames behind the end of a clip are zeros.

    | | `paper` | `paper_target` | `s3prl` |
    |---|---|---|---|
    | in s3prl | branch AlbertNew | branch AlbertNew | HEAD |
    | file | `utils/audio.py` | `utils/audio.py` | `upstream/baseline` |
    | level | as it is | as it is | -25 dB |
    | window, hop, ms | 50, 12.5 | 50, 12.5 | 25, 10 |
    | transform | 2048 | 2048 | 400 |
    | features | ln(mel + 1e-6), 80 | decibels, 1025 | ln(mel + 1e-10), 80 |
    | mel scale and area | Slaney's | | HTK's, heights of 1 |
    | pre-emphasis | 0 | 0.97 | 0 |
    | slopes | 9 spectra | none | none |
    | variance | over `spectra` | over `spectra` | over `spectra - 1` |
    | stack, dim, hop | 3, 480, 37.5 ms | 3, 3075, 37.5 ms | 1, 80, 10 ms |

    `paper` follows the branch of the papers' authors. It is the default among
    four public settings that disagree: this one, pohanchi/AALBERT, s3prl's
    `aalbert_libri_fbank6L` of June 2020 and s3prl's HEAD. `paper_target` is
    the spectrogram that its model reconstructs, frame by frame beside it;
    the model of `s3prl` reconstructs its input. In `s3prl` the mel scale is
    the default of torchaudio's `MelScale`, and one epsilon serves logarithm
    and deviation alike, as in `upstream/baseline/preprocessor.py`. The
    sources are silent on very short clips: a clip of a few samples is
    mirrored more than once, and `Deltas`, `FrameStacking` and
    `UtteranceNorm` say what they do with a few spectra.

    Args:
        preset: str, `"paper"`, `"paper_target"` or `"s3prl"`.
        sample_rate_hz: int, the rate of the waveform.
        options: dict of values that replace those of the preset, or `None`:
            `level_db`, the level in dB of full scale, or `None` to keep it;
            `delta_width`, as `Deltas` takes `width`, or 0 for no slopes;
            `delta_edges`, as `Deltas` takes `edges`; `normalize`, bool,
            whether `UtteranceNorm` follows, and its `unbiased`, `epsilon` and
            `min_deviation`; `stack_size`, int, spectra in a frame;
            `spectrogram`, `"log_mel"` or `"decibel"`, and arguments of
            `LogMel` or `DecibelSpectrogram`.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        waveform: floating tensor `(batch, samples)`, full scale 1.
        lengths: integer `(batch,)`, real samples of each clip, or `None`
            where all are real.
        return_lengths: bool. If True, also return how many frames of each
            clip are real, int32 `(batch,)`.

    Returns:
        Tensor `(batch, frames, dim)`, computed in float32 and cast to the
        policy, or a pair with the real frames.

    Raises:
        TypeError: if the preset has no such option; it names the closest.
        ValueError: if there is no such preset, a value is out of range, or
            samples are integers.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import layers
        >>> features = layers.SpeechFeatures("paper")
        >>> features.dim
        480
        >>> tuple(features(np.zeros((1, 16_000), "float32")).shape)
        (1, 27, 480)
    """

    # A window reaches to both sides of its middle, a fit of slopes too, and
    # the normalisation over the whole clip.
    causal = False
    # Clips of any length are taken.
    max_frames = None

    def __init__(
        self, preset="paper", sample_rate_hz=16_000, options=None, **kwargs
    ):
        super().__init__(autocast=False, **kwargs)
        check_choice("preset", preset, PRESETS)
        reject_unknown(f"The preset {preset!r}", options or {}, PRESETS[preset])
        self.preset = preset
        self.sample_rate_hz = sample_rate_hz
        self.options = {**PRESETS[preset], **(options or {})}
        own = dict(self.options)
        self.level_db = own.pop("level_db")
        width, edges = own.pop("delta_width"), own.pop("delta_edges")
        normalize = own.pop("normalize")
        check_flags(normalize=normalize)
        if self.level_db is not None:
            check_finite(level_db=self.level_db)
        check_choice("spectrogram", own["spectrogram"], SPECTROGRAMS)
        deviation = {key: own.pop(key) for key in DEVIATION}
        size = own.pop("stack_size")
        spectrogram = SPECTROGRAMS[own.pop("spectrogram")]
        self.spectrogram = spectrogram(
            sample_rate_hz=sample_rate_hz,
            **own,
            dtype="float32",
            name="spectrogram",
        )
        self.deltas = (
            frames.Deltas(width, edges, dtype="float32") if width else None
        )
        self.norm = (
            frames.UtteranceNorm(**deviation, dtype="float32")
            if normalize
            else None
        )
        self.stacking = frames.FrameStacking(size, dtype="float32")

    @property
    def dim(self):
        """The number of features of a frame."""
        per_spectrum = self.spectrogram.dim * (2 if self.deltas else 1)
        return self.stacking.size * per_spectrum

    def longest_clip(self, frames):
        """Returns the samples of the longest clip of so many frames."""
        spectra = (frames + 1) * self.stacking.size - 1
        return spectra * self.spectrogram.hop_size - 1

    @property
    def frame_size(self):
        """The number of samples from one frame to the next."""
        return self.spectrogram.hop_size * self.stacking.size

    @property
    def first_middle(self):
        """The middle of the first frame, as a number of samples."""
        # A stack has its middle in the middle of its spectra.
        return (self.frame_size - self.spectrogram.hop_size) / 2

    def frame_lengths(self, lengths):
        """Counts the real frames of clips.

        Args:
            lengths: integer `(batch,)`, real samples of each clip.

        Returns:
            Int32 tensor `(batch,)`.
        """
        lengths = self.spectrogram.frame_lengths(lengths)
        return frames.stacked_lengths(lengths, self.stacking.size)

    def build(self, input_shape):
        self.spectrogram.build(input_shape)
        shape = (None, None, self.spectrogram.dim)
        for layer in (self.deltas, self.norm, self.stacking):
            if layer is not None:
                layer.build(shape)

    def call(self, waveform, lengths=None, return_lengths=False):
        check_floating("waveform", waveform)
        lengths = masks.real_lengths(waveform, lengths)
        waveform = ops.cast(waveform, "float32")
        if self.level_db is not None:
            waveform = spectral.set_level(waveform, lengths, self.level_db)
        x = self.spectrogram(waveform, lengths)
        # Not by calling the layers: masks would cling to what they return.
        lengths = self.spectrogram.frame_lengths(lengths)
        if self.deltas is not None:
            slopes = self.deltas.transform(x, lengths)
            x = ops.concatenate([x, slopes], axis=-1)
        if self.norm is not None:
            x = self.norm.transform(x, lengths)
        x = ops.cast(self.stacking.transform(x, lengths), self.compute_dtype)
        if not return_lengths:
            return x
        return x, frames.stacked_lengths(lengths, self.stacking.size)

    def compute_output_spec(self, waveform, lengths=None, return_lengths=False):
        x = self.spectrogram.compute_output_spec(waveform)
        batch, count, _ = self.stacking.compute_output_spec(x).shape
        x = keras.KerasTensor(
            (batch, count, self.dim), dtype=self.compute_dtype
        )
        lengths = keras.KerasTensor((batch,), dtype="int32")
        return (x, lengths) if return_lengths else x

    def get_config(self):
        return {
            **super().get_config(),
            "preset": self.preset,
            "sample_rate_hz": self.sample_rate_hz,
            "options": self.options,
        }


DEVIATION = ("unbiased", "epsilon", "min_deviation")

SPECTROGRAMS = {
    "log_mel": spectral.LogMel,
    "decibel": spectral.DecibelSpectrogram,
}

PAPER = {
    "level_db": None,
    "spectrogram": "log_mel",
    "window_s": 0.05,
    "hop_s": 0.0125,
    "fft_length": 2048,
    "padding": "reflect",
    "pre_emphasis": 0.0,
    "num_mel_bins": 80,
    "mel_scale": "slaney",
    "mel_norm": "slaney",
    "min_frequency_hz": 0.0,
    "max_frequency_hz": None,
    "floor": 1e-6,
    "delta_width": 9,
    "delta_edges": "interp",
    "normalize": True,
    "unbiased": False,
    "epsilon": 1e-16,
    "min_deviation": 1e-4,
    "stack_size": 3,
}

MEL_OPTIONS = (
    "num_mel_bins",
    "mel_scale",
    "mel_norm",
    "min_frequency_hz",
    "max_frequency_hz",
    "floor",
)

PRESETS = {
    "paper": PAPER,
    "paper_target": {
        **{key: PAPER[key] for key in PAPER if key not in MEL_OPTIONS},
        "spectrogram": "decibel",
        "pre_emphasis": 0.97,
        "delta_width": 0,
    },
    "s3prl": {
        **PAPER,
        "level_db": -25.0,
        "window_s": 0.025,
        "hop_s": 0.01,
        "fft_length": 400,
        "mel_scale": "htk",
        "mel_norm": None,
        "floor": 1e-10,
        "delta_width": 0,
        "unbiased": True,
        "epsilon": 1e-10,
        "stack_size": 1,
    },
}
