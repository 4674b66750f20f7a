"""Fixtures of tests of training."""

import pytest


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A CSV corpus of two tones."""
    from training_cases import write_tones

    return write_tones(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def untrained(monkeypatch, no_pictures, eager_models):
    """Runs are as they are, but that no weight is trained and nothing drawn."""
    from training_cases import fit_nothing

    from audio_tf.runs import train

    monkeypatch.setattr(train, "fit", fit_nothing)
