"""The resampler: its response, its definition, and the graph as the host.

Frequencies are shares of the lower Nyquist frequency.
"""

import os
import pathlib
import subprocess
import sys
import tracemalloc

import hypothesis
import numpy as np
import pytest
import soundfile
import soxr
import tensorflow as tf
from hypothesis import strategies

from audio_tf.audio import decode, graph_resampling, resampling

TARGETS_HZ = (8_000, 16_000, 44_100, 1_009)
RATES_HZ = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100]
RATES_HZ += [48_000, 88_200, 96_000, 192_000]
RATES_HZ += [1_000, 1_009, 16_001, 15_999, 31_999, 44_056]
# Each with groups of its own kind: one phase, several, too many.
PAIRS_HZ = [
    (44_100, 16_000),
    (48_000, 16_000),
    (44_056, 16_000),
    (16_000, 8_000),
    (8_000, 16_000),
    (11_025, 16_000),
    (16_000, 44_100),
    (15_013, 16_000),
]
# Whose reduced fraction with 16 kHz has thousands of phases.
HOSTILE_HZ = (999_983, 383_999, 44_101, 1_009)


@pytest.fixture(scope="module")
def in_graph():
    """`resample` in the graph: one traced function for each target."""
    signature = [tf.TensorSpec((None,)), tf.TensorSpec((), tf.int32)]
    functions = {
        target_hz: tf.function(
            lambda audio, rate_hz, target_hz=target_hz: (
                graph_resampling.resample_in_graph(audio, rate_hz, target_hz)
            ),
            input_signature=signature,
        )
        for target_hz in TARGETS_HZ
    }
    return lambda audio, rate_hz, target_hz: functions[target_hz](
        audio, rate_hz
    ).numpy()


@pytest.fixture(params=["host", "graph"])
def resample(request, in_graph):
    return {"host": resampling.resample, "graph": in_graph}[request.param]


def noise(count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.9, 0.9, count).astype("float32")


def naive(audio, rate_hz, target_hz, places):
    """Some outputs by the definition: the sum over all the input."""
    lower_hz = min(rate_hz, target_hz)
    # The integral of the response is 1.
    dense = np.linspace(-70, 70, 2**16 + 1)
    taps = np.sinc(dense * 67 / 70) * np.kaiser(len(dense), 8.95926)
    total = taps[1:].mean() * 140
    outputs = []
    for place in places:
        distance_s = place / target_hz - np.arange(len(audio)) / rate_hz
        samples = distance_s * lower_hz
        inside = np.abs(samples) <= 70
        samples = samples[inside]
        kaiser = np.i0(8.95926 * np.sqrt(1 - (samples / 70) ** 2))
        taps = np.sinc(samples * 67 / 70) * kaiser / np.i0(8.95926)
        outputs.append(
            np.sum(taps * audio[inside]) / total * lower_hz / rate_hz
        )
    return np.array(outputs)


def tone(share, lower_hz, rate_hz, count):
    time_s = np.arange(count) / rate_hz
    return np.cos(np.pi * share * lower_hz * time_s + 0.7)


# The graph is the host's resampler to 3e-6, so that the edges will do for it.
SHARES = {
    "host": (
        (0.0, 0.01, 0.3, 0.77, 0.85, 0.9),
        (1.0, 1.05, 1.1, 1.3, 2.0, 2.1, 2.7),
    ),
    "graph": ((0.3, 0.9), (1.0,)),
}


@pytest.mark.parametrize(
    ("given", "error", "named"),
    [
        # Of a rate of 0 there had been no samples.
        ((np.ones(9), 8_000, 0), ValueError, "`target_rate_hz` must be whole"),
        ((np.ones(9), 8_000, -8_000), ValueError, "`target_rate_hz` must"),
        ((np.ones(9), 44_100.9, 8_000), ValueError, "rate_hz=44100.9"),
        ((np.ones(9), np.nan, 8_000), ValueError, "`rate_hz` must be whole"),
        ((np.ones(9), "8000", 8_000), ValueError, "rate_hz='8000'"),
        ((np.ones((9, 2)), 8_000, 8_000), ValueError, r"shape=\(9, 2\)"),
        ((np.ones(9, "int16"), 8_000, 9_000), TypeError, "int16"),
        ((np.ones(9, "complex64"), 8_000, 9_000), TypeError, "complex64"),
    ],
)
def test_what_cannot_be_resampled_is_named(given, error, named):
    with pytest.raises(error, match=named):
        resampling.resample(*given)


def test_rates_may_be_whole_numbers_of_any_kind():
    expected = resampling.resample(np.ones(90), 44_100, 16_000)
    for kind in (np.int64, np.float32, float):
        found = resampling.resample(np.ones(90), kind(44_100), kind(16_000))
        np.testing.assert_array_equal(found, expected)


def test_a_file_is_at_no_rate_of_nothing(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(80), 8_000)
    with pytest.raises(ValueError, match="`sample_rate_hz` must be whole"):
        decode.load_audio(tmp_path / "a.wav", 0)


@pytest.mark.parametrize("target_hz", [16_000, 8_000])
@pytest.mark.parametrize("count", [0, 100])
def test_samples_are_float32_whatever_they_were(target_hz, count):
    found = resampling.resample(np.zeros(count), 16_000, target_hz)
    assert found.dtype == "float32"
    assert len(found) == count * target_hz // 16_000


@pytest.mark.parametrize("rate_hz, target_hz", PAIRS_HZ)
@pytest.mark.parametrize("place", SHARES)
def test_tones(rate_hz, target_hz, place, in_graph):
    """In the pass band each is the tone sampled anew, above it nothing.

    The error of the first holds that of amplitude and phase, and the images;
    0.1 dB would be 1.2e-2, and -80 dB is 1e-4.
    """
    resample = {"host": resampling.resample, "graph": in_graph}[place]
    heard, unheard = SHARES[place]
    lower_hz = min(rate_hz, target_hz)
    count = rate_hz // 8
    for share in heard:
        audio = tone(share, lower_hz, rate_hz, count).astype("float32")
        found = resample(audio, rate_hz, target_hz)
        middle = slice(len(found) // 4, -len(found) // 4)
        expected = tone(share, lower_hz, target_hz, len(found))
        assert np.abs(found - expected)[middle].max() < 1e-4, share
    for share in unheard:
        if share * lower_hz > rate_hz:
            continue
        audio = tone(share, lower_hz, rate_hz, count).astype("float32")
        found = resample(audio, rate_hz, target_hz)
        middle = slice(len(found) // 4, -len(found) // 4)
        if rate_hz > target_hz:
            assert np.abs(found[middle]).max() < 1e-4, share


def test_frequency_response():
    """The transform of the impulse response, at the shares promised."""
    time = np.arange(-70 * 32, 70 * 32 + 1) / 32
    response = resampling.kernel(time) / 32

    def decibels(share):
        waves = np.cos(np.pi * np.asarray(share)[:, None] * time)
        return 20 * np.log10(np.abs(waves @ response))

    assert np.abs(decibels(np.linspace(0, 0.9, 301))).max() < 1e-3
    assert np.abs(decibels([0.92])).max() < 0.1
    assert decibels([0.99])[0] < -40
    assert decibels(np.linspace(1.0, 8.0, 2_003)).max() < -90
    # Not one spot lower or higher than the next in the transition.
    assert np.all(np.diff(decibels(np.linspace(0.92, 0.995, 99))) < 0)


def test_the_window_is_kaisers():
    """Its polynomial, and that the taps run out into 0."""
    time = np.linspace(-70, 70, 2_049)
    taps = np.sinc(time * 67 / 70) * np.kaiser(2_049, 8.95926)
    found = resampling.kernel(time)
    np.testing.assert_allclose(
        found / found.max(), taps / taps.max(), rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(found[[0, -1]], 0, atol=1e-12)
    np.testing.assert_array_equal(
        resampling.kernel(np.array([-70.3, 70.3, 1e4])) < 1e-12, True
    )


@pytest.mark.parametrize("rate_hz", [8_000, 44_100, 48_000])
def test_bands_are_those_of_soxr(rate_hz, shared_data, resample):
    """The energy of each mel band, noise and real clips."""
    clips = [noise(rate_hz)]
    if rate_hz == 44_100:
        paths = sorted(shared_data.glob("esc10/audio/*.ogg"))[::80]
        assert len(paths) > 3
        clips += [soundfile.read(path, dtype="float32")[0] for path in paths]
    for audio in clips:
        expected = soxr.resample(audio, rate_hz, 16_000, quality="HQ")
        found = resample(audio, rate_hz, 16_000)
        assert abs(len(found) - len(expected)) <= 1
        bands = mel_bands(expected)
        # Behind the Nyquist frequency of the source there is nothing to hear.
        there = 47 if rate_hz < 16_000 else 64
        ratio_db = 10 * np.log10(mel_bands(found) / bands)[:there]
        assert np.abs(ratio_db[:-2]).max() < 0.1
        assert np.abs(ratio_db).max() < 0.5


def mel_bands(audio, num_bands=64):
    """Energies of triangular bands up to 8 kHz."""
    power = np.abs(np.fft.rfft(audio[: 2 * (len(audio) // 2)])) ** 2
    hz = np.linspace(0, 8_000, len(power))
    mel = 2_595 * np.log10(1 + hz / 700)
    edges = np.linspace(0, mel[-1], num_bands + 2)
    place = (mel[:, None] - edges[1:-1]) / (edges[1] - edges[0])
    return power @ np.maximum(1 - np.abs(place), 0)


@pytest.mark.parametrize(
    "rate_hz, target_hz",
    [*PAIRS_HZ, *((hz, 16_000) for hz in HOSTILE_HZ), (192_000, 8_000)],
)
def test_definition(rate_hz, target_hz, resample):
    """In the middle and at both ends, noise and an impulse."""
    count = max(rate_hz // 16, 503)
    audio = noise(count)
    found = resample(audio, rate_hz, target_hz)
    assert found.dtype == "float32"
    assert found.shape == (-(-count * target_hz // rate_hz),)
    size = len(found)
    places = [0, 1, 2, 61, size // 2, size // 2 + 1, size - 2, size - 1]
    np.testing.assert_allclose(
        found[places],
        naive(audio, rate_hz, target_hz, places),
        rtol=0,
        atol=2e-6,
    )
    impulse = np.zeros(count, "float32")
    impulse[count // 2] = 1
    found = resample(impulse, rate_hz, target_hz)
    nearest = count // 2 * target_hz // rate_hz
    places = np.clip(np.arange(nearest - 72, nearest + 73), 0, size - 1)
    np.testing.assert_allclose(
        found[places],
        naive(impulse, rate_hz, target_hz, places),
        rtol=0,
        atol=1e-6,
    )


@pytest.mark.parametrize("rate_hz, target_hz", PAIRS_HZ)
def test_phase_is_linear_and_nothing_depends_on_the_cut(
    rate_hz, target_hz, resample
):
    divisor = np.gcd(rate_hz, target_hz)
    up, down = target_hz // divisor, rate_hz // divisor
    # The first and the last sample fall on outputs.
    periods = -(-500 // down)
    audio = noise(periods * down + 1)
    found = resample(audio, rate_hz, target_hz)
    backwards = resample(audio[::-1].copy(), rate_hz, target_hz)
    last = periods * up
    np.testing.assert_allclose(
        backwards[last::-1], found[: last + 1], rtol=0, atol=2e-6
    )
    # Later by a period, with silence around it.
    later = resample(np.pad(audio, (down, 333)), rate_hz, target_hz)
    np.testing.assert_allclose(
        later[up : up + len(found)], found, rtol=0, atol=2e-6
    )
    # A part, with what the filter reaches around it, is that part.
    reach = -(-71 * max(up, down) // up // down)
    begin = 2 * reach + 3
    part = np.pad(audio, (begin * down, begin * down))
    whole = resample(part, rate_hz, target_hz)
    part = resample(part[(begin - reach) * down :], rate_hz, target_hz)
    np.testing.assert_allclose(
        part[reach * up :], whole[begin * up :], rtol=0, atol=2e-6
    )


def assert_graph_is_host(in_graph, audio, rate_hz, target_hz):
    found = in_graph(audio, rate_hz, target_hz)
    expected = resampling.resample(audio, rate_hz, target_hz)
    assert found.dtype == expected.dtype == "float32"
    assert found.shape == expected.shape
    assert len(found) == -(-len(audio) * target_hz // rate_hz)
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=3e-6, err_msg=f"{rate_hz} {target_hz}"
    )


@pytest.mark.parametrize("target_hz", TARGETS_HZ)
def test_the_graph_is_the_host(target_hz, in_graph):
    for rate_hz in RATES_HZ:
        for count in (0, 1, 7, 1_009, 12_007):
            assert_graph_is_host(
                in_graph, noise(count, count), rate_hz, target_hz
            )


def test_the_graph_is_the_host_on_real_sound(in_graph, shared_data):
    paths = sorted(shared_data.glob("esc10/audio/*.ogg"))[::100]
    assert len(paths) > 2
    for path in paths:
        audio, rate_hz = soundfile.read(path, dtype="float32")
        assert_graph_is_host(in_graph, audio, rate_hz, 16_000)


@hypothesis.settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    rate_hz=strategies.integers(1_000, 60_000),
    count=strategies.integers(0, 5_000),
    target_hz=strategies.sampled_from(TARGETS_HZ),
)
def test_any_rate(rate_hz, count, target_hz, in_graph):
    assert_graph_is_host(in_graph, noise(count, count), rate_hz, target_hz)


@pytest.mark.parametrize("size", [1, 3_001, 2**14])
def test_several_blocks(size, monkeypatch):
    monkeypatch.setattr(graph_resampling, "BLOCK", size)
    monkeypatch.setattr(resampling, "PRODUCT", size)
    for rate_hz in (44_100, 15_013, 48_000):
        audio = noise(1_501)
        found = resampling.resample(audio, rate_hz, 16_000)
        places = np.arange(0, len(found), 13)
        expected = naive(audio, rate_hz, 16_000, places)
        np.testing.assert_allclose(found[places], expected, rtol=0, atol=2e-6)
        found = graph_resampling.resample_in_graph(
            tf.constant(audio), tf.constant(rate_hz), 16_000
        ).numpy()
        np.testing.assert_allclose(found[places], expected, rtol=0, atol=2e-6)


def test_host_memory_at_hostile_rates():
    """Beside the input and the output, a second takes some 10 MB."""
    for rate_hz in HOSTILE_HZ:
        audio = noise(rate_hz)
        resampling.plan_with_taps.cache_clear()
        tracemalloc.start()
        resampling.resample(audio, rate_hz, 16_000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * audio.nbytes + 40e6, rate_hz


def test_graph_memory_at_hostile_rates(in_graph):
    if not pathlib.Path("/proc/self/clear_refs").exists():
        pytest.skip("PEAK MEMORY IN THE GRAPH IS NOT TESTED: not Linux")
    in_graph(noise(1_009), 44_101, 16_000)
    for rate_hz in HOSTILE_HZ:
        audio = noise(rate_hz)
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        before = peak_memory()
        in_graph(audio, rate_hz, 16_000)
        assert peak_memory() - before < 2 * audio.nbytes + 60e6, rate_hz


def peak_memory():
    """Bytes that the process has held at once since the peak was reset."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1_024 * int(status.split("VmHWM:")[1].split()[0])


RESAMPLED = """
import sys, zlib
import numpy as np
from audio_tf.audio import resampling
x = np.random.default_rng(7).uniform(-1, 1, 9_000).astype("float32")
for rates in ((44_100, 16_000), (8_000, 16_000), (44_056, 16_000)):
    print(zlib.crc32(resampling.resample(x, *rates)))
"""


def test_samples_are_the_same_on_other_processors():
    """To the last bit, or marks of clips would not know them again."""
    found = {
        subprocess.run(
            [sys.executable, "-c", RESAMPLED],
            env={**os.environ, "OPENBLAS_CORETYPE": kind},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        # What they have to sum with: SSE, AVX2 and AVX-512, where it is there.
        for kind in ("Prescott", "Haswell", "SkylakeX")
    }
    assert len(found) == 1


def test_few_plans_are_kept():
    """A corpus of many odd rates does not fill the memory with taps."""
    for rate_hz in range(16_001, 16_021):
        resampling.resample(noise(7), rate_hz, 16_000)
    assert resampling.plan_with_taps.cache_info().currsize <= 8


def test_the_interpolation_keeps_its_tolerance():
    """Waves up to the highest frequency that the filter lets through."""
    phases = np.linspace(0, 1, 301)
    for ratio in (0.3, 1.0, 1.7, 2.76, 9.0, 62.5, 900.0):
        count = resampling.num_nodes(ratio)
        weights = resampling.interpolation_weights(phases, count)
        nodes = resampling.chebyshev_nodes(count)
        for angle in np.pi / max(ratio, 1) * np.array([0, 0.5, 0.9, 0.95]):
            waves = np.exp(1j * angle * nodes)
            error = weights @ waves - np.exp(1j * angle * phases)
            assert np.abs(error).max() < 5e-7
        np.testing.assert_allclose(
            weights,
            graph_resampling.interpolation_weights(
                tf.constant(phases), tf.constant(count)
            ),
            atol=1e-7,
        )
        np.testing.assert_allclose(
            nodes,
            graph_resampling.chebyshev_nodes(tf.constant(ratio, tf.float64)),
            atol=1e-15,
        )


def test_the_name_says_what_moves_the_samples(monkeypatch):
    assert "67" in resampling.RESAMPLER
    assert "70" in resampling.RESAMPLER
    assert "8.959" in resampling.RESAMPLER
