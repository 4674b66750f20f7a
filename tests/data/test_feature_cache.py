"""Features on disk: equal, found again, made again where damaged."""

import dataclasses
import errno
import os
import shutil

import keras
import numpy as np
import pytest
from corpus_files import RATE_HZ
from utterance_cases import batches, small_features

from audio_tf import data
from audio_tf.audio import load_audio
from audio_tf.data import PADDING_LABEL, cache
from audio_tf.layers import SpeechFeatures


def test_frames_of_stacked_features():
    features = small_features()
    frames = data.Frames.of(features)
    assert (frames.frame_size, frames.first_middle) == (69, 23.0)
    lengths = np.array([1, 68, 211, 1_499])
    expected = [max((1 + n // 23) // 3, 1) for n in lengths]
    assert frames.lengths(lengths).tolist() == expected


def test_features_are_cached(speech, tmp_path, monkeypatch):
    clips = speech[2]
    features = small_features()
    found = data.cache_features(clips, features, tmp_path, batch_size=2)
    assert found.frames.rate_hz == found.length_rate_hz == RATE_HZ / 69
    assert found.dim == 30 == features.dim
    for row, entry in enumerate(found.entries):
        audio = load_audio(clips.corpus.files[row], RATE_HZ)
        alone = keras.ops.convert_to_numpy(features(audio[None]))[0]
        stored = cache.read_entry(entry).reshape(-1, 30)
        assert len(stored) == found.lengths[row]
        np.testing.assert_allclose(stored, alone, atol=2e-4)

    def never(*args, **kwargs):
        raise RuntimeError("computed again")

    monkeypatch.setattr(SpeechFeatures, "__call__", never)
    again = data.cache_features(clips, small_features(), tmp_path)
    assert again.entries == found.entries
    # Another configuration, a lost entry and other audio are misses.
    for other in (small_features(pre_emphasis=0.5), small_features(stack=2)):
        with pytest.raises(RuntimeError, match="computed again"):
            data.cache_features(clips, other, tmp_path)
    found.entries[3].unlink()
    with pytest.raises(RuntimeError, match="computed again"):
        data.cache_features(clips, features, tmp_path)


def test_damaged_features_are_computed_again(speech, tmp_path):
    clips, features = speech[2], small_features()
    found = data.cache_features(clips, features, tmp_path)
    np.testing.assert_array_equal(found.sizes, clips.sizes)
    np.testing.assert_array_equal(found.checksums, clips.checksums)
    before = [cache.read_entry(entry) for entry in found.entries]
    os.truncate(found.entries[3], found.entries[3].stat().st_size - 4)
    found.entries[5].write_bytes(bytes(cache.HEADER_SIZE + 4 * 30))
    with pytest.warns(RuntimeWarning, match="2 damaged entries"):
        again = data.cache_features(clips, features, tmp_path)
    assert again.lengths.tolist() == found.lengths.tolist()
    for entry, x in zip(again.entries, before, strict=True):
        np.testing.assert_allclose(cache.read_entry(entry), x, atol=2e-4)
    with pytest.raises(ValueError, match="Clips of features are taken whole"):
        data.Chunks(found, 0.1)
    with pytest.raises(ValueError, match="batch_size=0"):
        data.cache_features(clips, features, tmp_path, batch_size=0)


def test_cached_features_in_batches(speech, tmp_path):
    clips = speech[2]
    features = small_features()
    found = data.cache_features(clips, features, tmp_path)
    frames = data.Frames.of(features)
    direct = data.Utterances(clips, "frame_labels", frames, by_time=True)
    cached = data.Utterances(found, "frame_labels", by_time=True)
    order = cached.scoring_order(2)
    row = 0
    for inputs, targets in batches(cached):
        width = inputs["features"].shape[1]
        assert inputs["features"].shape == (len(targets), width, 30)
        assert targets.shape[1] == width
        for x, length, each in zip(*inputs.values(), targets, strict=True):
            assert length == found.lengths[order[row]]
            stored = cache.read_entry(found.entries[order[row]])
            np.testing.assert_array_equal(x[:length].ravel(), stored)
            assert not x[length:].any()
            np.testing.assert_array_equal(
                each[:length], direct.targets[order[row]]
            )
            assert (each[length:] == PADDING_LABEL).all()
            row += 1
    assert row == 7
    short = data.limit_lengths(found, 0.0, 0.2)
    assert (short.lengths / (RATE_HZ / 69) <= 0.2).all()
    assert 0 < len(short) < 7


def test_features_of_another_rate(speech, tmp_path):
    with pytest.raises(ValueError, match="16000 Hz .* 3700 Hz"):
        data.cache_features(speech[2], SpeechFeatures(), tmp_path)


def test_features_are_cached_by_their_weights(speech, tmp_path):
    features = small_features()
    features.extra = features.add_weight(name="extra", shape=(1,))
    first = data.cache_features(speech[2], features, tmp_path)
    again = data.cache_features(speech[2], features, tmp_path)
    assert again.entries == first.entries
    features.extra.assign([3.0])
    other = data.cache_features(speech[2], features, tmp_path)
    assert not set(other.entries) & set(first.entries)


def test_features_of_another_decoder_are_others(speech, tmp_path):
    """A decoder's audio is in a folder of its own, under the same names."""
    clips = speech[2]
    features = small_features()
    first = data.cache_features(clips, features, tmp_path / "features")
    entries = []
    for entry in clips.entries:
        entries.append(tmp_path.joinpath("decoder", *entry.parts[-2:]))
        entries[-1].parent.mkdir(parents=True, exist_ok=True)
        cache.write_entry(entries[-1], 0.5 * cache.read_entry(entry) ** 2)
    other = data.cache_features(
        dataclasses.replace(clips, entries=entries),
        features,
        tmp_path / "features",
    )
    assert not set(other.entries) & set(first.entries)
    for one, two in zip(first.entries, other.entries, strict=True):
        assert one.read_bytes() != two.read_bytes()


def test_a_full_disk_is_known_before(speech, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="Received: 0.0 GB free"):
        data.cache_features(speech[2], small_features(), tmp_path)


def test_a_disk_that_fills_keeps_whole_features(speech, tmp_path, monkeypatch):
    write_entry = cache.write_entry
    written = []

    def write_three(*args):
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(args[0])
        return write_entry(*args)

    with monkeypatch.context() as patch:
        patch.setattr(cache, "write_entry", write_three)
        with pytest.raises(OSError, match="space.*3 of 7 entries") as caught:
            data.cache_features(speech[2], small_features(), tmp_path)
    assert caught.value.errno == errno.ENOSPC
    found = data.cache_features(speech[2], small_features(), tmp_path)
    assert set(written) < set(found.entries)
