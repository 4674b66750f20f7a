"""Files to scores in memory."""

import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("scores are computed through tf.data", allow_module_level=True)

from audio_tf import data
from audio_tf.audio import AudioError
from audio_tf.corpora import Corpus
from audio_tf.data import scoring
from audio_tf.models import AudioClassifier

RATE_HZ = 1_100
SIZES = [1_511, 7, 2_213, 331, 1_100, 550]


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Files of several lengths, one of them no audio, and one that is loud."""
    folder = tmp_path_factory.mktemp("clips")
    rng = np.random.default_rng(5)
    files = [folder / f"{number}.wav" for number in range(len(SIZES))]
    for file, size in zip(files, SIZES, strict=True):
        audio = rng.uniform(-0.5, 0.5, size)
        audio[size // 2 :] *= 1e-4
        soundfile.write(file, audio, RATE_HZ, subtype="FLOAT")
    bad = folder / "bad.wav"
    bad.write_text("no audio")
    return files, bad


@pytest.fixture(scope="module")
def backbone():
    return tiny.backbone()


@pytest.mark.parametrize(
    "options", [{"chunk_s": 0.25, "silence_db": -30.0}, {"chunk_s": None}]
)
def test_scores_are_those_of_clips_from_the_cache(
    options, clips, backbone, tmp_path, monkeypatch
):
    """In one group and in many, bad files among them, in their order."""
    files, bad = clips
    classifier = AudioClassifier(backbone, num_classes=3, **options)
    corpus = Corpus(files, [[] for _ in files], ["a", "b", "c"])
    cached = data.prepare(corpus, RATE_HZ, tmp_path, progress=False)
    chunks = data.Chunks(
        cached, classifier.chunk_s, silence_db=classifier.silence_db
    )
    expected = data.score_clips(classifier, chunks, verbose=0)
    given = [*files[:2], bad, *files[2:], bad]
    for at_once in (10**6, 1_000, 1):
        monkeypatch.setattr(scoring, "samples_at_once", lambda _: at_once)
        found = list(data.score_files(classifier, given))
        assert [each.file for each in found] == given
        rows = [each.scores for each in found if each.reason is None]
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-5)
        for each in found:
            assert (each.scores is None) == (each.file == bad)
            assert bool(each.reason) == (each.file == bad)


def test_groups_of_any_length_share_a_graph(clips, backbone, monkeypatch):
    """TensorFlow warns where five calls in a row are five graphs."""
    monkeypatch.setattr(scoring, "samples_at_once", lambda _: 1)
    for chunk_s in (None, 0.25):
        classifier = AudioClassifier(backbone, num_classes=3, chunk_s=chunk_s)
        step, traced = classifier.predict_step, []

        def predict_step(batch, step=step, traced=traced):
            traced.append(batch)
            return step(batch)

        monkeypatch.setattr(classifier, "predict_step", predict_step)
        assert len(list(data.score_files(classifier, clips[0]))) == len(SIZES)
        assert 1 <= len(traced) < 4, chunk_s


def test_strict_scores_what_comes_before_the_bad_file(clips, backbone):
    files, bad = clips
    classifier = AudioClassifier(backbone, num_classes=3, chunk_s=0.25)
    scored = data.score_files(
        classifier, [files[3], bad, files[4]], strict=True
    )
    assert next(scored).file == files[3]
    with pytest.raises(AudioError, match=str(bad)):
        next(scored)


def test_files_are_decoded_a_few_ahead(clips, backbone, monkeypatch):
    """However many there are, few are in memory."""
    asked = []

    def load(file, sample_rate_hz, content):
        asked.append(file)
        return np.zeros(100, "float32")

    monkeypatch.setattr(scoring, "load_audio", load)
    monkeypatch.setattr(scoring.os, "cpu_count", lambda: 3)
    decoded = scoring.decode_ahead(iter(range(1_000)), RATE_HZ, {})
    for number in range(5):
        assert next(decoded)[0] == number
    decoded.close()
    assert len(asked) <= 5 + 3


def test_contents_stand_for_files(clips, backbone):
    classifier = AudioClassifier(backbone, num_classes=3, chunk_s=0.25)
    file = clips[0][0]
    contents = {"-": file.read_bytes(), "none": b""}
    found = list(data.score_files(classifier, [file, "-", "none"], contents))
    # Two rows of one batch need not be rounded alike.
    np.testing.assert_allclose(found[0].scores, found[1].scores, atol=1e-6)
    assert found[2].reason == "empty file"
