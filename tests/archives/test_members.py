"""Members of archives: what is read, and what is refused by name."""

import contextlib
import io
import os
import tarfile
import tempfile
import zipfile

import pytest

from audio_tf.archives import (
    lists,
    members,
    places,
    planning,
    scoring,
    shards,
)

CONTENTS = {
    "d/a.wav": b"a" * 4_001,
    "d/b.ogg": bytes(range(256)) * 40,
    "d/readme.txt": b"no audio",
    "c.FLAC": b"c",
    "__MACOSX/d/._a.wav": b"attributes",
    "d/._a.wav": b"attributes",
}
AUDIO = ["d/a.wav", "d/b.ogg", "c.FLAC"]
SUFFIXES = ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"]


def write(path, contents):
    """Writes an archive of pairs of name and bytes."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents:
                archive.writestr(name, content)
    else:
        packer = path.name.partition(".tar")[2].removeprefix(".")
        with tarfile.open(path, f"w:{packer}") as archive:
            for name, content in contents:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return str(path)


def read(path, found):
    """Reads members, in their order."""
    reader = members.Reader(path)
    contents = {
        each.name: reader.fetch(each.name, each.place, each.size).content
        for each in found
    }
    reader.close()
    return contents


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_audio_in_an_archive(tmp_path, suffix):
    path = write(tmp_path / f"sounds.{suffix}", CONTENTS.items())
    assert members.is_archive(path)
    found, fault, _ = members.list_members(path)
    assert fault is None
    assert [each.name for each in found] == AUDIO
    # A worker may have those from the middle on.
    for chosen in (found, found[1:]):
        assert read(path, chosen) == {
            each.name: CONTENTS[each.name] for each in chosen
        }


@pytest.mark.parametrize(
    "raw, name",
    [
        ("é.wav".encode(), "é.wav"),
        ("e\u0301.wav".encode(), "e\u0301.wav"),
        ("é.wav".encode("cp437"), "é.wav"),
    ],
)
def test_a_name_in_a_zip_without_the_flag_of_utf_8(tmp_path, raw, name):
    """As macOS packs it, and as DOS did."""
    held = "x" * len(raw)
    path = write(tmp_path / "a.zip", [(held, b"1"), ("b.wav", b"2")])
    content = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(content.replace(held.encode(), raw))
    found, fault, _ = members.list_members(path)
    assert ([each.name for each in found], fault) == ([name, "b.wav"], None)
    assert read(path, found) == {name: b"1", "b.wav": b"2"}
    with pytest.raises(ValueError, match="no longer in the archive"):
        members.Reader(path).fetch("none.wav", 0, 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "name", ["../a.wav", "d/../../a.wav", "/etc/a.wav", "..\\a.wav"]
)
def test_a_name_that_leads_out_of_the_archive(tmp_path, suffix, name):
    contents = [(name, b"evil"), ("good.wav", b"good")]
    path = write(tmp_path / f"a.{suffix}", contents)
    (bad, good), fault, _ = members.list_members(path)
    assert bad.name.replace("\\", "/") == name.replace("\\", "/")
    assert "leads out" in bad.fault
    assert (good.name, good.fault, fault) == ("good.wav", None, None)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("suffix", ["tar", "zip"])
def test_a_name_that_occurs_twice_is_nobodys(tmp_path, suffix):
    contents = [("a.wav", b"1"), ("b.wav", b"2"), ("a.wav", b"3")]
    path = write(tmp_path / f"a.{suffix}", contents)
    found, _, _ = members.list_members(path)
    assert [(each.name, each.fault is None) for each in found] == [
        ("a.wav", False),
        ("b.wav", True),
    ]


def test_a_link_is_no_file(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        entry = tarfile.TarInfo("a.wav")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    ((member,), fault, _) = members.list_members(str(path))
    assert "a link or a device" in member.fault and fault is None


@pytest.mark.parametrize("suffix", SUFFIXES)
# Within a header, at its end, within a content, and nearly at the end.
@pytest.mark.parametrize("size", [0, 100, 512, 1_700, 0.5, 0.7])
def test_an_archive_that_is_cut_off(tmp_path, rng, suffix, size):
    contents = [(f"{n}.wav", rng.bytes(3_000 + n)) for n in range(9)]
    path = tmp_path / f"a.{suffix}"
    content = open(write(path, contents), "rb").read()
    size = round(size * len(content)) if isinstance(size, float) else size
    path.write_bytes(content[:size])
    found, fault, _ = members.list_members(str(path))
    assert "cut off or damaged" in fault
    # The last of them may be cut off, too.
    for each in found[:-1]:
        assert read(str(path), [each])[each.name] == dict(contents)[each.name]
    for each in found[-1:]:
        with contextlib.suppress(ValueError):
            assert read(str(path), [each]) == {
                each.name: dict(contents)[each.name]
            }


def test_a_tar_that_is_cut_off_between_two_members(tmp_path):
    path = tmp_path / "a.tar"
    write(path, [(f"{n}.wav", bytes([n]) * 1_024) for n in range(1, 4)])
    path.write_bytes(path.read_bytes()[: 2 * 1_536])
    found, fault, _ = members.list_members(str(path))
    assert [each.name for each in found] == ["1.wav", "2.wav"]
    assert fault == "cut off or damaged (it has no end), after 2.wav"


def test_an_archive_that_is_not_there_is_not_damaged(tmp_path):
    for name in ("none.tar", "none.zip", "none.tar.gz"):
        assert members.list_members(str(tmp_path / name)) == (
            [],
            "no such file",
            {},
        )


def test_an_archive_without_audio_says_so(tmp_path):
    path = write(tmp_path / "a.zip", [("readme.txt", b"hello")])
    fault = "no audio among its 1 members"
    assert members.list_members(path) == ([], fault, {})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_passed_over_in_an_archive_is_told(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    names = ["a.wav", "b.m4a", "d/c.M4A", "d/e.opus", "in.zip", "f.tar.gz"]
    names += ["notes.txt", "__MACOSX/._b.m4a", "d/._c.m4a", "../g.m4a"]
    contents = [(name, b"some") for name in names]
    path = write(tmp_path / f"sounds.{suffix}", contents)
    others = {".m4a": 2, ".opus": 1, ".tar.gz": 1, ".zip": 1}
    assert members.list_members(path).others == others
    out = str(tmp_path / "scores")
    plan = planning.Plan(out)
    lists.list_archive(out, plan.add(path))
    told = "2 .m4a, 1 .opus, 1 .tar.gz, 1 .zip"
    with pytest.warns(RuntimeWarning, match=f"sounds.{suffix}: .*{told}$"):
        scoring.finish(plan, {}, [])


def test_a_zip_that_is_damaged_within(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.wav", b"sound" * 100)
    path.write_bytes(path.read_bytes().replace(b"soundsound", b"noisenoise"))
    found, fault, _ = members.list_members(str(path))
    assert fault is None
    with pytest.raises(ValueError, match="damaged in its archive .*CRC"):
        read(str(path), found)


def test_a_member_larger_than_memory_should_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(members.places, "IN_MEMORY", 1_000)
    path = write(tmp_path / "a.tar.gz", CONTENTS.items())
    found, _, _ = members.list_members(path)
    reader = members.Reader(path)
    fetched = reader.fetch(found[0].name, found[0].place, found[0].size)
    assert fetched.content is None
    assert open(fetched.path, "rb").read() == CONTENTS["d/a.wav"]
    fetched.close()
    assert not members.places.pathlib.Path(fetched.path).exists()
    reader.close()


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "zip"])
def test_a_large_member_that_is_damaged_leaves_no_temporary_file(
    suffix, tmp_path, rng, monkeypatch
):
    """Each would be of gigabytes, and an archive has many."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(members.places, "IN_MEMORY", 1_000)
    path = tmp_path / f"a.{suffix}"
    write(path, [("a.wav", rng.bytes(100_000))])
    (found,), _, _ = members.list_members(str(path))
    content = bytearray(path.read_bytes())
    if suffix == "zip":
        # The checksum alone tells, behind the last byte.
        content[50_000] ^= 255
    path.write_bytes(content[: len(content) if suffix == "zip" else 60_000])
    reader = members.Reader(str(path))
    with pytest.raises(ValueError, match="cut off or damaged"):
        reader.fetch(found.name, found.place, found.size)
    reader.close()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_slow_to_open_stays_open_for_the_next_shard(tmp_path, suffix):
    path = write(tmp_path / f"sounds.{suffix}", CONTENTS.items())
    found, _, _ = members.list_members(path)
    first = members.take(path)
    assert members.take(path) is not first, "one that is in use"
    first.fetch(found[0].name, found[0].place, found[0].size)
    members.leave(first)
    then = members.take(path)
    assert (then is first) == (suffix != "tar")
    # The members before are there, too.
    for each in (found[2], found[0]):
        fetched = then.fetch(each.name, each.place, each.size)
        assert fetched.content == CONTENTS[each.name]
    members.leave(then)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_members_of_a_changed_archive_are_not_taken_for_others(
    tmp_path, suffix
):
    """Its list may be of a run that was stopped, and sizes be the same."""
    pytest.importorskip("pyarrow")
    contents = [("a.wav", b"a" * 999), ("b.wav", b"b" * 999)]
    path = write(tmp_path / f"sounds.{suffix}", contents)
    out = str(tmp_path / "scores")
    plan = planning.Plan(out)
    part = plan.add(path, places.version_of(path)[1])
    lists.list_archive(out, part)
    clips = lists.read_clips(out, f"{part.name}-00000")
    for clip, fetched, reason in shards.fetch(clips):
        assert fetched.content == dict(contents)[clip.member]
        assert reason is None
    write(tmp_path / f"sounds.{suffix}", contents[::-1])
    os.utime(path, (0, 0))
    for _, fetched, reason in shards.fetch(clips):
        assert fetched is None and "its archive has changed" in reason


def test_an_archive_that_has_changed_is_opened_anew(tmp_path):
    path = write(tmp_path / "sounds.tar.gz", CONTENTS.items())
    before = members.take(path)
    members.leave(before)
    changed = {"d/a.wav": b"other" * 5_000}
    write(tmp_path / "sounds.tar.gz", changed.items())
    (found,), _, _ = members.list_members(path)
    after = members.take(path)
    assert after is not before
    assert (
        after.fetch(found.name, found.place, found.size).content
        == (changed["d/a.wav"])
    )
    after.close()
