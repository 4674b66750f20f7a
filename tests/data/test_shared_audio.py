"""Clips of two splits that sound the same."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from audio_tf import data
from audio_tf.corpora import Corpus
from audio_tf.data import cache


@pytest.fixture
def clips(tmp_path):
    """Makes `Clips` of a split out of samples, as `prepare` would."""

    def make(split, sounds):
        files = [f"{split}/{row}.wav" for row in range(len(sounds))]
        entries, facts = [], []
        for row, samples in enumerate(sounds):
            entry = tmp_path / f"{split}-{row}.f32"
            facts.append(cache.write_entry(entry, samples))
            entries.append(entry)
        return data.Clips(
            Corpus(files, [["a"]] * len(files), ["a"]),
            entries,
            np.array([each.length for each in facts]),
            1_000,
            {},
            np.zeros(len(files), np.int64),
            np.array([each.checksum for each in facts], np.uint32),
        )

    return make


def test_the_same_samples_under_other_names(clips, rng, monkeypatch):
    one, two, three, four = rng.standard_normal((4, 17)).astype("float32")
    silence = np.zeros(17, "float32")
    splits = {
        # Twice on one side is no leak.
        "train": clips("train", [one, two, two, silence, silence[:0]]),
        "val": clips("val", [three, silence, silence[:0]]),
        "test": clips("test", [four, two, one[:-1], one, two]),
    }
    read, entries = [], data.Clips.read
    monkeypatch.setattr(
        data.Clips,
        "read",
        lambda self, row: read.append(self.entries[row]) or entries(self, row),
    )
    (leak,) = data.same_audio(splits)
    assert leak.kind == "audio" and leak.splits == ("train", "test")
    assert (leak.shared, leak.clips) == (2, 3)
    assert leak.files == ("train/1.wav", "test/1.wav")
    # Of what is nowhere else, checksums are enough.
    alone = {splits["val"].entries[0], splits["test"].entries[0]}
    assert read and not alone & set(read)
    splits["test"] = dataclasses.replace(splits["test"], sample_rate_hz=1)
    with pytest.raises(ValueError, match="must have one rate. .*'test': 1}"):
        data.same_audio(splits)


def test_checksums_that_agree_by_chance_are_not_the_same_sound(clips, rng):
    sounds = rng.standard_normal((2, 17)).astype("float32")
    splits = {
        split: clips(split, [samples])
        for split, samples in zip(("train", "test"), sounds, strict=True)
    }
    splits["test"].checksums[:] = splits["train"].checksums
    assert data.same_audio(splits) == []
