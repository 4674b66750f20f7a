"""Layers against naive references, and the behaviour they share."""

import keras
import naive
import numpy as np
import pytest
import tiny
from attention_cases import gradients

from audio_tf import layers
from audio_tf.layers import frontend, multiscale, positions
from audio_tf.ops.layer import Dropout, Layer

B, T, F = 3, 11, 13

LAYERS = {
    "positions": lambda: layers.SinusoidalPositions(),
    "feed_forward": lambda: layers.FeedForward((5, 7), "gelu", 0.3),
    "block": lambda: layers.TransformerBlock(
        2, 5, (7,), "full", {"use_bias": False}, True, "gelu", 0.2
    ),
    "pooling": lambda: layers.TemporalAveragePooling(3, 2),
    "max_pooling": lambda: layers.TemporalMaxPooling(3, 2),
    "mean": lambda: layers.MaskedMean(),
    "multiscale": lambda: layers.MultiScaleAverage(8),
    "multiscale_causal": lambda: layers.MultiScaleAverage(4, causal=True),
    "multiscale_shares": lambda: layers.MultiScaleAverage(
        windows=[3, 5], shares=[0.5, 0.25]
    ),
    "convolutional_positions": lambda: layers.ConvolutionalPositions(4, 1),
}

every = pytest.mark.parametrize("name", LAYERS)


def frames(rng, length=T):
    return rng.standard_normal((B, length, F)).astype("float32")


def prefix(real, length=T):
    return np.arange(length) < np.array(real)[:, None]


def apply(layer, x, mask):
    """Calls layers with a mask that take one."""
    if "mask" in layer._call_signature.parameters:
        return layer(x, mask=mask)
    return layer(x)


@every
def test_config_is_complete(name):
    layer = LAYERS[name]()
    assert naive.missing_from_config(layer) == []
    revived = type(layer).from_config(layer.get_config())
    assert revived.get_config() == layer.get_config()


@every
def test_symbolic_and_eager_specs_agree(name, rng):
    layer = LAYERS[name]()
    x = frames(rng)
    eager = apply(layer, x, None)
    static = apply(layer, keras.KerasTensor(x.shape), None)
    dynamic = apply(layer, keras.KerasTensor((None, None, F)), None)
    assert tuple(eager.shape) == static.shape
    assert len(dynamic.shape) == len(static.shape)
    assert dynamic.shape[-1] == static.shape[-1]
    unbuilt = LAYERS[name]()
    for symbolic in (static, dynamic):
        given = x.shape if symbolic is static else (None, None, F)
        assert unbuilt.compute_output_shape(given) == symbolic.shape


@every
def test_padding_changes_nothing(name, rng):
    layer, x, real = LAYERS[name](), frames(rng), (T, 5, 1)
    mask = prefix(real)
    for clip, length in enumerate(real):
        x[clip, length:] = 100.0
    together = np.asarray(apply(layer, x, mask))
    for clip, length in enumerate(real):
        one = slice(clip, clip + 1)
        alone = np.asarray(apply(layer, x[one, :length], mask[one, :length]))
        if alone.ndim == 2:
            np.testing.assert_allclose(together[one], alone, atol=1e-5)
        else:
            np.testing.assert_allclose(
                together[one, : alone.shape[1]], alone, atol=1e-5
            )


@every
def test_half_precision_is_close(name, rng):
    x, mask = frames(rng), prefix((T, 5, 1))
    layer = LAYERS[name]()
    expected = np.asarray(apply(layer, x, mask))
    for dtype, error in (("float16", 0.01), ("bfloat16", 0.08)):
        keras.mixed_precision.set_global_policy(f"mixed_{dtype}")
        half = LAYERS[name]()
        half.build(x.shape)
        half.set_weights(layer.get_weights())
        y = apply(half, x, mask)
        symbol = apply(half, keras.KerasTensor(x.shape), None)
        for each in (y, symbol):
            assert keras.backend.standardize_dtype(each.dtype) == dtype
        found = np.asarray(keras.ops.cast(y, "float32"))
        np.testing.assert_allclose(found, expected, atol=error, err_msg=dtype)


@pytest.mark.parametrize(
    "make",
    [
        *LAYERS.values(),
        layers.FrameNorm,
        layers.ChannelNorm,
        layers.LearnedFrameMasking,
    ],
)
def test_integers_are_taken_for_floats(make):
    x, mask = np.arange(B * T * F).reshape(B, T, F) % 7, prefix((T, 5, 1))
    layer = make()
    expected = apply(layer, x.astype("float32"), mask)
    found = apply(layer, x, mask)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(*map(np.asarray, (found, expected)))


def test_layers_are_distributed_over_an_axis(rng):
    """Keras' wrapper asks a layer for the shape of what it returns."""
    pooling = keras.layers.TimeDistributed(layers.MaskedMean())
    clips = keras.Input((None, None, F))
    model = keras.Model(clips, pooling(clips))
    assert model.output_shape == (None, None, F)
    x = rng.standard_normal((B, 4, T, F)).astype("float32")
    np.testing.assert_allclose(model(x), x.mean(2), atol=1e-6)


def test_a_layer_that_says_no_shape_is_traced():
    class Halved(Layer):
        def call(self, inputs):
            return inputs[:, :, ::2]

    layer = Halved()
    assert layer.compute_output_shape((B, T, 8)) == (B, T, 4)
    assert layer(keras.KerasTensor((None, T, 8))).shape == (None, T, 4)


def test_two_inputs_have_two_shapes():
    mixing = layers.Mixup(1.0)
    waveform, targets, *_ = mixing.compute_output_shape((4, 90), (4, 3))
    assert waveform == (4, 90) and targets == (4, 3)


def positions_in_float64(length, dim):
    """`PE(pos, 2i)` and `PE(pos, 2i + 1)`, each by its formula."""
    values = np.zeros((length, dim))
    position = np.arange(length, dtype="float64")
    for i in range(dim):
        angle = position / 10_000.0 ** (2 * (i // 2) / dim)
        values[:, i] = np.cos(angle) if i % 2 else np.sin(angle)
    return values


@pytest.mark.parametrize("dim", [1, 2, F, 64])
def test_positions_are_exact_to_the_rounding_of_float32(dim):
    """For 20,000 frames, of any length at hand, and an odd size too."""
    wanted = positions_in_float64(20_000, dim)
    layer = layers.SinusoidalPositions()
    for length in (0, 1, 128, 129, 20_000):
        found = np.asarray(layer(np.zeros((1, length, dim), "float32")))[0]
        np.testing.assert_allclose(found, wanted[:length], atol=2e-7, rtol=0)


def test_positions_beyond_the_tables_lose_little():
    wanted = positions_in_float64(100_000, 5)
    found = np.asarray(positions.sinusoids(100_000, 5))
    np.testing.assert_allclose(found[40_000:], wanted[40_000:], atol=1e-6)


def test_positions_of_any_length_in_a_graph(rng):
    x = keras.Input((None, F))
    model = keras.Model(x, layers.SinusoidalPositions()(x))
    for length in (1, 127, 300):
        data = frames(rng, length)
        np.testing.assert_allclose(
            model.predict_on_batch(data),
            data + positions_in_float64(length, F),
            atol=1e-6,
        )


def test_feed_forward_is_dense_after_dense(rng):
    layer, x = layers.FeedForward((5, 7)), frames(rng)
    found = layer(x)
    y = np.maximum(naive.dense(layer.hidden[0], x), 0)
    y = np.maximum(naive.dense(layer.hidden[1], y), 0)
    np.testing.assert_allclose(
        found, naive.dense(layer.output_dense, y), atol=1e-6
    )


def test_block_is_post_norm(rng):
    layer = layers.TransformerBlock(2, 5, (7,), causal=True)
    x, mask = frames(rng), prefix((T, 5, 1))
    found = np.asarray(layer(x, mask=mask))
    attended, _ = naive.full_attention(layer.attention, x, mask)
    y = naive.layer_norm(x + attended, 1e-5)
    hidden = np.maximum(naive.dense(layer.feed_forward.hidden[0], y), 0)
    fed = naive.dense(layer.feed_forward.output_dense, hidden)
    expected = naive.layer_norm(y + fed, 1e-5)
    np.testing.assert_allclose(found[mask], expected[mask], atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_block_drops_out_in_four_places(norm_first, rng, monkeypatch):
    """A factor stands for each dropout: weights, branches, hidden units."""

    def factor(self, inputs, training=False):
        return inputs * (1.0 + self.rate) if training else inputs

    monkeypatch.setattr(Dropout, "call", factor)
    layer = layers.TransformerBlock(
        2, 5, (7,), norm_first=norm_first, dropout=0.5, activation_dropout=0.25
    )
    x = frames(rng)
    found = np.asarray(layer(x, training=True))

    def attend(x):
        return 1.5 * 1.5 * naive.full_attention(layer.attention, x)[0]

    def feed_forward(x):
        hidden = np.maximum(naive.dense(layer.feed_forward.hidden[0], x), 0)
        return 1.5 * naive.dense(layer.feed_forward.output_dense, 1.25 * hidden)

    def norm(x):
        return naive.layer_norm(x, 1e-5)

    if norm_first:
        y = x + attend(norm(x))
        expected = y + feed_forward(norm(y))
    else:
        y = norm(x + attend(x))
        expected = norm(y + feed_forward(y))
    np.testing.assert_allclose(found, expected, atol=2e-5)
    plain = layers.TransformerBlock(2, 5, (7,), norm_first=norm_first)
    plain.build(x.shape)
    plain.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(x), plain(x), atol=1e-6)


def test_block_returns_the_attention_map(rng):
    layer, x = layers.TransformerBlock(2, 5, (7,)), frames(rng)
    y, weights = layer(x, return_attention_scores=True)
    assert tuple(weights.shape) == (B, 2, T, T)
    sums = np.asarray(weights).sum(axis=-1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    np.testing.assert_allclose(y, layer(x), atol=1e-6)


@pytest.mark.parametrize("size, stride", [(2, None), (2, 1), (3, 2), (5, 5)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "layer, pooled",
    [
        (layers.TemporalAveragePooling, np.mean),
        (layers.TemporalMaxPooling, np.max),
    ],
)
def test_pooling_is_that_of_real_frames(
    layer, pooled, size, stride, masked, rng
):
    layer, x = layer(size, stride), frames(rng) - 2.0
    mask = prefix((T, 6, 1)) if masked else np.ones((B, T), bool)
    found = np.asarray(layer(x, mask=mask if masked else None))
    found_mask = np.asarray(layer.compute_mask(x, mask))
    starts = range(0, T, stride or size)
    assert found.shape == (B, len(starts), F)
    for clip in range(B):
        for window, start in enumerate(starts):
            inside = [
                x[clip, i]
                for i in range(start, min(start + size, T))
                if mask[clip, i]
            ]
            assert found_mask[clip, window] == bool(inside)
            expected = pooled(inside, axis=0) if inside else np.zeros(F)
            np.testing.assert_allclose(found[clip, window], expected, atol=1e-5)


def test_time_is_pooled_whatever_images_are(channels_first, rng):
    """Of a machine whose Keras has channels first, frames would be those."""
    x = frames(rng)
    expected = np.stack([x[:, :4].mean(axis=1), x[:, 4:8].mean(axis=1)], 1)
    layer = layers.TemporalAveragePooling(4)
    np.testing.assert_allclose(layer(x[:, :8]), expected, atol=1e-5)
    mask = np.asarray(layer.compute_mask(x, prefix((T, 4, 0))))
    assert mask.tolist() == [[True] * 3, [True] + [False] * 2, [False] * 3]


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize(
    "make",
    [
        lambda **k: layers.TemporalAveragePooling(500, **k),
        lambda **k: layers.TemporalMaxPooling(500, **k),
        lambda **k: layers.MultiScaleAverage(windows=[500], **k),
        lambda **k: layers.MultiScaleAverage(windows=[500], causal=True, **k),
    ],
)
def test_long_windows_keep_their_digits_in_half_precision(make, policy, rng):
    """Sums of so many frames leave float16; bfloat16 counts to 256."""
    x = (300.0 + frames(rng, 900)).astype("float32")
    mask = prefix((900, 731, 503), 900)
    half, full = make(dtype=policy), make()
    rounded = keras.ops.cast(x, half.compute_dtype)
    found = np.asarray(keras.ops.cast(half(rounded, mask=mask), "float32"))
    expected = np.asarray(full(keras.ops.cast(rounded, "float32"), mask=mask))
    digits = 2**-8 if policy == "mixed_bfloat16" else 2**-11
    np.testing.assert_allclose(found, expected, rtol=digits)


@pytest.mark.parametrize(
    "size, stride, message",
    [
        (0, None, "`pool_size` must be a positive.*: pool_size=0"),
        (2.5, None, "`pool_size` must be a positive.*: pool_size=2.5"),
        (2, 0, "`strides` must be a positive.*: strides=0"),
        (2, -1, "`strides` must be a positive.*: strides=-1"),
        (2, 3, "else frames are lost.*pool_size=2, strides=3"),
    ],
)
def test_pooling_that_loses_frames_is_refused(size, stride, message):
    with pytest.raises(ValueError, match=message):
        layers.TemporalAveragePooling(size, stride)
    with pytest.raises(ValueError, match=message):
        tiny.backbone(
            num_layers=2, pool_every=1, pool_size=size, pool_strides=stride
        )


def test_masked_mean(rng):
    x, mask = frames(rng), prefix((T, 4, 0))
    found = np.asarray(layers.MaskedMean()(x, mask=mask))
    np.testing.assert_allclose(found[0], x[0].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found[1], x[1, :4].mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(found[2], np.zeros(F))


def test_multiscale_shares_halve():
    assert layers.MultiScaleAverage().groups(64) == [
        (32, 1),
        (16, 2),
        (8, 4),
        (4, 8),
        (2, 16),
        (2, 32),
    ]
    for dim in (1, 2, 7, 13, 96):
        groups = multiscale.halving_groups(dim, [2, 4, 8])
        assert sum(count for count, _ in groups) == dim
        assert groups[0][0] >= dim / 2
        assert max(window for _, window in groups) <= 8


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "scales, groups",
    [
        ({"max_window": 8}, [(7, 1), (3, 2), (2, 4), (1, 8)]),
        # Of 13 features a half is rounded down, with another eighth up.
        ({"windows": [5, 3], "shares": [0.5, 0.125]}, [(5, 1), (6, 5), (2, 3)]),
        ({"windows": [7]}, [(7, 1), (6, 7)]),
    ],
)
def test_multiscale_is_the_mean_over_each_window(
    scales, groups, causal, masked, rng
):
    layer = layers.MultiScaleAverage(**scales, causal=causal)
    x, length = frames(rng, 19), 19
    mask = prefix((19, 10, 1), 19)
    found = np.asarray(layer(x, mask=mask if masked else None))
    if not masked:
        mask[:] = True
    first = 0
    assert sum(count for count, _ in groups) == F
    for count, window in groups:
        features = slice(first, first + count)
        first += count
        for clip in range(B):
            for i in np.flatnonzero(mask[clip]):
                start = i - window + 1 if causal else i // window * window
                stop = i + 1 if causal else start + window
                inside = [
                    x[clip, j, features]
                    for j in range(max(start, 0), min(stop, length))
                    if mask[clip, j]
                ]
                np.testing.assert_allclose(
                    found[clip, i, features],
                    np.mean(inside, axis=0),
                    atol=1e-5,
                )


@pytest.mark.parametrize("window", [0, 1, 3, 12])
def test_multiscale_window_must_be_a_power_of_two(window):
    with pytest.raises(ValueError, match=f"max_window={window}"):
        layers.MultiScaleAverage(window)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"max_window": 8, "windows": [2]}, "must not both be given"),
        ({"windows": [2, 2]}, r"windows=\[2, 2\]"),
        ({"windows": [4, 1]}, r"windows=\[4, 1\]"),
        ({"windows": []}, r"windows=\[\]"),
        ({"windows": [2.5]}, r"`windows\[0\]`"),
        ({"windows": [2], "shares": [0.5, 0.1]}, "one for each window"),
        ({"windows": [2, 4], "shares": [0.7, 0.4]}, "at most 1 in all"),
        ({"windows": [2], "shares": [-0.5]}, r"`shares\[0\]`"),
        ({"windows": [2, 4], "shares": [0.4, 0.01]}, r"none for \[4\]"),
        ({"windows": list(range(2, 9))}, "a feature for each window"),
    ],
)
def test_scales_that_do_not_fit_are_refused(given, message, rng):
    with pytest.raises(ValueError, match=message):
        layers.MultiScaleAverage(**given)(frames(rng))


def make_frontend(**kwargs):
    return layers.WaveformFrontend(
        **{
            "filters": 8,
            "hidden_dim": 5,
            "window_s": 0.007,
            "sample_rate_hz": 1000,
            "gain": 1.0,
            **kwargs,
        }
    )


def test_frontend_is_dense_on_windows(rng):
    layer = make_frontend()
    x = rng.standard_normal((2, 17)).astype("float32")
    found = np.asarray(layer(x))
    assert found.shape == (2, 3, 5)
    padded = np.zeros((2, 21))
    padded[:, :17] = x
    for patch in range(3):
        part = padded[:, 7 * patch : 7 * patch + 7]
        hidden = np.maximum(naive.dense(layer.filter_dense, part), 0)
        np.testing.assert_allclose(
            found[:, patch],
            naive.dense(layer.embedding_dense, hidden),
            atol=1e-6,
        )


def test_frontend_takes_padding_as_silence(rng):
    layer = make_frontend()
    x = rng.standard_normal((3, 23)).astype("float32")
    lengths = np.array([23, 10, 1], "int32")
    found = np.asarray(layer(x, lengths))
    mask = np.asarray(layers.FrameMask(7)(x, lengths))
    np.testing.assert_array_equal(mask.sum(axis=1), [4, 2, 1])
    for clip, length in enumerate(lengths):
        alone = np.asarray(layer(x[clip : clip + 1, :length]))
        np.testing.assert_allclose(
            found[clip, : alone.shape[1]], alone[0], atol=1e-6
        )


def test_frame_mask_without_lengths_is_all_real():
    mask = np.asarray(layers.FrameMask(7)(np.zeros((2, 15))))
    assert mask.shape == (2, 3) and mask.all()


@pytest.mark.parametrize("sample_rate_hz", [8_000, 16_000])
def test_mel_filterbank_tells_frequencies_apart(sample_rate_hz):
    layer = layers.WaveformFrontend(
        filters=1024,
        hidden_dim=32,
        sample_rate_hz=sample_rate_hz,
        filterbank="mel",
        gain=1.0,
    )
    centers = frontend.mel_centers(32, sample_rate_hz)
    time_s = np.arange(layer.window_size) / sample_rate_hz
    for band in (6, 13, 20, 29):
        levels = []
        for phase in np.linspace(0, np.pi, 7):
            tone = np.sin(2 * np.pi * centers[band] * time_s + phase)
            found = np.asarray(layer(tone[None].astype("float32")))[0, 0]
            assert abs(found.argmax() - band) <= 1
            assert found.min() >= 0.0
            levels.append(found[band])
        # |cos| + |sin| is 1 to 1.41 as the phase turns.
        assert max(levels) / min(levels) < 1.5
        # A wide band averages over filters that the tone does not reach.
        assert 0.1 < np.mean(levels) < 1.5


def test_filters_are_evenly_spaced_in_mel():
    """By the natural logarithm, in which 1127 ln(1 + f / 700) is a mel."""
    mel = 1127.0 * np.log1p(frontend.mel_centers(7, 16_000) / 700.0)
    top = 1127.0 * np.log1p(8_000 / 700.0)
    np.testing.assert_allclose(mel, top * np.arange(1, 8) / 8, rtol=1e-4)


def test_mel_filterbank_is_trainable_and_saved(rng):
    layer = make_frontend(filterbank="mel")
    layer.build((None, None))
    assert len(layer.trainable_weights) == 4
    assert naive.missing_from_config(layer) == []
    revived = layers.WaveformFrontend.from_config(layer.get_config())
    assert revived.get_config() == layer.get_config()
    x = rng.standard_normal((1, 20)).astype("float32")
    np.testing.assert_allclose(revived(x), layer(x), atol=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"filterbank": "bark"}, {"window_s": 0.0001}, {"filters": 6}]
)
def test_frontend_refuses(wrong):
    with pytest.raises(ValueError, match="Received"):
        make_frontend(**{"filterbank": "mel", **wrong}).build((None, None))


def test_gelu_is_recomputed_to_the_same_gradient(rng):
    """In training its activations are not kept, but computed again."""
    x = rng.standard_normal((2, 7, 5)).astype("float32")
    layer = layers.FeedForward((11, 13), activation="gelu")
    layer.build(x.shape)

    def kernels_after_a_step(training):
        inputs = keras.Input((None, 5))
        outputs = layer(inputs, training=training)
        model = keras.Model(inputs, outputs)
        before = model.get_weights()
        model.compile(keras.optimizers.SGD(1.0), "mse", run_eagerly=True)
        model.fit(x, np.ones_like(x), verbose=0)
        after = model.get_weights()
        model.set_weights(before)
        return before, after

    before, expected = kernels_after_a_step(training=False)
    again, found = kernels_after_a_step(training=True)
    for old, same, with_all, with_less in zip(
        before, again, expected, found, strict=True
    ):
        np.testing.assert_array_equal(old, same)
        assert np.abs(with_all - old).max() > 1e-4
        np.testing.assert_allclose(with_less, with_all, atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        layers.TemporalAveragePooling(3, 2),
        layers.TemporalMaxPooling(3, 2),
        layers.MultiScaleAverage(8),
        layers.MultiScaleAverage(8, causal=True),
        layers.MaskedMean(),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_padding_may_hold_nan(layer, rng):
    x = rng.standard_normal((2, 13, 10)).astype("float32")
    mask = np.arange(13) < np.array([[13], [6]])
    clean, dirty = x * mask[:, :, None], x.copy()
    dirty[~mask] = np.nan
    expected = keras.ops.convert_to_numpy(layer(clean, mask=mask))
    found = keras.ops.convert_to_numpy(layer(dirty, mask=mask))
    if found.ndim == 3:
        real = keras.ops.convert_to_numpy(layer.compute_mask(x, mask))
        expected, found = expected[real], found[real]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_padding_before_a_norm_moves_no_gradient(rng):
    """Nor makes one NaN."""
    x, mask, layer = frames(rng), prefix((T, 5, 0)), layers.FrameNorm()
    layer.build(x.shape)
    _, expected = gradients(layer, np.where(mask[:, :, None], x, 0.0), mask)
    _, found = gradients(layer, np.where(mask[:, :, None], x, np.nan), mask)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_lengths_beyond_the_tensor_are_its_own(rng):
    x = rng.standard_normal((3, 25)).astype("float32")
    mask, frontend = (
        layers.FrameMask(10),
        layers.WaveformFrontend(8, 4, window_s=0.01, sample_rate_hz=1000),
    )
    features = layers.SpeechFeatures(
        "s3prl", 1000, {"num_mel_bins": 7, "fft_length": 64, "stack_size": 1}
    )
    for dtype, lengths in (
        ("int32", [2**31 - 1, -7, 11]),
        ("int64", [2**32 + 3, -(2**33) + 5, 11]),
    ):
        if dtype == "int64" and keras.backend.backend() == "jax":
            # JAX itself wraps them around; the models' door does not.
            continue
        lengths = np.array(lengths, dtype)
        expected = np.array([25, 0, 11], "int32")
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(mask(x, lengths)),
            [[True] * 3, [False] * 3, [True, True, False]],
        )
        for layer in (frontend, features):
            np.testing.assert_allclose(
                keras.ops.convert_to_numpy(layer(x, lengths)),
                keras.ops.convert_to_numpy(layer(x, expected)),
                atol=1e-6,
            )


def test_poolings_of_halves(rng):
    x, mask = (
        rng.standard_normal((B, T, 6)).astype("float32"),
        prefix((T, 4, 0)),
    )
    padded = np.where(mask[:, :, None], x, np.nan)
    found = np.asarray(layers.MaxMeanPooling()(padded, mask=mask))
    for clip, real in ((0, T), (1, 4)):
        first, second = np.split(x[clip, :real], 2, axis=1)
        wanted = np.concatenate([first.max(axis=0), second.mean(axis=0)])
        np.testing.assert_allclose(found[clip], wanted, atol=1e-6)
    np.testing.assert_array_equal(found[2], np.zeros(6))
    ends = np.asarray(layers.LastStatesPooling()(padded, mask=mask))
    for clip, real in ((0, T), (1, 4)):
        wanted = [*x[clip, real - 1, :3], *x[clip, 0, 3:]]
        np.testing.assert_allclose(ends[clip], wanted, atol=1e-6)
    np.testing.assert_array_equal(ends[2], np.zeros(6))
    alone = layers.MaxMeanPooling()(x[1:2, :4])
    np.testing.assert_allclose(alone[0], found[1], atol=1e-6)
    with pytest.raises(ValueError, match="an even number.*13 features"):
        layers.MaxMeanPooling()(frames(rng))


def test_states_at_both_ends_are_those_of_real_frames(rng):
    """Whatever padding is before, between and behind them."""
    x = rng.standard_normal((3, 5, 4)).astype("float32")
    mask = np.array([[0, 1, 0, 1, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 0]], "bool")
    found = layers.LastStatesPooling()(x, mask=mask)
    for clip, (begin, end) in enumerate([(1, 3), (2, 4), (3, 3)]):
        wanted = [*x[clip, end, :2], *x[clip, begin, 2:]]
        np.testing.assert_array_equal(found[clip], wanted)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("make", "how"),
    [
        (lambda: layers.FrameMasking(0.5), {"training": True}),
        (lambda: layers.FrameMasking(0.5), {"training": False}),
        (lambda: layers.LearnedFrameMasking(0.9, 2), {"training": True}),
        (lambda: layers.ConvolutionalPositions(4, 1), {}),
    ],
)
def test_the_mask_of_keras_reaches_the_next_layer(make, how, rng):
    """What is returned beside the frames has none."""
    x, mask = frames(rng), prefix((T, 5, 1))
    masked = keras.layers.Masking()(np.where(mask[:, :, None], x, 0.0))
    found, *beside = keras.tree.flatten(make()(masked, **how))
    np.testing.assert_array_equal(found._keras_mask, mask)
    assert not [each for each in beside if hasattr(each, "_keras_mask")]


@pytest.mark.parametrize("shape", [(1, T), (B, 3)])
@pytest.mark.parametrize(
    "make",
    [
        layers.AttentionPooling,
        layers.Deltas,
        lambda: layers.FrameMasking(evaluation_seed=0),
        layers.FrameStacking,
        layers.LogCompression,
        layers.MaskedMean,
        layers.MultiScaleAverage,
        layers.PCEN,
        layers.TemporalMaxPooling,
        layers.UtteranceNorm,
    ],
)
def test_a_mask_of_other_clips_or_frames_is_refused(make, shape, rng):
    """One row had been repeated over all clips, fewer frames been counted."""
    x = rng.standard_normal((B, T, 8)).astype("float32")
    with pytest.raises(ValueError, match="A mask must have the shape"):
        make()(x, mask=np.ones(shape, "bool"))


@pytest.mark.parametrize(
    ("make", "ndim"),
    [
        (layers.AttentionPooling, 3),
        (layers.BandPooling, 4),
        (layers.BidirectionalGRU, 4),
        (lambda: layers.Convolution(4), 4),
        (lambda: layers.ConvolutionBlock(4), 4),
        (layers.ConvolutionalPositions, 3),
        (layers.Deltas, 3),
        (lambda: layers.DenselyConnectedBlock(1), 4),
        (lambda: layers.DenseTransition(4), 4),
        (layers.FrameMasking, 3),
        (layers.FrameStacking, 3),
        (layers.LastStatesPooling, 3),
        (layers.LearnedFrameMasking, 3),
        (layers.MaskedMean, 3),
        (layers.MultiScaleAverage, 3),
        (layers.PCEN, 3),
        (lambda: layers.ResidualBlock(4), 4),
        (layers.SinusoidalPositions, 3),
        (layers.StatisticsPooling, 3),
        (layers.TemporalAveragePooling, 3),
        (layers.UtteranceNorm, 3),
    ],
)
def test_frames_of_other_axes_are_named(make, ndim, rng):
    """Bands of frames without channels became the means of whole frames."""
    for wrong in {2, 3, 4} - {ndim}:
        x = rng.standard_normal((B, T, F, 2)[:wrong]).astype("float32")
        said = f"'inputs'.*expected ndim={ndim}, found ndim={wrong}"
        with pytest.raises(ValueError, match=said):
            make()(x)
