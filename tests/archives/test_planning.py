"""Plans of several runs into one folder; no Beam is needed."""

import io
import os
import tarfile

import pytest

pytest.importorskip("pyarrow", reason="ARCHIVES ARE NOT TESTED")

from audio_tf.archives import extending, listing, lists, planning


@pytest.fixture
def plan(tmp_path):
    """Function that plans sources from a folder, and lists what is planned."""

    def run(folder, *sources):
        extended = planning.Plan(str(tmp_path / "out"))
        here = os.getcwd()
        os.chdir(tmp_path / folder)
        try:
            extending.extend(extended, list(listing.find(sources)))
        finally:
            os.chdir(here)
        clips = [clip.name for clip, _ in extended.known_files().values()]
        return clips + [each.archive for each in extended.parts if each.archive]

    for name in ("one/a.wav", "one/b.tar", "two/a.wav", "two/b.tar"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"clip")
    return run


@pytest.mark.parametrize("name", ["a.wav", "b.tar"])
def test_a_name_is_of_one_file_from_whatever_folder(plan, tmp_path, name):
    assert plan("one", name) == [name]
    before = (tmp_path / "out" / "plan.json").read_bytes()
    first, other = tmp_path / "one" / name, tmp_path / "two" / name
    refused = f"knows {first} by the name {name}, .* Received: {other}"
    with pytest.raises(ValueError, match=refused):
        plan("two", name)
    assert (tmp_path / "out" / "plan.json").read_bytes() == before
    assert plan("two", str(other)) == [name, str(other)]
    assert plan("one", name) == [name, str(other)]


def test_a_file_is_scored_once_however_its_path_is_written(plan):
    for folder, source in (
        ("one", "a.wav"),
        ("one", "./a.wav"),
        ("two", "../one/a.wav"),
        (".", "one/*.wav"),
        ("one", "./b.tar"),
        (".", "two/../one/b.tar"),
    ):
        planned = plan(folder, source)
    assert planned == ["a.wav", "./b.tar"]


def test_what_a_killed_run_has_listed_is_no_archives(
    plan, tmp_path, monkeypatch
):
    """It had not said yet what the list is of."""

    def kill(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(planning.Plan, "save", kill)
        with pytest.raises(KeyboardInterrupt):
            plan("one", "a.wav")
    assert plan("one", "b.tar") == ["b.tar"]
    todo = planning.Plan(str(tmp_path / "out")).todo()
    assert [each.archive for each in todo.unlisted] == ["b.tar"]
    assert todo.shards == []


def test_an_archive_that_is_gone_keeps_the_scores_beside_a_failure(tmp_path):
    """What failed in it cannot be tried again."""
    out, path = str(tmp_path / "out"), tmp_path / "sounds.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("good.wav", "bad.wav"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    other = tmp_path / "other.wav"
    other.write_bytes(b"clip")
    plan = planning.Plan(out)
    extending.extend(plan, listing.find([str(path), str(other)]))
    (part,) = [each for each in plan.parts if each.archive]
    (shard,) = lists.list_archive(out, part).shards
    pairs = [(f"{path}/bad.wav", "no audio")]
    ended = extending.Ended({shard.name: 1}, {shard.name: pairs})

    def try_again():
        plan = planning.Plan(out)
        extending.extend(plan, listing.find([str(other)]), ended, True)
        return plan

    gone = path.rename(tmp_path / "elsewhere")
    assert try_again().listings()[part.name].shards == [shard]
    gone.rename(path)
    assert part.name in try_again().dropped
