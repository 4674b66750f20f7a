"""Shards of the cache: equal, found on another machine, made again."""

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from clip_files import (
    RATE_HZ,
    make_corpus,
    prepare,
    write_bad_files,
    write_clip,
)
from utterance_cases import small_features

from audio_tf import data
from audio_tf.audio import load_audio
from audio_tf.corpora import Corpus
from audio_tf.data import clips, feature_cache, preparing, shards


def fill(
    folder, corpus, rate_hz=RATE_HZ, shard_bytes=12_000, order=1, limit=None
):
    """Fills shards as `audio-tf prepare` does, without Beam."""
    store = data.AudioCache(folder, rate_hz)
    items, failures = preparing.audio_items(store, corpus.files)
    sets = store.directory / shards.PREPARED
    planned = preparing.plan(sets, items, shard_bytes)
    for shard in planned[:limit:order]:
        preparing.write_audio(shard, folder, rate_hz, "soundfile")
    if planned and limit is None:
        preparing.finish(planned)
    return planned, failures


@pytest.fixture
def never_decodes(monkeypatch):
    def never(files, *args):
        if files:
            raise RuntimeError(f"decoded again: {files}")
        return iter(())

    return lambda: monkeypatch.setattr(clips, "decode_files", never)


def content(folder):
    """Dict of the bytes of all files below a folder by their path in it."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_shards_hold_what_files_do(tmp_path, never_decodes):
    corpus, audio = make_corpus(tmp_path / "corpus")
    planned, failures = fill(tmp_path / "cache", corpus, order=-1)
    assert len(planned) > 2 and not failures
    never_decodes()
    found = prepare(corpus, tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.f32"))
    for row, samples in enumerate(audio):
        np.testing.assert_array_equal(found.read(row), samples)
        np.testing.assert_array_equal(found.read(row, 3, 5), samples[3:8])
    alone = prepare(corpus, tmp_path / "cache")
    assert alone.checksums.tolist() == found.checksums.tolist()
    # The records are read by others, too.
    paths = sorted((tmp_path / "cache").rglob("*.tfrecord"))
    records = tf.data.TFRecordDataset(list(map(str, paths)))
    read = [np.frombuffer(each.numpy(), "<f4") for each in records]
    for one, other in zip(read, audio, strict=True):
        np.testing.assert_array_equal(one, other)
    chunks = data.Chunks(found, 0.5)
    whole, _ = next(iter(chunks.dataset(len(chunks))))
    assert whole.shape == (len(chunks), chunks.size)


def test_resampled_clips(tmp_path):
    corpus, _ = make_corpus(tmp_path / "corpus", (503, 1_009))
    fill(tmp_path / "cache", corpus, 800)
    found = prepare(corpus, tmp_path / "cache", 800)
    assert len(found.in_shards) == 2
    for row, file in enumerate(corpus.files):
        np.testing.assert_array_equal(found.read(row), load_audio(file, 800))
    # Another rate has shards of its own.
    assert not prepare(corpus, tmp_path / "cache").in_shards


def test_a_copy_elsewhere_is_found_by_its_bytes(
    tmp_path, never_decodes, monkeypatch
):
    corpus, audio = make_corpus(tmp_path / "corpus")
    fill(tmp_path / "cache", corpus)
    for folder in ("corpus", "cache"):
        (tmp_path / "there").mkdir(exist_ok=True)
        shutil.copytree(
            tmp_path / folder,
            tmp_path / "there" / folder,
            copy_function=shutil.copyfile,  # Without times.
        )
    shutil.rmtree(tmp_path / "corpus")
    files = [tmp_path / "there/corpus" / file.name for file in corpus.files]
    # As long as another one, and none of those.
    changed = write_clip(files[3], 2_017, seed=99)
    never_decodes()
    copy = Corpus(files, corpus.labels, corpus.vocabulary)
    with pytest.raises(RuntimeError, match=r"decoded again.*\b3\.wav"):
        prepare(copy, tmp_path / "there/cache")
    monkeypatch.undo()
    found = prepare(copy, tmp_path / "there/cache")
    assert len(found.in_shards) == len(files) - 1
    for row, samples in enumerate(audio):
        expected = changed if row == 3 else samples
        np.testing.assert_array_equal(found.read(row), expected)

    def never(source):
        raise RuntimeError(f"read again: {source}")

    # What was read once is known from then on.
    monkeypatch.setattr(shards, "digest_of", never)
    again = prepare(copy, tmp_path / "there/cache")
    assert again.in_shards == found.in_shards


def test_a_fill_that_was_killed_goes_on(tmp_path, monkeypatch):
    corpus, _ = make_corpus(tmp_path / "corpus")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    fill(whole, corpus)
    done = []

    def kill(name):
        if len(done) == 2:
            (name.parent / ".00002.partial").write_bytes(b"half")
            raise KeyboardInterrupt
        done.append(name)

    write_shard = shards.write

    def killed(folder, name, *rest):
        kill(folder / name)
        return write_shard(folder, name, *rest)

    monkeypatch.setattr(shards, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        fill(broken, corpus)
    # What is there can be used already.
    assert 0 < len(prepare(corpus, broken).in_shards) < len(corpus)
    monkeypatch.setattr(shards, "write", write_shard)
    before = {path for path in broken.rglob("*.tfrecord")}
    times = {path: path.stat().st_mtime_ns for path in before}
    fill(broken, corpus)
    assert {path: path.stat().st_mtime_ns for path in before} == times
    for entry in broken.rglob("*.f32"):
        entry.unlink()
    assert content(broken) == content(whole)
    # Nothing is to be done now, and one clip more is a set of its own.
    assert not fill(broken, corpus)[0]
    write_clip(tmp_path / "new.wav", 307, seed=31)
    more = Corpus([*corpus.files, tmp_path / "new.wav"], [["a"]] * 8, ["a"])
    assert [each.clips for each in fill(broken, more)[0]] == [1]
    assert len(prepare(more, broken).in_shards) == 8


def test_two_processes_may_fill_one_set_at_once(tmp_path, monkeypatch):
    """The second has ended, and cleared up, before the first has."""
    corpus, audio = make_corpus(tmp_path / "corpus")
    fill(tmp_path / "alone", corpus)
    decode, others = preparing.decode_files, []

    def decode_and_wait(*args):
        yield from decode(*args)
        if not others:
            others.append(args)
            fill(tmp_path / "cache", corpus)

    monkeypatch.setattr(preparing, "decode_files", decode_and_wait)
    planned, failures = fill(tmp_path / "cache", corpus)
    assert others and planned and not failures
    assert content(tmp_path / "cache") == content(tmp_path / "alone")
    found = prepare(corpus, tmp_path / "cache")
    assert len(found.in_shards) == len(audio)


def test_an_unfinished_set_of_another_corpus_is_not_made_anew(tmp_path):
    """A limit left some out, and the corpus has one clip more, or one less."""
    corpus, audio = make_corpus(tmp_path / "corpus")
    folder = tmp_path / "cache"
    first, _ = fill(folder, corpus, limit=2)
    before = content(folder)
    there = sum(each.clips for each in first[:2])
    assert 0 < there < len(corpus)
    write_clip(tmp_path / "new.wav", 307, seed=31)
    files = [*corpus.files[1:], tmp_path / "new.wav"]
    more = Corpus(files, [["a"]] * len(files), ["a"])
    second, _ = fill(folder, more, limit=1)
    assert sum(each.clips for each in second) == len(files) + 1 - there
    # That is not finished either, and is gone on with beside the first, by
    # whoever comes in its midst, too.
    fill(folder, more, limit=2)
    third, _ = fill(folder, more)
    assert [each.folder for each in third] == [each.folder for each in second]
    assert before.items() <= content(folder).items()
    store = data.AudioCache(folder, RATE_HZ)
    sets = store.directory / shards.PREPARED
    rows = [
        row.entry
        for each in shards.sets_in(sets)
        for note in shards.read_notes(each).values()
        for row in note.rows
    ]
    wanted = {store.entry(file).name for file in [*corpus.files, files[-1]]}
    assert sorted(rows) == sorted(wanted)
    # All is in shards: neither corpus has anything left to do.
    assert not fill(folder, more)[0] and not fill(folder, corpus)[0]
    found = prepare(corpus, folder)
    assert len(found.in_shards) == len(corpus)
    for row, samples in enumerate(audio):
        np.testing.assert_array_equal(found.read(row), samples)


def test_a_set_is_gone_on_with_by_what_is_to_be_known_now(tmp_path):
    """As features of samples that are in other shards than they were."""
    before, now = (
        [(name, 4, [name, place]) for name in "abcde"]
        for place in ("removed/00000.tfrecord", "00007.tfrecord")
    )
    preparing.plan(tmp_path, before, 8)
    planned = preparing.plan(tmp_path, now, 8)
    assert len({shard.folder for shard in planned}) == 1
    found = [item for shard in planned for item in shard.items()]
    assert found == [item for *_, item in now]


def test_bad_files_are_noted_once(tmp_path):
    corpus, _ = make_corpus(tmp_path / "corpus", (503, 1_009))
    bad = write_bad_files(tmp_path)
    files = [*corpus.files, *bad, tmp_path / "none.wav"]
    mixed = Corpus(files, [["a"]] * len(files), ["a"])
    planned, failures = fill(tmp_path / "cache", mixed)
    assert failures == {str(tmp_path / "none.wav"): "no such file"}
    store = data.AudioCache(tmp_path / "cache", RATE_HZ)
    names = {store.entry(file).name for file in files[:-1]}
    sets = planned[0].folder.parent
    noted = shards.failures_in(sets, names)
    assert set(noted) == {str(path) for path in bad}
    for path, reason in bad.items():
        assert reason in noted[str(path)]
    assert not fill(tmp_path / "cache", mixed)[0]
    found = prepare(mixed, tmp_path / "cache")
    assert len(found) == len(found.in_shards) == 2
    assert len(found.failures) == len(bad) + 1


def test_damaged_and_lost_shards(tmp_path, monkeypatch):
    # Long clips are looked at in several blocks.
    monkeypatch.setattr(shards, "BLOCK", 400)
    corpus, audio = make_corpus(tmp_path / "corpus")
    planned, _ = fill(tmp_path / "cache", corpus)
    first, second = (
        each.folder / each.note().file for each in (planned[0], planned[1])
    )
    broken = bytearray(first.read_bytes())
    broken[shards.HEAD + 5] ^= 1
    first.write_bytes(broken)
    os.truncate(second, second.stat().st_size - 1)
    lost = planned[1].clips
    with pytest.warns(RuntimeWarning, match="1 damaged records of shards"):
        found = prepare(corpus, tmp_path / "cache")
    assert len(found.in_shards) == len(corpus) - 1 - lost
    for row, samples in enumerate(audio):
        np.testing.assert_array_equal(found.read(row), samples)
    # A shard that is not there any more is filled anew.
    again, _ = fill(tmp_path / "cache", corpus)
    assert sum(each.clips for each in again) == lost


def test_features_in_shards(speech, tmp_path, monkeypatch):
    found, features = speech[2], small_features()
    expected = data.cache_features(found, features, tmp_path / "files")
    rate_hz, folder = found.sample_rate_hz, tmp_path / "cache"
    fill(folder, found.corpus, rate_hz, 200_000)
    there = prepare(found.corpus, folder, rate_hz)
    assert len(there.in_shards) == len(found)
    store = feature_cache.cache_of(features, rate_hz, folder)
    items = preparing.feature_items(
        there.in_shards,
        store,
        features,
        lambda seconds: seconds > 300 / rate_hz,
    )
    assert len(items) == sum(found.lengths > 300) < len(found)
    samples_folder = there.entries[0].parent.parent.name
    sets = store.directory / samples_folder / shards.PREPARED
    planned = preparing.plan(sets, items, 4_000)
    assert len(planned) > 1
    for shard in planned:
        preparing.write_features(shard, features, rate_hz)
    preparing.finish(planned)

    computed = []
    compute = feature_cache.compute

    def counted(clips, wanted, *rest):
        computed.extend(clips.lengths[wanted])
        return compute(clips, wanted, *rest)

    monkeypatch.setattr(feature_cache, "compute", counted)
    got = data.cache_features(there, features, folder, progress=False)
    assert sorted(computed) == [211, 257]
    assert len(got.in_shards) == len(items)
    assert got.lengths.tolist() == expected.lengths.tolist()
    for row in range(len(found)):
        np.testing.assert_allclose(got.read(row), expected.read(row), atol=2e-4)
