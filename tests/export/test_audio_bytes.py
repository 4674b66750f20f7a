"""Scores of files from their bytes, against a loop over the files.

The model is a function whose scores tell where each sample stood.
"""

import io

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("a graph of TensorFlow", allow_module_level=True)

import tensorflow as tf

from audio_tf.audio.chunking import Cutting
from audio_tf.audio.wav import WavError
from audio_tf.export import audio_bytes

pytestmark = pytest.mark.costly

RATE_HZ, SIZE = 1_000, 11
# No score of a clip that holds it is a number, though its samples are.
POISON = 1e30


def wav(audio):
    content = io.BytesIO()
    soundfile.write(
        content, audio, RATE_HZ, format="WAV", subtype="FLOAT", endian="LITTLE"
    )
    return content.getvalue()


def score(waveform, lengths):
    """Three scores `(batch, 3)` of the first `lengths` samples."""
    place = tf.range(tf.shape(waveform)[1])[None]
    waveform = tf.where(place < lengths[:, None], waveform, 0.0)
    weights = tf.cast(place + 1, tf.float32)
    return tf.stack(
        [
            tf.reduce_sum(waveform * weights, 1),
            tf.reduce_sum(waveform**2, 1),
            tf.cast(lengths, tf.float32),
        ],
        axis=1,
    )


def naive_score(audio):
    return np.array(
        [
            sum((place + 1) * x for place, x in enumerate(audio)),
            sum(x * x for x in audio),
            len(audio),
        ]
    )


def naive_clip_score(audio, hop, threshold):
    """The mean over chunks, of which the last one ends with the clip."""
    if len(audio) <= SIZE:
        audio = [audio[place % len(audio)] for place in range(SIZE)]
    starts = [*range(0, len(audio) - SIZE, hop), len(audio) - SIZE]
    chunks = [audio[start : start + SIZE] for start in starts]
    peaks = [np.abs(chunk).max() for chunk in chunks]
    least = min(threshold, max(peaks))
    loud = [c for c, p in zip(chunks, peaks, strict=True) if p >= least]
    return np.mean([naive_score(chunk) for chunk in loud], axis=0)


def scorer(cutting=Cutting(None), **options):
    """The graph that an export has."""
    return tf.function(
        audio_bytes.ClipScorer(score, 3, RATE_HZ, cutting, **options),
        input_signature=[tf.TensorSpec((None,), tf.string)],
    )


def assert_scores(outputs, expected):
    assert np.all(outputs["valid"]) and not np.any(outputs["error"])
    np.testing.assert_allclose(
        outputs["scores"], expected, rtol=1e-5, atol=1e-5
    )


def test_chunks_are_those_of_a_loop(rng, monkeypatch):
    lengths = (1, 4, SIZE, SIZE + 1, 2 * SIZE, 3 * SIZE - 1, 5 * SIZE + 7)
    clips = [0.5 * rng.uniform(-1, 1, n).astype("float32") for n in lengths]
    # Chunks of silence, and a clip that has nothing else.
    clips[4][:SIZE] *= 1e-3
    clips[6][2 * SIZE : 4 * SIZE] = 0.0
    clips.append(1e-4 * clips[5])
    contents = list(map(wav, clips))
    for at_a_time, hop, silence_db, threshold in (
        (64, SIZE, None, 0.0),
        (3, SIZE, -40.0, 0.01),
        (3, SIZE // 2, -40.0, 0.01),
        (64, SIZE - 1, None, 0.0),
    ):
        monkeypatch.setattr(audio_bytes, "CHUNKS_AT_A_TIME", at_a_time)
        score_bytes = scorer(Cutting(SIZE, hop, silence_db))
        assert_scores(
            score_bytes(contents),
            [naive_clip_score(clip, hop, threshold) for clip in clips],
        )


def test_whole_clips_are_scored_by_their_lengths(rng):
    clips = [rng.uniform(-1, 1, n).astype("float32") for n in (3, 17, 1)]
    expected = list(map(naive_score, clips))
    assert_scores(scorer()(list(map(wav, clips))), expected)


@pytest.mark.parametrize("cutting", [Cutting(None), Cutting(SIZE, SIZE // 3)])
def test_a_clip_that_cannot_be_scored_has_its_code(cutting, rng, monkeypatch):
    """It has no scores, and leaves those of the others alone."""
    good = rng.uniform(-1, 1, 2 * SIZE).astype("float32")
    loud = good.copy()
    loud[3] = POISON
    with np.errstate(over="ignore"):
        assert not np.isfinite(np.float32(POISON) ** 2)
    limit_s = 4 * SIZE / RATE_HZ
    files = {
        wav(good): WavError.NONE,
        b"none": WavError.NOT_WAVE,
        wav(loud): WavError.OVERFLOW,
        wav(np.zeros(4 * SIZE + 1)): WavError.TOO_LONG,
        wav(np.zeros(0)): WavError.NO_SAMPLES,
        wav(-good): WavError.NONE,
    }
    # Samples so large are refused before: here the model is what fails.
    monkeypatch.setattr(audio_bytes.graph_wav, "MAX_PEAK", 2 * POISON)
    score_bytes = scorer(cutting, max_clip_s=limit_s)
    outputs = score_bytes(list(files))
    codes = list(files.values())
    assert list(outputs["error"].numpy()) == codes
    valid = outputs["valid"].numpy()
    assert list(valid) == [code == WavError.NONE for code in codes]
    scores = outputs["scores"].numpy()
    assert np.all(scores[~valid] == 0.0)
    alone = score_bytes([wav(good), wav(-good)])
    np.testing.assert_allclose(scores[valid], alone["scores"], rtol=1e-5)
