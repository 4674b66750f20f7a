"""A corpus into the cache: what is decoded, left out, kept."""

import functools
import io
import json
import math
import os
import struct
import sys
import zlib

import numpy as np
import pytest
import soundfile
import tensorflow as tf
import tiny
from clip_files import (
    CLASSES,
    LENGTHS,
    RATE_HZ,
    files_below,
    make_corpus,
    prepare,
    write_bad_files,
    write_clip,
)

from audio_tf import data
from audio_tf.audio import decode, decoders
from audio_tf.corpora import Corpus
from audio_tf.data import cache
from audio_tf.data import chunks as chunking
from audio_tf.terminal import describe_failures


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


def test_another_run_takes_nothing_from_a_reader(tmp_path):
    """It prepares the same corpus, of which files changed meanwhile."""
    corpus, audio = make_corpus(tmp_path / "clips", (503, 1_511, 2_017))
    clips = prepare(corpus, tmp_path / "cache")
    chunks = chunking.Chunks(clips, 0.25)
    with open(clips.entries[2], "rb") as held:
        before = held.read()
        clips.entries[2].write_bytes(before[:-1])  # To be made again.
        write_clip(corpus.files[1], 907, seed=53)
        corpus.files[0].touch()
        with pytest.warns(RuntimeWarning, match="1 damaged entries"):
            later = prepare(corpus, tmp_path / "cache")
        assert later.lengths.tolist() == [503, 907, 2_017]
    for row in range(len(chunks)):
        clip, start = chunks.clip_index[row], chunks.starts[row]
        np.testing.assert_array_equal(
            chunks.read(row), audio[clip][start:][: chunks.size]
        )


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
    text = describe_failures(clips.failures)
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
    ("name", "reason"),
    [
        ("0.wav/a.wav", "Not a directory"),
        ("a" * 300 + ".wav", "File name too long"),
        # What stands in brackets differs between versions of Python.
        ("nul\0.wav", "not a file name ("),
    ],
)
def test_impossible_file_name_is_reported(tmp_path, name, reason):
    corpus, _ = make_corpus(tmp_path / "clips")
    file = tmp_path / "clips" / name
    corpus.files[3] = file
    clips = prepare(corpus, tmp_path / "cache")
    assert list(clips.failures) == [str(file)]
    assert clips.failures[str(file)].startswith(reason)
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
    text = describe_failures(clips.failures)
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
    assert "`cache_dir` may be another folder" in message
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


@pytest.mark.parametrize("chunk_s", [0.25, None])
def test_classify_names_each_bad_clip_and_scores_the_others(
    tmp_path, monkeypatch, capsys, chunk_s
):
    from audio_tf import cli, models
    from audio_tf.export import classifiers

    classifier = models.AudioClassifier(
        tiny.backbone(), labels=CLASSES, chunk_s=chunk_s
    )
    monkeypatch.setattr(classifiers, "load_classifier", lambda name: classifier)
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


def test_a_decoder_that_raises_leaves_bad_files_out(tmp_path, monkeypatch):
    """As tensorflow-io's ops do; a new decoder is one entry of the table."""

    def load_length(path, sample_rate_hz):
        count = tf.strings.length(tf.io.read_file(path))
        check = tf.debugging.Assert(count > 999, ["too short"])
        with tf.control_dependencies([check]):
            return tf.fill([count], float(sample_rate_hz))

    decoder = functools.partial(decoders.by_graph, load_length)
    monkeypatch.setitem(decoders.DECODERS, "length", decoder)
    corpus, _ = make_corpus(tmp_path / "clips", (503, 11, 1_009))
    clips = prepare(corpus, tmp_path / "cache", decoder="length")
    assert clips.corpus == corpus.select([0, 2])
    assert clips.failures == {str(corpus.files[1]): "not decoded by length"}
    assert clips.lengths.tolist() == clips.sizes.tolist()
    assert set(cache.read_entry(clips.entries[1])) == {float(RATE_HZ)}
    with pytest.raises(decode.AudioError, match="1.wav: not decoded by length"):
        prepare(corpus, tmp_path / "c", decoder="length", strict=True)
