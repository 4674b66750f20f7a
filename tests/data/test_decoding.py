"""Files to samples, many at once, errors in their places."""

import pathlib

import numpy as np
import pytest
from clip_files import RATE_HZ, make_corpus, write_bad_files, write_clip

from audio_tf import data
from audio_tf.audio import decode


def test_decoding_keeps_order_and_carries_errors(tmp_path, monkeypatch):
    corpus, audio = make_corpus(tmp_path / "clips")
    bad = write_bad_files(tmp_path)
    missing = tmp_path / "missing.wav"
    files = [*corpus.files]
    expected = {file: samples for file, samples in zip(files, audio)}
    for row, file in enumerate([*bad, missing]):
        files.insert(1 + 2 * row, file)
    load_audio = decode.load_audio

    begun = []

    def slow_at_first(path, sample_rate_hz):
        """Keeps every third file busy, so that others may overtake it."""
        row = files.index(pathlib.Path(path))
        begun.append(row)
        for _ in range(997):
            if row % 3 or begun[-1] != row:
                break
            corpus.files[0].read_bytes()
        return load_audio(path, sample_rate_hz)

    monkeypatch.setattr(decode, "load_audio", slow_at_first)
    elements = list(data.decode_files(files, RATE_HZ))
    assert [row for row, _, _ in elements] == list(range(len(files)))
    for file, (_, samples, error) in zip(files, elements, strict=True):
        assert samples.dtype == "float32"
        if file in expected:
            assert error == ""
            np.testing.assert_array_equal(samples, expected[file])
        else:
            reason = bad.get(file, "no such file")
            assert reason in error
            assert samples.shape == (0,)


def test_decoding_resamples(tmp_path):
    write_clip(tmp_path / "a.wav", 503, rate_hz=16_000)
    write_clip(tmp_path / "b.wav", 503, rate_hz=8_000)
    files = [tmp_path / "a.wav", str(tmp_path / "b.wav")]
    decoded = data.decode_files(files, 8_000)
    lengths = [len(audio) for _, audio, _ in decoded]
    assert lengths == [252, 503]


def test_decoding_of_nothing():
    assert not list(data.decode_files([], RATE_HZ))


def test_unknown_decoder():
    with pytest.raises(ValueError, match="soundfile.*Received: decoder='sox'"):
        data.decode_files([], RATE_HZ, "sox")
