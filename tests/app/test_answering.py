"""Clips, uploads and what models say of them, without the page."""

import io
import os
import sys

import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("the page reads as classify does", allow_module_level=True)

from audio_tf import cli
from audio_tf.app import answering, samples
from audio_tf.app.uploads import KEPT_S, Uploads
from audio_tf.models import AudioClassifier

RATE_HZ = 8_000


@pytest.fixture(scope="module")
def models():
    backbone = tiny.backbone(sample_rate_hz=RATE_HZ)
    classifier = AudioClassifier(
        backbone, labels=["dog", "rain", "siren"], chunk_s=0.5
    )
    classifier.run_eagerly = classifier.frame_model.run_eagerly = True
    return answering.Models(["one", "two", "one"], {"one": classifier}.get)


def wav(audio, rate_hz=RATE_HZ):
    file = io.BytesIO()
    soundfile.write(file, audio, rate_hz, "FLOAT", format="WAV")
    return file.getvalue()


def test_scores_are_those_of_classify(models, rng, tmp_path):
    """At another rate than the model's, and cut into three chunks."""
    content = wav(rng.uniform(-0.5, 0.5, 13_001), 11_000)
    path = tmp_path / "clip.wav"
    path.write_bytes(content)
    clip = answering.read_clip("clip.wav", content)
    classifier = models.classifier("one")
    expected = classifier.classify(str(path), top=None)
    answer = models.answer("one", clip)
    assert answer.found["scores"] == expected["scores"]
    assert answer.found["file"] == "clip.wav"
    top = models.classify("one", clip, top=2)["scores"]
    assert list(top) == list(expected["scores"])[:2]

    timeline = classifier.timeline(str(path), top=None)["timeline"]
    assert len(timeline) == len(answer.frames)
    for span, row, frame in zip(
        answer.spans_s, answer.frames, timeline, strict=True
    ):
        assert tuple(span) == (frame["start_s"], frame["end_s"])
        for label, score in zip(answer.labels, row, strict=True):
            assert score == pytest.approx(frame["scores"][label], abs=1e-6)


def test_a_bad_file_has_the_message_of_classify(models, tmp_path):
    path = tmp_path / "broken.wav"
    path.write_bytes(b"RIFF and no more")
    found = models.classifier("one").classify(str(path))
    clip = answering.read_clip("broken.wav", path.read_bytes())
    answer = models.answer("one", clip)
    assert answer.error == found["error"] == clip.error
    assert "audio" in answer.error and answer.frames is None


def test_reasons_are_those_of_explain(models, rng, tmp_path, monkeypatch):
    content = wav(rng.uniform(-0.5, 0.5, 2_001))
    path = tmp_path / "clip.wav"
    path.write_bytes(content)
    clip = answering.read_clip("clip.wav", content)
    found = models.explain("one", clip)
    expected = models.classifier("one").explain(str(path))
    assert found["label"] == expected["label"]
    np.testing.assert_array_equal(found["weights"], expected["weights"])
    monkeypatch.setattr(answering, "MAX_EXPLAINED_S", 0.25)
    assert (
        "longer than the page explains"
        in (models.explain("one", clip)["error"])
    )
    bad = answering.Clip("bad.wav", None, None, "empty file")
    assert models.explain("one", bad)["error"] == "empty file"


@pytest.mark.parametrize("kind", [FileNotFoundError, ImportError])
def test_a_model_that_fails_leaves_the_other_alone(kind, models, rng):
    def load(name):
        if name == "gone":
            raise kind("no config.json in it")
        return models.classifier("one")

    both = answering.Models(["gone", "one"], load)
    clip = answering.read_clip("clip.wav", wav(rng.uniform(-0.5, 0.5, 2_001)))
    found = both.answers(both.names, clip)
    assert found["gone"].error == "no config.json in it"
    assert found["one"].found == models.answer("one", clip).found
    found = both.reasons(both.names, clip)
    assert found["gone"]["error"] == "no config.json in it"
    assert found["one"]["weights"].size


def test_a_model_that_is_not_offered_is_not_loaded():
    asked = []
    models = answering.Models(["one"], asked.append)
    with pytest.raises(ValueError, match="`model` must be one of one. Rec"):
        models.classify("../secrets", answering.Clip("x", None, None, "bad"))
    with pytest.raises(ValueError, match="; did you mean 'one'. Received"):
        models.classifier("onne")
    assert asked == []


def test_the_page_takes_clips_up_to_limits(monkeypatch):
    content = wav(np.zeros(4_001), 1_000)
    refused = "longer than the page takes (at most {} s at 1000 Hz); audio-tf"
    monkeypatch.setattr(answering, "MAX_S", 4)
    error = answering.read_clip("a.wav", content).error
    assert error.startswith(refused.format(4))
    monkeypatch.setattr(answering, "MAX_S", 5)
    assert answering.read_clip("a.wav", content).error is None
    # Fewer seconds, where the rate is higher than what they are reckoned of.
    monkeypatch.setattr(answering, "MAX_SAMPLES", 3_000)
    error = answering.read_clip("a.wav", content).error
    assert error.startswith(refused.format(3))
    assert "cut off" in answering.read_clip("a.wav", content[:2_000]).error
    monkeypatch.setattr(answering, "MAX_BYTES", len(content) - 1)
    assert "larger than the page takes" in (
        answering.read_clip("a.wav", content).error
    )


def test_an_upload_is_read_and_deleted(tmp_path):
    uploads = Uploads(tmp_path)
    path = tmp_path / "sum" / "a.wav"
    path.parent.mkdir()
    path.write_bytes(b"sound")
    # Gradio has one file for two requests with the same sound.
    assert uploads.take(str(path)) == b"sound"
    assert not path.exists()
    assert uploads.take(str(path)) == b"sound"
    with pytest.raises(FileNotFoundError):
        uploads.take(str(tmp_path / "b.wav"))


def test_what_was_deleted_is_forgotten_in_time(tmp_path, monkeypatch):
    now = [0.0]
    uploads = Uploads(tmp_path, clock=lambda: now[0])
    for name in "abc":
        (tmp_path / name).write_bytes(b"sound")
        uploads.take(tmp_path / name)
    monkeypatch.setattr("audio_tf.app.uploads.MAX_REMEMBERED", 10)
    uploads.forget()
    assert [path[-1] for path in uploads.remembered] == ["b", "c"]
    now[0] = KEPT_S + 1.0
    uploads.sweep()
    with pytest.raises(FileNotFoundError):
        uploads.take(tmp_path / "c")


def test_uploads_that_nobody_asks_about_are_swept(tmp_path):
    uploads = Uploads(tmp_path)
    path = tmp_path / "sum" / "a.wav"
    path.parent.mkdir()
    path.write_bytes(b"sound")
    written = os.path.getmtime(path)
    os.utime(path.parent, (written, written))
    uploads.sweep(now=written + KEPT_S - 1)
    assert path.exists()
    uploads.sweep(now=written + KEPT_S + 5)
    assert list(tmp_path.iterdir()) == []


def test_uploads_are_bounded_together(tmp_path, monkeypatch):
    uploads = Uploads(tmp_path)
    (tmp_path / "a.wav").write_bytes(bytes(10))
    assert not uploads.are_too_many()
    monkeypatch.setattr("audio_tf.app.uploads.MAX_WAITING", 9)
    assert uploads.are_too_many()


def test_samples_are_sounds_with_names_of_their_own():
    assert sorted(samples.FILES.values()) == sorted(samples.SAMPLES)
    for file, name in samples.FILES.items():
        audio, rate_hz = soundfile.read(io.BytesIO(samples.content(name)))
        seconds = samples.PART_S * len(samples.SAMPLES[name])
        assert len(audio) == seconds * rate_hz and abs(audio).max() > 0.1
        assert file.replace("_", "").removesuffix(".wav").isalpha()


def test_a_page_without_gradio_says_what_to_install(monkeypatch, capsys):
    for name in ("GRADIO_TEMP_DIR", "GRADIO_ANALYTICS_ENABLED"):
        monkeypatch.setenv(name, "")
    monkeypatch.setitem(sys.modules, "gradio", None)
    assert cli.main(["app", "--port", "0"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "audio-tf app: The page needs Gradio: pip install 'audio_tf[app]'"
    )
