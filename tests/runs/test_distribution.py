"""Two devices train as one does; each backend in a process of its own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from scripts import run

from audio_tf.runs import distribution

# Masks and losses that do not depend on how a batch is cut.
PROGRAM = """
import sys
import keras
import numpy as np

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
from audio_tf import models
from audio_tf.runs import distribution

keras.utils.set_random_seed(0)
with distribution.scope(sys.argv[1]):
    backbone = models.AudioAlbertBackbone(
        num_layers=2,
        num_heads=2,
        key_dim=4,
        hidden_dim=8,
        intermediate_dims=(8,),
        feature_dim=13,
    )
    model = models.MaskedAcousticModel(
        backbone,
        masking="s3prl",
        masking_kwargs={
            "mask_rate": 1.0,
            "run_frames": 1,
            "zero_rate": 1.0,
            "replace_rate": 0.0,
        },
        compile=False,
    )
    model.compile(keras.optimizers.SGD(0.5))
    x = np.random.default_rng(0).normal(size=(12, 11, 13)).astype("float32")
    history = model.fit(
        x, batch_size=6, epochs=3, shuffle=False, verbose=0,
        validation_data=x[:4],
    )
    for name in ("loss", "val_loss"):
        print("figures", name, *history.history[name])
    sums = [float(np.abs(w).sum()) for w in model.get_weights()]
    print("figures weights", *sums)
    print("devices", distribution.num_devices())
    try:
        model.evaluate(x[:5], verbose=0)
        print("five rows: one piece")
    except Exception as error:
        print("five rows:", type(error).__name__)
"""


def figures(backend, strategy, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, program, strategy],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    devices = 1 if strategy == "none" else 2
    assert f"devices {devices}\n" in done.stdout
    if backend == "jax":
        # Five rows cannot be cut in two, if they are cut.
        whole = "five rows: one piece" in done.stdout
        assert whole == (devices == 1)
    lines = [
        line.split()[1:]
        for line in done.stdout.splitlines()
        if line.startswith("figures")
    ]
    assert len(lines) == 3
    return {name: [float(each) for each in values] for name, *values in lines}


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_two_devices_equal_one(backend, tmp_path):
    pytest.importorskip(backend)
    one = figures(backend, "none", tmp_path)
    two = figures(backend, "data_parallel", tmp_path)
    for name in one:
        assert two[name] == pytest.approx(one[name], rel=1e-4), name
    # Or the weights would be equal because nothing was trained.
    assert len(set(one["loss"])) == 3


# On JAX, two devices of one busy CPU wait for each other in vain at times.
@pytest.mark.parametrize(
    ("backend", "strategy"), [("tensorflow", "data_parallel"), ("jax", "none")]
)
def test_pretraining_by_the_script(backend, strategy, tmp_path):
    pytest.importorskip(backend)
    rng = np.random.default_rng(0)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(20):
        noise = 0.3 * rng.standard_normal(3_000)
        soundfile.write(corpus / f"{number}.wav", noise, 8_000)
    tiny = {"num_heads": 2, "key_dim": 4, "hidden_dim": 8}
    run(
        *("pretrain.py", "--dataset", "folder", "--data-dir", corpus),
        *("--features", "s3prl", "--target", "input", "--feature-cache"),
        *("--model-kwargs", json.dumps(tiny), "--batch-size", 6),
        *("--steps", 2, "--save-every", 1, "--buckets", 1),
        *("--distribution", strategy, "--out", tmp_path / "run"),
        cache=tmp_path,
        env={"KERAS_BACKEND": backend},
    )
    assert (tmp_path / "run" / "preset" / "provenance.json").is_file()


def test_a_strategy_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="data_parallel.*Received.*'many'"):
        distribution.scope("many")


def test_several_hosts_are_refused(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{}")
    with pytest.raises(ValueError, match="one host"):
        distribution.scope("data_parallel")
