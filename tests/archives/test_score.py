"""Whole runs of `score`, against the classifier itself; Beam is needed."""

import csv
import io
import json
import os
import tarfile

import numpy as np
import pytest
import soundfile
import tiny

pytest.importorskip("apache_beam", reason="Beam: make test-beam")
pytest.importorskip("pyarrow")

import pyarrow.parquet
from apache_beam.io.filesystem import (
    BeamIOError,
    FileMetadata,
    FileSystem,
)

from audio_tf import attention, cli, configs
from audio_tf.archives import (
    lists,
    pipeline,
    planning,
    scoring,
    tables,
)
from audio_tf.models import AudioClassifier

# No part of it is of a backend.
pytestmark = pytest.mark.one_backend

LABELS = ["a", "b", "c", "d", "e", "f", "g"]
SIZES = [1_511, 7, 2_213, 331, 1_100, 550, 9_999]
WINDOW_S = 2.5


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """A tiny preset of seven labels, and one that has no names of them."""
    folder = tmp_path_factory.mktemp("models")
    for name, labels in (("preset", LABELS), ("nameless", None)):
        model = AudioClassifier(
            tiny.backbone(), num_classes=7, labels=labels, chunk_s=0.5
        )
        model.save_to_preset(folder / name)
    return folder


@pytest.fixture(scope="module")
def classifier(preset):
    return tiny.eager(AudioClassifier.from_preset(str(preset / "preset")))


@pytest.fixture(autouse=True)
def one_model(classifier, monkeypatch):
    """The worker has the model that is there, but for the nameless one."""
    load = pipeline.load_classifier

    def loaded(name):
        return load(name) if "nameless" in name else classifier

    monkeypatch.setattr(pipeline, "load_classifier", loaded)


@pytest.fixture
def sounds(tmp_path, rng):
    """Clips, a long one, an archive of the same, and one that is broken."""
    folder = tmp_path / "sounds"
    folder.mkdir()
    with tarfile.open(tmp_path / "sounds.tar.gz", "w:gz") as archive:
        for number, size in enumerate(SIZES):
            file = folder / f"{number}.wav"
            noise = rng.uniform(-0.5, 0.5, size)
            soundfile.write(file, noise, tiny.RATE_HZ, "FLOAT")
            archive.add(file, f"in/{number}.wav")
        evil = tarfile.TarInfo("../evil.wav")
        archive.addfile(evil, io.BytesIO())
    (folder / "bad.wav").write_text("no audio")
    return folder


def score(sources, preset, out, **options):
    given = [str(each) for each in sources]
    options = {"window_s": WINDOW_S, "workers": 1, **options}
    return scoring.score(given, str(preset / "preset"), str(out), **options)


def rows(out):
    """Rows of all files, by name and start, each once."""
    found = {}
    for file in sorted((out / "scores").glob("*.parquet")):
        for row in pyarrow.parquet.read_table(file).to_pylist():
            key = row["file"], row["start_s"]
            assert key not in found
            found[key] = row
    return found


def failed(out):
    with open(out / "failed.csv", newline="") as file:
        return {row["file"]: row["reason"] for row in csv.DictReader(file)}


def test_scores_are_those_of_classify(
    sounds, preset, classifier, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    sources = ["sounds", "sounds.tar.gz"]
    result = score(sources, preset, out, top=None, embeddings=True)
    found = rows(out)
    expected = {}
    for number in range(len(SIZES)):
        audio, _ = soundfile.read(sounds / f"{number}.wav", dtype="float32")
        size = round(WINDOW_S * tiny.RATE_HZ)
        starts = [*range(0, max(1, len(audio) - size + 1), size)]
        if starts[-1] + size < len(audio):
            starts.append(len(audio) - size)
        for start in starts:
            clip = (audio[start : start + size], tiny.RATE_HZ)
            scores = classifier.classify(clip, top=None)["scores"]
            vector = classifier.embed(clip)["embedding"]
            for folder in ("sounds", "sounds.tar.gz/in"):
                key = f"{folder}/{number}.wav", start / tiny.RATE_HZ
                expected[key] = [scores[label] for label in LABELS], vector
    assert found.keys() == expected.keys()
    for key, (scores, vector) in expected.items():
        np.testing.assert_allclose(found[key]["scores"], scores, atol=1e-6)
        np.testing.assert_allclose(found[key]["embedding"], vector, atol=1e-6)
        assert found[key]["end_s"] - key[1] <= WINDOW_S
    assert failed(out).keys() == {
        "sounds/bad.wav",
        "sounds.tar.gz/../evil.wav",
    }
    assert result.rows == len(expected)
    assert result.counters["rows"] == len(expected)
    assert result.counters["clips_failed"] == 1


def test_a_run_does_what_is_missing(sounds, preset, tmp_path):
    out = tmp_path / "out"
    sources = [sounds, f"{sounds}.tar.gz"]
    score(sources, preset, out)
    before = rows(out)
    files = sorted((out / "scores").iterdir())
    ages = [file.stat().st_mtime_ns for file in files]
    assert len(files) == 2
    # Nothing is missing.
    assert score(sources, preset, out).counters == {}
    assert ages == [file.stat().st_mtime_ns for file in files]
    # As if it had been killed before the first was written.
    files[0].unlink()
    (out / "scores" / ".0000-00000.parquet.0123").write_bytes(b"half")
    (out / "failed.csv").unlink()
    assert score(sources, preset, out).counters["shards"] == 1
    assert rows(out) == before
    assert len(failed(out)) == 2
    assert sorted((out / "scores").iterdir()) == files
    assert files[1].stat().st_mtime_ns == ages[1]
    # As if it had been killed before any machine had listed the archive.
    (out / "plan" / "0001.parquet").unlink()
    files[1].unlink()
    assert score(sources, preset, out).counters["archives"] == 1
    assert rows(out) == before
    # What is new comes beside what is there.
    sounds.joinpath("new.wav").write_bytes((sounds / "0.wav").read_bytes())
    assert score(sources, preset, out).counters["rows"] == 1
    assert rows(out).keys() - before.keys() == {(f"{sounds}/new.wav", 0.0)}


def test_what_has_changed_or_failed_is_scored_anew(sounds, preset, tmp_path):
    out = tmp_path / "out"
    score([sounds], preset, out)
    before = rows(out)
    # A clip that was mended, and one that is longer now.
    bad, long = sounds / "bad.wav", sounds / "0.wav"
    bad.write_bytes((sounds / "1.wav").read_bytes())
    long.write_bytes((sounds / "6.wav").read_bytes())
    score([sounds], preset, out)
    after = rows(out)
    assert failed(out) == {}
    assert (str(bad), 0.0) in after
    assert sum(name == str(long) for name, _ in after) == 4
    for key in before:
        if key[0] != str(long):
            # Other clips were in its batch.
            np.testing.assert_allclose(
                after[key]["scores"], before[key]["scores"], atol=1e-6
            )
    # From another source, all that failed; what is elsewhere stays.
    bad.write_text("no audio")
    score([sounds], preset, out)
    other = tmp_path / "other.wav"
    other.write_text("no audio")
    assert score([other], preset, out).rows == len(after) - 1
    result = score([other], preset, out, retry_failed=True)
    assert result.counters["clips_failed"] == 2
    assert failed(out).keys() == {str(bad), str(other)}
    assert rows(out).keys() == after.keys() - {(str(bad), 0.0)}
    assert score([other], preset, out).counters == {}


def test_what_is_no_longer_there_keeps_its_scores(sounds, preset, tmp_path):
    """Whatever else is scored anew."""
    out, archive = tmp_path / "out", tmp_path / "sounds.tar.gz"
    score([sounds, archive], preset, out)
    before = rows(out)
    gone = [sounds / "2.wav", sounds / "6.wav"]
    for file in [*gone, archive]:
        file.unlink()
    # Its neighbour in the shard has changed.
    changed, bad = str(sounds / "0.wav"), str(sounds / "bad.wav")
    (sounds / "0.wav").write_bytes((sounds / "1.wav").read_bytes())
    kept = {key: row for key, row in before.items() if key[0] != changed}
    evil = f"{archive}/../evil.wav"
    for sources, options in (
        ([sounds], {}),
        ([sounds], {"retry_failed": True}),
        # They may be named, and what failed be tried from elsewhere.
        ([*gone, archive], {"retry_failed": True}),
    ):
        score(sources, preset, out, **options)
        found = rows(out)
        assert found.keys() == before.keys()
        for key, row in kept.items():
            np.testing.assert_allclose(
                found[key]["scores"], row["scores"], atol=1e-6
            )
        assert failed(out).keys() == {bad, evil}
    # Here again, and other.
    gone[0].write_bytes((sounds / "1.wav").read_bytes())
    score([sounds], preset, out)
    again = str(gone[0]), 0.0
    assert rows(out).keys() == before.keys()
    assert rows(out)[again]["end_s"] < before[again]["end_s"]


def test_scores_that_stay_outlive_a_kill(sounds, preset, tmp_path, monkeypatch):
    """And a process that outlived its run and scored their shard again."""
    out = tmp_path / "out"
    score([sounds], preset, out)
    (old,) = (out / "scores").iterdir()
    content, gone = old.read_bytes(), sounds / "2.wav"
    before = {key: row for key, row in rows(out).items() if key[0] == str(gone)}
    gone.unlink()
    os.utime(sounds / "0.wav", (7, 7))

    def killed(*arguments):
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(planning.tables, "write", killed)
        with pytest.raises(OSError, match="killed"):
            score([sounds], preset, out)
    assert old.read_bytes() == content
    plan = planning.Plan(str(out))
    plan.clear()
    assert rows(out) == before
    old.write_bytes(b"whatever")
    plan.clear()
    assert rows(out) == before


def test_a_file_of_another_size_has_changed(sounds, preset, tmp_path):
    """Although it has the time of the file before."""
    out, archive = tmp_path / "out", tmp_path / "sounds.tar"
    clip = sounds / "0.wav"
    for number in ("0", "1"):
        clip.write_bytes((sounds / f"{number}.wav").read_bytes())
        with tarfile.open(archive, "w") as file:
            for name in range(int(number) * 20 + 1):
                file.add(clip, f"{name}.wav")
        for each in (clip, archive):
            os.utime(each, (7, 7))
        score([clip, archive], preset, out)
        audio, rate_hz = soundfile.read(clip)
        found = rows(out)
        assert found[str(clip), 0.0]["end_s"] == len(audio) / rate_hz
        assert len(found) == int(number) * 20 + 2


def test_a_source_given_by_mistake_is_forgotten(sounds, preset, tmp_path):
    """What it has in its stead is scored; what else has failed is told."""
    out, listed = tmp_path / "out", tmp_path / "list.csv"
    listed.write_text("file\nsounds/1.wav\nsounds/bad.wav\nsounds/l.wav\n")
    (tmp_path / "no.tar").write_text("no archive")
    (tmp_path / "text.txt").write_text("no audio")
    named = [tmp_path / "no.tar", tmp_path / "text.txt", tmp_path / "sond"]
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "worse.wav").write_text("no audio")
    result = score([listed, *named, folder], preset, out)
    assert result.forgotten == []
    lasting = {str(sounds / "bad.wav"), str(folder / "worse.wav")}
    mistakes = {str(each) for each in [sounds / "l.wav", *named]}
    assert failed(out).keys() == lasting | mistakes
    (scored,) = rows(out).items()
    # The same sources: nothing is forgotten, and nothing scored anew.
    result = score([listed, *named, folder], preset, out)
    assert (result.forgotten, result.counters) == ([], {})
    assert failed(out).keys() == lasting | mistakes
    # Mended by another list, which leaves the first as it was.
    mended = tmp_path / "mended.csv"
    mended.write_text("file\nsounds/2.wav\n")
    result = score([mended], preset, out)
    assert set(result.forgotten) == mistakes
    assert failed(out).keys() == lasting
    assert rows(out)[scored[0]] == scored[1]
    assert len(rows(out)) == 2
    # They are not tried again either; what failed beside them is.
    result = score([mended], preset, out, retry_failed=True)
    assert result.counters["clips_failed"] == 2
    assert result.counters.get("archives", 0) == 0
    assert failed(out).keys() == lasting
    # The list itself was mended; a folder that is not given stays.
    listed.write_text("file\nsounds/1.wav\n")
    result = score([listed], preset, out)
    assert result.forgotten == [str(sounds / "bad.wav")]
    assert failed(out).keys() == {str(folder / "worse.wav")}
    assert result.rows == 2
    # Given again, it is tried again.
    result = score([*named, sounds / "bad.wav"], preset, out)
    assert failed(out).keys() == {
        *map(str, named),
        str(sounds / "bad.wav"),
        str(folder / "worse.wav"),
    }


def test_an_archive_with_scores_is_not_forgotten(sounds, preset, tmp_path):
    """Not even for what has failed in it."""
    out = tmp_path / "out"
    archive = f"{sounds}.tar.gz"
    score([archive], preset, out)
    before = rows(out)
    assert score([sounds / "1.wav"], preset, out).forgotten == []
    assert failed(out).keys() == {f"{archive}/../evil.wav"}
    assert before.items() <= rows(out).items()


def test_an_archive_that_has_changed_is_listed_anew(sounds, preset, tmp_path):
    out, path = tmp_path / "out", tmp_path / "a.tar"
    for names in (["0", "1"], ["2"]):
        with tarfile.open(path, "w") as archive:
            for name in names:
                archive.add(sounds / f"{name}.wav", name + ".wav")
        # Its size is the same, and so may be the clock's tick.
        soundfile.write(sounds / "1.wav", np.ones(5_000), tiny.RATE_HZ)
        score([path], preset, out)
        expected = {(f"{path}/{name}.wav", 0.0) for name in names}
        assert rows(out).keys() == expected


def test_top_labels_are_in_order(sounds, preset, classifier, tmp_path):
    out = tmp_path / "out"
    score([sounds / "0.wav"], preset, out, top=3)
    ((row,)) = rows(out).values()
    best = classifier.classify(str(sounds / "0.wav"), top=3)["scores"]
    assert row["labels"] == list(best)
    np.testing.assert_allclose(row["scores"], list(best.values()), atol=1e-6)


def test_a_recording_that_ends_too_early_has_no_rows(sounds, preset, tmp_path):
    path = sounds / "6.wav"
    path.write_bytes(path.read_bytes()[:-40])
    result = score([path], preset, tmp_path / "out")
    assert result.rows == 0
    assert "cut off" in failed(tmp_path / "out")[str(path)]


def test_a_folder_has_scores_of_one_kind(sounds, preset, tmp_path, monkeypatch):
    out, clip = tmp_path / "out", sounds / "1.wav"
    score([clip], preset, out)
    for options, words in (
        ({"top": 2}, "scores with top=5.* Received: top=2"),
        ({"window_s": 9.0}, "scores with window_s=2.5"),
        ({"embeddings": True}, "scores with embeddings=False"),
    ):
        with pytest.raises(ValueError, match=words):
            score([clip], preset, out, **options)
    other = tiny.eager(
        AudioClassifier(tiny.backbone(num_layers=2), labels=LABELS, chunk_s=0.5)
    )
    monkeypatch.setattr(pipeline, "load_classifier", lambda name: other)
    with pytest.raises(ValueError, match="scores of another model"):
        score([clip], preset, out)


def test_two_runs_in_one_folder(sounds, preset, tmp_path):
    with scoring.locked(str(tmp_path / "out")):
        with pytest.raises(RuntimeError, match="another run is at work"):
            score([sounds], preset, tmp_path / "out")


def test_files_of_a_killed_run_are_whole(preset, tmp_path, monkeypatch):
    """Whatever is written when a process ends, the next run goes on."""
    out = str(tmp_path / "out")
    plan = planning.Plan(out)
    lists.write_list(out, "0000", [lists.Clip("gone.wav")])
    # The list was written and the plan was not: the name is free.
    assert planning.Plan(out).listings() == {}
    plan.add_files([lists.Clip("a.wav")])
    plan.save()
    (shard,) = planning.Plan(out).listings()["0000"].shards
    assert [clip.path for clip in lists.read_clips(out, shard.name)] == [
        "a.wav"
    ]


def test_a_damaged_file_of_scores_is_named(sounds, preset, tmp_path):
    out = tmp_path / "out"
    score([sounds], preset, out)
    (file,) = (out / "scores").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=f"{file.name}: damaged .*remove it"):
        score([sounds], preset, out)


class Bucket(FileSystem):
    """Files behind `mem://`, and a folder that nobody may look into."""

    files = {}

    @classmethod
    def scheme(cls):
        return "mem"

    def join(self, folder, *names):
        return "/".join([folder, *names])

    def split(self, path):
        return path.rsplit("/", 1)

    def mkdirs(self, path):
        pass

    def has_dirs(self):
        return False

    def _list(self, prefix):
        if prefix.startswith("mem://secret"):
            raise BeamIOError("no", {prefix: PermissionError("403 Forbidden")})
        for path, content in self.files.items():
            if path.startswith(prefix):
                yield FileMetadata(path, len(content), 7.0)

    def create(self, path, mime_type="", compression_type="auto"):
        class Writer(io.BytesIO):
            def close(writer):
                self.files[path] = writer.getvalue()
                io.BytesIO.close(writer)

        return Writer()

    def open(self, path, mime_type="", compression_type="auto"):
        if path not in self.files:
            raise BeamIOError("no", {path: FileNotFoundError(path)})
        return io.BytesIO(self.files[path])

    def copy(self, sources, destinations):
        raise NotImplementedError

    def rename(self, sources, destinations):
        for source, destination in zip(sources, destinations, strict=True):
            self.files[destination] = self.files.pop(source)

    def exists(self, path):
        return path in self.files

    def size(self, path):
        return len(self.files[path])

    def last_updated(self, path):
        return 7.0

    def checksum(self, path):
        raise NotImplementedError

    def metadata(self, path):
        return FileMetadata(path, self.size(path), 7.0)

    def delete(self, paths):
        for path in paths:
            del self.files[path]


def test_sources_and_results_behind_another_filesystem(
    sounds, preset, tmp_path, monkeypatch
):
    monkeypatch.setattr(Bucket, "files", {})
    for file in [*sounds.iterdir(), tmp_path / "sounds.tar.gz"]:
        Bucket.files[f"mem://b/{file.name}"] = file.read_bytes()
    Bucket.files["mem://b/list.csv"] = b"file\n1.wav\nnone.wav\nmem://b/2.wav\n"
    sources = ["mem://b/0.wav", "mem://b/*.tar.gz", "mem://b/list.csv"]
    model = preset / "preset"
    options = {"window_s": WINDOW_S, "workers": 1}
    for counted in (4, 0):
        result = scoring.score(sources, str(model), "mem://out/1", **options)
        assert result.counters.get("shards", 0) == (counted and 2)
    names = sorted(name for name in Bucket.files if "/scores/" in name)
    assert not any("/." in name for name in names)
    files = {
        row["file"]
        for name in names
        for row in pyarrow.parquet.read_table(
            io.BytesIO(Bucket.files[name])
        ).to_pylist()
    }
    members = {f"mem://b/sounds.tar.gz/in/{number}.wav" for number in range(7)}
    assert files == members | {f"mem://b/{number}.wav" for number in range(3)}
    assert "mem://b/none.wav" in Bucket.files["mem://out/1/failed.csv"].decode()
    # A folder is all below it, and of an archive there is a word.
    with pytest.warns(
        RuntimeWarning, match="^mem://b: archives are .*Received: 1"
    ):
        scoring.score(["mem://b"], str(model), "mem://out/2", **options)
    assert "bad.wav" in Bucket.files["mem://out/2/failed.csv"].decode()


def refusal(capsys, *arguments):
    """The one line that the command must end with."""
    capsys.readouterr()
    assert cli.main(["score", *map(str, arguments), "--workers", "1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.filterwarnings("ignore")
def test_bad_input_is_one_line(sounds, preset, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Bucket, "files", {})
    out, model = tmp_path / "out", preset / "preset"
    flags = ["--out", out, "--model", model]
    file = sounds / "0.wav"
    for place in (file, file / "scores"):
        line = refusal(capsys, sounds, "--model", model, "--out", place)
        assert "--out must be a folder that can be written to" in line
        assert f"Received: {place}" in line
    line = refusal(capsys, sounds, "--model", model, "--out=~/scores")
    assert "the shell has not replaced the `~`. Received: ~/scores" in line
    (sounds / "list.csv").write_text("path\na.wav\n")
    for sources, words in (
        ([sounds / "*.mp3"], "no audio file matches"),
        ([sounds / "list.csv"], "no column 'file'"),
        ([sounds / "none.csv"], "No such file"),
        (["mem://secret/*.wav"], "403 Forbidden"),
        (["nowhere://bucket/*.wav"], "nowhere://"),
    ):
        assert words in refusal(capsys, *sources, *flags)
        assert not out.exists()
    for sources, words in (
        ([sounds, "--beam=--no_such_flag=3"], "no flag --no_such_flag"),
        ([sounds, "--runner=NoRunner"], "--workers 1"),
        ([sounds, "--all-scores", "--top", "3"], "exclude each other"),
        ([sounds, "--window-s", "0.1"], "--window-s must be at least"),
        ([sounds, "--whole", "--window-s", "5"], "exclude each other"),
        ([sounds, "--column", "path"], "--column means nothing without a CSV"),
        ([sounds, "--beam=foo bar"], "Received: 'foo'"),
        ([sounds, "--beam=--a=1 parallelism=64"], "'parallelism=64'"),
        ([sounds, "--beam=--runner=DirectRunner"], "Received: --runner among"),
    ):
        assert words in refusal(capsys, *sources, *flags)
    options = ["--runner=PortableRunner", "--beam=--job_endpoint=localhost:1"]
    given = ["score", sounds, *flags, *options]
    assert cli.main(list(map(str, given))) == 2
    assert "no job service at localhost:1" in capsys.readouterr().err
    flags[-1] = preset / "nameless"
    assert "--labels must name them" in refusal(capsys, sounds, *flags)
    (tmp_path / "names").write_text("a\nb\n")
    line = refusal(capsys, sounds, *flags, "--labels", tmp_path / "names")
    assert "Received: 2 names" in line
    (tmp_path / "names.json").write_text('{"labels": null}')
    line = refusal(capsys, sounds, *flags, "--labels", tmp_path / "names.json")
    assert "--labels must be a file that names classes" in line


@pytest.mark.filterwarnings("ignore")
def test_the_command_says_what_it_has_done(sounds, preset, tmp_path, capsys):
    out = tmp_path / "out"
    flags = ["--out", out, "--model", preset / "preset", "--workers", "1"]
    (tmp_path / "cut.zip").write_bytes(b"PK\3\4 and no more")
    given = ["score", sounds / "0.wav", tmp_path / "cut.zip", *flags]
    assert cli.main(list(map(str, given))) == 1
    printed = capsys.readouterr()
    assert f"{out}: 1 rows, 1 failed; this run: " in printed.out
    assert "cut.zip: cut off or damaged" in printed.err
    assert json.loads((out / "run.json").read_text())["labels"] == LABELS


def test_workers_are_of_the_runner_of_this_machine(sounds, preset, tmp_path):
    with pytest.raises(ValueError, match="Received: workers=2, runner='Other'"):
        score([sounds], preset, tmp_path / "o", workers=2, runner="Other")
    with pytest.raises(ValueError, match="Received: workers=0"):
        score([sounds], preset, tmp_path / "o", workers=0)
    assert not (tmp_path / "o").exists()


def test_settings_that_clash_are_found_before_a_model_is_loaded(
    sounds, preset, tmp_path, monkeypatch
):
    out, clip = tmp_path / "out", sounds / "1.wav"
    score([clip], preset, out)
    monkeypatch.setattr(pipeline, "load_classifier", None)
    with pytest.raises(ValueError, match="Received: top=2"):
        score([clip, sounds / "2.wav"], preset, out, top=2)
    # Names are the folder's, unless others are given.
    with pytest.raises(ValueError, match="Received: labels="):
        score([clip], preset, out, labels=["x"])


def test_a_worker_knows_the_classes_of_a_user(tmp_path, monkeypatch):
    """A worker is another process than the one that has executed configs."""
    known = attention.ATTENTIONS
    monkeypatch.setattr(configs, "executed", {})
    monkeypatch.setitem(known, "near", attention.FullAttention)
    backbone = tiny.backbone(attention="near")
    model = AudioClassifier(backbone, labels=["a", "b"], chunk_s=0.5)
    folder = tmp_path / "nameless"  # Loaded as it is.
    model.save_to_preset(folder)
    del known["near"]
    config = tmp_path / "mine.py"
    config.write_text(
        "from audio_tf import attention\n"
        "attention.ATTENTIONS['near'] = attention.FullAttention\n"
    )
    monkeypatch.setenv(configs.VARIABLE, json.dumps([str(config)]))
    settings = tables.Settings(str(folder), None, 60.0, 5, False)
    (tmp_path / "out").mkdir()
    handler = pipeline.ShardHandler(str(tmp_path / "out"), settings, [], None)
    ready = handler.load_model()
    assert ready.classifier.backbone.attention == "near"
    assert ready.settings.labels == ["a", "b"]
