"""Decoded audio on disk: found, missed, damaged, shared."""

import os
import zlib

import numpy as np
import pytest
from clip_files import files_below, noise, write_clip

from audio_tf.data import cache


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.wav"
    write_clip(path)
    return path


@pytest.fixture
def store(tmp_path):
    return cache.AudioCache(tmp_path / "cache", 16_000)


def put(store, source, audio):
    """Stores samples; the path of their entry."""
    store.put(source, audio)
    return store.entry(source)


@pytest.mark.parametrize("block", [2**20, 1_000])
def test_cache_returns_what_was_put(block, store, source, monkeypatch):
    """Of entries that are checked at once, and of those in several blocks."""
    monkeypatch.setattr(cache, "BLOCK", block)
    audio = noise(5_003, 1)
    assert not store.entry(source).is_file()
    facts = store.put(source, audio)
    entry = store.entry(source)
    assert facts == cache.EntryFacts(5_003, zlib.crc32(audio.tobytes()))
    assert store.check(entry) == facts
    assert store.entry(str(source)).is_file()
    found = cache.read_entry(entry)
    assert found.dtype == "float32"
    np.testing.assert_array_equal(found, audio)
    assert cache.entry_length(entry) == 5_003
    np.testing.assert_array_equal(
        cache.read_entry(entry, 1_009, 13), audio[1_009:1_022]
    )


def test_cache_entry_does_not_depend_on_the_working_folder(
    store, source, monkeypatch
):
    monkeypatch.chdir(source.parent)
    assert store.entry("source.wav") == store.entry(source)
    assert store.entry("./source.wav") == store.entry(source)


def test_cache_stores_any_floats_as_float32(store, source):
    audio = np.arange(26.0)[::2]
    np.testing.assert_array_equal(
        cache.read_entry(put(store, source, audio)),
        audio.astype("float32"),
    )
    with pytest.raises(TypeError, match="must be floats. Received: int16"):
        store.put(source, audio.astype("int16"))


def test_a_cache_that_cannot_be_made_is_to_be_elsewhere(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="`cache_dir` may be another"):
        cache.AudioCache(tmp_path / "file", 16_000)


def test_change_of_the_source_is_a_miss(store, source):
    stale = put(store, source, noise(7, 1))
    status = os.stat(source)
    write_clip(source, count=509, seed=1)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat(source).st_mtime_ns == status.st_mtime_ns
    assert not store.entry(source).is_file()
    assert stale.is_file()
    entry = put(store, source, noise(11, 2))
    assert entry != stale
    # Another process may be reading the old one.
    assert files_below(store.directory) == sorted([entry, stale])
    np.testing.assert_array_equal(cache.read_entry(stale), noise(7, 1))
    np.testing.assert_array_equal(cache.read_entry(entry), noise(11, 2))


def test_change_of_the_time_alone_is_a_miss(store, source):
    stale = put(store, source, noise(7, 1))
    status = os.stat(source)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    assert not store.entry(source).is_file()
    entry = put(store, source, noise(7, 2))
    assert entry != stale
    np.testing.assert_array_equal(cache.read_entry(stale), noise(7, 1))
    np.testing.assert_array_equal(cache.read_entry(entry), noise(7, 2))


def test_cache_keeps_the_entries_of_other_sources(store, tmp_path):
    entries = []
    for number in range(53):
        path = tmp_path / f"{number}.wav"
        path.write_bytes(b"same size")
        os.utime(path, ns=(0, 0))
        entries.append(put(store, path, noise(7, number)))
    assert files_below(store.directory) == sorted(entries)
    for number, entry in enumerate(entries):
        np.testing.assert_array_equal(cache.read_entry(entry), noise(7, number))


def test_files_of_one_name_in_two_folders_do_not_mix(store, tmp_path):
    for number, folder in enumerate("ab"):
        path = tmp_path / folder / "1.wav"
        path.parent.mkdir()
        path.write_bytes(b"same size")
        os.utime(path, ns=(0, 0))
        store.put(path, noise(7, number))
    for number, folder in enumerate("ab"):
        entry = store.entry(tmp_path / folder / "1.wav")
        np.testing.assert_array_equal(cache.read_entry(entry), noise(7, number))


def test_rates_and_decoders_do_not_mix(tmp_path, source, monkeypatch):
    folder = tmp_path / "cache"
    stores = [
        cache.AudioCache(folder, 16_000),
        cache.AudioCache(folder, 8_000),
        cache.AudioCache(folder, 16_000, "tfio"),
    ]
    monkeypatch.setattr(cache, "RESAMPLER", "another resampler")
    stores.append(cache.AudioCache(folder, 16_000))
    for number, store in enumerate(stores):
        assert not store.entry(source).is_file()
        store.put(source, noise(7, number))
    for number, store in enumerate(stores):
        np.testing.assert_array_equal(
            cache.read_entry(store.entry(source)), noise(7, number)
        )


def test_cache_outlives_the_object(tmp_path, source):
    cache.AudioCache(tmp_path / "cache", 16_000).put(source, noise(7, 1))
    again = cache.AudioCache(tmp_path / "cache", 16_000)
    np.testing.assert_array_equal(
        cache.read_entry(again.entry(source)), noise(7, 1)
    )


def test_cache_of_a_missing_source(store, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.wav"):
        store.entry(tmp_path / "none.wav")
    with pytest.raises(FileNotFoundError, match=r"none\.wav"):
        store.put(tmp_path / "none.wav", noise(7, 1))
    assert not files_below(store.directory)


def fail_to_put(store, source, audio):
    """Writes an entry where no file may grow beyond 4 kB."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limits[1]))
    try:
        with pytest.raises(OSError):
            store.put(source, audio)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_failed_write_leaves_no_entry(store, source):
    audio = noise(5_003, 1)
    fail_to_put(store, source, audio)
    assert not store.entry(source).exists()
    assert not list(store.directory.rglob("*.f32"))
    entry = put(store, source, audio)
    np.testing.assert_array_equal(cache.read_entry(entry), audio)


def test_failed_write_keeps_the_entry_that_was_there(store, source):
    audio = noise(5_003, 1)
    entry = put(store, source, audio)
    fail_to_put(store, source, noise(5_003, 2))
    np.testing.assert_array_equal(cache.read_entry(entry), audio)


def test_failed_write_leaves_no_debris(store, source):
    fail_to_put(store, source, noise(5_003, 1))
    assert not files_below(store.directory)


@pytest.mark.parametrize(
    "variables, expected",
    [
        ({"AUDIO_TF_CACHE": "/x/mine", "XDG_CACHE_HOME": "/y"}, "/x/mine"),
        ({"XDG_CACHE_HOME": "/y"}, "/y/audio_tf"),
        ({"HOME": "/h/someone"}, "/h/someone/.cache/audio_tf"),
        ({"HOME": "/h/me", "AUDIO_TF_CACHE": "~/mine"}, "/h/me/mine"),
        ({"HOME": "/h/me", "XDG_CACHE_HOME": "~/y"}, "/h/me/y/audio_tf"),
    ],
)
def test_default_cache_folder(monkeypatch, variables, expected):
    for name in ("AUDIO_TF_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.default_cache_dir() == expected
