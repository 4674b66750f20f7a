"""The table of decoders of the layers of high and low Importance Factor."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("audio is read through tf.data", allow_module_level=True)

from audio_tf import released
from audio_tf.runs import layers_table


def test_importance_of_something_else_is_refused_by_its_file(tmp_path):
    good = {"importance": np.ones((3, 5)), "layers": np.array([1, 2, 3])}
    for name, arrays in {
        "good": good,
        "other": {"embeddings": good["importance"]},
        "wide": {**good, "importance": np.ones((3, 7))},
        "higher": {**good, "layers": np.array([2, 3, 5])},
        "short": {**good, "layers": np.array([1, 2])},
        "none": {**good, "importance": np.full((3, 5), np.nan)},
    }.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)
    (tmp_path / "text.npz").write_text("hello")
    for name, message in {
        "other": "must be an importance.npz .* Received: .'embeddings'",
        "wide": "is of other layers than .*'dim': 7} in place of .*'dim': 5}",
        "higher": r"is of other layers than .*\[2, 3, 5\].*in place of",
        "short": r"shape=\(3, 5\) and shape=\(2,\)",
        "none": "must be finite floats",
        "text": "must be a .npz",
    }.items():
        settings = layers_table.LayersTableSettings(
            embeddings="x.npz",
            importance=[str(tmp_path / f"{n}.npz") for n in ("good", name)],
        )
        with pytest.raises(ValueError, match=f"{name}.npz.*{message}"):
            layers_table.select(settings)


def test_importance_of_another_encoder_is_refused(tmp_path):
    """Of the same size: nothing else tells it."""
    preset = tmp_path / "preset"
    preset.mkdir()
    (preset / "model.weights.h5").write_bytes(b"those of one encoder")
    mark = released.weights_mark(str(preset))
    good = {"importance": np.eye(3, 5), "layers": np.array([1, 2, 3])}
    for name, encoder in {
        "own": {"encoder": np.array(mark)},
        "other": {"encoder": np.array("f" * 64)},
        "silent": {"encoder": np.array("")},
        "before": {},
    }.items():
        np.savez(tmp_path / f"{name}.npz", **good, **encoder)

    def select(*names, **source):
        return layers_table.select(
            layers_table.LayersTableSettings(
                importance=[str(tmp_path / f"{n}.npz") for n in names], **source
            )
        )

    model = {"model": str(preset), "data_dir": str(tmp_path)}
    assert len(select("own", "silent", "before", **model)["high"]) == 1
    with pytest.raises(ValueError, match="other.npz is of another.*preset: "):
        select("own", "other", **model)
    assert len(select("other", embeddings="x.npz")["high"]) == 1
    with pytest.raises(ValueError, match="other.npz is of another.*own.npz: "):
        select("own", "other", embeddings="x.npz")
