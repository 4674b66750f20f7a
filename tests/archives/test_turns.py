"""Workers of one machine take shards in turn; no Beam is needed."""

import errno
import fcntl
import os
import pathlib
import types

import pytest

pytest.importorskip("pyarrow", reason="ARCHIVES ARE NOT TESTED")

from audio_tf.archives import lists, scoring, turns
from audio_tf.archives.lists import Listing, Part, Shard
from audio_tf.archives.planning import Todo


def shards(part, *sizes):
    return [
        Shard(f"{part}-{number:05d}", 1, size)
        for number, size in enumerate(sizes)
    ]


@pytest.fixture
def counted():
    return []


@pytest.fixture
def workers(tmp_path, counted):
    """Function of what is to be done to what two workers take."""
    (tmp_path / "claims").mkdir()
    (tmp_path / "out" / "plan").mkdir(parents=True)

    def begin(todo):
        left = turns.Turns(
            str(tmp_path / "out"), str(tmp_path / "claims"), todo
        )
        return left.take(counted.append), left.take(counted.append)

    return begin


def test_who_is_faster_takes_more(workers):
    fast, slow = workers(Todo(shards("0000", 8, 64, 8, 8), [], set()))
    assert next(slow) == "0000-00001"  # The largest.
    assert [*fast] == ["0000-00000", "0000-00002", "0000-00003"]
    assert [*slow] == []


def test_who_looks_at_the_same_moment_takes_another(workers, monkeypatch):
    one, other = workers(Todo(shards("0000", 1, 1, 1), [], set()))
    blind = types.SimpleNamespace(listdir=lambda folder: [], path=os.path)
    monkeypatch.setattr(turns, "os", blind)
    assert [next(one), next(other)] == ["0000-00000", "0000-00001"]
    assert [*one] == ["0000-00002"]
    assert [*other] == []


def test_a_packed_archive_is_read_in_order_by_one(workers):
    todo = Todo(
        shards("0000", 8, 8) + shards("0001", 4, 99, 4)[::-1], [], {"0001"}
    )
    first, second = workers(todo)
    assert [next(first), next(first)] == ["0001-00000", "0001-00001"]
    # Another takes of it what would wait otherwise.
    assert [*second] == ["0000-00000", "0000-00001", "0001-00002"]
    assert [*first] == []


@pytest.fixture
def listing(monkeypatch, tmp_path):
    """Makes a list of two shards of any archive; `begun` has the names."""
    begun = []

    def list_archive(out, part):
        begun.append(part.name)
        if part.name == "0009":
            raise RuntimeError("killed")
        (tmp_path / "out" / "plan" / f"{part.name}.parquet").touch()
        return read_list(out, part.name)

    def read_list(out, part):
        return Listing(shards(part, 1, 1), [], {})

    monkeypatch.setattr(lists, "list_archive", list_archive)
    monkeypatch.setattr(lists, "read_list", read_list)
    return begun


def test_a_folder_without_locks_is_scored_into(
    workers, listing, counted, tmp_path, monkeypatch
):
    """As one that is mounted over a network may be."""

    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with scoring.locked(str(tmp_path / "scores")):
        assert (tmp_path / "scores").is_dir()
    one, other = workers(Todo([], [Part("0000", "a.tar")], set()))
    assert [next(one), next(other)] == ["0000-00000", "0000-00001"]
    assert [*one, *other] == [] and counted == ["archives"]


def test_an_archive_is_listed_once(workers, listing, counted):
    parts = [Part("0000", "a.zip"), Part("0001", "b.zip")]
    one, other = workers(Todo([], parts, set()))
    assert next(one) == "0000-00000"
    assert [*other] == ["0000-00001", "0001-00000", "0001-00001"]
    assert [*one] == []
    assert listing == ["0000", "0001"] and counted == ["archives"] * 2


def test_what_another_lists_is_waited_for(workers, listing, monkeypatch):
    """Meanwhile the shards that are known are scored."""
    part = Part("0001", "b.zip")
    one, other = workers(Todo(shards("0000", 1), [part], set()))
    looks, waits = [], []
    flock = fcntl.flock

    def locked(file, how):
        """Of the first three looks, all find the lock taken."""
        looks.append(how)
        if len(looks) <= 3:
            raise BlockingIOError
        return flock(file, how)

    monkeypatch.setattr(fcntl, "flock", locked)
    monkeypatch.setattr(turns.time, "sleep", waits.append)
    assert next(one) == "0000-00000" and not listing
    assert next(one) == "0001-00000"
    assert len(waits) == 2


def test_a_worker_that_ends_leaves_its_archive_to_others(workers, listing):
    """Its lock ends with it, and nobody waits for ever."""
    one, other = workers(Todo([], [Part("0009", "c.zip")], set()))
    with pytest.raises(RuntimeError, match="killed"):
        next(one)
    with pytest.raises(RuntimeError, match="killed"):
        next(other)
    assert listing == ["0009", "0009"]


def test_a_worker_of_a_killed_run_takes_nothing_more(tmp_path):
    out, todo = str(tmp_path), Todo(shards("0000", 1, 1, 1), [], set())
    killed = turns.claims_in(out)
    orphan = turns.Turns(out, killed.name, todo).take(None)
    assert next(orphan) == "0000-00000"
    with turns.claims_in(out) as claims:
        assert [*tmp_path.iterdir()] == [pathlib.Path(claims)]
        assert len([*turns.Turns(out, claims, todo).take(None)]) == 3
        with pytest.raises(FileNotFoundError):
            next(orphan)
    assert not [*tmp_path.iterdir()]
