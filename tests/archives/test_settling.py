"""Settings of a folder of scores: what completes them, and what clashes."""

import contextlib
import dataclasses
import json

import numpy as np
import pytest

from audio_tf.archives import settling, tables
from audio_tf.export import formats

LABELS = ("dog", "rain")


@dataclasses.dataclass
class Model:
    """A classifier of two labels, by the loudness of what it hears."""

    gain: float = 1.0
    labels: tuple = LABELS
    num_classes: int = 2
    embeds: bool = True
    sample_rate_hz: int = 16_000
    chunk_s: float = 0.5
    chunk_hop_s: float | None = None
    silence_db: float | None = None
    max_samples: int | None = None

    def score_batch(self, inputs):
        if inputs.shape[1] > (self.max_samples or np.inf):
            raise ValueError("too long")
        loud = self.gain * np.abs(inputs).mean(axis=1)
        return np.stack([loud, 1 - loud], axis=1)


def settle(out, classifier=None, **settings):
    given = tables.Settings("m", settings.pop("labels", None), **settings)
    return settling.settle(str(out), given, classifier or Model())


def test_the_model_completes_settings_and_the_folder_keeps_them(tmp_path):
    assert settle(tmp_path).labels == list(LABELS)
    kept = json.loads((tmp_path / "run.json").read_text())
    assert kept["labels"] == list(LABELS) and len(kept["probe"]) == 2
    # Again, by a worker on another machine.
    rounded = Model(gain=1.0 + settling.SAME / 10)
    assert settle(tmp_path, rounded).labels == list(LABELS)
    nameless = settle(tmp_path / "b", Model(labels=None), labels=["x", "y"])
    assert nameless.labels == ["x", "y"]


def test_a_model_is_asked_for_no_more_than_it_takes(tmp_path):
    """At 8 kHz, its tables may be for half of what 16 kHz would have."""
    assert settle(tmp_path, Model(max_samples=4_000)).labels == list(LABELS)


def test_a_folder_has_scores_of_one_model_and_of_one_kind(tmp_path):
    settle(tmp_path)
    with pytest.raises(ValueError, match="scores of another model, m"):
        settle(tmp_path, Model(gain=0.5))
    with pytest.raises(ValueError, match="top=5.* Received: top=2"):
        settle(tmp_path, top=2)
    with pytest.raises(ValueError, match=r"labels=\['dog'"):
        settle(tmp_path, Model(labels=["cat", "rain"]))


@pytest.mark.parametrize(
    "attributes", [{"chunk_hop_s": 0.25}, {"silence_db": -60.0}]
)
def test_a_folder_has_scores_of_clips_that_are_cut_alike(tmp_path, attributes):
    settle(tmp_path)
    settle(tmp_path, Model(chunk_hop_s=0.5))  # Side by side, too.
    with pytest.raises(ValueError, match="cut into chunks otherwise"):
        settle(tmp_path, Model(**attributes))
    path = tmp_path / "run.json"
    kept = json.loads(path.read_text())
    del kept["cutting"]  # As one of before.
    path.write_text(json.dumps(kept))
    assert settle(tmp_path, Model(**attributes)).labels == list(LABELS)


@pytest.mark.parametrize(
    ("attributes", "settings", "words"),
    [
        ({"embeds": False}, {"embeddings": True}, "a preset or a SavedModel"),
        ({"chunk_s": 2.0}, {"window_s": 1.0}, "at least .* 2.0 s"),
        ({}, {"labels": ["x", "y"]}, "labels for m"),
        ({"labels": None}, {}, "`labels` must name them"),
        ({"labels": None}, {"labels": ["x"]}, "2 classes of m.*1 names"),
    ],
)
def test_settings_that_do_not_fit_the_model(
    attributes, settings, words, tmp_path
):
    with pytest.raises(ValueError, match=words):
        settle(tmp_path, Model(**attributes), **settings)
    assert list(tmp_path.iterdir()) == []


def test_files_of_other_formats_have_scores_alone():
    others = [formats.FORMATS[name] for name in ("onnx", "litert", "openvino")]
    assert not any(each.runtime.embeds for each in others)


def test_settings_are_compared_before_a_model_is_loaded(tmp_path):
    settling.check(str(tmp_path), tables.Settings("m", None, top=2))
    settle(tmp_path)
    # Labels are the model's, which is not known yet; its place may be another.
    settling.check(str(tmp_path), tables.Settings("elsewhere", None))
    for settings in (
        tables.Settings("m", None, window_s=9.0),
        tables.Settings("m", ["x", "y"]),
    ):
        with pytest.raises(ValueError, match="another `out` takes others"):
            settling.check(str(tmp_path), settings)


class Odd(FileNotFoundError):
    """An error of a library, which others need not have."""


def test_an_error_of_a_worker_is_raised_where_it_was_started(tmp_path):
    out = str(tmp_path)
    with pytest.raises(FileNotFoundError, match="no weights") as raised:
        with settling.refusals(out):
            with settling.telling(out):
                raise Odd("no weights")
    assert type(raised.value) is FileNotFoundError
    assert raised.value.__cause__ is None
    # What another run has left is none of this one's.
    with contextlib.suppress(ValueError), settling.telling(out):
        raise ValueError("of yesterday")
    with pytest.raises(RuntimeError, match="worker was lost"):
        with settling.refusals(out):
            raise RuntimeError("worker was lost")
    assert list(tmp_path.iterdir()) == []
