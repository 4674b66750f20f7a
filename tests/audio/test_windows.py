"""Long recordings as windows, against the same recordings read whole."""

import numpy as np
import pytest
import soundfile

from audio_tf.audio import AudioError, decode, load_audio
from audio_tf.audio.windows import read_windows

RATE_HZ = 16_000


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Files are read in many blocks, however short they are."""
    monkeypatch.setattr(decode, "READ_AT_ONCE", 10_007)


# To the same rate, up and down, and with more phases than there are taps for.
@pytest.mark.parametrize("rate_hz", [16_000, 8_000, 22_050, 44_100, 15_991])
@pytest.mark.parametrize("window_s", [0.25, 0.7001])
def test_windows_are_those_of_the_whole(tmp_path, rng, rate_hz, window_s):
    path = tmp_path / "long.wav"
    noise = rng.uniform(-0.5, 0.5, (round(2.131 * rate_hz), 2))
    soundfile.write(path, noise, rate_hz, "FLOAT")
    whole = load_audio(path, RATE_HZ)
    size = round(window_s * RATE_HZ)
    starts = []
    for window in read_windows(path, RATE_HZ, window_s):
        start = round(window.start_s * RATE_HZ)
        assert window.end_s == pytest.approx(window.start_s + size / RATE_HZ)
        np.testing.assert_allclose(
            window.audio, whole[start : start + size], atol=2e-6
        )
        starts.append(start)
    count = len(whole) // size
    assert starts == [*range(0, count * size, size), len(whole) - size]


def test_a_recording_of_whole_windows_has_no_more(tmp_path, rng):
    path = tmp_path / "long.wav"
    soundfile.write(path, rng.uniform(-0.5, 0.5, 3 * 8_000), 8_000)
    windows = list(read_windows(path, RATE_HZ, 1.0))
    assert [window.start_s for window in windows] == [0.0, 1.0, 2.0]


def test_a_window_has_a_sample_at_least(tmp_path):
    path = tmp_path / "long.wav"
    soundfile.write(path, np.zeros(7), RATE_HZ)
    assert len(list(read_windows(path, RATE_HZ, 1e-5))) == 7


@pytest.mark.parametrize("window_s", [None, 1.0, 5.0])
def test_a_short_file_is_one_window(tmp_path, rng, window_s):
    path = tmp_path / "short.flac"
    soundfile.write(path, rng.uniform(-0.5, 0.5, 44_100), 44_100)
    (window,) = read_windows("name", RATE_HZ, window_s, path.read_bytes())
    np.testing.assert_array_equal(window.audio, load_audio(path, RATE_HZ))
    assert (window.start_s, window.end_s) == (0.0, 1.0)


def test_a_recording_that_is_cut_off_is_found_out(tmp_path, rng):
    path = tmp_path / "cut.wav"
    soundfile.write(path, rng.uniform(-0.5, 0.5, 3 * RATE_HZ), RATE_HZ)
    path.write_bytes(path.read_bytes()[:-1_000])
    windows = read_windows(path, RATE_HZ, 0.5)
    with pytest.raises(AudioError, match="cut off after 47500 samples"):
        list(windows)


@pytest.mark.parametrize("rate_hz", [400, 2_000_000])
def test_rates_that_nothing_has(tmp_path, rate_hz):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(rate_hz * 2), rate_hz)
    with pytest.raises(AudioError, match=f"a rate of {rate_hz} Hz"):
        list(read_windows(path, RATE_HZ, 1.0))
