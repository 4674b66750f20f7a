"""`audio-tf cache`: what is there, and what is removed."""

import os
import time

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the cache is filled through tf.data", allow_module_level=True)

from audio_tf import cli, data, layers
from audio_tf.data import cache, feature_cache, shards

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
    audio, features, made, total = capsys.readouterr().out.splitlines()
    assert made.startswith("synthetic-0 ") and "a corpus" in made
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
    # A corpus that was made there is cleared by its name alone.
    assert names(filled) == ["synthetic"]
    assert cli.main(["cache", "clear", "--all"]) == 0
    assert "nothing to clear" in capsys.readouterr().err
    assert cli.main(["cache", "clear", "synthetic-0"]) == 0
    assert names(filled) == []


def test_a_folder_that_no_longer_says_what_it_holds(filled, capsys):
    (about,) = filled.glob("features-*/about.json")
    about.write_bytes(b"")
    given = ["--cache-dir", str(filled)]
    assert cli.main(["cache", "list", *given]) == 0
    assert f"{about.parent.name} " in capsys.readouterr().out
    assert cli.main(["cache", "limit", "1GB", *given]) == 0
    assert cli.main(["cache", "clear", "--features", *given]) == 0
    assert not about.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["clear"],
        ["clear", "x", "--all"],
        ["list", "x"],
        ["list", "--all"],
        ["limit"],
        ["limit", "1GB", "--features"],
        ["limit", "1GB", "2GB"],
        ["limit", "plenty"],
        ["limit", "1 XB"],
    ],
)
def test_what_is_cleared_is_said_once(arguments, filled, capsys):
    found = cli.main(["cache", *arguments, "--cache-dir", str(filled)])
    received = capsys.readouterr().err.partition("Received: ")[2]
    assert found == 2 and received
    for given in arguments[1:]:
        flag = given.removeprefix("--")
        assert (given if flag == given else f"{flag}=True") in received
    assert names(filled) == ["4000", "features", "synthetic"]


def test_a_cache_that_is_named_is_there(tmp_path, capsys):
    (tmp_path / "file").touch()
    for name in ("file", "none"):
        found = cli.main(["cache", "list", "--cache-dir", str(tmp_path / name)])
        assert found == 2
        assert "must be a folder that is there" in capsys.readouterr().err


def test_a_limit_removes_what_was_used_longest_ago(tmp_path, capsys):
    """Three shards and two entries of known sizes and times of use."""
    folder = tmp_path / "cache"
    store = cache.AudioCache(folder, 4_000)
    sets = store.directory / shards.PREPARED / "0"
    used = {}
    for day, name in enumerate(["0", "1", "a", "2", "b"]):
        if name.isdecimal():
            x = np.zeros(1_000, "float32")
            note = shards.write(sets, name, [(f"{name}.f32", "d", x)], {})
            used[sets / note.file] = day
        else:
            source = tmp_path / f"{name}.wav"
            source.touch()
            store.put(source, np.zeros(1_000, "float32"))
            used[store.entry(source)] = day
    left_behind = store.directory / "00" / "x.partial"
    left_behind.parent.mkdir()
    left_behind.write_bytes(bytes(500))
    now = time.time()
    for path, day in used.items():
        os.utime(path, (now - 86_400 * (10 - day), now - 86_400 * 20))
    os.utime(left_behind, (now, now - 86_400 * 2))
    # The oldest one is used once more.
    first = next(iter(used))
    shards.mark_used(first)
    assert first.stat().st_mtime < now - 86_400
    where = ["--cache-dir", str(folder)]
    assert cli.main(["cache", "limit", "1 MB", *where]) == 0
    assert "removed 1 entries" in capsys.readouterr().out
    assert not left_behind.exists()
    assert cli.main(["cache", "limit", "12.9kB", *where]) == 0
    assert "removed 2 entries" in capsys.readouterr().out
    there = [path.exists() for path in used]
    assert there == [True, False, False, True, True]
    assert len(shards.read_notes(sets)) == 2
    assert cli.main(["cache", "list", *where]) == 0
    assert "3 entries" in (out := capsys.readouterr().out)
    assert "2 in shards" in out
    assert cli.main(["cache", "limit", "0", *where]) == 0
    assert not any(path.exists() for path in used)
