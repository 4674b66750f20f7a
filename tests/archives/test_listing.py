"""Sources: what a folder, a pattern and a manifest stand for."""

import os
import sys
import unicodedata

import pytest

from audio_tf.archives import listing, lists, places


@pytest.fixture
def sounds(tmp_path):
    """Files of several kinds, two levels deep."""
    for name in ("a.wav", "d/b.ogg", "d/c.txt", "e.tar", "f.zip"):
        path = tmp_path / "sounds" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))
    return tmp_path / "sounds"


def names(sources, folder, **options):
    return [
        each.path.removeprefix(f"{folder}/")
        for each in listing.find([str(each) for each in sources], **options)
    ]


# Whoever gives a folder with archives in it is told that they are left out.
PASSED_OVER = "archives are passed over, unless they.*Received: 2$"


def test_archives_in_a_folder_are_told(sounds, recwarn):
    with pytest.warns(RuntimeWarning, match=PASSED_OVER):
        assert names([sounds], sounds) == ["a.wav", "d/b.ogg"]
    for pattern, found in (
        ("**", ["a.wav", "d/b.ogg"]),
        ("*.*", ["a.wav"]),
        ("**/*.*", ["a.wav", "d/b.ogg"]),
    ):
        with pytest.warns(RuntimeWarning, match=PASSED_OVER):
            assert names([sounds / pattern], sounds) == found
    recwarn.clear()
    assert names([sounds / "*.wav"], sounds) == ["a.wav"]
    assert names([sounds / "d", sounds / "*.tar"], sounds) == [
        "d/b.ogg",
        "e.tar",
    ]
    assert not recwarn.list


def test_what_a_store_has_beside_sounds_is_told(monkeypatch, recwarn):
    there = ["a.wav", "b.m4a", "d/c.M4A", "e.tar"]
    there = [(f"gs://b/v1.2/{name}", 1, "1") for name in there]
    monkeypatch.setattr(places, "match", lambda source: there)
    for source in ("gs://b/v1.2", "gs://b/v1.2/**", "gs://b/v1.2/*.*"):
        assert names([source], "gs://b/v1.2") == ["a.wav"]
        archives, others = (str(each.message) for each in recwarn.list)
        assert archives.endswith("Received: 1") and "archives" in archives
        assert others.startswith(source) and others.endswith("2 .m4a")
        recwarn.clear()


def test_one_file_of_a_store_is_meant_whatever_its_suffix(monkeypatch):
    for name in ("gs://b/clip", "gs://b/clip.m4a"):
        found = [(name, 7, "1")]
        monkeypatch.setattr(places, "match", lambda source: found)
        assert names([name], "gs://b") == [name.rpartition("/")[2]]


@pytest.mark.filterwarnings("ignore:.*archives are passed over")
def test_what_sources_stand_for(sounds):
    assert names([sounds], sounds) == ["a.wav", "d/b.ogg"]
    assert names([sounds / "*.tar"], sounds) == ["a.wav", "e.tar"][1:]
    assert names([sounds / "f.zip"], sounds) == ["f.zip"]
    # Each once, whatever it is found by.
    twice = [sounds / "d/b.ogg", sounds, sounds / "**/*.ogg"]
    assert names(twice, sounds) == ["d/b.ogg", "a.wav"]
    (found,) = listing.find([str(sounds / "a.wav")])
    assert found.size == 5 and found.version is not None


def test_what_is_missing_is_found_out_by_who_reads_it(sounds):
    (found,) = listing.find([str(sounds / "no.wav")])
    assert (found.size, found.version) == (None, None)
    assert found.source == str(sounds / "no.wav")
    with pytest.raises(FileNotFoundError, match="no audio file matches"):
        list(listing.find([str(sounds / "*.mp3")]))
    (sounds / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no audio in this folder"):
        list(listing.find([str(sounds / "empty")]))


def test_a_manifest(sounds):
    path = sounds / "list.csv"
    path.write_text("nr,clip\n1,a.wav\n2,d/b.ogg\n3,e.tar\n4,gs://b/c.wav\n")
    assert names([path], sounds, column="clip") == [
        "a.wav",
        "d/b.ogg",
        "e.tar",
        "gs://b/c.wav",
    ]
    with pytest.raises(ValueError, match="no column 'clips'; did you mean"):
        names([path], sounds, column="clips")
    path.write_bytes("\ufefffile\na.wav\n".encode("utf-16-le"))
    with pytest.raises(ValueError, match="list.csv: must be UTF-8, but begins"):
        names([path], sounds)
    path.write_bytes(b"file,gr\xf6\xdfe\na.wav,1\n")
    with pytest.raises(ValueError, match="row 1: must be UTF-8.*'größe'"):
        names([path], sounds)
    path.write_text("file\na.wav\n \n")
    with pytest.raises(ValueError, match="row 3: no name of a file"):
        names([path], sounds)
    path.write_bytes(b"file\na.wav\n" + bytes(7) + b"\n")
    with pytest.raises(ValueError, match="list.csv, row 3: .* a zero byte"):
        names([path], sounds)
    path.write_text("file\n")
    with pytest.raises(FileNotFoundError, match="no rows"):
        names([path], sounds)


@pytest.mark.parametrize(
    "text, reason",
    [
        # As names of all files below it in one, which is not there.
        ('file\na.wav\n"b.wav\nc.wav\nd.wav\n', "row 3: not CSV .*'\"b.wav'"),
        ("file,nr\na.wav,1\nb,c.wav,2\n", "row 3: too many fields.*commas"),
        ("file,nr\na.wav,1\nb.wav\n", "row 3: too few fields"),
        ("file,nr,file\na.wav,1,b.wav\n", "'file' must be there once"),
        ("files,nr\na.wav,1\n", "'file'; did you mean 'files'; --column nam"),
        ("", "no column 'file'; --column names another. Received: \\[\\]"),
    ],
)
def test_rows_of_a_manifest_that_do_not_fit(tmp_path, text, reason):
    path = tmp_path / "list.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"list.csv.*{reason}"):
        names([path], tmp_path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_manifest_of_another_system(tmp_path, end):
    rows = ["\ufefffile,nr", '"a ""b"", c.wav",1', "", 'd"e%s.wav,2', ""]
    path = tmp_path / "list.csv"
    path.write_bytes(end.join(rows).encode())
    assert names([path], tmp_path) == ['a "b", c.wav', 'd"e%s.wav']


@pytest.mark.parametrize("typed, there", [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_manifest_as_typed_of_files_from_macos(tmp_path, typed, there):
    stem = "\u30ac\u30e9\u30b9 caf\u00e9"
    name, other = (
        unicodedata.normalize(form, f"{stem}.wav") for form in (typed, there)
    )
    (tmp_path / other).write_bytes(b"clip")
    (tmp_path / "list.csv").write_text(f"file\n{name}\nno {name}\n", "utf-8")
    (found, missing) = listing.find([str(tmp_path / "list.csv")])
    assert found.path == str(tmp_path / other) and found.size == 4
    assert missing.path == str(tmp_path / f"no {name}")
    # The very name comes first.
    (tmp_path / name).write_bytes(b"other")
    found, _ = listing.find([str(tmp_path / "list.csv")])
    assert found.path == str(tmp_path / name)


def test_shards_of_few_clips_and_of_many():
    # Each clip is in one, in order, and none is empty.
    for sizes in ([1] * 7, [None] * 9_000, [2**30] * 5, [2**21, 2**22] * 99):
        spans = lists.cut(sizes)
        assert spans[0][0] == 0 and spans[-1][1] == len(sizes)
        assert all(end > begin for begin, end in spans)
        assert [b for b, _ in spans[1:]] == [e for _, e in spans[:-1]]
    assert lists.cut([]) == []
    assert len(lists.cut([1] * 26)) == 2
    assert len(lists.cut([1] * 400)) == 16
    assert len(lists.cut([1] * 100_000)) == 200
    assert len(lists.cut([2**28] * 5)) == 5
    # To read what is before each of a hundred shards takes a hundred times
    # as long.
    assert len(lists.cut([1] * 100_000, packed=True)) == 16


def test_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(ImportError, match=r"pip install 'audio_tf\[beam\]'"):
        places.match("gs://bucket/*.wav")


def test_a_file_is_written_whole_whoever_else_writes_it(tmp_path):
    path = tmp_path / "new" / "a.parquet"
    places.write(str(path), b"1")
    places.write(str(path), b"22")
    assert path.read_bytes() == b"22"
    assert places.names_in(str(path.parent)) == ["a.parquet"]
    assert places.names_in(str(tmp_path / "none")) == []


def test_what_is_written_is_on_the_disk_before_it_has_its_name(
    tmp_path, monkeypatch
):
    """Or a shard that a power cut has emptied would pass for done."""
    path, synced = tmp_path / "a.parquet", []

    def sync(number):
        synced.append((os.fstat(number).st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    places.write(str(path), b"333")
    assert synced == [(3, False)] and path.read_bytes() == b"333"
