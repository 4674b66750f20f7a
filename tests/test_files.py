"""What is written beside a place comes there whole, or leaves nothing."""

import contextlib
import errno
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from audio_tf import files

# Half a model is written, and the process killed.
KILLED = """
import os, pathlib, signal, sys
from audio_tf import files

with files.scratch(pathlib.Path(sys.argv[1])) as folder:
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_left_goes_with_the_next(tmp_path):
    path = tmp_path / "new" / "model.onnx"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, path], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    (left,) = path.parent.rglob("half")
    with files.scratch(path) as folder:
        assert list(folder.iterdir()) == [] and left.parent == folder
        # Beside another, which is at work.
        with files.scratch(path.with_name("model.tflite")) as other:
            assert folder.is_dir() and other != folder
        path.write_text("whole")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("write", [files.whole_file, files.whole_folder])
def test_a_full_disk_is_told_by_what_was_written(write, tmp_path):
    """Keras and numpy write by handles, whose errors know no path."""
    path, other = tmp_path / "last.keras", tmp_path / "other"
    for number, name, told in (
        (errno.ENOSPC, None, path),
        (errno.EDQUOT, None, path),
        (errno.ENOSPC, str(other), other),
        (errno.EIO, None, None),
    ):
        with pytest.raises(OSError) as caught, write(path):
            raise OSError(number, os.strerror(number), name)
        assert caught.value.filename == (told and str(told))
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_being_written_is_refused(tmp_path):
    path = tmp_path / "model.onnx"
    with files.scratch(path) as folder:
        (folder / "half").write_text("half")
        with pytest.raises(
            BlockingIOError, match="another process is writing model.onnx"
        ):
            with files.scratch(path):
                pytest.fail("two write the same file")
        assert [file.name for file in folder.iterdir()] == ["half"]


def test_a_lock_that_its_holder_removes_is_not_held_twice(
    tmp_path, monkeypatch
):
    """The holder ends between the look at the file and the lock."""
    pytest.importorskip("fcntl")
    take_lock, lock = files.take_lock, tmp_path / ".lock"

    def late(file):
        monkeypatch.setattr(files, "take_lock", take_lock)
        lock.unlink()
        return take_lock(file)

    monkeypatch.setattr(files, "take_lock", late)
    with files.only_one(lock, "at work"):
        with pytest.raises(BlockingIOError, match="another process is at work"):
            with files.only_one(lock, "at work"):
                pass
    assert not lock.exists()


def test_a_system_without_locks_writes_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    with files.scratch(tmp_path / "model.onnx") as folder:
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_folder_made_in_vain_goes(error, tmp_path):
    for path in (tmp_path / "new" / "model.onnx", tmp_path / "model.onnx"):
        with pytest.raises(error):
            with files.scratch(path) as folder:
                (folder / "half").write_text("half")
                raise error
    assert list(tmp_path.iterdir()) == []


def test_a_stream_is_written_and_stays_one(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "stdout"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    # As /dev/stdout is, also where the shell has sent it to a file.
    (tmp_path / "report.json").touch()
    with open(tmp_path / "report.json", "r+") as opened:
        link.symlink_to(f"/proc/self/fd/{opened.fileno()}")
        for path in (pipe, link):
            files.write_text(path, "{}")
    assert os.read(descriptor, 9) == b"{}" and pipe.is_fifo()
    os.close(descriptor)
    assert link.is_symlink()
    assert (tmp_path / "report.json").read_text() == "{}"
    assert len(list(tmp_path.iterdir())) == 3
    # A link to a file of its own, or to nothing, is none.
    for target in ("report.json", "nothing"):
        link.unlink()
        link.symlink_to(target)
        files.write_text(link, "new")
        assert not link.is_symlink() and link.read_text() == "new"


def test_a_folder_takes_the_place_of_a_link_again_and_again(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / "preset").symlink_to("elsewhere")
    for number in range(3):
        with files.whole_folder(tmp_path / "preset") as new:
            (new / str(number)).touch()
    names = sorted(file.name for file in tmp_path.rglob("*"))
    assert names == ["2", "elsewhere", "kept", "preset"]


def test_a_folder_may_be_new_but_not_within_a_file(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "dangling").symlink_to("nothing")
    for name, may in {
        "folder": True,
        "link": True,
        "new/and/below": True,
        "link/new": True,
        "file": False,
        "file/below": False,
        "dangling": False,
        "dangling/below": False,
    }.items():
        expected = contextlib.nullcontext()
        if not may:
            expected = pytest.raises(ValueError, match=f"DIR .*to. R.*{name}")
        with expected:
            files.check_folder("DIR", tmp_path / name)
    # As in `--out=~/runs`, where no shell replaces it.
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("~/new", "~", pathlib.Path("~", "new")):
        with pytest.raises(ValueError, match=f"DIR .*whole path, {tmp_path}"):
            files.check_folder("DIR", name)
    files.check_folder("DIR", "./~/new")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    for name in ("folder", "new"):
        with pytest.raises(ValueError, match=name):
            files.check_folder("DIR", tmp_path / name)
