"""The same files, whether Apache Beam writes them or we do."""

import pathlib
import shutil
import sys

import pytest
from releases import write_clip, write_fsdd

from audio_tf import builders, cli, pipelines
from audio_tf.builders import shards

pytest.importorskip("tensorflow_datasets", reason="NO BUILDER IS TESTED")


def make(source, data_dir, **kwargs):
    return builders.find("fsdd")(
        source=source,
        data_dir=data_dir,
        partial=True,
        progress=False,
        shard_bytes=400,
        **kwargs,
    )


def contents(folder):
    files = [file for file in pathlib.Path(folder).rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.slow
def test_beam_writes_the_same_files(tmp_path):
    pytest.importorskip("apache_beam", reason="BEAM IS NOT TESTED: no Beam")
    source = write_fsdd(tmp_path / "fsdd")
    ours = make(source, tmp_path / "ours")
    ours.download_and_prepare()
    theirs = make(source, tmp_path / "theirs", beam_options=[])
    theirs.download_and_prepare()
    assert contents(theirs.data_dir) == contents(ours.data_dir)
    assert len(list(pathlib.Path(ours.data_dir).glob("*tfrecord*"))) > 3


def test_a_process_that_builds_again_writes_the_labels_of_now(
    tmp_path, monkeypatch
):
    """Workers of Beam stay, as a notebook does, and so does their folder."""

    def run_here(tasks, options):
        for task in tasks:
            shards.run_task(task)

    monkeypatch.setattr(shards, "write_by_beam", run_here)
    source = write_fsdd(tmp_path / "fsdd")
    for _ in range(2):
        builder = make(source, tmp_path / "to", beam_options=[])
        builder.download_and_prepare()
        assert sum(builder.verify().values()) == len(builder.release.clips())
        shutil.rmtree(builder.data_dir)
        # Of the names of speakers, sorted, it is the first.
        write_clip(source / "recordings" / "7_george_7.wav", 7)


@pytest.mark.parametrize(
    "options, runner, flags",
    [
        ([], None, []),
        (["--direct_num_workers=2"], None, ["--direct_num_workers=2"]),
        (["--a=1", "--runner=X", "--b", "2"], "X", ["--a=1", "--b", "2"]),
        (["--runner", "X"], "X", []),
    ],
)
def test_beam_is_run_as_other_commands_run_it(
    options, runner, flags, monkeypatch
):
    """They tell of a worker that is gone, and wait for as long as it takes."""
    called = []

    def remote_options(*given):
        called.append(given)
        return ["--remote"]

    monkeypatch.setattr(pipelines, "need", called.append)
    monkeypatch.setattr(pipelines, "remote_options", remote_options)
    for name in ("check_options", "run"):
        monkeypatch.setattr(
            pipelines,
            name,
            lambda *given, **named: called.append((*given, *named.values())),
        )
    shards.write_by_beam(["task"], options)
    remote = [] if runner is None else [(runner, flags)]
    flags = flags if runner is None else ["--remote"]
    assert called == [
        ["apache_beam"],
        *remote,
        (flags, runner is None),
        (shards.run_task, ["task"], flags),
    ]


def test_threads_of_this_process_are_none_of_beam(tmp_path, capsys):
    source = write_fsdd(tmp_path / "fsdd")
    with pytest.raises(ValueError, match="`workers` are threads.*workers=3"):
        make(source, tmp_path / "to", beam_options=[], workers=3)
    flags = ["build", "fsdd", "--source", source, "--data-dir", tmp_path / "to"]
    flags = [*map(str, flags), "--partial", "--beam", "", "--workers", "3"]
    assert cli.main(flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--workers means nothing without threads of" in line
    assert not (tmp_path / "to").exists()


def test_without_beam_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    source = write_fsdd(tmp_path / "fsdd")
    builder = make(source, tmp_path / "to", beam_options=[])
    with pytest.raises(ImportError, match=r"pip install 'audio_tf\[beam\]'"):
        builder.download_and_prepare()
