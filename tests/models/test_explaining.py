"""Explanations against naive references, on a model of a few weights."""

import itertools

import keras
import numpy as np
import pytest
import repository
import soundfile
import tiny

from audio_tf.audio import AudioError
from audio_tf.audio.chunking import Cutting
from audio_tf.gradients import input_gradients
from audio_tf.models import AudioClassifier, explaining
from audio_tf.models.sound_patches import SoundPatches, time_edges

pytestmark = pytest.mark.costly

RATE_HZ = tiny.RATE_HZ
SIZE = round(0.1 * RATE_HZ)
CHUNKS = Cutting(SIZE, SIZE)


@pytest.fixture(scope="module")
def classifier():
    keras.utils.set_random_seed(3)
    return tiny.eager(
        AudioClassifier(
            tiny.backbone(),
            labels=["dog", "cat", "rain"],
            chunk_s=0.1,
            activation="softmax",
        )
    )


def noise(samples, seed=0):
    rng = np.random.default_rng(seed)
    return (0.3 * rng.standard_normal(samples)).astype("float32")


def masked(patches, chunk, gains):
    """The chunk with a gain for each of its patches."""
    return patches.mixer(chunk)(gains[None])[0]


@pytest.mark.parametrize("samples", [57, 263, 1])
def test_patches_of_all_chunks_add_up_to_the_chunks(samples):
    patches = SoundPatches(noise(samples), RATE_HZ, CHUNKS, 0.02, 5)
    times, bands = patches.shape
    assert patches.time_s[-1] == samples / RATE_HZ
    assert patches.frequency_hz[-1] == RATE_HZ / 2
    for chunk in patches.chunks:
        np.testing.assert_allclose(
            masked(patches, chunk, np.ones((times, bands))),
            chunk.audio,
            atol=1e-6,
        )
        total = np.zeros(len(chunk.audio))
        for index in np.ndindex(times, bands):
            gains = np.zeros((times, bands))
            gains[index] = 1.0
            total += masked(patches, chunk, gains)
        np.testing.assert_allclose(total, chunk.audio, atol=1e-5)


def test_a_tone_is_in_its_band_and_time():
    tone = np.zeros(1100, "float32")
    tone[330:440] = np.sin(2 * np.pi * 200 * np.arange(110) / RATE_HZ)
    patches = SoundPatches(tone, RATE_HZ, Cutting(None), 0.1, 6)
    chunk = patches.chunks[0]
    energy = np.stack(
        [
            patches.sum_by_patch(chunk, part**2)
            for part in patches.bands_of(chunk.audio)
        ],
        axis=1,
    )
    time, band = np.unravel_index(energy.argmax(), energy.shape)
    low, high = patches.frequency_hz[band : band + 2]
    assert time == 3 and low < 200 < high
    assert energy[time, band] > 0.9 * energy.sum()


def test_patches_are_of_like_length():
    assert time_edges(100, 30).tolist() == [0, 33, 67, 100]
    assert time_edges(2, 30).tolist() == [0, 2]


@pytest.mark.parametrize("samples", [57, 263])
def test_integrated_gradients_add_up(classifier, samples):
    """Of a clip that is repeated to a chunk, and of one of three chunks."""
    clip = (noise(samples), RATE_HZ)
    found = classifier.explain(clip, patch_s=0.02, bands=4)
    best, score = next(iter(classifier.classify(clip)["scores"].items()))
    assert found["label"] == best and found["method"] == "integrated_gradients"
    assert found["score"] == pytest.approx(score, abs=1e-6)
    gained = found["score"] - found["silence_score"]
    assert abs(gained) > 1e-3
    assert found["weights"].sum() == pytest.approx(gained, abs=0.05 * 0.33)
    assert found["weights"].shape == (
        len(found["time_s"]) - 1,
        len(found["frequency_hz"]) - 1,
    )


def test_integrated_gradients_against_differences(classifier):
    """The same integral, by differences of scores as one band is turned up."""
    patches = SoundPatches(noise(110), RATE_HZ, CHUNKS, 1.0, 4)
    chunk, label = patches.chunks[0], 1
    found = explaining.integrated_gradients(classifier, patches, label)
    levels, widths = explaining.path()
    step, rows = 0.005, []
    for band in range(4):
        for level in levels:
            for factor in (1 + step, 1 - step):
                gains = np.full((1, 4), level)
                gains[0, band] *= factor
                rows.append(masked(patches, chunk, gains))
    scores = np.asarray(classifier.score_batch(np.stack(rows)))[:, label]
    above, below = scores.reshape(4, len(levels), 2).transpose(2, 0, 1)
    expected = (above - below) / (2 * step * levels) @ widths
    np.testing.assert_allclose(found[0], expected, atol=2e-3)
    assert np.abs(expected).max() > 0.01


def test_occlusion_is_what_the_score_loses(classifier):
    audio = noise(263, seed=4)
    found = classifier.explain(
        (audio, RATE_HZ), "rain", "occlusion", patch_s=0.1, bands=2
    )
    patches = SoundPatches(audio, RATE_HZ, CHUNKS, 0.1, 2)
    for index in ((0, 0), (1, 1)):
        gains = np.ones(patches.shape)
        gains[index] = 0.0
        rows = np.stack([masked(patches, c, gains) for c in patches.chunks])
        score = np.asarray(classifier.score_batch(rows))[:, 2].mean()
        assert found["weights"][index] == pytest.approx(
            found["score"] - score, abs=1e-6
        )


@pytest.mark.parametrize("samples", [40, 263])
def test_shapley_values_add_up_whatever_the_orders(
    classifier, samples, monkeypatch
):
    """Also of a clip that is repeated, and of one of three chunks."""
    monkeypatch.setattr(explaining, "ORDERS", 1)
    found = classifier.explain(
        (noise(samples), RATE_HZ), "rain", "shapley", patch_s=0.04, bands=2
    )
    gained = found["score"] - found["silence_score"]
    assert abs(gained) > 1e-3
    assert found["weights"].sum() == pytest.approx(gained, abs=1e-6)


def test_shapley_values_are_means_over_all_orders(classifier, monkeypatch):
    """Against the definition, over all 24 orders of four patches."""
    monkeypatch.setattr(explaining, "ORDERS", 2000)
    patches = SoundPatches(noise(110, seed=2), RATE_HZ, CHUNKS, 0.05, 2)
    (chunk,), label = patches.chunks, 1
    # So that the model is asked once for each of the 16 sets of patches.
    masks = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
    rows = patches.mixer(chunk)(masks.reshape(-1, 2, 2))
    score = dict(
        zip(
            map(bytes, rows),
            explaining.scores_of(classifier, rows, label),
            strict=True,
        )
    )
    monkeypatch.setattr(
        explaining,
        "scores_of",
        lambda model, rows, label: np.array([score[bytes(r)] for r in rows]),
    )
    found = explaining.shapley(classifier, patches, label)
    value = dict(zip(map(tuple, masks), score.values(), strict=True))
    expected = np.zeros(4)
    for order in itertools.permutations(range(4)):
        there = [0.0] * 4
        for patch in order:
            before = value[tuple(there)]
            there[patch] = 1.0
            expected[patch] += (value[tuple(there)] - before) / 24
    spread = np.ptp(expected)
    np.testing.assert_allclose(found.ravel(), expected, atol=0.05 * spread)


@pytest.mark.parametrize("method", explaining.METHODS)
def test_what_is_computed_at_once_changes_nothing(
    method, classifier, monkeypatch
):
    """Long clips have more chunks and patches than a batch has rows."""
    monkeypatch.setattr(explaining, "ORDERS", 1)
    given = {"method": method, "patch_s": 0.05, "bands": 1}
    clip = (noise(263, seed=5), RATE_HZ)
    expected = classifier.explain(clip, "dog", **given)
    monkeypatch.setattr(explaining, "BATCH_SIZE", 2)
    found = classifier.explain(clip, "dog", **given)
    assert found["score"] == pytest.approx(expected["score"], abs=1e-6)
    np.testing.assert_allclose(found["weights"], expected["weights"], atol=1e-6)


def test_chunks_that_are_left_out_weigh_nothing():
    keras.utils.set_random_seed(3)
    model = AudioClassifier(
        tiny.backbone(), labels=["a", "b"], chunk_s=0.1, silence_db=-60.0
    )
    tiny.eager(model)
    audio = np.concatenate([noise(110), np.full(110, 1e-5, "float32")])
    found = model.explain((audio, RATE_HZ), patch_s=0.05, bands=2)
    weights = found["weights"]
    assert not weights[2:].any() and weights[:2].all()


@pytest.mark.parametrize("method", ["integrated_gradients", "shapley"])
def test_weights_of_chunks_that_overlap_add_up(method):
    keras.utils.set_random_seed(3)
    model = AudioClassifier(
        tiny.backbone(), labels=["a", "b"], chunk_s=0.1, chunk_hop_s=0.04
    )
    tiny.eager(model)
    clip = (noise(257), RATE_HZ)
    found = model.explain(clip, "a", method, patch_s=0.1, bands=2)
    score = model.classify(clip)["scores"]["a"]
    assert found["score"] == pytest.approx(score, abs=1e-6)
    gain = found["score"] - found["silence_score"]
    assert found["weights"].sum() == pytest.approx(gain, abs=2e-3)


def test_gradients_of_each_row_are_its_own():
    x = noise(6).reshape(2, 3)
    found = input_gradients(lambda x: keras.ops.sum(x**3, axis=1), x)
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found), 3 * x**2, rtol=1e-5
    )
    unused = input_gradients(lambda x: keras.ops.zeros(2), x)
    assert not keras.ops.convert_to_numpy(unused).any()


def test_small_gradients_are_not_lost_in_half_precision():
    """2^-26 is nothing in float16, and what the score of a sure model has."""

    def score(x):
        half = keras.ops.cast(x, "float16")
        return 2.0**-26 * keras.ops.sum(keras.ops.cast(half, "float32"), axis=1)

    found = keras.ops.convert_to_numpy(input_gradients(score, noise(3)[None]))
    np.testing.assert_array_equal(found, np.full((1, 3), 2.0**-26))


def test_bad_clips_and_arguments_are_named(classifier):
    clips = [(noise(30), RATE_HZ), b"no sound"]
    good, bad = classifier.explain(clips, method="occlusion", bands=1)
    assert good["weights"].shape == (1, 1) and set(bad) == {"file", "error"}
    with pytest.raises(AudioError, match="clip 0"):
        classifier.explain(clips[1:], strict=True)
    with pytest.raises(ValueError, match="did you mean 'rain'"):
        classifier.explain(clips[0], "rains")
    with pytest.raises(ValueError, match="occlusion"):
        classifier.explain(clips[0], method="oclusion")
    with pytest.raises(ValueError, match="bands"):
        classifier.explain(clips[0], bands=0)


def test_occlusion_of_a_repeated_clip_is_of_all_of_it(classifier):
    """A patch of a clip that fills its chunk thrice is silent thrice."""
    audio = noise(36, seed=2)
    found = classifier.explain(
        (audio, RATE_HZ), "dog", "occlusion", patch_s=0.02, bands=1
    )
    chunk = np.resize(audio, 110)
    gains = (np.resize(np.arange(36), 110) >= 18).astype("float64")
    # Slopes of 13 samples: 6 to each side, as 10 ms have.
    slopes = np.convolve(np.pad(gains, 6, "edge"), np.full(13, 1 / 13), "valid")
    scores = classifier.score_batch((chunk * slopes)[None].astype("float32"))
    lost = found["score"] - float(np.asarray(scores)[0, 0])
    assert abs(lost) > 1e-4
    assert found["weights"][0, 0] == pytest.approx(lost, abs=1e-5)


@pytest.fixture(scope="module")
def benchmark():
    """benchmarks/explanations.py, by which methods are measured."""
    with repository.benchmarks("explanations") as (module,):
        yield module


def naive_mix(patches, chunk, heard):
    """The chunk of the patches that are heard, sample by sample."""
    samples, half = len(chunk.audio), round(0.005 * RATE_HZ)
    spectrum = np.fft.fft(chunk.audio)
    hz = np.abs(np.fft.fftfreq(samples, 1 / RATE_HZ))
    mixed = np.zeros(samples)
    for band in range(patches.shape[1]):
        within = hz >= patches.frequency_hz[band]
        if band + 1 < patches.shape[1]:
            within &= hz < patches.frequency_hz[band + 1]
        sound = np.fft.ifft(spectrum * within).real
        for place in range(samples):
            around = np.arange(place - half, place + half + 1)
            times = chunk.patch[np.clip(around, 0, samples - 1)]
            gains = [float((time, band) in heard) for time in times]
            mixed[place] += sound[place] * np.mean(gains)
    return mixed.astype("float32")


# Of two chunks and one of them repeated.
@pytest.mark.parametrize("samples", [211, 57])
def test_curves_follow_the_score_patch_by_patch(samples, classifier, benchmark):
    """Deletion and insertion, against loops that know no mixer."""
    patches = SoundPatches(noise(samples, 5), RATE_HZ, CHUNKS, 0.04, 3)
    weights = np.random.default_rng(7).standard_normal(patches.shape)
    order = sorted(np.ndindex(patches.shape), key=lambda at: -weights[at])
    areas = []
    for deletes in (True, False):
        curve = []
        for share in benchmark.SHARES:
            # A patch that is begun is whole.
            count = int(np.ceil(share * len(order)))
            heard = set(order[count:] if deletes else order[:count])
            rows = [naive_mix(patches, each, heard) for each in patches.chunks]
            scores = classifier(np.stack(rows), training=False)
            scores = keras.ops.convert_to_numpy(scores)
            curve.append(scores[:, 1].mean())
        area = 0.0
        for place, width in enumerate(np.diff(benchmark.SHARES)):
            area += width * (curve[place] + curve[place + 1]) / 2
        areas.append(area)
    found = benchmark.Curves(classifier, patches, 1).areas(weights)
    np.testing.assert_allclose(found, areas, atol=1e-6)
    assert abs(areas[0] - areas[1]) > 1e-4


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Two clips of two speakers."""
    folder = tmp_path_factory.mktemp("clips")
    for seed, name in enumerate(["one_ann_0.wav", "two_bob_0.wav"]):
        soundfile.write(folder / name, noise(300, seed), RATE_HZ)
    return folder


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["none/*.wav"], "none/*.wav: no audio file matches"),
        (["CLIPS", "--unit", "_([a-z]+"], "--unit: '_([a-z]+'"),
        (["CLIPS", "--unit", "_[a-z]+_"], "--unit: '_[a-z]+_' has no group"),
        (["CLIPS", "--unit", "_(b.b)_"], "--unit: no match of '_(b.b)_' in "),
    ],
)
def test_files_without_a_unit_are_named_before_a_model(
    flags, error, clips, benchmark, monkeypatch, capsys
):
    flags = [str(clips) if each == "CLIPS" else each for each in flags]
    monkeypatch.setattr(
        "sys.argv", ["explanations.py", "--model", "none", "--files", *flags]
    )
    with pytest.raises(SystemExit, match="2"):
        benchmark.main()
    assert error in capsys.readouterr().err


def test_each_method_stands_beside_energy(classifier, clips, benchmark):
    file = str(clips / "one_ann_0.wav")
    found = benchmark.judge_clip(
        classifier, classifier, file, np.random.default_rng(0), ["occlusion"]
    )
    assert list(found) == ["occlusion", "energy", "random"]
    # The model against itself: the same weights.
    assert found["occlusion"]["randomised"] == pytest.approx(1.0)
    table = benchmark.summary([found], np.zeros(1, int))
    assert "deletion_better_than_energy" in table["occlusion"]
