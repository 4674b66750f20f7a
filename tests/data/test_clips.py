"""From a corpus on disk, through the cache, to the batches a model sees."""

import io
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import time
import zlib

import hypothesis
import keras
import numpy as np
import pytest
import soundfile
import tensorflow as tf
import tiny
from hypothesis import strategies

from audio_tf import data
from audio_tf.audio import decode
from audio_tf.corpora import Corpus
from audio_tf.data import cache
from audio_tf.data import chunks as chunking

RATE_HZ = 1_009
# 0.01 s, half a second, one second exactly, and longer ones.
LENGTHS = (11, 503, 1_009, 2_017, 3_539, 1_511, 4_036)
CLASSES = ["a", "b", "c"]


def noise(count, seed):
    rng = np.random.default_rng([count, seed])
    return rng.uniform(-0.9, 0.9, count).astype("float32")


def write_clip(path, count=503, seed=0, rate_hz=RATE_HZ):
    """Float samples, so that what is read equals what was written."""
    audio = noise(count, seed)
    soundfile.write(path, audio, rate_hz, subtype="FLOAT")
    return audio


def make_corpus(folder, lengths=LENGTHS):
    """A corpus, a clip of each length, and the samples of its clips."""
    folder.mkdir(exist_ok=True)
    files = [folder / f"{row}.wav" for row in range(len(lengths))]
    audio = [
        write_clip(file, count, seed)
        for seed, (file, count) in enumerate(zip(files, lengths))
    ]
    labels = [
        [name for bit, name in enumerate(CLASSES) if (row + 1) >> bit & 1]
        for row in range(len(lengths))
    ]
    return Corpus(files, labels, CLASSES), audio


def prepare(corpus, cache_dir, rate_hz=RATE_HZ, **kwargs):
    return data.prepare(corpus, rate_hz, cache_dir, progress=False, **kwargs)


@pytest.fixture
def clips_and_audio(tmp_path):
    corpus, audio = make_corpus(tmp_path / "clips")
    return prepare(corpus, tmp_path / "cache"), audio


@pytest.fixture
def decoded(monkeypatch):
    """The names of the files that `decode.load_audio` is asked for."""
    names = []
    load_audio = decode.load_audio

    def load_and_note(path, sample_rate_hz):
        names.append(os.path.basename(path))
        return load_audio(path, sample_rate_hz)

    monkeypatch.setattr(decode, "load_audio", load_and_note)
    return names


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


# The cache.


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.wav"
    write_clip(path)
    return path


@pytest.fixture
def store(tmp_path):
    return cache.AudioCache(tmp_path / "cache", 16_000)


def put(store, source, audio):
    """Stores samples; the path of their entry."""
    store.put(source, audio)
    return store.entry(source)


def test_cache_returns_what_was_put(store, source):
    audio = noise(5_003, 1)
    assert not store.entry(source).is_file()
    facts = store.put(source, audio)
    entry = store.entry(source)
    assert facts == cache.EntryFacts(5_003, zlib.crc32(audio.tobytes()))
    assert store.check(entry) == facts
    assert store.entry(str(source)).is_file()
    found = cache.read_entry(entry)
    assert found.dtype == "float32"
    np.testing.assert_array_equal(found, audio)
    assert cache.entry_length(entry) == 5_003
    np.testing.assert_array_equal(
        cache.read_entry(entry, 1_009, 13), audio[1_009:1_022]
    )


def test_cache_entry_does_not_depend_on_the_working_folder(
    store, source, monkeypatch
):
    monkeypatch.chdir(source.parent)
    assert store.entry("source.wav") == store.entry(source)
    assert store.entry("./source.wav") == store.entry(source)


def test_cache_stores_any_floats_as_float32(store, source):
    audio = np.arange(26.0)[::2]
    np.testing.assert_array_equal(
        cache.read_entry(put(store, source, audio)),
        audio.astype("float32"),
    )
    with pytest.raises(TypeError, match="must be floats. Received: int16"):
        store.put(source, audio.astype("int16"))


def test_change_of_the_source_is_a_miss(store, source):
    stale = put(store, source, noise(7, 1))
    status = os.stat(source)
    write_clip(source, count=509, seed=1)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat(source).st_mtime_ns == status.st_mtime_ns
    assert not store.entry(source).is_file()
    assert stale.is_file()
    entry = put(store, source, noise(11, 2))
    assert entry != stale
    # Another process may be reading the old one.
    assert files_below(store.directory) == sorted([entry, stale])
    np.testing.assert_array_equal(cache.read_entry(stale), noise(7, 1))
    np.testing.assert_array_equal(cache.read_entry(entry), noise(11, 2))


def test_change_of_the_time_alone_is_a_miss(store, source):
    stale = put(store, source, noise(7, 1))
    status = os.stat(source)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    assert not store.entry(source).is_file()
    entry = put(store, source, noise(7, 2))
    assert entry != stale
    np.testing.assert_array_equal(cache.read_entry(stale), noise(7, 1))
    np.testing.assert_array_equal(cache.read_entry(entry), noise(7, 2))


def test_cache_keeps_the_entries_of_other_sources(store, tmp_path):
    entries = []
    for number in range(53):
        path = tmp_path / f"{number}.wav"
        path.write_bytes(b"same size")
        os.utime(path, ns=(0, 0))
        entries.append(put(store, path, noise(7, number)))
    assert files_below(store.directory) == sorted(entries)
    for number, entry in enumerate(entries):
        np.testing.assert_array_equal(cache.read_entry(entry), noise(7, number))


def test_files_of_one_name_in_two_folders_do_not_mix(store, tmp_path):
    for number, folder in enumerate("ab"):
        path = tmp_path / folder / "1.wav"
        path.parent.mkdir()
        path.write_bytes(b"same size")
        os.utime(path, ns=(0, 0))
        store.put(path, noise(7, number))
    for number, folder in enumerate("ab"):
        entry = store.entry(tmp_path / folder / "1.wav")
        np.testing.assert_array_equal(cache.read_entry(entry), noise(7, number))


def test_rates_and_decoders_do_not_mix(tmp_path, source, monkeypatch):
    folder = tmp_path / "cache"
    stores = [
        cache.AudioCache(folder, 16_000),
        cache.AudioCache(folder, 8_000),
        cache.AudioCache(folder, 16_000, "tfio"),
    ]
    monkeypatch.setattr(cache, "RESAMPLER", "another resampler")
    stores.append(cache.AudioCache(folder, 16_000))
    for number, store in enumerate(stores):
        assert not store.entry(source).is_file()
        store.put(source, noise(7, number))
    for number, store in enumerate(stores):
        np.testing.assert_array_equal(
            cache.read_entry(store.entry(source)), noise(7, number)
        )


def test_cache_outlives_the_object(tmp_path, source):
    cache.AudioCache(tmp_path / "cache", 16_000).put(source, noise(7, 1))
    again = cache.AudioCache(tmp_path / "cache", 16_000)
    np.testing.assert_array_equal(
        cache.read_entry(again.entry(source)), noise(7, 1)
    )


def test_cache_of_a_missing_source(store, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.wav"):
        store.entry(tmp_path / "none.wav")
    with pytest.raises(FileNotFoundError, match=r"none\.wav"):
        store.put(tmp_path / "none.wav", noise(7, 1))
    assert not files_below(store.directory)


def fail_to_put(store, source, audio):
    """Writes an entry where no file may grow beyond 4 kB."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limits[1]))
    try:
        with pytest.raises(OSError):
            store.put(source, audio)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def damage(entry, other):
    """Yields what an entry may have become, by name."""
    content = entry.read_bytes()
    head = content[: cache.HEADER_SIZE]
    yield "cut", content[:-1]
    yield "cut in its header", content[:13]
    yield "empty", b""
    yield "longer", content + bytes(4)
    yield "zeroed", bytes(len(content))
    yield "samples zeroed", head.ljust(len(content), b"\0")
    yield "one bit", content[:-5] + bytes([content[-5] ^ 4]) + content[-4:]
    yield "a header's bit", content[:9] + bytes([content[9] ^ 4]) + content[10:]
    yield "another's", other.read_bytes()
    yield "text", b"no samples" * 53


def test_damaged_entry_is_made_again_and_said(tmp_path, decoded):
    # Of equal length, or another's entry would be known by its length.
    corpus, audio = make_corpus(tmp_path / "clips", (503, 503, 307))
    entries = prepare(corpus, tmp_path / "cache").entries
    for what, content in damage(entries[1], entries[0]):
        decoded.clear()
        entries[1].write_bytes(content)
        message = f"1 damaged entries .* {entries[1]}: "
        with pytest.warns(RuntimeWarning, match=message):
            clips = prepare(corpus, tmp_path / "cache")
        assert decoded == ["1.wav"], what
        assert clips.lengths.tolist() == [503, 503, 307]
        np.testing.assert_array_equal(cache.read_entry(entries[1]), audio[1])
    # A cache may be moved.
    (tmp_path / "cache").rename(tmp_path / "moved")
    decoded.clear()
    prepare(corpus, tmp_path / "moved")
    assert not decoded


def test_entry_that_is_cut_while_it_is_in_use(tmp_path):
    corpus, _ = make_corpus(tmp_path / "clips", (503, 1_513))
    for chunk_s in (0.1, 1.0, None):
        clips = prepare(corpus, tmp_path / f"cache {chunk_s}")
        chunks = chunking.Chunks(clips, chunk_s)
        for entry in clips.entries:
            os.truncate(entry, cache.HEADER_SIZE + 4 * 29)
        for row in (0, len(chunks) - 1):
            with pytest.raises(OSError, match="was cut off while it was in"):
                chunks.read(row)


OTHER_PROCESS = """
import sys, warnings
from audio_tf.corpora.class_folders import read_class_folders
from audio_tf.data import prepare
warnings.simplefilter("ignore")
corpus = read_class_folders(sys.argv[1])
clips = prepare(corpus, int(sys.argv[3]), sys.argv[2], progress=False)
print(clips.lengths.tolist())
"""


def test_another_process_takes_nothing_from_a_reader(tmp_path):
    """It prepares the same corpus, of which files changed meanwhile."""
    folder = tmp_path / "corpus" / "a"
    folder.parent.mkdir()
    corpus, audio = make_corpus(folder, (503, 1_511, 2_017))
    clips = prepare(corpus, tmp_path / "cache")
    chunks = chunking.Chunks(clips, 0.25)
    with open(clips.entries[2], "rb") as held:
        before = held.read()
        clips.entries[2].write_bytes(before[:-1])  # To be made again.
        write_clip(corpus.files[1], 907, seed=53)
        corpus.files[0].touch()
        done = subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS]
            + [str(folder.parent), str(tmp_path / "cache"), str(RATE_HZ)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == "[503, 907, 2017]"
    for row in range(len(chunks)):
        clip, start = chunks.clip_index[row], chunks.starts[row]
        np.testing.assert_array_equal(
            chunks.read(row), audio[clip][start:][: chunks.size]
        )


def test_failed_write_leaves_no_entry(store, source):
    audio = noise(5_003, 1)
    fail_to_put(store, source, audio)
    assert not store.entry(source).exists()
    assert not list(store.directory.rglob("*.f32"))
    entry = put(store, source, audio)
    np.testing.assert_array_equal(cache.read_entry(entry), audio)


def test_failed_write_keeps_the_entry_that_was_there(store, source):
    audio = noise(5_003, 1)
    entry = put(store, source, audio)
    fail_to_put(store, source, noise(5_003, 2))
    np.testing.assert_array_equal(cache.read_entry(entry), audio)


def test_failed_write_leaves_no_debris(store, source):
    fail_to_put(store, source, noise(5_003, 1))
    assert not files_below(store.directory)


@pytest.mark.parametrize(
    "variables, expected",
    [
        ({"AUDIO_TF_CACHE": "/x/mine", "XDG_CACHE_HOME": "/y"}, "/x/mine"),
        ({"XDG_CACHE_HOME": "/y"}, "/y/audio_tf"),
        ({"HOME": "/h/someone"}, "/h/someone/.cache/audio_tf"),
    ],
)
def test_default_cache_folder(monkeypatch, variables, expected):
    for name in ("AUDIO_TF_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.default_cache_dir() == expected


# Decoding.


def write_bad_files(folder):
    """Dict of the reason by the path of each."""
    cut = folder / "cut.wav"
    write_clip(cut)
    cut.write_bytes(cut.read_bytes()[:-101])
    not_finite = folder / "not_finite.wav"
    soundfile.write(not_finite, np.full(7, np.nan), RATE_HZ, subtype="FLOAT")
    text = folder / "text.wav"
    text.write_text("fname,labels,mids\n" * 23)
    empty = folder / "empty.wav"
    empty.touch()
    return {
        cut: "cut off after",
        not_finite: "NaN",
        text: "not readable as audio",
        empty: "empty file",
    }


def test_decoding_keeps_order_and_carries_errors(tmp_path, monkeypatch):
    corpus, audio = make_corpus(tmp_path / "clips")
    bad = write_bad_files(tmp_path)
    missing = tmp_path / "missing.wav"
    files = [*corpus.files]
    expected = {file: samples for file, samples in zip(files, audio)}
    for row, file in enumerate([*bad, missing]):
        files.insert(1 + 2 * row, file)
    load_audio = decode.load_audio

    def slow_at_first(path, sample_rate_hz):
        is_slow = files.index(pathlib.Path(path)) % 3 == 0
        time.sleep(0.05 if is_slow else 0)
        return load_audio(path, sample_rate_hz)

    monkeypatch.setattr(decode, "load_audio", slow_at_first)
    dataset = data.decode_dataset(files, RATE_HZ)
    elements = list(dataset.as_numpy_iterator())
    assert [row for row, _, _ in elements] == list(range(len(files)))
    for file, (_, samples, error) in zip(files, elements, strict=True):
        assert samples.dtype == "float32"
        if file in expected:
            assert error == b""
            np.testing.assert_array_equal(samples, expected[file])
        else:
            reason = bad.get(file, "no such file")
            assert reason in error.decode()
            assert samples.shape == (0,)


def test_decoding_resamples(tmp_path):
    write_clip(tmp_path / "a.wav", 503, rate_hz=16_000)
    write_clip(tmp_path / "b.wav", 503, rate_hz=8_000)
    files = [tmp_path / "a.wav", str(tmp_path / "b.wav")]
    dataset = data.decode_dataset(files, 8_000)
    lengths = [len(audio) for _, audio, _ in dataset.as_numpy_iterator()]
    assert lengths == [252, 503]


def test_decoding_of_nothing():
    assert not list(data.decode_dataset([], RATE_HZ))


def test_unknown_decoder():
    with pytest.raises(ValueError, match="soundfile.*Received: decoder='sox'"):
        data.decode_dataset([], RATE_HZ, "sox")


# Preparation.


def test_prepared_clips_are_the_corpus(tmp_path):
    corpus, audio = make_corpus(tmp_path / "clips")
    clips = prepare(corpus, tmp_path / "cache")
    assert clips.corpus == corpus
    assert clips.sample_rate_hz == RATE_HZ
    assert clips.failures == {}
    assert len(clips) == len(LENGTHS)
    assert clips.lengths.dtype == "int64"
    assert clips.lengths.tolist() == list(LENGTHS)
    for entry, samples in zip(clips.entries, audio, strict=True):
        np.testing.assert_array_equal(cache.read_entry(entry), samples)


def test_prepared_clips_have_the_rate_wanted(tmp_path):
    corpus, _ = make_corpus(tmp_path / "clips")
    clips = prepare(corpus, tmp_path / "cache", rate_hz=2 * RATE_HZ)
    assert clips.lengths.tolist() == [2 * count for count in LENGTHS]
    assert clips.sample_rate_hz == 2 * RATE_HZ
    # A second rate in the same cache leaves the first alone.
    assert prepare(corpus, tmp_path / "cache").lengths.tolist() == list(LENGTHS)


@pytest.mark.parametrize("place", [0, 3, len(LENGTHS)])
def test_bad_files_are_left_out_counted_and_named(tmp_path, place):
    good, audio = make_corpus(tmp_path / "clips")
    bad = write_bad_files(tmp_path)
    corpus = Corpus(
        good.files[:place] + [*bad] + good.files[place:],
        good.labels[:place] + [["c", "b"]] * len(bad) + good.labels[place:],
        CLASSES,
    )
    clips = prepare(corpus, tmp_path / "cache")
    assert clips.corpus == good
    np.testing.assert_array_equal(clips.corpus.targets(), good.targets())
    for entry, samples in zip(clips.entries, audio, strict=True):
        np.testing.assert_array_equal(cache.read_entry(entry), samples)
    assert set(clips.failures) == {str(file) for file in bad}
    for file, reason in bad.items():
        assert reason in clips.failures[str(file)]
    text = data.describe(clips.failures)
    assert text.startswith(f"{len(bad)} files left out\n")
    for file, reason in bad.items():
        lines = [line for line in text.splitlines() if str(file) in line]
        assert len(lines) == 1
        assert reason in lines[0]


def test_missing_file_is_reported(tmp_path):
    corpus, _ = make_corpus(tmp_path / "clips")
    corpus.files[3].unlink()
    clips = prepare(corpus, tmp_path / "cache")
    assert clips.failures == {str(corpus.files[3]): "no such file"}
    assert clips.corpus == corpus.select([0, 1, 2, 4, 5, 6])


@pytest.mark.parametrize(
    "name", ["0.wav/a.wav", "a" * 300 + ".wav", "nul\0.wav"]
)
def test_impossible_file_name_is_reported(tmp_path, name):
    corpus, _ = make_corpus(tmp_path / "clips")
    file = tmp_path / "clips" / name
    corpus.files[3] = file
    clips = prepare(corpus, tmp_path / "cache")
    assert set(clips.failures) == {str(file)}
    assert len(clips) == len(LENGTHS) - 1


def test_file_name_that_is_not_utf_8(tmp_path):
    corpus, audio = make_corpus(tmp_path / "clips")
    file = tmp_path / "clips" / os.fsdecode(b"caf\xe9.wav")
    corpus.files[3].rename(file)
    corpus.files[3] = file
    clips = prepare(corpus, tmp_path / "cache")
    assert clips.failures == {}
    for entry, samples in zip(clips.entries, audio, strict=True):
        np.testing.assert_array_equal(cache.read_entry(entry), samples)
    # Also where it is bad, through text and JSON.
    file.write_text("no audio")
    clips = prepare(corpus, tmp_path / "cache")
    assert list(clips.failures) == [str(file)]
    text = data.describe(clips.failures)
    assert r"caf\udce9.wav: not readable" in text.encode("utf-8").decode()
    assert json.loads(json.dumps(clips.failures)) == clips.failures


def test_impossible_rate_is_reported(tmp_path):
    corpus, _ = make_corpus(tmp_path / "clips")
    content = bytearray(corpus.files[3].read_bytes())
    content[24:28] = struct.pack("<I", 2**31 - 1)
    corpus.files[3].write_bytes(content)
    clips = prepare(corpus, tmp_path / "cache")
    assert set(clips.failures) == {str(corpus.files[3])}


def test_directory_is_reported(tmp_path):
    corpus, _ = make_corpus(tmp_path / "clips")
    corpus.files[3].unlink()
    corpus.files[3].mkdir()
    clips = prepare(corpus, tmp_path / "cache")
    assert set(clips.failures) == {str(corpus.files[3])}


@pytest.mark.parametrize("name", ["cut.wav", "text.wav", "missing.wav"])
def test_strict_raises_at_a_bad_file(tmp_path, name):
    corpus, _ = make_corpus(tmp_path / "clips")
    write_bad_files(tmp_path)
    corpus.files[3] = tmp_path / name
    with pytest.raises(decode.AudioError) as caught:
        prepare(corpus, tmp_path / "cache", strict=True)
    assert caught.value.path == str(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    # Not only in a pass that decodes.
    prepare(corpus, tmp_path / "cache")
    with pytest.raises(decode.AudioError):
        prepare(corpus, tmp_path / "cache", strict=True)


def test_strict_has_nothing_against_good_files(tmp_path):
    corpus, _ = make_corpus(tmp_path / "clips")
    assert len(prepare(corpus, tmp_path / "cache", strict=True)) == 7


def test_second_preparation_decodes_nothing(tmp_path, decoded):
    corpus, _ = make_corpus(tmp_path / "clips")
    first = prepare(corpus, tmp_path / "cache")
    assert sorted(decoded) == [f"{row}.wav" for row in range(len(LENGTHS))]
    decoded.clear()
    second = prepare(corpus, tmp_path / "cache")
    assert decoded == []
    assert second.entries == first.entries
    assert second.lengths.tolist() == list(LENGTHS)


def test_only_a_changed_file_is_decoded_again(tmp_path, decoded):
    corpus, audio = make_corpus(tmp_path / "clips")
    prepare(corpus, tmp_path / "cache")
    decoded.clear()
    audio[4] = write_clip(corpus.files[4], 2_503, seed=53)
    clips = prepare(corpus, tmp_path / "cache")
    assert decoded == ["4.wav"]
    for entry, samples in zip(clips.entries, audio, strict=True):
        np.testing.assert_array_equal(cache.read_entry(entry), samples)
    # The entry of what the file was stays, for those who read it.
    assert len(files_below(tmp_path / "cache")) == len(LENGTHS) + 1


def test_file_that_changes_while_it_is_decoded(tmp_path, monkeypatch):
    corpus, audio = make_corpus(tmp_path / "clips")
    load_audio = decode.load_audio

    def load_and_change(path, sample_rate_hz):
        loaded = load_audio(path, sample_rate_hz)
        if path.endswith("4.wav"):
            audio[4] = write_clip(path, 2_503, seed=53)
        return loaded

    with monkeypatch.context() as patch:
        patch.setattr(decode, "load_audio", load_and_change)
        prepare(corpus, tmp_path / "cache")
    clips = prepare(corpus, tmp_path / "cache")
    np.testing.assert_array_equal(cache.read_entry(clips.entries[4]), audio[4])


def test_clips_outlive_their_files(tmp_path):
    corpus, audio = make_corpus(tmp_path / "clips")
    sizes = [file.stat().st_size for file in corpus.files]
    clips = prepare(corpus, tmp_path / "cache")
    for file in corpus.files[1:]:
        file.unlink()
    corpus.files[0].write_bytes(b"else")
    assert clips.sizes.tolist() == sizes
    assert clips.checksums.tolist() == [
        zlib.crc32(samples.tobytes()) for samples in audio
    ]
    part = clips.select([4, 2])
    assert part.sizes.tolist() == [sizes[4], sizes[2]]
    assert part.checksums.tolist() == clips.checksums[[4, 2]].tolist()
    for entry, samples in zip(clips.entries, audio, strict=True):
        np.testing.assert_array_equal(cache.read_entry(entry), samples)
    # A new run sees what is there.
    with pytest.raises(ValueError, match="None of 7 files is usable") as caught:
        prepare(corpus, tmp_path / "cache")
    assert str(caught.value).count("no such file") == 6


def test_a_full_disk_says_what_was_kept(tmp_path):
    resource = pytest.importorskip("resource")
    corpus, audio = make_corpus(tmp_path / "clips", (503, 307, 5_003, 211))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limits[1]))
    try:
        with pytest.raises(OSError) as caught:
            prepare(corpus, tmp_path / "cache")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    message = str(caught.value)
    assert "2 of 4 entries are in the cache and are kept" in message
    assert str(tmp_path / "cache") in message
    assert "\n" not in message
    assert len(files_below(tmp_path / "cache")) == 2
    clips = prepare(corpus, tmp_path / "cache")
    for entry, samples in zip(clips.entries, audio, strict=True):
        np.testing.assert_array_equal(cache.read_entry(entry), samples)


@pytest.mark.parametrize("rate_hz", [0, -1, 16_000.5, math.nan])
def test_rate_that_is_none(tmp_path, rate_hz):
    corpus, _ = make_corpus(tmp_path / "clips", (11,))
    with pytest.raises(ValueError, match="Received: sample_rate_hz="):
        prepare(corpus, tmp_path / "cache", rate_hz)


def test_no_usable_file(tmp_path):
    bad = write_bad_files(tmp_path)
    missing = tmp_path / "missing.wav"
    files = [*bad, missing]
    corpus = Corpus(files, [["a"]] * 5, CLASSES)
    with pytest.raises(ValueError, match="None of 5 files is usable") as caught:
        prepare(corpus, tmp_path / "cache")
    text = str(caught.value)
    assert "5 files left out" in text
    for file, reason in {**bad, missing: "no such file"}.items():
        assert f"{file}: " in text
        assert reason in text


def test_preparation_goes_on_after_an_interruption(
    tmp_path, monkeypatch, decoded
):
    corpus, audio = make_corpus(tmp_path / "clips")
    put = cache.AudioCache.put

    def put_until_interrupted(self, source, *args, **kwargs):
        if os.path.basename(source) == "3.wav":
            raise KeyboardInterrupt
        return put(self, source, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(cache.AudioCache, "put", put_until_interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare(corpus, tmp_path / "cache")
    clips = prepare(corpus, tmp_path / "cache")
    # The others may have been under way ahead of the interruption.
    assert [decoded.count(f"{row}.wav") for row in range(3)] == [1, 1, 1]
    for entry, samples in zip(clips.entries, audio, strict=True):
        np.testing.assert_array_equal(cache.read_entry(entry), samples)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_bar_is_named_and_can_be_off(tmp_path, monkeypatch):
    corpus, _ = make_corpus(tmp_path / "clips")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    prepare(corpus, tmp_path / "one")
    assert "decoding" not in terminal.getvalue()
    data.prepare(corpus, RATE_HZ, tmp_path / "two", name="dev")
    assert "decoding dev: 100%" in terminal.getvalue()


# Chunks.

sizes = strategies.integers(1, 401)


@hypothesis.settings(deadline=None, database=None)
@hypothesis.given(strategies.integers(1, 3_001), sizes, sizes)
def test_chunk_starts(length, size, hop):
    starts = chunking.chunk_starts(length, size, hop)
    assert starts.dtype == "int64"
    assert len(starts) >= 1
    assert starts[0] == 0
    if length <= size:
        assert len(starts) == 1
        return
    assert all(0 <= start <= length - size for start in starts)
    assert starts[-1] + size == length
    steps = np.diff(starts)
    assert (steps[:-1] == hop).all()
    assert (steps > 0).all() and (steps <= hop).all()
    # No chunk more than it takes.
    assert len(starts) == 1 + math.ceil((length - size) / hop)
    covered = np.zeros(length, bool)
    for start in starts:
        covered[start : start + size] = True
    if hop <= size:
        assert covered.all()


@pytest.mark.parametrize(
    "length, size, hop, starts",
    [
        (11, 13, 13, [0]),
        (13, 13, 13, [0]),
        (14, 13, 13, [0, 1]),
        (26, 13, 13, [0, 13]),
        (27, 13, 13, [0, 13, 14]),
        (29, 13, 7, [0, 7, 14, 16]),
        (27, 13, 7, [0, 7, 14]),
    ],
)
def test_chunk_starts_by_hand(length, size, hop, starts):
    assert chunking.chunk_starts(length, size, hop).tolist() == starts


def naive_chunks(audio, size, hop):
    """List of `(clip, samples)`, sample by sample."""
    chunks = []
    for clip, samples in enumerate(audio):
        if len(samples) <= size:
            repeated = [samples[i % len(samples)] for i in range(size)]
            chunks.append((clip, np.array(repeated)))
            continue
        start = 0
        while start + size < len(samples):
            chunks.append((clip, samples[start : start + size]))
            start += hop
        chunks.append((clip, samples[len(samples) - size :]))
    return chunks


@pytest.mark.parametrize(
    "chunk_s, hop_s, size, hop",
    [
        (1.0, None, 1_009, 1_009),
        (1.0, 0.5, 1_009, 504),
        (0.25, None, 252, 252),
        (0.25, 0.1, 252, 101),
    ],
)
def test_every_chunk_is_a_piece_of_its_clip(
    clips_and_audio, chunk_s, hop_s, size, hop
):
    clips, audio = clips_and_audio
    chunks = chunking.Chunks(clips, chunk_s, hop_s)
    expected = naive_chunks(audio, size, hop)
    assert len(chunks) == len(expected)
    assert chunks.clip_index.tolist() == [clip for clip, _ in expected]
    for row, (_, samples) in enumerate(expected):
        found = chunks.read(row)
        assert (found.dtype, found.shape) == ("float32", (size,))
        np.testing.assert_array_equal(found, samples)


def test_chunks_are_of_one_second_unless_told(clips_and_audio):
    chunks = chunking.Chunks(clips_and_audio[0])
    assert chunks.size == RATE_HZ
    # 11, 503, 1009 | 2017 -> 2 | 3539 -> 4 | 1511 -> 2 | 4036 = 4 * 1009.
    assert chunks.clip_index.tolist() == [
        0,
        1,
        2,
        3,
        3,
        *[4] * 4,
        5,
        5,
        *[6] * 4,
    ]


def test_short_clip_is_repeated_to_the_full_length(clips_and_audio):
    clips, audio = clips_and_audio
    assert len(audio[0]) == 11  # 0.01 s
    chunk = chunking.Chunks(clips).read(0)
    for index in range(RATE_HZ):
        assert chunk[index] == audio[0][index % 11]


def test_chunks_inherit_the_labels(clips_and_audio):
    clips, _ = clips_and_audio
    chunks = chunking.Chunks(clips, 0.25)
    rows = np.array([1, len(chunks) - 1, 3, 2])
    _, lengths, targets = chunks.read_batch(rows, np.zeros(4, np.int64))
    assert lengths.tolist() == [252] * 4
    for row, target in zip(rows, targets, strict=True):
        labels = clips.corpus.labels[chunks.clip_index[row]]
        assert target.tolist() == [float(name in labels) for name in CLASSES]


@pytest.mark.parametrize(
    "chunk_s, hop_s",
    [
        (0, None),
        (-1.0, None),
        (1e-4, None),
        (1.0, -1.0),
        (math.nan, None),
        (math.inf, None),
        (1.0, math.nan),
        (1.0, 1.5),
        (None, 0.5),
    ],
)
def test_chunks_without_a_sample(clips_and_audio, chunk_s, hop_s):
    message = f"Received: chunk_s={chunk_s}, hop_s={hop_s}"
    with pytest.raises(ValueError, match=message):
        chunking.Chunks(clips_and_audio[0], chunk_s, hop_s)


def test_hop_of_zero(clips_and_audio):
    with pytest.raises(ValueError, match="Received: chunk_s=1.0, hop_s=0"):
        chunking.Chunks(clips_and_audio[0], 1.0, 0)


@pytest.mark.parametrize("silence_db", [math.nan, -math.inf])
def test_silence_that_is_no_number(clips_and_audio, silence_db):
    with pytest.raises(ValueError, match=f"silence_db={silence_db}"):
        chunking.Chunks(clips_and_audio[0], silence_db=silence_db)


# Batches of chunks.

CHUNK_S, SIZE, BATCH = 0.25, 252, 7


@pytest.fixture
def chunks(clips_and_audio):
    return chunking.Chunks(clips_and_audio[0], CHUNK_S)


def rows_of(chunks, waveforms):
    """Which chunk each waveform is, found by its samples."""
    known = {chunks.read(row).tobytes(): row for row in range(len(chunks))}
    assert len(known) == len(chunks)
    return [known[waveform.tobytes()] for waveform in waveforms]


def one_pass(dataset):
    """Waveforms and targets of one pass, joined."""
    waveforms, targets = zip(*dataset.as_numpy_iterator())
    return np.concatenate(waveforms), np.concatenate(targets)


def test_dataset_without_shuffle(chunks, clips_and_audio):
    clips, audio = clips_and_audio
    dataset = chunks.dataset(BATCH)
    waveform_spec, target_spec = dataset.element_spec
    assert (waveform_spec.shape[1], waveform_spec.dtype) == (SIZE, tf.float32)
    assert (target_spec.shape[1], target_spec.dtype) == (3, tf.float32)
    expected = naive_chunks(audio, SIZE, SIZE)
    sizes = [len(waveform) for waveform, _ in dataset]
    rest = len(expected) % BATCH
    assert rest  # Else nothing below tells of the last batch.
    assert sizes == [BATCH] * (len(expected) // BATCH) + [rest]
    for _ in range(2):
        waveforms, targets = one_pass(dataset)
        np.testing.assert_array_equal(
            waveforms, np.stack([samples for _, samples in expected])
        )
        corpus_targets = clips.corpus.targets()
        np.testing.assert_array_equal(
            targets, corpus_targets[[clip for clip, _ in expected]]
        )
    assert chunks.scoring_order(BATCH).tolist() == list(range(len(chunks)))


def test_shuffled_pass_visits_each_chunk_once(chunks):
    dataset = chunks.dataset(BATCH, shuffle=True, seed=3)
    orders = []
    for _ in range(3):
        waveforms, targets = one_pass(dataset)
        rows = rows_of(chunks, waveforms)
        assert sorted(rows) == list(range(len(chunks)))
        np.testing.assert_array_equal(
            targets, chunks.targets[chunks.clip_index[rows]]
        )
        orders.append(tuple(rows))
    assert len(set(orders)) == 3
    assert tuple(range(len(chunks))) not in orders


def test_shuffle_reaches_over_the_whole_corpus(clips_and_audio):
    """No buffer: any chunk may come first."""
    chunks = chunking.Chunks(clips_and_audio[0], 0.02)
    count = len(chunks)
    waveforms, _ = one_pass(chunks.dataset(BATCH, shuffle=True, seed=3))
    order = np.array(rows_of(chunks, waveforms))
    correlation = np.corrcoef(order, np.arange(count))[0, 1]
    # Independent orders: standard deviation 1 / sqrt(count - 1).
    assert abs(correlation) < 4 / math.sqrt(count - 1)
    # Batches are not runs of neighbours either.
    assert np.abs(np.diff(order)).mean() > count / 5


def test_order_is_the_seeds(chunks):
    def orders(seed):
        dataset = chunks.dataset(BATCH, shuffle=True, seed=seed)
        return [rows_of(chunks, one_pass(dataset)[0]) for _ in range(2)]

    assert orders(3) == orders(3)
    assert orders(3)[0] != orders(4)[0]
    # Else a seed would replay, one pass later, what its neighbour did.
    assert orders(3)[1] != orders(4)[0]


def test_two_datasets_do_not_disturb_each_other(chunks):
    first = chunks.dataset(BATCH, shuffle=True, seed=3)
    expected = one_pass(first)[0]
    one_pass(chunks.dataset(BATCH, shuffle=True, seed=3))
    second = chunks.dataset(BATCH, shuffle=True, seed=3)
    np.testing.assert_array_equal(one_pass(second)[0], expected)


def stream(chunks, first_epoch, batches, **kwargs):
    dataset = chunks.dataset(
        BATCH, shuffle=True, seed=7, first_epoch=first_epoch, **kwargs
    )
    return list(dataset.take(batches).as_numpy_iterator())


@pytest.mark.parametrize("jitter", [False, True])
@pytest.mark.parametrize("first_epoch", [1, 3])
def test_resumed_stream_is_the_unbroken_one(chunks, first_epoch, jitter):
    steps = chunks.num_batches(BATCH)
    unbroken = stream(chunks, 0, 5 * steps, jitter=jitter)
    skipped = first_epoch * steps
    resumed = stream(
        chunks, first_epoch, len(unbroken) - skipped, jitter=jitter
    )
    pairs = zip(unbroken[skipped:], resumed, strict=True)
    for (waveform, target), (again, target_again) in pairs:
        np.testing.assert_array_equal(waveform, again)
        np.testing.assert_array_equal(target, target_again)
    different = [
        waveform.shape != again.shape or (waveform != again).any()
        for (waveform, _), (again, _) in zip(unbroken, resumed)
    ]
    assert any(different)


def test_stream_is_made_of_whole_passes(chunks):
    steps = chunks.num_batches(BATCH)
    batches = stream(chunks, 0, 2 * steps)
    plain = chunks.dataset(BATCH, shuffle=True, seed=7)
    for epoch in range(2):
        part = batches[epoch * steps : (epoch + 1) * steps]
        waveforms = np.concatenate([waveform for waveform, _ in part])
        np.testing.assert_array_equal(waveforms, one_pass(plain)[0])


@pytest.mark.parametrize("batch_size", [1, 5, 7, 1_000])
def test_cardinality(chunks, batch_size):
    dataset = chunks.dataset(batch_size, shuffle=True)
    expected = math.ceil(len(chunks) / batch_size)
    assert chunks.num_batches(batch_size) == expected
    assert dataset.cardinality().numpy() == expected
    assert sum(1 for _ in dataset) == expected
    endless = chunks.dataset(batch_size, first_epoch=3)
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, math.nan, True])
def test_batch_size_that_is_none(chunks, batch_size):
    with pytest.raises(ValueError, match="`batch_size` must be a positive"):
        chunks.dataset(batch_size)
    with pytest.raises(ValueError, match="`batch_size` must be a positive"):
        chunks.num_batches(batch_size)


def test_passes_are_counted_from_zero(chunks):
    for first in ({"first_epoch": -1}, {"first_batch": -1}):
        with pytest.raises(ValueError, match="counted from 0.*-1"):
            chunks.dataset(BATCH, **first)


# Jitter.


def test_jitter_stays_near_and_within_the_clip(chunks, clips_and_audio):
    _, audio = clips_and_audio
    is_long = np.array([len(samples) > SIZE for samples in audio])
    shifts = []
    dataset = chunks.dataset(BATCH, jitter=True)
    for _ in range(5):
        waveforms, targets = one_pass(dataset)
        np.testing.assert_array_equal(
            targets, chunks.targets[chunks.clip_index]
        )
        for row, waveform in enumerate(waveforms):
            clip = chunks.clip_index[row]
            if not is_long[clip]:
                continue
            # Samples are distinct, so the first tells where it was cut.
            [start] = np.flatnonzero(audio[clip] == waveform[0])
            np.testing.assert_array_equal(
                waveform, audio[clip][start : start + SIZE]
            )
            shifts.append(start - chunks.starts[row])
    assert max(np.abs(shifts)) <= SIZE // 2
    # Early and late, and in most of the reach.
    assert min(shifts) < -SIZE // 3
    assert max(shifts) > SIZE // 3


def test_jitter_turns_a_repeated_clip(chunks, clips_and_audio):
    repeated = np.resize(clips_and_audio[1][0], SIZE)
    turns = {np.roll(repeated, turn).tobytes() for turn in range(SIZE)}
    dataset = chunks.dataset(BATCH, jitter=True)
    seen = {one_pass(dataset)[0][0].tobytes() for _ in range(7)}
    assert seen <= turns
    assert len(seen) > 3


def test_jitter_is_new_in_each_pass_and_the_seeds(chunks):
    def passes(seed):
        dataset = chunks.dataset(BATCH, seed=seed, jitter=True)
        return [one_pass(dataset)[0] for _ in range(3)]

    first, second, third = passes(3)
    assert (first != second).any(axis=1).mean() > 0.9
    assert (second != third).any(axis=1).mean() > 0.9
    assert (first != passes(4)[0]).any(axis=1).mean() > 0.9
    np.testing.assert_array_equal(passes(3)[1], second)


# Whole clips.


@pytest.fixture
def whole(tmp_path):
    """Whole clips in batches of more than one length, and their samples."""
    lengths = np.random.default_rng(5).permutation(np.arange(101, 1_300, 53))
    corpus, audio = make_corpus(tmp_path / "whole", lengths.tolist())
    clips = prepare(corpus, tmp_path / "cache")
    return chunking.Chunks(clips, chunk_s=None), audio


def check_whole_batches(chunks, audio, batches):
    """Checks samples, padding and labels; returns the clips in order."""
    known = {samples.tobytes(): clip for clip, samples in enumerate(audio)}
    order = []
    for inputs, targets in batches:
        waveform, lengths = inputs["waveform"], inputs["lengths"]
        assert (waveform.dtype, lengths.dtype) == ("float32", "int32")
        assert len(waveform) == len(lengths) == len(targets) <= 3
        assert waveform.shape[1] >= lengths.max()
        for samples, length, target in zip(waveform, lengths, targets):
            clip = known[samples[:length].tobytes()]
            assert not samples[length:].any()
            np.testing.assert_array_equal(target, chunks.targets[clip])
            order.append(clip)
    return order


def test_whole_clips_are_padded_by_zeros(whole):
    chunks, audio = whole
    dataset = chunks.dataset(3)
    batches = list(dataset.as_numpy_iterator())
    order = check_whole_batches(chunks, audio, batches)
    assert sorted(order) == list(range(len(audio)))
    assert order != sorted(order)  # Else the next line proves nothing.
    assert order == chunks.scoring_order(3).tolist()
    assert len(batches) == chunks.num_batches(3)
    assert len(batches) == dataset.cardinality().numpy()


def test_whole_clips_shuffled(whole):
    chunks, audio = whole
    dataset = chunks.dataset(3, shuffle=True, seed=3, jitter=True)
    orders = []
    for _ in range(3):
        batches = list(dataset.as_numpy_iterator())
        orders.append(check_whole_batches(chunks, audio, batches))
        assert sorted(orders[-1]) == list(range(len(audio)))
        assert len(batches) == chunks.num_batches(3)
    assert len(set(map(tuple, orders))) == 3
    # Long and short batches take turns: no ramp of lengths in a pass.
    widths = [inputs["waveform"].shape[1] for inputs, _ in batches]
    assert widths != sorted(widths)


def test_whole_clips_of_like_length_meet(whole):
    chunks, audio = whole
    batches = list(chunks.dataset(3, shuffle=True).as_numpy_iterator())
    widths = {inputs["waveform"].shape[1] for inputs, _ in batches}
    # Each shape is a new graph for XLA, so there must be few.
    assert 2 <= len(widths) <= 5
    assert max(widths) == max(len(samples) for samples in audio)
    for inputs, _ in batches:
        width = inputs["waveform"].shape[1]
        narrower = [other for other in widths if other < width]
        assert inputs["lengths"].min() > max(narrower, default=0)


def test_whole_clips_of_one_length(tmp_path):
    corpus, audio = make_corpus(tmp_path / "clips", [503] * 7)
    chunks = chunking.Chunks(prepare(corpus, tmp_path / "cache"), None)
    batches = list(chunks.dataset(3).as_numpy_iterator())
    assert [inputs["waveform"].shape for inputs, _ in batches] == [
        (3, 503),
        (3, 503),
        (1, 503),
    ]
    assert check_whole_batches(chunks, audio, batches) == list(range(7))


def test_resumed_stream_of_whole_clips(whole):
    chunks, _ = whole

    def some(first_epoch, skip):
        dataset = chunks.dataset(3, True, seed=5, first_epoch=first_epoch)
        return list(dataset.skip(skip).take(11).as_numpy_iterator())

    steps = chunks.num_batches(3)
    for (inputs, _), (again, _) in zip(some(0, 2 * steps), some(2, 0)):
        np.testing.assert_array_equal(inputs["lengths"], again["lengths"])
        np.testing.assert_array_equal(inputs["waveform"], again["waveform"])


# Scores.


def naive_score(samples):
    """Three figures that depend on the samples and on their number."""
    samples = samples.astype("float64")
    return [samples.sum(), samples[-1], (samples**2).mean()]


class FakeModel:
    """Scores waveforms as `keras.Model.predict` would."""

    def predict(self, dataset, verbose):
        self.verbose = verbose
        scores = []
        for inputs, _ in dataset.as_numpy_iterator():
            if isinstance(inputs, dict):
                pairs = zip(inputs["waveform"], inputs["lengths"], strict=True)
                inputs = [samples[:length] for samples, length in pairs]
            scores += [naive_score(samples) for samples in inputs]
        return np.array(scores)


@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_score_of_a_clip_is_the_mean_over_its_chunks(
    chunks, clips_and_audio, batch_size
):
    _, audio = clips_and_audio
    expected = []
    for clip in range(len(audio)):
        scores = [
            naive_score(samples)
            for other, samples in naive_chunks(audio, SIZE, SIZE)
            if other == clip
        ]
        expected.append(sum(map(np.array, scores)) / len(scores))
    model = FakeModel()
    scores = chunking.score_clips(model, chunks, batch_size, verbose=0)
    assert scores.shape == (len(audio), 3)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)
    assert model.verbose == 0


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_score_of_a_whole_clip(whole, batch_size):
    chunks, audio = whole
    scores = chunking.score_clips(FakeModel(), chunks, batch_size)
    expected = [naive_score(samples) for samples in audio]
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("chunk_s", [CHUNK_S, None])
def test_one_clip_without_finite_scores_loses_no_other(
    clips_and_audio, chunk_s
):
    clips, _ = clips_and_audio
    chunks = chunking.Chunks(clips, chunk_s)
    expected = chunking.score_clips(FakeModel(), chunks, 3)
    rows = chunks.scoring_order(3)

    class Overflows(FakeModel):
        def predict(self, dataset, verbose):
            scores = super().predict(dataset, verbose)
            row = np.flatnonzero(chunks.clip_index[rows] == 4)[0]
            scores[row, 1] = np.inf
            return scores

    message = rf"Scores of 1 of 7 clips are not finite.*{clips.corpus.files[4]}"
    with pytest.raises(ValueError, match=message):
        chunking.score_clips(Overflows(), chunks, 3)
    scores = chunking.score_clips(Overflows(), chunks, 3, strict=False)
    assert np.isnan(scores[4]).all()
    others = [0, 1, 2, 3, 5, 6]
    np.testing.assert_array_equal(scores[others], expected[others])


@pytest.mark.parametrize("chunk_s", [0.25, None])
def test_classify_names_each_bad_clip_and_scores_the_others(
    tmp_path, monkeypatch, capsys, chunk_s
):
    from audio_tf import cli, models

    classifier = models.AudioClassifier(
        tiny.backbone(), labels=CLASSES, chunk_s=chunk_s
    )
    monkeypatch.setattr(cli, "load_classifier", lambda name: classifier)
    good, short = tmp_path / "good.wav", tmp_path / "short.wav"
    integers = tmp_path / "integers.wav"
    bad = {
        "loud.wav": np.full(1_511, 1e30),
        "infinite.wav": np.full(1_511, -np.inf),
        "nan.wav": np.full(1_511, np.nan),
        "none.wav": np.zeros(0),
    }
    write_clip(good, 1_511, rate_hz=1_100)
    write_clip(short, 1, rate_hz=1_100)
    soundfile.write(integers, np.full(1_511, 2**30, "int32"), 1_100, "PCM_32")
    for name, audio in bad.items():
        soundfile.write(tmp_path / name, audio, 1_100, subtype="FLOAT")
    wanted = [good, integers, short]

    def classify(*files):
        flags = ["--model", "any", "--json"]
        code = cli.main(["classify", *map(str, files), *flags])
        output = capsys.readouterr()
        lines = map(json.loads, output.out.splitlines())
        return code, {line["file"]: line["scores"] for line in lines}, output

    code, alone, _ = classify(*wanted)
    assert code == 0 and list(alone) == [str(file) for file in wanted]
    code, found, output = classify(*wanted, *(tmp_path / name for name in bad))
    assert code == 1 and list(found) == list(alone)
    for file, scores in alone.items():
        assert all(map(math.isfinite, scores.values()))
        assert found[file] == pytest.approx(scores, abs=1e-6)
    for name, reason in {
        "loud.wav": "so large",
        "infinite.wav": "NaN or infinite",
        "nan.wav": "NaN or infinite",
        "none.wav": "holds no samples",
    }.items():
        [line] = [each for each in output.err.splitlines() if name in each]
        assert reason in line


# Keras.


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="`train_step` is of the TensorFlow trainer",
)
def test_fit_sees_every_chunk_of_a_pass(chunks):
    seen = []

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = keras.layers.Dense(3, activation="sigmoid")

        def call(self, inputs):
            return self.head(inputs)

        def train_step(self, data):
            seen.extend(data[0].numpy())
            return super().train_step(data)

    model = Model()
    model.compile("sgd", "binary_crossentropy", run_eagerly=True)
    history = model.fit(
        chunks.dataset(BATCH, shuffle=True, seed=3),
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    assert np.isfinite(history.history["loss"]).all()
    rows = rows_of(chunks, seen)
    passes = rows[: len(chunks)], rows[len(chunks) :]
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(len(chunks)))
    assert passes[0] != passes[1]


def test_resumed_fit_ends_where_the_unbroken_one_does(chunks):
    steps = chunks.num_batches(BATCH)
    inputs = keras.Input((SIZE,))
    outputs = keras.layers.Dense(3, activation="sigmoid")(inputs)
    start = keras.Model(inputs, outputs).get_weights()

    def fit(model, first_epoch, epochs):
        dataset = chunks.dataset(
            BATCH, shuffle=True, seed=3, jitter=True, first_epoch=first_epoch
        )
        model.fit(
            dataset,
            initial_epoch=first_epoch,
            epochs=epochs,
            steps_per_epoch=steps,
            shuffle=False,
            verbose=0,
        )
        return model

    def new_model():
        model = keras.Model(inputs, outputs)
        model.set_weights(start)
        model.compile(keras.optimizers.SGD(0.3), "binary_crossentropy")
        return model

    unbroken = fit(new_model(), 0, 3).get_weights()
    halves = fit(fit(new_model(), 0, 1), 1, 3).get_weights()
    for weight, again in zip(unbroken, halves, strict=True):
        np.testing.assert_allclose(weight, again, atol=1e-6)
    # The same steps in another order end elsewhere.
    replayed = fit(fit(new_model(), 0, 1), 0, 2).get_weights()
    assert np.abs(replayed[0] - unbroken[0]).max() > 1e-4


def test_fit_and_score_whole_clips(whole):
    chunks, audio = whole
    waveform = keras.Input((None,), name="waveform")
    lengths = keras.Input((), name="lengths", dtype="int32")
    total = keras.ops.sum(waveform, axis=1, keepdims=True)
    count = keras.ops.cast(lengths[:, None], "float32")
    outputs = keras.layers.Dense(3)(total / count)
    model = keras.Model({"waveform": waveform, "lengths": lengths}, outputs)
    model.compile("sgd", "mse")
    history = model.fit(
        chunks.dataset(3, shuffle=True), shuffle=False, verbose=0
    )
    assert np.isfinite(history.history["loss"]).all()
    kernel, bias = model.get_weights()
    expected = [samples.mean() * kernel[0] + bias for samples in audio]
    scores = chunking.score_clips(model, chunks, batch_size=3, verbose=0)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_silence_is_left_out_but_for_one_chunk_a_clip(tmp_path):
    rate_hz = 8_000
    loud, quiet = noise(rate_hz, 1), 1e-4 * noise(rate_hz, 2)
    clips = {
        "padded.wav": np.concatenate([loud, np.zeros(2 * rate_hz)]),
        "quiet.wav": np.concatenate([quiet, 2.0 * quiet]),
        "loud.wav": np.concatenate([loud, loud]),
    }
    files = []
    for name, audio in clips.items():
        files.append(tmp_path / name)
        soundfile.write(files[-1], audio, rate_hz, subtype="FLOAT")
    corpus = Corpus(files, [["a"], ["b"], ["c"]], CLASSES)
    prepared = prepare(corpus, tmp_path / "cache", rate_hz)
    every = chunking.Chunks(prepared)
    assert every.silent == 0 and len(every) == 3 + 2 + 2
    heard = chunking.Chunks(prepared, silence_db=-60)
    assert heard.silent == 3
    np.testing.assert_array_equal(heard.clip_index, [0, 1, 2, 2])
    np.testing.assert_array_equal(heard.starts, [0, rate_hz, 0, rate_hz])
