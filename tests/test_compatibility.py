"""What an earlier version has written, a later one loads.

The files of `tests/compatibility/` were written by the version that froze the
names of configs, with the script beside them. They are never written again.
From then on no key of a `get_config` is renamed or removed, and no name of an
attention or of a size; a key may be added if its default means what was meant
before. A new class or key is frozen by
`python tests/compatibility/write.py --keys`.
"""

import importlib.util
import json
import pathlib

import keras
import numpy as np
import pytest

from audio_tf import attention, layers, models

FOLDER = pathlib.Path(__file__).resolve().parent / "compatibility"
SPEC = importlib.util.spec_from_file_location("write", FOLDER / "write.py")
write = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(write)
# Of float32 on any machine and backend, relative and absolute.
TOLERANCE = 1e-5
# From one seed each backend draws other frames to be masked.
DRAWN = {
    f"pretraining.keras/{key}"
    for key in ("masked_features", "masked_frames", "reconstruction")
}


@pytest.fixture(scope="module")
def loaded():
    return write.load()


@pytest.fixture(scope="module")
def frozen():
    return json.loads(write.KEYS.read_text())


def test_stored_models_give_their_stored_outputs(loaded):
    with np.load(FOLDER / "arrays.npz") as file:
        arrays = dict(file)
    compared = set(write.inputs())
    foreign = keras.backend.backend() != "tensorflow"
    for name, model in loaded.items():
        for key, found in write.outputs(model, arrays).items():
            compared.add(f"{name}/{key}")
            stored = arrays[f"{name}/{key}"]
            assert np.isfinite(found).all() and found.shape == stored.shape
            if foreign and f"{name}/{key}" in DRAWN:
                continue
            np.testing.assert_allclose(
                found,
                stored,
                rtol=TOLERANCE,
                # Sums of large numbers round otherwise on another processor.
                atol=TOLERANCE * max(1.0, np.abs(stored).max()),
                err_msg=f"{name}/{key}",
            )
    assert compared == set(arrays)


def test_a_stored_optimizer_goes_on(loaded):
    optimizer = loaded["pretraining.keras"].optimizer
    assert int(optimizer.iterations) == 1
    assert any(np.abs(each).max() > 0 for each in optimizer.variables[2:])


def test_every_layer_and_attention_is_in_a_file(loaded):
    kept = {
        type(layer)
        for model in loaded.values()
        for layer in model._flatten_layers()
    }
    public = [vars(layers)[name] for name in layers.__all__]
    public = {each for each in public if isinstance(each, type)}
    assert kept >= public | {*attention.ATTENTIONS.values()}


def test_no_config_key_is_renamed_or_removed(loaded, frozen):
    found = write.config_keys([*loaded.values(), *write.parts_alone()])
    for name, keys in frozen["configs"].items():
        gone = set(keys) - set(found.get(name, ()))
        assert not gone, f"{name} lacks {sorted(gone)}"


def test_every_class_that_is_saved_is_frozen(frozen):
    write.parts_alone()  # Their modules are imported when they are needed.
    assert set(write.registered()[0]) == set(frozen["configs"])


def test_no_name_is_renamed_or_removed(frozen):
    names = frozen["names"]
    assert set(names["attentions"]) <= set(attention.ATTENTIONS)
    assert set(names["backbones"]) <= set(models.BACKBONES)
    assert set(names["functions"]) <= set(write.registered()[1])
    assert set(names["sizes"]) <= set(models.list_sizes())
