"""Speech features against loops in float64 that share no code with them."""

import functools

import keras
import naive
import numpy as np
import pytest

from audio_tf import layers
from audio_tf.layers import features

B, S = 3, 907
LENGTHS = np.array([907, 401, 37], "int32")

# A rate of 1000 Hz, a window of 23 samples, a hop of 7: primes.
SMALL = {
    "sample_rate_hz": 1000,
    "window_s": 0.023,
    "hop_s": 0.007,
    "fft_length": 64,
}

SPECTROGRAMS = {
    "power": lambda **more: layers.Spectrogram(**{**SMALL, **more}),
    "power_emphasis": lambda **more: layers.Spectrogram(
        **{**SMALL, "pre_emphasis": 0.9, "padding": "zero", **more}
    ),
    "log_mel": lambda **more: layers.LogMel(
        **{**SMALL, "num_mel_bins": 11, "floor": 1e-4, **more}
    ),
    "log_mel_htk": lambda **more: layers.LogMel(
        **{
            **SMALL,
            "num_mel_bins": 5,
            "mel_scale": "htk",
            "mel_norm": None,
            "min_frequency_hz": 60.0,
            "max_frequency_hz": 410.0,
            "window_s": 0.022,
            **more,
        }
    ),
    "decibel": lambda **more: layers.DecibelSpectrogram(
        **{**SMALL, "window_s": 0.05, **more}
    ),
    # Frames that do not touch each other.
    "apart": lambda **more: layers.Spectrogram(
        **{**SMALL, "window_s": 0.005, "hop_s": 0.013, "fft_length": 6, **more}
    ),
}

OPTIONS = {"window_s": 0.025, "hop_s": 0.01, "fft_length": 32}
FEATURES = {
    "paper": lambda **more: layers.SpeechFeatures(
        "paper", 1000, {**OPTIONS, "num_mel_bins": 7}, **more
    ),
    "paper_target": lambda **more: layers.SpeechFeatures(
        "paper_target", 1000, OPTIONS, **more
    ),
    "s3prl": lambda **more: layers.SpeechFeatures(
        "s3prl", 1000, {**OPTIONS, "num_mel_bins": 5, "delta_width": 5}, **more
    ),
    # Without normalisation, which undoes the level.
    "level": lambda **more: layers.SpeechFeatures(
        "s3prl",
        1000,
        {**OPTIONS, "num_mel_bins": 5, "normalize": False, "stack_size": 2},
        **more,
    ),
}

FRAMES = {
    "deltas": lambda **more: layers.Deltas(5, **more),
    "deltas_nearest": lambda **more: layers.Deltas(7, "nearest", **more),
    "norm": lambda **more: layers.UtteranceNorm(**more),
    "norm_unbiased": lambda **more: layers.UtteranceNorm(True, 1e-3, **more),
    "stacking": lambda **more: layers.FrameStacking(3, **more),
}

of_waveforms = {**SPECTROGRAMS, **FEATURES}
everything = {**of_waveforms, **FRAMES}
every_waveform_layer = pytest.mark.parametrize("name", of_waveforms)
every_frame_layer = pytest.mark.parametrize("name", FRAMES)
every = pytest.mark.parametrize("name", everything)


@functools.cache
def built(name):
    """A layer that no test changes."""
    return everything[name]()


only_on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a TensorFlow graph"
)


def clips(rng, samples=S):
    """Noise in which some frequencies are 60 dB above others."""
    t = np.arange(samples) / 1000
    tone = np.sin(2 * np.pi * 123 * t) * np.exp(-3 * t)
    noise = rng.standard_normal((B, samples))
    return (tone + 1e-3 * noise).astype("float32")


def frames(rng, time=29, dim=5):
    return (rng.standard_normal((B, time, dim)) - 7).astype("float32")


def prefix(real, time):
    return np.arange(time) < np.array(real)[:, None]


# The reference ------------------------------------------------------------


def naive_sample(clip, position, padding):
    if padding == "zero":
        return clip[position] if 0 <= position < len(clip) else 0.0
    while not 0 <= position < len(clip):
        if len(clip) == 1:
            return clip[0]
        if position < 0:
            position = -position
        else:
            position = 2 * (len(clip) - 1) - position
    return clip[position]


def naive_power(clip, rate, window_s, hop_s, size, emphasis, padding):
    """A frame in the middle of `size` zeros, as librosa has it."""
    clip = np.array(clip, "float64")
    clip = np.array(
        [clip[0]]
        + [clip[i] - emphasis * clip[i - 1] for i in range(1, len(clip))]
    )
    window_size, hop = int(window_s * rate + 0.5), int(hop_s * rate + 0.5)
    power = []
    for middle in range(0, len(clip) + 1, hop):
        buffer = np.zeros(size)
        first = (size - window_size) // 2
        for n in range(first, first + window_size):
            hann = np.sin(np.pi * (n - first) / window_size) ** 2
            sample = naive_sample(clip, middle - size // 2 + n, padding)
            buffer[n] = hann * sample
        power.append(np.abs(np.fft.rfft(buffer)) ** 2)
    return np.array(power)


def naive_mel(hz, scale):
    if scale == "htk":
        return 1127.010480 * np.log(1 + hz / 700)
    return 3 * hz / 200 if hz < 1000 else 15 + 27 * np.log(hz / 1e3) / 1.8562979


def naive_hz(mel, scale):
    low, high = 0.0, 1e5
    for _ in range(80):
        middle = (low + high) / 2
        if naive_mel(middle, scale) < mel:
            low = middle
        else:
            high = middle
    return low


def naive_filters(
    bands, size, rate, scale, norm, min_frequency_hz, max_frequency_hz
):
    low, high = (
        naive_mel(min_frequency_hz, scale),
        naive_mel(max_frequency_hz, scale),
    )
    edges = [
        naive_hz(low + (high - low) * i / (bands + 1), scale)
        for i in range(bands + 2)
    ]
    filters = np.zeros((size // 2 + 1, bands))
    for band in range(bands):
        left, top, right = edges[band : band + 3]
        for k in range(size // 2 + 1):
            hz = k * rate / size
            if left < hz <= top:
                filters[k, band] = (hz - left) / (top - left)
            elif top < hz < right:
                filters[k, band] = (right - hz) / (right - top)
        if norm == "slaney":
            filters[:, band] /= (right - left) / 2
    return filters


def naive_spectrogram(layer, clip):
    power = naive_power(
        clip,
        layer.sample_rate_hz,
        layer.window_s,
        layer.hop_s,
        layer.fft_length,
        layer.pre_emphasis,
        layer.padding,
    )
    if isinstance(layer, layers.LogMel):
        filters = naive_filters(
            layer.num_mel_bins,
            layer.fft_length,
            layer.sample_rate_hz,
            layer.mel_scale,
            layer.mel_norm,
            layer.min_frequency_hz,
            layer.max_frequency_hz or layer.sample_rate_hz / 2,
        )
        return np.log(power @ filters + layer.floor)
    if isinstance(layer, layers.DecibelSpectrogram):
        db = 20 * np.log10(np.maximum(1e-5, np.sqrt(power))) - 20
        return np.clip((db + 100) / 100, 0, 1)
    return power


def naive_deltas(x, width, edges):
    time, reach = len(x), width // 2
    slopes = np.zeros(x.shape)
    for t in range(time):
        for feature in range(x.shape[1]):
            if edges == "nearest":
                at = np.arange(t - reach, t + reach + 1)
                y = x[np.clip(at, 0, time - 1), feature]
            else:
                start = min(max(t - reach, 0), max(time - width, 0))
                at = np.arange(start, min(start + width, time))
                y = x[at, feature]
            if len(at) > 1:
                slopes[t, feature] = np.polyfit(at, y, 1)[0]
    return slopes


def naive_norm(x, unbiased, epsilon):
    deviation = x.std(axis=0, ddof=int(unbiased and len(x) > 1))
    varies = x.max(axis=0) > x.min(axis=0)
    deviation = np.where(varies, deviation, 1)
    return varies * (x - x.mean(axis=0)) / (deviation + epsilon)


def naive_stack(x, size):
    if len(x) < size:
        x = np.concatenate([x, np.zeros((size - len(x), x.shape[1]))])
    return np.array(
        [
            np.concatenate(x[i : i + size])
            for i in range(0, len(x) - size + 1, size)
        ]
    )


def naive_features(clip, rate, o):
    """All steps of a preset whose values are `o`."""
    clip = np.array(clip, "float64")
    if o["level_db"] is not None:
        rms = np.sqrt(np.mean(clip**2)) + 1e-10
        clip = clip / rms * 10 ** (o["level_db"] / 20)
    own = ("level_db", "delta_width", "delta_edges", "normalize")
    own += ("unbiased", "epsilon", "min_deviation", "stack_size", "spectrogram")
    kind = features.SPECTROGRAMS[o["spectrogram"]]
    given = {key: o[key] for key in o if key not in own}
    x = naive_spectrogram(kind(sample_rate_hz=rate, **given), clip)
    if o["delta_width"]:
        slopes = naive_deltas(x, o["delta_width"], o["delta_edges"])
        x = np.concatenate([x, slopes], axis=1)
    if o["normalize"]:
        x = naive_norm(x, o["unbiased"], o["epsilon"])
    return naive_stack(x, o["stack_size"])


# Numbers ------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECTROGRAMS)
def test_spectrogram_is_librosas_definition(name, rng):
    layer, x = built(name), clips(rng)
    found = np.asarray(layer(x, LENGTHS))
    assert found.shape == (B, 1 + S // layer.hop_size, layer.dim)
    for clip, length in enumerate(LENGTHS):
        expected = naive_spectrogram(layer, x[clip, :length])
        real = len(expected)
        assert real == 1 + length // layer.hop_size
        scale = 1 + np.abs(expected).max()
        # In decibels, what cancels almost wholly is seen most.
        np.testing.assert_allclose(
            found[clip, :real] / scale,
            expected / scale,
            atol=1e-4 if name == "decibel" else 3e-6,
        )
        np.testing.assert_array_equal(found[clip, real:], 0)


@pytest.mark.one_backend
@pytest.mark.parametrize("preset", features.PRESETS)
def test_presets_at_their_own_rate(preset, rng):
    """The presets have the sizes of s3prl's settings and equal the loops."""
    x = rng.standard_normal((2, 3217)).astype("float32") * 0.05
    x[0] += np.sin(np.arange(3217) * 0.3)
    layer = layers.SpeechFeatures(preset)
    found, real = layer(x, np.array([3217, 1500]), return_lengths=True)
    dim, hop, stack = {
        "paper": (480, 200, 3),
        "paper_target": (3075, 200, 3),
        "s3prl": (80, 160, 1),
    }[preset]
    assert found.shape == (2, (1 + 3217 // hop) // stack, dim)
    assert (layer.dim, layer.frame_size) == (dim, hop * stack)
    expected_options = {
        "paper": (0.05, 0.0125, 2048, 1e-6, None, "slaney", "slaney", 0.0),
        "paper_target": (0.05, 0.0125, 2048, None, None, None, None, 0.97),
        "s3prl": (0.025, 0.01, 400, 1e-10, -25.0, "htk", None, 0.0),
    }[preset]
    keys = ("window_s", "hop_s", "fft_length", "floor", "level_db", "mel_scale")
    keys += ("mel_norm", "pre_emphasis")
    options = layer.options
    assert tuple(options.get(key) for key in keys) == expected_options
    assert options["padding"] == "reflect"
    assert options["delta_width"] == (9 if preset == "paper" else 0)
    assert (options["unbiased"], options["epsilon"]) == (
        (True, 1e-10) if preset == "s3prl" else (False, 1e-16)
    )
    for clip, length in enumerate((3217, 1500)):
        expected = naive_features(x[clip, :length], 16_000, options)
        assert int(real[clip]) == len(expected)
        np.testing.assert_allclose(
            np.asarray(found)[clip, : len(expected)], expected, atol=2e-3
        )


@pytest.mark.parametrize("name", FEATURES)
def test_features_are_the_steps_in_order(name, rng):
    layer, x = FEATURES[name](), clips(rng)
    found, steps = layer(x, LENGTHS, return_lengths=True)
    found, steps = np.asarray(found), np.asarray(steps)
    np.testing.assert_array_equal(steps, layer.frame_lengths(LENGTHS))
    for clip, length in enumerate(LENGTHS):
        expected = naive_features(x[clip, :length], 1000, layer.options)
        assert len(expected) == steps[clip]
        np.testing.assert_allclose(
            found[clip, : steps[clip]], expected, atol=1e-3
        )
        np.testing.assert_array_equal(found[clip, steps[clip] :], 0)


@pytest.mark.parametrize("edges", ["interp", "nearest"])
@pytest.mark.parametrize("width", [3, 5, 9])
def test_deltas_are_slopes_of_fitted_lines(width, edges, rng):
    x, layer = frames(rng), layers.Deltas(width, edges)
    for real in range(1, 30):
        mask = prefix((29, real, 0), 29)
        found = np.asarray(layer(x, mask=mask))
        np.testing.assert_allclose(
            found[1, :real], naive_deltas(x[1, :real], width, edges), atol=1e-5
        )
        np.testing.assert_array_equal(found[1, real:], 0)
        np.testing.assert_array_equal(found[2], 0)
    np.testing.assert_allclose(
        found[0], naive_deltas(x[0], width, edges), atol=1e-5
    )
    np.testing.assert_array_equal(layer(x), layer(x, mask=np.ones((B, 29))))
    assert tuple(layer(x[:, :0]).shape) == x[:, :0].shape


@pytest.mark.parametrize("unbiased", [False, True])
def test_norm_is_over_real_frames_alone(unbiased, rng):
    x, layer = frames(rng), layers.UtteranceNorm(unbiased)
    x[:, :, 3] = 0.1  # A feature that does not vary.
    for real in range(1, 30):
        found = np.asarray(layer(x, mask=prefix((29, real, 0), 29)))
        np.testing.assert_allclose(
            found[1, :real], naive_norm(x[1, :real], unbiased, 0), atol=1e-5
        )
        np.testing.assert_array_equal(found[1, real:], 0)
        np.testing.assert_array_equal(found[2], 0)
        np.testing.assert_array_equal(found[:, :, 3], 0)
    np.testing.assert_allclose(found[0], layer(x)[0], atol=1e-6)


def test_small_deviations_are_not_blown_up(rng):
    x = frames(rng)
    small = 1e-6 * (x + 7)
    found = np.asarray(layers.UtteranceNorm()(small))
    expected = (small - small.mean(axis=1, keepdims=True)) / 1e-4
    np.testing.assert_allclose(found, expected, atol=1e-5)
    found = np.asarray(layers.UtteranceNorm(min_deviation=0.0)(small))
    np.testing.assert_allclose(found[0], naive_norm(x[0], 0, 0), atol=1e-4)


def test_epsilon_is_added_to_the_deviation(rng):
    x = frames(rng)
    found = np.asarray(layers.UtteranceNorm(epsilon=0.5)(x))
    np.testing.assert_allclose(
        found[0], naive_norm(x[0], False, 0.5), atol=1e-5
    )


@pytest.mark.parametrize("size", [1, 2, 3, 31])
def test_stacks_drop_the_rest(size, rng):
    x, layer = frames(rng), layers.FrameStacking(size)
    for real in (29, 6, 5, 1):
        mask = prefix((29, real, 0), 29)
        found = np.asarray(layer(x, mask=mask))
        found_mask = np.asarray(layer.compute_mask(x, mask))
        expected = naive_stack(x[1, :real], size)
        steps = len(expected)
        assert found.shape == (B, max(29 // size, 1), 5 * size)
        assert steps == max(real // size, 1)
        np.testing.assert_array_equal(found_mask.sum(axis=1)[1:], [steps, 0])
        np.testing.assert_array_equal(found[1, :steps], expected)
        np.testing.assert_array_equal(found[1, steps:], 0)
        np.testing.assert_array_equal(found[2], 0)
    assert layer.compute_mask(x) is None


@every_frame_layer
@pytest.mark.parametrize("time", [None, 29])
def test_a_functional_model_hands_masks_on(name, time, rng):
    """Implicit masks and given ones, of a length that is known or not."""
    x, mask = frames(rng), prefix((29, 5, 0), 29)
    x[~mask] = 0.0
    layer = built(name)
    real = layer.compute_mask(x, mask)
    expected = layers.MaskedMean()(layer(x, mask=mask), mask=real)
    inputs = keras.Input((time, 5))
    given = keras.Input((time,), dtype="bool")
    masked = keras.layers.Masking(0.0)(inputs)
    # The mean takes the mask that comes along with the frames.
    model = keras.Model(
        [inputs, given],
        [
            layers.MaskedMean()(layer(masked)),
            layers.MaskedMean()(layer(inputs, mask=given)),
        ],
    )
    for found in model.predict([x, mask], verbose=0):
        np.testing.assert_allclose(found, np.asarray(expected), atol=1e-5)


def test_quiet_bands_are_not_lost_beside_a_loud_tone():
    """Single precision has to reach 100 dB below a tone of full scale."""
    t = np.arange(8000) / 16_000
    rng = np.random.default_rng(5)
    x = np.sin(2 * np.pi * 440 * t) + 1e-5 * rng.standard_normal(8000)
    x = x.astype("float32")
    layer = layers.LogMel(floor=1e-10)
    # The ends, where the mirrored tone has a kink, are loud everywhere.
    found = np.asarray(layer(x[None]))[0, 10:20]
    expected = naive_spectrogram(layer, x)[10:20]
    assert expected.max() - expected.min() > 18  # Nepers of power.
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_bands_without_a_bin_are_told():
    layer = layers.LogMel(
        **{**SMALL, "num_mel_bins": 60, "mel_scale": "htk", "floor": 1e-4}
    )
    with pytest.warns(UserWarning, match="mel bands") as told:
        found = np.asarray(layer(np.random.default_rng(6).random((1, 400))))
    silent = np.isclose(found, np.log(1e-4), atol=1e-6).all(axis=(0, 1))
    assert 0 < silent.sum() < 60
    assert f"{silent.sum()} of the 60 mel bands" in str(told[0].message)


# Behaviour ----------------------------------------------------------------


@every_waveform_layer
def test_padding_changes_nothing(name, rng):
    layer, x = built(name), clips(rng)
    for clip, length in enumerate(LENGTHS):
        x[clip, length:] = np.nan
    together = np.asarray(layer(x, LENGTHS))
    assert np.isfinite(together).all()
    for clip, length in enumerate(LENGTHS):
        one = slice(clip, clip + 1)
        alone = np.asarray(layer(x[one, :length]))
        said = np.asarray(layer(x[one, :length], LENGTHS[one]))
        np.testing.assert_allclose(alone, said, atol=1e-5)
        np.testing.assert_allclose(
            together[one, : alone.shape[1]], alone, atol=1e-3, rtol=1e-4
        )
        np.testing.assert_array_equal(together[clip, alone.shape[1] :], 0)


@every_frame_layer
def test_padding_of_frames_changes_nothing(name, rng):
    layer, x, real = built(name), frames(rng), (29, 11, 2)
    mask = prefix(real, 29)
    for clip, length in enumerate(real):
        x[clip, length:] = np.nan
    together = np.asarray(layer(x, mask=mask))
    for clip, length in enumerate(real):
        alone = np.asarray(layer(x[clip : clip + 1, :length]))[0]
        np.testing.assert_allclose(
            together[clip, : len(alone)], alone, atol=1e-5
        )
        np.testing.assert_array_equal(together[clip, len(alone) :], 0)


@every_waveform_layer
def test_clips_shorter_than_the_window(name, rng):
    layer = built(name)
    # Alone, each in a call of its own shape, and beside each other.
    counts, x = (0, 1, 2, 3, 11, 24), np.tile(clips(rng, 75), (2, 1))
    for row, samples in enumerate(counts):
        x[row, samples:] = 3.0
    together = np.asarray(layer(x, np.array(counts)))
    for row, samples in enumerate(counts):
        clip = x[row : row + 1, :samples]
        found = np.asarray(layer(clip))
        assert np.isfinite(found).all(), samples
        if name in SPECTROGRAMS:
            assert found.shape[1] == 1 + samples // layer.hop_size
        if samples == 0:
            np.testing.assert_array_equal(found, 0)
        elif name in SPECTROGRAMS:
            expected = naive_spectrogram(layer, clip[0])
            np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(
            together[row, : found.shape[1]],
            found[0],
            rtol=1e-4,
            atol=1e-3,
            err_msg=f"{samples} samples",
        )


@every_waveform_layer
def test_silence_is_finite(name):
    layer = built(name)
    x = np.zeros((2, 101), "float32")
    for lengths in (None, np.array([101, 0])):
        found = np.asarray(layer(x, lengths))
        assert np.isfinite(found).all()
        if name in FEATURES and layer.norm:
            # Rounding of the logarithm is not blown up to sound.
            np.testing.assert_allclose(found, 0, atol=0.05)


def test_a_constant_signal_has_no_slopes():
    x = np.full((1, 40, 3), np.float32(-13.8155))
    np.testing.assert_array_equal(layers.UtteranceNorm()(x), 0)
    np.testing.assert_array_equal(layers.Deltas()(x), 0)


@every
def test_config_is_complete(name):
    layer = everything[name]()
    assert naive.missing_from_config(layer) == []
    revived = type(layer).from_config(layer.get_config())
    assert revived.get_config() == layer.get_config()
    assert keras.saving.get_registered_name(type(layer)).startswith("audio_tf>")


@every_waveform_layer
def test_config_gives_the_same_layer(name, rng):
    layer, x = built(name), clips(rng)
    revived = type(layer).from_config(layer.get_config())
    np.testing.assert_array_equal(revived(x, LENGTHS), layer(x, LENGTHS))


def test_config_does_not_depend_on_the_table(monkeypatch):
    """A saved model keeps its numbers when a preset is corrected."""
    config = layers.SpeechFeatures("s3prl").get_config()
    changed = {**features.PRESETS["s3prl"], "floor": 7.0}
    monkeypatch.setitem(features.PRESETS, "s3prl", changed)
    revived = layers.SpeechFeatures.from_config(config)
    assert revived.spectrogram.floor == 1e-10


@every_waveform_layer
def test_symbolic_and_eager_specs_agree(name, rng):
    layer, x = built(name), clips(rng)
    eager = layer(x, LENGTHS)
    lengths = keras.KerasTensor((B,), dtype="int32")
    static = layer(keras.KerasTensor((B, S)), lengths)
    dynamic = layer(keras.KerasTensor((None, None)))
    assert tuple(eager.shape) == static.shape
    assert dynamic.shape == (None, None, eager.shape[-1])
    assert layer.weights == []
    for samples in (1, 5, 21):
        static = layer(keras.KerasTensor((B, samples)))
        assert static.shape == tuple(layer(x[:, :samples]).shape)


@every_frame_layer
def test_specs_of_frame_layers_agree(name, rng):
    layer, x = built(name), frames(rng)
    assert layer(keras.KerasTensor(x.shape)).shape == tuple(layer(x).shape)
    assert len(layer(keras.KerasTensor((None, None, 5))).shape) == 3


def test_features_in_a_functional_model(rng):
    waveform, lengths = keras.Input((None,)), keras.Input((), dtype="int32")
    outputs = FEATURES["paper"]()(waveform, lengths, return_lengths=True)
    model = keras.Model([waveform, lengths], outputs)
    found, steps = model.predict([clips(rng), LENGTHS], verbose=0)
    expected, expected_steps = FEATURES["paper"]()(
        clips(np.random.default_rng(2024)), LENGTHS, return_lengths=True
    )
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_array_equal(steps, expected_steps)


def test_no_mask_clings_to_features(rng):
    found = FEATURES["paper"]()(clips(rng), LENGTHS)
    assert keras.src.backend.get_keras_mask(found) is None


@every
@pytest.mark.op_by_op
def test_float32_whatever_the_policy(name, rng):
    """The very numbers of float32, rounded once."""
    x = clips(rng) if name in of_waveforms else frames(rng)
    expected = np.asarray(built(name)(x))
    for dtype in ("float16", "bfloat16"):
        found = everything[name](dtype=f"mixed_{dtype}")(x)
        assert keras.backend.standardize_dtype(found.dtype) == dtype
        rounded = keras.ops.cast(keras.ops.cast(expected, dtype), "float32")
        np.testing.assert_array_equal(
            keras.ops.cast(found, "float32"), rounded, err_msg=dtype
        )


NAN = float("nan")


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: layers.Spectrogram(padding="wrap"), "padding='wrap'"),
        (lambda: layers.Spectrogram(window_s=0.00006), "window_s=6e-05"),
        (lambda: layers.Spectrogram(hop_s=0.0), "hop_s=0.0"),
        (lambda: layers.Spectrogram(fft_length=798), "fft_length=798"),
        (lambda: layers.Spectrogram(fft_length=2047), "fft_length=2047"),
        (lambda: layers.LogMel(mel_scale="bark"), "mel_scale='bark'"),
        (lambda: layers.LogMel(mel_norm="l2"), "mel_norm='l2'"),
        (lambda: layers.LogMel(num_mel_bins=0), "num_mel_bins=0"),
        (
            lambda: layers.LogMel(max_frequency_hz=8001.0),
            "max_frequency_hz=8001.0",
        ),
        (
            lambda: layers.LogMel(min_frequency_hz=8000.0),
            "min_frequency_hz=8000.0",
        ),
        (lambda: layers.LogMel(floor=0.0), "floor=0.0"),
        (lambda: layers.Deltas(4), "width=4"),
        (lambda: layers.Deltas(1), "width=1"),
        (lambda: layers.Deltas(edges="mirror"), "edges='mirror'"),
        (lambda: layers.FrameStacking(0), "size=0"),
        (lambda: layers.FrameStacking(2.0), "size=2.0"),
        (lambda: layers.Deltas(5.0), "width=5.0"),
        (lambda: layers.UtteranceNorm(epsilon=-1.0), "epsilon=-1.0"),
        (lambda: layers.UtteranceNorm(min_deviation=NAN), "min_deviation=nan"),
        (lambda: layers.UtteranceNorm(unbiased="no"), "unbiased='no'"),
        (lambda: layers.Spectrogram(window_s=NAN), "window_s=nan"),
        (lambda: layers.Spectrogram(hop_s=NAN), "hop_s=nan"),
        (lambda: layers.Spectrogram(pre_emphasis=NAN), "pre_emphasis=nan"),
        (lambda: layers.Spectrogram(16e3), "sample_rate_hz=16000.0"),
        (lambda: layers.FrameMasking(mask_rate=NAN), "mask_rate=nan"),
        (lambda: layers.FrameMasking(gap_frames=True), "gap_frames=True"),
        (
            lambda: layers.SpeechFeatures("papre"),
            "mean 'paper'.*preset='papre'",
        ),
    ],
)
def test_what_cannot_be_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_an_option_that_a_preset_has_not_is_named():
    with pytest.raises(
        TypeError, match="'num_mel_bin'; did you mean 'num_mel_bins'"
    ):
        layers.SpeechFeatures(options={"num_mel_bin": 40})
    with pytest.raises(
        TypeError, match="'paper_target' takes no.*'num_mel_bins'"
    ):
        layers.SpeechFeatures("paper_target", options={"num_mel_bins": 4})


@only_on_tensorflow
@every
@pytest.mark.parametrize("silent", [False, True])
def test_gradients_are_finite_and_true(name, silent, rng):
    import tensorflow as tf

    waveforms = name in of_waveforms
    x = clips(rng, 131) if waveforms else frames(rng)
    if silent:
        x = np.zeros_like(x)
    layer = built(name)
    more = (np.array([131, 60, 0]),) if waveforms else ()
    weights = rng.standard_normal(layer(x, *more).shape).astype("float32")

    def loss(x):
        return tf.reduce_sum(layer(x, *more) * weights)

    with tf.GradientTape() as tape:
        tensor = tf.constant(x)
        tape.watch(tensor)
        value = loss(tensor)
    gradient = tape.gradient(value, tensor).numpy()
    assert np.isfinite(gradient).all()
    if waveforms:
        np.testing.assert_array_equal(gradient[1, 60:], 0)
    if silent or name in ("decibel", "paper_target"):  # They have kinks.
        return
    direction = gradient / np.linalg.norm(gradient)
    step = 1e-4 if waveforms else 1e-2
    slope = (loss(x + step * direction) - loss(x - step * direction)) / step / 2
    assert float(slope) == pytest.approx(np.linalg.norm(gradient), rel=0.03)


# XLA compiles each shape anew: once for each part of the layers.
JITTED = ("power_emphasis", "decibel", "paper", "level")


@pytest.mark.costly
@only_on_tensorflow
@pytest.mark.parametrize(
    "jit, name",
    [
        *(
            # What is compiled is a graph already.
            pytest.param(False, name, marks=pytest.mark.slow)
            if name in JITTED
            else (False, name)
            for name in of_waveforms
        ),
        *((True, name) for name in JITTED),
    ],
)
def test_dynamic_shapes_in_a_graph(jit, name, rng):
    import tensorflow as tf

    layer = built(name)
    layer.build((None, None))
    graph = tf.function(
        layer.call,
        input_signature=[
            tf.TensorSpec((None, None), tf.float32),
            tf.TensorSpec((None,), tf.int32),
        ],
        jit_compile=jit,
    )
    for samples in (S, 16, 1):
        x = clips(rng, samples)
        lengths = np.minimum(LENGTHS, samples)
        np.testing.assert_allclose(
            graph(x, lengths), layer(x, lengths), rtol=1e-4, atol=1e-3
        )
    empty = graph(np.zeros((0, 40), "float32"), np.zeros(0, "int32"))
    assert empty.shape[0] == 0


@pytest.mark.costly
@only_on_tensorflow
@pytest.mark.parametrize(
    "name",
    [
        # It has every part; the graphs of all are compared above.
        name if name == "s3prl" else pytest.param(name, marks=pytest.mark.slow)
        for name in FEATURES
    ],
)
def test_export_as_a_saved_model(name, rng, tmp_path):
    import tensorflow as tf

    layer = built(name)
    waveform = keras.Input((None,), name="waveform")
    lengths = keras.Input((), dtype="int32", name="lengths")
    features = layer(waveform, lengths)
    model = keras.Model(
        {"waveform": waveform, "lengths": lengths}, {"features": features}
    )
    model.export(str(tmp_path), verbose=False)
    serve = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    for samples in (S, 16):
        x = clips(rng, samples)
        real = np.minimum(LENGTHS, samples)
        found = serve(waveform=tf.constant(x), lengths=tf.constant(real))
        np.testing.assert_allclose(
            found["features"], layer(x, real), rtol=1e-4, atol=1e-3
        )


def test_jit_on_jax(rng):
    if keras.backend.backend() != "jax":
        pytest.skip("compiled by JAX")
    import jax

    for name, make in FEATURES.items():
        layer, x = make(), clips(rng)
        layer.build(x.shape)
        found = jax.jit(layer.call)(x, LENGTHS)
        np.testing.assert_allclose(
            found, layer(x, LENGTHS), atol=1e-3, err_msg=name
        )
