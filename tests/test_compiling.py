"""Frozen encoders, probes and decoders are compiled where JAX needs it."""

import types
import unittest.mock

import keras
import numpy as np
import pytest
import tiny

from audio_tf import models
from audio_tf.analysis import probes
from audio_tf.analysis.layer_embeddings import LayerEmbeddings
from audio_tf.layers import SpeechFeatures
from audio_tf.models import GaussianAdaptiveDecoder
from audio_tf.runs import fold_decoders


class FitBegins(Exception):
    pass


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_what_is_trained_or_embeds_is_compiled_on_jax(
    backend, monkeypatch, tmp_path
):
    """Elsewhere a graph is enough; JAX would run each operation by itself."""
    compiled = {}

    def fit(self, *args, **kwargs):
        compiled[type(self).__name__] = self.jit_compile
        raise FitBegins

    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    monkeypatch.setattr(keras.Model, "fit", fit)
    encoder = models.SpeechEncoder(
        tiny.albert(), SpeechFeatures("s3prl", 4_000, {"num_mel_bins": 13})
    )
    for made in (
        probes.FrozenFeatures(encoder),
        LayerEmbeddings(encoder, None),
    ):
        compiled[type(made).__name__] = made.model.jit_compile
    with pytest.raises(FitBegins):
        probes.train(
            probes.create("speaker", 13, 5),
            unittest.mock.MagicMock(),
        )
    one_hot = np.eye(2)[[0, 1, 0, 1]]
    part = np.zeros((4, 3, 6), "float32"), one_hot, np.arange(4)
    settings = unittest.mock.MagicMock(
        seed=0,
        module="gaam_v1",
        num_heads=1,
        attention_kwargs={},
        filters=4,
        learning_rate=0.1,
        weight_decay=0.0,
        focal_gamma=0.0,
        plateau_factor=0.1,
        plateau_patience=2,
    )
    embedded = types.SimpleNamespace(
        x=part[0], part=lambda rows: part, vocabulary=["a", "b"]
    )
    with pytest.raises(FitBegins):
        fold_decoders.train_fold(
            "a", unittest.mock.MagicMock(), embedded, settings, tmp_path
        )
    assert compiled == dict.fromkeys(
        (
            "FrozenFeatures",
            "LayerEmbeddings",
            "ProbeModel",
            GaussianAdaptiveDecoder.__name__,
        ),
        backend == "jax",
    )
