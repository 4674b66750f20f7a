"""Which files a user means by names, folders and patterns."""

import os
import pathlib

import pytest

from audio_tf import corpora

FILES = [
    "a.wav",
    "b.FLAC",
    "notes.txt",
    "deep/c.ogg",
    "deep/take[1].wav",
    "deep/take1.wav",
    "deep/er/d.opus",
    "none/notes.txt",
]


@pytest.fixture
def sounds(tmp_path, monkeypatch):
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "given, meant",
    [
        (["*"], ["a.wav", "b.FLAC", *sorted(FILES[3:6])]),
        (["*.wav", "a.wav"], ["a.wav", "a.wav"]),
        (["[ab].*"], ["a.wav", "b.FLAC"]),
        (["**/*.wav"], ["a.wav", "deep/take1.wav", "deep/take[1].wav"]),
        (["deep/**"], sorted(FILES[3:6])),
        # A suffix of its own is taken, and others are not.
        (["**/*.opus"], ["deep/er/d.opus"]),
        (["**/*.???"], ["a.wav", *sorted(FILES[3:6])]),
        # A name as it stands is nearer than a pattern.
        (["deep/take[1].wav"], ["deep/take[1].wav"]),
        (["deep/take[12].wav"], ["deep/take1.wav"]),
        (["b.FLAC", "deep", "a.wav"], ["b.FLAC", *sorted(FILES[3:6]), "a.wav"]),
        # What is not there is found out by whoever reads it.
        (["notes.txt", "no.wav", "-"], ["notes.txt", "no.wav", "-"]),
    ],
)
def test_names_folders_and_patterns(given, meant, sounds):
    for paths in (given, [pathlib.Path(path) for path in given]):
        found = corpora.list_files(paths)
        assert [os.fspath(file) for file in found] == meant


@pytest.mark.parametrize("pattern", ["*.mp3", "none/*", "no[12].wav"])
def test_a_pattern_that_matches_nothing_is_named(pattern, sounds):
    with pytest.raises(FileNotFoundError) as raised:
        corpora.list_files(["a.wav", pattern])
    assert str(raised.value) == f"{pattern}: no audio file matches"
