"""`audio-tf cache`: what is there, and what is removed."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the cache is filled through tf.data", allow_module_level=True)

from audio_tf import cli, data, layers
from audio_tf.data import cache, feature_cache

WEIGHTLESS = layers.SpeechFeatures(
    "s3prl", 4_000, {"num_mel_bins": 5, "fft_length": 128}
)


@pytest.fixture
def filled(tmp_path):
    """Audio of 4,000 Hz, features of it, and what is none of the cache."""
    folder = tmp_path / "cache"
    source = tmp_path / "a.wav"
    source.write_bytes(b"")
    store = cache.AudioCache(folder, 4_000)
    store.put(source, np.zeros(700, "float32"))
    clips = data.Clips(
        None, [], np.zeros(0, int), 4_000, {}, np.zeros(0), np.zeros(0)
    )
    feature_cache.cache_features(clips, WEIGHTLESS, folder, progress=False)
    (folder / "synthetic-0").mkdir()
    (folder / "synthetic-0" / "clip.wav").write_bytes(b"sound")
    return folder


def names(folder):
    return sorted(path.name.partition("-")[0] for path in folder.iterdir())


def test_folders_are_listed_and_cleared(filled, capsys, monkeypatch):
    monkeypatch.setenv("AUDIO_TF_CACHE", str(filled))
    assert cli.main(["cache", "list"]) == 0
    audio, features, total = capsys.readouterr().out.splitlines()
    assert "1 entries" in audio and "decoded audio at 4000 Hz" in audio
    assert "0 entries" in features and "SpeechFeatures, 5 values" in features
    assert total == f"{filled}: 0.0 MB"
    assert cli.main(["cache", "clear", "--features"]) == 0
    assert "cleared features-" in capsys.readouterr().out
    assert names(filled) == ["4000", "synthetic"]
    name = audio.split()[0]
    assert cli.main(["cache", "clear", name[:-1] + "x"]) == 2
    assert f"did you mean '{name}'" in capsys.readouterr().err
    assert cli.main(["cache", "clear", name]) == 0
    # A corpus that was made there is no part of the cache.
    assert names(filled) == ["synthetic"]
    assert cli.main(["cache", "clear", "--all"]) == 0
    assert "nothing to clear" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["clear"], ["clear", "x", "--all"], ["list", "x"], ["list", "--all"]],
)
def test_what_is_cleared_is_said_once(arguments, filled, capsys):
    found = cli.main(["cache", *arguments, "--cache-dir", str(filled)])
    assert found == 2 and "Received" in capsys.readouterr().err
    assert names(filled) == ["4000", "features", "synthetic"]
