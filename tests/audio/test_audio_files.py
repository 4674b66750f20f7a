"""Which files a user means by names, folders and patterns."""

import os
import pathlib

import numpy as np
import pytest
from corpus_files import packed
from zip_parts import write_parts

from audio_tf import corpora
from audio_tf.archives import listing
from audio_tf.audio import decode

FILES = [
    "a.wav",
    "b.FLAC",
    "notes.txt",
    "deep/c.ogg",
    "deep/take[1].wav",
    "deep/take1.wav",
    "deep/er/d.raw",
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
        (["**/*.raw"], ["deep/er/d.raw"]),
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


# As a file in a folder that one may not enter, which root is let into.
def test_a_name_that_nothing_can_have_leaves_the_others_alone(sounds):
    name = "a" * 300 + ".wav"
    assert corpora.list_files([name, "a.wav"]) == [name, "a.wav"]
    with pytest.raises(decode.AudioError, match="too long"):
        decode.read_audio(name)


@pytest.mark.parametrize("pattern", ["*.mp3", "none/*", "no[12].wav"])
def test_a_pattern_that_matches_nothing_is_named(pattern, sounds):
    with pytest.raises(FileNotFoundError) as raised:
        corpora.list_files(["a.wav", pattern])
    assert str(raised.value) == f"{pattern}: no audio file matches"


@pytest.mark.parametrize("pattern", ["*", "*.*", "deep/**", "**"])
def test_audio_that_a_pattern_passes_over_is_told_once(
    pattern, sounds, recwarn
):
    for name in ("h.m4a", "deep/e.m4a", "deep/f.M4A", "deep/er/g.wma"):
        pathlib.Path(name).touch()
    corpora.list_files([pattern])
    (warning,) = recwarn.list
    told = {"*": "3 .m4a, 1 .wma", "*.*": "1 .m4a", "**": "3 .m4a, 1 .wma"}
    told = told.get(pattern, "2 .m4a, 1 .wma")
    assert str(warning.message).startswith(f"{pattern}: files of other")
    assert str(warning.message).endswith(f"Received: {told}")
    recwarn.clear()
    assert corpora.list_files(["deep/*.m4a"])  # What it asks for is taken.
    assert not recwarn.list


@pytest.mark.parametrize("size", [700, 10**6])
def test_an_archive_is_a_folder_by_its_name(tmp_path, monkeypatch, size):
    monkeypatch.chdir(tmp_path)
    names = ["clips/a.wav", "clips/d/b.ogg", "clips/notes.txt"]
    write_parts(tmp_path, "clips", size, {name: noise() for name in names})
    expected = [pathlib.Path(name) for name in names[:2]]
    assert corpora.list_files(["clips"]) == expected
    assert corpora.list_files(["clips/d"]) == expected[1:]
    found = list(listing.find(["clips", "clips/a.wav"]))
    assert [each.path for each in found] == names[:2]
    assert all(each.version for each in found)
    # Of a damaged one whoever reads it says why.
    pathlib.Path("clips.zip").write_bytes(b"PK")
    assert corpora.list_files(["clips"]) == ["clips"]


def test_a_class_that_is_packed_is_told(tmp_path, recwarn):
    for name in ("dog/a.wav", "rain.zip", "dog.tar.gz", "in/cat.TGZ"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
    # That of the dog is unpacked.
    for read in (
        corpora.audio_below,
        lambda folder: corpora.list_files([folder]),
        lambda folder: corpora.list_files([folder / "**"]),
    ):
        assert read(tmp_path) == [tmp_path / "dog/a.wav"]
        (warning,) = recwarn.list
        assert str(warning.message).startswith(f"{tmp_path}")
        assert "archives are passed over. Received: 2" in str(warning.message)
        recwarn.clear()
    assert corpora.list_files([tmp_path / "*.zip"]) == [tmp_path / "rain.zip"]
    assert not recwarn.list


def test_a_pattern_of_archives_alone_says_so(tmp_path):
    for name in ("dog.zip", "rain.zip"):
        (tmp_path / name).touch()
    for given, none in (("*", "no audio file matches"), ("", "no audio in")):
        with pytest.warns(RuntimeWarning, match="passed over. Received: 2"):
            with pytest.raises(FileNotFoundError, match=none):
                corpora.list_files([tmp_path / given])


def noise():
    return np.random.default_rng(0).bytes(400)


def found_below(folder):
    return [
        file.relative_to(folder).as_posix()
        for file in corpora.audio_below(folder)
    ]


def test_links_to_folders_are_followed_but_not_in_a_ring(tmp_path):
    for name in ("disk/dog/a.wav", "disk/dog/deep/b.wav", "sounds/rain/c.wav"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    sounds = tmp_path / "sounds"
    (sounds / "dog").symlink_to(tmp_path / "disk/dog")
    (sounds / "rain/up").symlink_to(sounds)
    (sounds / "rain/here").symlink_to(".")
    (sounds / "rain/gone.wav").symlink_to("nothing.wav")
    assert found_below(sounds) == [
        "dog/a.wav",
        "dog/deep/b.wav",
        "rain/c.wav",
        "rain/gone.wav",
    ]
    (sounds / "rain/gone.wav").unlink()
    found = corpora.read_folders(sounds)["train"]
    assert found.vocabulary == ["dog", "rain"]
    assert len(found) == 3


def test_what_macos_adds_to_an_archive_is_no_class(tmp_path):
    names = ["__MACOSX/dog/._a.wav", "__MACOSX/dog/a.wav"]
    for name in ("dog/a.wav", "rain/b.wav", *names):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = corpora.read_folders(tmp_path)["train"]
    assert found.vocabulary == ["dog", "rain"] and len(found) == 2


@pytest.mark.parametrize(
    "folder",
    ["$RECYCLE.BIN/S-1-5-21", ".Trash-1000/files", ".Trashes/501", "#recycle"],
)
def test_what_was_deleted_on_a_disk_is_no_class(folder, tmp_path):
    for name in ("dog/a.wav", "rain/b.wav", f"{folder}/c.wav"):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.touch()
    found = corpora.read_folders(tmp_path)["train"]
    assert found.vocabulary == ["dog", "rain"] and len(found) == 2
    # Who asks for it gets it.
    assert found_below(tmp_path / folder) == ["c.wav"]


def test_what_macos_puts_beside_a_file_is_no_clip(tmp_path):
    for name in ("wav/03a01Fa.wav", "wav/._03a01Fa.wav"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert found_below(tmp_path) == ["wav/03a01Fa.wav"]
    found = corpora.read_emodb(tmp_path)["train"]
    assert found.labels == [["happiness"]]


def test_what_systems_add_is_no_clip_of_an_archive_either(tmp_path):
    names = ["._a.wav", "__MACOSX/a.wav", "deep/._b.wav", "$RECYCLE.BIN/c.wav"]
    for name in ("a.wav", "deep/b.wav", *names):
        file = tmp_path / "sounds" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = found_below(tmp_path / "sounds")
    assert found == ["a.wav", "deep/b.wav"]
    packed(tmp_path / "sounds")
    assert found_below(tmp_path / "sounds") == found
    # Who asks for it gets it.
    assert found_below(tmp_path / "sounds" / "__MACOSX") == ["a.wav"]


def test_a_class_on_a_disk_that_is_not_there_is_told(tmp_path):
    (tmp_path / "rain").mkdir()
    (tmp_path / "rain/a.wav").touch()
    (tmp_path / "rain/b.wav").symlink_to(tmp_path / "disk/b.wav")
    (tmp_path / "dog").symlink_to(tmp_path / "disk/dog")
    with pytest.warns(RuntimeWarning, match="dog: this link leads nowhere"):
        assert found_below(tmp_path) == ["rain/a.wav", "rain/b.wav"]
    (tmp_path / "dog").unlink()
    (tmp_path / "dog").symlink_to("dog")
    with pytest.warns(RuntimeWarning, match="dog: this link leads nowhere"):
        assert len(found_below(tmp_path)) == 2


def test_what_could_be_waited_for_is_left_out(tmp_path):
    (tmp_path / "rain").mkdir()
    (tmp_path / "rain/a.wav").touch()
    os.mkfifo(tmp_path / "rain/b.wav")
    with pytest.warns(RuntimeWarning, match="b.wav: this is no regular file"):
        assert found_below(tmp_path) == ["rain/a.wav"]


def test_a_folder_that_may_not_be_read_is_told(sounds, tmp_path, monkeypatch):
    scan = os.scandir

    def refuse(folder):
        if pathlib.Path(folder).name == "deep":
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.warns(RuntimeWarning, match="deep: .* may not be read, and is"):
        assert found_below(tmp_path) == ["a.wav", "b.FLAC"]


def test_audio_of_other_suffixes_is_told(sounds, tmp_path):
    suffixes = ("m4a", "M4A", "opus", "webm", "wave", "txt")
    for number, suffix in enumerate(suffixes):
        file = tmp_path / "x" / f"{number}.{suffix}"
        file.parent.mkdir(exist_ok=True)
        file.touch()
    with pytest.warns(
        RuntimeWarning, match="over.*: 2 .m4a, 1 .opus, 1 .wave, 1 .webm$"
    ):
        assert len(found_below(tmp_path)) == 5
