import pytest


@pytest.fixture
def scores_alone(monkeypatch):
    """Exports have one signature, for tests that do not look at the others."""
    from audio_tf.export import signatures

    endpoints = signatures.endpoints

    def first(model, max_clip_s):
        name = "serving_default"
        return {name: endpoints(model, max_clip_s)[name]}

    monkeypatch.setattr(signatures, "endpoints", first)
