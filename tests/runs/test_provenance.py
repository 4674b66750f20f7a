"""How a model came to be."""

import sys

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("settings read corpora by tf.data", allow_module_level=True)

from audio_tf.runs import provenance
from audio_tf.runs.corpus_settings import DataSettings


def test_the_command_is_what_one_would_type(monkeypatch):
    for argv, command in (
        (["training/train.py", "--out", "a b"], "python training/train.py"),
        (["/opt/venv/bin/audio-tf", "train", "--out", "a b"], "audio-tf train"),
        (
            ["/opt/audio_tf/cli/__main__.py", "train", "--out", "a b"],
            "audio-tf train",
        ),
    ):
        monkeypatch.setattr(sys, "argv", argv)
        found = provenance.run_facts(DataSettings(seed=3))
        assert found["command"] == f"{command} --out 'a b'"
        assert found["given"] == ["seed"] and found["settings"]["seed"] == 3


def test_a_run_that_goes_on_keeps_its_first_command(monkeypatch, tmp_path):
    settings = DataSettings()
    for further in ([], ["--resume"]):
        monkeypatch.setattr(sys, "argv", ["audio-tf", "train", *further])
        provenance.begin_run(tmp_path, settings, {"splits": {}})
        facts = provenance.run_facts(settings, tmp_path)
        assert facts["command"] == "audio-tf train"
