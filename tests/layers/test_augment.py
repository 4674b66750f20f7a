"""Augmentation against numpy, and what all of its layers promise."""

import keras
import naive
import numpy as np
import pytest
from keras import ops
from scipy import stats

from audio_tf import layers
from audio_tf.layers import (
    augment_spectrogram,
    augment_speed,
    augment_waveform,
    mixing,
)

B, N, T, F, CLASSES = 3, 29, 11, 7, 5
RATE_HZ = 100

WAVEFORM = {
    "gain": lambda **k: layers.RandomGain((-12.0, 3.0), **k),
    "polarity": lambda **k: layers.PolarityInversion(**k),
    "shift": lambda **k: layers.TimeShift(0.05, RATE_HZ, **k),
    "wrap": lambda **k: layers.TimeShift(0.05, RATE_HZ, wrap=True, **k),
    "noise": lambda **k: layers.AdditiveNoise((0.0, 9.0), **k),
    "color": lambda **k: layers.AdditiveNoise((0.0, 9.0), (0.5, 2.0), **k),
    "linear": lambda **k: layers.SpeedPerturbation((0.7, 1.4), **k),
    "sinc": lambda **k: layers.SpeedPerturbation((0.7, 1.0), "sinc", **k),
    "crop": lambda **k: layers.RandomCrop(0.13, RATE_HZ, **k),
}
SPECTROGRAM = {
    "frames": lambda **k: layers.TimeMasking(4, 0.5, num_masks=2, **k),
    "bands": lambda **k: layers.BandMasking(3, fill=-7.0, **k),
    "voice": lambda **k: layers.VocalTractPerturbation(**k),
}
PAIRS = {
    "mixup": lambda **k: layers.Mixup(0.4, **k),
    "between": lambda **k: layers.BetweenClassMixing(RATE_HZ, 0.08, **k),
    "between_plain": lambda **k: layers.BetweenClassMixing(
        RATE_HZ, 0.08, None, **k
    ),
}
EVERY = {**WAVEFORM, **SPECTROGRAM, **PAIRS}
REAL = np.array([N, 17, 0], "int32")
REAL_FRAMES = np.array([T, 5, 0])


def tensors(*arrays):
    """Functions take these; a layer makes them of what it is called with."""
    return map(ops.convert_to_tensor, arrays)


def waves(rng, batch=B, samples=N):
    return rng.standard_normal((batch, samples)).astype("float32")


def arguments(name, rng, behind=0.0):
    """Arguments of a call on padded clips; `behind` stands in the padding."""
    if name in SPECTROGRAM:
        x = np.abs(rng.standard_normal((B, T, F)).astype("float32"))
        mask = np.arange(T) < REAL_FRAMES[:, None]
        return {"inputs": np.where(mask[..., None], x, behind), "mask": mask}
    x = waves(rng)
    given = {
        "waveform": np.where(np.arange(N) < REAL[:, None], x, behind),
        "lengths": REAL,
    }
    if name in PAIRS:
        given["targets"] = np.eye(CLASSES, dtype="float32")[:B]
    return given


def arrays(outputs):
    return [np.asarray(x) for x in keras.tree.flatten(outputs)]


def moves_on(draw, first):
    """Whether one of eight further draws differs; three signs may agree."""
    return any(
        (one != other).any()
        for _ in range(8)
        for one, other in zip(draw(), first, strict=True)
    )


@pytest.mark.parametrize("name", EVERY)
def test_promises_of_every_augmentation(name):
    """Identity, seeds, padding, config and shapes, by the tables above."""
    make = EVERY[name]
    layer = make(seed=3)
    assert naive.missing_from_config(layer) == []
    revived = type(layer).from_config(layer.get_config())
    assert revived.get_config() == layer.get_config()

    given = arguments(name, np.random.default_rng(1), behind=50.0)
    for training in (None, False):
        same = arrays(layer(**given, training=training))
        inputs = [x for k, x in given.items() if k not in ("mask", "lengths")]
        for found, expected in zip(same, inputs, strict=False):
            np.testing.assert_array_equal(found, expected)

    first = arrays(layer(**given, training=True))
    again = arrays(revived(**given, training=True))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert moves_on(lambda: arrays(layer(**given, training=True)), first)

    clean = arguments(name, np.random.default_rng(1))
    alone = arrays(
        type(layer).from_config(layer.get_config())(**clean, training=True)
    )
    for one, other in zip(first, alone, strict=True):
        assert np.isfinite(one).all()
        if name in SPECTROGRAM:
            one = np.where(given["mask"][..., None], one, 0.0)
        np.testing.assert_allclose(one, other, atol=1e-6)

    # No clip is chosen: nothing changes, whatever is drawn, lengths neither.
    if "rate" in layer.get_config():
        config = {**layer.get_config(), "rate": 0.0}
        none = arrays(type(layer).from_config(config)(**clean, training=True))
        names = ("inputs", "waveform", "targets", "lengths")
        kept = [clean[each] for each in names if each in clean]
        for found, expected in zip(none, kept, strict=True):
            np.testing.assert_array_equal(found, expected)

    symbols = {
        key: keras.KerasTensor(
            (None,) * x.ndim if x.ndim < 3 else (None, None, F), dtype=x.dtype
        )
        for key, x in given.items()
    }
    symbolic = keras.tree.flatten(layer(**symbols, training=True))
    for symbol, value in zip(symbolic, first, strict=True):
        assert len(symbol.shape) == value.ndim
        assert symbol.dtype == str(value.dtype)


@pytest.mark.costly
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="tf.data is TensorFlow's"
)
@pytest.mark.parametrize(
    "names",
    [
        # The others are these with other arguments.
        pytest.param(sorted({*EVERY} - {"wrap", "linear", "between_plain"})),
        pytest.param([*EVERY], marks=pytest.mark.slow),
    ],
    ids=["distinct", "all"],
)
def test_augmentation_runs_in_a_dataset_of_unknown_shapes(names, rng):
    """All layers side by side in one dataset."""
    tf = pytest.importorskip("tensorflow")
    augmentations = {name: EVERY[name](seed=5) for name in names}
    given = {name: arguments(name, rng) for name in names}
    signature = keras.tree.map_structure(
        lambda x: tf.TensorSpec(
            (None, None, F) if x.ndim == 3 else (None,) * x.ndim, x.dtype
        ),
        given,
    )
    dataset = tf.data.Dataset.from_generator(
        lambda: iter([given] * 9), output_signature=signature
    ).map(
        lambda x: {
            name: layer(**x[name], training=True)
            for name, layer in augmentations.items()
        }
    )
    results = list(dataset)
    for name in names:
        expected = arrays(EVERY[name](seed=5)(**given[name], training=True))
        first, *others = (arrays(result[name]) for result in results)
        for found, value in zip(first, expected, strict=True):
            np.testing.assert_allclose(found, value, atol=1e-5, err_msg=name)
        draws = iter(others)
        assert moves_on(lambda: next(draws), first), name


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="shapes are fixed by JAX alone"
)
@pytest.mark.parametrize("name", EVERY)
def test_augmentation_is_compiled_by_jax(name, rng):
    """Training compiles all that it calls: no shape may follow from a value."""
    import jax

    layer, given = EVERY[name](seed=5), arguments(name, rng)
    layer(**given)
    state = [v.value for v in layer.non_trainable_variables]

    @jax.jit
    def call(state, given):
        return layer.stateless_call([], state, **given, training=True)

    found, _ = call(state, given)
    expected = EVERY[name](seed=5)(**given, training=True)
    for one, other in zip(arrays(found), arrays(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_sound_is_not_rounded_to_half_precision(name, rng):
    """Quiet parts would drown in it, whatever the policy of a model is."""
    given = arguments(name, rng)
    of = next(iter(given))
    given[of] = given[of] * np.float32(1e-5)
    plain = arrays(EVERY[name](seed=3)(**given, training=True))
    half = EVERY[name](seed=3, dtype="mixed_float16")
    for found, expected in zip(
        arrays(half(**given, training=True)), plain, strict=True
    ):
        np.testing.assert_array_equal(found, expected, strict=True)
    # What is half already stays so, and that is known beforehand.
    given[of] = given[of].astype("float16")
    symbols = {
        key: keras.KerasTensor(x.shape, dtype=x.dtype)
        for key, x in given.items()
    }
    dtypes = [
        [
            keras.backend.standardize_dtype(x.dtype)
            for x in keras.tree.flatten(y)
        ]
        for y in (half(**given, training=True), half(**symbols, training=True))
    ]
    assert dtypes[0] == dtypes[1] and dtypes[0][0] == "float16"


def test_draws_are_saved_with_a_model(tmp_path, rng):
    x = waves(rng, 4)
    model = keras.Sequential([keras.layers.Input((N,)), Noisy(seed=11)])
    model(x, training=True)
    model.save(tmp_path / "noisy.keras")
    revived = keras.models.load_model(
        tmp_path / "noisy.keras", custom_objects={"Noisy": Noisy}
    )
    np.testing.assert_array_equal(
        np.asarray(revived(x, training=True)),
        np.asarray(model(x, training=True)),
    )


def test_weights_of_an_augmentation_are_saved_with_a_model(tmp_path, rng):
    """One of a user's own may have some; they had come back as they began."""
    x = waves(rng, 4)
    model = keras.Sequential([keras.layers.Input((N,)), Louder(seed=11)])
    model.layers[0].gain.assign(3.0)
    model.save(tmp_path / "louder.keras")
    revived = keras.models.load_model(
        tmp_path / "louder.keras", custom_objects={"Louder": Louder}
    )
    for each in (model, revived):
        np.testing.assert_allclose(each(x, training=True), 3.0 * x, rtol=1e-6)


class Louder(layers.RandomGain):
    """By a gain that is learned. Only the waveform, for a chain."""

    def build(self, input_shape):
        self.gain = self.add_weight(shape=(), initializer="ones", name="gain")

    def augment(self, waveform, lengths):
        return self.gain * waveform, lengths

    def call(self, waveform, training=None):
        return super().call(waveform, training=training)[0]

    def compute_output_spec(self, waveform, training=None):
        return super().compute_output_spec(waveform)[0]


class Noisy(layers.AdditiveNoise):
    """Only the waveform, for a chain."""

    def call(self, waveform, training=None):
        return super().call(waveform, training=training)[0]

    def compute_output_spec(self, waveform, training=None):
        return super().compute_output_spec(waveform)[0]


def test_gain_is_a_factor_for_each_clip(rng):
    x = waves(rng, 211)
    y, lengths = layers.RandomGain((-12.0, 3.0), seed=1)(x, training=True)
    gain_db = 20.0 * np.log10(np.asarray(y) / x)
    np.testing.assert_allclose(gain_db, gain_db[:, :1] + 0 * x, atol=1e-3)
    assert -12.0 <= gain_db.min() < -11.0 and 2.0 < gain_db.max() <= 3.001
    assert (np.asarray(lengths) == N).all()


def test_polarity_turns_about_half(rng):
    x = waves(rng, 400)
    y = np.asarray(layers.PolarityInversion(seed=1)(x, training=True)[0])
    turned = (y == -x).all(axis=1)
    assert (turned | (y == x).all(axis=1)).all()
    assert 140 < turned.sum() < 260  # six deviations of 400 fair coins


@pytest.mark.parametrize("wrap", [False, True])
def test_shift_against_a_loop(wrap, rng):
    x, offsets = waves(rng), np.array([[4], [-6], [3]], "int32")
    found = np.asarray(augment_waveform.shift(*tensors(x, REAL, offsets), wrap))
    expected = np.zeros_like(x)
    for b, size in enumerate(REAL):
        for n in range(size):
            source = n - offsets[b, 0]
            source = source % size if wrap else source
            expected[b, n] = x[b, source] if 0 <= source < size else 0.0
    np.testing.assert_array_equal(found, expected)


def test_shifts_are_drawn_from_all_whole_numbers(rng):
    x = np.tile(np.arange(1.0, 10.0, dtype="float32"), (600, 1))
    layer = layers.TimeShift(0.03, RATE_HZ, wrap=True, seed=1)
    y = np.asarray(layer(x, training=True)[0])
    np.testing.assert_array_equal(np.sort(y, axis=1), x)
    counts = np.bincount((y.argmin(axis=1) + 3) % 9, minlength=9)
    assert (counts[7:] == 0).all() and (counts[:7] > 30).all()
    # Clips shorter than the largest shift are not shifted past themselves.
    short, lengths = np.zeros((50, 9), "float32"), np.full(50, 2, "int32")
    short[:, :2] = [1.0, 2.0]
    y = np.asarray(
        layers.TimeShift(0.03, RATE_HZ, seed=1)(short, lengths, training=True)[
            0
        ]
    )
    assert {tuple(row[:2]) for row in y} == {
        (0.0, 0.0),
        (0.0, 1.0),
        (1.0, 2.0),
        (2.0, 0.0),
    }


def naive_resample(x, size, speed, skipped, interpolation):
    """One sample at a time, from the textbook's sums."""
    new = int(np.ceil(size / speed))
    y = np.zeros(len(x))
    for n in range(min(new, len(x))):
        p = (n + skipped) * speed
        for k in range(size):
            if interpolation == "linear":
                y[n] += max(0.0, 1.0 - abs(p - k)) * x[k]
            else:
                c = min(1.0, 1.0 / speed)
                d = c * (p - k)
                if abs(d) < augment_speed.SINC_ZEROS:
                    window = (
                        np.cos(np.pi * d / 2 / augment_speed.SINC_ZEROS) ** 2
                    )
                    y[n] += c * np.sinc(d) * window * x[k]
    return y, min(new, len(x))


@pytest.mark.parametrize("interpolation", augment_speed.INTERPOLATIONS)
def test_speed_against_a_loop(interpolation, rng):
    x = waves(rng)
    step = np.array([[3072], [5325], [4096]], "int32")
    start = np.array([[0.5], [0.9], [0.0]], "float32")
    y, lengths = augment_speed.change_speed(
        *tensors(x, REAL, step, start), 11, interpolation
    )
    skipped = [5, 0, 0]  # of 39 samples 10 do not fit: floor(0.5 * 11)
    for b in range(B):
        expected, size = naive_resample(
            x[b], REAL[b], step[b, 0] / 4096, skipped[b], interpolation
        )
        np.testing.assert_allclose(np.asarray(y)[b], expected, atol=2e-5)
        assert int(lengths[b]) == size


def test_positions_are_exact_in_long_clips():
    """Where float32 has no fractions left, after 17 minutes at 16 kHz."""
    index = np.array([[0, 4_095, 4_096, 2**24 - 3, 2**24 + 5]], "int32")
    for step in (410, 3_687, 4_096, 4_505):
        whole, rest = augment_speed.positions(
            *tensors(index, np.array([[step]], "int32"))
        )
        product = index[0].astype("int64") * step
        np.testing.assert_array_equal(np.asarray(whole)[0], product // 4_096)
        np.testing.assert_array_equal(
            np.asarray(rest)[0], product % 4_096 / 4_096
        )
        found = augment_speed.length_at_speed(
            *tensors(index[0], np.array([[step]], "int32"))
        )
        expected = -(-index[0].astype("int64") * 4_096 // step)
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_sinc_keeps_a_tone_where_linear_aliases():
    """3.6 kHz played 1.5 times as fast is 5.4 kHz: above Nyquist's 4 kHz."""
    n = np.arange(800, dtype="float32")
    x = np.sin(2 * np.pi * 0.45 * n)[None].astype("float32")
    levels = {}
    for kind in augment_speed.INTERPOLATIONS:
        layer = layers.SpeedPerturbation((1.5, 1.5), kind, seed=1)
        y = np.asarray(layer(x, training=True)[0])[0, 50:450]
        levels[kind] = np.sqrt(np.mean(y**2))
    assert levels["sinc"] < 0.01 and levels["linear"] > 0.2
    tone = np.sin(2 * np.pi * 0.1 * n)[None].astype("float32")
    layer = layers.SpeedPerturbation((1.5, 1.5), "sinc", seed=1)
    y = np.asarray(layer(tone, training=True)[0])[0, 50:450]
    expected = np.sin(2 * np.pi * 0.15 * np.arange(50, 450))
    np.testing.assert_allclose(y, expected, atol=0.005)


def test_noise_has_the_ratio_it_was_asked_for(rng):
    x = waves(rng)
    noise = 100.0 * waves(rng)
    snr_db = np.array([[6.0], [-3.0], [0.0]], "float32")
    y = np.asarray(augment_waveform.add_noise(*tensors(x, REAL, noise, snr_db)))
    for b, size in enumerate(REAL[:2]):
        added = (y - x)[b, :size]
        ratio = np.sum(x[b, :size] ** 2) / np.sum(added**2)
        assert 10 * np.log10(ratio) == pytest.approx(snr_db[b, 0], abs=1e-3)
        # The noise itself, and nothing else.
        assert np.corrcoef(added, noise[b, :size])[0, 1] > 0.99999
        assert (y[b, size:] == 0).all()
    still = np.asarray(
        augment_waveform.add_noise(*tensors(x, REAL, 0.0 * noise, snr_db))
    )
    np.testing.assert_array_equal(still[0], x[0])
    quiet = layers.AdditiveNoise(seed=1)(0.0 * x, training=True)[0]
    assert (np.abs(np.asarray(quiet)) < 1e-12).all()


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("samples", [256, 255])
def test_colored_noise_falls_by_its_exponent(exponent, samples):
    layer = layers.AdditiveNoise(color=(exponent, exponent), seed=1)
    noise = layer.gaussian(np.zeros((2_000, samples), "float32"))
    power = np.mean(np.abs(np.fft.rfft(noise)) ** 2, axis=0)[1:-1]
    bins = np.arange(1, len(power) + 1)
    slope, _ = np.polyfit(np.log(bins), np.log(power), 1)
    assert slope == pytest.approx(-exponent, abs=0.02)


def test_a_bank_gives_pieces_of_its_rows_that_go_round():
    bank = np.array([[1, 2, 3, 5, 8], [13, 21, 34, 55, 89]], "float32")
    x = np.ones((300, 7), "float32")
    pieces = np.asarray(layers.AdditiveNoise(seed=1).pieces(x, bank))
    found = {tuple(row) for row in pieces}
    rows = [np.tile(row, 3) for row in bank]
    assert found == {tuple(row[s : s + 7]) for row in rows for s in range(5)}
    y = layers.AdditiveNoise((0.0, 0.0), seed=1)(x, bank=bank, training=True)
    added = np.asarray(y[0]) - x
    np.testing.assert_allclose(np.mean(added**2, axis=1), 1.0, rtol=1e-5)


def assert_drawn_evenly(values, low, high):
    """By quarters of the range, to six deviations of fair draws."""
    assert low <= values.min() and values.max() <= high
    quarters, _ = np.histogram(values, 4, (low, high))
    expected = len(values) / 4
    assert np.abs(quarters - expected).max() < 6 * np.sqrt(0.75 * expected)


def test_speeds_are_drawn_from_all_of_their_range():
    x = np.zeros((400, 200), "float32")
    layer = layers.SpeedPerturbation((0.5, 2.0), seed=1)
    _, lengths = layer(x, np.full(400, 100, "int32"), training=True)
    # A clip of 100 samples becomes one of 100 / speed, rounded up.
    speeds = 100.0 / (np.asarray(lengths) - 0.5)
    assert_drawn_evenly(np.clip(speeds, 0.5, 2.0), 0.5, 2.0)


def test_ratios_to_noise_are_drawn_from_all_of_their_range(rng):
    x = waves(rng, 400, 50)
    layer = layers.AdditiveNoise((3.0, 12.0), seed=1)
    added = np.asarray(layer(x, training=True)[0]) - x
    ratio = np.sum(x**2, axis=1) / np.sum(added**2, axis=1)
    assert_drawn_evenly(10 * np.log10(ratio), 2.999, 12.001)


def test_colors_of_noise_are_drawn_from_all_of_their_range():
    layer = layers.AdditiveNoise(color=(0.5, 2.5), seed=1)
    noise = layer.gaussian(np.zeros((400, 4_096), "float32"))
    power = np.abs(np.fft.rfft(noise)) ** 2
    # Of two bands that lie four octaves apart.
    low, high = (power[:, n : 4 * n].mean(axis=1) for n in (32, 512))
    slopes = np.log2(low / high) / 4
    assert_drawn_evenly(np.clip(slopes, 0.5, 2.5), 0.5, 2.5)


def test_voices_are_drawn_from_all_of_their_range():
    """Each factor is read off a ramp, and the whole clip follows from it."""
    bins, share = 41, 0.25
    x = np.tile(np.arange(bins, dtype="float32"), (400, 2, 1))
    layer = layers.VocalTractPerturbation((0.5, 1.5), share, seed=1)
    y = np.asarray(layer(x, training=True))
    factors = y[:, 0, 1].astype("float64")
    assert_drawn_evenly(factors, 0.499, 1.501)
    for a, row in zip(factors, y[:, 1], strict=True):
        corner = share * (bins - 1) * min(a, 1.0)
        source = np.interp(
            np.arange(bins), [0, corner / a, bins - 1], [0, corner, bins - 1]
        )
        np.testing.assert_allclose(row, source, atol=1e-3)


def test_crops_are_all_pieces_and_no_others():
    x = np.tile(np.arange(1.0, 9.0, dtype="float32"), (400, 1))
    lengths = np.where(np.arange(400) % 2, 7, 3).astype("int32")
    layer = layers.RandomCrop(0.05, RATE_HZ, seed=1)
    y, new = (np.asarray(v) for v in layer(x, lengths, training=True))
    assert y.shape == (400, 5)
    assert {tuple(row) for row in y[1::2]} == {
        (1.0, 2.0, 3.0, 4.0, 5.0),
        (2.0, 3.0, 4.0, 5.0, 6.0),
        (3.0, 4.0, 5.0, 6.0, 7.0),
    }
    assert (y[::2] == [1.0, 2.0, 3.0, 0.0, 0.0]).all()
    assert (new == np.where(np.arange(400) % 2, 5, 3)).all()


@pytest.mark.parametrize(
    ("axis", "largest", "limits"),
    [(1, 3, (9, 0.6)), (1, 2, (2, 0.6)), (2, 3, None)],
)
def test_hidden_runs_have_the_papers_distribution(axis, largest, limits):
    """All widths up to the largest, all starts that fit, and no others.

    Of frames it is the less of a number and of a share.
    """
    count, length = 3000, 5
    x = np.zeros((count, 6, 6), "float32")
    if axis == 1:
        layer = layers.TimeMasking(*limits, num_masks=1, fill=1.0, seed=1)
        mask = np.tile(np.arange(6) < length, (count, 1))
        y = np.asarray(layer(x, mask=mask, training=True))[:, :, 0]
    else:
        length = 6
        layer = layers.BandMasking(largest, num_masks=1, fill=1.0, seed=1)
        y = np.asarray(layer(x, training=True))[:, 0, :]
    runs, counts = np.unique(y, axis=0, return_counts=True)
    found = dict(zip(map(tuple, runs), counts, strict=True))
    expected = {}
    for width in range(largest + 1):
        for start in range(length - width + 1):
            run = (np.arange(6) >= start) & (np.arange(6) < start + width)
            chance = 1 / (largest + 1) / (length - width + 1)
            key = tuple(run.astype("float32"))
            expected[key] = expected.get(key, 0.0) + chance
    assert found.keys() == expected.keys()
    for run, chance in expected.items():
        deviation = np.sqrt(count * chance * (1 - chance))
        assert abs(found[run] - count * chance) < 6 * deviation


def test_hidden_runs_take_the_mean_of_real_frames(rng):
    x = rng.standard_normal((B, T, F)).astype("float32")
    mask = np.arange(T) < REAL_FRAMES[:, None]
    y = np.asarray(
        layers.TimeMasking(4, num_masks=3, seed=2)(x, mask=mask, training=True)
    )
    for b, size in enumerate(REAL_FRAMES[:2]):
        hidden = (y != x)[b].any(axis=1)
        assert 0 < hidden.sum() < T and not hidden[size:].any()
        np.testing.assert_allclose(
            y[b, hidden], x[b, :size].mean() + 0 * y[b, hidden], atol=1e-5
        )


def test_warp_against_a_loop(rng):
    bins, share = 17, 0.6
    x = rng.standard_normal((2, T, bins)).astype("float32")
    factors = np.array([[0.9], [1.1]], "float32")
    found = np.asarray(augment_spectrogram.warp(*tensors(x, factors), share))
    top = bins - 1
    for b, a in enumerate((0.9, 1.1)):
        corner = share * top * min(a, 1.0)
        for k in range(bins):
            if k <= corner / a:
                source = a * k
            else:
                slope = (top - corner) / (top - corner / a)
                source = top - slope * (top - k)
            low = min(int(source), top - 1)
            part = source - low
            expected = (1 - part) * x[b, :, low] + part * x[b, :, low + 1]
            np.testing.assert_allclose(found[b, :, k], expected, atol=1e-4)
    ones = np.ones((2, 1), "float32")
    same = augment_spectrogram.warp(*tensors(x, ones), share)
    np.testing.assert_allclose(np.asarray(same), x, atol=1e-5)


def naive_level_db(x, size, half, weighting):
    """The authors' `compute_gain`, one window at a time."""
    x = np.concatenate([x[:size], np.zeros(max(0, 2 * half - size))])
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(2 * half) / (2 * half))
    f = np.maximum(np.arange(half + 1) * RATE_HZ / (2 * half), 1e-3)
    ra = (
        12194**2
        * f**4
        / (
            (f**2 + 20.6**2)
            * np.sqrt((f**2 + 107.7**2) * (f**2 + 737.9**2))
            * (f**2 + 12194**2)
        )
    )
    best = 1e-8
    for start in range(0, len(x) - 2 * half + 1, half):
        window = x[start : start + 2 * half]
        if weighting is None:
            level = np.mean(window**2)
        else:
            spectrum = np.abs(np.fft.rfft(window * hann)) ** 2
            level = np.sum(spectrum * (ra * 10**0.1) ** 2)
        best = max(best, level)
    return 10 * np.log10(best)


@pytest.mark.parametrize("weighting", mixing.WEIGHTINGS)
def test_between_class_mixing_is_the_papers(weighting, rng):
    """Levels, share and mix, from what the layer drew."""
    layer = layers.BetweenClassMixing(RATE_HZ, 0.08, weighting, seed=4)
    real = np.array([N, 17, 3, 11, N, 8], "int32")
    x = waves(rng, 6) * 10.0 ** rng.uniform(-2, 0, (6, 1)).astype("float32")
    x = np.where(np.arange(N) < real[:, None], x, 0.0).astype("float32")
    level = [
        naive_level_db(x[b].astype("float64"), real[b], 4, weighting)
        for b in range(6)
    ]
    found = np.asarray(layer.level_db(*tensors(x, real)))[:, 0]
    np.testing.assert_allclose(found, level, atol=1e-3)

    t = np.eye(6, dtype="float32")
    y, targets, lengths = map(np.asarray, layer(x, t, real, training=True))
    mixed = 0
    for b in range(6):
        r = float(targets[b, b])
        others = [c for c in range(6) if c != b and targets[b, c] > 0]
        if not others:
            np.testing.assert_array_equal(y[b], x[b])
            assert lengths[b] == real[b]
            continue
        (c,) = others
        mixed += 1
        assert targets[b].sum() == pytest.approx(1.0, abs=1e-6)
        p = 1 / (1 + 10 ** ((level[b] - level[c]) / 20) * (1 - r) / r)
        expected = (p * x[b] + (1 - p) * x[c]) / np.hypot(p, 1 - p)
        np.testing.assert_allclose(y[b], expected, atol=1e-4)
        assert lengths[b] == max(real[b], real[c])
    assert mixed >= 2


def test_a_clip_that_meets_itself_is_no_louder(rng):
    """One clip alone has no other partner; two have in half of all draws."""
    layer = layers.BetweenClassMixing(RATE_HZ, 0.08, seed=4)
    for count in (1, 2, 2, 2, 2, 2):
        x, t = waves(rng, count), np.eye(count, dtype="float32")
        y, targets, _ = map(np.asarray, layer(x, t, training=True))
        for row in np.flatnonzero(np.diag(targets) == 1.0):
            np.testing.assert_array_equal(y[row], x[row])


def test_between_class_share_at_its_ends():
    levels = np.array([-80.0, 20.0], "float32")
    for r, p in ((0.0, 0.0), (1.0, 1.0)):
        share = mixing.between_class_share(levels, levels[::-1], r)
        np.testing.assert_array_equal(np.asarray(share), [p, p])
    equal = mixing.between_class_share(levels, levels, 0.3)
    np.testing.assert_allclose(np.asarray(equal), 0.3, rtol=1e-6)


def test_a_weighting_is_the_standards():
    """Table 3 of IEC 61672-1, to its tenth of a dB."""
    table = {1.5: -39.4, 2.1: -16.1, 3.0: 0.0, 3.6: 1.0, 4.2: -6.6}
    for decades, level_db in table.items():
        found = mixing.a_weighting_db(10.0**decades)
        assert found == pytest.approx(level_db, abs=0.06)


def test_mixup_mixes_waveforms_as_targets(rng):
    x, t = waves(rng, 7), np.eye(7, dtype="float32")
    y, targets, _ = map(
        np.asarray, layers.Mixup(1.0, seed=2)(x, t, training=True)
    )
    np.testing.assert_allclose(y, targets @ x, atol=1e-5)
    # Each clip is a partner once.
    partners = targets - np.diag(np.diag(targets))
    assert ((partners > 0).sum(axis=0) <= 1).all() and (partners > 0).sum() > 3


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
def test_shares_of_whole_labels_are_not_rounded(dtype, rng):
    """As scikit-learn and pandas make them, in integers or booleans."""
    x, labels = waves(rng, 7), np.eye(7)
    _, targets, _ = layers.Mixup(1.0, seed=2)(x, labels.astype(dtype))
    np.testing.assert_array_equal(targets, labels)
    mixed = [
        np.asarray(layers.Mixup(1.0, seed=2)(x, given, training=True)[1])
        for given in (labels.astype("float32"), labels.astype(dtype))
    ]
    assert ((mixed[0] > 0.0) & (mixed[0] < 1.0)).any()
    np.testing.assert_array_equal(mixed[1], mixed[0])
    symbols = [
        keras.KerasTensor((3, 11), "float32"),
        keras.KerasTensor((3, 7), dtype),
    ]
    said = layers.Mixup().compute_output_spec(*symbols)[1]
    assert keras.backend.standardize_dtype(said.dtype) == "float32"


@pytest.mark.parametrize("make", [layers.Mixup, layers.BetweenClassMixing])
def test_ids_of_classes_are_not_mixed(make, rng):
    """Beside shares of a batch they would become a table of it."""
    x, ids = waves(rng), np.arange(B)
    for training in (True, False):
        with pytest.raises(ValueError, match=r"`keras.utils.to_categ.*\(3,\)"):
            make()(x, ids, training=training)
    with pytest.raises(ValueError, match="a number for each class"):
        make().compute_output_spec(
            keras.KerasTensor((None, N)), keras.KerasTensor((None,), "int32")
        )


@pytest.mark.parametrize("name", sorted({*EVERY} - {"crop"}))
def test_integers_are_refused(name, rng):
    """As by models: 30,000 samples high, a gain of 6 dB would turn the sign."""
    given = arguments(name, rng)
    of = next(iter(given))
    given[of] = np.full_like(given[of], 30_000).astype("int16")
    said = f"`{of}` must be float.*dtype=int16"
    for training in (True, False):
        with pytest.raises(ValueError, match=said):
            EVERY[name]()(**given, training=training)


@pytest.mark.parametrize("name", EVERY)
def test_inputs_of_other_axes_are_named(name, rng):
    """One clip alone, and channels, which broadcast in a batch of one."""
    given = arguments(name, rng)
    of = next(iter(given))
    clip = {key: value[:1] for key, value in given.items()}
    for wrong in (clip[of][0], clip[of][..., None]):
        said = f"'{of}'.*found ndim={wrong.ndim}"
        with pytest.raises(ValueError, match=said):
            EVERY[name]()(**{**clip, of: wrong}, training=True)


@pytest.mark.parametrize("alpha", [0.003, 0.05, 0.4, 1.0, 30.0])
def test_shares_of_mixup_are_those_of_beta(alpha):
    """Also where gammas of alpha round to 0."""
    draws = 4_000
    layer = layers.Mixup(alpha, seed=5)
    drawn = np.asarray(layer.draw_ratio(np.zeros((draws, 2), "float32")))
    assert drawn.shape == (draws, 1) and drawn.dtype == "float32"
    assert ((drawn >= 0.0) & (drawn <= 1.0)).all()
    beta = stats.beta(alpha, alpha)
    for share in (1e-6, 0.01, 0.2, 0.45, 0.5, 0.7, 0.99):
        below = beta.cdf(share)
        # Five deviations of so many draws.
        bound = 5 * np.sqrt(below * (1 - below) / draws) + 1e-9
        assert np.mean(drawn <= share) == pytest.approx(below, abs=bound)


def test_arguments_out_of_range_are_named():
    for make, name in [
        (lambda: layers.RandomGain((3.0, -3.0)), "gain_db"),
        (lambda: layers.RandomGain(rate=1.5), "rate"),
        (lambda: layers.RandomGain(6.0), "gain_db=6.0"),
        (lambda: layers.RandomGain((1.0, 2.0, 3.0)), "gain_db"),
        (lambda: layers.RandomGain(("soft", "loud")), "gain_db"),
        (lambda: layers.TimeShift(-0.1), "max_shift_s"),
        (lambda: layers.TimeShift("a"), "max_shift_s='a'"),
        (lambda: layers.AdditiveNoise((0.0, float("inf"))), "snr_db"),
        (lambda: layers.AdditiveNoise((-float("inf"), 0.0)), "snr_db"),
        (lambda: layers.AdditiveNoise(color=(2.0, 1.0)), "color"),
        (lambda: layers.SpeedPerturbation((0.0, 1.0)), "speed"),
        (lambda: layers.SpeedPerturbation(interpolation="cubic"), "cubic"),
        (lambda: layers.RandomCrop(0.0), "crop_s"),
        (lambda: layers.RandomCrop(0.001, RATE_HZ), "one sample"),
        (lambda: layers.TimeMasking(num_masks=0), "num_masks"),
        (lambda: layers.TimeMasking(max_share=2.0), "max_share"),
        (lambda: layers.BandMasking(0), "max_bands"),
        (lambda: layers.BandMasking(fill="zero"), "fill"),
        (lambda: layers.VocalTractPerturbation((0.5, 1.1)), "break_share"),
        (
            lambda: layers.VocalTractPerturbation(break_share=0.0),
            "break_share",
        ),
        (lambda: layers.Mixup(0.0), "alpha"),
        (lambda: layers.BetweenClassMixing(weighting="b"), "weighting"),
        (lambda: layers.BetweenClassMixing(window_s=0.0), "window_s"),
        (lambda: layers.BetweenClassMixing(RATE_HZ, 0.01), "two samples"),
    ]:
        with pytest.raises(ValueError, match=name):
            make()
    with pytest.raises(TypeError, match="did you mean 'gain_db'"):
        layers.RandomGain(gain_dB=(0.0, 1.0))
